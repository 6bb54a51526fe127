"""Rows of data frames and Arrow tables as plain Python objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from himecat.errors import DataError, UsageError
from himecat.input.problems import half_character, quoted
from himecat.input.values import date_of

BATCH_ROWS = 1024
"""How many rows of a table are turned into Python objects at a time."""

# Up to here a copy of a value for each row costs less than looking values up.
_DENSE_BYTES = 1 << 25
_ARROW_TEXTS = {"string", "large_string"}
_ARROW_LISTS = ("list<", "large_list<")

Rows: TypeAlias = list[dict[str, Any] | str]
"""Rows of a table: the fields that hold a value or, of a row that cannot be read, why."""


class TableRows(NamedTuple):
    """A table that is being read: the names of the columns that nobody asked for, and rows of the others.

    Examples
    --------
    >>> TableRows.of(["text", "eggs"], ["text"], iter([[{"text": "A hen."}]])).unread
    ('eggs',)
    """

    unread: tuple[str, ...]
    batches: Iterator[Rows]

    @classmethod
    def of(cls, names: Sequence[str], wanted: Collection[str] | None, batches: Iterator[Rows]) -> TableRows:
        """The rows of a table with columns of these names, of which some are wanted."""
        return cls(() if wanted is None else tuple(name for name in names if name not in wanted), batches)


class _Unreadable(NamedTuple):
    """Stands for a value that Python has no object for, such as a day of the year 20,000."""

    reason: str


def table_rows(source: Any, wanted: Collection[str] | None = None) -> TableRows | None:
    """The rows of a table, or None for what is not a table.

    Examples
    --------
    >>> table_rows(["A red fox."]) is None
    True
    """
    # By name, so that none of the libraries is imported here; bases too, for frames derived from theirs.
    bases = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(source).__mro__}
    if "pandas.DataFrame" in bases:
        names = [str(name) for name in source.columns]
        chosen = chosen_columns(names, wanted)

        def frame_rows() -> Iterator[Rows]:
            for start in range(0, len(source), BATCH_ROWS):
                part = source.iloc[start : start + BATCH_ROWS]
                columns = [part.iloc[:, place] for place in chosen.values()]
                yield _rows(
                    list(chosen), [_values(one.tolist, one.iloc, len(part)) for one in columns], len(part)
                )

        return TableRows.of(names, wanted, frame_rows())
    if bases & {"polars.DataFrame", "polars.LazyFrame"}:
        frame = source.collect() if "polars.LazyFrame" in bases else source
        chosen = chosen_columns(frame.columns, wanted)

        def polars_rows() -> Iterator[Rows]:
            for part in frame.iter_slices(BATCH_ROWS):
                columns = [part.to_series(place) for place in chosen.values()]
                yield _rows(
                    list(chosen), [_values(one.to_list, one, len(part)) for one in columns], len(part)
                )

        return TableRows.of(frame.columns, wanted, polars_rows())
    if bases & {"pyarrow.Table", "pyarrow.RecordBatch", "pyarrow.RecordBatchReader", "pyarrow.Dataset"}:
        names = source.schema.names
        chosen = chosen_columns(names, wanted)
        if "pyarrow.RecordBatch" in bases:
            source = [source]
        elif "pyarrow.RecordBatchReader" not in bases:
            source = source.to_batches()
        batches = (
            arrow_rows(batch.slice(start, BATCH_ROWS), list(chosen))
            for batch in source
            for start in range(0, batch.num_rows, BATCH_ROWS)
        )
        return TableRows.of(names, wanted, batches)
    return None


def chosen_columns(names: Sequence[str], wanted: Collection[str] | None) -> dict[str, int]:
    """The columns to read, and where they stand.

    Examples
    --------
    >>> chosen_columns(["id", "text", "eggs"], ["text", "tags"])
    {'text': 1}
    """
    check_names("the table", names)
    return {name: place for place, name in enumerate(names) if wanted is None or name in wanted}


def arrow_rows(batch: Any, chosen: Sequence[str] | None = None) -> Rows:
    """The rows of an Arrow batch with the fields that hold a value, as plain Python objects.

    Examples
    --------
    >>> import pyarrow
    >>> arrow_rows(pyarrow.record_batch({"text": ["A hen.", None], "id": [1, 2]}))
    [{'text': 'A hen.', 'id': 1}, {'id': 2}]
    """
    names = {name: place for place, name in enumerate(batch.schema.names)}
    chosen = list(names) if chosen is None else chosen
    return _rows(chosen, [_arrow_values(batch.column(names[name])) for name in chosen], batch.num_rows)


def _rows(names: Sequence[str], columns: Sequence[tuple[list[Any], bool]], count: int) -> Rows:
    """Rows of columns, each with a word on whether all its values could be read."""
    if not columns:
        return [{} for _ in range(count)]
    values = [column for column, _ in columns]
    rows = zip(*values, strict=True)
    if all(sound for _, sound in columns):
        if not any(None in column for column in values):
            return [dict(zip(names, row, strict=True)) for row in rows]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows
        ]
    return [_row(names, row) for row in rows]


def _row(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any] | str:
    for name, value in zip(names, row, strict=True):
        if isinstance(value, _Unreadable):
            return f"the value of the field {quoted(name)} cannot be read ({value.reason})."
    return {name: value for name, value in zip(names, row, strict=True) if value is not None}


def _values(whole: Callable[[], list[Any]], one_by_one: Any, count: int) -> tuple[list[Any], bool]:
    """The values of a column, and whether all could be read: at once or, where that fails, each for itself."""
    try:
        return [_to_python(value) for value in whole()], True
    except Exception:  # each library and type has errors of its own
        return [_value(one_by_one, row) for row in range(count)], False


def _value(column: Any, row: int) -> Any:
    try:
        value = column[row]
        return _to_python(value.as_py() if hasattr(value, "as_py") else value)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "").rstrip(".")
        return _Unreadable((reason or type(error).__name__)[:120])


def _arrow_values(column: Any) -> tuple[list[Any], bool]:
    """The values of an Arrow column; texts and lists of texts, the usual ones, without an object for each step."""
    kind = str(column.type)
    if kind in _ARROW_TEXTS:
        try:
            return list(column.to_numpy(zero_copy_only=False)), True
        except Exception:  # not UTF-8, for which the library has no error of its own
            return [_value(column, row) for row in range(len(column))], False
    if kind.startswith("dictionary<"):
        if arrow_bytes(column) < _DENSE_BYTES:
            return _arrow_values(column.dictionary_decode())
        # Only the values that these rows have, and each of them once.
        used = column.indices.unique().drop_null()
        values, sound = _arrow_values(column.dictionary.take(used))
        value_of = dict(zip(used.to_pylist(), values, strict=True))
        return [value_of.get(index) for index in column.indices.to_pylist()], sound
    if kind.startswith(_ARROW_LISTS):
        ends = column.offsets.to_pylist()
        # A slice of a larger table still has all the values of that table behind it.
        first, here = ends[0], column.values.slice(ends[0], ends[-1] - ends[0])
        parts, sound = _arrow_values(here)
        lists: list[Any] = [parts[start - first : end - first] for start, end in pairwise(ends)]
        if not sound:
            lists = [next((part for part in one if isinstance(part, _Unreadable)), one) for one in lists]
        if column.null_count:
            valid = column.is_valid().to_pylist()
            return [part if known else None for part, known in zip(lists, valid, strict=True)], sound
        return lists, sound
    return _values(column.to_pylist, column, len(column))


def arrow_bytes(column: Any) -> int:
    """The bytes of an Arrow column once each row has a copy of its value.

    Examples
    --------
    >>> import pyarrow
    >>> arrow_bytes(pyarrow.array(["long text"] * 3).dictionary_encode())
    27
    """
    kind = str(column.type)
    if kind.startswith(_ARROW_LISTS):
        return arrow_bytes(column.flatten())
    if kind.startswith("dictionary<values=") and kind.split("=", 2)[1].partition(",")[0] in _ARROW_TEXTS:
        import pyarrow.compute

        lengths = pyarrow.compute.binary_length(column.dictionary)
        return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)
    return int(column.nbytes)


def present_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields that hold a value, as plain Python objects.

    Examples
    --------
    >>> present_fields({"text": "A hen.", "farm": None, "eggs": np.array([2, 1])})
    {'text': 'A hen.', 'eggs': [2, 1]}
    """
    converted = ((str(name), _to_python(value)) for name, value in fields.items())
    return {name: value for name, value in converted if value is not None}


