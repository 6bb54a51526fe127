"""Answers: from spreadsheets, JSON and Label Studio; what cannot be used is told with its row, all at once."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from himecat import Default, HiMeCat
from himecat.errors import DataError
from himecat.evaluation.review_workbook import workbook
from himecat.input.answers import Answers, label_for, read_answers
from himecat.input.documents import Fields
from himecat.input.formats import iter_records
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy

TREE = Taxonomy.from_paths(
    [("streets", "roads", "repairs"), ("streets", "lights"), ("homes", "repairs"), ("=sum", "-x"), ("7",)]
)
KNOWN = {name: row for row, name in enumerate(["a", "b", "=c", "12", "x\x07"])}
WIDTHS = dict.fromkeys(("id", "text", "suggestion1", "suggestion2", "suggestion3", "answer"), 10)


def read(source: Any, fields: Fields | None = None) -> tuple[Answers, list[str]]:
    problems = Problems()
    found = read_answers(source, TREE, fields or Fields(), KNOWN, problems)
    if problems.has_fatal:
        problems.raise_errors()
    return found, [str(problem) for problem in problems]


def titles(found: Answers) -> dict[str, str]:
    return {name: TREE.title(one.node) for name, one in found.given.items()}


ROW = {"id": "a", "suggestion1": "streets/lights", "suggestion2": "homes/repairs"}


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("1", "streets/lights"),
        (2, "homes/repairs"),
        (2.0, "homes/repairs"),
        (" lights ", "streets/lights"),
        ("streets", "streets"),
        (["homes", "repairs"], "homes/repairs"),
        ("ROOT/homes", "homes"),
        ("skip", None),
        ("SKIP", None),
        ("", None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_forms_of_an_answer(answer: Any, meant: str | None) -> None:
    found, said = read([{**ROW, "answer": answer}])
    assert (titles(found), said) == ({"a": meant} if meant else {}, [])
    assert found.skipped == (str(answer).lower() == "skip")


def test_what_cannot_be_used_is_told_with_its_place_all_at_once() -> None:
    found, said = read(
        [
            {**ROW, "answer": "3"},
            {"id": "b", "answer": "repairs"},
            {"id": "b", "answer": "light"},
            {"answer": "lights"},
            {"id": "a", "answer": "lights"},
            {"id": "a", "answer": "homes"},
            {"id": "b", "answer": True},
            {"id": "b", "answer": "ROOT"},
        ]
    )
    assert titles(found) == {"a": "streets/lights"}
    assert said == [
        "document 0: the answer is 3, and there is no suggestion 3 in the row.",
        "document 1: the label 'repairs' stands at 2 places in the tree: write homes/repairs or "
        "streets/roads/repairs instead.",
        "document 2: unknown label 'light'; did you mean 'lights'?",
        "document 3: the answer belongs to no document: there is no id in the field 'id'.",
        "document 5: the document 'a' is homes here and streets/lights at document 4: leave one of the answers.",
        "document 6: a label must be a name or a list of names, but the truth value true was found.",
        "document 7: the label 'ROOT' is the root of the tree, where every document belongs; name a category below "
        "it.",
    ]


def test_a_number_that_is_a_category_too() -> None:
    tree = Taxonomy.from_paths([("1",), ("skip",), ("b",)])
    problems = Problems()
    rows = [{**ROW, "answer": "1"}, {"id": "b", "answer": "skip"}, {"id": "12", "answer": "ROOT/1"}]
    found = read_answers(rows, tree, Fields(), KNOWN, problems)
    assert [one.id for one in found.given.values()] == ["12"]
    assert [str(one).split(":")[1] for one in problems] == [
        " the answer '1' is also the name of a category",
        " the answer 'skip' is also the name of a category",
    ]
    # In labels of documents a number is no suggestion.
    labelled = read_answers([{"id": "a", "labels": "1"}], tree, Fields(), KNOWN, Problems())
    assert labelled.given["a"].node == 1


def test_a_review_that_is_half_filled_in_is_not_labelled_by_its_labels() -> None:
    found, _ = read([{"id": "a", "answer": "", "labels": "lights"}, {"id": "b", "labels": "lights"}])
    assert titles(found) == {"b": "streets/lights"}


def test_a_field_of_the_documents_named_answer() -> None:
    fields = Fields(metadata=("answer",))
    found, _ = read([{"id": "a", "answer": "yes", "answer_": "lights"}], fields)
    assert titles(found) == {"a": "streets/lights"}


class TestWorkbook:
    def test_round_trip(self, tmp_path: Path) -> None:
        file = tmp_path / "review.xlsx"
        rows = [
            {"id": "=c", "text": "=a", "suggestion1": "=sum/-x", "answer": "1"},
            {"id": "12", "text": "+1", "answer": 7},
            {"id": "x\x07", "answer": "lights"},
        ]
        file.write_bytes(workbook(rows, WIDTHS, choices=["a"], choose_in="answer"))
        found, said = read(file)
        assert (titles(found), said) == ({"=c": "=sum/-x", "12": "7", "x\x07": "streets/lights"}, [])
        assert [one.place for one in found.given.values()][1] == f"{file} row 3"

    def test_no_text_becomes_a_formula(self) -> None:
        import io

        import openpyxl

        rows = [{"id": "=1+1", "text": "=HYPERLINK(1)", "answer": "@x"}]
        raw = workbook(rows, WIDTHS, choices=["=cmd"], choose_in="answer")
        for sheet in openpyxl.load_workbook(io.BytesIO(raw)):
            for row in sheet.iter_rows():
                assert {cell.data_type for cell in row if cell.value is not None} == {"s"}

    def test_the_same_rows_give_the_same_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import time

        rows = [{"id": "a", "text": "t"}]
        first = workbook(rows, WIDTHS)
        time.sleep(1.1)
        assert workbook(rows, WIDTHS) == first

    def test_characters_that_xml_lacks(self, tmp_path: Path) -> None:
        file = tmp_path / "r.xlsx"
        file.write_bytes(workbook([{"id": "a", "text": "\x00\x0b\ufffe\uffff\r\n\ud800"}], WIDTHS))
        (record,) = iter_records(file, Problems())
        assert record.fields == {"id": "a", "text": "\\x00\\x0b\ufffd\ufffd\\x0d\n\\ud800"}

    @pytest.mark.parametrize(
        "kind", ["text", "cut", "empty", "other archive", "folder", "missing", "flipped"]
    )
    def test_damaged_and_foreign_files(self, kind: str, tmp_path: Path) -> None:
        file = tmp_path / "review.xlsx"
        whole = workbook([{"id": "a", "answer": "lights"}], WIDTHS)
        if kind == "folder":
            file.mkdir()
        elif kind == "other archive":
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("a.txt", "b")
        elif kind != "missing":
            flipped = bytes(byte ^ (number % 50 == 7) for number, byte in enumerate(whole))
            content = {
                "text": b"id,answer\na,lights\n",
                "cut": whole[:-100],
                "empty": b"",
                "flipped": flipped,
            }
            file.write_bytes(content[kind])
        with pytest.raises(DataError) as raised:
            read(file)
        assert str(raised.value).startswith(f"{file}: ")
        assert "\n" not in str(raised.value)

    def test_a_bomb(self, tmp_path: Path) -> None:
        file = tmp_path / "bomb.xlsx"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/workbook.xml", b" " * (80 << 20))
        with pytest.raises(DataError, match="the bound is 200"):
            read(file)


def test_csv_with_apostrophes_before_what_looks_like_a_formula(tmp_path: Path) -> None:
    file = tmp_path / "review.csv"
    file.write_text("id,suggestion1,answer\n'=c,'=sum/-x,1\na,,'=sum\n")
    assert titles(read(file)[0]) == {"=c": "=sum/-x", "a": "=sum"}


def task(identity: Any, *paths: Any, **more: Any) -> dict[str, Any]:
    value = {"taxonomy": [list(path) for path in paths]}
    annotation = {"id": 1, "was_cancelled": False, "result": [{"type": "taxonomy", "value": value}], **more}
    return {"id": 900, "data": {"id": identity, "text": "t"}, "annotations": [annotation]}


def test_label_studio(tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    cancelled = task("b", ["homes"], was_cancelled=True)
    tasks = [task("a", ["streets"], ["streets", "lights"]), cancelled, task("12")]
    file.write_text(json.dumps(tasks))
    found, said = read(file)
    note = f"{file}: the documents are read as tasks of Label Studio: `data` has their fields, the annotations are "
    assert (titles(found), said) == ({"a": "streets/lights"}, [f"{note}their labels."])
    file.write_text(
        json.dumps([task("a", ["homes"], ["streets"]), {"data": {"id": "a"}, "annotations": [3]}])
    )
    found, said = read(file)
    assert said[1:] == [
        f"{file} document 0: the annotations name several categories: keep one of them in Label Studio.",
        f"{file} document 1: its annotations are not those of a Label Studio export (JSON).",
    ]


def test_labels_are_written_so_that_they_are_found_again() -> None:
    tree = Taxonomy.from_paths([("a", "b"), ("b",), ("c/d", "e"), ("c", "d", "e2")])
    for node in range(1, len(tree)):
        assert tree.find(label_for(tree, node)) == node
    rows = [{"id": str(node), "answer": label_for(tree, node, ">")} for node in range(1, len(tree))]
    assert rows[0]["answer"] == "a"
    known = {row["id"]: number for number, row in enumerate(rows)}
    problems = Problems()
    found = read_answers(rows, tree, Fields(), known, problems, ">").given
    assert ([*problems], {int(name): one.node for name, one in found.items()}) == (
        [],
        {node: node for node in range(1, len(tree))},
    )


def test_none_is_an_answer_that_goes_before_an_older_label_and_gives_way_to_a_newer_one() -> None:
    documents = [{"id": name, "text": text} for name, text in zip("abcd", TEXTS, strict=True)]
    model = HiMeCat(method=Default(min_count=1), threads=1).fit(
        documents, ["animals", "things", "animals", None]
    )
    found = model.correct({"c": "none", "d": "none"})
    assert (
        found.said
        == "2 answers: 0 confirm, 0 move, 2 fit nowhere, 1 older label replaced. 4 of 4 documents are labelled."
    )
    corpus, labels = model.learned_from()
    assert [corpus.ids[row] for row in labels.nowhere] == ["c", "d"]
    assert [corpus.ids[row] for row in labels.rows] == ["a", "b"]
    assert model.correct({"c": "animals"}).n_replaced == 1
    assert [corpus.ids[row] for row in model.learned_from().supervision.nowhere] == ["d"]


TEXTS = ("red fox den", "old car wheel", "red fox", "red car")
