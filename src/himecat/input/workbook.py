"""Workbooks of spreadsheet programs: the rows of the first sheet as records, and a workbook made of rows."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from himecat.errors import DataError, MissingExtraError, UsageError
from himecat.input.formats import Record
from himecat.input.tables import check_names
from himecat.runtime.bounds import bounds, over
from himecat.runtime.terminal import printable

_CELL = 32_767
_UNPACKED = 1 << 26
_MOST_COLUMNS = 1_000
# XML has no way to write them.
_NO_XML = re.compile("[\ufffe\uffff]")
_DATES = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def open_openpyxl(purpose: str) -> Any:
    """The package that reads and writes workbooks, or the sentence that says how to get it."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError.for_package("openpyxl", "files", purpose) from None
    return openpyxl


def workbook_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The rows below the header of a workbook's first sheet; all cells are texts, and empty ones are left out.

    Raises
    ------
    DataError
        There is no such file, it is no workbook, it is damaged, or it unpacks to more than the bounds allow.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "answers.xlsx")
    ...     _ = open(file, "wb").write(workbook([{"id": "a1", "answer": "=1+1"}], {"id": 10, "answer": 10}))
    ...     [record.fields for record in workbook_records(file)]
    [{'id': 'a1', 'answer': '=1+1'}]
    """
    shown = os.fsdecode(path)
    openpyxl = open_openpyxl("Reading .xlsx files")
    try:
        with open(path, "rb") as stream:
            _refuse_bombs(stream, shown)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            # What a file says of its size need not be so.
            sheet = book.worksheets[0]
            sheet.reset_dimensions()
            yield from _rows(sheet, shown)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{shown}: there is no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{shown}: this is a folder; name the file with the answers.") from None
    except OSError as error:
        raise DataError(f"{shown}: the file cannot be read ({error.strerror or error}).") from None
    # A damaged workbook ends in errors of archives, XML, numbers or lookups.
    except Exception as error:
        reason = " ".join(str(error).split())[:100].rstrip(".") or type(error).__name__
        raise DataError(
            f"{shown}: the workbook is damaged or of another kind ({reason}): save it as .xlsx again."
        ) from None


def _refuse_bombs(stream: Any, shown: str) -> None:
    with zipfile.ZipFile(stream) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
        packed = max(1, sum(part.compress_size for part in archive.infolist()))
    if unpacked > _UNPACKED and unpacked // packed > bounds().ratio:
        raise DataError(
            f"{shown}: it unpacks to {unpacked // packed:,} times its size; {over('ratio', unpacked // packed)}."
        )
    stream.seek(0)


def _rows(sheet: Any, shown: str) -> Iterator[Record]:
    header: list[str] = []
    for number, row in enumerate(sheet.iter_rows(values_only=True, max_col=_MOST_COLUMNS), start=1):
        cells = [_text(cell) for cell in row]
        if not any(cells):
            continue
        place = f"{shown} row {number}"
        if not header:
            header = [cell.strip() for cell in cells]
            check_names(place, header)
            continue
        found = {name: cell for name, cell in zip(header, cells, strict=False) if name and cell}
        yield Record(place, found, delimited=True)
    if not header:
        raise DataError(f"{shown}: the first sheet is empty.")


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def workbook(
    rows: Sequence[Mapping[str, Any]],
    widths: Mapping[str, int],
    *,
    choices: Sequence[str] = (),
    choose_in: str | None = None,
) -> bytes:
    """A workbook of one sheet of rows and one of choices; texts are texts whatever they look like.

    Parameters
    ----------
    rows : sequence of mappings
        Texts and numbers by column.
    widths : mapping of str to int
        The columns in their order, with their widths in characters.
    choices : sequence of str
        Listed on the second sheet, and offered in the column `choose_in`.

    Returns
    -------
    bytes
        The same for the same rows.
    """
    openpyxl = open_openpyxl("Writing .xlsx files")
    from openpyxl.styles import Alignment, Font
    from openpyxl.worksheet.datavalidation import DataValidation

    book = openpyxl.Workbook()
    sheet, listed = book.active, book.create_sheet("categories")
    sheet.title = "review"
    wrapped, bold = Alignment(wrap_text=True, vertical="top"), Font(bold=True)
    for column, (name, width) in enumerate(widths.items(), start=1):
        _set(sheet.cell(1, column), name).font = bold
        sheet.column_dimensions[openpyxl.utils.get_column_letter(column)].width = width
    for number, row in enumerate(rows, start=2):
        for column, name in enumerate(widths, start=1):
            _set(sheet.cell(number, column), row.get(name)).alignment = wrapped
    sheet.freeze_panes = "B2"
    _set(listed.cell(1, 1), "category").font = bold
    for number, choice in enumerate(choices, start=2):
        _set(listed.cell(number, 1), choice)
    listed.column_dimensions["A"].width = 60
    listed.freeze_panes = "A2"
    # Spreadsheet programs offer so many at most.
    if choose_in is not None and rows and 0 < len(choices) < _CELL:
        # Other answers than paths are answers too.
        offered = DataValidation(
            "list",
            formula1=f"categories!$A$2:$A${len(choices) + 1}",
            allow_blank=True,
            showErrorMessage=False,
        )
        letter = openpyxl.utils.get_column_letter(list(widths).index(choose_in) + 1)
        offered.add(f"{letter}2:{letter}{len(rows) + 1}")
        sheet.add_data_validation(offered)
    stream = io.BytesIO()
    book.save(stream)
    return _without_times(stream)


def _set(cell: Any, value: Any) -> Any:
    if isinstance(value, str):
        value = _NO_XML.sub("\ufffd", printable(value))
        if len(value) > _CELL:
            raise UsageError(
                f"A cell of a workbook holds {_CELL:,} characters, and {value[:40]!r}... has {len(value):,}: "
                "let the file's name end in .jsonl."
            )
    cell.value = value
    if isinstance(value, str):
        # Not a formula, nor an error value.
        cell.data_type = "s"
    return cell


def _without_times(stream: io.BytesIO) -> bytes:
    """The archive without the time of its making: the same rows give the same bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(stream) as made, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in made.infolist():
            content = _DATES.sub(rb"\g<1>1980-01-01T00:00:00Z", made.read(part))
            entry = zipfile.ZipInfo(part.filename, _FIRST_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return target.getvalue()
