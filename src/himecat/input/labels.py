"""From the labels written in documents to nodes of the tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from himecat.errors import DataError, UsageError
from himecat.input.corpus import Supervision
from himecat.input.documents import is_missing
from himecat.input.hub_datasets import class_names, library_names
from himecat.input.problems import Problems, half_character
from himecat.input.taxonomy.tree import Taxonomy, label_names
from himecat.input.values import as_label

NOWHERE = "none"
"""The label of a document that belongs to none of the categories."""


def is_nowhere(label: object) -> bool:
    """Whether a label says that a document belongs to no category.

    Examples
    --------
    >>> is_nowhere("none"), is_nowhere([["none"]]), is_nowhere("nonesuch")
    (True, True, False)
    """
    if isinstance(label, list | tuple):
        return len(label) == 1 and is_nowhere(label[0])
    return isinstance(label, str) and label == NOWHERE


def labels_by_row(y: Any, n_rows: int, skipped: Collection[int] = ()) -> dict[int, Any]:
    """The labels of the documents that have one, by their row; of documents that were left out there is no row.

    Examples
    --------
    >>> labels_by_row(["arts", None, float("nan"), [], ["arts", "opera"]], 4, skipped=[1])
    {0: 'arts', 3: ['arts', 'opera']}
    """
    given = _as_list(y)
    if len(given) != n_rows + len(skipped):
        raise UsageError(f"There are {n_rows + len(skipped)} documents but {len(given)} labels.")
    out = set(skipped)
    read = [label for position, label in enumerate(given) if position not in out]
    return {row: as_label(label) for row, label in enumerate(read) if not is_missing(label)}


def _as_list(y: Any) -> list[object]:
    """Labels of any container that has one for each document, as Python's own values."""
    if hasattr(y, "columns"):
        raise UsageError("The labels are a table: pass one of its columns, with a label for each document.")
    if library_names(y) & {"datasets.Column"}:
        name_of = class_names(y.features)
        return list(y) if name_of is None else [name_of(value) for value in y]
    # Columns of polars and pyarrow give values of their own kinds one by one.
    for method in ("to_pylist", "to_list"):
        if hasattr(y, method):
            return list(getattr(y, method)())
    return list(y)


def readable_labels(
    labels: Mapping[int, object], place_of: Callable[[int], str], problems: Problems
) -> dict[int, object]:
    """The labels that consist of names; the others are errors.

    Examples
    --------
    >>> found = Problems()
    >>> readable_labels({0: "arts", 1: 5.5}, "row {}".format, found)
    {0: 'arts'}
    >>> print(*found)
    row 1: a label must be a name or a list of names, but the number 5.5 was found.
    """
    readable: dict[int, object] = {}
    for row, label in labels.items():
        try:
            _names(label)
            readable[row] = label
        except DataError as error:
            problems.error(place_of(row), str(error))
    return readable


def _names(label: object) -> list[str]:
    names = label_names(label)
    if half := half_character(names):
        raise DataError(f"the label holds {half}, half of a character: repair or remove it.")
    return names


def supervise(
    taxonomy: Taxonomy, labels: Mapping[int, object], place_of: Callable[[int], str], problems: Problems
) -> Supervision:
    """Resolve the raw labels of documents, given by row; what cannot be resolved goes to `problems`.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("arts",)])
    >>> found = Problems()
    >>> labelled = supervise(tree, {4: "arts", 1: ["science", "physics"], 2: "art"}, "row {}".format, found)
    >>> labelled.rows.tolist(), [tree.title(node) for node in labelled.nodes]
    ([1, 4], ['science/physics', 'arts'])
    >>> [str(problem) for problem in found]
    ["row 2: unknown label 'art'; did you mean 'arts'?"]
    >>> supervise(tree, {3: "none"}, "row {}".format, found).nowhere.tolist()
    [3]
    """
    nowhere = [row for row in sorted(labels) if is_nowhere(labels[row])]
    if NOWHERE in taxonomy.nodes_by_name:
        nowhere = []
    away = set(nowhere)
    rows: list[int] = []
    nodes: list[int] = []
    # A corpus repeats few distinct labels many times.
    known: dict[str | tuple[str, ...], int | str] = {}
    for row in sorted(labels):
        if row in away:
            continue
        label = labels[row]
        try:
            names = _names(label)
        except DataError as error:
            problems.error(place_of(row), str(error))
            continue
        key = names[0] if isinstance(label, str) else tuple(names)
        if key not in known:
            try:
                known[key] = taxonomy.find(key)
            except DataError as error:
                known[key] = str(error)
        outcome = known[key]
        if isinstance(outcome, str):
            problems.error(place_of(row), outcome)
        else:
            rows.append(row)
            nodes.append(outcome)
    return Supervision(
        np.array(rows, dtype=np.int64),
        np.array(nodes, dtype=np.int64),
        nowhere=np.array(nowhere, dtype=np.int64),
    )


def leaves_without_labels(taxonomy: Taxonomy, supervision: Supervision) -> list[int]:
    """The leaves that have neither a labelled document nor keywords; those of inner nodes do not count.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("arts",)])
    >>> labelled = Supervision(np.array([0]), np.array([tree.find("science")]))
    >>> [tree.title(leaf) for leaf in leaves_without_labels(tree, labelled)]
    ['arts', 'science/physics']
    >>> named = Supervision(labelled.rows, labelled.nodes, {tree.find("arts"): ("opera", "ballet")})
    >>> [tree.title(leaf) for leaf in leaves_without_labels(tree, named)]
    ['science/physics']
    """
    known = {*supervision.nodes.tolist(), *(node for node, words in supervision.keywords.items() if words)}
    return [leaf for leaf in taxonomy.leaves if leaf not in known]
