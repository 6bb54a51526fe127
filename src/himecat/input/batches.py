"""Many documents at once: where all records of a batch are plain, their fields are checked as columns.

`documents.Checks` is the plain twin, which looks at every record by itself and knows what to say of a fault. A
batch with anything out of the ordinary in it is left to that one, so the two never differ in what they give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any, NamedTuple

from himecat.input.documents import Checks, Document, Fields, written_labels
from himecat.input.problems import Problems
from himecat.input.records import Batch, Source, iter_records


class Documents(NamedTuple):
    """Usable documents that stand together, as columns; `labels` goes by the row in these columns.

    Examples
    --------
    >>> documents = Documents("docs.jsonl line", 5, ["a", "b"], ["A hen.", "A fox."], {}, {1: "wild"}, {})
    >>> documents.place, documents.texts[1], documents.labels[1]
    ('docs.jsonl line 6', 'A fox.', 'wild')
    """

    prefix: str
    first: int
    ids: list[str]
    texts: list[str]
    metadata: dict[str, list[list[str]]]
    labels: dict[int, object]
    extra: dict[str, list[Any]]

    def single(self) -> Iterator[Document]:
        """The documents one by one."""
        for row, (name, text) in enumerate(zip(self.ids, self.texts, strict=True)):
            metadata = {kind: rows[row] for kind, rows in self.metadata.items()}
            extra = {field: values[row] for field, values in self.extra.items()}
            place = f"{self.prefix} {self.first + row}"
            yield Document(place, name, text, metadata, self.labels.get(row), True, extra)

    @property
    def place(self) -> str:
        """Where the last document was found."""
        return f"{self.prefix} {self.first + len(self.ids) - 1}"


def iter_parts(source: Source, fields: Fields, problems: Problems) -> Iterator[Document | Documents]:
    """What `iter_documents` gives, with many documents in one piece wherever that is possible.

    Examples
    --------
    >>> parts = iter_parts(["A hen.", "A fox."], Fields(), Problems())
    >>> [part.texts if isinstance(part, Documents) else part.text for part in parts]
    ['A hen.', 'A fox.']
    """
    checks = Checks(fields, problems)
    for found in iter_records(source, problems, partial(plain_documents, checks)):
        yield found if isinstance(found, Documents) else checks.document(found)
    checks.finish()


def plain_documents(checks: Checks, batch: Batch) -> Documents | None:
    """The documents of a batch if they are all usable and plain; None, and nothing done, if there is any doubt.

    Examples
    --------
    >>> columns = {"id": ["a", "b"], "text": ["A hen.", "A fox."], "labels": [None, "wild"]}
    >>> batch = Batch("docs.jsonl line", 5, 2, columns.__getitem__)
    >>> plain_documents(Checks(Fields(), Problems()), batch).labels
    {1: 'wild'}
    >>> columns["text"][0] = " "
    >>> plain_documents(Checks(Fields(), Problems()), batch) is None
    True
    """
    fields = checks.fields
    texts = _texts([batch.column(name) for name in fields.text])
    if not texts:
        return None
    metadata: dict[str, list[list[str]]] = {}
    for kind in fields.metadata:
        values = batch.column(kind)
        # Of a field that no document had so far, the other fields are noted one by one.
        if kind in checks.missing_everywhere and values.count(None) == len(values):
            return None
        rows = _rows(values)
        if rows is None:
            return None
        metadata[kind] = rows
    labels = batch.column(fields.labels)
    label_kinds = set(map(type, labels))
    identities = batch.column(fields.id)
    id_kinds = set(map(type, identities))
    # A float may be a missing value or a whole number that has lost digits.
    if float in label_kinds or not (id_kinds == {NoneType} or id_kinds <= {str, int}):
        return None
    names = None if id_kinds == {NoneType} else list(map(str, identities))
    if names is not None and not (all(map(str.strip, names)) and _writable(names)):
        return None
    ids = checks.ids.extend(names, batch.prefix, batch.first, batch.size)
    if ids is None:
        return None
    checks.missing_everywhere.clear()
    written = {} if label_kinds == {NoneType} else dict(enumerate(map(written_labels, labels)))
    written = {row: value for row, value in written.items() if value is not None}
    extra = {name: batch.column(name) for name in fields.extra}
    return Documents(batch.prefix, batch.first, ids, texts, metadata, written, extra)


def _texts(columns: Sequence[list[Any]]) -> list[str] | None:
    """The texts, if every document has one: a single column, or several joined by line breaks."""
    kinds = set(map(type, chain.from_iterable(columns)))
    if not kinds <= {str, NoneType}:
        return None
    if kinds == {str} and not any(not all(column) or any(map(str.isspace, column)) for column in columns):
        texts = columns[0] if len(columns) == 1 else list(map("\n".join, zip(*columns, strict=True)))
    else:
        parts = zip(*columns, strict=True)
        texts = ["\n".join([part for part in row if part and not part.isspace()]) for row in parts]
    # A part that was dropped for being blank has no half surrogates either: those are not white space.
    return texts if all(texts) and _writable(texts) else None


def _rows(values: list[Any]) -> list[list[str]] | None:
    """Metadata values as lists of distinct stripped strings."""
    kinds = set(map(type, values))
    if not kinds <= {list, str, NoneType}:
        return None
    rows: list[list[str]] = values
    if kinds != {list}:
        rows = [[value] if type(value) is str else value or [] for value in values]
    parts = list(chain.from_iterable(rows))
    if not set(map(type, parts)) <= {str} or not _writable(parts):
        return None
    tidy = all(parts) and parts == list(map(str.strip, parts))
    if not tidy or sum(map(len, map(set, rows))) < len(parts):
        rows = [[part for part in dict.fromkeys(map(str.strip, row)) if part] for row in rows]
    return rows


def _writable(texts: list[str]) -> bool:
    """Whether no text holds half of a surrogate pair."""
    if all(map(str.isascii, texts)):
        return True
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True
