"""Parquet files with odd types, names and values."""

from __future__ import annotations

import datetime
import io
from typing import Any

from faults.mutations import Random, odd_text


def parquet_bytes(documents: list[Any], rng: Random) -> bytes:
    """Documents as Parquet; a column whose values no type holds is written as text."""
    import pyarrow as pa

    rows = [one for one in documents if isinstance(one, dict)]
    names = list(dict.fromkeys(name for one in rows for name in one))[:400]
    columns: dict[str, Any] = {}
    for name in names:
        values = [one.get(name) for one in rows]
        try:
            columns[_plain(name)] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError, UnicodeError):
            columns[_plain(name)] = pa.array([None if one is None else _plain(str(one)) for one in values])
    for _ in range(rng.choice([0, 0, 1, 2])):
        name = rng.choice([*(columns or ["text"]), "extra", _plain(odd_text(rng))])
        columns[name] = _odd_column(len(rows), rng)
    table = pa.table(columns)
    if rng.random() < 0.05 and columns:
        # Two columns of one name.
        table = table.append_column(next(iter(columns)), _odd_column(len(rows), rng))
    return written(table, rng)


def written(table: Any, rng: Random) -> bytes:
    """A table as a Parquet file, compressed somehow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    compression = rng.choice(["none", "snappy", "gzip", "zstd", "brotli"])
    size = rng.choice([None, 1, 5])
    try:
        pq.write_table(table, stream, compression=compression, row_group_size=size)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # Types that Parquet does not know.
        stream = io.BytesIO()
        pq.write_table(table.select([]), stream)
    return stream.getvalue()


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _odd_column(rows: int, rng: Random) -> Any:
    import pyarrow as pa

    whole = [rng.choice([-(2**62), -1, 0, 1, 2**31, 2**62]) for _ in range(rows)]
    bytes_ = [rng.choice([b"", b"\xff\xfe", b"text", b"\0"]) for _ in range(rows)]
    kind = rng.choice(
        [
            pa.timestamp("s"),
            pa.timestamp("ns"),
            pa.timestamp("us", "Europe/Berlin"),
            pa.timestamp("s", "No/Where"),
            pa.date32(),
            pa.date64(),
            pa.time64("us"),
            pa.duration("s"),
            pa.int64(),
            pa.uint8(),
            pa.bool_(),
            pa.float16(),
            pa.float64(),
            pa.decimal128(38, 10),
            pa.binary(),
            pa.large_binary(),
            pa.string(),
            pa.null(),
            pa.list_(pa.binary()),
            pa.list_(pa.int64()),
            pa.struct([("a", pa.int64())]),
            pa.map_(pa.string(), pa.int64()),
            "dictionary",
            "bad text",
            "dates",
            "interval",
            "views",
        ]
    )
    try:
        if kind == "dictionary":
            return pa.array([rng.choice("abc") for _ in range(rows)]).dictionary_encode()
        if kind == "bad text":
            # Bytes that are no UTF-8, in a column that says it is text.
            return pa.array(bytes_, pa.binary()).view(pa.string())
        if kind == "dates":
            return pa.array([datetime.date(9999, 12, 31)] * rows)
        if kind == "views":
            return pa.array(["quantum laser"] * rows, pa.string_view())
        if kind == "interval":
            return pa.array([(1, 2, 3)] * rows, pa.month_day_nano_interval())
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_string(kind):
            return pa.array(bytes_, pa.binary()).cast(kind)
        if pa.types.is_list(kind):
            values = bytes_ if pa.types.is_binary(kind.value_type) else whole
            return pa.array([[one] for one in values], kind)
        if pa.types.is_struct(kind):
            return pa.array([{"a": one} for one in whole], kind)
        if pa.types.is_map(kind):
            return pa.array([[("a", one)] for one in whole], kind)
        if pa.types.is_temporal(kind):
            # Beyond the year 9999, which Python cannot say.
            plain = pa.int32() if kind.bit_width == 32 else pa.int64()
            return pa.array([one % 2**31 if kind.bit_width == 32 else one for one in whole], plain).view(kind)
        return pa.array(whole, pa.int64()).cast(kind, safe=False)
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        pa.ArrowTypeError,
        TypeError,
        ValueError,
        OverflowError,
    ):
        return pa.array([None] * rows, pa.string())
