"""Where every document was placed, with a probability for each level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.notebook import html_table, kept_rows

NodeArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

# Of a matrix of documents x nodes about ten are held at once: a few hundred megabytes.
_VALUES = 1 << 23


@dataclass(frozen=True)
class Assignments:
    """A path in the tree for every document, with one probability per level.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    nodes : array of shape (documents,)
        The deepest node assigned; 0 where confidence stopped the walk at the root.
    confidence : array of shape (documents, depth)
        The probability of the path's node at each level; NaN below the end of the path.
    best, best_confidence : array of shape (documents, n), optional
        Where they were asked for: the most probable leaves and their probabilities, the surest first; 0 where there
        are fewer, or the others are out of the question.
    labelled : array of bool, optional
        Which documents stay where a label of their own puts them.
    none : array, optional
        The probability that a document belongs to none of the categories; None where the model does not know it.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c")])
    >>> found = assign(tree, np.array([[0.7, 0.3]], dtype=np.float32))
    >>> found.path(0), found.confidences(0)
    (('a', 'b'), (1.0, 0.7))
    >>> assign(tree, np.array([[0.7, 0.3]], dtype=np.float32), min_confidence=0.9).path(0)
    ('a',)
    """

    taxonomy: Taxonomy
    nodes: NodeArray
    confidence: FloatArray
    best: NodeArray | None = None
    best_confidence: FloatArray | None = None
    labelled: npt.NDArray[np.bool_] | None = None
    none: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def path(self, row: int) -> tuple[str, ...]:
        """The names from level 1 down to where the walk ended."""
        return self.taxonomy.path(int(self.nodes[row]))

    def confidences(self, row: int) -> tuple[float, ...]:
        """One probability per level of the path."""
        depth = self.taxonomy.depths[int(self.nodes[row])]
        return tuple(self.rounded[row, :depth].tolist())

    @cached_property
    def rounded(self) -> npt.NDArray[np.float64]:
        """The confidences to six digits: more than a probability from a few labels can mean."""
        return np.asarray(np.round(self.confidence.astype(np.float64), 6), dtype=np.float64)

    @cached_property
    def rounded_best(self) -> npt.NDArray[np.float64]:
        """The confidences of the best leaves to six digits; no columns where none were asked for."""
        found = np.zeros((len(self), 0)) if self.best_confidence is None else self.best_confidence
        return np.asarray(np.round(found.astype(np.float64), 6), dtype=np.float64)

    @cached_property
    def rounded_none(self) -> npt.NDArray[np.float64] | None:
        """The probabilities of belonging nowhere to six digits."""
        return None if self.none is None else np.asarray(np.round(self.none.astype(np.float64), 6))

    @property
    def reached_leaf(self) -> npt.NDArray[np.bool_]:
        """Whether the walk ended at a leaf."""
        return np.asarray(self.taxonomy.leaf_position[self.nodes] >= 0)

    def without(self, rows: npt.NDArray[np.bool_]) -> Assignments:
        """The same with the documents in `rows` placed nowhere: at the root, with no confidence."""
        if not rows.any():
            return self
        nodes, confidence = self.nodes.copy(), self.confidence.copy()
        nodes[rows], confidence[rows] = 0, np.nan
        best = None if self.best is None else np.where(rows[:, None], 0, self.best)
        return replace(self, nodes=nodes, confidence=confidence, best=best)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self.path(row) for row in range(len(self)))

    def _repr_html_(self) -> str:
        rows = (("/".join(self.path(row)), *self.confidences(row)) for row in kept_rows(len(self)))
        return html_table(["path", *(f"level {n + 1}" for n in range(self.taxonomy.depth))], rows, len(self))


def rows_at_once(n_columns: int, most: int = 1 << 20, values: int = _VALUES) -> int:
    """How many documents are worked on at a time, so that documents x columns are so many values at most.

    Examples
    --------
    >>> rows_at_once(1000, most=2048), rows_at_once(100_000, most=2048)
    (2048, 83)
    """
    return max(1, min(most, values // n_columns))


def node_probabilities(taxonomy: Taxonomy, leaf_probabilities: FloatArray) -> FloatArray:
    """Probability of every node: the sum over the leaves below it.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c")])
    >>> node_probabilities(tree, np.array([[0.75, 0.25]], dtype=np.float32)).tolist()
    [[1.0, 1.0, 0.75, 0.25]]
    """
    # Nodes by documents: whole nodes are added up, so each lies together in memory.
    found = np.zeros((len(taxonomy), len(leaf_probabilities)), dtype=np.float64)
    found[list(taxonomy.leaves)] = leaf_probabilities.T
    # Children come after their parents, so one sweep from the end adds up whole subtrees.
    for node in range(len(taxonomy) - 1, 0, -1):
        found[taxonomy.parents[node]] += found[node]
    return np.minimum(found, 1.0, out=found).astype(np.float32).T


def assign(
    taxonomy: Taxonomy,
    leaf_probabilities: FloatArray,
    min_confidence: float = 0.0,
    *,
    best: int = 0,
    known: Supervision | None = None,
    none: FloatArray | None = None,
) -> Assignments:
    """Choose the most probable leaf, or the deepest node that is probable enough.

    Where the most probable leaf is less probable than `min_confidence`, the document goes to the deepest node
    that is not, the most probable one of several; where no node is, it stays at the root.

    Parameters
    ----------
    taxonomy, leaf_probabilities, min_confidence
        The tree, the probabilities of its leaves for each document, and what is probable enough.
    best : int
        How many of the most probable leaves are told of each document.
    known : Supervision, optional
        Documents whose category is known: they stay there, and go on below it by the probabilities of its leaves.
        Those known to belong nowhere are placed nowhere.
    none : array, optional
        The probability of each document that it belongs to no category. A node is then as probable as its share of
        the rest, and with `min_confidence` a document that rather belongs nowhere stays at the root.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> sure = np.array([[0.8, 0.05, 0.15]] * 2, dtype=np.float32)
    >>> found = assign(tree, sure, best=2, known=Supervision(np.array([1]), np.array([tree.find("a")])))
    >>> [(path, found.confidences(row)) for row, path in enumerate(found)]
    [(('d',), (0.8,)), (('a', 'c'), (1.0, 0.75))]
    >>> [tree.path(leaf) for leaf in found.best[1].tolist()], found.labelled.tolist()
    ([('a', 'c'), ('a', 'b')], [False, True])
    >>> list(assign(tree, sure, 0.5, none=np.array([0.1, 0.6], dtype=np.float32)))
    [('d',), ()]
    """
    if none is not None and known is not None:
        none = none.copy()
        none[known.rows], none[known.nowhere] = 0.0, 1.0
    if known is not None and len(known.rows):
        leaf_probabilities = _within(taxonomy, leaf_probabilities, known)
    size = rows_at_once(len(taxonomy))
    parts = [
        _assign_some(
            taxonomy,
            leaf_probabilities[first : first + size],
            min_confidence,
            None if none is None else none[first : first + size],
        )
        for first in range(0, max(1, len(leaf_probabilities)), size)
    ]
    ends, confidence = (np.concatenate(part) for part in zip(*parts, strict=True))
    found = Assignments(taxonomy, ends, confidence, none=none)
    if known is not None:
        found = hold(found, known)
    if best:
        leaves, sure = _best(taxonomy, leaf_probabilities, best)
        found = replace(found, best=leaves, best_confidence=sure)
    if known is not None and len(known.nowhere):
        away = np.zeros(len(found), dtype=np.bool_)
        away[known.nowhere] = True
        found = found.without(away)
    return found


def _within(taxonomy: Taxonomy, leaf_probabilities: FloatArray, known: Supervision) -> FloatArray:
    """The same, where a document of a known category has a probability only for the leaves at or below it."""
    found = leaf_probabilities.copy()
    for row, node in zip(known.rows.tolist(), known.nodes.tolist(), strict=True):
        positions = taxonomy.positions_under(node)
        below = leaf_probabilities[row, positions].astype(np.float64)
        total = below.sum()
        found[row] = 0.0
        found[row, positions] = below / total if total > 0 else 1.0 / len(positions)
    return found


def hold(found: Assignments, known: Supervision) -> Assignments:
    """Mark documents that stay where they are known to be: that is certain, also where the leaves below it add up to
    a little less than 1.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c")])
    >>> placed = Assignments(tree, np.array([2]), np.array([[0.999, 0.7]], dtype=np.float32))
    >>> hold(placed, Supervision(np.array([0]), np.array([1]))).confidences(0)
    (1.0, 0.7)
    """
    nodes, confidence = found.nodes.copy(), found.confidence.copy()
    depths = found.taxonomy.depth_array
    nodes[known.rows] = np.where(
        depths[nodes[known.rows]] < depths[known.nodes], known.nodes, nodes[known.rows]
    )
    for row, depth in zip(known.rows.tolist(), depths[known.nodes].tolist(), strict=True):
        confidence[row, :depth] = 1.0
    labelled = np.zeros(len(nodes), dtype=np.bool_)
    labelled[known.rows] = labelled[known.nowhere] = True
    return replace(found, nodes=nodes, confidence=confidence, labelled=labelled)


def _best(taxonomy: Taxonomy, leaf_probabilities: FloatArray, count: int) -> tuple[NodeArray, FloatArray]:
    count = min(count, taxonomy.n_leaves)
    leaves = np.asarray(taxonomy.leaves, dtype=np.int64)
    left, rows = leaf_probabilities.copy(), np.arange(len(leaf_probabilities))
    found = np.zeros((len(left), count), dtype=np.int64)
    sure = np.zeros((len(left), count), dtype=np.float32)
    # One after the other: of equal leaves the first comes first, as where a document is placed.
    for place in range(count):
        chosen = left.argmax(axis=1)
        sure[:, place] = left[rows, chosen]
        found[:, place] = np.where(sure[:, place] > 0, leaves[chosen], 0)
        left[rows, chosen] = -1.0
    return found, sure


def _assign_some(
    taxonomy: Taxonomy, leaf_probabilities: FloatArray, min_confidence: float, none: FloatArray | None
) -> tuple[NodeArray, FloatArray]:
    n_documents = len(leaf_probabilities)
    ends = np.asarray(taxonomy.leaves, dtype=np.int64)[leaf_probabilities.argmax(axis=1)]
    nodes_at = node_probabilities(taxonomy, leaf_probabilities)
    bound: float | npt.NDArray[np.float64] = min_confidence
    if none is not None and min_confidence > 0:
        bound = np.where(none > 0.5, np.inf, min_confidence / np.maximum(1.0 - none, 0.5))
    below = np.flatnonzero(leaf_probabilities.max(axis=1, initial=0.0) < bound)
    if len(below):
        found = nodes_at[below]
        # Depth counts before probability, and the root is always probable enough.
        enough = bound[below, None] if isinstance(bound, np.ndarray) else bound
        rank = np.where(found >= enough, np.asarray(taxonomy.depths) + found / 2, -1.0)
        rank[:, 0] = 0.0
        ends[below] = rank.argmax(axis=1)
    path = taxonomy.lineage_rows(ends)
    confidence = np.where(path > 0, nodes_at[np.arange(n_documents)[:, None], path], np.nan)
    return ends, confidence.astype(np.float32)
