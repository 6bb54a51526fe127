"""Values of any kind as the cells of a table: nothing in them is a formula, and all of it can be written."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection
from typing import Any

from himecat.input.several import PATHS, several_paths
from himecat.runtime.terminal import harmless_cell, plain_json

LONGEST_TEXT = 32_767
"""Characters of a cell of Excel."""

# What lists of texts are joined by: himecat reads them so from a delimited file.
_VALUES = "|"
_MOST_DIGITS = 10**15
_HALF = re.compile("[\ud800-\udfff]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# A text that looks like Excel's own way to write such a character.
_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_EXCEL_BEGINS = 1900


class Cells:
    """Turns values into cells, and counts what could not stay as it was.

    Parameters
    ----------
    separator : str
        Joins the names of a label that is a list.
    label_fields : collection of str
        The column with labels.

    Attributes
    ----------
    cut, replaced, apostrophes : int
        Texts cut to the length that a cell may have, texts with characters that cannot be written as they are, and
        texts with an apostrophe before what would be a formula.

    Examples
    --------
    >>> cells = Cells()
    >>> cells.plain("tags", ["a", "b"]), cells.plain("labels", ["a", "b"]), cells.delimited("n", "=1+1")
    ('a|b', 'a/b', "'=1+1")
    >>> cells.excel("text", "bell\\x07"), cells.excel("id", 12345678901234567890), cells.replaced
    ('bell_x0007_', '12345678901234567890', 1)
    """

    def __init__(self, separator: str = "/", label_fields: Collection[str] = ("labels",)) -> None:
        self._separator, self._label_fields = separator, label_fields
        self.cut = self.replaced = self.apostrophes = 0

    def plain(self, column: str, value: Any) -> Any:
        """A text, a number, a truth value, a date or None; whatever else a value is becomes a text."""
        if isinstance(value, str):
            if not value.isascii() and _HALF.search(value):
                self.replaced += 1
                return _HALF.sub("\ufffd", value)
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if value is None or isinstance(value, int | datetime.date):
            return value
        if isinstance(value, list | tuple):
            joined = self._separator if column in self._label_fields else _VALUES
            if column in self._label_fields and (paths := several_paths(value, joined.strip())):
                return self.plain(column, PATHS.join(self.text(self.plain(column, path)) for path in paths))
            if all(isinstance(part, str) and joined not in part for part in value):
                return self.plain(column, joined.join(value))
        if isinstance(value, list | tuple | dict):
            return self.text(value)
        return self.plain(column, str(value))

    def text(self, value: Any) -> str:
        """A value of any kind as a text."""
        if isinstance(value, str):
            return str(self.plain("", value))
        if isinstance(value, bool | list | tuple | dict):
            try:
                return str(self.plain("", plain_json(value)))
            except (TypeError, ValueError, RecursionError):
                return str(self.plain("", str(value)))
        return value.isoformat() if isinstance(value, datetime.date) else str(value)

    def delimited(self, column: str, value: Any) -> str:
        """A cell of a delimited file; a text that a spreadsheet would take as a formula gets an apostrophe."""
        found = self.plain(column, value)
        if not isinstance(found, str):
            return "" if found is None else self.text(found)
        harmless = str(harmless_cell(found))
        self.apostrophes += harmless is not found and harmless != found
        return harmless

    def excel(self, column: str, value: Any) -> Any:
        """A cell of Excel: whole numbers and dates that it cannot hold are texts."""
        found = self.plain(column, value)
        if isinstance(found, bool) or found is None or isinstance(found, float):
            return found
        if isinstance(found, int):
            return found if abs(found) < _MOST_DIGITS else str(found)
        if isinstance(found, datetime.date):
            aware = isinstance(found, datetime.datetime) and found.tzinfo is not None
            return found.isoformat() if aware or found.year < _EXCEL_BEGINS else found
        written = _ESCAPED.sub("_x005F_", found)
        if _NOT_XML.search(found):
            self.replaced += 1
            # Excel reads this form as the character itself.
            written = _NOT_XML.sub(lambda one: f"_x{ord(one[0]):04X}_", written)
        self.cut += len(written) > LONGEST_TEXT
        return written[:LONGEST_TEXT]

    def notes(self) -> list[str]:
        """What there is to say about the cells, one sentence each.

        Examples
        --------
        >>> Cells().notes()
        []
        """
        return [
            f"{count:,} {'cell' if count == 1 else 'cells'} {what}"
            for count, what in (
                (self.cut, f"had more than the {LONGEST_TEXT:,} characters that Excel takes, and were cut."),
                (self.replaced, "held characters that cannot be written, which are replaced."),
                (self.apostrophes, "would be taken as formulas, and begin with an apostrophe."),
            )
            if count
        ]
