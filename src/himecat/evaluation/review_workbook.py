"""The workbook of a review: a sheet of rows, and one with the categories to choose from."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from himecat.errors import MissingExtraError, UsageError
from himecat.input.sheets import REVIEW_SHEETS
from himecat.runtime.terminal import printable

_CELL = 32_767
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
    sheet, listed = book.active, book.create_sheet(REVIEW_SHEETS[1])
    sheet.title = REVIEW_SHEETS[0]
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
            formula1=f"{REVIEW_SHEETS[1]}!$A$2:$A${len(choices) + 1}",
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
