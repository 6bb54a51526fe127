"""Reading category trees: nested YAML or JSON, `parent child ...` lines, or the labels found in documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from himecat.errors import DataError
from himecat.input.problems import Problems, clipped, quoted, shortened
from himecat.input.small_files import parse_names, read_text
from himecat.input.taxonomy.label_search import label_names, long_name, path_parts
from himecat.input.taxonomy.path_files import TABLES, paths_of_lines, paths_of_table
from himecat.input.taxonomy.tree import ROOT_NAME, Taxonomy
from himecat.runtime.bounds import bounds, over

TaxonomySource = Taxonomy | str | PathLike[str] | Mapping[Any, Any] | Sequence[Any]
Nested = dict[str, "Nested"]

# Nobody reads further to the right.
_DRAWN_LEVELS = 20


def read_taxonomy(source: TaxonomySource, problems: Problems | None = None) -> Taxonomy:
    """Read a category tree.

    Parameters
    ----------
    source : Taxonomy, path, mapping or sequence
        A file: `.yaml`, `.yml` and `.json` hold nested names; `.csv` and `.xlsx` columns `level1, level2, ...`
        or `parent, child`; every other file holds one path per line (`a/b/c`, `a > b > c`), or `parent child child
        ...` lines, separated by blanks, or by tabs where names contain blanks. Nested names are what YAML gives: a
        category maps to its children, to a list of them, or to nothing. One `ROOT` at the top is the root.
    problems : Problems, optional
        Takes notes about the tree; errors are raised, all that were found at once.

    Raises
    ------
    DataError
        The file cannot be read, or what it holds is not a tree with two or more leaves.

    Examples
    --------
    >>> tree = read_taxonomy({"science": {"physics": None, "biology": ["zoology", "botany"]}, "arts": None})
    >>> [tree.title(leaf) for leaf in tree.leaves]
    ['arts', 'science/physics', 'science/biology/zoology', 'science/biology/botany']
    """
    place = "the tree"
    if isinstance(source, Taxonomy):
        taxonomy = source
    elif isinstance(source, (str, PathLike)):
        path = Path(source)
        place = str(path)
        if path.suffix.lower() in TABLES and path.is_file():
            taxonomy = _from_table(path, problems or Problems())
            _require_two_leaves(taxonomy, place)
            return taxonomy
        text = read_text(path)
        if not text.strip():
            raise DataError(f"{path}: the file is empty; write the category tree into it.")
        if path.suffix.lower() in (".yaml", ".yml", ".json"):
            taxonomy = _from_nested(parse_names(text, path), place)
        elif (paths := paths_of_lines(text, path.suffix.lower() == ".paths")) is not None:
            taxonomy = _from_paths(paths, place)
        else:
            taxonomy = tree_of_lines(text, place, problems or Problems())
    else:
        taxonomy = _from_nested(source, place)
    _require_two_leaves(taxonomy, place)
    return taxonomy


def infer_taxonomy(label_paths: Iterable[object], *, slashed: bool = True) -> Taxonomy:
    """The smallest tree that holds every label found in documents; names are sorted at each level.

    Lists and `a/b/c` strings are paths from the top; a path that another one continues ends at an inner node.
    A bare name is a category of level 1 unless it stands in a longer path: there it means that place.

    Parameters
    ----------
    label_paths : iterable of str or list of str
        The labels as the documents give them.
    slashed : bool
        Whether a slash in a name separates levels.

    Examples
    --------
    >>> tree = infer_taxonomy([["science", "physics"], "science/biology", "arts", "physics", ["science"]])
    >>> [tree.title(leaf) for leaf in tree.leaves]
    ['arts', 'science/biology', 'science/physics']
    """
    paths: set[tuple[str, ...]] = set()
    bare: set[str] = set()
    place = "the labels found in the documents"
    for label in label_paths:
        try:
            names = label_names(label)
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        if slashed and len(names) == 1 and "/" in names[0]:
            names = path_parts(names)
        elif isinstance(label, str):
            bare.add(names[0])
            continue
        if names and names[0] == ROOT_NAME:
            names = names[1:]
        if names:
            paths.add(tuple(names))
    placed = {name for path in paths for name in path}
    paths.update((name,) for name in bare - placed - {ROOT_NAME})
    if not paths:
        raise DataError(f"{place}: there are none, so no tree can be made of them; give the tree in a file.")
    nested: Nested = {}
    size = 0
    for path in sorted(paths):
        level = nested
        for name in path:
            size += name not in level
            level = level.setdefault(name, {})
        refuse_too_large(size, place)
    taxonomy = Taxonomy.from_children(nested)
    _require_two_leaves(taxonomy, place)
    return taxonomy


def render_tree(taxonomy: Taxonomy, annotate: Callable[[int], str] | None = None) -> str:
    """Draw the tree with lines, one category per row; `annotate` adds text behind a category's name.

    Of what is deeper than 20 levels, only the number of levels is said.

    Examples
    --------
    >>> print(render_tree(Taxonomy.from_paths([("science", "physics"), ("science", "biology"), ("arts",)])))
    science
    ├── physics
    └── biology
    arts
    """
    rows: list[str] = []
    stack = [(node, "", "") for node in reversed(taxonomy.children[0])]
    while stack:
        node, lead, below = stack.pop()
        note = annotate(node) if annotate else ""
        rows.append(f"{lead}{clipped(taxonomy.names[node])}{' ' * bool(note)}{note}")
        children = taxonomy.children[node]
        if children and taxonomy.depths[node] == _DRAWN_LEVELS:
            rows.append(f"{below}└── ... and {_levels_below(taxonomy, node):,} more levels")
            continue
        for child in reversed(children):
            last = child == children[-1]
            stack.append((child, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")))
    return "\n".join(rows)


def _levels_below(taxonomy: Taxonomy, node: int) -> int:
    level, count = taxonomy.children[node], 0
    while level:
        level, count = tuple(below for one in level for below in taxonomy.children[one]), count + 1
    return count


def _require_two_leaves(taxonomy: Taxonomy, place: str) -> None:
    if taxonomy.n_leaves >= 2:
        return
    only = (
        f"is only one leaf, {taxonomy.shown(taxonomy.leaves[0])}" if taxonomy.leaves else "are no categories"
    )
    raise DataError(f"{place}: there {only}; a tree needs two or more leaves to choose from.")


def _from_table(path: Path, problems: Problems) -> Taxonomy:
    found = paths_of_table(path)
    place = str(path)
    return tree_of_lines(found, place, problems) if isinstance(found, str) else _from_paths(found, place)


def _from_paths(paths: Iterable[Sequence[str]], place: str) -> Taxonomy:
    nested: Nested = {}
    size = 0
    for path in paths:
        level = nested
        names = [_checked_name(name, "at the top", place) for name in path]
        _refuse_too_deep(len(names), place)
        for name in names[1:] if names[:1] == [ROOT_NAME] else names:
            size += name not in level
            level = level.setdefault(name, {})
        refuse_too_large(size, place)
    return Taxonomy.from_children(nested)


def _from_nested(source: object, place: str) -> Taxonomy:
    nested: Nested = {}
    stack: list[tuple[object, Nested, str, int]] = [(source, nested, "at the top", 1)]
    size = deepest = 0
    while stack:
        value, level, where, depth = stack.pop()
        if value is None:
            continue
        if isinstance(value, (str, bytes)) or not isinstance(value, (Mapping, Sequence)):
            raise DataError(
                f"{place}: {where} {quoted(value)} was found; write the children of a category as a list of names "
                "or a mapping, and nothing where there are none."
            )
        for key, children in _entries(value):
            name = _checked_name(key, where, place)
            if name in level:
                raise DataError(f"{place}: {quoted(name)} stands twice {where}; keep one of them.")
            level[name] = {}
            stack.append((children, level[name], f"below {quoted(name)}", depth + 1))
            deepest = max(deepest, depth)
            size += 1
            refuse_too_large(size, place)
    if ROOT_NAME in nested:
        beside = next((name for name in nested if name != ROOT_NAME), None)
        if beside is not None:
            raise DataError(f"{place}: {quoted(beside)} stands beside the root; move it below {ROOT_NAME}.")
        nested, deepest = nested[ROOT_NAME], deepest - 1
    _refuse_too_deep(deepest, place)
    return Taxonomy.from_children(nested)


def _entries(value: Mapping[Any, Any] | Sequence[Any]) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
        return
    for item in value:
        if isinstance(item, Mapping):
            yield from item.items()
        else:
            yield item, None


def _checked_name(key: object, where: str, place: str) -> str:
    if isinstance(key, bool) or key is None:
        raise DataError(
            f"{place}: {where} {json.dumps(key)} was found where a name is needed; "
            "write the name in quotes, or take the entry out."
        )
    if isinstance(key, (int, float)):
        return str(key)
    if not isinstance(key, str):
        raise DataError(f"{place}: {where} a {type(key).__name__} was found where a name is needed.")
    name = str(key).strip()
    if not name:
        raise DataError(f"{place}: {where} an empty name was found.")
    if len(name) > bounds().label:
        raise DataError(f"{place}: {where} {long_name(name)}")
    return name


def refuse_too_large(size: int, place: str) -> None:
    """Raise once a tree has more nodes than the bound: shared branches multiply, in a circle without end.

    Examples
    --------
    >>> refuse_too_large(bounds().nodes, "tree.txt")
    >>> refuse_too_large(bounds().nodes + 1, "tree.txt")
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: tree.txt: the tree has more than 250,000 nodes once ...
    """
    most = bounds().nodes
    if size > most:
        raise DataError(
            f"{place}: the tree has more than {most:,} nodes once every category stands below each of its parents; "
            f"take out shared or repeated branches: {over('nodes', 2 * most)}."
        )


def _refuse_too_deep(depth: int, place: str, category: str = "") -> None:
    if depth > bounds().depth:
        raise DataError(f"{place}: the tree has {depth:,} levels{category}; {over('depth', depth)}.")


def tree_of_lines(text: str, place: str, problems: Problems) -> Taxonomy:
    """Read `parent child child ...` lines; a category below several parents is copied to each of them."""
    found = Problems(noun="lines")
    children: dict[str, list[str]] = {}
    line_of_name: dict[str, int] = {}
    line_of_edge: dict[tuple[str, str], int] = {}
    longest = bounds().label
    for number, line in enumerate(text.split("\n"), start=1):
        names = [n for n in map(str.strip, line.split("\t")) if n] if "\t" in line.strip() else line.split()
        here = f"{place} line {number}"
        for name in names:
            if name not in line_of_name:
                line_of_name[name], children[name] = number, []
                if len(name) > longest:
                    found.error(here, long_name(name))
        for parent, child in ((names[0], child) for child in names[1:]):
            if child == parent:
                found.error(here, f"{quoted(child)} is its own parent; take it out of its children.")
            elif (parent, child) in line_of_edge:
                found.error(here, f"{quoted(child)} stands twice below {quoted(parent)}; keep one of them.")
            else:
                line_of_edge[parent, child] = number
                children[parent].append(child)
    cycle, heights = _explored(children)
    if cycle:
        closing = line_of_edge[cycle[-2], cycle[-1]]
        found.error(
            f"{place} line {closing}",
            f"the tree runs in a circle, {_shown_circle(cycle)}; take one step of it out.",
        )
    with_parent = {child for _, child in line_of_edge}
    roots = [name for name in children if name not in with_parent]
    _check_roots(roots, line_of_name, place, found)
    found.raise_errors()
    root, depth = roots[0], heights[roots[0]]
    if depth > bounds().depth:
        name = root
        for _ in range(bounds().depth + 1):
            name = max(children[name], key=heights.__getitem__)
        _refuse_too_deep(depth, f"{place} line {line_of_name[name]}", f" down from {quoted(root)}")
    return _unfolded(children, root, place, problems)


def _shown_circle(cycle: Sequence[str]) -> str:
    shown = [clipped(name) for name in (cycle if len(cycle) <= 9 else (*cycle[:5], "...", *cycle[-3:]))]
    return " -> ".join(shown)


def _check_roots(roots: list[str], line_of_name: Mapping[str, int], place: str, found: Problems) -> None:
    if len(roots) < 2:
        return
    if ROOT_NAME in roots:
        for name in roots:
            if name != ROOT_NAME:
                found.error(
                    f"{place} line {line_of_name[name]}",
                    f"{quoted(name)} has no parent; add it to the line of {ROOT_NAME} or of another category.",
                )
        return
    listed = shortened([f"{quoted(name)} (line {line_of_name[name]})" for name in roots])
    joined = f"add one line that joins them: {ROOT_NAME}, then their names."
    found.error(place, f"there are {len(roots)} roots, {listed}; {joined}")


def _explored(children: Mapping[str, Sequence[str]]) -> tuple[list[str], dict[str, int]]:
    """One circle of names, the first repeated at the end; and, where there is none, the levels below each name."""
    heights: dict[str, int] = {}
    for start in children:
        if start in heights:
            continue
        # The names from `start` down to where the search stands.
        trail, on_trail = [(start, iter(children[start]))], {start}
        while trail:
            at, rest = trail[-1]
            name = next(rest, None)
            if name is None:
                heights[at] = max((heights[below] + 1 for below in children[at]), default=0)
                on_trail.remove(at)
                trail.pop()
            elif name in on_trail:
                way = [one for one, _ in trail]
                return [*way[way.index(name) :], name], heights
            elif name not in heights:
                trail.append((name, iter(children[name])))
                on_trail.add(name)
    return [], heights


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
            f"{len(copied)} labels can be reached in several ways ({shortened(list(map(clipped, copied)), 5)}) and "
            f"were copied to each place: {len(names) - 1:,} categories instead of {len(children) - 1:,}.",
        )
    return Taxonomy(names, parents)
