"""Rows of Parquet files: only the columns that are asked for, and never more than fits into memory."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator
from typing import Any

from himecat.errors import MissingExtraError
from himecat.input.streams import BrokenFile, check_count, check_expansion
from himecat.input.tables import BATCH_ROWS, Rows, TableRows, arrow_bytes, arrow_rows, check_names

# Rows are read in batches of about so many bytes.
_BATCH_BYTES = 1 << 25
# In smaller files texts are read as dictionaries, which a large one would pay for with a quarter of its reading time.
_SMALL_FILE = 1 << 24


def parquet_rows(stream: io.BufferedReader, place: str, wanted: Collection[str] | None) -> TableRows:
    """The rows of a Parquet file.

    Raises
    ------
    BrokenFile
        The file is damaged, of another kind, or holds far more than its size tells.

    Examples
    --------
    >>> import pyarrow, pyarrow.parquet
    >>> file = io.BytesIO()
    >>> pyarrow.parquet.write_table(pyarrow.table({"text": ["A hen."], "eggs": [2]}), file)
    >>> found = parquet_rows(file, "docs.parquet", ["text"])
    >>> found.unread, list(found.batches)
    (('eggs',), [[{'text': 'A hen.'}]])
    """
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtraError.for_package("pyarrow", "files", "Reading Parquet") from None
    # Errors of the library and of Python's own decoding of what it gives.
    failures = (pyarrow.ArrowException, OSError, ValueError, LookupError, MemoryError)
    length = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        file = ParquetFile(stream)
        names = file.schema_arrow.names
    except UnicodeDecodeError:
        raise BrokenFile("the name of a column is not UTF-8: rename the column.") from None
    except failures as error:
        raise _damaged(error) from None
    check_names(place, names)
    chosen = [name for name in names if wanted is None or name in wanted]
    _check_sizes(file, set(chosen), length)
    # One long value may stand for a million rows; a dictionary holds it once.
    repeated = _repeated_columns(file, set(chosen)) if length < _SMALL_FILE else []
    if repeated:
        stream.seek(0)
        try:
            file = ParquetFile(stream, metadata=file.metadata, read_dictionary=repeated)
        except failures as error:
            # The names in its two descriptions of itself differ.
            raise _damaged(error) from None

    def batches() -> Iterator[Rows]:
        rows = _rows_per_batch(file, set(chosen))
        expanded = 0
        try:
            if not chosen:
                yield from _empty_rows(file.metadata.num_rows)
                return
            # Lists of texts are not read across two dictionaries.
            groups = [[group] for group in range(file.num_row_groups)] if repeated else [None]
            for group in groups:
                for batch in file.iter_batches(batch_size=rows, row_groups=group, columns=chosen):
                    expanded += sum(arrow_bytes(column) for column in batch.columns)
                    check_expansion(expanded, length)
                    yield arrow_rows(batch, chosen)
        except failures as error:
            raise _damaged(error) from None

    return TableRows.of(names, wanted, batches())


def _damaged(error: Exception) -> BrokenFile:
    reason = next(iter(str(error).splitlines()), "").rstrip(".")[:200]
    return BrokenFile(f"the Parquet file is damaged or of another kind ({reason or type(error).__name__}).")


def _empty_rows(count: int) -> Iterator[Rows]:
    for first in range(0, count, BATCH_ROWS):
        yield [{} for _ in range(min(BATCH_ROWS, count - first))]


def _chunks(file: Any, chosen: set[str]) -> Iterator[Any]:
    """What the file says of the parts of the chosen columns."""
    for group in range(file.metadata.num_row_groups):
        parts = file.metadata.row_group(group)
        for column in range(parts.num_columns):
            chunk = parts.column(column)
            if chunk.path_in_schema.split(".", 1)[0] in chosen or chunk.path_in_schema in chosen:
                yield chunk


def _check_sizes(file: Any, chosen: set[str], length: int) -> None:
    check_count(file.metadata.num_rows, length)
    check_expansion(sum(chunk.total_uncompressed_size for chunk in _chunks(file, chosen)), length)


def _repeated_columns(file: Any, chosen: set[str]) -> list[str]:
    return sorted(
        {
            chunk.path_in_schema
            for chunk in _chunks(file, chosen)
            if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
        }
    )


def _rows_per_batch(file: Any, chosen: set[str]) -> int:
    expanded: int = sum(chunk.total_uncompressed_size for chunk in _chunks(file, chosen))
    rows: int = file.metadata.num_rows
    return max(1, min(BATCH_ROWS, _BATCH_BYTES * rows // max(1, expanded)))
