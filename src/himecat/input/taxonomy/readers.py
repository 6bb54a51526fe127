"""Reading category trees: nested YAML or JSON, `parent child ...` lines, or the labels found in documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from himecat.errors import DataError
from himecat.input.problems import Problems, shortened
from himecat.input.small_files import parse_names, read_text
from himecat.input.taxonomy.tree import ROOT_NAME, Taxonomy, label_names

MAX_NODES = 100_000

TaxonomySource = Taxonomy | str | PathLike[str] | Mapping[Any, Any] | Sequence[Any]
Nested = dict[str, "Nested"]


def read_taxonomy(source: TaxonomySource, problems: Problems | None = None) -> Taxonomy:
    """Read a category tree.

    Parameters
    ----------
    source : Taxonomy, path, mapping or sequence
        A file: `.yaml`, `.yml` and `.json` hold nested names, every other file holds `parent child child ...`
        lines, separated by blanks, or by tabs where names contain blanks. Nested names are what YAML gives: a
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
        text = read_text(path)
        if not text.strip():
            raise DataError(f"{path}: the file is empty; write the category tree into it.")
        if path.suffix.lower() in (".yaml", ".yml", ".json"):
            taxonomy = _from_nested(parse_names(text, path), place)
        else:
            taxonomy = tree_of_lines(text, place, problems or Problems())
    else:
        taxonomy = _from_nested(source, place)
    _require_two_leaves(taxonomy, place)
    return taxonomy


def infer_taxonomy(label_paths: Iterable[object]) -> Taxonomy:
    """The smallest tree that holds every label found in documents; names are sorted at each level.

    Lists and `a/b/c` strings are paths from the top; a path that another one continues ends at an inner node.
    A bare name is a category of level 1 unless it stands in a longer path: there it means that place.

    Parameters
    ----------
    label_paths : iterable of str or list of str
        The labels as the documents give them.

    Examples
    --------
    >>> tree = infer_taxonomy([["science", "physics"], "science/biology", "arts", "physics", ["science"]])
    >>> [tree.title(leaf) for leaf in tree.leaves]
    ['arts', 'science/biology', 'science/physics']
    """
    paths: set[tuple[str, ...]] = set()
    bare: set[str] = set()
    for label in label_paths:
        names = label_names(label)
        if len(names) == 1 and "/" in names[0]:
            names = [part.strip() for part in names[0].split("/") if part.strip()]
        elif isinstance(label, str):
            bare.add(names[0])
            continue
        if names and names[0] == ROOT_NAME:
            names = names[1:]
        if names:
            paths.add(tuple(names))
    placed = {name for path in paths for name in path}
    paths.update((name,) for name in bare - placed - {ROOT_NAME})
    place = "the labels found in the documents"
    if not paths:
        raise DataError(f"{place}: there are none, so no tree can be made of them; give the tree in a file.")
    taxonomy = Taxonomy.from_paths(sorted(paths))
    _require_two_leaves(taxonomy, place)
    return taxonomy


def render_tree(taxonomy: Taxonomy, annotate: Callable[[int], str] | None = None) -> str:
    """Draw the tree with lines, one category per row; `annotate` adds text behind a category's name.

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
        rows.append(f"{lead}{taxonomy.names[node]}{' ' * bool(note)}{note}")
        children = taxonomy.children[node]
        for child in reversed(children):
            last = child == children[-1]
            stack.append((child, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")))
    return "\n".join(rows)


def _require_two_leaves(taxonomy: Taxonomy, place: str) -> None:
    if taxonomy.n_leaves >= 2:
        return
    only = (
        f"is only one leaf, {taxonomy.title(taxonomy.leaves[0])}" if taxonomy.leaves else "are no categories"
    )
    raise DataError(f"{place}: there {only}; a tree needs two or more leaves to choose from.")


def _from_nested(source: object, place: str) -> Taxonomy:
    nested: Nested = {}
    stack: list[tuple[object, Nested, str]] = [(source, nested, "at the top")]
    size = 0
    while stack:
        value, level, where = stack.pop()
        if value is None:
            continue
        if isinstance(value, (str, bytes)) or not isinstance(value, (Mapping, Sequence)):
            raise DataError(
                f"{place}: {where} {value!r} was found; write the children of a category as a list of names "
                "or a mapping, and nothing where there are none."
            )
        for key, children in _entries(value):
            name = _checked_name(key, where, place)
            if name in level:
                raise DataError(f"{place}: {name!r} stands twice {where}; keep one of them.")
            level[name] = {}
            stack.append((children, level[name], f"below {name!r}"))
            size += 1
            refuse_too_large(size, place)
    if ROOT_NAME in nested:
        beside = next((name for name in nested if name != ROOT_NAME), None)
        if beside is not None:
            raise DataError(f"{place}: {beside!r} stands beside the root; move it below {ROOT_NAME}.")
        nested = nested[ROOT_NAME]
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
    if not key.strip():
        raise DataError(f"{place}: {where} an empty name was found.")
    return str(key).strip()


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
    """Read `parent child child ...` lines; a category below several parents is copied to each of them."""
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
