"""Rules for the values of a metadata field, learned from all of them.

What cannot be told with certainty is left alone: values are names then, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError
from himecat.input.dates import ORDERS, Date, order_of, read_date
from himecat.input.kinds import DATE, DATES, LIST, NAME, NUMBER, Kind
from himecat.input.numbers import COMMA, POINT, borders_of, is_code, mark_of, number_text, read_number
from himecat.input.problems import clipped, quoted
from himecat.input.rules import Dates, Groups, Listed, Rule, is_blank

Counts = npt.NDArray[np.int64]

# Fewer values tell nothing; more distinct ones tell nothing more.
_FEWEST, _ASKED = 10, 20_000
# Whether a column is one of dates or numbers, a look at so many decides whether to look at all.
_FIRST = 50
# So many of the values have to be dates, or numbers; the others are told as missing.
_NEARLY_ALL = 0.98
# A value should come back so often; so few distinct numbers, or days, are names as they are.
_BACK, _FEW_NUMBERS, _FEW_DAYS = 3, 20, 12
_LONG_YEARS, _DECADES_FROM = 3, 30
_MOST_GROUPS, _GROUP = 10, 10
# Whole numbers that hardly come back, far apart and more of them small than large, are amounts and no codes.
_HARDLY_BACK, _APART, _SKEWED = 0.8, 3, 0.4

# By falling right: what `;` separates may hold commas.
_SEPARATORS = (";", "|", ",")
# Of strings with a separator there must be so many distinct ones, in so many of the documents, and so many of their
# parts must stand in others, too.
_FEWEST_CELLS, _CELLS, _PARTS_BACK, _ENDS_BACK = 5, 0.05, {";": 0.1, "|": 0.1, ",": 0.4}, 0.05
# Commas stand in names and in prose, too: in lists, so many of the first parts stand elsewhere in other strings, and
# not nearly all have the same number of parts, as `Smith, John` has.
_MOVING, _OTHER_LENGTHS = 0.3, 0.1
_WORDS_OF_PART = 5


class Learned(NamedTuple):
    """A rule, and the note that says what was taken.

    Examples
    --------
    >>> days = [f"{year}-0{month}-01" for year in range(2017, 2024) for month in range(1, 10)]
    >>> found = learn_rule("created", None, days, np.ones(len(days), int))
    >>> found.rule, found.said
    (Dates(step='year', order='dmy'), 'created: dates, taken by year (2017 to 2023); --metadata created:month or ...')
    """

    rule: Rule
    said: str


class _Values(NamedTuple):
    """The distinct values of a field that say something, or some of them, and how often they occur."""

    field: str
    texts: list[str]
    counts: Counts


def learn_rule(field: str, kind: Kind | None, texts: Sequence[str], counts: Counts) -> Learned | None:
    """The rule for the values of a field; None where they are names as they are.

    Parameters
    ----------
    field : str
        The name of the field.
    kind : Kind or None
        What a user asked for; None where it is to be found.
    texts : sequence of str
        The distinct values.
    counts : array
        In how many documents each occurs.

    Raises
    ------
    DataError
        The values are not of the kind that was asked for, or leave open how to read them.

    Examples
    --------
    >>> learn_rule("zip", None, ["1067", "1069", "4109"] * 4, np.full(12, 5)) is None
    True
    """
    if kind is not None and kind.name == NAME:
        return None
    step = -(-len(texts) // _ASKED) or 1
    kept = [row for row in range(0, len(texts), step) if not is_blank(texts[row])]
    given = _Values(field, [texts[row] for row in kept], np.asarray(counts)[kept])
    if not kept:
        return None
    if kind is not None:
        if kind.name in DATES:
            return _dates_asked(given, kind)
        return _numbers(given, asked=True) if kind.name == NUMBER else _list_asked(given, kind)
    if given.counts.sum() < _FEWEST:
        return None
    return _dates(given) or _numbers(given, asked=False) or _list(given)


# -- dates ---------------------------------------------------------------------------------------------


def _dates(given: _Values) -> Learned | None:
    first = [
        read_date(text, certain=True) or read_date(text, ORDERS[1], certain=True)
        for text in given.texts[:_FIRST]
    ]
    if sum(one is not None for one in first) < _NEARLY_ALL * len(first):
        return None
    order = order_of(given.texts)
    found = [read_date(text, order, certain=True) for text in given.texts]
    known = _known(found)
    if given.counts[known].sum() < _NEARLY_ALL * given.counts.sum():
        return None
    dates = [one for one in found if one is not None]
    step = _step(dates, given.counts[known])
    if order is None and step not in ("year", "decade"):
        return None
    return _taken_by(given, dates, step, order, asked=False)


def _dates_asked(given: _Values, kind: Kind) -> Learned:
    order = kind.detail or order_of(given.texts)
    found = [read_date(text, order) for text in given.texts]
    known = _known(found)
    dates = [one for one in found if one is not None]
    if not dates:
        raise DataError(
            f"{given.field}: no value is a date that can be read, such as {quoted(given.texts[0])}: write dates as "
            f"2024-05-31, or take the values as they are (--metadata {_option(given.field, NAME)})."
        )
    step = _step(dates, given.counts[known]) if kind.name == DATE else kind.name
    if order is None and step not in ("year", "decade"):
        shown = next(text for text in given.texts if order_of([text]) is None)
        choices = " or ".join(_option(given.field, f"{kind.name}({one})") for one in ORDERS)
        raise DataError(
            f"{given.field}: {quoted(shown)} leaves open whether the day or the month stands first: say which "
            f"(--metadata {choices})."
        )
    return _taken_by(given, dates, step, order, asked=True)


def _step(dates: Sequence[Date], counts: Counts) -> str:
    """By what dates are taken, so that values come back."""
    total = int(counts.sum())
    distinct = {step: len({one.by(step) for one in dates}) for step in ("year", "month", "day")}
    if distinct["day"] <= _FEW_DAYS and total >= _BACK * distinct["day"]:
        return "day"
    days = [one.ordinal for one in dates]
    years = (max(days) - min(days)) / 365.25
    if years > _DECADES_FROM and total < _BACK * distinct["year"]:
        return "decade"
    if years > _LONG_YEARS or (distinct["year"] > 1 and total < _BACK * distinct["month"]):
        return "year"
    return "month" if distinct["month"] > 1 else "day"


def _taken_by(given: _Values, dates: Sequence[Date], step: str, order: str | None, *, asked: bool) -> Learned:
    names = sorted({one.by(step) for one in dates})
    span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    written = {"dmy": "with the day first, ", "mdy": "with the month first, ", None: ""}[order]
    if order and all(read_date(text, ORDERS[0]) == read_date(text, ORDERS[1]) for text in given.texts):
        written = ""
    other = "month" if step != "month" else "year"
    return Learned(
        Dates(step, order or ORDERS[0]),
        f"{given.field}: dates {written}taken by {step} ({span})".replace("dates taken", "dates, taken")
        + _otherwise(given.field, asked, other),
    )


# -- numbers -------------------------------------------------------------------------------------------


def _numbers(given: _Values, *, asked: bool) -> Learned | None:
    first = given.texts[:_FIRST]
    likely = sum(any(read_number(text, mark) is not None for mark in (POINT, COMMA)) for text in first)
    if not asked and likely < _NEARLY_ALL * len(first):
        return None
    mark = mark_of(given.texts)
    if not asked and (mark is None or any(map(is_code, given.texts))):
        return None
    found = [read_number(text, mark or POINT) for text in given.texts]
    known = _known(found)
    if not len(known):
        if not asked:
            return None
        raise DataError(
            f"{given.field}: no value is a number, such as {quoted(given.texts[0])}: take the values as they are "
            f"(--metadata {_option(given.field, NAME)})."
        )
    counts = given.counts[known]
    numbers = np.array([one for one in found if one is not None], dtype=np.float64)
    total = int(counts.sum())
    if not asked and (total < _NEARLY_ALL * given.counts.sum() or not _are_amounts(numbers, total)):
        return None
    borders = borders_of(numbers, counts, max(2, min(_MOST_GROUPS, total // _GROUP)))
    if not borders:
        return None
    rule = Groups(borders, mark or POINT)
    said = f"{given.field}: numbers, in {len(rule.names)} groups: {', '.join(rule.names)}"
    return Learned(rule, said + _otherwise(given.field, asked))


def _are_amounts(numbers: npt.NDArray[np.float64], total: int) -> bool:
    """Whether numbers measure something; otherwise they are names, as codes and ratings are."""
    distinct = np.unique(numbers)
    if len(distinct) <= _FEW_NUMBERS and total >= 2 * len(distinct):
        return False
    if not np.all(distinct == np.floor(distinct)):
        return True
    low, high, middle = distinct[0], distinct[-1], np.median(distinct)
    digits = {len(number_text(abs(float(one)))) for one in (low, high)}
    return bool(
        len(distinct) >= _HARDLY_BACK * total
        and high - low >= _APART * len(distinct)
        and middle - low < _SKEWED * (high - low)
        and len(digits) > 1
    )


# -- several values in one string ----------------------------------------------------------------------


def _list(given: _Values) -> Learned | None:
    for separator in _SEPARATORS:
        examples = _separates(given, separator)
        if examples:
            return _separated(given, separator, examples, asked=False)
    return None


def _list_asked(given: _Values, kind: Kind) -> Learned:
    possible = (kind.detail,) if kind.detail else _SEPARATORS
    found = {one: [text for text in given.texts if one in text] for one in possible}
    separator = max(found, key=lambda one: len(found[one]))
    if not found[separator] and not kind.detail:
        raise DataError(
            f"{given.field}: none of `;`, `|` and `,` stands in its values: say what separates them (--metadata "
            f"{_option(given.field, f'{LIST}(/)')}), or take them as they are ({_option(given.field, NAME)})."
        )
    return _separated(given, separator, found[separator][:2], asked=True)


def _separates(given: _Values, separator: str) -> list[str]:
    """Two strings that show how a separator separates values; none where it does not."""
    split = Listed(separator).values
    cells = {text: parts for text in given.texts if len(parts := split(text)) > 1}
    in_cells = sum(int(count) for text, count in zip(given.texts, given.counts, strict=True) if text in cells)
    if len(cells) < _FEWEST_CELLS or in_cells < _CELLS * given.counts.sum():
        return []
    # Where each part stands, in how many strings: first of several, later, or alone.
    firsts, laters = Counter[str](), Counter[str]()
    alone = {text for text in given.texts if text not in cells}
    for first, *others in cells.values():
        firsts[first] += 1
        laters.update(others)

    def comes_back(part: str) -> bool:
        return firsts[part] + laters[part] + (part in alone) > 1

    n_parts = sum(map(len, cells.values()))
    if (
        sum(map(comes_back, (part for parts in cells.values() for part in parts)))
        < _PARTS_BACK[separator] * n_parts
    ):
        return []
    # One name may stand in all of them, as that of the site in the titles of its pages.
    for place in (0, -1):
        if sum(comes_back(parts[place]) for parts in cells.values()) < _ENDS_BACK * len(cells):
            return []
    if separator == "," and not _like_commas_of_lists(cells, firsts, laters):
        return []
    best = sorted(cells, key=lambda text: (not all(map(comes_back, cells[text])), len(text)))
    return list(islice(best, 2))


def _like_commas_of_lists(
    cells: dict[str, tuple[str, ...]], firsts: Counter[str], laters: Counter[str]
) -> bool:
    """Whether commas separate values, and not a surname and a name, a town and a country, or clauses."""
    words = sum(len(part.split()) for parts in cells.values() for part in parts)
    if words > _WORDS_OF_PART * sum(map(len, cells.values())):
        return False
    lengths = Counter(map(len, cells.values()))
    if len(cells) - max(lengths.values()) < _OTHER_LENGTHS * len(cells):
        return False
    back = [parts[0] for parts in cells.values() if firsts[parts[0]] + laters[parts[0]] > 1]
    return bool(back) and sum(laters[first] > 0 for first in back) >= _MOVING * len(back)


def _separated(given: _Values, separator: str, examples: Sequence[str], *, asked: bool) -> Learned:
    rule = Listed(separator)
    shown = ", ".join(f"`{clipped(one)}` is {clipped(' / '.join(rule.values(one)))}" for one in examples)
    written = f"{separator!r}" if separator.isspace() else f"`{separator}`"
    said = f"{given.field}: {written} separates values" + (f": {shown}" if shown else "")
    return Learned(rule, said + _otherwise(given.field, asked))


# -- what is said --------------------------------------------------------------------------------------


def _otherwise(field: str, asked: bool, *kinds: str) -> str:
    if asked:
        return "."
    choices = " or ".join(_option(field, kind) for kind in (*kinds, NAME))
    return f"; --metadata {choices} says otherwise."


def _option(field: str, kind: str) -> str:
    written = f"{field}:{kind}"
    return written if written.replace(":", "").replace("_", "").isalnum() else f"'{written}'"


def _known(found: Sequence[object]) -> npt.NDArray[np.int64]:
    return np.array([row for row, one in enumerate(found) if one is not None], dtype=np.int64)