def _to_python(value: Any) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, np.datetime64):
        value = date_of(value)
    if isinstance(value, np.ndarray):
        # Of dates with nanoseconds NumPy gives whole numbers.
        value = [date_of(part) for part in value.ravel()] if value.dtype.kind == "M" else value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return [_to_python(part) for part in value]
    if isinstance(value, str):
        return str(value)
    # pandas' own marks for missing values are known by name, so that pandas need not be imported.
    missing = (isinstance(value, float) and value != value) or type(value).__name__ in {"NAType", "NaTType"}
    return None if missing else value


def column_names(where: str, header: Sequence[str]) -> tuple[str, ...]:
    """The names of columns as a header row gives them, refused where two are the same.

    Columns without a name, such as the index that pandas writes, are named by blanks, so that each stays one.

    Examples
    --------
    >>> column_names("docs.csv line 1", ["", "id ", "", "text"])
    ('', 'id', ' ', 'text')
    """
    names = [name.strip() for name in header]
    check_names(where, names)
    unnamed = 0
    for place, name in enumerate(names):
        if not name:
            names[place] = _blanks(unnamed)
            unnamed += 1
    return tuple(names)


def _blanks(number: int) -> str:
    """A name of blanks, another one for each number: in two digits, since a row may have thousands without a name."""
    return bin(number + 1)[3:].replace("0", " ").replace("1", "\u00a0")


def check_names(where: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name, and names with half a character.

    Examples
    --------
    >>> check_names("docs.csv line 1", ["id", "text", "text"])
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: docs.csv line 1: two columns are named 'text'; rename one of them.
    """
    twice = sorted(name for name, times in Counter(names).items() if name and times > 1)
    if twice:
        raise DataError(f"{where}: two columns are named {quoted(twice[0])}; rename one of them.")
    for name in names:
        if half := half_character(name):
            raise DataError(f"{where}: the column {quoted(name)} has {half}, half of a character; rename it.")


def rows_of_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a mapping from fields to lists of values.

    Examples
    --------
    >>> rows_of_columns({"text": ["A hen.", "A fox."], "id": [1, 2]})
    [{'text': 'A hen.', 'id': 1}, {'text': 'A fox.', 'id': 2}]
    """
    lists = {
        name: value
        for name, value in columns.items()
        if hasattr(value, "__len__") and not isinstance(value, str)
    }
    lengths = {len(value) for value in lists.values()}
    if len(lists) < len(columns) or len(lengths) != 1:
        raise UsageError(
            "Documents come as a mapping with a list for every field, all of one length, not as a mapping like this."
        )
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
