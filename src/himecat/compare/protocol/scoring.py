"""Scoring a file of predictions against a dataset folder."""

from __future__ import annotations

import os

import numpy as np

from himecat.errors import DataError
from himecat.evaluation.metrics import Scores, score
from himecat.input.builder import load_corpus
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.formats import iter_records
from himecat.input.problems import Problems, quoted
from himecat.input.streams import shown
from himecat.input.taxonomy.tree import Taxonomy


def read_predictions(
    predictions: str | os.PathLike[str], taxonomy: Taxonomy
) -> tuple[dict[str, int], set[str]]:
    """The node that each document id was assigned, 0 where nothing was; and the ids that only kept their label."""
    problems = Problems()
    found: dict[str, int] = {}
    labelled: set[str] = set()
    for record in iter_records(predictions, problems, {"id", "path", "labelled"}):
        if record.fields is None:
            continue
        name, path = record.fields.get("id"), record.fields.get("path")
        named = isinstance(name, str | int) and not isinstance(name, bool)
        if not named or not isinstance(path, list) or not all(isinstance(part, str) for part in path):
            problems.error(record.place, "a prediction needs an 'id' and a 'path' (a list of names).")
            continue
        node = taxonomy.walk(path)
        if node is None:
            problems.error(record.place, f"the path {quoted('/'.join(path))} is not in the tree.")
            continue
        if str(name) in found:
            problems.error(record.place, f"the id {quoted(name)} was predicted before.")
        found[str(name)] = node
        if record.fields.get("labelled") is True:
            labelled.add(str(name))
    problems.raise_errors()
    return found, labelled


def score_predictions(
    predictions: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    without_draw: int | None = None,
    per_leaf: int = 5,
    fields: Fields | None = None,
) -> tuple[Scores, int, int]:
    """Score a file of predictions; also returns how many documents of the dataset have none, or kept their label.

    What a document's own label says is no prediction, and is left out.

    Parameters
    ----------
    predictions : path
        JSON lines with `id` and `path`.
    folder : path
        The dataset folder with the true labels.
    without_draw : int, optional
        Leave out the documents labelled in this draw.
    per_leaf : int
        Labelled documents per leaf of that draw.
    fields : Fields, optional
        The dataset's fields with text, labels and id.
    """
    dataset = open_dataset(folder)
    loaded = load_corpus(dataset.documents, fields or Fields(), max_tokens=1)
    truth = true_nodes(dataset, loaded)
    assigned, labelled = read_predictions(predictions, dataset.taxonomy)
    known = set(loaded.corpus.ids)
    # A document that could not be read has a place instead of an id, and an empty path.
    strange = [name for name, node in assigned.items() if node and name not in known]
    if strange:
        raise DataError(
            f"{shown(predictions)}: the id {quoted(strange[0])} is not in {shown(dataset.documents)}."
        )
    wanted = np.ones(len(truth), dtype=np.bool_)
    if without_draw is not None:
        wanted[draw(dataset, truth, without_draw, per_leaf).rows] = False
    present = np.array([name in assigned for name in loaded.corpus.ids], dtype=np.bool_)
    kept = np.array([name in labelled for name in loaded.corpus.ids], dtype=np.bool_)
    rows = np.flatnonzero(wanted & present & ~kept)
    if not len(rows):
        why = ": all documents kept their own labels; predict with --ignore-labels" if labelled else ""
        raise DataError(f"{shown(predictions)} has no prediction to score{why}.")
    nodes = np.array([assigned[loaded.corpus.ids[row]] for row in rows.tolist()], dtype=np.int64)
    return (
        score(dataset.taxonomy, truth[rows], nodes),
        int((wanted & ~present).sum()),
        int((wanted & kept).sum()),
    )
