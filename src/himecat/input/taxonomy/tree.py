"""The category tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from himecat.input.taxonomy.earlier import find_through
from himecat.input.taxonomy.label_search import find_node, label_names
from himecat.input.taxonomy.nodes import Nodes

__all__ = ["ROOT_NAME", "Taxonomy", "label_names"]

ROOT_NAME = "ROOT"


class Taxonomy(Nodes):
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.names == other.names and self.parents == other.parents

    def __hash__(self) -> int:
        return hash((self.names, self.parents))

    def __repr__(self) -> str:
        return f"Taxonomy({self.n_leaves} leaves, {len(self) - 1} categories, depth {self.depth})"

    def find(self, label: str | Sequence[str]) -> int:
        """The node a label means.

        A string is the name of a category, or an `a/b/c` path where no single category has that name. A list is a
        path from the top; a path that starts further down, or names on one lineage in any order, mean the deepest
        of them. The root's name may lead a path: it is the way to say that a path starts at the top. A label of
        before the tree was changed means what became of its category.

        Raises
        ------
        DataError
            The label is unknown, stands at several places, contradicts the tree, or is no label at all.

        Examples
        --------
        >>> tree = Taxonomy.from_paths([("science", "physics"), ("science", "biology"), ("arts", "music")])
        >>> tree.title(tree.find("physics")), tree.title(tree.find(["arts", "music"]))
        ('science/physics', 'arts/music')
        >>> tree.find("phisics")
        Traceback (most recent call last):
        ...
        himecat.errors.DataError: unknown label 'phisics'; did you mean 'physics'?
        """
        return find_node(self, label) if self.earlier is None else find_through(self, label)
