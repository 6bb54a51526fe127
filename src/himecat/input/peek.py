"""A look at the first records of a source, before it is read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from himecat.errors import DataError, UsageError
from himecat.input.corpus import Corpus
from himecat.input.formats import Record, iter_records
from himecat.input.problems import Problems
from himecat.input.reading import Reading

FIRST = 2_000
"""How many records are looked at."""


def peek(
    source: Any, reading: Reading, count: int = FIRST, problems: Problems | None = None
) -> tuple[Any, list[Record]]:
    """The first records, and the source to read: what can be read only once is put together again.

    What cannot be read has no records here; reading it says why. Notes go to `problems`.

    Examples
    --------
    >>> source, first = peek(iter([{"text": "a"}, {"text": "b"}]), Reading(), 1)
    >>> first[0].fields, list(source)
    ({'text': 'a'}, [{'text': 'a'}, {'text': 'b'}])
    """
    kinds = {base.__name__ for base in type(source).__mro__}
    if isinstance(source, Corpus) or "RecordBatchReader" in kinds:
        return source, []
    if "LazyFrame" in kinds:
        source = source.collect()
    looked: Any = source
    if isinstance(source, Iterator):
        looked = list(islice(source, count))
        source = chain(looked, source)
    try:
        found, told = Problems(), Problems() if problems is None else problems
        records = list(islice(iter_records(looked, found, reading=reading), count))
        for note in found.of("note"):
            told.note(note.place, note.message)
        return source, records
    except (DataError, UsageError):
        return source, []


def names_in(records: list[Record]) -> list[str]:
    """The names of all fields of some records.

    Examples
    --------
    >>> names_in([Record("document 0", {"text": "a"}), Record("document 1", {"id": 1})])
    ['text', 'id']
    """
    return list(dict.fromkeys(name for one in records for name in (*(one.fields or ()), *one.unread)))
