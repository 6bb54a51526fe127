"""`himecat propose`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from himecat.cli import options as o
from himecat.cli.options import open_model
from himecat.cli.places import check_encoder

KeptDocuments = Annotated[
    Path | None,
    typer.Argument(metavar="[DOCS]", help="Documents; those kept with the model by default."),
]


def propose(
    model: o.Model,
    documents: KeptDocuments = None,
    *,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    online: o.Online = False,
    threads: o.Threads = None,
    count: Annotated[
        int, o.option(o.OUTPUT, "How many proposals at most.", "--count", "-n", min=1, max=1000, metavar="N")
    ] = 10,
    output: Annotated[
        Path | None,
        o.option(
            o.OUTPUT,
            "Write the proposals with the ids of all their documents, a JSON line each.",
            "--output",
            "-o",
            metavar="FILE",
        ),
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Propose categories that the tree may lack: groups of documents that the labelled ones explain badly.

    Each is named by its words. `himecat tree MODEL add NAME --proposal FILE:N` makes a category of one.

    Example: `himecat propose model -o proposals.jsonl`
    """
    from himecat.runtime.files import write_atomic
    from himecat.runtime.progress import Progress
    from himecat.runtime.terminal import plain_json, printable, write
    from himecat.teaching.proposing import propose_categories

    fitted = open_model(model, online=online, quiet=quiet)
    check_encoder({"--output": output}, fitted.encoder)
    fitted.set_params(threads=threads, skip_bad=skip_bad, sheet=sheet, delimiter=delimiter)
    progress = Progress(quiet=quiet)
    with progress.stage("Grouping the documents", total=1):
        found = propose_categories(fitted, documents, count)
    if output is not None:
        write_atomic(output, "".join(plain_json(one.as_dict()) + "\n" for one in found), what="The proposals")
    lines = ["There is no group to propose."] if not found else []
    for number, one in enumerate(found, start=1):
        below = fitted.joint.join(one.parent) or "the top level"
        lines.append(printable(f"{number:>3}. {one.name}: {len(one.ids):,} documents, below {below}"))
        lines.append(printable(f"     {', '.join(one.words[3:])}"))
    write("\n".join(lines))
