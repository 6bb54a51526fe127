"""`himecat review` and `himecat correct`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from himecat.cli import options as o
from himecat.cli.options import counted, names, open_model, write_json
from himecat.cli.places import check_encoder

NewModel = Annotated[
    Path | None,
    o.option(
        o.OUTPUT, "Model folder to write, instead of replacing MODEL.", "--output", "-o", metavar="MODEL"
    ),
]


def review(
    model: o.Model,
    documents: o.Documents,
    *,
    text: Annotated[
        str | None, o.option(o.INPUT, "Text fields, if not named as in fit.", metavar="A,B")
    ] = None,
    id_field: Annotated[
        str | None, o.option(o.INPUT, "Field with the id, if not as in fit.", "--id", metavar="NAME")
    ] = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    online: o.Online = False,
    seed: Annotated[
        int | None, o.option(o.METHOD, "Another seed may ask for others.", min=0, metavar="N")
    ] = None,
    threads: o.Threads = None,
    count: Annotated[
        int, o.option(o.OUTPUT, "How many documents.", "--count", "-n", min=1, max=100_000, metavar="N")
    ] = 50,
    output: Annotated[
        Path,
        o.option(
            o.OUTPUT, "File to write and fill in: .xlsx, .csv or .jsonl.", "--output", "-o", metavar="FILE"
        ),
    ],
    quiet: o.Quiet = False,
) -> None:
    """Choose the documents whose labels would teach most, with suggestions and a column for your answers.

    An answer is a path or a name of a category, 1, 2 or 3 for a suggestion, skip, or empty. Where documents have
    several paths, 1 is the whole set, and several answers have a semicolon between them.

    Example: `himecat review model papers.jsonl -n 50 -o review.xlsx`
    """
    from himecat.evaluation.review import check_format, write_review
    from himecat.runtime.progress import Progress

    check_format(output)
    fitted = open_model(model, online=online, quiet=quiet)
    fitted.set_params(threads=threads, skip_bad=skip_bad, sheet=sheet, delimiter=delimiter)
    if text is not None:
        fitted.set_params(text=names(text))
    if id_field is not None:
        fitted.set_params(id_field=id_field)
    check_encoder({"--output": output}, fitted.encoder)
    rows = fitted.review(documents, count, seed)
    write_review(output, rows, fitted.taxonomy_, fitted.fields(), fitted.separator_)
    Progress(quiet=quiet).say(
        f"{counted(len(rows))} to look at {'is' if len(rows) == 1 else 'are'} in {output}: fill in the last column. "
        f"Then:\n  himecat correct {quote(str(model))} {quote(str(output))}"
    )


def correct(
    model: o.Model,
    answers: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWERS",
            help="A review with answers, documents with ids and labels, or an export of Label Studio: .xlsx, .csv, "
            ".jsonl, .json.",
        ),
    ],
    *,
    add: Annotated[
        Path | None,
        o.option(o.INPUT, "New documents to learn from as well, labelled or not.", "--add", metavar="DOCS"),
    ] = None,
    separator: Annotated[
        str | None,
        o.option(o.INPUT, "What separates levels in answers and labels, if not as in fit.", metavar="TEXT"),
    ] = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    bound: o.Bound = None,
    online: o.Online = False,
    threads: o.Threads = None,
    dry_run: Annotated[
        bool, o.option(o.OUTPUT, "Say what the answers change, and stop.", "--dry-run")
    ] = False,
    output: NewModel = None,
    overwrite: o.Overwrite = False,
    json: o.Json = None,
    quiet: o.Quiet = False,
) -> None:
    """Fit a model again with answers, from the documents that are kept with it, and say what has changed.

    The result is the model that `fit` gives with the labels of before and the answers. It takes the old one's
    place when it is complete.

    Example: `himecat correct model review.xlsx`
    """
    from himecat.errors import OutputError
    from himecat.model_folder.files import digest_of
    from himecat.runtime.files import check_target
    from himecat.runtime.progress import Progress
    from himecat.runtime.terminal import write

    target, replaces = (model, True) if output is None else (output, overwrite)
    digest = digest_of(model)
    fitted = open_model(model, online=online, quiet=quiet)
    if not dry_run:
        check_target(target, replaces, "The model")
    check_encoder({"--json": json, "--output": output}, fitted.encoder)
    fitted.set_params(threads=threads, sheet=sheet, delimiter=delimiter)
    progress = Progress(quiet=quiet)
    found = fitted.correct(answers, add, separator=separator, dry_run=dry_run, progress=progress)
    if not dry_run:
        if output is None and digest_of(model) != digest:
            raise OutputError(
                f"{model} has been replaced by another model in the meantime, and stays as it is: run it again."
            )
        fitted.save(target, overwrite=replaces)
    if json is not None:
        write_json(json, found.as_dict())
    if str(json) != o.STDOUT:
        write(found.said if dry_run else found.done)
    if not dry_run:
        progress.say(f"The model is in {target}.")
