"""Numbers as people write them, and groups of numbers with borders that can be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_FLOOR, Decimal

import numpy as np
import numpy.typing as npt

POINT, COMMA = ".", ","
"""What may stand before decimals."""

_MARKS = re.compile(r"[€$£¥]\s*|\s*[€$£¥%]")
_GROUPED = {POINT: r"[,'’ \u00a0\u202f]", COMMA: r"[.'’ \u00a0\u202f]"}
_FORMS = {
    mark: re.compile(
        rf"([+-]?)((?:[1-9]\d{{0,2}}(?:{groups}\d{{3}})+|\d+)?)(?:{re.escape(mark)}(\d+))?([eE][+-]?\d{{1,3}})?"
    )
    for mark, groups in _GROUPED.items()
}
_NO_DIGIT = re.compile(r"\D")
_CODE = re.compile(r"[+-]?0\d")
_LONGEST = 40
# Around a quantile, so much of a group may go to its neighbour for a border with fewer digits.
_SLACK = 0.2


def read_number(text: str, mark: str = POINT) -> float | None:
    """The number that a text is; None where it is none.

    Examples
    --------
    >>> read_number("12.5"), read_number("1,250.00 €"), read_number("1.250,5", ","), read_number("about 3")
    (12.5, 1250.0, 1250.5, None)
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    if not text[0].isdigit() or not text[-1].isdigit():
        text = _MARKS.sub("", text, count=1).replace("\u2212", "-")
    found = _FORMS[mark].fullmatch(text)
    if not found or not (found[2] or found[3]):
        return None
    number = float(
        f"{found[1]}{_NO_DIGIT.sub('', found[2]) or 0}.{found[3] or 0}{found[4] or ''}",
    )
    return number if abs(number) < np.inf else None


def is_code(text: str) -> bool:
    """Whether digits begin with a zero that a number would not have: a postcode, an article number.

    Examples
    --------
    >>> is_code("01067"), is_code("0.5")
    (True, False)
    """
    return _CODE.match(text) is not None


def mark_of(texts: Iterable[str]) -> str | None:
    """What stands before decimals, as all numbers together tell; None where they leave it open, as `1,250` does.

    Examples
    --------
    >>> mark_of(["12,5", "1.250"]), mark_of(["12.5", "1,250"]), mark_of(["1,250"]), mark_of(["12", "7"])
    (',', '.', None, '.')
    """
    counts = {POINT: 0, COMMA: 0}
    doubtful = False
    for text in texts:
        by_point, by_comma = read_number(text), read_number(text, COMMA)
        if by_point is not None and by_comma is not None:
            doubtful = doubtful or by_point != by_comma
        elif by_point is not None or by_comma is not None:
            counts[POINT if by_comma is None else COMMA] += 1
    if counts[POINT] == counts[COMMA]:
        return None if doubtful or counts[POINT] else POINT
    return max(counts, key=counts.__getitem__)


def number_text(number: float) -> str:
    """A number with all its digits and no exponent.

    Examples
    --------
    >>> number_text(12.50), number_text(1e6), number_text(1e-5)
    ('12.5', '1000000', '0.00001')
    """
    found = format(Decimal(repr(number)), "f")
    return (found.rstrip("0").rstrip(".") if "." in found else found) or "0"


def borders_of(
    numbers: npt.NDArray[np.float64], weights: npt.NDArray[np.int64], groups: int
) -> tuple[float, ...]:
    """Borders between about equally large groups, with few digits; a number belongs to the group that begins with it.

    Examples
    --------
    >>> borders_of(np.arange(1, 101) * 1.37, np.ones(100, int), 4)
    (30.0, 70.0, 100.0)
    """
    order = np.argsort(numbers, kind="stable")
    numbers, below = numbers[order], np.cumsum(weights[order])
    found: list[float] = []
    start = 0
    for group in range(1, groups):
        low, middle, high = (
            float(numbers[np.searchsorted(below, below[-1] * (group + slack) / groups)])
            for slack in (-_SLACK, 0, _SLACK)
        )
        if low == high:
            # Many have this one number: a group begins with it, or it is the smallest and a group ends with it.
            larger = numbers[numbers > low]
            border = low if low > numbers[0] else float(larger[0]) if len(larger) else low
        else:
            border = _shortest(low, middle, high)
        # None of the groups is empty.
        if (end := int(np.searchsorted(numbers, border))) > start:
            found.append(border)
            start = end
    return tuple(found)


def _shortest(low: float, middle: float, high: float) -> float:
    """The number with the fewest digits that is larger than `low` and at most `high`; the one nearest to the middle."""
    bottom, aim, top = (Decimal(repr(one)) for one in (low, middle, high))
    if bottom < 0 <= top:
        return 0.0
    for exponent in range(max(top.adjusted(), bottom.adjusted()) + 1, top.adjusted() - 25, -1):
        step = Decimal(1).scaleb(exponent)
        first, last = ((one / step).to_integral_value(ROUND_FLOOR) for one in (bottom, top))
        if first < last:
            return float(min(max((aim / step).to_integral_value(), first + 1), last) * step)
    return high
