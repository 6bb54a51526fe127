"""Parquet files: only the columns asked for, one bad value spoils one row, and small files stay small."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from himecat.input.documents import Document, Fields, read_documents
from himecat.input.formats import iter_records
from himecat.input.problems import Problems

LONG = "some words " * 1_000_000


def read(source: Any, **fields: Any) -> tuple[list[Document], list[str]]:
    problems = Problems()
    documents = [one for batch in read_documents(source, Fields(**fields), problems) for one in batch]
    return documents, [str(problem) for problem in problems]


def not_utf8() -> pa.Array:
    offsets = pa.py_buffer(b"".join(end.to_bytes(4, "little") for end in range(4)))
    return pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xffc")])


ODD = {
    "year 30,000": pa.array([0, 10**12, 0], pa.timestamp("s")),
    "before year 1": pa.array([0, -(10**12), 0], pa.timestamp("s")),
    "day": pa.array([0, 10**8, 0], pa.date32()),
    "duration": pa.array([0, 2**62, 0], pa.duration("s")),
    "not UTF-8": not_utf8(),
    "dictionary": not_utf8().dictionary_encode(),
    "list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), not_utf8()),
}
TEXTS = ["one", "two", "three"]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("packed", [True, False])
def test_a_value_without_an_object_spoils_its_own_row(tmp_path: Path, kind: str, packed: bool) -> None:
    table = pa.table({"text": TEXTS, "odd": ODD[kind]})
    source: Any = table
    if packed:
        source = tmp_path / "docs.parquet"
        pq.write_table(table, source)
    documents, wrong = read(source)
    assert [document.text for document in documents] == TEXTS
    assert wrong == [], "nobody asked for the column"
    problems = Problems()
    found = [record.fields is None for record in iter_records(source, problems)]
    assert found == [False, True, False]
    (problem,) = problems
    assert problem.place.endswith("row 1")
    assert "the value of the field 'odd' cannot be read" in problem.message


@pytest.mark.parametrize(
    "column",
    [
        pa.array([Decimal("1.5")] * 3),
        pa.array([{"a": 1}] * 3),
        pa.nulls(3),
        pa.array([b"\xff"] * 3),
    ],
    ids=["decimal", "struct", "null", "binary"],
)
def test_types_that_are_no_text_are_refused_only_where_asked_for(tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"text": TEXTS, "odd": column}), tmp_path / "docs.parquet")
    documents, problems = read(tmp_path / "docs.parquet")
    assert [document.text for document in documents] == TEXTS
    assert problems == []
    assert read(tmp_path / "docs.parquet", metadata=("odd",))[1]


def test_columns_that_nobody_asked_for_are_named_where_one_is_missing(tmp_path: Path) -> None:
    table = pa.table({"body": TEXTS, "id": ["a", "b", "c"]})
    pq.write_table(table, tmp_path / "docs.parquet")
    for source in (tmp_path / "docs.parquet", table, table.to_pandas(), pl.DataFrame(pl.from_arrow(table))):
        assert read(source)[1][0].endswith("the document has no field 'text'; fields found: 'id', 'body'.")


def test_a_name_that_is_not_utf8_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"text": TEXTS, "extra": TEXTS}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"extra", b"ex\xffra"))
    assert read(path)[1] == [f"{path}: the name of a column is not UTF-8: rename the column."]


def test_half_characters_in_tables() -> None:
    frame = pd.DataFrame({"text": ["one", "two"], "labels": ["a", "b\ud800"]}, dtype=object)
    documents, problems = read(frame)
    assert [document.usable for document in documents] == [True, False]
    assert problems == [r"row 1: the field 'labels' holds \ud800, half of a character: repair or remove it."]


@pytest.mark.parametrize(
    ("table", "options", "found"),
    [
        ({"text": pa.array(["a b"] * 1_000_000)}, {}, "more documents than bytes"),
        (
            {"text": pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array([LONG]))},
            {},
            "expands to more than 200 times its size",
        ),
        (
            {
                "text": ["a b"] * 100,
                "tags": pa.ListArray.from_arrays(
                    pa.array(range(0, 5001, 50), pa.int32()),
                    pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array([LONG])),
                ),
            },
            {},
            "expands to more than 200 times its size",
        ),
        ({"text": [LONG] * 8}, {"use_dictionary": False}, "expands to more than 200 times its size"),
    ],
    ids=["rows", "dictionary", "lists", "pages"],
)
def test_small_files_stay_small(
    tmp_path: Path, table: dict[str, Any], options: dict[str, Any], found: str
) -> None:
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table(table), path, compression="zstd", **options)
    assert path.stat().st_size < 1 << 17
    _, problems = read(path, metadata=("tags",) if "tags" in table else ())
    assert any(found in problem for problem in problems), problems


def test_a_value_that_is_too_long_spoils_its_own_row(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"text": ["short", LONG * 2]}), path, compression="none")
    _, problems = read(path)
    assert any("row 1: the text is longer than it may be: the bound is 16 MB" in one for one in problems), (
        problems
    )


def test_long_values_that_are_shared_are_held_once() -> None:
    shared = pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * 30, pa.int32()), pa.array([LONG, "b"]))
    found = [record.fields for record in iter_records(pa.table({"text": shared}), Problems())]
    texts = [fields.get("text") for fields in found if fields is not None]
    assert texts[:3] == [LONG, "b", None]
    assert texts[0] is texts[3]


def test_two_descriptions_that_differ(tmp_path: Path) -> None:
    """Parquet names its columns twice, for itself and for Arrow."""
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"text": ["a b"], "tags": [["c"]]}), path)
    raw = path.read_bytes()
    places = [found.start() for found in re.finditer(b"list", raw)]
    told = []
    for place in places:
        path.write_bytes(raw[:place] + b"nist" + raw[place + 4 :])
        told += read(path, metadata=("tags",))[1]
    assert any("damaged or of another kind" in one for one in told), told
