"""What somebody with a spreadsheet gives: workbooks, other delimiters and encodings, categories as they are written."""

from __future__ import annotations

import datetime
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from faults.workbooks import Book, packed
from himecat import Default, HiMeCat, Taxonomy, read_taxonomy
from himecat.errors import DataError, UsageError
from himecat.input.check import check
from himecat.input.documents import Fields, read_documents
from himecat.input.problems import Problems
from himecat.input.reading import Reading
from himecat.input.separators import find_separator
from himecat.runtime.bounds import bounds, set_bounds

openpyxl = pytest.importorskip("openpyxl")

ROWS = [
    ("the striker scored a late goal", "sport > football"),
    ("a goal in the last match", "sport > football"),
    ("the serve won the tennis match", "sport > tennis"),
    ("a tennis serve and a volley", "sport > tennis"),
    ("parliament passed the budget law", "politics"),
    ("the minister defended the budget", "politics"),
]


def book(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets:
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def changed(path: Path, where: bytes, what: bytes, *, keep: bool = True) -> None:
    """Put something before a piece of XML of a workbook, or in its place."""
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            new.writestr(part.filename, old.read(part).replace(where, what + where * keep))
    path.write_bytes(stream.getvalue())


def documents(path: Path, **reading: Any) -> tuple[list[Any], list[str]]:
    problems = Problems()
    fields = Fields(metadata=("when",), reading=Reading(**reading))
    found = [one for batch in read_documents(path, fields, problems) for one in batch]
    return found, [str(problem) for problem in problems]


class TestWorkbooks:
    def test_cells_of_every_kind(self, tmp_path: Path) -> None:
        rows = [
            ["id", "text", "when", "labels"],
            [1, "A hen.", datetime.datetime(2024, 5, 1), "bird"],
            [None, None, None, None],
            [2, 1984, "a|b", 7],
            [3, "=1/0", True, None],
            [4, None, 2.5, ""],
        ]
        found, problems = documents(book(tmp_path / "d.xlsx", ("one", rows)))
        assert [one.text for one in found[:2]] == ["A hen.", "1984"]
        assert [one.metadata["when"] for one in found[:2]] == [["2024-05-01"], ["a", "b"]]
        assert [one.labels for one in found[:2]] == ["bird", "7"]
        # A formula that was never computed has no value.
        assert [one.usable for one in found] == [True, True, False, False]
        assert problems == [f"2 documents ({tmp_path / 'd.xlsx'} row 5, row 6): the text is empty."]

    def test_the_first_sheet_or_the_one_that_is_named(self, tmp_path: Path) -> None:
        path = book(tmp_path / "d.xlsx", ("old", [["text"], ["a"]]), ("new", [["text"], ["b"]]))
        first, said = documents(path)
        assert first[0].text == "a"
        assert "the first sheet, 'old', is read; sheet= names another: 'new'." in said[0]
        assert documents(path, sheet="new")[0][0].text == "b"
        assert (
            "there is no sheet 'older'; the sheets are 'old', 'new'" in documents(path, sheet="older")[1][0]
        )

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"PK\x03\x04 nothing", "damaged or of another kind"),
            (b"", "damaged or of another kind"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel"),
        ],
    )
    def test_what_is_no_workbook(self, tmp_path: Path, content: bytes, said: str) -> None:
        path = tmp_path / "d.xlsx"
        path.write_bytes(content)
        assert said in documents(path)[1][0]

    def test_what_expands_too_much_is_not_opened(self, tmp_path: Path) -> None:
        path = book(tmp_path / "d.xlsx", ("one", [["text"], ["a"]]))
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/more.xml", bytes(70 << 20))
        assert f"more than {bounds().ratio} times its size" in documents(path)[1][0]

    @pytest.mark.parametrize("before", ["", "<!--" + "x" * 9_000 + "-->"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_entities_are_refused(self, tmp_path: Path, before: str, encoding: str) -> None:
        path = tmp_path / "d.xlsx"
        page = f'<?xml version="1.0" encoding="{encoding}"?>{before}<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/workbook.bin", page.encode(encoding))
        assert "declares a document type" in documents(path)[1][0]

    def test_a_part_that_is_much_larger_than_it_looks_is_not_opened(self, tmp_path: Path) -> None:
        # As objects, 3 MB of empty styles are 400 MB.
        changed(
            path := book(tmp_path / "d.xlsx", ("one", [["text"], ["a"]])), b"</cellXfs>", b"<xf/>" * 600_000
        )
        assert "more than 200 times its size" in documents(path)[1][0]

    def test_rows_that_all_name_one_long_text_are_as_many_texts(self, tmp_path: Path) -> None:
        path = tmp_path / "d.xlsx"
        long = "".join(map(chr, range(256, 16_000)))
        path.write_bytes(packed(Book([["text"], *[[long]] * 3_000], shared=True).parts()))
        assert any("more than 200 times its size" in one for one in documents(path)[1])

    def test_rows_that_reach_to_the_last_column_are_not_read_for_ever(self, tmp_path: Path) -> None:
        path = book(tmp_path / "d.xlsx", ("one", [["text"], ["a"]]))
        rows = "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(3, 3_000))
        changed(path, b"</sheetData>", rows.encode())
        assert any("more than 200 times its size" in one for one in documents(path)[1])

    def test_a_document_below_very_many_empty_rows_is_read(self, tmp_path: Path) -> None:
        path = book(tmp_path / "d.xlsx", ("one", [["text"], ["a"]]))
        last = b'<row r="30000"><c r="A30000" t="str"><v>b</v></c></row>'
        changed(path, b"</sheetData>", last)
        assert [one.text for one in documents(path)[0]] == ["a", "b"]

    @pytest.mark.filterwarnings("error")
    def test_what_the_library_warns_of_is_told_in_our_words(self, tmp_path: Path) -> None:
        """A date after the year 9999 is an error in a cell, as #SPILL! is; missing styles are nobody's business."""
        rows = [["text", "when"], ["a", datetime.datetime(2024, 5, 1)], ["b", None]]
        path = book(tmp_path / "d.xlsx", ("one", rows))
        changed(path, b"<v>45413</v>", b"<v>99999999</v>", keep=False)
        changed(
            path,
            b"</sheetData>",
            b'<row r="4"><c r="A4" t="e"><v>#SPILL!</v></c><c r="B4"><v>1</v></c></row>',
        )
        found, said = documents(path)
        assert [one.text for one in found] == ["a", "b", ""]
        assert any("cells that hold an error such as #N/A are taken as empty: 2." in one for one in said)

    def test_rows_past_the_end_of_a_sheet_do_not_go_on_for_ever(self, tmp_path: Path) -> None:
        path = book(tmp_path / "d.xlsx", ("one", [["text"], ["a"]]))
        changed(path, b'<row r="2"', b'<row r="99999999999"', keep=False)
        assert documents(path)[0] == []


class TestDelimited:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
    def test_delimiters_and_encodings(self, tmp_path: Path, delimiter: str, encoding: str) -> None:
        lines = [["id", "text", "labels"], ["1", "Spaß: café", "a"], ["2", '"x, y; z"', ""]]
        path = tmp_path / "d.csv"
        path.write_bytes("".join(delimiter.join(line) + "\r\n" for line in lines).encode(encoding))
        found, said = documents(path)
        assert [one.text for one in found] == ["Spaß: café", "x, y; z"]
        assert any("Windows-1252" in one for one in said) == (encoding == "cp1252")
        assert any("are separated by" in one for one in said) == (delimiter != ",")

    def test_damaged_utf_8_is_not_taken_for_another_encoding(self, tmp_path: Path) -> None:
        path = tmp_path / "d.csv"
        path.write_bytes("id,text\n1,größer Übermut für Jürgen\n2,x".encode() + b"\xe4\n")
        assert "invalid UTF-8 at byte 4 of line 3" in documents(path)[1][0]

    def test_a_delimiter_can_be_given(self, tmp_path: Path) -> None:
        path = tmp_path / "d.csv"
        path.write_text("text#labels\na, b; c#x\n")
        assert documents(path, delimiter="#")[0][0].text == "a, b; c"
        with pytest.raises(UsageError, match="one character such as ;"):
            HiMeCat(delimiter="##").check(path)

    def test_excels_own_hint(self, tmp_path: Path) -> None:
        path = tmp_path / "d.csv"
        path.write_text("sep=;\ntext;labels\na, b;x\n")
        assert documents(path)[0][0].labels == "x"


class TestSeparators:
    @pytest.mark.parametrize("separator", [">", ">>", "->", "::", "|", "»", "→", "/"])
    @pytest.mark.parametrize("blank", [" ", ""])
    def test_each_gives_the_same_tree(self, separator: str, blank: str) -> None:
        labels = [label.replace(" > ", f"{blank}{separator}{blank}") for _, label in ROWS]
        rows = [{"text": text, "labels": label} for (text, _), label in zip(ROWS, labels, strict=True)]
        report = check(rows)
        assert not report.problems.has_errors
        assert [leaf for leaf, _ in report.labels_per_leaf] == ["politics", "sport/football", "sport/tennis"]
        assert f"`{separator}` separates levels" in str(report.problems.of("note")[0])

    def test_the_tree_tells(self) -> None:
        tree = Taxonomy.from_paths([("Audio/Video", "TV"), ("Audio/Video", "Radio"), ("a>b",)])
        assert find_separator(["Audio/Video > TV", "Audio/Video > Radio"], tree.nodes_by_name).text == ">"
        assert find_separator(["Audio/Video/TV", "a>b", "Radio"], tree.nodes_by_name).text == "/"
        assert find_separator(["Audio/Video", "a>b"], tree.nodes_by_name).text == "/"

    @pytest.mark.parametrize(
        ("labels", "separator"),
        [
            (["Audio/Video > TV", "Audio/Video > Radio", "Food/Drink > Tea"], ">"),
            (["a/b", "a/c", "x>y"], "/"),
            (["R&D", "Q > A", "x", "y", "z"], "/"),
            ([["a > b"], ["a > c"]], ">"),
            ([["a", "b > c"], ["a", "b > d"]], "/"),
        ],
    )
    def test_what_is_certain(self, labels: list[Any], separator: str) -> None:
        assert find_separator(labels, None).text == separator

    @pytest.mark.parametrize("labels", [["a/b>c", "a/b>d", "a/e>f"], ["a > b", "a > c", "d", "e", "f", "g"]])
    def test_what_is_doubtful_is_asked_for(self, labels: list[str]) -> None:
        with pytest.raises(DataError, match="separator='>'"):
            find_separator(labels, None)
        rows = [{"text": f"some words here {n}", "labels": label} for n, label in enumerate(labels)]
        assert HiMeCat(method=Default(min_count=1)).check(rows).problems.has_errors
        for given in (">", "none"):
            report = HiMeCat(method=Default(min_count=1), separator=given).check(rows)
            assert not report.problems.has_errors
            assert report.taxonomy is not None
            assert (report.taxonomy.depth > 1) == (given == ">")

    def test_it_is_kept_with_the_model(self, tmp_path: Path) -> None:
        rows = [{"text": text, "labels": label} for text, label in ROWS]
        model = HiMeCat(method=Default(min_count=1), threads=1).fit(rows)
        assert (model.separator, model.separator_) == (None, ">")
        model.save(tmp_path / "model")
        loaded = HiMeCat.load(tmp_path / "model")
        assert loaded.separator_ == ">"
        texts = [text for text, _ in ROWS]
        assert loaded.score(texts, [label for _, label in ROWS]) == model.score(
            texts, [label for _, label in ROWS]
        )
        assert loaded.explain("sport > tennis") == loaded.explain("sport/tennis")

    def test_labels_that_are_nearly_the_same_are_named(self) -> None:
        labels = ["sports/hockey", "Sports/Hockey", "arts/sculpture", "arts/sculptur"]
        rows = [{"text": f"some words here {n}", "labels": label} for n, label in enumerate(labels)]
        said = " ".join(str(one) for one in check(rows).problems.of("warning"))
        assert "'arts/sculptur' and 'arts/sculpture'" in said
        assert "'Sports' and 'sports'" in said


class TestLevels:
    def test_columns_are_found_or_named(self, tmp_path: Path) -> None:
        rows = [["text", "Level 1", "Level 2"], *([text, *label.split(" > ")] for text, label in ROWS)]
        path = book(tmp_path / "d.xlsx", ("one", rows))
        method = Default(min_count=1)
        for model in (HiMeCat(method=method), HiMeCat(method=method, label_field=["Level 1", "Level 2"])):
            leaves = [leaf for leaf, _ in model.check(path).labels_per_leaf]
            assert leaves == ["politics", "sport/football", "sport/tennis"]
        fitted = HiMeCat(method=method, threads=1).fit(path)
        assert fitted.label_field_ == ("Level 1", "Level 2")
        assert len(fitted.predict(path)) == len(ROWS)

    def test_a_gap_is_an_error(self) -> None:
        rows = [{"text": "a b c", "level1": "a", "level2": "", "level3": "c"}]
        assert "the level 'level2' is empty, and 'level3' below it is not" in str(
            check(rows).problems.of("error")[0]
        )


class TestMessages:
    def test_the_same_mistake_is_said_once(self, tmp_path: Path) -> None:
        path = tmp_path / "d.csv"
        path.write_text("id,Body\n" + "".join(f"{n},some words\n" for n in range(8_000)))
        errors = check(path).problems.of("error")
        assert [str(one) for one in errors] == [
            f"8,000 documents ({path} line 2, line 3, line 4, ...): the document has no field 'text'; fields found: "
            "'id', 'Body'. Name the text field with text='Body'."
        ]

    def test_a_metadata_field_that_is_nowhere_is_an_error_of_fit_and_check(self) -> None:
        rows = [{"text": text, "labels": label, "tags": "x"} for text, label in ROWS]
        model = HiMeCat(metadata=["tag"], method=Default(min_count=1))
        with pytest.raises(DataError, match="'tag'; did you mean 'tags'"):
            model.fit(rows)
        assert "did you mean 'tags'" in str(model.check(rows).problems.of("error")[0])

    def test_other_labels_field(self) -> None:
        rows = [{"text": text, "label": label} for text, label in ROWS]
        with pytest.raises(DataError, match="no document has the field 'labels'; did you mean 'label'"):
            HiMeCat().fit(rows)


class TestFolders:
    def test_text_files(self, tmp_path: Path) -> None:
        for n, (text, label) in enumerate(ROWS):
            folder = tmp_path.joinpath(*label.split(" > "))
            folder.mkdir(parents=True, exist_ok=True)
            content = f"<html><style>x</style><p>{text}</p>" if n % 2 else text
            (folder / f"{n}.{'html' if n % 2 else 'txt'}").write_text(content)
        (tmp_path / "picture.png").write_bytes(b"\x89PNG")
        model = HiMeCat(method=Default(min_count=1), labels_from_folders=True, threads=1).fit(tmp_path)
        assert [model.taxonomy_.title(leaf) for leaf in model.taxonomy_.leaves] == [
            "politics",
            "sport/football",
            "sport/tennis",
        ]
        assert "style" not in model.space_.vocabulary.index
        assert model.encode(tmp_path).ids[0] == "politics/4.txt"

    def test_the_papers_folders(self, tmp_path: Path) -> None:
        lines = [{"text": text, "labels": label.split(" > "), "who": "a"} for text, label in ROWS * 2]
        (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        (tmp_path / "label_hier.txt").write_text("ROOT sport politics\nsport football tennis\n")
        (tmp_path / "doc_id.txt").write_text("football\t0\ntennis\t2\npolitics\t4\n")
        (tmp_path / "meta_dict.json").write_text('{"metadata": ["who"]}')
        model = HiMeCat(method=Default(min_count=1), threads=1).fit(tmp_path)
        assert model.metadata_ == ("who",)
        assert len(model.space_.documents) == len(lines)
        model.save(tmp_path / "model")
        loaded = HiMeCat.load(tmp_path / "model")
        assert loaded.metadata_ == ("who",)
        found = [one.predict(X).tolist() for one, X in ((loaded, lines), (model, lines), (model, tmp_path))]
        assert found[0] == found[1] == found[2]


class TestTrees:
    TREE = (("politics",), ("sport", "football"), ("sport", "tennis"))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("t.txt", "sport/football\nsport/tennis\npolitics\n"),
            ("t.txt", "sport > football\nsport > tennis\npolitics\n"),
            ("t.paths", "politics\nsport\nsport/football\nsport/tennis"),
            ("t.csv", "level1,level2\nsport,football\nsport,tennis\npolitics,\n"),
            ("t.csv", "parent;child\nsport;football\nsport;tennis\n;politics\n;sport\n"),
            ("t.csv", "Parent,Child\nROOT,sport\nROOT,politics\nsport,football\nsport,tennis\n"),
            ("t.txt", "ROOT sport politics\nsport football tennis\n"),
        ],
    )
    def test_one_tree_in_many_forms(self, tmp_path: Path, name: str, content: str) -> None:
        (tmp_path / name).write_text(content)
        tree = read_taxonomy(tmp_path / name)
        assert tuple(sorted(tree.path(leaf) for leaf in tree.leaves)) == self.TREE

    def test_a_table_without_categories(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        with pytest.raises(DataError, match=r"level1, level2, \.\.\. or parent and child; found: 'a', 'b'"):
            read_taxonomy(tmp_path / "t.csv")


def test_bounds_hold_for_cells(tmp_path: Path) -> None:
    before = bounds()
    path = book(tmp_path / "d.xlsx", ("one", [["text"], ["word " * 500]]))
    try:
        set_bounds(line=1_000)
        assert "longer than it may be" in documents(path)[1][0]
    finally:
        set_bounds(**vars(before))


def test_from_categories_of_ones_own_and_back(tmp_path: Path) -> None:
    """Whatever separates the levels going in does so coming out, and is read again."""
    documents = [{"id": str(n), "text": text, "labels": label} for n, (text, label) in enumerate(ROWS * 2)]
    model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
    assert model.separator_ == ">"
    frame = model.predict_frame(documents)
    assert [(row["path"], row["labelled"]) for row in frame.to_dict("records")] == [
        (document["labels"], True) for document in documents
    ]
    model.save(tmp_path / "model")
    loaded = HiMeCat.load(tmp_path / "model")
    assert set(loaded.predict(documents)) <= {label for _, label in ROWS}
    answer = next(label for _, label in ROWS if ">" in label)
    found = loaded.correct({"0": answer})
    assert found.n_confirmed + found.n_moved == 1
    assert loaded.separator_ == ">"


def test_a_mapping_of_columns() -> None:
    columns = {"text": [text for text, _ in ROWS * 2], "labels": [label for _, label in ROWS * 2]}
    model = HiMeCat(method=Default(min_count=1), threads=1).fit(columns)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert model.predict(columns).tolist() == model.predict(rows).tolist()
    with pytest.raises(UsageError, match="a list for every field, all of one length"):
        model.predict({"text": ["a", "b"], "labels": ["a"]})
