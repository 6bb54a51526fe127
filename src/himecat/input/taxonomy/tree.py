"""The category tree, and which node of it a label means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError
from himecat.input.problems import described

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

    @cached_property
    def lineage_matrix(self) -> npt.NDArray[np.int64]:
        """Matrix (nodes x levels): the node's ancestor at each level, itself at its own, 0 below."""
        matrix = np.zeros((len(self), self.depth), dtype=np.int64)
        for node, lineage in enumerate(self.lineages):
            matrix[node, : len(lineage)] = lineage
        return matrix

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

    def child_towards(self, node: int, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """For each of some nodes, the child of `node` that it is or lies below; 0 where there is none.

        Examples
        --------
        >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
        >>> tree.child_towards(0, np.array([tree.find(name) for name in "acd"])).tolist()
        [1, 1, 2]
        """
        level, children = self.depths[node], set(self.children[node])
        at_level = [self.lineages[one][level : level + 1] for one in nodes.tolist()]
        return np.array(
            [one[0] if children.issuperset(one) and one else 0 for one in at_level], dtype=np.int64
        )

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
        """The node a label means.

        A string is the name of a category, or an `a/b/c` path where no single category has that name. A list is a
        path from the top; a path that starts further down, or names on one lineage in any order, mean the deepest
        of them. The root's name may lead a path: it is the way to say that a path starts at the top.

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
        names = label_names(label)
        if len(names) == 1:
            name = names[0]
            found = self.nodes_by_name.get(name, ())
            if len(found) == 1:
                return found[0]
            if not isinstance(label, str) and (top := self.walk(names)) is not None:
                return top
            if "/" in name:
                return _resolve_slashed(self, name)
            if found:
                raise _ambiguous(self, repr(name), found)
            if name == self.names[0]:
                raise _root_as_label(name)
            raise _unknown(self, name)
        return _resolve_path(self, names)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))


def label_names(label: object) -> list[str]:
    """The names a raw label consists of, stripped, empty ones left out; an `a/b/c` string stays one name.

    Raises
    ------
    DataError
        The label is not a string or a list of strings, or nothing is left of it.

    Examples
    --------
    >>> label_names(" physics "), label_names(["science", "physics"])
    (['physics'], ['science', 'physics'])
    """
    if isinstance(label, str):
        elements: list[object] = [label]
    elif isinstance(label, (Sequence, np.ndarray)) and not isinstance(label, bytes):
        elements = list(label)
    else:
        raise DataError(f"a label must be a name or a list of names, but {described(label)} was found.")
    names = []
    for element in elements:
        if not isinstance(element, str):
            raise DataError(f"a list of labels must hold names only, but {described(element)} was found.")
        if element.strip():
            names.append(str(element).strip())
    if not names:
        raise DataError("the label is empty.")
    return names


def _resolve_slashed(taxonomy: Taxonomy, text: str) -> int:
    # Names may contain a slash themselves ("TCP/IP"), so a whole title is compared before it is taken apart.
    titled = [n for n in taxonomy if n and text in (taxonomy.title(n), _from_root(taxonomy, n))]
    if len(titled) == 1:
        return titled[0]
    parts = [part.strip() for part in text.split("/") if part.strip()]
    if not parts:
        raise DataError("the label is empty.")
    if len(parts) == 1:
        return taxonomy.find(parts[0])
    known = taxonomy.nodes_by_name.get(text, ())
    if known and taxonomy.walk(parts) is None:
        raise _ambiguous(taxonomy, repr(text), known)
    return _resolve_path(taxonomy, parts)


def _resolve_path(taxonomy: Taxonomy, names: list[str]) -> int:
    node = taxonomy.walk(names)
    if node is not None:
        return node
    if names[0] == taxonomy.names[0]:
        names = names[1:]
        node = taxonomy.walk(names)
        if node is not None:
            return node
    candidates = [_candidates(taxonomy, name) for name in names]
    for name, found in zip(names, candidates, strict=True):
        if not found:
            raise _root_as_label(name) if name == taxonomy.names[0] else _unknown(taxonomy, name)
    wanted = tuple(names)
    ending_so = tuple(node for node in candidates[-1] if taxonomy.path(node)[-len(names) :] == wanted)
    meant = ending_so or _deepest_on_one_lineage(taxonomy, candidates)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise _ambiguous(taxonomy, repr("/".join(names)), meant)
    leaves = list(dict.fromkeys(f[0] for f in candidates if len(f) == 1 and taxonomy.is_leaf(f[0])))
    if len(leaves) > 1:
        titles = _listed(taxonomy.title(leaf) for leaf in leaves)
        raise DataError(f"the document is labelled with {len(leaves)} different leaves: {titles}.")
    raise _contradiction(taxonomy, names, candidates)


def _candidates(taxonomy: Taxonomy, name: str) -> tuple[int, ...]:
    found = taxonomy.nodes_by_name.get(name, ())
    if found or "/" not in name:
        return found
    node = taxonomy.walk([part.strip() for part in name.split("/")])
    return () if node is None else (node,)


def _deepest_on_one_lineage(taxonomy: Taxonomy, candidates: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The nodes whose lineage holds a candidate of every name, without those below another such node."""
    complete = {
        node
        for found in candidates
        for node in found
        if all(not set(taxonomy.lineages[node]).isdisjoint(others) for others in candidates)
    }
    return tuple(
        node
        for node in sorted(complete)
        if not any(above in complete for above in taxonomy.lineages[node][:-1])
    )


def _contradiction(taxonomy: Taxonomy, names: list[str], candidates: list[tuple[int, ...]]) -> DataError:
    breaking = next(
        (n for n in range(1, len(names)) if not _deepest_on_one_lineage(taxonomy, candidates[: n + 1])),
        len(names) - 1,
    )
    parents = sorted({taxonomy.parents[node] for node in candidates[breaking]})
    above = " or ".join(taxonomy.title(parent) for parent in parents if parent)
    where = f"below {above}" if above else "at the top level"
    return DataError(
        f"the label path {'/'.join(names)} contradicts the tree, where {names[breaking]} is {where}."
    )


def _ambiguous(taxonomy: Taxonomy, shown: str, nodes: Iterable[int]) -> DataError:
    titles = [taxonomy.title(n) if taxonomy.parents[n] else _from_root(taxonomy, n) for n in nodes]
    places = _listed(titles, "or")
    return DataError(f"the label {shown} stands at {len(titles)} places in the tree: write {places} instead.")


def _from_root(taxonomy: Taxonomy, node: int) -> str:
    return f"{taxonomy.names[0]}/{taxonomy.title(node)}"


def _unknown(taxonomy: Taxonomy, name: str) -> DataError:
    close = difflib.get_close_matches(name, taxonomy.nodes_by_name, n=3)
    if not close:
        return DataError(f"unknown label {name!r}: it is not in the tree.")
    return DataError(f"unknown label {name!r}; did you mean {_listed(map(repr, close), 'or')}?")


def _root_as_label(name: str) -> DataError:
    return DataError(
        f"the label {name!r} is the root of the tree, where every document belongs; name a category below it."
    )


def _listed(items: Iterable[str], joint: str = "and") -> str:
    *head, last = items
    return f"{', '.join(head)} {joint} {last}" if head else last
