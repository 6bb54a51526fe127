"""What becomes of the values of a metadata field: dates by year, numbers in groups, several values in one string.

A rule takes a value as it is named when it is read (`himecat.input.values`), so that it can be learned from all
distinct values of a column at once and applied to single ones later. A vocabulary of metadata values carries its rule,
as one of words carries its tokenizer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

from himecat.input.dates import ORDERS, read_date
from himecat.input.numbers import COMMA, POINT, number_text, read_number

STEPS = ("year", "month", "day", "decade")
"""By what dates are taken."""

_ENTITY = re.compile(r"(&#?\w{1,8});")
_MISSING = frozenset(("", "-", "--", "–", "—", ".", "?", "n/a", "na", "nan", "nat", "null", "none", "#n/a"))


class Rule(Protocol):
    """Makes metadata values of what a document holds."""

    noun: str

    def values(self, value: str) -> tuple[str, ...] | None:
        """The values; None for what cannot be read."""

    def state(self) -> dict[str, Any]:
        """What a model folder keeps."""


def is_blank(value: str) -> bool:
    """Whether a value only says that there is none.

    Examples
    --------
    >>> is_blank(" n/a "), is_blank("0")
    (True, False)
    """
    return len(value) < 8 and value.strip().lower() in _MISSING


@dataclass(frozen=True)
class Dates:
    """Dates, by a step.

    Examples
    --------
    >>> Dates("month").values("2024-05-01"), Dates("year").values("soon"), Dates("year").values("n/a")
    (('2024-05',), None, ())
    """

    step: str
    order: str = ORDERS[0]
    noun = "date"

    def values(self, value: str) -> tuple[str, ...] | None:
        """The year, month, day or decade."""
        found = read_date(value, self.order)
        if found is not None:
            return (found.by(self.step),)
        return () if is_blank(value) else None

    def state(self) -> dict[str, Any]:
        """What a model folder keeps."""
        return {"kind": "date", "step": self.step, "order": self.order}


@dataclass(frozen=True)
class Groups:
    """Numbers, in groups between borders; those beyond the outer borders are in the outer groups.

    Examples
    --------
    >>> rule = Groups((12.5, 20.0))
    >>> rule.names, rule.values("12.5"), rule.values("1e6"), rule.values("free")
    (('below 12.5', '12.5 to 20', '20 or more'), ('12.5 to 20',), ('20 or more',), None)
    """

    borders: tuple[float, ...]
    mark: str = POINT
    noun = "number"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        written = [number_text(border) for border in self.borders]
        between = (f"{low} to {high}" for low, high in pairwise(written))
        return (f"below {written[0]}", *between, f"{written[-1]} or more")

    def values(self, value: str) -> tuple[str, ...] | None:
        """The name of the group."""
        found = read_number(value, self.mark)
        if found is not None:
            return (self.names[bisect_right(self.borders, found)],)
        return () if is_blank(value) else None

    def state(self) -> dict[str, Any]:
        """What a model folder keeps."""
        return {"kind": "number", "borders": list(self.borders), "mark": self.mark}


@dataclass(frozen=True)
class Listed:
    """Several values in one string.

    Examples
    --------
    >>> Listed(";").values("red; old;; R&amp;D"), Listed(";").values("red")
    (('red', 'old', 'R&amp;D'), ('red',))
    """

    separator: str
    noun = "list"

    def values(self, value: str) -> tuple[str, ...]:
        """The parts."""
        separator = self.separator
        if separator not in value:
            return (value,)
        if separator == ";" and "&" in value:
            # The semicolon of an entity of HTML separates nothing.
            parts = [part.replace("\0", ";") for part in _ENTITY.sub("\\1\0", value).split(";")]
        else:
            parts = value.split(separator)
        return tuple(dict.fromkeys(part for one in parts if (part := one.strip())))

    def state(self) -> dict[str, Any]:
        """What a model folder keeps."""
        return {"kind": "list", "separator": self.separator}


def rule_from_state(state: Mapping[str, Any]) -> Rule:
    """A rule again from what it keeps; ValueError where it is none.

    Examples
    --------
    >>> rule_from_state(Groups((1.0, 5.0)).state()) == Groups((1.0, 5.0))
    True
    """
    kind = state["kind"]
    if kind == "date" and state["step"] in STEPS and state["order"] in ORDERS:
        return Dates(state["step"], state["order"])
    if kind == "number" and state["mark"] in (POINT, COMMA):
        borders = tuple(map(float, state["borders"]))
        if borders and all(low < high for low, high in pairwise(borders)):
            return Groups(borders, state["mark"])
    if kind == "list" and isinstance(state["separator"], str) and state["separator"]:
        return Listed(state["separator"])
    raise ValueError("a rule for metadata values that this version does not know")
