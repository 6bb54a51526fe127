"""`himecat score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from himecat.cli import options as o
from himecat.cli.options import counted, name_or_names, names, write_json

if TYPE_CHECKING:
    from himecat.evaluation.metrics import Scores
    from himecat.evaluation.set_metrics import SetScores
    from himecat.input.taxonomy.tree import Taxonomy


def score(
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="File written by `himecat predict`.")
    ],
    dataset: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET", help="Dataset folder with the true labels, or a file with ids and labels."
        ),
    ],
    without_draw: Annotated[
        int | None,
        o.option(
            o.INPUT,
            "Leave out the documents labelled in this draw: the model has seen them. 0 is doc_id.txt.",
            min=0,
            metavar="N",
        ),
    ] = None,
    per_leaf: o.PerLeaf = 5,
    taxonomy: Annotated[
        Path | None,
        o.option(
            o.INPUT,
            "The category tree, or a model folder: its tree, and what it was before it was changed. Without it, the "
            "tree that predictions and labels span.",
            "--taxonomy",
            metavar="FILE",
        ),
    ] = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    separator: o.Separator = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    bound: o.Bound = None,
    json: o.Json = None,
    quiet: o.Quiet = False,
) -> None:
    """Compare predictions with the true labels of a dataset folder, or of a file, joined by id.

    Example: `himecat score predictions.jsonl truth.csv --taxonomy tree.yaml`
    """
    from himecat.compare.protocol.scoring import score_predictions
    from himecat.input.documents import Fields
    from himecat.input.reading import Reading
    from himecat.runtime.files import MODEL_FILE
    from himecat.runtime.progress import Progress

    tree: Path | Taxonomy | None = taxonomy
    if taxonomy is not None and (taxonomy / MODEL_FILE).is_file():
        from himecat.model_folder.model import tree_of

        tree = tree_of(taxonomy)
    found, missing, labelled = score_predictions(
        predictions,
        dataset,
        without_draw=without_draw,
        per_leaf=per_leaf,
        fields=Fields(
            tuple(names(text)),
            (),
            name_or_names(labels),
            id_field,
            reading=Reading.given(sheet, delimiter, separator),
        ),
        taxonomy=tree,
    )
    progress = Progress(quiet=quiet)
    if labelled:
        progress.say(
            f"note: the labels that {counted(labelled)} carried are no predictions and count for nothing; "
            "predict --ignore-labels places such documents, too."
        )
    if missing:
        progress.say(
            f"warning: there is no prediction for {counted(missing)} of {dataset}, which count for nothing."
        )
    if json is not None:
        write_json(json, found.as_dict())
    if json is None or str(json) != o.STDOUT:
        show_scores(found)


def show_scores(found: Scores | SetScores) -> None:
    """Print the main scores as a small table."""
    from rich.table import Table

    from himecat.evaluation.set_metrics import SetScores
    from himecat.runtime.terminal import console

    table = Table(box=None, pad_edge=False)
    for column in ("", "micro F1", "macro F1"):
        table.add_column(column, justify="right" if column else "left")
    shown = console()
    if isinstance(found, SetScores):
        for name, part in (
            ("Categories", found.categories),
            ("With ancestors", found.with_ancestors),
            ("Leaf", found.leaf),
        ):
            table.add_row(name, f"{part.micro:.4f}", f"{part.macro:.4f}")
        shown.print(table)
        shown.print(
            f"{counted(found.n_documents)}: example F1 {found.example_f1:.4f}, with ancestors "
            f"{found.example_f1_with_ancestors:.4f}; paths per document {found.given_size:.2f}, true "
            f"{found.true_size:.2f}"
        )
        return
    table.add_row("Leaf", f"{found.leaf.micro:.4f}", f"{found.leaf.macro:.4f}")
    table.add_row("Overall", f"{found.overall.micro:.4f}", f"{found.overall.macro:.4f}")
    for level in found.levels:
        table.add_row(f"Level {level.level}", f"{level.f1.micro:.4f}", f"{level.f1.macro:.4f}")
    shown.print(table)
    shown.print(
        f"{counted(found.n_documents)}: whole path right {found.path_accuracy:.4f}, "
        f"leaf reached {found.coverage:.4f}\n"
        f"hierarchical precision {found.hierarchical_precision:.4f}, recall {found.hierarchical_recall:.4f}"
    )
