"""What files do not say of themselves, and a user may say of them."""

from __future__ import annotations

from dataclasses import dataclass


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

    Examples
    --------
    >>> Reading(sheet="2024").sheet
    '2024'
    """

    sheet: str | None = None
    delimiter: str | None = None
    folders: bool = False


AS_FOUND = Reading()
"""Everything is found out from the files."""
