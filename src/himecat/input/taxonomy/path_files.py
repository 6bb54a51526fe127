"""Trees as people have them: one path per line, or a table of levels or of parents and children."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from himecat.errors import DataError
from himecat.input.formats import iter_records
from himecat.input.problems import Problems, quoted, shortened
from himecat.input.separators import FLAT, find_separator, split
from himecat.input.values import level_fields, level_path, value_name

TABLES = (".csv", ".xlsx", ".xlsm")
"""Files that hold a tree as a table."""

# A name of its own in a `parent child` line, it separates.
_ALONE = re.compile(r"(?<!\S)(->|>>|::|>|»|→|\||/)(?!\S)")
_PARENTS = ("parent", "parent_name", "parent name", "above")
_CHILDREN = ("child", "child_name", "child name", "name", "category", "label")


def paths_of_lines(text: str, is_paths: bool) -> list[list[str]] | None:
    """The paths of a file with one path per line; None where lines are `parent child child ...`.

    Parameters
    ----------
    text : str
        The text of the file.
    is_paths : bool
        Whether the file's name says that it holds paths.

    Examples
    --------
    >>> paths_of_lines("rec\\nrec > autos\\nrec > hockey\\n", False)
    [['rec'], ['rec', 'autos'], ['rec', 'hockey']]
    >>> paths_of_lines("a/b\\na/c\\n", False), paths_of_lines("ROOT a b\\na TCP/IP\\n", False)
    ([['a', 'b'], ['a', 'c']], None)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not is_paths:
        if any("\t" in line for line in lines):
            return None
        alone = sum(bool(_ALONE.search(line)) for line in lines)
        # As `parent child` lines, single names would all be roots.
        single = not any(" " in line for line in lines) and find_separator(lines, None).examples
        if not single and 2 * alone < len(lines):
            return None
    separator = find_separator(lines, None)
    return [split(line, separator.text if separator.examples else FLAT) for line in lines]


def paths_of_table(path: Path) -> list[list[str]] | str:
    """The paths of a table with columns of levels; of one with parents and children, `parent child` lines.

    Raises
    ------
    DataError
        The table has neither.
    """
    problems = Problems(noun="rows")
    records = [one for one in iter_records(path, problems) if one.fields is not None]
    problems.raise_errors()
    names = list(dict.fromkeys(name for one in records for name in (one.header or one.fields or ())))
    levels = level_fields(names)
    if levels:
        return _levelled(((one.place, one.fields or {}) for one in records), levels)
    by_form = {name.casefold().strip(): name for name in names}
    parent = next((by_form[one] for one in _PARENTS if one in by_form), None)
    child = next((by_form[one] for one in _CHILDREN if one in by_form), None)
    if parent is None or child is None:
        raise DataError(
            f"{path}: a table of categories has the columns level1, level2, ... or parent and child; found: "
            f"{shortened([quoted(name) for name in names])}."
        )
    return _edges([(_cell(one.fields, parent), _cell(one.fields, child)) for one in records])


def _cell(fields: Mapping[str, object] | None, name: str) -> str:
    value = (fields or {}).get(name)
    found = value if isinstance(value, str) else value_name(value) or ""
    return " ".join(found.split())


def _levelled(rows: Iterable[tuple[str, Mapping[str, object]]], levels: Sequence[str]) -> list[list[str]]:
    paths: list[list[str]] = []
    found = Problems(noun="rows")
    for place, fields in rows:
        path, gap = level_path(fields, levels)
        if gap:
            found.error(place, gap)
        elif path:
            paths.append(path)
    found.raise_errors()
    return paths


def _edges(pairs: Sequence[tuple[str, str]]) -> str:
    """Lines with tabs between the names; what has no parent is below the root."""
    children = {child for _, child in pairs}
    lines = [f"{parent or 'ROOT'}\t{child}" for parent, child in pairs if child]
    roots = dict.fromkeys(parent for parent, _ in pairs if parent and parent not in children)
    without = any(child and not parent for parent, child in pairs)
    if len(roots) + without > 1:
        lines += [f"ROOT\t{name}" for name in roots if name != "ROOT"]
    return "\n".join(lines)
