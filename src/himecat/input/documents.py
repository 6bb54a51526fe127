"""Documents: the fields the user named, taken from records and checked."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from himecat.input.fields import Fields as Fields
from himecat.input.formats import Record, Source, iter_records
from himecat.input.ids import Ids
from himecat.input.kinds import NAME, no_kind
from himecat.input.label_studio import Differing, label_control
from himecat.input.problems import Problems, described, half_character, quoted
from himecat.input.streams import too_long
from himecat.input.values import as_label, level_path, nearest, value_name
from himecat.runtime.bounds import bounds

VALUE_SEPARATOR = "|"
"""Separates the values in a CSV or TSV cell of a metadata field."""

BATCH_SIZE = 64
"""Documents that are read and handed on together; the garbage collector looks at those of larger batches in vain."""

_BATCH_CHARACTERS = 1 << 20
_SEVERAL = (
    "the annotations name several categories, so it counts as unlabelled: keep one of them in Label Studio."
)
_SHOWN_FIELDS = 8
# More bits than an id of digits could be read with; Python refuses to write such numbers out.
_LARGEST_ID_BITS = 1024


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
    record: Mapping[str, object] | None = None


def read_documents(
    source: Source,
    fields: Fields,
    problems: Problems,
    *,
    remember: int | None = None,
    size: int = BATCH_SIZE,
    keep_records: bool = False,
    required: bool = False,
    listed: set[str] | None = None,
) -> Iterator[list[Document]]:
    """Read every document of a source, in order and in batches; this is the only way from a source to documents.

    Parameters
    ----------
    source : path, table or iterable
        Whatever `iter_records` reads.
    fields : Fields
        Which field plays which part.
    problems : Problems
        Receives what is wrong; a document with an error is given with `usable` False.
    remember : int, optional
        Two documents with the same id are an error. With this, they are found only if at most so many others lie
        between them, and memory does not grow with the source.
    size : int
        Most documents in a batch; a batch with long texts has fewer.
    keep_records : bool
        Whether every document carries all fields that it has in the source.
    required : bool
        Whether a metadata field that no document has is an error.
    listed : set of str, optional
        Receives the names of the metadata fields that hold lists.

    Examples
    --------
    >>> problems = Problems()
    >>> source = [{"text": "A hen.", "tags": "farm"}, {"text": " "}]
    >>> for batch in read_documents(source, Fields(metadata=("tags",)), problems):
    ...     print([(document.id, document.metadata, document.usable) for document in batch])
    [('0', {'tags': ['farm']}, True), ('1', {}, False)]
    >>> print(problems.of("error")[0])
    document 1: the text is empty.
    """
    reader = _Reader(fields, problems, remember, required, set() if listed is None else listed)
    batch: list[Document] = []
    characters = 0
    for record in iter_records(source, problems, None if keep_records else fields.all, fields.reading):
        document = reader.document(record)
        batch.append(document._replace(record=record.fields) if keep_records else document)
        characters += len(document.text)
        if len(batch) >= size or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    reader.finish()
    if batch:
        yield batch


class _Reader:
    """Turns the records of a source into documents; keeps the ids and the fields of those before."""

    def __init__(
        self, fields: Fields, problems: Problems, remember: int | None, required: bool, listed: set[str]
    ) -> None:
        self._fields, self._listed = fields, listed
        self._whole = frozenset(name for name, kind in fields.kinds.items() if kind.name == NAME)
        self._levels, self._required = fields.levels, required
        self._suggested: str | None = None
        self._problems = problems
        self._ids = Ids(remember)
        self._missing_everywhere = set(fields.metadata)
        self._fields_seen: dict[str, None] = {}
        self._longest = bounds().line

    def document(self, record: Record) -> Document:
        """The document of the next record."""
        found, fields = record.fields, self._fields
        if found is None:
            return Document(record.place, self._ids.skip(record.place), "", {}, None, False)
        if self._missing_everywhere:
            self._missing_everywhere.difference_update(record.header or found)
            self._fields_seen.update(dict.fromkeys(record.header or found))
            if record.unread:
                self._fields_seen.update(dict.fromkeys(record.unread))
        wrong: list[str] = []
        # Other records need no second look: a line is bounded, and its reader refuses half characters.
        longest = self._longest if record.unchecked else 0
        identity = _identity(found.get(fields.id), fields.id, wrong, longest)
        if wrong and identity is not None:
            # An id with half a character could not be written into a result.
            name, clash = self._ids.skip(record.place), ""
        else:
            name, clash = self._ids.add(identity, record.place)
        if clash:
            wrong.append(clash)
            # Of two documents with one id, the second is not the one that the id means.
            name = record.place
        text = _text(record, found, ("text",) if record.plain else fields.text, wrong, longest)
        if text is None:
            text = ""
            wrong.append(self._no_text(record, found))
        metadata = self._metadata(record, found, wrong, longest)
        label = self._label(record, found, wrong, longest)
        if longest:
            for field in fields.extra:
                _check_characters(found.get(field), field, wrong)
        if wrong:
            for message in wrong:
                self._problems.error(record.place, message)
            return Document(record.place, name, "", {}, None, False)
        document = Document(record.place, name, text, metadata, label, True)
        if not fields.extra:
            return document
        return document._replace(extra={field: found.get(field) for field in fields.extra})

    def _no_text(self, record: Record, found: Mapping[str, object]) -> str:
        """What to say where the text field is missing; the same for all documents of one source."""
        names = (*(record.header or found), *record.unread)
        if self._suggested is None:
            own = {self._fields.id, *self._fields.metadata, *self._fields.label_fields}
            texts = {
                name: len(value)
                for name, value in found.items()
                if isinstance(value, str) and name not in own
            }
            self._suggested = max(texts, key=texts.__getitem__, default="")
        wanted = " or ".join(map(quoted, self._fields.text[:_SHOWN_FIELDS]))
        message = f"the document has no field {wanted}; fields found: {_listing(names)}."
        if self._suggested and (self._suggested in names):
            message += (
                f" Name the text field with --text {shlex.quote(self._suggested)} (text={self._suggested!r})."
            )
        return message

    def _label(
        self, record: Record, found: Mapping[str, object], wrong: list[str], longest: int
    ) -> object | None:
        label: object | None
        if self._levels and not record.controls:
            label, gap = level_path(found, self._levels)
            if gap:
                wrong.append(gap)
        else:
            name = self._fields.label_fields[0]
            label = found.get(label_control(record, name) if record.controls else name)
            if isinstance(label, Differing):
                self._problems.warning(record.place, _SEVERAL)
                return None
            if label is None or is_missing(label):
                return None
            if not isinstance(label, str):
                label = as_label(label)
        if longest and label is not None:
            _check_characters(label, self._fields.label_fields[-1], wrong)
        return label

    def _metadata(
        self, record: Record, found: Mapping[str, object], wrong: list[str], longest: int
    ) -> dict[str, list[str]]:
        metadata: dict[str, list[str]] = {}
        for name in self._fields.metadata:
            value = found.get(name)
            if value is None:
                continue
            if isinstance(value, str):
                separated = record.delimited and name not in self._whole
                value = value.split(VALUE_SEPARATOR) if separated else [value]
            elif isinstance(value, list | tuple):
                self._listed.add(name)
            elif isinstance(value, set | frozenset):
                self._listed.add(name)
                value = sorted(value, key=str)
            else:
                known = value_name(value)
                if known is None:
                    wrong.append(_not_strings(name, described(value)))
                    continue
                value = [known]
            try:
                plain = all(map(str.isascii, value))
            except TypeError:
                plain = False
            values: dict[str, None] = dict.fromkeys(map(str.strip, value)) if plain else {}
            for part in () if plain else value:
                if isinstance(part, str):
                    values[part.strip()] = None
                    if longest:
                        _check_characters(part, name, wrong)
                elif (known := value_name(part)) is not None:
                    values[known] = None
                elif part is not None:
                    wrong.append(_not_strings(name, f"a list with {described(part)} in it"))
                    break
            values.pop("", None)
            if longest and (length := sum(map(len, values))) > longest:
                wrong.append(too_long(f"the metadata field {quoted(name)}", length))
            if values:
                metadata[name] = list(values)
        return metadata

    def finish(self) -> None:
        """Tell of metadata fields that no document had."""
        if not self._fields_seen:
            return
        seen = _listing(self._fields_seen)
        for kind in self._fields.metadata:
            if kind in self._missing_everywhere:
                tell = self._problems.error if self._required else self._problems.warning
                tell("", self._missing(kind, f"fields seen: {seen}."))

    def _missing(self, kind: str, seen: str) -> str:
        """What to say of a metadata field that no document has; it may be a name and a kind, or taken for them."""
        asked = self._fields.kinds.get(kind)
        if wrong := no_kind(kind, self._fields_seen):
            return f"{missing_field(kind)}; {wrong}"
        if asked is not None and (whole := f"{kind}:{asked}") in self._fields_seen:
            return f"{missing_field(kind)}; write {quoted(f'{whole}:auto')} for the field {quoted(whole)}."
        return f"{missing_field(kind)}{nearest(kind, self._fields_seen) or ';'} {seen}"


def missing_field(name: str) -> str:
    """The start of the warning about a metadata field that no document has.

    Examples
    --------
    >>> missing_field("authors")
    "no document has the metadata field 'authors'"
    """
    return f"no document has the metadata field {quoted(name)}"


def _identity(value: object, field: str, wrong: list[str], longest: int) -> str | None:
    if isinstance(value, float) and value.is_integer():  # what pandas makes of whole numbers with gaps
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _LARGEST_ID_BITS:
        return str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        wrong.append(
            f"the id in the field {quoted(field)} is {described(value)}: make it a string or a whole number."
        )
        return None
    if longest:
        _check_characters(value, field, wrong)
    return value


def _text(
    record: Record, found: Mapping[str, object], names: Sequence[str], wrong: list[str], longest: int
) -> str | None:
    """The text of a record; None where it has none of the fields."""
    if len(names) == 1:
        only = found.get(names[0])
        if (
            type(only) is str
            and only.isascii()
            and only
            and not only.isspace()
            and (not longest or len(only) <= longest)
        ):
            return only
    present = [name for name in names if name in found]
    if not present:
        # An empty cell of a workbook is not among the fields.
        if record.header and any(name in record.header for name in names):
            wrong.append("the text is empty.")
            return ""
        return None
    parts: list[str] = []
    for name in present:
        value = found[name]
        if record.delimited and not isinstance(value, str):
            value = value_name(value) or value
        if not isinstance(value, str):
            wrong.append(f"the text field {quoted(name)} holds {described(value)}: make it a string.")
            return ""
        if longest:
            _check_characters(value, name, wrong)
        parts.append(value)
    # A character has four bytes at most, so that few texts have to be encoded to know.
    if longest and 4 * sum(map(len, parts)) > longest < (length := sum(map(_utf8_length, parts))):
        wrong.append(too_long("the text", length))
        return ""
    text = "\n".join(part for part in parts if part and not part.isspace())
    if not text:
        wrong.append("the text is empty.")
    return text


def is_missing(label: object) -> bool:
    """Whether a document is unlabelled: None, NaN and blank or empty labels stand for nothing.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing([]), is_missing(" "), is_missing("bird")
    (True, True, True, False)
    """
    # NaN, NA and NaT are what a DataFrame puts where nothing was; pandas need not be imported to know them.
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, str):
        return not label.strip()
    if isinstance(label, (float, np.floating)):
        return bool(np.isnan(label))
    return isinstance(label, (list, tuple, np.ndarray)) and len(label) == 0


def _not_strings(name: str, found: str) -> str:
    return f"the metadata field {quoted(name)} holds {found}: make it a string, a number, a date, or a list of them."


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _check_characters(value: object, name: str, wrong: list[str]) -> None:
    if half := half_character(value):
        wrong.append(f"the field {quoted(name)} holds {half}, half of a character: repair or remove it.")


def _listing(names: Collection[str]) -> str:
    more = len(names) - _SHOWN_FIELDS
    first = ", ".join(map(quoted, islice(names, _SHOWN_FIELDS)))
    return (first + (f" and {more:,} more" if more > 0 else "")) or "none"
