"""Rows of data frames and Arrow tables as plain Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from himecat.errors import DataError

BATCH_ROWS = 1024
"""How many rows of a table are turned into Python objects at a time."""

_ARROW_TEXTS = {"string", "large_string"}
_ARROW_LISTS = {f"{kind}<{name}: string>" for kind in ("list", "large_list") for name in ("item", "element")}


def table_batches(source: Any) -> Iterator[list[dict[str, Any]]] | None:
    """Rows of a table in batches, or None for what is not a table.

    Examples
    --------
    >>> table_batches(["A red fox."]) is None
    True
    """
    # By name, so that none of the libraries is imported here; bases too, for frames derived from theirs.
    bases = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(source).__mro__}
    if "pandas.DataFrame" in bases:
        check_names("the table", [str(name) for name in source.columns])
        starts = range(0, len(source), BATCH_ROWS)
        return (source.iloc[start : start + BATCH_ROWS].to_dict("records") for start in starts)
    if bases & {"polars.DataFrame", "polars.LazyFrame"}:
        frame = source.collect() if "polars.LazyFrame" in bases else source
        return (part.to_dicts() for part in frame.iter_slices(BATCH_ROWS))
    if bases & {"pyarrow.Table", "pyarrow.RecordBatch", "pyarrow.RecordBatchReader", "pyarrow.Dataset"}:
        check_names("the table", source.schema.names)
        if "pyarrow.RecordBatch" in bases:
            source = [source]
        elif "pyarrow.RecordBatchReader" not in bases:
            source = source.to_batches()
        return (
            arrow_rows(batch.slice(start, BATCH_ROWS))
            for batch in source
            for start in range(0, batch.num_rows, BATCH_ROWS)
        )
    return None


def arrow_rows(batch: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow batch with the fields that hold a value, as plain Python objects.

    Examples
    --------
    >>> import pyarrow
    >>> arrow_rows(pyarrow.record_batch({"text": ["A hen.", None], "id": [1, 2]}))
    [{'text': 'A hen.', 'id': 1}, {'id': 2}]
    """
    names = batch.schema.names
    columns = [_arrow_values(column) for column in batch.columns]
    rows = zip(*columns, strict=True)
    if not any(None in column for column in columns):
        return [dict(zip(names, row, strict=True)) for row in rows]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows
    ]


def _arrow_values(column: Any) -> list[Any]:
    """The values of an Arrow column; texts and lists of texts, the usual ones, without an object for each step."""
    kind = str(column.type)
    if kind in _ARROW_TEXTS:
        return list(column.to_numpy(zero_copy_only=False))
    if kind in _ARROW_LISTS:
        ends = column.offsets.to_pylist()
        # A slice of a larger table still has all the values of that table behind it.
        first, here = ends[0], column.values.slice(ends[0], ends[-1] - ends[0])
        texts = list(here.to_numpy(zero_copy_only=False))
        lists = [texts[start - first : end - first] for start, end in pairwise(ends)]
        if column.null_count:
            valid = column.is_valid().to_pylist()
            return [part if known else None for part, known in zip(lists, valid, strict=True)]
        return lists
    return [_to_python(value) for value in column.to_pylist()]


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
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_to_python(part) for part in value]
    if isinstance(value, str):
        return str(value)
    # pandas' own marks for missing values are known by name, so that pandas need not be imported.
    missing = (isinstance(value, float) and value != value) or type(value).__name__ in {"NAType", "NaTType"}
    return None if missing else value


def check_names(where: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name.

    Examples
    --------
    >>> check_names("docs.csv line 1", ["id", "text", "text"])
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: docs.csv line 1: two columns are named 'text'; rename one of them.
    """
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DataError(f"{where}: two columns are named {twice[0]!r}; rename one of them.")
