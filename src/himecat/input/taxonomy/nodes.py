"""The nodes of a category tree: how they hang together, and where their leaves are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError
from himecat.input.problems import quoted
from himecat.input.taxonomy.spelling import Spelling
from himecat.input.taxonomy.wording import shown_path

IntArray = npt.NDArray[np.int64]

GONE = -1
"""Stands for the node of a category that was deleted."""


class Lineages:
    """For every node, the nodes from level 1 down to and including itself (empty for the root).

    Each is made when it is asked for: all of them together grow with nodes x levels.

    Examples
    --------
    >>> Lineages((-1, 0, 1))[2]
    (1, 2)
    """

    def __init__(self, parents: Sequence[int]) -> None:
        self._parents = parents

    def __getitem__(self, node: int) -> tuple[int, ...]:
        found = []
        while node > 0:
            found.append(int(node))
            node = self._parents[node]
        return tuple(reversed(found))


class Nodes:
    """What `Taxonomy` knows of its nodes; they are integers in top-down (breadth-first) order, the root is 0.

    Examples
    --------
    >>> nodes = Nodes(["ROOT", "a", "b", "c"], [-1, 0, 1, 1])
    >>> nodes.leaves, nodes.path(3)
    ((2, 3), ('a', 'c'))
    """

    earlier: Earlier | None = None
    """The tree before it was changed; labels that are not in this one are looked for there."""

    def __init__(self, names: Sequence[str], parents: Sequence[int]) -> None:
        if len(names) != len(parents) or not names:
            raise DataError("A tree needs one parent per node and at least the root.")
        if parents[0] != -1:
            raise DataError("The first node of a tree must be its root, with parent -1.")
        depths = [0]
        children: list[list[int]] = [[] for _ in names]
        for node in range(1, len(names)):
            parent = parents[node]
            if not 0 <= parent < node:
                raise DataError(f"Node {node} ({quoted(names[node])}) comes before its parent.")
            depths.append(depths[parent] + 1)
            if depths[node] < depths[node - 1]:
                raise DataError(f"Node {node} ({quoted(names[node])}) is not in top-down order.")
            children[parent].append(node)
        for parent, group in enumerate(children):
            seen: set[str] = set()
            for node in group:
                if names[node] in seen:
                    raise DataError(f"{quoted(names[parent])} has two children named {quoted(names[node])}.")
                seen.add(names[node])
        self.names: tuple[str, ...] = tuple(str(name) for name in names)
        self.parents: tuple[int, ...] = tuple(int(parent) for parent in parents)
        self.children: tuple[tuple[int, ...], ...] = tuple(tuple(group) for group in children)
        self.depths: tuple[int, ...] = tuple(depths)
        self.leaves: tuple[int, ...] = tuple(n for n in range(1, len(names)) if not children[n])
        self.inner: tuple[int, ...] = tuple(n for n in range(len(names)) if children[n])
        self._alike: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def since(self, earlier: Earlier | None) -> Self:
        """The same tree, which knows the one before it.

        Examples
        --------
        >>> before, now = Nodes(["ROOT", "a"], [-1, 0]), Nodes(["ROOT", "b"], [-1, 0])
        >>> now.since(Earlier(before, (0, 1))).earlier.tree.names
        ('ROOT', 'a')
        """
        found = type(self)(self.names, self.parents)
        found.earlier = earlier
        return found

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return self.depths[-1]

    @property
    def lineages(self) -> Lineages:
        """For every node, the nodes from level 1 down to and including itself (empty for the root)."""
        return Lineages(self.parents)

    @cached_property
    def parent_array(self) -> IntArray:
        """`parents` as an array."""
        return np.array(self.parents, dtype=np.int64)

    @cached_property
    def depth_array(self) -> IntArray:
        """`depths` as an array."""
        return np.array(self.depths, dtype=np.int64)

    def lineage_rows(self, nodes: npt.ArrayLike) -> IntArray:
        """For each of some nodes a row with its ancestor at each level, itself at its own, 0 below.

        Examples
        --------
        >>> Nodes(["ROOT", "a", "b", "c"], [-1, 0, 0, 1]).lineage_rows([3, 2, 0]).tolist()
        [[1, 3], [2, 0], [0, 0]]
        """
        at = np.array(nodes, dtype=np.int64)
        found = np.zeros((len(at), self.depth), dtype=np.int64)
        rows = np.flatnonzero(at)
        while len(rows):
            here = at[rows]
            found[rows, self.depth_array[here] - 1] = here
            at[rows] = self.parent_array[here]
            rows = rows[at[rows] > 0]
        return found

    def path(self, node: int) -> tuple[str, ...]:
        """The names from level 1 down to `node`."""
        return tuple(self.names[n] for n in self.lineages[node])

    def title(self, node: int) -> str:
        """The path as one readable string, `a/b/c`; the root's is its name."""
        return "/".join(self.path(node)) or self.names[0]

    def spelled(self, node: int, separator: str = "/") -> str:
        r"""The path as one string that no other node has; the root's is empty.

        Where two paths would read the same, because names hold the separator, it is `\/` inside their names.

        Examples
        --------
        >>> tree = Nodes(["ROOT", "net", "net/ip", "ip/v4", "v4"], [-1, 0, 0, 1, 2])
        >>> [tree.spelled(node) for node in range(1, 5)]
        ['net', 'net/ip', 'net/ip\\/v4', 'net\\/ip/v4']
        >>> Nodes(["ROOT", "a", "b"], [-1, 0, 1]).spelled(2, " > ")
        'a > b'
        """
        path = self.path(node)
        plain = separator.join(path)
        if plain not in self._read_alike(separator):
            return plain
        return separator.join(name.replace(separator, f"\\{separator}") for name in path)

    def _read_alike(self, separator: str) -> set[str]:
        """The joined paths that several nodes have: few trees have any, and only where names hold the separator."""
        if separator not in self._alike:
            alike: set[str] = set()
            if any(separator in name for name in self.names[1:]):
                counts = Counter(separator.join(self.path(node)) for node in range(1, len(self)))
                alike = {title for title, count in counts.items() if count > 1}
            self._alike[separator] = alike
        return self._alike[separator]

    def shown(self, node: int) -> str:
        """The title for a message: the middle of a very long one is left out."""
        return shown_path(self.path(node) or self.names[:1])

    def is_leaf(self, node: int) -> bool:
        """Whether `node` has no children."""
        return node != 0 and not self.children[node]

    @cached_property
    def leaf_position(self) -> IntArray:
        """For every node, its position in `leaves`, or -1."""
        position = np.full(len(self), -1, dtype=np.int64)
        position[list(self.leaves)] = np.arange(self.n_leaves)
        return position

    @cached_property
    def leaf_counts(self) -> IntArray:
        """For every node, the number of leaves at or below it."""
        counts = [0] * len(self)
        for leaf in self.leaves:
            counts[leaf] = 1
        for node in range(len(self) - 1, 0, -1):
            counts[self.parents[node]] += counts[node]
        return np.array(counts, dtype=np.int64)

    @cached_property
    def first_leaves(self) -> IntArray:
        """For every node, where the leaves below it begin when leaves are ordered depth first."""
        counts, first = self.leaf_counts.tolist(), [0] * len(self)
        free = list(first)
        for node in range(1, len(self)):
            parent = self.parents[node]
            first[node] = free[node] = free[parent]
            free[parent] += counts[node]
        return np.array(first, dtype=np.int64)

    @cached_property
    def depth_first(self) -> IntArray:
        """The positions of the leaves, ordered depth first: those below a node lie together."""
        order = np.empty(self.n_leaves, dtype=np.int64)
        order[self.first_leaves[list(self.leaves)]] = np.arange(self.n_leaves)
        return order

    def positions_under(self, node: int) -> IntArray:
        """The positions in `leaves` of the leaves at or below `node`, in order.

        Examples
        --------
        >>> Nodes(["ROOT", "a", "b", "c", "d"], [-1, 0, 0, 1, 1]).positions_under(1).tolist()
        [1, 2]
        """
        first = int(self.first_leaves[node])
        return np.sort(self.depth_first[first : first + int(self.leaf_counts[node])])

    def leaves_under(self, node: int) -> tuple[int, ...]:
        """The leaves at or below `node`, in order."""
        return tuple(self.leaves[position] for position in self.positions_under(node).tolist())

    @cached_property
    def leaf_membership(self) -> npt.NDArray[np.bool_]:
        """Matrix (nodes x leaves): whether the leaf lies at or below the node; only for trees of few leaves."""
        member = np.zeros((len(self), self.n_leaves), dtype=np.bool_)
        for node in self:
            member[node, self.positions_under(node)] = True
        return member

    def sums_under(self, rows: npt.NDArray[np.float32], nodes: Sequence[int]) -> npt.NDArray[np.float32]:
        """For each of some nodes, the sum of the rows of the leaves at or below it, added in order.

        Examples
        --------
        >>> tree = Nodes(["ROOT", "a", "b", "c", "d"], [-1, 0, 0, 1, 1])
        >>> tree.sums_under(np.array([[1.0], [2.0], [4.0]], dtype=np.float32), [0, 1, 3]).tolist()
        [[7.0], [6.0], [2.0]]
        """
        found = np.zeros((len(nodes), *rows.shape[1:]), dtype=np.float32)
        for place, node in enumerate(nodes):
            leaf = int(self.leaf_position[node])
            found[place] = rows[leaf] if leaf >= 0 else rows[self.positions_under(node)].sum(axis=0)
        return found

    def child_towards(self, node: int, nodes: IntArray) -> IntArray:
        """For each of some nodes, the child of `node` that it is or lies below; 0 where there is none.

        Examples
        --------
        >>> tree = Nodes(["ROOT", "a", "b", "c"], [-1, 0, 0, 1])
        >>> tree.child_towards(0, np.array([3, 2, 1])).tolist()
        [1, 2, 1]
        """
        at, level = nodes.copy(), self.depths[node] + 1
        deeper = np.flatnonzero(self.depth_array[at] > level)
        while len(deeper):
            at[deeper] = self.parent_array[at[deeper]]
            deeper = deeper[self.depth_array[at[deeper]] > level]
        return np.where((at > 0) & (self.parent_array[at] == node), at, 0)

    def meeting(self, one: IntArray, other: IntArray) -> IntArray:
        """For each two nodes, the deepest node whose subtree holds both.

        Examples
        --------
        >>> tree = Nodes(["ROOT", "a", "b", "c", "d"], [-1, 0, 0, 1, 1])
        >>> tree.meeting(np.array([3, 3, 3]), np.array([4, 2, 1])).tolist()
        [1, 0, 1]
        """
        one, other = one.copy(), other.copy()
        while len(apart := np.flatnonzero(one != other)):
            # A parent has a smaller number than its children, so the larger one is never above the other.
            larger = one[apart] > other[apart]
            up, up_other = apart[larger], apart[~larger]
            one[up] = self.parent_array[one[up]]
            other[up_other] = self.parent_array[other[up_other]]
        return one

    @cached_property
    def nodes_by_name(self) -> dict[str, tuple[int, ...]]:
        """All nodes that carry a name; the root is left out."""
        found: dict[str, list[int]] = {}
        for node in range(1, len(self)):
            found.setdefault(self.names[node], []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def spelling(self) -> Spelling:
        """Finds the names that a misspelt one may mean."""
        return Spelling(list(self.nodes_by_name))

    @cached_property
    def most_slashes(self) -> int:
        """How many slashes one name has at most; `TCP/IP` has one."""
        return max((name.count("/") for name in self.names[1:]), default=0)

    @cached_property
    def _child_named(self) -> dict[tuple[int, str], int]:
        return {(self.parents[node], self.names[node]): node for node in range(1, len(self))}

    def child_named(self, node: int, name: str) -> int | None:
        """The child of `node` with a name, or None."""
        return self._child_named.get((node, name))

    def walk(self, path: Sequence[str]) -> int | None:
        """The node at the end of a path of names from level 1, or None where the path leaves the tree."""
        node = 0
        for name in path:
            below = self.child_named(node, name)
            if below is None:
                return None
            node = below
        return node


@dataclass(frozen=True)
class Earlier:
    """A tree, and what became of its nodes in the next one.

    Attributes
    ----------
    tree : Nodes
        The tree before the change; it may know an earlier one itself.
    nodes : tuple of int
        For each of its nodes the node of the next tree; `GONE` where the category was deleted with its labels.
    said : tuple of str
        What was changed, a sentence each.

    Examples
    --------
    >>> from himecat import Taxonomy
    >>> before = Taxonomy.from_paths([("animals", "dogs"), ("things",)])
    >>> now = Taxonomy.from_paths([("animals", "hounds"), ("things",)]).since(Earlier(before, (0, 1, 2, 3)))
    >>> now.title(now.find("animals/dogs"))
    'animals/hounds'
    """

    tree: Nodes
    nodes: tuple[int, ...]
    said: tuple[str, ...] = ()
