from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from himecat.errors import DataError, MissingExtraError, UsageError
from himecat.input.formats import Record, Source, iter_records
from himecat.input.problems import Problems

ROWS = [{"id": "a", "text": 'One, "two"\nthree é'}, {"id": "b", "text": "four"}]


def read(source: Source) -> tuple[list[Record], list[str]]:
    problems = Problems()
    records = list(iter_records(source, problems))
    return records, [str(problem) for problem in problems]


def write(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".zst":
        content = zstandard.ZstdCompressor().compress(content)
    path.write_bytes(content)
    return path


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def csv_bytes(delimiter: str) -> bytes:
    lines = [["id", "text"], *([row["id"], '"' + row["text"].replace('"', '""') + '"'] for row in ROWS)]
    return "".join(delimiter.join(line) + "\r\n" for line in lines).encode()


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("kind", [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".JSONL"])
def test_every_text_format_gives_the_same_records(
    tmp_path: Path, kind: str, bom: bytes, packing: str
) -> None:
    content = csv_bytes("," if kind == ".csv" else "\t") if kind in {".csv", ".tsv"} else json_lines(ROWS)
    path = write(tmp_path / f"docs{kind}{packing}", bom + content)
    records, problems = read(path)
    assert [record.fields for record in records] == ROWS
    assert problems == []
    assert all(record.delimited == (kind in {".csv", ".tsv"}) for record in records)


def test_places_name_the_path_as_given_and_count_blank_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("docs.jsonl"), b'{"text": "a"}\n\n  \r\n{"text": "b"}')
    assert [record.place for record in read("docs.jsonl")[0]] == ["docs.jsonl line 1", "docs.jsonl line 4"]


def test_a_csv_row_is_placed_at_the_line_it_starts_on(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.csv", b'text\n"one\ntwo"\n\nthree\n')
    records, _ = read(path)
    assert [(record.place.rpartition(" ")[2], record.fields) for record in records] == [
        ("2", {"text": "one\ntwo"}),
        ("5", {"text": "three"}),
    ]


def test_a_json_file_may_be_one_array(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.json", b'\n [{"text": "a"},\n {"text": "b", "x": null}, 3]')
    records, problems = read(path)
    assert [record.fields for record in records] == [{"text": "a"}, {"text": "b"}, None]
    assert records[1].place == f"{path} document 1"
    assert problems == [f"{path} document 2: a JSON object is expected, not the number 3."]


def test_bad_json_lines_are_named_and_reading_goes_on(tmp_path: Path) -> None:
    lines = [
        b'{"text": "a"}',
        b'{"text": "a" "b"}',
        b'["a"]',
        b'{"text": "caf\xe9"}',
        b"[" * 100_000,
        b'{"text": ' + b"1" * 5000 + b"}",
        b'{"text": "z"}',
    ]
    path = write(tmp_path / "docs.jsonl", b"\n".join(lines))
    records, problems = read(path)
    assert [record.fields is None for record in records] == [False, True, True, True, True, True, False]
    assert problems[0].startswith(f"{path} line 2: broken JSON at column 14 (expecting ',' delimiter)")
    assert problems[1] == f"{path} line 3: a JSON object is expected, not a list."
    assert f"{path} line 4: invalid UTF-8 at byte 14 of the line (0xe9)" in problems[2]
    assert [problem.split(":")[0] for problem in problems[3:]] == [f"{path} line 5", f"{path} line 6"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'[{"text": 1},\n {]', "line 2, column 3"), (b'["\xff"]', "invalid UTF-8 at byte 3")],
)
def test_a_broken_json_array_is_one_problem(tmp_path: Path, content: bytes, message: str) -> None:
    _, problems = read(write(tmp_path / "docs.json", content))
    assert len(problems) == 1
    assert message in problems[0]


def test_the_byte_order_mark_does_not_shift_what_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", b'\xef\xbb\xbf{"text": "\xe9 abc"}')
    assert "byte 11 of the line (0xe9)" in read(path)[1][0]


def test_null_and_nan_count_as_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", b'{"text": "a", "x": null, "y": NaN, "z": []}')
    assert read(path)[0][0].fields == {"text": "a", "z": []}


