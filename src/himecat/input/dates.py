"""Dates as people and programs write them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import NamedTuple

DAY_FIRST, MONTH_FIRST = "dmy", "mdy"
ORDERS = (DAY_FIRST, MONTH_FIRST)
"""In which order day and month may stand before the year."""

_TIME = r"(?:(?:T|,?\s+)\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp][Mm])?\s*(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _TIME)
_YEAR_AND_MONTH = re.compile(r"(\d{4})-(\d{2})")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})" + _TIME)
_DIGITS = re.compile(r"(\d{4})(?:(\d{2})(\d{2}))?")
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?"
_DAY_AND_NAME = re.compile(
    _WEEKDAY + r"(\d{1,2})(?:st|nd|rd|th)?[\s.-]+([a-z]{3,9})\.?[\s,-]+(\d{4})" + _TIME, re.IGNORECASE
)
_NAME_AND_DAY = re.compile(
    _WEEKDAY + r"([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})" + _TIME, re.IGNORECASE
)
_NAME_AND_YEAR = re.compile(r"([a-z]{3,9})\.?,?\s+(\d{4})", re.IGNORECASE)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH_OF = {form: number for number, name in enumerate(_MONTHS, 1) for form in (name, name[:3])} | {
    "sept": 9
}
_LONGEST = 60
# Of years with two digits, those from here on are of the last century.
_PIVOT = 70


class Date(NamedTuple):
    """A date; month and day are 0 where they are not known.

    Examples
    --------
    >>> Date(2024, 5).by("month"), Date(2024, 5, 1).by("day"), Date(2024, 5).by("decade")
    ('2024-05', '2024-05-01', '2020s')
    """

    year: int
    month: int = 0
    day: int = 0

    def by(self, step: str) -> str:
        """The name of the year, month, day or decade; of what is not known, the next larger."""
        if step == "decade":
            return f"{self.year // 10}0s"
        if step == "year" or not self.month:
            return f"{self.year:04}"
        if step == "month" or not self.day:
            return f"{self.year:04}-{self.month:02}"
        return f"{self.year:04}-{self.month:02}-{self.day:02}"

    @property
    def ordinal(self) -> int:
        """Days since the year 1, where what is not known is the first."""
        return datetime.date(self.year, self.month or 1, self.day or 1).toordinal()


def read_date(text: str, order: str | None = None, *, certain: bool = False) -> Date | None:
    """The date that a text is; None where it is none.

    Parameters
    ----------
    text : str
        `2024-05-01`, also with a time; `2024-05`, `1 May 2024`, `May 1, 2024`; `1.5.2024`, `1/5/2024`.
    order : {"dmy", "mdy"}, optional
        Whether the day or the month stands first where both are numbers and the year is last. Without it, the day
        does.
    certain : bool
        Leave out what may well be something else: `2024`, `20240501`, `1.5.24`.

    Examples
    --------
    >>> read_date("31.12.2023"), read_date("2024-05-01T10:00:00Z"), read_date("31/31/2023")
    (Date(year=2023, month=12, day=31), Date(year=2024, month=5, day=1), None)
    >>> read_date("3/4/2023", "mdy"), read_date("May 2024"), read_date("2024", certain=True)
    (Date(year=2023, month=3, day=4), Date(year=2024, month=5, day=0), None)
    """
    text = text.strip()
    # Most texts are no dates, and all dates have a digit at one of their ends.
    if not 4 <= len(text) <= _LONGEST or not any(map(str.isdigit, text)):
        return None
    if found := _YEAR_FIRST.fullmatch(text):
        return _checked(int(found[1]), int(found[3]), int(found[4]))
    if found := _YEAR_AND_MONTH.fullmatch(text):
        return _checked(int(found[1]), int(found[2]), 0)
    if found := _YEAR_LAST.fullmatch(text):
        if certain and len(found[4]) == 2:
            return None
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        if len(found[4]) == 2:
            year += 1900 if year >= _PIVOT else 2000
        return _checked(year, first, second) if order == MONTH_FIRST else _checked(year, second, first)
    if found := _DIGITS.fullmatch(text):
        if certain:
            return None
        return _checked(int(found[1]), int(found[2] or 0), int(found[3] or 0))
    if found := _DAY_AND_NAME.fullmatch(text):
        return _checked(int(found[3]), _MONTH_OF.get(found[2].lower(), 13), int(found[1]))
    if found := _NAME_AND_DAY.fullmatch(text):
        return _checked(int(found[3]), _MONTH_OF.get(found[1].lower(), 13), int(found[2]))
    if found := _NAME_AND_YEAR.fullmatch(text):
        return _checked(int(found[2]), _MONTH_OF.get(found[1].lower(), 13), 0)
    return None


def _checked(year: int, month: int, day: int) -> Date | None:
    try:
        datetime.date(year, month or 1, day or 1)
    except ValueError:
        return None
    return Date(year, month, day)


def order_of(texts: Iterable[str]) -> str | None:
    """Whether the day or the month stands first, as all dates together tell; None where they leave it open.

    Dates with dots have the day first, unless they cannot.

    Examples
    --------
    >>> order_of(["03/04/2023", "13/04/2023"]), order_of(["03/14/2023"]), order_of(["03/04/2023"])
    ('dmy', 'mdy', None)
    >>> order_of(["1.2.2023"]), order_of(["2023-02-01"])
    ('dmy', 'dmy')
    """
    open_, dotted = False, True
    for text in texts:
        if found := _YEAR_LAST.fullmatch(text.strip()):
            first, second = int(found[1]), int(found[3])
            if first > 12:
                return DAY_FIRST
            if second > 12:
                return MONTH_FIRST
            open_ = open_ or first != second
            dotted = dotted and found[2] == "."
    return DAY_FIRST if dotted or not open_ else None
