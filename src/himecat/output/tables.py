"""Files with the user's own columns and those that say where each document was placed.

Rows are written as they come, so that memory does not grow with the file; it appears when the last one is written.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from himecat.errors import DataError, MissingExtraError, OutputError
from himecat.input.header import Header
from himecat.output.cells import Cells
from himecat.output.columns import Cell, Column
from himecat.runtime.files import atomic_bytes

KINDS = (".xlsx", ".csv", ".tsv", ".parquet")
"""The endings of files that are written as tables."""

_SHEET_ROWS = 1_048_576
_NO_TIME = datetime.datetime(1980, 1, 1)
# Rows of a Parquet file that are held until they are written together.
_GROUP_ROWS = 16_384
_GROUP_CHARACTERS = 1 << 25

Fields = Mapping[str, object] | None


class TableWriter(Protocol):
    """Takes the rows of a table.

    Examples
    --------
    >>> class Counting:
    ...     rows = 0
    ...     def write(self, fields, cells):
    ...         self.rows += 1
    >>> writer: TableWriter = Counting()
    """

    def write(self, fields: Fields, cells: Sequence[Cell]) -> None:
        """Write one document: its own fields, None where they could not be read, and the added cells."""


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name is written as a table.

    Examples
    --------
    >>> is_table("sorted.XLSX"), is_table("sorted.jsonl")
    (True, False)
    """
    return Path(path).suffix.lower() in KINDS


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    header: Header,
    added: Sequence[Column],
    cells: Cells,
    what: str = "The predictions",
) -> Iterator[TableWriter]:
    """A table of the kind that its name says, which appears under its name when the block ends well.

    Parameters
    ----------
    path : path
        The file: .xlsx, .csv, .tsv or .parquet.
    header : Header
        The user's own columns, which come first.
    added : sequence of Column
        The columns after them.
    cells : Cells
        Makes the cells; what it counts is complete when the block ends.
    what : str
        What is written, the subject of the sentence when it fails.

    Raises
    ------
    OutputError
        The file cannot be written.
    MissingExtraError
        A package for files of this kind is not installed; before the block starts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sorted.csv"
    ...     with open_table(file, Header(("id",)), [Column("path", str)], Cells()) as table:
    ...         table.write({"id": "=7"}, ["a/b"])
    ...     file.read_text("utf-8-sig").split()
    ['id,path', "'=7,a/b"]
    """
    kind = Path(path).suffix.lower()
    make: type[_Delimited | _Excel | _Parquet]
    make = _Excel if kind == ".xlsx" else _Parquet if kind == ".parquet" else _Delimited
    make.check()
    with atomic_bytes(path, what) as stream:
        writer = None
        try:
            writer = make(stream, kind, header, added, cells)
            yield writer
            writer.finish()
            writer = None
        except OutputError:
            raise
        except OSError as error:
            # Excel files are gathered in a temporary file of their own.
            raise OutputError(f"{what} cannot be written to {path}: {error.strerror or error}.") from error
        finally:
            if writer is not None:
                writer.abandon()


class _Delimited:
    """CSV and TSV in UTF-8 with the mark by which Excel knows it: without it, umlauts would be read wrong."""

    def __init__(
        self, stream: BinaryIO, kind: str, header: Header, added: Sequence[Column], cells: Cells
    ) -> None:
        self._names, self._added, self._cells = header.names, added, cells
        stream.write(codecs.BOM_UTF8)
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        delimiter = "\t" if kind == ".tsv" else (header.delimiter.strip("\t") or ",")
        self._rows = csv.writer(self._text, delimiter=delimiter)
        names = [*header.names, *(column.name for column in added)]
        self._rows.writerow([Cells().delimited("", name) for name in names])

    @staticmethod
    def check() -> None:
        pass

    def write(self, fields: Fields, cells: Sequence[Cell]) -> None:
        known, make = fields or {}, self._cells.delimited
        own = [make(name, known.get(name)) for name in self._names]
        self._rows.writerow(
            own + [make(column.name, value) for column, value in zip(self._added, cells, strict=True)]
        )

    def finish(self) -> None:
        self._text.detach()

    def abandon(self) -> None:
        pass


class _Archive(ZipFile):
    """The parts of a workbook without the time at which they were written: the same table is the same bytes."""

    def writestr(self, zinfo_or_arcname: Any, data: Any, *args: Any, **options: Any) -> None:
        super().writestr(self._info(zinfo_or_arcname), data)

    def write(self, filename: Any, arcname: Any = None, *args: Any, **options: Any) -> None:
        info = self._info(arcname or filename)
        with open(filename, "rb") as source, self.open(info, "w", force_zip64=True) as target:
            shutil.copyfileobj(source, target, 1 << 20)

    @staticmethod
    def _info(name: Any) -> ZipInfo:
        info = ZipInfo(os.fspath(name), _NO_TIME.timetuple()[:6])
        info.compress_type = ZIP_DEFLATED
        return info


