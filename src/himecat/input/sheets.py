"""Rows of Excel workbooks, one at a time."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from collections.abc import Iterator
from typing import IO, Any
from xml.parsers import expat

from himecat.errors import MissingExtraError, spelled
from himecat.input.problems import Problems, quoted, shortened
from himecat.input.streams import BrokenFile, check_expansion
from himecat.input.tables import column_names

# The last row that a sheet of Excel can have.
_LAST_ROW = 1 << 20
_ERRORS = frozenset(
    (
        "#N/A",
        "#REF!",
        "#VALUE!",
        "#DIV/0!",
        "#NAME?",
        "#NULL!",
        "#NUM!",
        "#SPILL!",
        "#CALC!",
        "#FIELD!",
        "#GETTING_DATA",
    )
)
# A part of a workbook that is larger has to be worth its size: as objects it is a hundred times as large.
_FREE_BYTES = 1 << 20
_HEAD_BYTES = 1 << 12
REVIEW_SHEETS = ("review", "categories")
"""The sheets of a review: of the second nothing need be said."""


def sheet_rows(
    stream: io.BufferedReader, place: str, sheet: str | None, problems: Problems
) -> Iterator[tuple[int, tuple[str, ...], dict[str, Any]]]:
    """Of every row below the header: its number, the names of all columns, and its fields.

    A formula gives its last value.

    Parameters
    ----------
    stream : binary stream
        The workbook.
    place : str
        What messages call it.
    sheet : str or None
        The name of the sheet; None for the first.
    problems : Problems
        Receives notes and warnings.

    Raises
    ------
    BrokenFile
        The workbook is damaged, holds far more than its size tells, or has no such sheet.

    Examples
    --------
    >>> import openpyxl
    >>> book, file = openpyxl.Workbook(), io.BytesIO()
    >>> for row in (["text", "eggs"], ["A hen.", 2], [None, None], ["A fox.", None]):
    ...     book.active.append(row)
    >>> book.save(file)
    >>> [(number, fields) for number, _, fields in sheet_rows(file, "docs.xlsx", None, Problems())]
    [(2, {'text': 'A hen.', 'eggs': 2}), (4, {'text': 'A fox.'})]
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError.for_package("openpyxl", "files", "Reading .xlsx files") from None
    # It warns of styles and rules that are not read here; a date that is none comes as an error in a cell.
    warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
    length = _check_archive(stream)
    try:
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        found = {one.title: one for one in book.worksheets}
    except Exception as error:  # the library has no error of its own for damaged files
        raise _damaged(error) from None
    if not found:
        raise BrokenFile("the workbook has no sheet with rows.")
    if sheet is not None and sheet not in found:
        raise BrokenFile(
            f"there is no sheet {quoted(sheet)}; the sheets are {shortened([quoted(one) for one in found])} "
            f"({spelled('--sheet', 'sheet=')})."
        )
    name = sheet if sheet is not None else next(iter(found))
    if sheet is None and len(found) > 1 and tuple(found) != REVIEW_SHEETS:
        others = shortened([quoted(one) for one in found if one != name], 5)
        option = spelled("--sheet", "sheet=")
        problems.note(place, f"the first sheet, {quoted(name)}, is read; {option} names another: {others}.")
    yield from _rows(found[name], place, problems, length)


def _rows(
    sheet: Any, place: str, problems: Problems, length: int
) -> Iterator[tuple[int, tuple[str, ...], dict[str, Any]]]:
    names: tuple[str, ...] = ()
    errors = unnamed = expanded = 0
    try:
        # What a file claims of the sheet's size is often wrong.
        sheet.reset_dimensions()
        rows = enumerate(sheet.iter_rows(values_only=True, max_row=_LAST_ROW), start=1)
        while True:
            number, row = next(rows, (0, ()))
            if not number:
                break
            # Rows may reach to the last column, and many cells name one long text.
            expanded += len(row) + sum(len(value) for value in row if isinstance(value, str))
            check_expansion(expanded, length)
            if not any(value is not None and value != "" for value in row) or (
                not names and not any(str(value).strip() for value in row if value is not None)
            ):
                continue
            if not names:
                header = ["" if value is None else str(value) for value in row]
                while not header[-1].strip():
                    # Formatted columns may go on to the last one.
                    del header[-1]
                names = column_names(f"{place} row {number}", header)
                continue
            fields = {}
            for column, value in enumerate(row):
                if value is None or value == "":
                    continue
                if value in _ERRORS:
                    errors += 1
                elif column < len(names):
                    fields[names[column]] = value
                else:
                    unnamed += 1
            yield number, names, fields
    except BrokenFile:
        raise
    except Exception as error:
        raise _damaged(error) from None
    if errors:
        problems.warning(place, f"cells that hold an error such as #N/A are taken as empty: {errors:,}.")
    if unnamed:
        problems.warning(
            place, f"cells to the right of the last column with a name are not read: {unnamed:,}."
        )
    if not names:
        raise BrokenFile("the sheet is empty: it needs a header row, and a document in each row below it.")


def _check_archive(stream: io.BufferedReader) -> int:
    """Refuse what would fill the memory, before the library opens it; the length of the file."""
    length = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    start = stream.read(8)
    stream.seek(0)
    if start == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise BrokenFile(
            "this is a workbook of an old Excel, or one with a password: save it as .xlsx without one."
        )
    try:
        with zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
            check_expansion(sum(part.file_size for part in parts), length)
            for part in parts:
                if part.file_size > _FREE_BYTES:
                    check_expansion(part.file_size, part.compress_size, _FREE_BYTES)
                with archive.open(part) as file:
                    _refuse_entities(file)
    except BrokenFile:
        raise
    except Exception as error:  # of archives, compressions and encodings
        raise _damaged(error) from None
    stream.seek(0)
    return length


def _refuse_entities(file: IO[bytes]) -> None:
    """Refuse XML that declares a document type: entities could multiply, and no program writes them into workbooks."""
    parser = expat.ParserCreate()
    inside = False

    def declared(*_: object) -> None:
        raise BrokenFile("the workbook declares a document type, which none should.")

    def begun(*_: object) -> None:
        nonlocal inside
        inside = True

    parser.StartDoctypeDeclHandler, parser.StartElementHandler = declared, begun
    try:
        while not inside and (part := file.read(_HEAD_BYTES)):
            parser.Parse(part)
    except (expat.ExpatError, LookupError, ValueError):
        # A picture, or something that the library will refuse.
        return


def _damaged(error: Exception) -> BrokenFile:
    reason = next(iter(str(error).splitlines()), "").rstrip(".")[:200]
    return BrokenFile(f"the workbook is damaged or of another kind ({reason or type(error).__name__}).")
