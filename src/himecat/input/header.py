"""The columns of a file of documents, before its documents are read: a table that is written begins with them."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from himecat.errors import DataError
from himecat.input.csv_form import CsvForm, csv_form
from himecat.input.formats import iter_records
from himecat.input.problems import Problems
from himecat.input.reading import AS_FOUND, Reading
from himecat.input.streams import BrokenFile, CheckedLines, LongLine, open_stream, path_kind, shown
from himecat.input.tables import column_names

MOST_COLUMNS = 16_000
"""Columns that a table may have: what a sheet of Excel holds, less room for those that are added."""


class Header(NamedTuple):
    """The names of the columns, in order.

    Of a delimited file also its delimiter, of a Parquet file its schema; of others, where they were asked for, the
    types of the values found in each column.

    Examples
    --------
    >>> Header(("id", "text"), delimiter=";").names
    ('id', 'text')
    """

    names: tuple[str, ...]
    delimiter: str = ""
    schema: Any = None
    types: dict[str, set[type]] | None = None


def read_header(path: str | os.PathLike[str], *, types: bool = False, reading: Reading = AS_FOUND) -> Header:
    """Read which columns a file of documents has; JSON lines are read once to the end for it.

    What is wrong with the file is left to whoever reads its documents.

    Parameters
    ----------
    path : path
        The file.
    types : bool
        Whether the types of values are wanted, where the file does not say them: the whole file is read.
    reading : Reading
        As for `iter_records`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "letters.jsonl"
    ...     _ = file.write_text('{"id": 1, "text": "a"}\\n{"id": 2, "sender": "J.", "text": "b"}')
    ...     read_header(file).names
    ('id', 'sender', 'text')
    """
    if path_kind(path) == "pipe":
        raise DataError(
            f"{shown(path)}: a table begins with the columns of all documents, and a pipe can be read only once: "
            "write the documents to a file, or the predictions as JSON lines (.jsonl)."
        )
    found = _read(path, types, reading)
    if len(found.names) > MOST_COLUMNS:
        raise _too_many(path)
    return found


def _too_many(path: str | os.PathLike[str]) -> DataError:
    return DataError(
        f"{shown(path)}: the documents have more than {MOST_COLUMNS:,} different fields, too many columns for a table: "
        "write JSON lines (.jsonl)."
    )


def _read(path: str | os.PathLike[str], types: bool, reading: Reading) -> Header:
    place = os.fsdecode(path)
    if not os.path.isdir(place):
        with open_stream(place) as (kind, stream):
            try:
                if kind in (".csv", ".tsv"):
                    return _delimited_header(stream, csv_form(place, reading.delimiter))
                if kind == ".parquet":
                    return _parquet_header(stream)
            except (
                BrokenFile,
                LongLine,
                DataError,
                csv.Error,
                EOFError,
                zlib.error,
                gzip.BadGzipFile,
                OSError,
            ):
                return Header(())
    names: list[str] = []
    found: dict[str, set[type]] = {}
    for record in iter_records(path, Problems(), reading=reading):
        if record.header and not found:
            # Of a sheet all columns are known, also those that are empty.
            names += record.header
            found = {name: set() for name in names}
            if not types:
                break
        for name, value in (record.fields or {}).items():
            if name not in found:
                _insert(name, names, record.fields or ())
                found[name] = set()
                if len(names) > MOST_COLUMNS:
                    raise _too_many(path)
            if types:
                found[name].add(_kind(value))
    return Header(tuple(names), types=found if types else None)


def _insert(name: str, names: list[str], fields: Iterable[str]) -> None:
    """Put a new name behind the one that it follows in its record."""
    before = ""
    for one in fields:
        if one == name:
            break
        before = one
    names.insert(
        names.index(before) + 1 if before in names else 0 if names and not before else len(names), name
    )


def _kind(value: object) -> type:
    """The type of a value; a list counts as one of texts only if all its parts are."""
    if isinstance(value, list | tuple):
        return list if all(isinstance(part, str) for part in value) else object
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        return object
    return type(value)


def _delimited_header(stream: io.BufferedReader, form: CsvForm) -> Header:
    lines = CheckedLines(stream, form.encoding)
    if form.hint:
        next(lines)
    rows = csv.reader(lines, delimiter=form.delimiter, strict=True)
    row = next((row for row in rows if row), [])
    return Header(column_names("", row), form.delimiter)


def _parquet_header(stream: Any) -> Header:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return Header(())
    try:
        schema = ParquetFile(stream).schema_arrow
        return Header(tuple(schema.names), schema=schema)
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, MemoryError):
        return Header(())
