"""The tree before it was changed: labels that were written for it are read through the changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from himecat.errors import DataError
from himecat.input.problems import quoted
from himecat.input.taxonomy.label_search import find_node, label_names, path_parts
from himecat.input.taxonomy.nodes import GONE, Earlier, Nodes

Tree = TypeVar("Tree", bound=Nodes)


def find_through(tree: Nodes, label: object) -> int:
    """The node that a label means in a tree, or meant in an earlier one.

    A path as it stands in a newer tree goes before that of an older one, and both before a guess.

    Examples
    --------
    >>> from himecat.input.taxonomy.tree import Taxonomy
    >>> before = Taxonomy.from_paths([("a", "b"), ("c", "d")])
    >>> now = Taxonomy.from_paths([("a",), ("c", "b"), ("c", "d")]).since(Earlier(before, (0, 1, 2, 3, 4)))
    >>> find_through(now, "a/b") == now.find("c/b")
    True
    """
    names = label_names(label)
    if len(names) == 1 and len(tree.nodes_by_name.get(names[0], ())) > 1:
        return find_node(tree, label)
    for one, later in _from_newest(tree):
        found = _as_it_stands(one, names)
        if found is not None:
            return _carried(one, found, later)
    error: DataError | None = None
    for one, later in _from_newest(tree):
        try:
            return _carried(one, find_node(one, label), later)
        except DataError as wrong:
            error = error or wrong
    assert error is not None
    raise error


def _from_newest(tree: Nodes) -> Iterator[tuple[Nodes, list[tuple[int, ...]]]]:
    """Each tree with what became of its nodes, step by step up to the newest."""
    later: list[tuple[int, ...]] = []
    at: Nodes | None = tree
    while at is not None:
        yield at, later[::-1]
        if at.earlier is not None:
            later.append(at.earlier.nodes)
        at = None if at.earlier is None else at.earlier.tree


def _as_it_stands(tree: Nodes, names: Sequence[str]) -> int | None:
    """The node whose name, or whole path, this is."""
    if len(names) == 1:
        known = tree.nodes_by_name.get(names[0], ())
        if len(known) == 1:
            return known[0]
        names = path_parts(names)
    if len(names) > 1 and names[0] == tree.names[0]:
        names = names[1:]
    return tree.walk(names) or None


def _carried(tree: Nodes, node: int, later: Sequence[tuple[int, ...]]) -> int:
    at = node
    for step in later:
        at = step[at]
        if at <= 0:
            raise DataError(f"the category {quoted(tree.shown(node))} was deleted from the tree.")
    return at


def carried_nodes(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """What becomes of nodes in two steps.

    Examples
    --------
    >>> carried_nodes((0, 2, GONE), (0, 1, 3))
    (0, 3, -1)
    """
    return tuple(GONE if node < 0 else second[node] for node in first)


def changes_of(tree: Nodes) -> list[list[str]]:
    """What was changed, step by step, the oldest first.

    Examples
    --------
    >>> from himecat import Taxonomy
    >>> before, now = Taxonomy.from_paths([("a",), ("b",)]), Taxonomy.from_paths([("a",), ("c",)])
    >>> changes_of(now.since(Earlier(before, (0, 1, 2), ("b is called c now.",))))
    [['b is called c now.']]
    """
    return [one["said"] for one in reversed(changes_state(tree))]


def changes_state(tree: Nodes) -> list[dict[str, Any]]:
    """What a model folder keeps of the earlier trees, the newest first; nothing where there are none."""
    found: list[dict[str, Any]] = []
    at = tree.earlier
    while at is not None:
        before = at.tree
        kept = {"names": list(before.names), "parents": list(before.parents)}
        found.append({"said": list(at.said), "before": kept, "nodes": list(at.nodes)})
        at = before.earlier
    return found


def with_changes(tree: Tree, state: Sequence[Mapping[str, Any]]) -> Tree:
    """The tree with the earlier ones that `changes_state` gave.

    Raises
    ------
    ValueError
        The nodes of one tree do not fit the next.

    Examples
    --------
    >>> from himecat.input.taxonomy.tree import Taxonomy
    >>> before, now = Taxonomy.from_paths([("a",), ("b",)]), Taxonomy.from_paths([("a",), ("c",)])
    >>> kept = changes_state(now.since(Earlier(before, (0, 1, 2), ("b is called c.",))))
    >>> with_changes(now, kept).find("b")
    2
    """
    trees = [type(tree)(one["before"]["names"], one["before"]["parents"]) for one in state]
    for older, newer, one in zip(trees, [tree, *trees], state, strict=False):
        nodes = one["nodes"]
        if len(nodes) != len(older) or any(
            type(node) is not int or not GONE <= node < len(newer) for node in nodes
        ):
            raise ValueError("'tree_changes' do not fit the tree")
    earlier: Earlier | None = None
    for older, one in zip(reversed(trees), reversed(state), strict=True):
        known = older if earlier is None else older.since(earlier)
        earlier = Earlier(known, tuple(one["nodes"]), tuple(map(str, one["said"])))
    return tree if earlier is None else tree.since(earlier)
