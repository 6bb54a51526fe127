"""One document as it is in a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Record(NamedTuple):
    """One document as it is in the source; `fields` is None where it could not be read.

    In a `delimited` record (CSV, TSV) a cell with several values separates them with `|`. Of a
    table, `unread` are the names of the columns that nobody asked for. The strings of an `unchecked` record may be
    longer than a line may be, and hold half a character. `header` are the names of all columns of a sheet, where
    empty cells are no fields. Of a task of Label Studio, `controls` are the fields that its annotations gave.

    Examples
    --------
    >>> Record("docs.jsonl line 12", {"text": "A red fox."}).fields["text"]
    'A red fox.'
    """

    place: str
    fields: Mapping[str, object] | None
    delimited: bool = False
    plain: bool = False
    unread: tuple[str, ...] = ()
    unchecked: bool = False
    header: tuple[str, ...] = ()
    controls: tuple[str, ...] | None = None
