"""`himecat predict`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from himecat.cli import options as o
from himecat.cli.options import counted, names
from himecat.cli.places import check_places
from himecat.errors import DataError
from himecat.runtime.terminal import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from himecat.classifier.assignments import Assignments


def predict(
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
    min_confidence: o.MinConfidence = None,
    threads: o.Threads = None,
    output: Annotated[
        Path,
        o.option(
            o.OUTPUT,
            "File to write, one line per document; - for standard output.",
            "--output",
            "-o",
            metavar="FILE",
        ),
    ],
    quiet: o.Quiet = False,
) -> None:
    """Place documents on the paths of the tree, one JSON line each, in order.

    With --skip-bad a document that cannot be used gets an empty path.

    Example: `himecat predict model papers.jsonl -o predictions.jsonl`
    """
    import sys
    from contextlib import nullcontext

    import numpy as np

    from himecat.input.problems import Problems
    from himecat.runtime.files import atomic_file
    from himecat.runtime.progress import Progress

    progress = Progress(quiet=quiet)
    fitted = o.open_model(model, online=online, quiet=quiet)
    # The folder of a model may name another one.
    check_places({"--output": output}, [] if fitted.encoder is None else [os.fspath(fitted.encoder)])
    changes: dict[str, Any] = {
        "threads": threads,
        "skip_bad": skip_bad,
        "sheet": sheet,
        "delimiter": delimiter,
    }
    if text is not None:
        changes["text"] = names(text)
    if id_field is not None:
        changes["id_field"] = id_field
    if min_confidence is not None:
        changes["min_confidence"] = min_confidence
    fitted.set_params(**changes)
    problems = Problems()
    ends: dict[int, tuple[str, str, int]] = {}
    count = skipped = unknown = 0
    to_stdout = str(output) == o.STDOUT
    with nullcontext(sys.stdout) if to_stdout else atomic_file(output, what="The predictions") as stream:
        for origins, corpus, placed in fitted.iter_assignments(documents, problems):
            stream.writelines(prediction_lines((origin.id for origin in origins), placed, ends))
            usable = np.array([origin.usable for origin in origins])
            count += int(usable.sum())
            skipped += int((~usable).sum())
            unknown += int((usable & (corpus.tokens.lengths == 0)).sum())
        if not skip_bad or problems.has_fatal:
            problems.raise_errors()
    for problem in problems:
        progress.say(f"{problem.severity if problem.severity != 'error' else 'skipped'}: {problem}")
    if problems.hidden("error"):
        progress.say(f"skipped: ... and {problems.hidden('error')} more.")
    if unknown:
        progress.say(
            f"note: the model knows no word of {counted(unknown)}: what places them is their metadata, or how "
            "frequent the categories are."
        )
    where = "" if to_stdout else f"; the paths are in {output}"
    left_out = f", skipped {skipped:,}" if skipped else ""
    progress.say(f"Placed {counted(count)}{left_out}{where}.")


def prediction_lines(
    ids: Iterable[str], placed: Assignments, ends: dict[int, tuple[str, str, int]]
) -> Iterator[str]:
    """One line per document; what stands before and after its confidences is kept in `ends`, by the node."""
    nodes, confidences = placed.nodes.tolist(), placed.rounded.tolist()
    for row, (name, node) in enumerate(zip(ids, nodes, strict=True)):
        if node not in ends:
            leaf = plain_json(placed.taxonomy.is_leaf(node))
            path = plain_json(list(placed.path(row)))
            ends[node] = (
                f', "path": {path}, "confidence": [',
                f'], "leaf": {leaf}}}\n',
                placed.taxonomy.depths[node],
            )
        before, after, depth = ends[node]
        sure = ", ".join(map(repr, confidences[row][:depth]))
        # Of numbers only nan and inf have that letter, and JSON has neither.
        if "n" in sure:
            raise DataError(f"The model gives {name} a probability that is not a number: fit it anew.")
        yield f'{{"id": {plain_json(name)}{before}{sure}{after}'
