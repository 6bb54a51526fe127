"""Where every document was placed, with a probability for each level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.input.taxonomy.tree import Taxonomy

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
        return Assignments(self.taxonomy, nodes, confidence)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self.path(row) for row in range(len(self)))


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


def assign(taxonomy: Taxonomy, leaf_probabilities: FloatArray, min_confidence: float = 0.0) -> Assignments:
    """Choose the most probable leaf, or the deepest node that is probable enough.

    Where the most probable leaf is less probable than `min_confidence`, the document goes to the deepest node
    that is not, the most probable one of several; where no node is, it stays at the root.
    """
    size = rows_at_once(len(taxonomy))
    parts = [
        _assign_some(taxonomy, leaf_probabilities[first : first + size], min_confidence)
        for first in range(0, max(1, len(leaf_probabilities)), size)
    ]
    ends, confidence = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Assignments(taxonomy, ends, confidence)


def _assign_some(
    taxonomy: Taxonomy, leaf_probabilities: FloatArray, min_confidence: float
) -> tuple[NodeArray, FloatArray]:
    n_documents = len(leaf_probabilities)
    ends = np.asarray(taxonomy.leaves, dtype=np.int64)[leaf_probabilities.argmax(axis=1)]
    nodes_at = node_probabilities(taxonomy, leaf_probabilities)
    below = np.flatnonzero(leaf_probabilities.max(axis=1, initial=0.0) < min_confidence)
    if len(below):
        found = nodes_at[below]
        # Depth counts before probability, and the root is always probable enough.
        rank = np.where(found >= min_confidence, np.asarray(taxonomy.depths) + found / 2, -1.0)
        rank[:, 0] = 0.0
        ends[below] = rank.argmax(axis=1)
    path = taxonomy.lineage_rows(ends)
    confidence = np.where(path > 0, nodes_at[np.arange(n_documents)[:, None], path], np.nan)
    return ends, confidence.astype(np.float32)
