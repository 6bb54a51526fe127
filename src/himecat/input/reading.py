"""What files do not say of themselves, and a user may say of them."""

from __future__ import annotations

from dataclasses import dataclass

from himecat.input.csv_form import checked_delimiter
from himecat.input.separators import checked


@dataclass(frozen=True)
class Reading:
    """How files are read, where they leave it open.

    Attributes
    ----------
    sheet : str or None
        The sheet of a workbook; the first by default.
    delimiter : str or None
        What separates the columns of a CSV file; found from its first rows by default.
    folders : bool
        Whether the folders that text files are in are their labels.
    separator : str or None
        What separates the levels of a label in a file with the truth, or "none"; found from the labels by default. A
        model has its own.

    Examples
    --------
    >>> Reading(sheet="2024").sheet
    '2024'
    """

    sheet: str | None = None
    delimiter: str | None = None
    folders: bool = False
    separator: str | None = None

    @classmethod
    def given(
        cls, sheet: str | None, delimiter: str | None, separator: str | None = None, *, folders: bool = False
    ) -> Reading:
        """As a user says it, checked.

        Examples
        --------
        >>> Reading.given(None, "tab").delimiter
        '\\t'
        """
        return cls(sheet, checked_delimiter(delimiter), folders, checked(separator))


AS_FOUND = Reading()
"""Everything is found out from the files."""