def test_bad_csv_rows_are_named_and_reading_goes_on(tmp_path: Path) -> None:
    content = b'id,text\n1,a,b\n2,caf\x81\n3,"x"y\n4,"line\n\xff"\n5\n6,last\n'
    path = write(tmp_path / "docs.csv", content)
    records, problems = read(path)
    assert [record.fields for record in records] == [
        None,
        None,
        None,
        None,
        {"id": "5"},
        {"id": "6", "text": "last"},
    ]
    assert problems[0] == f"{path} line 2: 3 fields under a header of 2: quote a field with a comma in it."
    assert f"{path} line 3: invalid UTF-8 at byte 6 of line 3 (0x81)" in problems[1]
    assert f"{path} line 4: broken quotation marks" in problems[2]
    assert f"{path} line 5: invalid UTF-8 at byte 1 of line 6 (0xff)" in problems[3]


def test_an_unclosed_quote_is_a_problem_and_does_not_swallow_documents_silently(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.csv", b'id,text\n1,"never closed\n2,b\n')
    records, problems = read(path)
    assert [record.fields for record in records] == [None]
    assert "line 2: broken quotation marks" in problems[0]


def test_long_csv_fields_are_read(tmp_path: Path) -> None:
    csv.field_size_limit(131072)
    path = write(tmp_path / "docs.csv", b"text\n" + b"word " * 100_000 + b"\n")
    records, problems = read(path)
    assert problems == []
    assert records[0].fields is not None
    assert len(str(records[0].fields["text"])) == 500_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"id;text|c;d\n1;a|b;c\n",
            "could be separated by semicolons and vertical bars: say which",
        ),
        (b"id,te\x81xt\n1,a\n", "the header row has invalid UTF-8 at byte 6"),
        (b"id,text\n", "there is a header row and no document"),
        (b"\n\n", "the file is empty"),
    ],
)
def test_bad_csv_headers(tmp_path: Path, content: bytes, message: str) -> None:
    records, problems = read(write(tmp_path / "docs.csv", content))
    assert records == []
    assert len(problems) == 1
    assert message in problems[0]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two columns are named 'text'"):
        read(write(tmp_path / "docs.csv", b"text,text\na,b\n"))
    with pytest.raises(DataError, match="two columns are named 'text'"):
        read(pd.DataFrame([["a", "b"]], columns=["text", "text"]))


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "docs.json", "docs.csv"])
@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_an_error(tmp_path: Path, name: str, content: bytes) -> None:
    if name == "docs.csv":
        content = b""
    path = write(tmp_path / name, content)
    assert read(path) == ([], [f"{path}: the file is empty: it holds no document."])


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("kind", [".jsonl", ".csv"])
def test_a_truncated_file_is_an_error(tmp_path: Path, kind: str, packing: str) -> None:
    rng = np.random.default_rng(0)
    lines = [json.dumps({"text": rng.bytes(50).hex()}) for _ in range(5_000)]
    path = write(tmp_path / f"docs{kind}{packing}", "\n".join(["text", *lines][kind == ".jsonl" :]).encode())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    records, problems = read(path)
    assert 0 < len(records) < 5_000
    assert "cut short" in problems[-1]
    assert records[-1].place in problems[-1]


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_damaged_or_misnamed_compressed_file_is_an_error(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"docs.jsonl{packing}"
    path.write_bytes(b'{"text": "not compressed at all"}\n')
    records, problems = read(path)
    assert records == []
    assert "the compressed file is damaged" in problems[0]


def test_several_compressed_parts_in_one_file_are_read(tmp_path: Path) -> None:
    parts = [json_lines([row]) for row in ROWS]
    gz, zst = tmp_path / "a.jsonl.gz", tmp_path / "a.jsonl.zst"
    gz.write_bytes(b"".join(map(gzip.compress, parts)))
    zst.write_bytes(b"".join(map(zstandard.ZstdCompressor().compress, parts)))
    for path in (gz, zst):
        assert [record.fields for record in read(path)[0]] == ROWS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}'.encode("utf-16"), "UTF-16"),
        (gzip.compress(b"{}", mtime=0), "let its name end in .gz"),
        (zstandard.ZstdCompressor().compress(b"{}"), "let its name end in .zst"),
    ],
)
def test_another_kind_of_file_under_a_known_name_is_one_problem(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(content)
    records, problems = read(path)
    assert records == []
    assert len(problems) == 1
    assert message in problems[0]


def test_files_that_cannot_be_read_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "docs.txt").write_text("a")
    (tmp_path / "docs").write_text("a")
    (tmp_path / "docs.parquet.gz").write_text("a")
    with pytest.raises(DataError, match=r"nothing\.jsonl: there is no such file"):
        read(tmp_path / "nothing.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="this is a folder without text files"):
        read(tmp_path / "empty")
    with pytest.raises(DataError, match=r"'\.txt' are not known; documents are read from \.jsonl"):
        read(tmp_path / "docs.txt")
    with pytest.raises(DataError, match="the name has no suffix"):
        read(tmp_path / "docs")
    with pytest.raises(DataError, match=r"'\.parquet\.gz' are not known"):
        read(tmp_path / "docs.parquet.gz")
    with pytest.raises(DataError, match="texts are given as a list"):
        read("A sentence that is not a path.")
    with pytest.raises(DataError, match="cannot be the name of a file"):
        read("a\0b.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", b"{}")
    path.chmod(0)
    with pytest.raises(DataError, match="no permission"):
        read(path)


def test_parquet_rows(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    rows = [{"id": i, "text": f"t{i}", "tags": ["x", None] if i else None} for i in range(3000)]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=700)
    records, problems = read(path)
    assert problems == []
    assert records[0] == Record(f"{path} row 0", {"id": 0, "text": "t0"}, unchecked=True)
    last = {"id": 2999, "text": "t2999", "tags": ["x", None]}
    assert records[2999] == Record(f"{path} row 2999", last, unchecked=True)


def test_a_damaged_parquet_file_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    path.write_bytes(b"PAR1 nothing")
    records, problems = read(path)
    assert records == []
    assert problems[0].startswith(f"{path}: the Parquet file is damaged")
    pq.write_table(pa.table({"text": [str(i) * 40 for i in range(5000)]}), path)
    whole = bytearray(path.read_bytes())
    whole[100 : len(whole) // 2] = bytes(len(whole) // 2 - 100)
    path.write_bytes(whole)
    assert "is damaged" in read(path)[1][0]


def test_an_empty_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    assert read(path)[1] == [f"{path}: the file is empty: it holds no document."]


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zst = write(tmp_path / "docs.jsonl.zst", b"{}")
    parquet = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"text": ["a"]}), parquet)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for path, package in ((zst, "zstandard"), (parquet, "pyarrow")):
        with pytest.raises(MissingExtraError, match=rf'{package}: pip install "himecat\[files\]"'):
            read(path)


