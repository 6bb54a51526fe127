"""Documents: the fields the user named, taken from records and checked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from himecat.errors import UsageError
from himecat.input.places import Places
from himecat.input.problems import Problems
from himecat.input.records import Record, Source, iter_records

VALUE_SEPARATOR = "|"
"""Separates the values in a CSV or TSV cell of a metadata field."""

_SHOWN_FIELDS = 8


@dataclass(frozen=True)
class Fields:
    """Which field of a record plays which part.

    Parameters
    ----------
    text : tuple of str
        Fields whose strings make up the text, in order; joined by a line break.
    metadata : tuple of str
        Fields that hold a string or a list of strings. In CSV and TSV files `|` separates values.
    labels : str
        Field with the category; documents without it are unlabelled.
    id : str
        Field with the document's id; without it the id is the position, counted from 0.
    extra : tuple of str
        Fields that are passed on as they are, for the readers of further columns.

    Examples
    --------
    >>> Fields(text=("title", "abstract"), metadata=("authors",)).metadata
    ('authors',)
    """

    text: tuple[str, ...] = ("text",)
    metadata: tuple[str, ...] = ()
    labels: str = "labels"
    id: str = "id"
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the names; a single name may stand for a tuple of one."""
        for part in ("text", "metadata"):
            names = getattr(self, part)
            object.__setattr__(self, part, (names,) if isinstance(names, str) else tuple(names))
        if not self.text:
            raise UsageError("Name at least one text field.")
        seen: set[str] = set()
        for name in (*self.text, *self.metadata, self.labels, self.id):
            if not isinstance(name, str) or not name.strip():
                raise UsageError(f"A field name must be a non-empty string, not {name!r}.")
            if name in seen:
                raise UsageError(f"The field {name!r} is named twice; a field can play one part only.")
            seen.add(name)


class Document(NamedTuple):
    """One checked document; where it is not `usable`, the reason is among the problems.

    Examples
    --------
    >>> Document("document 0", "a", "A red fox.", {"tags": ["wild"]}, None, True).metadata["tags"]
    ['wild']
    """

    place: str
    id: str
    text: str
    metadata: dict[str, list[str]]
    labels: object | None
    usable: bool
    extra: Mapping[str, object] = {}


def iter_documents(
    source: Source, fields: Fields, problems: Problems, remember: int | None = None
) -> Iterator[Document]:
    """Give every document of a source, in order; those with an error are given with `usable` False.

    Parameters
    ----------
    remember : int, optional
        Two documents with the same id are an error. With this, they are found only if at most so many others lie
        between them, and memory does not grow with the source.

    Examples
    --------
    >>> problems = Problems()
    >>> source = [{"text": "A hen.", "tags": "farm"}, {"text": " "}]
    >>> [(d.id, d.metadata, d.usable) for d in iter_documents(source, Fields(metadata=("tags",)), problems)]
    [('0', {'tags': ['farm']}, True), ('1', {}, False)]
    >>> print(problems.of("error")[0])
    document 1: the text is empty.
    """
    checks = Checks(fields, problems, remember)
    for record in iter_records(source, problems):
        yield checks.document(record)
    checks.finish()


