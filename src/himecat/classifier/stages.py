"""A wide tree in stages: connected parts with few terminals each, which are leaves or begin the next stage.

What is learned of a stage, and what is computed of a document in it, is as large as the stage, not as the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

MANY_LEAVES = 1_000
"""A tree with more leaves is cut into stages. Up to here a flat classifier needs less than a few kilobytes for the
scores of a document, and is a little more accurate; a test may set it lower."""
MOST_TERMINALS = 256
"""A stage has no more of them, unless one node has more children."""
# Below a node with so few leaves, a stage that cannot have all leaves is not cut any finer: the stages after it would
# have too few labelled documents to learn anything about themselves.
FEW_LEAVES = 32


@dataclass(frozen=True)
class Stage:
    """A connected part of a tree.

    Attributes
    ----------
    nodes : array
        Its nodes in the whole tree, in order; the first is where the stage begins.
    tree : Taxonomy
        The part as a tree of its own, with the same order of nodes; its leaves are the terminals.

    Examples
    --------
    >>> whole = Taxonomy.from_paths([(a, a + b) for a in "ab" for b in "xyz"])
    >>> first, *others = cut(whole, most=4, few=1)
    >>> [whole.names[node] for node in first.terminals], [int(stage.nodes[0]) for stage in others]
    (['a', 'b'], [1, 2])
    """

    nodes: IntArray
    tree: Taxonomy

    @cached_property
    def terminals(self) -> IntArray:
        """The nodes of the whole tree where it ends."""
        return self.nodes[list(self.tree.leaves)]

    @classmethod
    def of(cls, taxonomy: Taxonomy, nodes: npt.ArrayLike) -> Stage:
        """The part of a tree that has these nodes, of which the first is above all others."""
        own = np.asarray(nodes, dtype=np.int64)
        parents = np.searchsorted(own, taxonomy.parent_array[own])
        parents[0] = -1
        names = [taxonomy.names[node] for node in own.tolist()]
        return cls(own, Taxonomy(names, parents.tolist()))

    def within(self, taxonomy: Taxonomy, nodes: IntArray) -> IntArray:
        """For each node of the whole tree the deepest node of the stage at or above it; -1 where it is outside."""
        at = nodes.copy()
        found = np.full(len(at), -1, dtype=np.int64)
        rows = np.arange(len(at))
        # Nodes above the first one of the stage have smaller numbers.
        while len(rows := rows[at[rows] >= self.nodes[0]]):
            places = np.minimum(np.searchsorted(self.nodes, at[rows]), len(self.nodes) - 1)
            here = self.nodes[places] == at[rows]
            found[rows[here]] = places[here]
            rows = rows[~here]
            at[rows] = taxonomy.parent_array[at[rows]]
        return found


def is_wide(taxonomy: Taxonomy) -> bool:
    """Whether a tree is cut into stages.

    Examples
    --------
    >>> is_wide(Taxonomy.from_paths([("a",), ("b",)]))
    False
    """
    return taxonomy.n_leaves > MANY_LEAVES


def cut(taxonomy: Taxonomy, most: int | None = None, few: int | None = None) -> tuple[Stage, ...]:
    """The stages of a tree; each comes after the one in which its first node is a terminal.

    From where a stage begins, the terminals with the most leaves are replaced by their children, as long as there are
    no more than `most` terminals and these have more than a `few` leaves. Terminals are then of about the same size.

    Examples
    --------
    >>> whole = Taxonomy.from_paths([(a, a + b, a + b + c) for a in "ab" for b in "xyz" for c in "12"])
    >>> [stage.tree.n_leaves for stage in cut(whole, most=6, few=1)], len(cut(whole))
    ([6, 2, 2, 2, 2, 2, 2], 1)
    """
    most, few = MOST_TERMINALS if most is None else most, FEW_LEAVES if few is None else few
    size = taxonomy.leaf_counts.tolist()
    found: list[Stage] = []
    begins = [0]
    while begins:
        next_begins: list[int] = []
        for first in begins:
            nodes, ends = _part(taxonomy, first, size, most, few)
            found.append(Stage.of(taxonomy, nodes))
            next_begins += ends
        begins = next_begins
    return tuple(found)


def _part(
    taxonomy: Taxonomy, first: int, size: Sequence[int], most: int, few: int
) -> tuple[list[int], list[int]]:
    """The nodes of the stage that begins at a node, and its terminals that are not leaves."""
    if size[first] <= most:
        return _above(taxonomy, first, size, 1)
    # Terminals of about the same size: every node with more leaves than some number is replaced by its children.
    nodes, ends = _above(taxonomy, first, size, size[first])
    waiting = sorted({size[node] for node in ends}, reverse=True)
    while waiting and waiting[0] > few:
        finer = _above(taxonomy, first, size, waiting[0] - 1)
        if _count(taxonomy, finer) > most:
            break
        nodes, ends = finer
        waiting = sorted({size[node] for node in ends}, reverse=True)
    return nodes, ends


def _count(taxonomy: Taxonomy, part: tuple[list[int], list[int]]) -> int:
    """Terminals of a part."""
    nodes, ends = part
    return len(ends) + sum(not taxonomy.children[node] for node in nodes)


def _above(taxonomy: Taxonomy, first: int, size: Sequence[int], limit: int) -> tuple[list[int], list[int]]:
    """A node and those below it, down to the first with no more than so many leaves; and these, but for leaves."""
    nodes, ends, waiting = [first], [], [first]
    while waiting:
        node = waiting.pop()
        for child in taxonomy.children[node]:
            nodes.append(child)
            below = taxonomy.children[child]
            # A chain of only children is free.
            if below and (size[child] > limit or len(below) == 1):
                waiting.append(child)
            elif below:
                ends.append(child)
    return sorted(nodes), sorted(ends)


def stage_supervision(
    taxonomy: Taxonomy, stage: Stage, supervision: Supervision, rows: IntArray
) -> Supervision:
    """The labels that say something within a stage, in the nodes of its tree and the places of its documents.

    Parameters
    ----------
    rows : array
        The documents of the stage in the corpus, in order; labelled ones below its first node are among them.
    """
    nodes = stage.within(taxonomy, supervision.nodes)
    chosen = np.flatnonzero(nodes > 0)
    return Supervision(np.searchsorted(rows, supervision.rows[chosen]), nodes[chosen])


def stage_seeds(
    taxonomy: Taxonomy, stage: Stage, seeds: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """What is known of the names and keywords of a stage's terminals: the sums over the leaves below each."""
    sums, mass = (taxonomy.sums_under(part, stage.terminals.tolist()) for part in seeds)
    return sums, mass
