"""Tables for a notebook: a few rows of plain, escaped HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from himecat.runtime.terminal import printable

MOST_ROWS = 20
"""Rows of a table that are shown; of the others there is only their number."""

_LONGEST_CELL = 200


def kept_rows(n_rows: int) -> range:
    """The rows of a long table that are shown.

    Examples
    --------
    >>> kept_rows(3), kept_rows(5_000)
    (range(0, 3), range(0, 20))
    """
    return range(min(n_rows, MOST_ROWS))


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], n_rows: int, title: str = "") -> str:
    """Rows as a table of HTML; a row may be shorter than the header.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    rows : iterable of sequences
        The rows that are shown; numbers with three digits, all else as text.
    n_rows : int
        How many rows there are, shown or not.
    title : str
        What stands above the table.

    Examples
    --------
    >>> html_table(["name"], [["<b>"]], 1)
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{_shown(name)}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{_shown(cell)}</td>" for cell in row)
        + "<td></td>" * (len(header) - len(row))
        + "</tr>"
        for row in rows
    )
    above = f"<p><b>{_shown(title)}</b></p>" if title else ""
    more = n_rows - len(kept_rows(n_rows))
    below = f"<p>... and {more:,} more</p>" if more else ""
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _shown(cell: object) -> str:
    text = f"{cell:.3f}" if isinstance(cell, float) else str(cell)
    if len(text) > _LONGEST_CELL:
        text = f"{text[:_LONGEST_CELL]} ..."
    return escape(printable(text))
