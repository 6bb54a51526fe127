"""`himecat predict` and `himecat score`."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from himecat.cli import options as o
from himecat.cli.options import counted, names, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from himecat.classifier.assignments import Assignments
    from himecat.evaluation.metrics import Scores
    from himecat.input.builder import Origin


def predict(
    model: o.Model,
    documents: o.Documents,
    *,
    text: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Text fields, if not named as in fit.", rich_help_panel=o.INPUT),
    ] = None,
    id_field: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="NAME", help="Field with the id, if not as in fit.", rich_help_panel=o.INPUT
        ),
    ] = None,
    skip_bad: o.SkipBad = False,
    min_confidence: o.MinConfidence = None,
    threads: o.Threads = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write, one line per document; - for standard output.",
            rich_help_panel=o.OUTPUT,
        ),
    ],
    quiet: o.Quiet = False,
) -> None:
    """Place documents on the paths of the tree, one JSON line each, in order.

    With --skip-bad a document that cannot be used gets an empty path.

    Example: `himecat predict model papers.jsonl -o predictions.jsonl`
    """
    import sys

    import numpy as np

    from himecat.estimator import HiMeCat
    from himecat.input.problems import Problems
    from himecat.runtime.files import atomic_file
    from himecat.runtime.progress import Progress

    o.refuse_inputs(output, documents, model)
    progress = Progress(quiet=quiet)
    fitted = HiMeCat.load(model)
    changes: dict[str, Any] = {"threads": threads, "skip_bad": skip_bad}
    if text is not None:
        changes["text"] = names(text)
    if id_field is not None:
        changes["id_field"] = id_field
    if min_confidence is not None:
        changes["min_confidence"] = min_confidence
    fitted.set_params(**changes)
    problems = Problems()

    ends: dict[int, tuple[str, str, int]] = {}

    def run(stream: TextIO) -> tuple[int, int, int]:
        placed_documents = skipped = unknown = 0
        for origins, corpus, placed in fitted.iter_assignments(documents, problems):
            stream.writelines(_predictions(origins, placed, ends))
            empty = corpus.tokens.lengths == 0
            unknown += sum(origins[row].usable for row in np.flatnonzero(empty).tolist())
            usable = sum(origin.usable for origin in origins)
            placed_documents += usable
            skipped += len(origins) - usable
        if not skip_bad or problems.has_fatal:
            problems.raise_errors()
        return placed_documents, skipped, unknown

    if str(output) == o.STDOUT:
        count, skipped, unknown = run(sys.stdout)
    else:
        with atomic_file(output, what="The predictions") as stream:
            count, skipped, unknown = run(stream)
    for problem in problems:
        progress.say(f"{problem.severity if problem.severity != 'error' else 'skipped'}: {problem}")
    if problems.hidden("error"):
        progress.say(f"skipped: ... and {problems.hidden('error')} more.")
    if unknown:
        progress.say(
            f"note: the model knows no word of {counted(unknown)}: what places them is their metadata, or how "
            "frequent the categories are."
        )
    where = "" if str(output) == o.STDOUT else f"; the paths are in {output}"
    left_out = f", skipped {skipped:,}" if skipped else ""
    progress.say(f"Placed {counted(count)}{left_out}{where}.")


def _predictions(
    origins: list[Origin], placed: Assignments, ends: dict[int, tuple[str, str, int]]
) -> Iterator[str]:
    """One line per document; what stands before and after its confidences is kept in `ends`, by the node."""
    written = json_module.JSONEncoder(ensure_ascii=False).encode
    nodes, confidences = placed.nodes.tolist(), placed.rounded.tolist()
    for row, ((name, _, _), node) in enumerate(zip(origins, nodes, strict=True)):
        if node not in ends:
            leaf = written(placed.taxonomy.is_leaf(node))
            path = written(list(placed.path(row)))
            ends[node] = (
                f', "path": {path}, "confidence": [',
                f'], "leaf": {leaf}}}\n',
                placed.taxonomy.depths[node],
            )
        before, after, depth = ends[node]
        sure = ", ".join(map(repr, confidences[row][:depth]))
        yield f'{{"id": {written(name)}{before}{sure}{after}'


def score(
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="File written by `himecat predict`.")
    ],
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="Dataset folder with the true labels.")],
    without_draw: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Leave out the documents labelled in this draw: the model has seen them. 0 is doc_id.txt.",
            rich_help_panel=o.INPUT,
        ),
    ] = None,
    per_leaf: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Labelled documents per leaf of that draw.", rich_help_panel=o.INPUT
        ),
    ] = 5,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    json: o.Json = None,
    quiet: o.Quiet = False,
) -> None:
    """Compare predictions with the true labels of a dataset folder.

    Example: `himecat score predictions.jsonl datasets/arxiv --without-draw 0`
    """
    from himecat.compare.protocol.scoring import score_predictions
    from himecat.input.documents import Fields

    o.refuse_inputs(json, predictions, dataset)
    from himecat.runtime.progress import Progress

    found, missing = score_predictions(
        predictions,
        dataset,
        without_draw=without_draw,
        per_leaf=per_leaf,
        fields=Fields(tuple(names(text)), (), labels, id_field),
    )
    if missing:
        Progress(quiet=quiet).say(
            f"warning: there is no prediction for {counted(missing)} of {dataset}, which count for nothing."
        )
    if json is not None:
        write_json(json, found.as_dict())
    if json is None or str(json) != o.STDOUT:
        show_scores(found)


def show_scores(found: Scores) -> None:
    """Print the main scores as a small table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("", "micro F1", "macro F1"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("Leaf", f"{found.leaf.micro:.4f}", f"{found.leaf.macro:.4f}")
    table.add_row("Overall", f"{found.overall.micro:.4f}", f"{found.overall.macro:.4f}")
    for level in found.levels:
        table.add_row(f"Level {level.level}", f"{level.f1.micro:.4f}", f"{level.f1.macro:.4f}")
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"{counted(found.n_documents)}: whole path right {found.path_accuracy:.4f}, "
        f"leaf reached {found.coverage:.4f}\n"
        f"hierarchical precision {found.hierarchical_precision:.4f}, recall {found.hierarchical_recall:.4f}"
    )
