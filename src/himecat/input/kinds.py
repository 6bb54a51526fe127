"""What a user says of metadata fields: `created:month`, `price:number`, `tags:list(;)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from himecat.errors import UsageError
from himecat.input.dates import ORDERS
from himecat.input.problems import quoted
from himecat.input.rules import STEPS

AUTO, NAME, NUMBER, LIST, DATE = "auto", "name", "number", "list", "date"
DATES = (DATE, *STEPS)
KINDS = (NAME, NUMBER, LIST, *DATES, AUTO)
"""What the values of a field may be taken as."""

LISTED = (
    "name (as they are), number, date, year, month, day, decade, list, list(;) with a separator of your own, auto "
    "(found from the values)"
)
"""The kinds for a message."""

_KIND = re.compile(r"\s*([a-z]+)\s*(\(.*\))?\s*", re.IGNORECASE | re.DOTALL)
_ENTRY = re.compile(rf"(.+):({_KIND.pattern})", _KIND.flags)
_ESCAPES = {"\\t": "\t", "\\n": "\n"}


class Kind(NamedTuple):
    """What the values of a field are to be taken as, and what stands in brackets behind it.

    Examples
    --------
    >>> str(Kind("list", ";")), str(Kind("month"))
    ('list(;)', 'month')
    """

    name: str
    detail: str = ""

    def __str__(self) -> str:
        written = {value: key for key, value in _ESCAPES.items()}.get(self.detail, self.detail)
        return f"{self.name}({written})" if self.detail else self.name


def kind_of(written: str) -> Kind:
    """The kind that a user writes.

    Examples
    --------
    >>> kind_of("list( ; )"), kind_of("month(mdy)")
    (Kind(name='list', detail=';'), Kind(name='month', detail='mdy'))
    >>> kind_of("moth")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: Metadata cannot be taken as 'moth'; the kinds are name (as they are), number, ...
    """
    found = _KIND.fullmatch(written)
    name, brackets = (found[1].lower(), found[2]) if found else ("", None)
    detail = "" if brackets is None else brackets[1:-1].strip() or brackets[1:-1]
    detail = _ESCAPES.get(detail, detail) if name == LIST else detail.lower()
    fits = brackets is None or (name == LIST and detail) or (name in DATES and detail in ORDERS)
    if name not in KINDS or not fits:
        raise UsageError(
            f"Metadata cannot be taken as {quoted(written)}; the kinds are {LISTED}. Dates may say whether the day or "
            "the month stands first: month(dmy), month(mdy)."
        )
    return Kind(name, detail)


class Named(NamedTuple):
    """The names of metadata fields, and the kinds that were asked for.

    Examples
    --------
    >>> named(["authors", "created:month"])
    Named(names=('authors', 'created'), kinds={'created': Kind(name='month', detail='')})
    """

    names: tuple[str, ...]
    kinds: dict[str, Kind]

    def written(self) -> list[str] | dict[str, str]:
        """What `named` makes the same of: names where that is enough."""
        if not self.kinds and not any(map(_is_entry, self.names)):
            return list(self.names)
        return {name: str(self.kinds.get(name, AUTO)) for name in self.names}


def named(metadata: Iterable[str] | Mapping[str, str | None]) -> Named:
    """Take names and kinds apart. Behind the last colon of an entry stands a kind, where it is one.

    Parameters
    ----------
    metadata : sequence of str, or mapping of str to str or None
        Names, or `name:kind`; or a mapping from names to kinds, in which a name may have any colon.

    Examples
    --------
    >>> named(["dc:creator", "dc:date:auto"]).names, named({"dc:date": None}).names
    (('dc:creator', 'dc:date'), ('dc:date',))
    """
    names: list[str] = []
    kinds: dict[str, Kind] = {}
    for one in metadata:
        name, written = one, metadata[one] if isinstance(metadata, Mapping) else None
        if not isinstance(metadata, Mapping) and isinstance(one, str) and _is_entry(one):
            found = _ENTRY.fullmatch(one)
            assert found is not None
            name, written = found[1].strip(), found[2]
        names.append(name)
        if written is None:
            continue
        if not isinstance(written, str):
            raise UsageError(
                f"The kind of the metadata field {quoted(name)} is a string; the kinds are {LISTED}."
            )
        kind = kind_of(written)
        if kind.name != AUTO:
            kinds[name] = kind
    return Named(tuple(names), kinds)


def _is_entry(written: str) -> bool:
    found = _ENTRY.fullmatch(written)
    return found is not None and found[3].lower() in KINDS


def no_kind(name: str, seen: Iterable[str]) -> str:
    """What is wrong with the name of a field that no document has, where it is meant as a name and a kind.

    Examples
    --------
    >>> no_kind("created:moth", ["created"])
    "'created' cannot be taken as 'moth', the kinds are name (as they are), number, ..."
    >>> no_kind("created:moth", ["text"])
    ''
    """
    field, _, written = name.rpartition(":")
    if not field or field.strip() not in seen:
        return ""
    return f"{quoted(field.strip())} cannot be taken as {quoted(written)}, the kinds are {LISTED}."