class Checks:
    """Turns the records of a source into documents; knows what came before.

    Examples
    --------
    >>> checks = Checks(Fields(), Problems())
    >>> checks.document(Record("document 0", {"text": "A hen."})).text
    'A hen.'
    """

    def __init__(self, fields: Fields, problems: Problems, remember: int | None = None) -> None:
        self.fields = fields
        self.ids = _Ids() if remember is None else _RecentIds(remember)
        self.missing_everywhere = set(fields.metadata)
        self._problems = problems
        self._fields_seen: dict[str, None] = {}

    def document(self, record: Record) -> Document:
        """The document of the next record."""
        found, fields = record.fields, self.fields
        if found is None:
            return Document(record.place, self.ids.skip(record.place), "", {}, None, False)
        if self.missing_everywhere:
            self.missing_everywhere.difference_update(found)
            self._fields_seen.update(dict.fromkeys(found))
        wrong: list[str] = []
        identity = _identity(found.get(fields.id), fields.id, wrong)
        name, clash = self.ids.add(identity, record.place)
        if clash:
            wrong.append(clash)
            # Of two documents with one id, the second is not the one that the id means.
            name = record.place
        text = _text(found, ("text",) if record.plain else fields.text, wrong)
        metadata = _metadata(record, found, fields.metadata, wrong)
        if wrong:
            for message in wrong:
                self._problems.error(record.place, message)
            return Document(record.place, name, "", {}, None, False)
        labels = written_labels(found.get(fields.labels))
        extra = {field: found.get(field) for field in fields.extra}
        return Document(record.place, name, text, metadata, labels, True, extra)

    def finish(self) -> None:
        """Tell of metadata fields that no document had."""
        if self._fields_seen:
            for kind in self.fields.metadata:
                if kind in self.missing_everywhere:
                    seen = _listing(list(self._fields_seen))
                    message = f"no document has the metadata field {kind!r}; fields seen: {seen}."
                    self._problems.warning("", message)


class _Ids:
    """The ids given so far; ids from the source are remembered, positions that stand in for one are not."""

    def __init__(self) -> None:
        self._places = Places()
        self._from_source: dict[str, int] = {}
        self._is_position = bytearray()
        self._any_position = False

    def skip(self, place: str) -> str:
        """Register a document whose id is not known; what stands in for it is not taken.

        That is its position or, where others have ids that could be the same, its place.
        """
        self._places.append(place)
        self._is_position.append(False)
        return place if self._from_source else str(len(self._places) - 1)

    def add(self, identity: str | None, place: str) -> tuple[str, str]:
        """Register the next document; give its id and, where the id is taken, the message that says so."""
        position = len(self._places)
        self._places.append(place)
        self._is_position.append(identity is None)
        self._any_position |= identity is None
        name = str(position) if identity is None else identity
        earlier = self._from_source.get(name)
        if earlier is None and identity is not None:
            self._from_source[name] = position
            if identity.isdecimal() and len(identity) < 19:
                number = int(identity)
                if number < position and str(number) == identity and self._is_position[number]:
                    earlier = number
        if earlier is None:
            return name, ""
        return name, _clash(name, identity is None, self._places[earlier], bool(self._is_position[earlier]))

    def extend(self, names: list[str] | None, prefix: str, first: int, count: int) -> list[str] | None:
        """Register documents that stand together, all with an id or all without (None); give their ids.

        Where an id is taken, or looking further is needed to know, nothing is done and None is given.
        """
        position = len(self._places)
        if names is None:
            if self._from_source:
                return None
            self._any_position = True
        elif self._any_position or len(set(names)) < count or not self._from_source.keys().isdisjoint(names):
            return None
        else:
            self._from_source.update(zip(names, range(position, position + count), strict=True))
        self._places.extend(prefix, first, count)
        self._is_position.extend(bytes([names is None]) * count)
        return list(map(str, range(position, position + count))) if names is None else names


