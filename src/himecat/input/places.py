"""Where records were read, for messages: many places in little memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import overload

_LAST_NUMBER = 10**18


class Places(Sequence[str]):
    """The places of many records, kept as numbers: 8 bytes each instead of a string.

    Examples
    --------
    >>> places = Places()
    >>> for place in ("docs.jsonl line 1", "docs.jsonl line 4"):
    ...     places.append(place)
    >>> places[1], len(places)
    ('docs.jsonl line 4', 2)
    """

    def __init__(self) -> None:
        """Start without any place."""
        self._numbers = array("q")
        self._starts: list[int] = []
        self._prefixes: list[str] = []
        self._next = ""

    def append(self, place: str) -> None:
        """Add the place of the next record."""
        if place == self._next:
            # Nearly always the number after the last one: then there is nothing to take apart.
            number = self._numbers[-1] + 1
            self._numbers.append(number)
            self._next = f"{self._prefixes[-1]} {number + 1}"
            return
        prefix, space, digits = place.rpartition(" ")
        number = int(digits) if digits.isdecimal() and len(digits) < 19 else -1
        if number < 0 or not space or str(number) != digits:
            prefix, number = place, -1
        if not self._prefixes or self._prefixes[-1] != prefix:
            self._starts.append(len(self._numbers))
            self._prefixes.append(prefix)
        self._numbers.append(number)
        self._next = f"{prefix} {number + 1}" if 0 <= number < _LAST_NUMBER else ""

    def extend(self, prefix: str, first: int, count: int) -> None:
        """Add `count` places at once: `prefix`, a space, and the numbers from `first` on.

        Examples
        --------
        >>> places = Places()
        >>> places.extend("docs.jsonl line", 7, 3)
        >>> list(places)
        ['docs.jsonl line 7', 'docs.jsonl line 8', 'docs.jsonl line 9']
        """
        if count < 1:
            return
        self.append(f"{prefix} {first}")
        self._numbers.extend(array("q", range(first + 1, first + count)))
        self._next = f"{prefix} {first + count}"

    def __len__(self) -> int:
        """Count the places."""
        return len(self._numbers)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        """Give the place of a row, or of several."""
        if isinstance(row, slice):
            return [self[position] for position in range(*row.indices(len(self)))]
        number = self._numbers[row]
        prefix = self._prefixes[bisect_right(self._starts, row % len(self)) - 1]
        return f"{prefix} {number}" if number >= 0 else prefix
