"""Terminals of a stage that stand for many leaves, told apart by several parts of each.

One direction cannot stand for leaves that have little in common. So the leaves below a terminal are put into groups of
similar ones, as many as a stage has room for. A part is a leaf to whatever learns of the stage, and its probability
counts for its terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier import stages
from himecat.classifier.proposals import grouped
from himecat.classifier.stages import FloatArray, IntArray, Stage
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.matrices import unit

PART = "\N{NUMBER SIGN}"
"""What the names of parts begin with."""
# A part has at least so many leaves.
_FEWEST = 2


@dataclass(frozen=True)
class Parted:
    """The tree of a stage with parts below its terminals.

    Attributes
    ----------
    tree : Taxonomy
        The tree.
    columns : array
        For each of its leaves the terminal of the stage.
    nodes : array
        For each node of the stage the node of this tree.

    Examples
    --------
    >>> found = parted(Taxonomy.from_paths([("a",), ("b",)]), [3, 0])
    >>> [found.tree.path(leaf) for leaf in found.tree.leaves], found.columns.tolist()
    ([('b',), ('a', '#0'), ('a', '#1'), ('a', '#2')], [1, 0, 0, 0])
    >>> found.summed(np.array([[0.4, 0.3, 0.2, 0.1]], np.float32)).round(2).tolist()
    [[0.6..., 0.4...]]
    """

    tree: Taxonomy
    columns: IntArray
    nodes: IntArray

    def summed(self, probabilities: FloatArray) -> FloatArray:
        """Probabilities of the terminals, from those of the leaves of this tree."""
        if len(self.tree) == len(self.nodes):
            return probabilities
        found = np.zeros((int(self.columns.max()) + 1, len(probabilities)), dtype=np.float32)
        np.add.at(found, self.columns, probabilities.T)
        return np.ascontiguousarray(found.T)


def parted(tree: Taxonomy, counts: Sequence[int]) -> Parted:
    """The tree of a stage with so many parts below each of its terminals; 0 for none."""
    depths, parents, names = list(tree.depths), list(tree.parents), list(tree.names)
    for terminal, count in zip(tree.leaves, counts, strict=True):
        depths += [tree.depths[terminal] + 1] * count
        parents += [terminal] * count
        names += [f"{PART}{number}" for number in range(count)]
    order = np.argsort(depths, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    above = [-1 if parents[node] < 0 else int(place[parents[node]]) for node in order.tolist()]
    found = Taxonomy([names[node] for node in order.tolist()], above)
    column_of = {int(place[terminal]): column for column, terminal in enumerate(tree.leaves)}
    columns = [
        column_of[leaf] if leaf in column_of else column_of[found.parents[leaf]] for leaf in found.leaves
    ]
    return Parted(found, np.array(columns, dtype=np.int64), place[: len(tree)])


class Grouping(NamedTuple):
    """The parts of a stage, and which leaves are in each.

    Attributes
    ----------
    counts : array
        How many parts each terminal has; 0 where it is not divided.
    parted : Parted
        The tree with them.
    leaf_nodes : array
        For each leaf of the whole tree the node of that tree which it is in; -1 outside of the stage.
    """

    counts: IntArray
    parted: Parted
    leaf_nodes: IntArray

    def supervision(
        self, taxonomy: Taxonomy, stage: Stage, given: Supervision, rows: IntArray
    ) -> Supervision:
        """The labels within the stage in the nodes of its tree, of documents that are at some rows of the corpus."""
        inside = stage.within(taxonomy, given.nodes)
        leaves = taxonomy.leaf_position[given.nodes]
        nodes = np.where(leaves >= 0, self.leaf_nodes[leaves], self.parted.nodes[inside])
        chosen = np.flatnonzero(inside > 0)
        return Supervision(np.searchsorted(rows, given.rows[chosen]), nodes[chosen])

    def sums(self, rows: npt.NDArray[np.float32]) -> FloatArray:
        """The sums of the rows of leaves over the leaves of the tree."""
        tree = self.parted.tree
        inside = np.flatnonzero(self.leaf_nodes >= 0)
        found = np.zeros((tree.n_leaves, *rows.shape[1:]), dtype=np.float32)
        np.add.at(found, tree.leaf_position[self.leaf_nodes[inside]], rows[inside])
        return found


def group_leaves(
    taxonomy: Taxonomy, stage: Stage, known: FloatArray, most: int | None = None, seed: int = 0
) -> Grouping:
    """Divide the terminals of a stage that are not leaves, so that it has at most so many leaves in all.

    Parameters
    ----------
    known : array of shape (leaves, dimension)
        The summed directions of what is known of each leaf.
    """
    most = stages.MOST_TERMINALS if most is None else most
    ends, tree = stage.terminals, stage.tree
    sizes = taxonomy.leaf_counts[ends]
    room, wanted = max(0, most - len(ends)), int((sizes - 1).sum())
    # A terminal that is divided makes room for one more.
    counts = np.minimum(1 + room * (sizes - 1) // max(wanted, 1), sizes // _FEWEST)
    groups: dict[int, IntArray] = {}
    for column in np.flatnonzero(counts > 1).tolist():
        under = taxonomy.positions_under(int(ends[column]))
        _, own = grouped(unit(known[under]), int(counts[column]), seed)
        groups[column] = np.unique(own, return_inverse=True)[1]
    counts = np.array(
        [groups[at].max() + 1 if at in groups else 0 for at in range(len(ends))], dtype=np.int64
    )
    counts[counts == 1] = 0
    found = parted(tree, counts.tolist())
    leaf_nodes = np.full(taxonomy.n_leaves, -1, dtype=np.int64)
    for column, end in enumerate(ends.tolist()):
        node = int(found.nodes[tree.leaves[column]])
        below = np.array(found.tree.children[node] or (node,), dtype=np.int64)
        under = taxonomy.positions_under(end)
        leaf_nodes[under] = below[groups[column]] if counts[column] else node
    return Grouping(counts, found, leaf_nodes)