TABLE = pa.table({"id": [1, None], "text": ["a", "b"], "tags": [["x", "y"], None]})


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.to_batches()[0],
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        TABLE.to_pandas(),
        pyarrow.dataset.dataset(TABLE),
        pl.from_arrow(TABLE),
        pl.DataFrame(pl.from_arrow(TABLE)).lazy(),
    ],
    ids=["table", "batch", "reader", "pandas", "dataset", "polars", "lazy"],
)
def test_tables(table: Any) -> None:
    records, problems = read(table)
    assert problems == []
    assert records == [
        Record("row 0", {"id": 1, "text": "a", "tags": ["x", "y"]}, unchecked=True),
        Record("row 1", {"text": "b"}, unchecked=True),
    ]


def test_missing_values_and_numpy_values_of_pandas() -> None:
    frame = pd.DataFrame(
        {
            "text": pd.array(["a", None], dtype="string"),
            "when": [pd.NaT, pd.NaT],
            "year": pd.array([2019, None], dtype="Int64"),
            "tags": [np.array(["x"]), np.nan],
        }
    )
    records, _ = read(frame)
    assert records[0].fields == {"text": "a", "year": 2019, "tags": ["x"]}
    assert records[1].fields == {}


def test_lists_of_texts_mappings_and_files(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", b'{"text": "c"}')
    source: list[Any] = ["a", {"text": np.str_("b"), "n": np.int64(3), "x": float("nan")}, path, None]
    records, problems = read(iter(source))
    assert records == [
        Record("document 0", {"text": "a"}, plain=True, unchecked=True),
        Record("document 1", {"text": "b", "n": 3}, unchecked=True),
        Record(f"{path} line 1", {"text": "c"}),
        Record("document 3", None),
    ]
    assert type(records[1].fields["text"]) is str  # type: ignore[index]
    assert problems == ["document 3: this is a NoneType: a document is a mapping or a text."]
    assert [record.fields for record in read(pd.Series(["a", "b"]))[0]] == [{"text": "a"}, {"text": "b"}]
    assert read([]) == ([], [])


class Frame(pd.DataFrame):
    pass


def test_frames_derived_from_pandas_are_tables() -> None:
    assert read(Frame({"text": ["a"]}))[0] == [Record("row 0", {"text": "a"}, unchecked=True)]


class ForeignTable(list[str]):
    columns = ("id", "text")


@pytest.mark.parametrize("source", [{"text": "a"}, b"docs.jsonl", 3, None, ForeignTable(["id", "text"])])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(UsageError, match="not as a"):
        read(source)


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "docs.csv"])
def test_memory_holds_a_few_records_and_not_the_file(tmp_path: Path, name: str) -> None:
    lines = [np.random.default_rng(seed).bytes(50_000).hex() for seed in range(60)]
    content = (
        "\n".join(["text", *lines]).encode()
        if name == "docs.csv"
        else json_lines([{"text": t} for t in lines])
    )
    path = write(tmp_path / name, content)
    del lines, content
    tracemalloc.start()
    try:
        assert sum(1 for _ in iter_records(path, Problems())) == 60
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_records_or_problems_and_never_an_exception(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in ("a.jsonl", "a.json", "a.csv", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"):
        (folder / name).write_bytes(content)
        try:
            records, problems = read(folder / name)
        except DataError:
            continue
        assert records or problems


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5))
def test_csv_written_by_the_standard_library_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "docs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([["text"], *([text] for text in texts)])
    records, problems = read(path)
    assert problems == []
    assert [record.fields for record in records] == [{"text": text} for text in texts]


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" * 30, "9" * 19])
def test_large_whole_numbers_keep_their_digits(tmp_path: Path, number: str) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(f'{{"id": {number}, "text": "a"}}\n')
    (record,) = iter_records(path, Problems())
    assert record.fields == {"id": int(number), "text": "a"}
    assert type(record.fields["id"]) is int


