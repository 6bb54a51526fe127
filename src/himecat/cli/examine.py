"""`himecat demo`, `check`, `explain` and `synthesize`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from himecat.cli import options as o
from himecat.cli.options import metadata_names, method_arguments, name_or_names, names, open_model, write_json
from himecat.errors import UsageError
from himecat.runtime.terminal import console, text


def demo(
    output: Annotated[
        Path, o.option(o.OUTPUT, "Folder to write.", "--output", "-o", metavar="FOLDER")
    ] = Path("demo"),
    method: o.Method = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    settings: o.Set = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Train on a small made-up corpus, print the scores, and write its files, a model and a report to look at.

    Example: `himecat demo -o demo`
    """
    arguments = method_arguments(method, False, False, None, settings)
    from himecat.cli.demo import A_LEAF, run_demo
    from himecat.runtime.progress import Progress
    from himecat.sample import METADATA

    progress = Progress(quiet=quiet)
    scores = run_demo(output, arguments, seed=seed, threads=threads, overwrite=overwrite, progress=progress)
    from himecat.cli.score import show_scores

    show_scores(scores)
    model, documents, tree = (quote(str(output / n)) for n in ("model", "letters.csv", "taxonomy.yaml"))
    progress.say(
        f"Look at {output / 'report.html'}. Then try:\n"
        f"  himecat explain {model} {A_LEAF}\n"
        f"  himecat predict {model} {documents} -o sorted.csv\n"
        f"  himecat fit {documents} --taxonomy {tree} --metadata {','.join(METADATA)} -o model"
    )


def check(
    documents: Annotated[
        Path, typer.Argument(metavar="DOCS", help="A file of documents, or a dataset folder.")
    ],
    taxonomy: o.Tree = None,
    metadata: o.Metadata = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    separator: o.Separator = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    labels_from_folders: o.FolderLabels = False,
    keywords: o.Keywords = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    allow_empty_leaves: o.AllowEmpty = False,
    several: o.Several = None,
    method: o.Method = None,
    tokenizer: o.Tokenizer = "unicode",
    settings: o.Set = None,
    min_count: Annotated[
        int | None, o.option(o.METHOD, "The same as --set min_count=N.", min=1, metavar="N")
    ] = None,
    json: o.Json = None,
    quiet: Annotated[bool, o.option(o.OUTPUT, "Show errors only.", "--quiet", "-q")] = False,
) -> None:
    """Look over documents, tree and labels before any training. Exit code 2 if something has to change.

    With the options of `fit`: what passes, `fit` accepts.

    Example: `himecat check papers.jsonl --taxonomy tree.yaml --metadata authors,tags`
    """
    given = [*(settings or []), *([] if min_count is None else [f"min_count={min_count}"])]
    arguments = method_arguments(method, False, False, None, given)
    from himecat.estimator import HiMeCat

    model = HiMeCat(
        taxonomy=taxonomy,
        metadata=metadata_names(metadata),
        text=names(text),
        label_field=name_or_names(labels),
        id_field=id_field,
        separator=separator,
        sheet=sheet,
        delimiter=delimiter,
        labels_from_folders=labels_from_folders,
        keywords=keywords,
        tokenizer=tokenizer,
        skip_bad=skip_bad,
        allow_empty_leaves=allow_empty_leaves,
        several=several,
        **arguments,
    )
    report = model.check(documents)
    if json is not None:
        write_json(json, report.as_dict())
    if not quiet and str(json) != o.STDOUT:
        from himecat.input.check_report import render

        # The errors follow on standard error, as those of every command.
        render(report, console(), errors=False)
    report.raise_errors()


