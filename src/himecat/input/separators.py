"""What separates the levels of a category written in one string: `A > B`, `A/B`, `A|B`, `A :: B`.

It is found from the values, and from the tree where there is one. What cannot be told with certainty is asked for.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from himecat.errors import DataError, UsageError, spelled
from himecat.input.problems import clipped, quoted

SLASH = "/"
"""The usual separator."""
FLAT = "none"
"""Given as the separator, names are taken as they are written."""

# Longer ones first: what `->` or `>>` separates is not separated by `>`.
SEPARATORS = ("->", ">>", "::", ">", "»", "→", "|", SLASH)
"""What is known to separate levels."""
_ANY = re.compile("|".join(map(re.escape, SEPARATORS)))
_LONGEST = 20
# Shares of the distinct labels that have a separator in them.
_ALL, _MOST, _SOME = 0.9, 0.5, 0.3
# Of labels, so many distinct ones tell what separates their levels.
_ASKED = 20_000


class Separator(NamedTuple):
    """What separates levels, and two labels that show it.

    Examples
    --------
    >>> Separator(">", ("rec > rec.autos",)).said()
    'labels: `>` separates levels: `rec > rec.autos` is rec / rec.autos (separator= says otherwise).'
    """

    text: str = SLASH
    examples: tuple[str, ...] = ()

    def said(self) -> str:
        """The note about it; empty where nothing was separated."""
        if not self.examples:
            return ""
        shown = ", ".join(
            f"`{clipped(one)}` is {clipped(' / '.join(split(one, self.text)))}" for one in self.examples
        )
        option = spelled("--separator", "separator=")
        return f"labels: `{self.text}` separates levels: {shown} ({option} says otherwise)."


def split(label: str, separator: str) -> list[str]:
    """The names of a label from the top down.

    Examples
    --------
    >>> split("rec > rec.autos", ">"), split("a -> b", ">"), split("TCP/IP", "none")
    (['rec', 'rec.autos'], ['a -> b'], ['TCP/IP'])
    """
    if separator == FLAT:
        return [label.strip()]
    if separator not in SEPARATORS:
        parts = label.split(separator)
    else:
        parts, start = [], 0
        for found in _ANY.finditer(label):
            if found[0] == separator:
                parts.append(label[start : found.start()])
                start = found.end()
        parts.append(label[start:])
    return [part.strip() for part in parts if part.strip()]


def checked(separator: object) -> str | None:
    """A separator as a user gives it; None where it is to be found.

    Examples
    --------
    >>> checked(" > "), checked("none"), checked(None)
    ('>', 'none', None)
    """
    if separator is None:
        return None
    if not isinstance(separator, str) or not separator.strip() or len(separator) > _LONGEST:
        raise UsageError(
            f"The separator of levels is a short string such as '>', or 'none' where names have no levels, not "
            f"{quoted(separator)}."
        )
    return separator.strip()


def joint_of(separator: str) -> str:
    """What stands between the names of a path that is written as one string.

    Examples
    --------
    >>> joint_of(">"), joint_of("/")
    (' > ', '/')
    """
    return separator if separator in "/|" else f" {separator} "


def path_of(label: object, separator: str) -> object:
    """A label with its levels apart, as a tree takes it; what has no levels stays as it is.

    Examples
    --------
    >>> path_of("rec > rec.autos", ">"), path_of(["rec > rec.autos"], ">"), path_of("rec", ">"), path_of("a/b", "/")
    (['rec', 'rec.autos'], ['rec', 'rec.autos'], 'rec', 'a/b')
    """
    if separator == SLASH:
        return label
    whole = label[0] if isinstance(label, list | tuple) and len(label) == 1 else label
    if not isinstance(whole, str):
        return label
    parts = split(whole, separator)
    return parts if len(parts) > 1 else (parts[0] if parts and isinstance(label, str) else label)


def split_labels(
    labels: Mapping[int, object], separator: str | None, known: Container[str] | None
) -> tuple[Mapping[int, object], Separator]:
    """Labels by row with their levels apart, and what separated them.

    Parameters
    ----------
    labels : mapping
        Labels as they are written.
    separator : str, optional
        What separates levels; by default it is found.
    known : container of str, optional
        The names of a tree.

    Examples
    --------
    >>> split_labels({0: "rec > rec.autos", 3: "rec > rec.sport"}, None, None)[0]
    {0: ['rec', 'rec.autos'], 3: ['rec', 'rec.sport']}
    """
    taken = find_separator(labels.values(), known) if separator is None else Separator(separator)
    if taken.text == SLASH:
        return labels, taken
    return {row: path_of(label, taken.text) for row, label in labels.items()}, taken


def find_separator(labels: Iterable[object], known: Container[str] | None) -> Separator:
    """Find out what separates the levels of labels.

    Parameters
    ----------
    labels : iterable
        Labels as the documents have them; lists of names have no separator.
    known : container of str, optional
        The names of a tree; with them, the separator is the one with which the labels are in it.

    Raises
    ------
    DataError
        Several separators are possible.

    Examples
    --------
    >>> find_separator(["Audio/Video > TV", "Audio/Video > Radio", "Books > Maps"], None).text
    '>'
    >>> find_separator(["a|b>c", "a|b>d", "a|e>f"], None)
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: labels: both `>` and `|` could separate levels, as in 'a|b>c': say which ...
    """
    distinct: dict[str, None] = {}
    for label in labels:
        whole = label[0] if isinstance(label, list | tuple) and len(label) == 1 else label
        if isinstance(whole, str) and whole.strip():
            distinct[whole.strip()] = None
            if len(distinct) >= _ASKED:
                break
    values = list(distinct)
    with_any = {one: [v for v in values if one in set(_ANY.findall(v))] for one in SEPARATORS}
    present = {one: found for one, found in with_any.items() if found}
    if not present:
        return Separator()
    if known is not None:
        return _by_tree(values, present, known)
    return _by_values(values, present)


def _by_tree(values: Sequence[str], present: Mapping[str, Sequence[str]], names: Container[str]) -> Separator:
    """The separator with which most labels are in the tree; the usual one where none is better."""

    def known(separator: str) -> int:
        return sum(
            value in names or all(part in names for part in split(value, separator)) for value in values
        )

    counts = {one: known(one) for one in (SLASH, *present)}
    best = max(counts, key=lambda one: (counts[one], one == SLASH))
    if best == SLASH or counts[best] < _MOST * len(values):
        return Separator()
    rivals = [one for one in counts if one != best and counts[one] == counts[best]]
    if rivals:
        raise _doubt(best, rivals[0], present)
    taken = [v for v in present[best] if v not in names]
    return Separator(best, tuple(taken[:2]))


def _by_values(values: Sequence[str], present: Mapping[str, Sequence[str]]) -> Separator:
    count = len(values)
    # A slash separates wherever it stands, unless something else does so with more right.
    possible = [one for one in present if one == SLASH or _is_possible(one, present[one], count)]
    if possible in ([], [SLASH]):
        return Separator(SLASH, tuple(present.get(SLASH, ())[:2]))
    first = [one for one in possible if all(_outranks(one, other, present, count) for other in possible)]
    if len(first) != 1:
        raise _doubt(possible[0], possible[1], present)
    found = first[0]
    if found != SLASH and not _is_certain(found, present[found], count):
        raise DataError(
            f"labels: `{found}` stands in {len(present[found]):,} of {count:,} different labels, such as "
            f"{quoted(present[found][0])}: say whether it separates levels ({_option(found)}) or not "
            f"({_option('none')})."
        )
    return Separator(found, tuple(present[found][:2]))


def _is_possible(separator: str, values: Sequence[str], count: int) -> bool:
    if len(values) < max(2, _SOME * count):
        return False
    return _repeats(separator, values) or _blanks_around(separator, values)


def _is_certain(separator: str, values: Sequence[str], count: int) -> bool:
    whole = all(len(split(value, separator)) > 1 for value in values)
    share = len(values) / count
    if not whole or share < _MOST:
        return False
    return _repeats(separator, values) or (share >= _ALL and _blanks_around(separator, values))


def _repeats(separator: str, values: Sequence[str]) -> bool:
    """Whether first parts come back: categories of one level stand above several of the next."""
    firsts = Counter(split(value, separator)[0] for value in values if split(value, separator))
    return len(firsts) < len(values)


def _blanks_around(separator: str, values: Sequence[str]) -> bool:
    return all(f" {separator} " in value for value in values)


def _outranks(one: str, other: str, present: Mapping[str, Sequence[str]], count: int) -> bool:
    if one == other:
        return True
    if len(present[one]) < _MOST * count:
        return False
    no_blanks = not any(f" {other} " in value for value in present[other])
    if _blanks_around(one, present[one]) and no_blanks:
        return True
    return len(present[one]) >= _ALL * count and len(present[other]) < _SOME * count


def _doubt(one: str, other: str, present: Mapping[str, Sequence[str]]) -> DataError:
    both = next((v for v in present.get(one, ()) if other in v), "")
    shown = both or (present.get(one) or present[other])[0]
    return DataError(
        f"labels: both `{one}` and `{other}` could separate levels, as in {quoted(shown)}: say which one does "
        f"({_option(one)} or {_option(other)}; {_option('none')} where names have no levels)."
    )


def _option(separator: str) -> str:
    return spelled(f"--separator {shlex.quote(separator)}", f"separator={separator!r}")
