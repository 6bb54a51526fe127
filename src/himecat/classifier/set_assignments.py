"""Where documents were placed that may belong to several categories: a set of paths for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments, FloatArray, NodeArray, rows_at_once
from himecat.input.corpus import Supervision
from himecat.input.several import most_specific
from himecat.input.taxonomy.tree import Taxonomy

BoolArray = npt.NDArray[np.bool_]

# What is more probable than not gets a path, whichever it is.
_LIKELY = 0.5


@dataclass(frozen=True)
class SetAssignments(Assignments):
    """A set of paths for every document; what it inherits tells of the surest of them.

    No path of a set leads to another. `best` has the surest path first and then the categories that were not chosen.

    Attributes
    ----------
    members : array of int
        The nodes of all sets, one document after the other, the surest of each first.
    chances : array of float
        The probability of each, to be one of the document's own categories.
    starts : array of int
        Where the set of each document starts in `members`, and where the last one ends.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> sure = np.array([[0.2, 0.6, 0.7]], dtype=np.float32)
    >>> found = assign_sets(tree, np.array([tree.find("a/b"), tree.find("a/c"), tree.find("d")]), sure, 0.3)
    >>> found.paths(0), found.path_confidences(0), found.path(0)
    ((('d',), ('a', 'c')), (0.7, 0.6), ('d',))
    """

    members: NodeArray = ()  # type: ignore[assignment]
    chances: FloatArray = ()  # type: ignore[assignment]
    starts: NodeArray = ()  # type: ignore[assignment]

    def nodes_of(self, row: int) -> list[int]:
        """The nodes of a document, the surest first."""
        found: list[int] = self.members[self.starts[row] : self.starts[row + 1]].tolist()
        return found

    def paths(self, row: int) -> tuple[tuple[str, ...], ...]:
        """The paths of a document, the surest first."""
        return tuple(self.taxonomy.path(node) for node in self.nodes_of(row))

    def path_confidences(self, row: int) -> tuple[float, ...]:
        """The probability of each path."""
        own = self.chances[self.starts[row] : self.starts[row + 1]]
        return tuple(np.round(own.astype(np.float64), 6).tolist())

    def as_pairs(self) -> Supervision:
        """The same as labels of documents."""
        rows = np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))
        return Supervision(rows, self.members)

    def without(self, rows: BoolArray) -> SetAssignments:
        """The same with the documents in `rows` placed nowhere."""
        if not rows.any():
            return self
        found = super().without(rows)
        kept = ~np.repeat(rows, np.diff(self.starts))
        counts = np.where(rows, 0, np.diff(self.starts))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        assert isinstance(found, SetAssignments)
        return replace(found, members=self.members[kept], chances=self.chances[kept], starts=starts)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], ...]]:  # type: ignore[override]
        return (self.paths(row) for row in range(len(self)))


def at_or_below(taxonomy: Taxonomy, categories: NodeArray, probabilities: FloatArray) -> FloatArray:
    """Probability that a document has a category at or below each node, as if they were independent.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c")])
    >>> at_or_below(tree, np.array([2, 3]), np.array([[0.5, 0.5]], dtype=np.float32)).tolist()
    [[0.75, 0.75, 0.5, 0.5]]
    """
    # Nodes by documents: a node's numbers lie together in memory.
    none = np.zeros((len(taxonomy), len(probabilities)))
    none[categories] = np.log1p(-np.minimum(probabilities.T.astype(np.float64), 1 - 1e-7))
    for node in range(len(taxonomy) - 1, 0, -1):
        none[taxonomy.parents[node]] += none[node]
    return np.asarray(-np.expm1(none).T, dtype=np.float32)


def assign_sets(
    taxonomy: Taxonomy,
    categories: NodeArray,
    probabilities: FloatArray,
    threshold: float,
    min_confidence: float = 0.0,
    *,
    best: int = 0,
    known: Supervision | None = None,
) -> SetAssignments:
    """Choose the categories of every document, the most probable one at least.

    Chosen are those above the threshold, and the most probable one at or below every node that is more probable than
    not and would have none.

    Parameters
    ----------
    categories : array of int
        The nodes that the columns of `probabilities` stand for.
    threshold : float
        How probable a category has to be.
    min_confidence : float
        A path that is less probable ends at the deepest node that is not, or is left out.
    best : int
        How many categories are told of each document: the surest chosen one, and those not chosen.
    known : Supervision, optional
        Documents whose categories are known: they keep them. Those known to belong nowhere are placed nowhere.
    """
    size = rows_at_once(len(taxonomy))
    parts = [
        _some(taxonomy, categories, probabilities[first : first + size], threshold, min_confidence)
        for first in range(0, max(1, len(probabilities)), size)
    ]
    counts, members, chances, confidence = (np.concatenate(part) for part in zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    nodes = np.zeros(len(counts), dtype=np.int64)
    nodes[counts > 0] = members[starts[:-1][counts > 0]]
    placed = SetAssignments(
        taxonomy,
        nodes,
        confidence,
        members=members,
        chances=chances,
        starts=starts,
    )
    if known is not None:
        placed = _held(placed, most_specific(taxonomy, known))
    placed = _with_best(placed, categories, probabilities, best) if best else placed
    return placed if known is None else _away(placed, known.nowhere)


def _some(
    taxonomy: Taxonomy,
    categories: NodeArray,
    probabilities: FloatArray,
    threshold: float,
    min_confidence: float,
) -> tuple[NodeArray, NodeArray, FloatArray, FloatArray]:
    """How many categories each document has, those, their probabilities, and the levels of the surest."""
    below = at_or_below(taxonomy, categories, probabilities)
    chosen = probabilities >= threshold
    chosen[np.arange(len(chosen)), probabilities.argmax(axis=1)] = True
    marked = np.zeros(below.shape, dtype=np.bool_)
    rows, columns = np.nonzero(chosen)
    _mark(taxonomy, marked, rows, columns, categories)
    columns_under: list[list[int]] = [[] for _ in range(len(taxonomy))]
    for column, node in enumerate(categories.tolist()):
        for above in taxonomy.lineages[node]:
            columns_under[above].append(column)
    for node in range(len(taxonomy) - 1, 0, -1):
        rows = np.flatnonzero((below[:, node] > _LIKELY) & ~marked[:, node])
        if len(rows):
            under = np.array(columns_under[node])
            taken = under[probabilities[np.ix_(rows, under)].argmax(axis=1)]
            chosen[rows, taken] = True
            _mark(taxonomy, marked, rows, taken, categories)
    rows, columns = np.nonzero(chosen)
    nodes, sure = categories[columns], probabilities[rows, columns]
    if min_confidence > 0:
        rows, nodes, sure = _cut(taxonomy, below, rows, nodes, sure, min_confidence)
    single = most_specific(taxonomy, Supervision(rows, nodes))
    chance = dict(zip(zip(rows.tolist(), nodes.tolist(), strict=True), sure.tolist(), strict=True))
    pairs = zip(single.rows.tolist(), single.nodes.tolist(), strict=True)
    ordered = sorted(pairs, key=lambda pair: (pair[0], -chance[pair], pair[1]))
    counts = np.bincount(single.rows, minlength=len(probabilities))
    members = np.array([node for _, node in ordered], dtype=np.int64)
    chances = np.array([chance[pair] for pair in ordered], dtype=np.float32)
    surest = np.zeros(len(counts), dtype=np.int64)
    first = (np.cumsum(counts) - counts)[counts > 0]
    surest[counts > 0] = members[first]
    lineages = taxonomy.lineage_rows(surest)
    confidence = np.where(lineages > 0, below[np.arange(len(below))[:, None], lineages], np.nan)
    ends = taxonomy.depth_array[surest[counts > 0]] - 1
    confidence[np.flatnonzero(counts), ends] = chances[first]
    return counts, members, chances, confidence.astype(np.float32)


def _mark(
    taxonomy: Taxonomy, marked: BoolArray, rows: NodeArray, columns: NodeArray, categories: NodeArray
) -> None:
    """Mark the chosen categories and all above them."""
    marked[rows[:, None], taxonomy.lineage_rows(categories[columns])] = True


def _cut(
    taxonomy: Taxonomy, below: FloatArray, rows: NodeArray, nodes: NodeArray, sure: FloatArray, bound: float
) -> tuple[NodeArray, NodeArray, FloatArray]:
    """The paths as far as they are probable enough."""
    nodes, sure = nodes.copy(), sure.copy()
    for place in np.flatnonzero(sure < bound).tolist():
        row, node = int(rows[place]), taxonomy.parents[nodes[place]]
        while node > 0 and below[row, node] < bound:
            node = taxonomy.parents[node]
        nodes[place], sure[place] = max(node, 0), below[row, node]
    kept = nodes > 0
    return rows[kept], nodes[kept], sure[kept]


def _held(placed: SetAssignments, known: Supervision) -> SetAssignments:
    """The documents whose categories are known keep them, with certainty."""
    labelled = np.zeros(len(placed), dtype=np.bool_)
    labelled[known.rows] = True
    rest = placed.as_pairs()
    kept = ~labelled[rest.rows]
    rows = np.concatenate([rest.rows[kept], known.rows])
    order = np.argsort(rows, kind="stable")
    members = np.concatenate([rest.nodes[kept], known.nodes])[order]
    chances = np.concatenate([placed.chances[kept], np.ones(len(known), dtype=np.float32)])[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(placed)))]).astype(np.int64)
    nodes, confidence = placed.nodes.copy(), placed.confidence.copy()
    nodes[labelled] = members[starts[:-1][labelled]]
    reached = np.arange(confidence.shape[1]) < placed.taxonomy.depth_array[nodes[labelled]][:, None]
    confidence[labelled] = np.where(reached, 1.0, np.nan)
    return replace(
        placed,
        nodes=nodes,
        confidence=confidence,
        members=members,
        chances=chances,
        starts=starts,
        labelled=labelled,
    )


def _away(placed: SetAssignments, rows: NodeArray) -> SetAssignments:
    """The documents known to belong to no category have none."""
    away = np.zeros(len(placed), dtype=np.bool_)
    away[rows] = True
    labelled = away if placed.labelled is None else placed.labelled | away
    return replace(placed.without(away), labelled=labelled)


def _with_best(
    placed: SetAssignments, categories: NodeArray, probabilities: FloatArray, best: int
) -> SetAssignments:
    left = probabilities.copy()
    column = np.full(len(placed.taxonomy), -1)
    column[categories] = np.arange(len(categories))
    chosen = placed.as_pairs()
    # What leads to a chosen category is no alternative to it.
    above = column[placed.taxonomy.lineage_rows(chosen.nodes)]
    known = above >= 0
    left[np.repeat(chosen.rows, above.shape[1]).reshape(above.shape)[known], above[known]] = -1.0
    count = min(best, len(categories))
    nodes = np.zeros((len(left), count), dtype=np.int64)
    sure = np.zeros((len(left), count), dtype=np.float32)
    nodes[:, 0] = placed.nodes
    has = np.diff(placed.starts) > 0
    sure[has, 0] = placed.chances[placed.starts[:-1][has]]
    rows = np.arange(len(left))
    for place in range(1, count):
        taken = left.argmax(axis=1)
        sure[:, place] = np.maximum(left[rows, taken], 0.0)
        nodes[:, place] = np.where(sure[:, place] > 0, categories[taken], 0)
        left[rows, taken] = -1.0
    return replace(placed, best=nodes, best_confidence=sure)
