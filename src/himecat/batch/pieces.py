"""Input cut into pieces: a file each, or some row groups of a large Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from himecat.batch.places import PARQUET, Stamp, found_files, is_remote, opened, stamp
from himecat.errors import DataError, MissingExtraError, UsageError
from himecat.input.formats import iter_records
from himecat.input.problems import Problems
from himecat.input.reading import AS_FOUND, Reading

# A piece ends with the row group that brings it to one of these: enough to be worth a start, little to do again.
_ROWS = 1 << 16
_BYTES = 1 << 27


@dataclass(frozen=True)
class Piece:
    """A piece of the input: a file, or its row groups from `first` to before `last`.

    Examples
    --------
    >>> Piece("a.jsonl", Stamp(10, "1"), "part-00000.parquet").is_parquet
    False
    """

    path: str
    stamp: Stamp
    part: str
    first: int = 0
    last: int = 0
    first_row: int = 0

    @property
    def is_parquet(self) -> bool:
        """Whether it is read as row groups."""
        return self.path.lower().endswith(PARQUET)


@dataclass(frozen=True)
class Input:
    """All pieces, in order, and the columns that any of their files has.

    Examples
    --------
    >>> Input((), ("id", "text"), False).names
    ('id', 'text')
    """

    pieces: tuple[Piece, ...]
    names: tuple[str, ...]
    differ: bool


def files_of(arguments: Sequence[str], without: str | None = None) -> list[str]:
    """The files that arguments stand for, in order and each once; those in the folder `without` are left out.

    Examples
    --------
    >>> files_of(["a.jsonl", "b.csv"])
    ['a.jsonl', 'b.csv']
    """
    found: list[str] = []
    for argument in arguments:
        found += found_files(argument) or [argument]
    if without is not None:
        found = [path for path in found if not _is_in(path, without)]
        if not found:
            raise DataError(f"Every file of the input lies in {without}, where the result goes.")
    return list(dict.fromkeys(found))


def _is_in(path: str, folder: str) -> bool:
    if is_remote(path) or is_remote(folder):
        return path.startswith(folder.rstrip("/") + "/")
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), ""))


def cut(files: Sequence[str], reading: Reading = AS_FOUND) -> Input:
    """Cut files into pieces; how depends on the files alone.

    Raises
    ------
    DataError
        A file is not there, or is a Parquet file that cannot be read.

    Examples
    --------
    >>> cut([]).pieces
    ()
    """
    pieces: list[Piece] = []
    columns: dict[str, None] = {}
    headers = set()
    for path in files:
        if os.path.isdir(path):
            raise UsageError(f"{path} is a folder of texts: name a file for the result, not a folder.")
        known = stamp(path)
        if path.lower().endswith(PARQUET):
            with parquet(path) as file:
                names = tuple(file.schema_arrow.names)
                ranges = list(_ranges(file.metadata))
        elif is_remote(path):
            raise UsageError(f"{path}: from an address only Parquet files are read.")
        else:
            # The first record is enough: to know all fields of JSON lines is to read them all.
            record = next(iter_records(path, Problems(), reading=reading), None)
            fields = () if record is None or record.fields is None else record.fields
            names, ranges = record.header if record and record.header else tuple(fields), [(0, 0, 0)]
        columns |= dict.fromkeys(names)
        headers.add(names)
        for first, last, row in ranges:
            pieces.append(Piece(path, known, f"part-{len(pieces):05}{PARQUET}", first, last, row))
    return Input(tuple(pieces), tuple(columns), len(headers) > 1)


def _ranges(metadata: Any) -> Iterator[tuple[int, int, int]]:
    first = row = begun = rows = size = 0
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group)
        rows, size, row = rows + found.num_rows, size + found.total_byte_size, row + found.num_rows
        if rows >= _ROWS or size >= _BYTES:
            yield first, group + 1, begun
            first, begun, rows, size = group + 1, row, 0, 0
    if first < metadata.num_row_groups or not metadata.num_row_groups:
        yield first, metadata.num_row_groups, begun


class parquet:
    """A Parquet file that is open while the block runs; what is wrong with it is said in a sentence.

    Examples
    --------
    >>> with parquet("no/such/file.parquet") as file:
    ...     pass
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no/such/file.parquet: the file is not there.
    """

    def __init__(self, path: str) -> None:
        self._path, self._open = path, opened(path)
        try:
            import pyarrow
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise MissingExtraError.for_package("pyarrow", "files", "Reading Parquet") from None
        self._make = ParquetFile
        self._failures = (pyarrow.ArrowException, OSError, ValueError, LookupError, MemoryError)

    def __enter__(self) -> Any:
        stream = self._open.__enter__()
        try:
            return self._make(stream)
        except self._failures as error:
            self._open.__exit__(None, None, None)
            raise self._damaged(error) from None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._open.__exit__(None, None, None)
        if isinstance(error, self._failures) and not isinstance(error, DataError) and _is_arrow(error):
            raise self._damaged(error) from None

    def _damaged(self, error: BaseException) -> DataError:
        reason = next(iter(str(error).splitlines()), "").rstrip(".")[:200] or type(error).__name__
        return DataError(f"{self._path}: the Parquet file is damaged or of another kind ({reason}).")


def _is_arrow(error: BaseException) -> bool:
    import pyarrow

    return isinstance(error, pyarrow.ArrowException) or type(error) is OSError
