"""Numbers, truth values and dates as the names that people would write for them."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from himecat.input.problems import quoted

# More digits than a float can tell apart.
_LARGEST = 2.0**53
_LARGEST_BITS = 1024
_LEVEL = re.compile(r"(level|category|cat|label|lvl|ebene|stufe)[\s_.-]*(\d{1,2})", re.IGNORECASE)


def number_name(value: object) -> str | None:
    """The name that a whole number stands for; None for anything else.

    Examples
    --------
    >>> number_name(5), number_name(5.0), number_name(5.5), number_name(True)
    ('5', '5', None, None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _LARGEST_BITS else None
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return str(int(value))
    return None


def value_name(value: object) -> str | None:
    """The name of a metadata value that is no string; None where it has none.

    Examples
    --------
    >>> value_name(2.50), value_name(True), value_name(datetime.datetime(2024, 5, 1, 10))
    ('2.5', 'true', '2024-05-01')
    """
    if isinstance(value, np.datetime64):
        value = date_of(value)
        if isinstance(value, str):
            return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not value.is_integer():
        return repr(value) if value - value == 0 else None
    return number_name(value)


def date_of(value: np.datetime64) -> datetime.datetime | str | None:
    """A date of NumPy as one of Python; as it is written where Python has none, None for no date.

    Examples
    --------
    >>> date_of(np.datetime64("2024-05-01T10:00:00.000000000")).year, date_of(np.datetime64("20000-01-01"))
    (2024, '20000-01-01')
    """
    found = value.astype("datetime64[us]").item()
    return found if found is None or isinstance(found, datetime.datetime) else str(value)


def as_label(label: Any) -> Any:
    """A label, as a name where it is a whole number.

    Examples
    --------
    >>> as_label(5), as_label("5"), as_label(["a", 2])
    ('5', '5', ['a', '2'])
    """
    if isinstance(label, str):
        return label
    if isinstance(label, list | tuple):
        return [number_name(part) or part for part in label]
    return number_name(label) or label


def level_fields(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that hold the levels of a category, from the top down: numbered without a gap, two or more.

    Examples
    --------
    >>> level_fields(["id", "Level 2", "Level 1", "text"]), level_fields(["level1", "level3"])
    (('Level 1', 'Level 2'), ())
    """
    found: dict[str, dict[int, str]] = {}
    for name in names:
        if match := _LEVEL.fullmatch(name.strip()):
            found.setdefault(match[1].lower(), {})[int(match[2])] = name
    for levels in found.values():
        numbers = sorted(levels)
        if len(numbers) > 1 and numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1:
            return tuple(levels[number] for number in numbers)
    return ()


def level_path(found: Mapping[str, object], levels: Collection[str]) -> tuple[list[str] | None, str]:
    """The category that the columns of levels name, None where they are empty; and what is wrong with it.

    Examples
    --------
    >>> level_path({"l1": "arts", "l2": " "}, ["l1", "l2"]), level_path({}, ["l1"])
    ((['arts'], ''), (None, ''))
    """
    path: list[str] = []
    gap = ""
    for name in levels:
        value = found.get(name)
        part = value.strip() if isinstance(value, str) else value_name(value)
        if not part:
            gap = gap or name
        elif gap:
            return None, f"the level {quoted(gap)} is empty, and {quoted(name)} below it is not: fill it in."
        else:
            path.append(part)
    return path or None, ""


def nearest(name: str, names: Collection[str]) -> str:
    """The end of a sentence that asks whether a similar name was meant; empty where none is similar.

    Examples
    --------
    >>> nearest("tag", ["tags", "text"]), nearest("labels", ["Labels"]), nearest("tag", ["x"])
    ("; did you mean 'tags'?", "; did you mean 'Labels'?", '')
    """
    by_form = {other.casefold(): other for other in names}
    found = difflib.get_close_matches(name.casefold(), by_form, 1, 0.6)
    return f"; did you mean {quoted(by_form[found[0]])}?" if found else ""
