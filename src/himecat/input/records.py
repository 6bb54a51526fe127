"""Records of any source: files, data frames, and lists of mappings, texts and paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol, TypeAlias

from himecat.errors import UsageError
from himecat.input.formats import Record, file_records
from himecat.input.problems import Problems
from himecat.input.tables import present_fields, table_batches

__all__ = ["Record", "Source", "Table", "iter_records"]


class Table(Protocol):
    """A pandas or polars data frame, or a pyarrow table."""

    @property
    def columns(self) -> Any:
        """The columns or their names."""


Source: TypeAlias = str | os.PathLike[str] | Iterable[Any] | Table


def iter_records(source: Source, problems: Problems) -> Iterator[Record]:
    """Read the records of a file, a table or a list, in order, without holding them all.

    Parameters
    ----------
    source : path, table or iterable
        A file as `file_records` reads it; a pandas, polars or pyarrow table; or mappings, texts and `Path`
        objects in any iterable.
    problems : Problems
        Receives what is wrong with single records. Such a record is still given, with `fields` None, so
        that positions stay aligned.

    Raises
    ------
    DataError
        A file is missing, not readable or of an unknown kind.

    Examples
    --------
    >>> source = ["A red fox.", {"text": "A hen.", "farm": None}]
    >>> [record.fields for record in iter_records(source, Problems())]
    [{'text': 'A red fox.'}, {'text': 'A hen.'}]
    """
    if isinstance(source, str | os.PathLike):
        return file_records(source, problems)
    batches = table_batches(source)
    if batches is not None:
        rows = enumerate(chain.from_iterable(batches))
        return (Record(f"row {number}", present_fields(row)) for number, row in rows)
    # Iterating over a table of another library would give its column names, as if they were texts.
    if isinstance(source, Mapping | bytes) or hasattr(source, "columns") or not isinstance(source, Iterable):
        kind = type(source).__name__
        known = "a path, a pandas, polars or pyarrow table, or a list of mappings or texts"
        raise UsageError(f"Documents come as {known}, not as a {kind}.")
    return _listed_records(source, problems)


def _listed_records(items: Iterable[Any], problems: Problems) -> Iterator[Record]:
    for position, item in enumerate(items):
        place = f"document {position}"
        if isinstance(item, str):
            yield Record(place, {"text": str(item)}, plain=True)
        elif isinstance(item, Mapping):
            yield Record(place, present_fields(item))
        elif isinstance(item, os.PathLike):
            yield from file_records(item, problems)
        else:
            problems.error(place, f"this is a {type(item).__name__}: a document is a mapping or a text.")
            yield Record(place, None)
