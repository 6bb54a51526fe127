"""`himecat predict` to a table: the user's columns stay, ours come after them, and nothing in them is a formula."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import Himecat
from himecat import Default, HiMeCat
from himecat.input.header import MOST_COLUMNS
from himecat.input.tables import column_names

openpyxl = pytest.importorskip("openpyxl")

TEXTS = {
    "sport/football": "the striker scored a late goal in the match",
    "sport/tennis": "a long serve won the set on grass",
    "politics": "parliament passed the budget law",
}
EVIL = ("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "#N/A", "http://example.org", "-7", "ärger\nzwei")
ADDED = ["path", "level1", "level2", "confidence", "none"]
OTHERS = [f"alternative{n}{end}" for n in (1, 2) for end in ("", "_confidence")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [{"text": f"{text} {n}", "labels": path} for path, text in TEXTS.items() for n in range(4)]
    folder = tmp_path_factory.mktemp("tables") / "model"
    HiMeCat(method=Default(min_count=1), threads=1).fit(documents).save(folder)
    return folder


def write_csv(path: Path, rows: list[dict[str, str]], delimiter: str = ",") -> Path:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    """A few rows with notes that a spreadsheet would run, a label and a name that is taken."""
    rows = [
        {"path": note, "text": text, "labels": "", "id": str(n)}
        for n, (note, text) in enumerate(zip(EVIL, list(TEXTS.values()) * 3, strict=False))
    ]
    rows[1]["labels"] = "politics"
    return write_csv(tmp_path / "docs.csv", rows)


def run(himecat: Himecat, model: Path, documents: Path, output: Path, *more: object) -> Any:
    ended = himecat("predict", model, documents, "-o", output, *more)
    assert ended.code == 0, ended.err
    return ended


def test_a_folder_of_texts_becomes_a_table(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    (tmp_path / "texts" / "sport").mkdir(parents=True)
    (tmp_path / "texts" / "sport" / "a.txt").write_text(TEXTS["sport/tennis"])
    run(himecat, model, tmp_path / "texts", tmp_path / "out.csv")
    head, row = csv.reader((tmp_path / "out.csv").read_text("utf-8-sig").splitlines())
    assert head == ["id", "text", *ADDED, *OTHERS]
    assert row[:3] == ["sport/a.txt", TEXTS["sport/tennis"], "sport/tennis"]


@pytest.mark.parametrize("named", [True, False])
def test_a_sheet_of_very_many_columns_is_refused_as_a_table(
    himecat: Himecat, model: Path, tmp_path: Path, named: bool
) -> None:
    """Columns without a name get one: each another, and none of thousands of characters."""
    names = tuple(f"column {n}" if named else "" for n in range(MOST_COLUMNS))
    assert sum(map(len, column_names("", names))) < 16 * MOST_COLUMNS
    assert len({*column_names("", names)}) == MOST_COLUMNS
    (tmp_path / "docs.csv").write_text(",".join([*names, "text"]) + "\n" + "," * MOST_COLUMNS + "goal\n")
    ended = himecat("predict", model, tmp_path / "docs.csv", "-o", tmp_path / "out.parquet")
    assert (ended.code, (tmp_path / "out.parquet").exists()) == (2, False)
    assert "too many columns for a table: write JSON lines (.jsonl)" in ended.err


def test_excel_has_the_own_columns_and_then_ours_and_no_formula(
    himecat: Himecat, model: Path, sheet: Path, tmp_path: Path
) -> None:
    ended = run(himecat, model, sheet, tmp_path / "out.xlsx")
    assert "Placed 7 documents, 1 of them by their own label" in ended.err
    cells = list(openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows())
    names = [cell.value for cell in cells[0]]
    assert names == ["path", "text", "labels", "id", "himecat_path", *ADDED[1:], *OTHERS, "labelled"]
    assert tuple(row[0].value for row in cells[1:]) == EVIL
    assert {cell.data_type for row in cells for cell in row} <= {"s", "n", "b"}
    assert not any(cell.hyperlink for row in cells for cell in row)
    found = [dict(zip(names, (cell.value for cell in row), strict=True)) for row in cells[1:]]
    assert found[0]["himecat_path"] == "sport/football"
    assert (found[0]["level1"], found[0]["level2"]) == ("sport", "football")
    assert 0 < found[0]["alternative2_confidence"] <= found[0]["alternative1_confidence"]
    # The label wins over what the text says, is certain, and leaves no alternative.
    assert (found[1]["himecat_path"], found[1]["confidence"], found[1]["labelled"]) == ("politics", 1, True)
    assert (found[1]["level2"], found[1]["alternative1"]) == (None, None)
    assert [row["labelled"] for row in found].count(True) == 1


def test_csv_is_harmless_and_otherwise_as_it_was(
    himecat: Himecat, model: Path, sheet: Path, tmp_path: Path
) -> None:
    ended = run(himecat, model, sheet, tmp_path / "out.csv")
    raw = (tmp_path / "out.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfpath,text,labels,id,himecat_path,")
    found = list(csv.DictReader((tmp_path / "out.csv").read_text("utf-8-sig").splitlines(keepends=True)))
    assert [row["path"] for row in found] == [f"'{note}" if note[0] in "=+@" else note for note in EVIL]
    assert "note: 3 cells would be taken as formulas" in ended.err
    assert [row["text"] for row in found] == (list(TEXTS.values()) * 3)[: len(EVIL)]
    # It can be read again by himecat itself, where the name of our column is taken by now.
    run(himecat, model, tmp_path / "out.csv", tmp_path / "again.tsv")
    header = (tmp_path / "again.tsv").read_text("utf-8-sig").split("\n")[0].rstrip("\r").split("\t")
    assert header[: len(found[0])] == list(found[0])
    assert header[len(found[0])] == "himecat_himecat_path"


def test_json_lines_are_what_they_were_without_labels_and_options(
    himecat: Himecat, model: Path, tmp_path: Path
) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS.values()))
    plain = [json.loads(line) for line in run(himecat, model, documents, Path("-")).out.splitlines()]
    assert [list(line) for line in plain] == [["id", "path", "confidence", "leaf", "none"]] * 3
    more = run(himecat, model, documents, Path("-"), "--top", 1, "--min-confidence", 1).out.splitlines()
    for before, line in zip(plain, map(json.loads, more), strict=True):
        assert line["leaf"] is False
        assert line["path"] == before["path"][: len(line["path"])]
        assert line["guess"] == before["path"]
        assert line["guess_confidence"] == before["confidence"][-1]
        ((path, sure),) = line["alternatives"]
        assert path != line["guess"]
        assert 0 < sure <= line["guess_confidence"]


def test_labels_are_kept_marked_and_can_be_ignored(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    football = TEXTS["sport/football"]
    labels = ["politics", ["sport", "tennis"], "sport", None, "cooking"]
    documents = tmp_path / "docs.jsonl"
    documents.write_text("".join(json.dumps({"text": football, "labels": one}) + "\n" for one in labels))
    ended = run(himecat, model, documents, Path("-"))
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [line.get("labelled") for line in found] == [True, True, True, None, None]
    assert [line["path"] for line in found[:2]] == [["politics"], ["sport", "tennis"]]
    assert [line["confidence"] for line in found[:2]] == [[1.0], [1.0, 1.0]]
    # Below an inner label the model goes on: its leaf is the likeliest one there.
    assert found[2]["path"] == ["sport", "football"]
    assert found[2]["confidence"][0] == 1.0 > found[2]["confidence"][1]
    assert "the labels of 1 document are no categories of the model" in ended.err
    ignored = run(himecat, model, documents, Path("-"), "--ignore-labels").out.splitlines()
    assert {line.partition('"path"')[2] for line in ignored} == {
        ended.out.splitlines()[3].partition('"path"')[2]
    }
    # Even where nothing is sure enough, a document stays within its label.
    sure = run(himecat, model, documents, Path("-"), "--min-confidence", 1).out.splitlines()
    assert [json.loads(line)["path"] for line in sure[:3]] == [["politics"], ["sport", "tennis"], ["sport"]]


def test_parquet_keeps_types_and_bad_documents_their_columns(
    himecat: Himecat, model: Path, tmp_path: Path
) -> None:
    texts = [TEXTS["politics"], " ", TEXTS["sport/tennis"]]
    table = pa.table(
        {
            "n": pa.array([None, 2, 3], pa.int16()),
            "empty": pa.array([None] * 3, pa.string()),
            "text": texts,
            "tags": pa.array([["a"], [], None], pa.list_(pa.string())),
        }
    )
    pq.write_table(table, tmp_path / "docs.parquet")
    run(himecat, model, tmp_path / "docs.parquet", tmp_path / "out.parquet", "--skip-bad", "--top", 0)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == [*table.column_names, *ADDED]
    assert found.select(table.column_names).equals(table)
    assert found["path"].to_pylist() == ["politics", None, "sport/tennis"]
    assert found["confidence"].to_pylist()[1] is None
    run(himecat, model, tmp_path / "docs.parquet", tmp_path / "out.xlsx", "--skip-bad", "--top", 0)
    rows = list(openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(values_only=True))
    assert rows[0][:4] == ("n", "empty", "text", "tags")
    assert rows[2][:5] == (2, None, " ", None, None)


def test_json_lines_to_parquet_take_one_type_for_a_column(
    himecat: Himecat, model: Path, tmp_path: Path
) -> None:
    rows = [
        {"text": TEXTS["politics"], "size": 1, "odd": 1, "deep": {"a": [1]}},
        {"text": TEXTS["politics"], "when": "now", "size": 2.5, "odd": "x", "tags": ["a", "b"]},
    ]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(himecat, model, tmp_path / "docs.jsonl", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    # A field that the first document lacks stands where the others have it.
    assert found.column_names[:6] == ["text", "when", "size", "odd", "tags", "deep"]
    assert found["size"].to_pylist() == [1.0, 2.5]
    assert found["odd"].to_pylist() == ["1", "x"]
    assert found["deep"].to_pylist() == ['{"a": [1]}', None]
    assert found["tags"].to_pylist() == [None, ["a", "b"]]


def test_what_excel_cannot_hold_is_told(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    row = {"text": TEXTS["politics"], "long": "x" * 40_000, "bell": "a\x07b _x0041_", "id": 2**63 + 1}
    (tmp_path / "docs.jsonl").write_text(json.dumps(row) + "\n")
    ended = run(himecat, model, tmp_path / "docs.jsonl", tmp_path / "out.xlsx")
    assert "note: 1 cell had more than the 32,767 characters" in ended.err
    assert "note: 1 cell held characters that cannot be written" in ended.err
    found = list(openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(values_only=True))[1]
    assert (len(found[1]), found[2], found[3]) == (32_767, "a_x0007_b _x005F_x0041_", str(2**63 + 1))


@pytest.mark.parametrize("kind", ["xlsx", "csv", "parquet"])
def test_the_same_table_is_the_same_bytes(
    himecat: Himecat, model: Path, sheet: Path, tmp_path: Path, kind: str
) -> None:
    found = []
    for name in ("one", "two"):
        run(himecat, model, sheet, tmp_path / f"{name}.{kind}")
        found.append((tmp_path / f"{name}.{kind}").read_bytes())
        time.sleep(2.1 * (kind == "xlsx" and name == "one"))  # the clock of a zip file has two seconds
    assert found[0] == found[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full")
@pytest.mark.parametrize("kind", ["xlsx", "csv", "parquet"])
def test_a_full_disk_is_one_sentence(model: Path, sheet: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / f"full.{kind}").symlink_to("/dev/full")
    command = [sys.executable, "-m", "himecat", "predict", model, sheet, "-o", tmp_path / f"full.{kind}"]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.endswith("No space left on device.\n")


def test_a_second_sheet_takes_what_one_cannot_hold(
    himecat: Himecat, model: Path, sheet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("himecat.output.tables._SHEET_ROWS", 5)
    run(himecat, model, sheet, tmp_path / "out.xlsx")
    sheets = pd.read_excel(tmp_path / "out.xlsx", sheet_name=None)
    assert [len(one) for one in sheets.values()] == [4, 3]
    assert len({tuple(one.columns) for one in sheets.values()}) == 1


@pytest.mark.parametrize("name", ["out.xlsx", "out.csv", "out.parquet"])
def test_a_table_appears_whole_or_not_at_all(
    himecat: Himecat, model: Path, tmp_path: Path, name: str
) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text(json.dumps({"text": TEXTS["politics"]}) + "\n{broken\n")
    (tmp_path / name).write_text("old")
    ended = himecat("predict", model, documents, "-o", tmp_path / name)
    assert ended.code == 2
    assert "broken JSON" in ended.err
    assert "Exception" not in ended.err
    assert (tmp_path / name).read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["docs.jsonl", name])
    ended = himecat("predict", model, documents, "-o", tmp_path / "none" / name)
    assert ended.code == 2
    assert "does not exist" in ended.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_a_pipe_cannot_be_read_twice(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "docs.jsonl")
    ended = himecat("predict", model, tmp_path / "docs.jsonl", "-o", tmp_path / "out.csv")
    assert ended.code == 2
    assert "a pipe can be read only once" in ended.err


def test_half_a_character_stops_no_table(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"text": "budget law", "note": "cut \\ud83d"}\n')
    for name in ("out.csv", "out.xlsx", "out.parquet"):
        ended = run(himecat, model, tmp_path / "docs.jsonl", tmp_path / name)
        assert "held characters that cannot be written" in ended.err
    assert "cut \ufffd" in (tmp_path / "out.csv").read_text("utf-8-sig")


def test_a_missing_package_is_named(
    himecat: Himecat, model: Path, sheet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    ended = himecat("predict", model, sheet, "-o", tmp_path / "out.xlsx")
    assert ended.code == 2
    assert ended.errors == ['Writing .xlsx needs the package openpyxl: pip install "himecat[files]".']


def test_labelled_lines_are_left_out_of_a_score(
    himecat: Himecat, letters: Path, letters_model: Path, tmp_path: Path
) -> None:
    ignoring, keeping = tmp_path / "ignoring.jsonl", tmp_path / "keeping.jsonl"
    documents = letters / "documents.jsonl"
    run(himecat, letters_model, documents, ignoring, "--ignore-labels", "-q")
    run(himecat, letters_model, documents, keeping, "-q")
    # The labels that are shown are those of the first draw.
    without = [himecat("score", file, letters, "--without-draw", 0) for file in (ignoring, keeping)]
    assert without[0].out == without[1].out
    assert without[1].err == ""
    scored = himecat("score", keeping, letters)
    assert scored.out == without[0].out
    assert "carried are no predictions and count for nothing" in scored.err
    run(himecat, letters_model, letters / "corpus.jsonl", keeping, "-q")
    refused = himecat("score", keeping, letters)
    assert refused.code == 2
    assert "himecat predict --ignore-labels" in refused.err


def test_frames_come_back_as_they_were_given(model: Path) -> None:
    polars = pytest.importorskip("polars")
    fitted = HiMeCat.load(model).set_params(min_confidence=0.9999)
    frame = pd.DataFrame(
        {"text": list(TEXTS.values()), "labels": [None, "politics", None], "path": [1, 2, 3]},
        index=["x", "y", "x"],
    )
    found = fitted.predict_frame(frame, top=1)
    assert found.index.tolist() == ["x", "y", "x"]
    assert list(frame.columns) == ["text", "labels", "path"]
    assert found[["text", "labels", "path"]].equals(frame)
    expected = ["himecat_path", *ADDED[1:], *OTHERS[:2], "guess", "guess_confidence", "labelled"]
    assert list(found.columns[3:]) == expected
    assert found["himecat_path"].tolist()[1] == "politics"
    assert found["labelled"].tolist() == [False, True, False]
    assert found["guess"].tolist()[0] == "sport/football"
    assert found["guess"].isna().tolist() == [False, True, False]
    rows = found.astype(object).where(found.notna(), None).to_dict("records")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for form in (polars.from_pandas(frame), table, polars.from_pandas(frame).lazy(), table.to_batches()[0]):
        other = fitted.predict_frame(form, top=1)
        plain = other.to_dicts() if hasattr(other, "to_dicts") else other.to_pylist()
        assert plain == rows
    assert isinstance(fitted.predict_frame(table), pa.Table)
    listed = fitted.predict_frame(frame.to_dict("records"), top=1, ignore_labels=True)
    assert isinstance(listed, pd.DataFrame)
    assert "labelled" not in listed
    assert fitted.predict_frame(["budget law"])["text"].tolist() == ["budget law"]


def test_a_list_stays_one_where_there_is_no_pandas(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    (found,) = HiMeCat.load(model).predict_frame(["budget law"], top=0)
    assert (found["text"], found["path"], found["level2"]) == ("budget law", "politics", None)


def test_a_notebook_shows_few_rows_and_no_markup(model: Path) -> None:
    fitted = HiMeCat.load(model)
    shown = fitted.assign([*TEXTS.values()] * 50)._repr_html_()
    assert shown.count("<tr>") == 21
    assert "... and 130 more" in shown
    documents = fitted.explain(documents=["the <b>late</b> goal"])
    assert "football" in documents._repr_html_()
    assert documents[0]._repr_html_() == documents._repr_html_()
    assert "striker" in fitted.explain("football")._repr_html_()
    evil = HiMeCat(method=Default(min_count=1), threads=1)
    evil.fit(["goal match", "budget law"], ["<script>", "law"])
    assert "<script>" not in evil.assign(["goal"])._repr_html_()
    assert "<script>" not in evil.explain("<script>")._repr_html_()


def test_probabilities_that_are_no_numbers_are_refused(model: Path) -> None:
    from himecat.classifier.assignments import assign
    from himecat.errors import DataError
    from himecat.output.columns import PlacedColumns

    tree = HiMeCat.load(model).taxonomy_
    placed = assign(tree, np.full((1, 3), np.nan, dtype=np.float32), best=1)
    with pytest.raises(DataError, match="not a number"):
        list(PlacedColumns(tree, top=0).rows(placed, ["7"]))