class _Excel:
    """A workbook with one sheet, and another wherever one is full."""

    def __init__(
        self, stream: BinaryIO, kind: str, header: Header, added: Sequence[Column], cells: Cells
    ) -> None:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell

        self._stream, self._names, self._added, self._cells = stream, header.names, added, cells
        self._book, self._cell = Workbook(write_only=True), WriteOnlyCell
        self._title = "predictions" if added else "documents"
        self._sheet: Any = None
        self._left = 0

    @staticmethod
    def check() -> None:
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            raise MissingExtraError.for_package("openpyxl", "files", "Writing .xlsx") from None

    def write(self, fields: Fields, cells: Sequence[Cell]) -> None:
        if not self._left:
            self._begin_sheet()
        known, make = fields or {}, self._cells.excel
        row = [make(name, known.get(name)) for name in self._names]
        row += [make(column.name, value) for column, value in zip(self._added, cells, strict=True)]
        self._sheet.append([self._made(value) for value in row])
        self._left -= 1

    def _made(self, value: Any) -> Any:
        if value == "":
            return None
        if not isinstance(value, str):
            return value
        found = self._cell(self._sheet, value)
        # By itself a text that begins with "=" would become a formula, and "#N/A" an error.
        found.data_type = "s"
        return found

    def _begin_sheet(self) -> None:
        number = len(self._book.worksheets) + 1
        self._sheet = self._book.create_sheet(self._title if number == 1 else f"{self._title} {number}")
        self._sheet.freeze_panes = "A2"
        names = [*self._names, *(column.name for column in self._added)]
        self._sheet.append([self._made(Cells().excel("", name)) for name in names])
        self._left = _SHEET_ROWS - 1

    def finish(self) -> None:
        if self._sheet is None:
            self._begin_sheet()
        from openpyxl.writer.excel import ExcelWriter

        self._book.properties.created = self._book.properties.modified = _NO_TIME
        archive = _Archive(self._stream, "w", ZIP_DEFLATED)
        try:
            ExcelWriter(self._book, archive).save()
        except BaseException:
            # It would write its end to a file that is gone.
            archive.fp = None
            raise

    def abandon(self) -> None:
        for sheet in self._book.worksheets:
            with suppress(Exception):
                sheet.close()


class _Parquet:
    """Row groups of a Parquet file; columns of a Parquet input keep their types."""

    def __init__(
        self, stream: BinaryIO, kind: str, header: Header, added: Sequence[Column], cells: Cells
    ) -> None:
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        self._arrow, self._names, self._cells = pyarrow, header.names, cells
        if header.schema is not None:
            own = list(header.schema)
        else:
            own = [pyarrow.field(name, self._type_of(header, name)) for name in header.names]
        # A text takes any value; other types of our own are only those that all values have.
        self._as_text = [header.schema is None and one.type == pyarrow.string() for one in own]
        types = {str: pyarrow.string(), float: pyarrow.float64(), bool: pyarrow.bool_()}
        self._schema = pyarrow.schema([*own, *(pyarrow.field(one.name, types[one.type]) for one in added)])
        self._writer = ParquetWriter(stream, self._schema)
        self._begin_group()

    def _type_of(self, header: Header, name: str) -> Any:
        found = (header.types or {}).get(name, {str})
        arrow = self._arrow
        for kinds, kind in (
            ({bool}, arrow.bool_()),
            ({int}, arrow.int64()),
            ({int, float}, arrow.float64()),
            ({datetime.date}, arrow.date32()),
            ({datetime.datetime}, arrow.timestamp("us")),
            ({list}, arrow.list_(arrow.string())),
        ):
            if found and found <= kinds:
                return kind
        return arrow.string()

    @staticmethod
    def check() -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise MissingExtraError.for_package("pyarrow", "files", "Writing Parquet") from None

    def _begin_group(self) -> None:
        self._columns: list[list[Any]] = [[] for _ in self._schema]
        self._characters = 0

    def write(self, fields: Fields, cells: Sequence[Cell]) -> None:
        known = fields or {}
        row: list[Any] = []
        for name, as_text in zip(self._names, self._as_text, strict=True):
            value = known.get(name)
            if as_text and value is not None:
                value = self._cells.text(self._cells.plain(name, value))
            row.append(value)
            self._characters += len(value) if isinstance(value, str) else 0
        for column, cell in zip(self._columns, (*row, *cells), strict=True):
            column.append(cell)
        if len(self._columns[-1]) >= _GROUP_ROWS or self._characters >= _GROUP_CHARACTERS:
            self._write_group()

    def _write_group(self) -> None:
        arrays = []
        for values, field in zip(self._columns, self._schema, strict=True):
            try:
                arrays.append(self._arrow.array(values, field.type))
            except (self._arrow.ArrowException, TypeError, ValueError) as error:
                reason = str(error).split("\n", 1)[0].rstrip(".")
                raise DataError(
                    f"The column {field.name!r} cannot be written to Parquet ({reason}): write .csv or .xlsx."
                ) from None
        self._writer.write_table(self._arrow.table(arrays, schema=self._schema))
        self._begin_group()

    def finish(self) -> None:
        if self._columns[-1]:
            self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        # It would write its end to a file that is gone.
        self._writer.is_open = False
