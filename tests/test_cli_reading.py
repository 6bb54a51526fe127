"""What a file leaves open, `--sheet`, `--delimiter` and `--separator`, for every command that reads one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Himecat

openpyxl = pytest.importorskip("openpyxl")

TEXTS = {
    "arts > opera": "the tenor sang an aria in the opera house",
    "arts > dance": "the ballet dancer turned on the stage floor",
    "sport > chess": "the rook took a pawn and the king was mated",
}
HEAD = ["Nr", "id", "path", "empty", "text", "labels"]
SMALL = ("--set=dimension=8", "--set=topics=2")


def rows(labelled: int = 12) -> list[list[Any]]:
    found = []
    for number in range(24):
        label = list(TEXTS)[number % 3]
        text = f"{TEXTS[label]} {number}"
        found.append([number, f"d{number}", "mine", None, text, label if number < labelled else None])
    return found


def written(path: Path, table: list[list[Any]], delimiter: str = "#") -> Path:
    """A workbook with the rows on its second sheet, or a CSV with a delimiter that is not guessed."""
    if path.suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, delimiter=delimiter).writerows(table)
        return path
    book = openpyxl.Workbook()
    book.active.append(["nothing", "here"])
    sheet = book.create_sheet("data")
    for row in table:
        sheet.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize(("kind", "option"), [("xlsx", "--sheet=data"), ("csv", "--delimiter=#")])
def test_every_command(kind: str, option: str, himecat: Himecat, tmp_path: Path) -> None:
    docs = written(tmp_path / f"docs.{kind}", [HEAD, *rows()])
    truth = written(tmp_path / f"truth.{kind}", [["id", "labels"], *([one[1], one[5]] for one in rows(24))])
    model, lines = tmp_path / "model", tmp_path / "out.jsonl"
    for command, *more in (
        ("check", docs, *SMALL),
        ("fit", docs, *SMALL, "-o", model),
        ("predict", model, docs, "--ignore-labels", "-o", lines),
        ("review", model, docs, "-n", 3, "-o", tmp_path / "r.csv"),
        ("correct", model, truth, "--dry-run"),
        ("explain", model, "--documents", docs),
        ("evaluate", docs, *SMALL, "--draws", 2, "--json", tmp_path / "e.json"),
        ("evaluate", docs, *SMALL, "--truth", truth, "--json", tmp_path / "t.json"),
        ("score", lines, truth, "--json", tmp_path / "s.json"),
        ("compare", docs, "--systems", "tfidf-svm", "--draws", 2, "--json", tmp_path / "c.json"),
    ):
        ended = himecat(command, *more, option)
        assert ended.code == 0, (command, ended.err)
        assert himecat(command, *more, "--overwrite" if command == "fit" else "-q").code == 2, command
    # The levels were found everywhere: a label is no name of a leaf.
    for name in ("e", "t", "s", "c"):
        assert json.loads((tmp_path / f"{name}.json").read_text())
    assert json.loads((tmp_path / "s.json").read_text())["levels"][1]["level"] == 2
    assert "overall" in json.loads((tmp_path / "e.json").read_text())["mean"]


def test_the_table_has_the_columns_of_the_sheet_that_was_read(himecat: Himecat, tmp_path: Path) -> None:
    docs = written(tmp_path / "docs.xlsx", [HEAD, *rows()])
    model = tmp_path / "model"
    assert himecat("fit", docs, *SMALL, "--sheet=data", "-o", model).code == 0
    for out in ("out.csv", "out.xlsx"):
        ended = himecat("predict", model, docs, "--sheet=data", "--top", 1, "-o", tmp_path / out)
        assert ended.code == 0, ended.err
    added = [
        "himecat_path",
        "level1",
        "level2",
        "confidence",
        "none",
        "alternative1",
        "alternative1_confidence",
        "labelled",
    ]
    table = list(openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(values_only=True))
    assert list(table[0]) == HEAD + added
    assert table[1][:8] == (0, "d0", "mine", None, rows()[0][4], "arts > opera", "arts > opera", "arts")
    with open(tmp_path / "out.csv", encoding="utf-8-sig", newline="") as stream:
        assert next(csv.reader(stream)) == HEAD + added


@pytest.mark.parametrize("kind", ["xlsx", "csv"])
def test_columns_without_a_name_stay_where_they_are(kind: str, himecat: Himecat, tmp_path: Path) -> None:
    table = [["", *HEAD[:2], "", *HEAD[3:]], *(["i", one[0], one[1], "ii", *one[3:]] for one in rows())]
    docs = written(tmp_path / f"docs.{kind}", table)
    option = "--sheet=data" if kind == "xlsx" else "--delimiter=#"
    assert himecat("fit", docs, *SMALL, option, "-o", tmp_path / "model").code == 0
    assert himecat("predict", tmp_path / "model", docs, option, "-o", tmp_path / "out.xlsx").code == 0
    found = list(openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(values_only=True))
    assert [(name or "").strip() for name in found[0][:7]] == table[0]
    assert [str(cell) for cell in found[1][:4]] == ["i", "0", "d0", "ii"]


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_the_columns_of_a_file_in_another_encoding(encoding: str, himecat: Himecat, tmp_path: Path) -> None:
    names = ["Größe" if name == "Nr" else name for name in HEAD]
    text = "\n".join("|".join("" if cell is None else str(cell) for cell in row) for row in [names, *rows()])
    docs = tmp_path / "docs.csv"
    docs.write_bytes(f"sep=|\n{text}".encode(encoding))
    assert himecat("fit", docs, *SMALL, "-o", tmp_path / "model").code == 0
    ended = himecat("predict", tmp_path / "model", docs, "-o", tmp_path / "out.csv")
    assert ended.code == 0, ended.err
    with open(tmp_path / "out.csv", encoding="utf-8-sig", newline="") as stream:
        assert next(csv.reader(stream, delimiter="|"))[:6] == names


def test_separator_of_new_documents_and_answers(himecat: Himecat, tmp_path: Path) -> None:
    docs = written(tmp_path / "docs.csv", [HEAD, *rows()], ",")
    model = tmp_path / "model"
    assert himecat("fit", docs, *SMALL, "-o", model).code == 0
    other = [["id", "text", "labels"], ["d20", rows()[20][4], "sport -> chess"]]
    later = written(tmp_path / "later.csv", other, ",")
    assert "no categories of the model" in himecat("predict", model, later, "-o", tmp_path / "o.csv").err
    ended = himecat("predict", model, later, "--separator", "->", "-o", tmp_path / "o.csv")
    assert "1 of them by their own label" in ended.err
    assert "sport -> chess,sport,chess" in (tmp_path / "o.csv").read_text("utf-8-sig")
    assert himecat("correct", model, later).code == 2
    ended = himecat("correct", model, later, "--separator", "->")
    assert ended.code == 0, ended.err
    # The model goes on as its labels are written.
    assert himecat("predict", model, docs, "-o", tmp_path / "o.csv").code == 0
    assert "arts > opera,arts,opera" in (tmp_path / "o.csv").read_text("utf-8-sig")


def test_levels_in_columns_and_separators_in_evaluate(himecat: Himecat, tmp_path: Path) -> None:
    head = ["id", "text", "level1", "level2"]
    levels = [[one[1], one[4], *(one[5].split(" > ") if one[5] else ("", ""))] for one in rows()]
    found = []
    for name, table in (("levels", [head, *levels]), ("joined", [HEAD, *rows()])):
        docs = written(tmp_path / f"{name}.csv", table, ",")
        ended = himecat("evaluate", docs, *SMALL, "--draws", 2, "--json", tmp_path / "e.json")
        assert ended.code == 0, ended.err
        result = json.loads((tmp_path / "e.json").read_text())["mean"]
        found.append((result["leaf"], result["overall"], len(result["calibration"])))
    assert found[0] == found[1]
    assert found[0][2] == 2
