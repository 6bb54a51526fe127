"""Category trees in `parent child child ...` lines, in which a category may have several parents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from himecat.errors import DataError
from himecat.input.problems import Problems, shortened
from himecat.input.taxonomy.tree import ROOT_NAME, Taxonomy

MAX_NODES = 100_000


def refuse_too_large(size: int, place: str) -> None:
    """Raise once a tree has grown past `MAX_NODES`: shared branches multiply, in a circle without end.

    Examples
    --------
    >>> refuse_too_large(MAX_NODES, "tree.txt")
    >>> refuse_too_large(MAX_NODES + 1, "tree.txt")
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: tree.txt: the tree has more than 100,000 nodes once ...
    """
    if size > MAX_NODES:
        raise DataError(
            f"{place}: the tree has more than {MAX_NODES:,} nodes once every category stands below each of "
            "its parents; take out shared or repeated branches."
        )


def tree_of_lines(text: str, place: str, problems: Problems) -> Taxonomy:
    """Read `parent child child ...` lines; `place` names them in errors and notes.

    A category below several parents is copied to each of them, which `problems` takes a note of. All that is
    wrong with the lines is raised at once.

    Examples
    --------
    >>> tree = tree_of_lines("ROOT science arts\\nscience physics biology", "tree.txt", Problems())
    >>> [tree.title(leaf) for leaf in tree.leaves]
    ['arts', 'science/physics', 'science/biology']
    """
    found = Problems()
    children: dict[str, list[str]] = {}
    line_of_name: dict[str, int] = {}
    line_of_edge: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        names = [n for n in map(str.strip, line.split("\t")) if n] if "\t" in line.strip() else line.split()
        for name in names:
            line_of_name.setdefault(name, number)
            children.setdefault(name, [])
        for parent, child in ((names[0], child) for child in names[1:]):
            here = f"{place} line {number}"
            if child == parent:
                found.error(here, f"{child!r} is its own parent; take it out of its children.")
            elif (parent, child) in line_of_edge:
                found.error(here, f"{child!r} stands twice below {parent!r}; keep one of them.")
            else:
                line_of_edge[parent, child] = number
                children[parent].append(child)
    cycle = _cycle(children)
    if cycle:
        closing = line_of_edge[cycle[-2], cycle[-1]]
        circle = " -> ".join(cycle)
        found.error(
            f"{place} line {closing}", f"the tree runs in a circle, {circle}; take one step of it out."
        )
    with_parent = {child for _, child in line_of_edge}
    roots = [name for name in children if name not in with_parent]
    _check_roots(roots, line_of_name, place, found)
    found.raise_errors()
    return _unfolded(children, roots[0], place, problems)


def _check_roots(roots: list[str], line_of_name: Mapping[str, int], place: str, found: Problems) -> None:
    if len(roots) < 2:
        return
    if ROOT_NAME in roots:
        for name in roots:
            if name != ROOT_NAME:
                found.error(
                    f"{place} line {line_of_name[name]}",
                    f"{name!r} has no parent; add it to the line of {ROOT_NAME} or of another category.",
                )
        return
    listed = shortened([f"{name!r} (line {line_of_name[name]})" for name in roots])
    joined = f"add one line that joins them: {ROOT_NAME}, then their names."
    found.error(place, f"there are {len(roots)} roots, {listed}; {joined}")


def _cycle(children: Mapping[str, Sequence[str]]) -> list[str]:
    """One circle of names, the first repeated at the end; empty when there is none."""
    done: set[str] = set()
    for start in children:
        if start in done:
            continue
        # An ordered set: the names from `start` down to where the search stands.
        trail = {start: iter(children[start])}
        while trail:
            at = next(reversed(trail))
            name = next(trail[at], None)
            if name is None:
                done.add(at)
                del trail[at]
            elif name in trail:
                way = list(trail)
                return [*way[way.index(name) :], name]
            elif name not in done:
                trail[name] = iter(children[name])
    return []


def _unfolded(children: Mapping[str, Sequence[str]], root: str, place: str, problems: Problems) -> Taxonomy:
    """The tree in which every way from the root to a name is a node of its own."""
    names, parents = [root], [-1]
    node = 0
    while node < len(names):
        below = children[names[node]]
        names.extend(below)
        parents.extend([node] * len(below))
        refuse_too_large(len(names), place)
        node += 1
    copied = [name for name, times in Counter(names).items() if times > 1]
    if copied:
        problems.note(
            place,
            f"{len(copied)} labels can be reached in several ways ({shortened(copied, 5)}) and were copied to each "
            f"place: {len(names) - 1:,} categories instead of {len(children) - 1:,}.",
        )
    return Taxonomy(names, parents)
