"""From the labels written in documents to nodes of the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from himecat.errors import DataError
from himecat.input.corpus import Supervision
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy, label_names


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
    """
    rows: list[int] = []
    nodes: list[int] = []
    # A corpus repeats few distinct labels many times.
    known: dict[str | tuple[str, ...], int | str] = {}
    for row in sorted(labels):
        label = labels[row]
        try:
            names = label_names(label)
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
    return Supervision(np.array(rows, dtype=np.int64), np.array(nodes, dtype=np.int64))


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