class _RecentIds:
    """The last ids given, by the source or for their position."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._any_from_source = False
        self._known: dict[str, tuple[str, bool]] = {}
        # A dictionary finds its first key slowly once many before it are gone.
        self._in_order: deque[str] = deque()

    def skip(self, place: str) -> str:
        """Register a document whose id is not known; what stands in for it is not taken."""
        self._count += 1
        return place if self._any_from_source else str(self._count - 1)

    def extend(self, names: list[str] | None, prefix: str, first: int, count: int) -> None:
        """One at a time only."""

    def add(self, identity: str | None, place: str) -> tuple[str, str]:
        """Register the next document; give its id and, where the id is taken, the message that says so."""
        name = str(self._count) if identity is None else identity
        self._count += 1
        self._any_from_source |= identity is not None
        earlier = self._known.get(name)
        if earlier is not None:
            return name, _clash(name, identity is None, *earlier)
        self._known[name] = place, identity is None
        self._in_order.append(name)
        if len(self._in_order) > self._most:
            del self._known[self._in_order.popleft()]
        return name, ""


def _clash(name: str, stands_in: bool, first: str, first_stands_in: bool) -> str:
    if stands_in:
        return f"there is no id, and its position {name} is the id of {first}: give every document an id."
    if first_stands_in:
        return f"the id {name!r} is the position of {first}, which has no id: give every document an id."
    return f"the id {name!r} is also the id of {first}: ids must differ."


def _identity(value: object, field: str, wrong: list[str]) -> str | None:
    if isinstance(value, float) and value.is_integer():  # what pandas makes of whole numbers with gaps
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        wrong.append(
            f"the id in the field {field!r} is {_described(value)}: make it a string or a whole number."
        )
        return None
    if not value.isascii():
        _check_characters(value, field, wrong)
    return value


def _text(found: Mapping[str, object], names: Sequence[str], wrong: list[str]) -> str:
    if len(names) == 1:
        only = found.get(names[0])
        if type(only) is str and only.isascii() and only and not only.isspace():
            return only
    present = [name for name in names if name in found]
    if not present:
        wanted = " or ".join(repr(name) for name in names)
        wrong.append(f"the document has no field {wanted}; fields found: {_listing(list(found))}.")
        return ""
    parts: list[str] = []
    for name in present:
        value = found[name]
        if not isinstance(value, str):
            wrong.append(f"the text field {name!r} holds {_described(value)}: make it a string.")
            return ""
        _check_characters(value, name, wrong)
        parts.append(value)
    text = "\n".join(part for part in parts if part and not part.isspace())
    if not text:
        wrong.append("the text is empty.")
    return text


def _metadata(
    record: Record, found: Mapping[str, object], names: Sequence[str], wrong: list[str]
) -> dict[str, list[str]]:
    metadata: dict[str, list[str]] = {}
    for name in names:
        value = found.get(name)
        if value is None:
            continue
        if isinstance(value, str):
            value = value.split(VALUE_SEPARATOR) if record.delimited else [value]
        elif not isinstance(value, list | tuple):
            wrong.append(_not_strings(name, _described(value)))
            continue
        try:
            plain = all(map(str.isascii, value))
        except TypeError:
            plain = False
        values: dict[str, None] = dict.fromkeys(map(str.strip, value)) if plain else {}
        for part in () if plain else value:
            if isinstance(part, str):
                values[part.strip()] = None
                _check_characters(part, name, wrong)
            elif part is not None:
                wrong.append(_not_strings(name, f"a list with {_described(part)} in it"))
                break
        values.pop("", None)
        if values:
            metadata[name] = list(values)
    return metadata


def written_labels(value: object) -> object | None:
    """The labels as they were written; None where there are none.

    Examples
    --------
    >>> written_labels("bird"), written_labels([]), written_labels(" ")
    ('bird', None, None)
    """
    if value is None or value in ([], ()) or (isinstance(value, str) and not value.strip()):
        return None
    return value


def _not_strings(name: str, found: str) -> str:
    return f"the metadata field {name!r} holds {found}: make it a string or a list of strings."


def _check_characters(value: str, name: str, wrong: list[str]) -> None:
    """Half a surrogate pair comes from text cut inside an escape; nothing could write it to a file again."""
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = f"\\u{ord(value[error.start]):04x}"
        wrong.append(f"the field {name!r} holds {code}, half of a character: repair or remove it.")


def _described(value: object) -> str:
    """What was found, in a user's words.

    Examples
    --------
    >>> _described(2019), _described({"a": 1}), _described(True)
    ('the number 2019', 'an object', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a value of type {type(value).__name__}"


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN_FIELDS]) or "none"
    more = len(names) - _SHOWN_FIELDS
    return f"{shown} and {more} more" if more > 0 else shown