def explain(
    model: o.Model,
    label: Annotated[
        str | None, typer.Argument(metavar="LABEL", help="A category: its name, or its path a/b/c.")
    ] = None,
    documents: Annotated[
        Path | None,
        o.option(
            o.INPUT, "Say what in these documents speaks for their category (or for LABEL).", metavar="DOCS"
        ),
    ] = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    bound: o.Bound = None,
    online: o.Online = False,
    top: Annotated[int, o.option(o.OUTPUT, "How many of each.", min=1, metavar="N")] = 10,
    json: o.Json = None,
) -> None:
    """Show what lies nearest to a category, or what in documents speaks for theirs; of neither, how good the model is.

    Example: `himecat explain model physics.optics --top 15`
    """
    from himecat.evaluation.explain import LabelExplanation

    fitted = open_model(model, online=online)
    if label is None and documents is None:
        if fitted.quality_ is None:
            raise UsageError(
                "Name a category, or documents with --documents: this model has no estimate of itself."
            )
        if json is not None:
            write_json(json, fitted.quality_.as_dict())
        if str(json) != o.STDOUT:
            for line in fitted.quality_.lines():
                console().print(text(line), soft_wrap=True)
        return
    fitted.set_params(sheet=sheet, delimiter=delimiter)
    # Encoded here, because the explanations do not tell the ids.
    corpus = None if documents is None else fitted.encode(documents)
    found = fitted.explain(label, documents=corpus, top=top)
    if isinstance(found, LabelExplanation):
        plain: Any = found.as_dict()
    else:
        assert corpus is not None
        plain = [{"id": name, **one.as_dict()} for name, one in zip(corpus.ids, found, strict=True)]
    if json is not None:
        write_json(json, plain)
    if str(json) == o.STDOUT:
        return
    if isinstance(plain, dict):
        _show_label(plain)
    else:
        _show_documents(plain)


def _show_label(plain: dict[str, Any]) -> None:
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    for title, found in [("words", plain["words"]), *plain["metadata"].items(), ("labels", plain["labels"])]:
        listed = ", ".join(f"{one['name']} {one['cosine']:.2f}" for one in found)
        rows.add_row(text(title, "bold"), text(listed or "none"))
    shown = console()
    shown.print(text("/".join(plain["path"]), "bold"))
    shown.print(rows)


def _show_documents(plain: list[dict[str, Any]]) -> None:
    from rich.padding import Padding

    shown = console()
    for one in plain:
        steps = [f"{name} {sure:.2f}" for name, sure in zip(one["path"], one["confidence"], strict=True)]
        shown.print(text(one["id"], "bold") + text(f"  {' / '.join(steps) or '(not placed)'}"))
        listed = [
            f"{found['kind'].partition(':')[2]} {found['name']} {found['weight']:.2f}".lstrip()
            for found in one["evidence"]
        ]
        evidence = ", ".join(listed) or "nothing in it speaks for this category"
        if "label" in one:
            evidence = f"for {'/'.join(one['label'])}: {evidence}"
        shown.print(Padding(text(evidence), (0, 0, 0, 2)))


def synthesize(
    model: o.Model,
    label: o.Label,
    count: Annotated[
        int, o.option(o.OUTPUT, "How many documents.", "--count", "-n", min=1, max=10_000, metavar="N")
    ] = 5,
    seed: Annotated[
        int | None, o.option(o.METHOD, "Another seed, other documents.", min=0, metavar="N")
    ] = None,
    json: o.Json = None,
) -> None:
    """Show documents made up for a category, as the paper trains on: words without an order.

    Example: `himecat synthesize model physics.optics -n 3`
    """
    fitted = open_model(model)
    made = [" ".join(words) for words in fitted.synthesize(label, count, seed)]
    if json is not None:
        path = list(fitted.taxonomy_.path(fitted.node_of(label)))
        write_json(json, {"path": path, "documents": made})
    if str(json) == o.STDOUT:
        return
    shown = console()
    for document in made:
        # One line each where a program reads them, paragraphs where a person does.
        shown.print(text(document), soft_wrap=not shown.is_terminal)
        if shown.is_terminal:
            shown.print()
