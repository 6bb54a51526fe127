"""The category tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError

ROOT_NAME = "ROOT"


class Taxonomy:
    """An immutable tree of categories; nodes are integers in top-down (breadth-first) order, the root is 0.

    Parameters
    ----------
    names : sequence of str
        The name of every node; `names[0]` is the root's.
    parents : sequence of int
        The parent of every node; the root's is -1. A parent comes before its children, and depth never
        decreases along the sequence.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("science", "biology"), ("arts",)])
    >>> [tree.path(leaf) for leaf in tree.leaves]
    [('arts',), ('science', 'physics'), ('science', 'biology')]
    >>> tree.find("physics")
    3
    """

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
                raise DataError(f"Node {node} ({names[node]!r}) comes before its parent.")
            depths.append(depths[parent] + 1)
            if depths[node] < depths[node - 1]:
                raise DataError(f"Node {node} ({names[node]!r}) is not in top-down order.")
            children[parent].append(node)
        for parent, group in enumerate(children):
            seen: set[str] = set()
            for node in group:
                if names[node] in seen:
                    raise DataError(f"{names[parent]!r} has two children named {names[node]!r}.")
                seen.add(names[node])
        self.names: tuple[str, ...] = tuple(str(name) for name in names)
        self.parents: tuple[int, ...] = tuple(int(parent) for parent in parents)
        self.children: tuple[tuple[int, ...], ...] = tuple(tuple(group) for group in children)
        self.depths: tuple[int, ...] = tuple(depths)
        self.leaves: tuple[int, ...] = tuple(n for n in range(1, len(names)) if not children[n])
        self.inner: tuple[int, ...] = tuple(n for n in range(len(names)) if children[n])

    @classmethod
    def from_children(cls, children: Mapping[str, object], root: str = ROOT_NAME) -> Taxonomy:
        """Build from nested mappings `{name: {name: ...}}`; a leaf maps to an empty mapping or None.

        Examples
        --------
        >>> Taxonomy.from_children({"a": {"b": {}, "c": {}}}).names
        ('ROOT', 'a', 'b', 'c')
        """
        names, parents = [root], [-1]
        level: list[tuple[int, Mapping[str, object]]] = [(0, children)]
        while level:
            below: list[tuple[int, Mapping[str, object]]] = []
            for parent, group in level:
                for name, grandchildren in group.items():
                    names.append(name)
                    parents.append(parent)
                    if isinstance(grandchildren, Mapping) and grandchildren:
                        below.append((len(names) - 1, grandchildren))
            level = below
        return cls(names, parents)

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[str]], root: str = ROOT_NAME) -> Taxonomy:
        """Build the smallest tree that contains every path (top-down names, the root left out).

        Examples
        --------
        >>> Taxonomy.from_paths([("a", "b"), ("a", "c")]).n_leaves
        2
        """
        nested: dict[str, object] = {}
        for path in paths:
            level = nested
            for name in path:
                below = level.setdefault(name, {})
                assert isinstance(below, dict)
                level = below
        return cls.from_children(nested, root)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.names == other.names and self.parents == other.parents

    def __hash__(self) -> int:
        return hash((self.names, self.parents))

    def __repr__(self) -> str:
        return f"Taxonomy({self.n_leaves} leaves, {len(self) - 1} categories, depth {self.depth})"

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return max(self.depths)

    @cached_property
    def lineages(self) -> tuple[tuple[int, ...], ...]:
        """For every node, the nodes from level 1 down to and including itself (empty for the root)."""
        lines: list[tuple[int, ...]] = [()]
        for node in range(1, len(self)):
            lines.append((*lines[self.parents[node]], node))
        return tuple(lines)

    def path(self, node: int) -> tuple[str, ...]:
        """The names from level 1 down to `node`."""
        return tuple(self.names[n] for n in self.lineages[node])

    def title(self, node: int) -> str:
        """The path as one readable string, `a/b/c`; the root's is its name."""
        return "/".join(self.path(node)) or self.names[0]

    def is_leaf(self, node: int) -> bool:
        """Whether `node` has no children."""
        return node != 0 and not self.children[node]

    @cached_property
    def leaf_position(self) -> npt.NDArray[np.int64]:
        """For every node, its position in `leaves`, or -1."""
        position = np.full(len(self), -1, dtype=np.int64)
        position[list(self.leaves)] = np.arange(self.n_leaves)
        return position

    @cached_property
    def leaf_membership(self) -> npt.NDArray[np.bool_]:
        """Matrix (nodes x leaves): whether the leaf lies at or below the node."""
        member = np.zeros((len(self), self.n_leaves), dtype=np.bool_)
        for position, leaf in enumerate(self.leaves):
            member[0, position] = True
            member[list(self.lineages[leaf]), position] = True
        return member

    def leaves_under(self, node: int) -> tuple[int, ...]:
        """The leaves at or below `node`, in order."""
        return tuple(leaf for leaf in self.leaves if node == 0 or node in self.lineages[leaf])

    @cached_property
    def nodes_by_name(self) -> dict[str, tuple[int, ...]]:
        """All nodes that carry a name; the root is left out."""
        found: dict[str, list[int]] = {}
        for node in range(1, len(self)):
            found.setdefault(self.names[node], []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def walk(self, path: Sequence[str]) -> int | None:
        """The node at the end of a path of names from level 1, or None where the path leaves the tree."""
        node = 0
        for name in path:
            below = [child for child in self.children[node] if self.names[child] == name]
            if not below:
                return None
            node = below[0]
        return node

    def find(self, label: str | Sequence[str]) -> int:
        """The node meant by a unique name, an `a/b/c` path or a list of names.

        Raises
        ------
        DataError
            The label is unknown, stands at several places, or contradicts the tree.
        """
        from himecat.input.labels import resolve_label

        return resolve_label(self, label)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))
