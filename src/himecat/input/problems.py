"""Problems found in the input, collected so that a user sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from himecat.errors import DataError

Severity = Literal["error", "warning", "note"]

_LONGEST_NAME = 120
# Together below 2,000 characters: a terminal still shows the end of the sentence, which says what to do.
_LONGEST_PLACE = 300
_LONGEST_MESSAGE = 1_600
_LARGE_NUMBER = 10**40
# Beside the first place of a problem that is found again and again.
_MORE_PLACES = 2


def clipped(text: str, most: int = _LONGEST_NAME) -> str:
    """Text for a message: what is too long loses its middle, so that both ends can be recognised.

    Examples
    --------
    >>> clipped("short"), clipped("abcdefghijklmnopqrstuvwxyz", 11)
    ('short', 'abcd...wxyz')
    """
    if len(text) <= most:
        return text
    kept = (most - 3) // 2
    return f"{text[:kept]}...{text[-kept:]}"


def quoted(name: object) -> str:
    """A name or a value from the data for a message: in quotation marks, and never long.

    Examples
    --------
    >>> quoted("opera"), quoted("o" * 900) == repr(clipped("o" * 900)), quoted(10**5000)
    ("'opera'", True, 'a number of more than 40 digits')
    """
    if isinstance(name, str):
        return repr(clipped(name))
    if isinstance(name, int | float):
        return described(name).removeprefix("the number ")
    return described(name)


def half_character(value: object) -> str:
    """The escape of the first half of a surrogate pair in strings, lists or mappings; empty where all are whole.

    It comes from text cut inside an escape, and nothing could write it to a file again.

    Examples
    --------
    >>> half_character(["a", {"b": "c\\ud83d"}]), half_character("a")
    ('\\\\ud83d', '')
    """
    # Nearly always it is a string or a list of strings.
    if isinstance(value, str):
        if value.isascii():
            return ""
    elif isinstance(value, list):
        try:
            if all(map(str.isascii, value)):
                return ""
        except TypeError:
            pass
    stack: list[Any] = [value]
    # A list may hold itself, and a YAML file may name one list many times.
    seen: set[int] = set()
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            if not part.isascii():
                try:
                    part.encode()
                except UnicodeEncodeError as error:
                    return f"\\u{ord(part[error.start]):04x}"
        elif isinstance(part, np.ndarray):
            stack += part.ravel().tolist()
        elif isinstance(part, Mapping | list | tuple | set | frozenset) and id(part) not in seen:
            seen.add(id(part))
            stack += [*part.keys(), *part.values()] if isinstance(part, Mapping) else part
    return ""


def shortened(names: Sequence[str], most: int = 10) -> str:
    """Names for a message: the first ones, and how many more there are.

    Examples
    --------
    >>> shortened(["ant", "bee", "cat"]), shortened(["ant", "bee", "cat"], most=2)
    ('ant, bee, cat', 'ant, bee and 1 more')
    """
    more = len(names) - most
    return ", ".join(map(clipped, names[:most])) + (f" and {more:,} more" if more > 0 else "")


def described(value: object) -> str:
    """What was found where something else was expected, in a user's words.

    Examples
    --------
    >>> described(None), described(2019), described({"a": 1}), described(True)
    ('nothing (null)', 'the number 2019', 'an object', 'the truth value true')
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, (bool, np.bool_)):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int) and abs(value) > _LARGE_NUMBER:
        return "a number of more than 40 digits"
    if isinstance(value, (int, float, np.number)):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "a list"
    return f"a value of type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: where it is, what was found and what to do; the same at several places is one finding.

    Examples
    --------
    >>> print(Problem("error", "docs.jsonl line 3", "the text is empty."))
    docs.jsonl line 3: the text is empty.
    >>> print(Problem("error", "docs.jsonl line 3", "the text is empty.", 5, ("docs.jsonl line 7",)))
    5 documents (docs.jsonl line 3, line 7, ...): the text is empty.
    """

    severity: Severity
    place: str
    message: str
    count: int = 1
    more_places: tuple[str, ...] = ()
    noun: str = "documents"

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.place}: {self.message}" if self.place else self.message
        places = [place for place in (self.place, *self.more_places) if place]
        # Of places in one file, the file is named once.
        ends = [place.rsplit(" ", 2) for place in places]
        shown = places[:1] + [
            " ".join(end[-2:]) if len(end) == 3 and end[0] == ends[0][0] else place
            for end, place in zip(ends[1:], places[1:], strict=True)
        ]
        listed = f" ({', '.join(shown)}{', ...' * (self.count > len(places))})" if places else ""
        return f"{self.count:,} {self.noun}{listed}: {self.message}"


def _source_of(place: str) -> str:
    """What several places have in common: the file of lines, the folder of files."""
    if place[-1:].isdigit():
        return "".join(place.rsplit(" ", 2)[:-2])
    return place.rpartition("/")[0] or place


@dataclass
class Problems:
    """A bounded list of findings; past `keep` different ones of a severity only the count grows.

    With `stops` off, errors are collected where work would stop at them, so that a check comes to its end.
    `noun` is what the places are, where several have the same problem.

    Examples
    --------
    >>> found = Problems()
    >>> found.error("docs.jsonl line 3", "the text is empty.")
    >>> found.raise_errors()
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: docs.jsonl line 3: the text is empty.
    """

    keep: int = 50
    items: list[Problem] = field(default_factory=list)
    counts: dict[Severity, int] = field(default_factory=lambda: {"error": 0, "warning": 0, "note": 0})
    has_fatal: bool = False
    stops: bool = True
    lenient: bool = False
    noun: str = "documents"
    _positions: dict[tuple[Severity, str, str], int] = field(default_factory=dict, repr=False)
    _kept: dict[Severity, int] = field(
        default_factory=lambda: {"error": 0, "warning": 0, "note": 0}, repr=False
    )

    def add(self, severity: Severity, place: str, message: str) -> None:
        """Record a finding of the given severity; one that is known at another place only gets that place."""
        self.counts[severity] += 1
        place, message = clipped(place, _LONGEST_PLACE), clipped(message, _LONGEST_MESSAGE)
        key = severity, _source_of(place), message
        position = self._positions.get(key)
        if position is not None:
            known = self.items[position]
            shown = known.more_places + ((place,) if len(known.more_places) < _MORE_PLACES else ())
            self.items[position] = replace(known, count=known.count + 1, more_places=shown)
            self._kept[severity] += 1
        elif len(self.of(severity)) < self.keep:
            self._positions[key] = len(self.items)
            self.items.append(Problem(severity, place, message, noun=self.noun))
            self._kept[severity] += 1

    def error(self, place: str, message: str) -> None:
        """Record something that stops the work; while errors are `softened`, a warning."""
        self.add("warning" if self.lenient else "error", place, message)

    def fatal(self, place: str, message: str) -> None:
        """Record an error of a whole file, which stops the work even where bad documents are skipped."""
        self.has_fatal = True
        self.add("error", place, message)

    def warning(self, place: str, message: str) -> None:
        """Record something that the user should look at but that does not stop the work."""
        self.add("warning", place, message)

    def note(self, place: str, message: str) -> None:
        """Record something worth knowing."""
        self.add("note", place, message)

    def extend(self, others: Problems) -> None:
        """Take in what was found elsewhere."""
        for one in others:
            for place in (one.place, *one.more_places):
                self.add(one.severity, place, one.message)
        for severity, count in others.counts.items():
            self.counts[severity] += count - sum(1 + len(one.more_places) for one in others.of(severity))
        self.has_fatal |= others.has_fatal

    @property
    def has_errors(self) -> bool:
        """Whether anything found stops the work."""
        return self.counts["error"] > 0

    def of(self, severity: Severity) -> list[Problem]:
        """The kept findings of one severity."""
        return [item for item in self.items if item.severity == severity]

    def hidden(self, severity: Severity) -> int:
        """How many findings of one severity were counted but not kept."""
        return self.counts[severity] - self._kept[severity]

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.items)

    @contextmanager
    def softened(self, lenient: bool) -> Iterator[None]:
        """Where `lenient`, take errors of this block as warnings; those of whole files stay errors."""
        self.lenient = lenient
        try:
            yield
        finally:
            self.lenient = False

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Take the lines of a `DataError` raised in this block as findings, unless errors stop the work."""
        try:
            yield
        except DataError as error:
            if self.stops:
                raise
            for line in str(error).splitlines():
                self.error("", line)

    def raise_errors(self, *, always: bool = False) -> None:
        """Raise one `DataError` that lists every error found; do nothing when there is none.

        Where errors do not stop the work, only with `always`.
        """
        if not self.has_errors or not (self.stops or always):
            return
        lines = [str(item) for item in self.of("error")]
        if self.hidden("error"):
            lines.append(f"... and {self.hidden('error')} more errors.")
        raise DataError("\n".join(lines))