def test_what_only_the_slower_reader_takes_is_read_as_before(tmp_path: Path) -> None:
    lines = [
        '{"text": "a", "score": NaN, "rank": -Infinity}',
        '{"text": "a", "score": 0.5, "tags": null}',
        '{"text": "a", "text": "b"}',
        '{"text": "\\ud83d"}',
        " \t\u00a0",
        '{"text": "a", "score": 1e400}',
        '{"text": "a", "deep": ' + "[" * 1100 + "]" * 1100 + "}",
        "[1]",
        '{"text": "a",}',
    ]
    path = tmp_path / "docs.jsonl"
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    problems = Problems()
    found = [record.fields for record in iter_records(path, problems)]
    assert found[:4] == [
        {"text": "a", "rank": float("-inf")},
        {"text": "a", "score": 0.5},
        {"text": "b"},
        {"text": "\ud83d"},
    ]
    assert found[4] == {"text": "a", "score": float("inf")}
    assert found[6:] == [None, None]
    assert [problem.place.rpartition(" ")[2] for problem in problems][-2:] == ["8", "9"]


def test_slices_of_arrow_tables_with_gaps() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = [
        {
            "id": n,
            "text": None if n % 7 == 3 else f"t{n}",
            "tags": None if n % 5 == 0 else ["x", None, f"y{n}"][: n % 4],
        }
        for n in range(3000)
    ]
    wanted = [{name: value for name, value in row.items() if value is not None} for row in rows[100:2900]]
    table = pyarrow.Table.from_pylist(rows).slice(100, 2800)
    assert [record.fields for record in iter_records(table, Problems())] == wanted


def test_rows_with_too_few_fields_are_read_and_told_once(tmp_path: Path) -> None:
    file = tmp_path / "short.csv"
    file.write_text("id,text,labels\n1,a b,x\n2,c d\n\n3\n")
    problems = Problems()
    records = [record.fields for record in iter_records(file, problems)]
    assert records == [{"id": "1", "text": "a b", "labels": "x"}, {"id": "2", "text": "c d"}, {"id": "3"}]
    (warning,) = problems.of("warning")
    assert str(warning).endswith(
        "2 rows have fewer fields than the header (the first in line 3): what is missing is taken as empty."
    )
