"""Draws of labelled documents from datasets in which documents have several paths."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, UsageError, spelled
from himecat.input.builder import LoadedCorpus
from himecat.input.corpus import Supervision
from himecat.input.dataset import DRAW_FILE, Dataset, random_rows
from himecat.input.problems import Problems, quoted
from himecat.input.several import parted, resolved

_Rows = npt.NDArray[np.int64]


def true_sets(
    dataset: Dataset,
    loaded: LoadedCorpus,
    problems: Problems | None = None,
    labels: Mapping[int, object] | None = None,
) -> Supervision | None:
    """The nodes that every document truly belongs to; None where no document has more than one.

    Parameters
    ----------
    problems : Problems, optional
        Receives what is found instead of having it raised.
    labels : mapping, optional
        The labels by row, if not those of the documents.

    Examples
    --------
    >>> from pathlib import Path
    >>> from himecat import Taxonomy
    >>> from himecat.input.builder import load_corpus
    >>> from himecat.input.documents import Fields
    >>> dataset = Dataset(Path("d"), Path("d/c.json"), Taxonomy.from_paths([("a",), ("b",)]), (), None)
    >>> loaded = load_corpus([{"text": "red fox", "labels": [["a"], ["b"]]}, {"text": "cat", "labels": "a"}], Fields())
    >>> found = true_sets(dataset, loaded)
    >>> found.rows.tolist(), found.nodes.tolist()
    ([0, 0, 1], [1, 2, 1])
    """
    separator = None if dataset.fields is None else dataset.fields.reading.separator
    given = parted(loaded.labels if labels is None else labels, separator, dataset.taxonomy)
    if given.rows is None:
        return None
    found = Problems() if problems is None else problems
    apart = replace(given, labels=dataset.paths_of(given.labels))
    truth = resolved(dataset.taxonomy, apart, loaded.place, found)
    if not dataset.is_file and labels is None:
        for row in range(len(loaded.corpus)):
            if row not in loaded.labels:
                found.error(
                    loaded.place(row), "the document has no labels; a dataset needs them for every one."
                )
    if problems is None:
        found.raise_errors()
    return truth


def of_rows(labelled: Supervision, rows: _Rows, *, renumber: bool = False) -> Supervision:
    """The labels of some documents, which may be numbered anew.

    Examples
    --------
    >>> of_rows(Supervision(np.array([0, 0, 1]), np.array([1, 2, 1])), np.array([0])).nodes.tolist()
    [1, 2]
    """
    kept = np.isin(labelled.rows, rows)
    own = labelled.rows[kept]
    return replace(labelled, rows=np.searchsorted(rows, own) if renumber else own, nodes=labelled.nodes[kept])


def draw_sets(dataset: Dataset, truth: Supervision, number: int, per_leaf: int = 5) -> Supervision:
    """One draw of the labelled documents, each with all its labels.

    As `dataset.draw`, but `per_leaf` documents of every category that labels documents; one that is drawn for several
    categories counts for all of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from himecat import Taxonomy
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> truth = Supervision(np.array([0, 0, 1, 2]), np.array([1, 2, 1, 2]))
    >>> draw_sets(Dataset(Path("d"), Path("d/c.json"), tree, (), {"a": [0]}), truth, 0).nodes.tolist()
    [1, 2]
    """
    if dataset.truth is not None:
        raise UsageError(
            f"{spelled('--truth', 'truth=')} is not read where documents have several paths: use predict and score."
        )
    if dataset.folds:
        return of_rows(truth, _without_fold(dataset, truth, number))
    if number == 0 and dataset.first_draw is not None:
        return of_rows(truth, _listed(dataset, dataset.first_draw, truth))
    tree = dataset.taxonomy
    rows_of = {
        tree.path(node): truth.rows[truth.nodes == node].tolist() for node in np.unique(truth.nodes).tolist()
    }
    chosen = random_rows(rows_of, per_leaf, number)
    return of_rows(truth, np.array([row for rows in chosen.values() for row in rows]))


def _listed(dataset: Dataset, first_draw: Mapping[str, list[int]], truth: Supervision) -> _Rows:
    problems, place, tree = Problems(), str(dataset.folder / DRAW_FILE), dataset.taxonomy
    pairs = set(zip(truth.rows.tolist(), truth.nodes.tolist(), strict=True))
    last = int(truth.rows.max(initial=0))
    for name, rows in first_draw.items():
        node = tree.find(name)
        for row in rows:
            if row > last:
                problems.error(
                    place, f"document {row} of {quoted(name)} does not exist: the last one is {last}."
                )
            elif (row, node) not in pairs:
                problems.error(
                    place, f"document {row} is listed for {tree.title(node)}, which is none of its labels."
                )
    problems.raise_errors()
    return np.array([row for rows in first_draw.values() for row in rows])


def _without_fold(dataset: Dataset, truth: Supervision, number: int) -> _Rows:
    """All labelled documents but those of one fold; the only one of a category is in none."""
    single = np.flatnonzero(np.bincount(truth.nodes) == 1)
    alone = truth.rows[np.isin(truth.nodes, single)]
    rows = np.unique(truth.rows)
    held = np.setdiff1d(rows, alone).tolist()
    if len(held) < dataset.folds:
        raise DataError(
            f"{dataset.documents}: {len(held)} labelled documents can be held back, which are too few for "
            f"{dataset.folds} folds; label more of them."
        )
    order = random.Random(0).sample(held, len(held))
    return np.setdiff1d(rows, np.array(order[number :: dataset.folds]))
