"""`himecat map`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from himecat.cli import options as o
from himecat.cli.options import counted, open_model
from himecat.cli.places import check_encoder
from himecat.cli.propose import KeptDocuments
from himecat.errors import UsageError


def map_(
    model: o.Model,
    documents: KeptDocuments = None,
    *,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    online: o.Online = False,
    threads: o.Threads = None,
    title: Annotated[str, o.option(o.OUTPUT, "What stands above.", metavar="TEXT")] = "Map of the documents",
    output: Annotated[
        Path, o.option(o.OUTPUT, "File to write: .html, .png or .svg.", "--output", "-o", metavar="FILE")
    ],
    quiet: o.Quiet = False,
) -> None:
    """Draw documents and categories in two dimensions, as a page to zoom in or as a picture.

    Example: `himecat map model -o map.html`
    """
    from himecat.runtime.progress import Progress
    from himecat.teaching.map import layout

    suffix = output.suffix.lower()
    if suffix not in (".html", ".png", ".svg"):
        raise UsageError(f"A map is written as .html, .png or .svg, not as {output.name!r}.")
    fitted = open_model(model, online=online, quiet=quiet)
    check_encoder({"--output": output}, fitted.encoder)
    fitted.set_params(threads=threads, skip_bad=skip_bad, sheet=sheet, delimiter=delimiter)
    progress = Progress(quiet=quiet)
    with progress.stage("Placing the documents", total=1):
        found = layout(fitted, documents)
    if suffix == ".html":
        from himecat.teaching.map_page import write_map_page

        write_map_page(output, found, title)
    else:
        from himecat.compare.figures.document_map import draw_document_map

        draw_document_map(found, output, title=title)
    progress.say(f"The map of {counted(len(found))} is in {output}.")
