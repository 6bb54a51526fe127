"""Which node of a tree a label means."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from himecat.errors import DataError
from himecat.input.problems import clipped, described, quoted
from himecat.input.taxonomy.nodes import Nodes
from himecat.input.taxonomy.wording import listed, shown_path
from himecat.input.values import number_name
from himecat.runtime.bounds import bounds, over

ONE_PATH = "a list of names is one path, several paths are a list of lists"
"""What is said where a list of names is no path."""


def label_names(label: object) -> list[str]:
    """The names a raw label consists of, stripped, empty ones left out; an `a/b/c` string stays one name.

    Raises
    ------
    DataError
        The label is not a string or a list of strings, nothing is left of it, or it exceeds a bound.

    Examples
    --------
    >>> label_names(" physics "), label_names(["science", "physics"])
    (['physics'], ['science', 'physics'])
    """
    label = number_name(label) or label
    if isinstance(label, str):
        elements: list[object] = [label]
    elif isinstance(label, (Sequence, np.ndarray)) and not isinstance(label, bytes):
        elements = list(label)
    else:
        raise DataError(f"a label must be a name or a list of names, but {described(label)} was found.")
    names = []
    for element in elements:
        element = number_name(element) or element
        if not isinstance(element, str):
            raise DataError(f"a list of labels must hold names only, but {described(element)} was found.")
        if element.strip():
            names.append(str(element).strip())
    if not names:
        raise DataError("the label is empty.")
    _refuse_beyond_bounds(names)
    return names


def path_parts(names: Sequence[str]) -> list[str]:
    """The names with those taken apart that are paths.

    Examples
    --------
    >>> path_parts(["science/ physics", "optics"])
    ['science', 'physics', 'optics']
    """
    return [part.strip() for name in names for part in name.split("/") if part.strip()]


def _refuse_beyond_bounds(names: Sequence[str]) -> None:
    bound = bounds()
    # Nearly all labels are short, and are not taken apart to find that out.
    if sum(map(len, names)) <= min(bound.depth, bound.label):
        return
    parts = path_parts(names)
    if len(parts) > bound.depth:
        raise DataError(
            f"the label {quoted(shown_path(parts))} has {len(parts):,} levels; {over('depth', len(parts))}."
        )
    for part in parts:
        if len(part) > bound.label:
            raise DataError(long_name(part))


def long_name(name: str) -> str:
    """What is said of a name with more characters than the bound on labels.

    Examples
    --------
    >>> long_name("x" * 1001)
    "the name 'xxx...xxx' has 1,001 characters; the bound is 1,000 ..."
    """
    return f"the name {quoted(name)} has {len(name):,} characters; {over('label', len(name))}."


def find_node(tree: Nodes, label: object) -> int:
    """The node a label means; `Taxonomy.find` says how.

    Examples
    --------
    >>> find_node(Nodes(["ROOT", "a", "b", "c"], [-1, 0, 0, 1]), "a/c")
    3
    """
    names = label_names(label)
    if len(names) > 1:
        return _resolve_path(tree, names)
    name = names[0]
    found = tree.nodes_by_name.get(name, ())
    if len(found) == 1:
        return found[0]
    if not isinstance(label, str) and (top := tree.walk(names)) is not None:
        return top
    if "/" in name:
        return _resolve_slashed(tree, name)
    if found:
        raise _ambiguous(tree, quoted(name), found)
    if name == tree.names[0]:
        raise _root_as_label(name)
    raise _unknown(tree, name)


def _resolve_slashed(tree: Nodes, text: str) -> int:
    # Names may contain a slash themselves ("TCP/IP"), so a whole title is compared before it is taken apart.
    root = f"{tree.names[0]}/"
    if "\\/" in text and (spelled := tree.walk(_unescaped(text))) is not None:
        return spelled
    titled = set(_titled(tree, text))
    if text.startswith(root):
        titled.update(_titled(tree, text.removeprefix(root)))
    if len(titled) == 1:
        return titled.pop()
    parts = path_parts([text])
    if not parts:
        raise DataError("the label is empty.")
    if len(parts) == 1:
        return find_node(tree, parts[0])
    known = tree.nodes_by_name.get(text, ())
    if known and tree.walk(parts) is None:
        raise _ambiguous(tree, quoted(text), known)
    return _resolve_path(tree, parts)


def _unescaped(text: str) -> list[str]:
    """The names of a path as `Nodes.spelled` writes it where others read the same."""
    return [name.replace("\\/", "/") for name in re.split(r"(?<!\\)/", text)]


def _titled(tree: Nodes, text: str) -> list[int]:
    """The nodes with this title, found from the root down: no other title is looked at."""
    found: list[int] = []
    stack = [(0, 0)]
    while stack:
        node, start = stack.pop()
        end = start - 1
        # A name has as many slashes as any name of the tree at most.
        for _ in range(tree.most_slashes + 1):
            end = text.find("/", end + 1)
            child = tree.child_named(node, text[start : len(text) if end < 0 else end])
            if child is not None and end < 0:
                found.append(child)
            elif child is not None:
                stack.append((child, end + 1))
            if end < 0:
                break
    return found


def _resolve_path(tree: Nodes, names: list[str]) -> int:
    node = tree.walk(names)
    if node is not None:
        return node
    if names[0] == tree.names[0]:
        names = names[1:]
        node = tree.walk(names)
        if node is not None:
            return node
    candidates = [_candidates(tree, name) for name in names]
    for name, found in zip(names, candidates, strict=True):
        if not found:
            raise _root_as_label(name) if name == tree.names[0] else _unknown(tree, name)
    meant = tuple(node for node in candidates[-1] if _ends_so(tree, node, names))
    passed = {} if meant else _passed(tree, candidates)
    meant = meant or _deepest_on_one_lineage(tree, passed, len(names))
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise _ambiguous(tree, quoted("/".join(names)), meant)
    leaves = list(dict.fromkeys(f[0] for f in candidates if len(f) == 1 and tree.is_leaf(f[0])))
    if len(leaves) > 1:
        titles = listed([tree.shown(leaf) for leaf in leaves])
        raise DataError(
            f"the document is labelled with {len(leaves)} different leaves: {titles}; {ONE_PATH}."
        )
    # The first name that is on no lineage with all names before it.
    together = max((~mask & (mask + 1)).bit_length() - 1 for mask in passed.values())
    breaking = min(together, len(names) - 1)
    parents = sorted({tree.parents[node] for node in candidates[breaking]})
    above = [tree.shown(parent) for parent in parents if parent]
    where = f"below {_either(above)}" if above else "at the top level"
    raise DataError(
        f"the label path {shown_path(names)} contradicts the tree, where {clipped(names[breaking])} is {where}."
    )


def _either(titles: list[str]) -> str:
    return " or ".join(titles) if len(titles) <= 10 else listed(titles, "or")


def _candidates(tree: Nodes, name: str) -> tuple[int, ...]:
    found = tree.nodes_by_name.get(name, ())
    if found or "/" not in name:
        return found
    node = tree.walk([part.strip() for part in name.split("/")])
    return () if node is None else (node,)


def _ends_so(tree: Nodes, node: int, names: Sequence[str]) -> bool:
    for name in reversed(names):
        if node == 0 or tree.names[node] != name:
            return False
        node = tree.parents[node]
    return True


def _passed(tree: Nodes, candidates: Sequence[Sequence[int]]) -> dict[int, int]:
    """For every candidate and what is above it, which of the names its lineage passes: one bit for each."""
    own: dict[int, int] = {}
    for number, found in enumerate(candidates):
        for node in found:
            own[node] = own.get(node, 0) | 1 << number
    passed = {0: 0}
    for node in own:
        trail = []
        while node not in passed:
            trail.append(node)
            node = tree.parents[node]
        mask = passed[node]
        for below in reversed(trail):
            mask = passed[below] = mask | own.get(below, 0)
    return passed


def _deepest_on_one_lineage(tree: Nodes, passed: dict[int, int], count: int) -> tuple[int, ...]:
    """The nodes whose lineage holds a candidate of every name, without those below another such node."""
    every = (1 << count) - 1
    # Below such a node all are complete, so one with an incomplete parent is below no other.
    return tuple(
        node
        for node in sorted(passed)
        if node and passed[node] == every and passed[tree.parents[node]] != every
    )


def _ambiguous(tree: Nodes, shown: str, nodes: Sequence[int]) -> DataError:
    root = (tree.names[0],)
    titles = [tree.shown(n) if tree.parents[n] else shown_path([*root, *tree.path(n)]) for n in nodes]
    places = listed(titles, "or")
    return DataError(f"the label {shown} stands at {len(nodes)} places in the tree: write {places} instead.")


def _unknown(tree: Nodes, name: str) -> DataError:
    close = tree.spelling.close_to(name)
    if not close:
        return DataError(f"unknown label {quoted(name)}: it is not in the tree.")
    return DataError(f"unknown label {quoted(name)}; did you mean {listed(list(map(quoted, close)), 'or')}?")


def _root_as_label(name: str) -> DataError:
    return DataError(
        f"the label {quoted(name)} is the root of the tree, where every document belongs; name a category below it."
    )
