from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from himecat import Default, HiMeCat, Taxonomy, read_corpus
from himecat.errors import UsageError
from himecat.input.check import CheckReport, check, render
from himecat.input.documents import Fields
from himecat.input.problems import Severity

TREE = {"science": ["physics", "biology"], "arts": None}
TAGS = Fields(metadata=("tags",))


def document(text: str, labels: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"text": text, "labels": labels, **metadata}


def sound() -> list[dict[str, Any]]:
    """Two labelled documents per leaf and some without labels; nothing to complain about."""
    documents = []
    for number, label in enumerate(["physics", "biology", "arts"] * 2 + [None] * 6):
        text = f"words number{number} of this document about thing{number % 3}"
        documents.append(document(text, label, tags=[f"t{number % 4}"]))
    return documents


def messages(report: CheckReport, severity: Severity) -> list[str]:
    return [str(problem) for problem in report.problems.of(severity)]


def printed(report: CheckReport, width: int = 80) -> str:
    stream = io.StringIO()
    render(report, Console(width=width, file=stream))
    return stream.getvalue()


def dataset(folder: Path, documents: list[Any], draw: str | None = None, meta: str = '["tags"]') -> Path:
    (folder / "corpus.jsonl").write_text("".join(json.dumps(item) + "\n" for item in documents))
    (folder / "label_hier.txt").write_text("ROOT science arts\nscience physics biology\n")
    (folder / "meta_dict.json").write_text(f'{{"metadata": {meta}}}')
    if draw is not None:
        (folder / "doc_id.txt").write_text(draw)
    return folder


class TestSummary:
    def test_sound_input_has_no_problems(self) -> None:
        report = check(sound(), TREE, TAGS)
        assert list(report.problems) == []
        assert (report.documents, report.labelled, report.labelled_at_inner) == (12, 6, 0)
        assert report.labels_per_leaf == (("arts", 2), ("science/physics", 2), ("science/biology", 2))
        assert report.label_range == (2, 2.0, 2)
        assert report.leaves_without_labels == []

    def test_words(self) -> None:
        report = check(["a b c d", "a b c", "a b x y z w"], None, min_count=2)
        assert (report.tokens, report.words, report.vocabulary) == (13, 8, 3)
        assert report.words_per_document == (4.0, 6)

    def test_only_the_used_words_count_but_lengths_are_true(self) -> None:
        report = check(["a b c d e", "a b c d", "a b c"], None, max_tokens=3, min_count=3)
        assert (report.tokens, report.words, report.vocabulary) == (9, 3, 3)
        assert report.words_per_document == (4.0, 5)
        assert "2 documents with more than 3 words: the rest is not used." in messages(report, "note")

    def test_metadata(self) -> None:
        values = [["x", "y"], ["x"], ["z"], [], ["x", "x"]]
        (tags,) = check([document("a b c", tags=v) for v in values], TREE, TAGS).metadata
        assert (tags.coverage, tags.distinct, tags.repeated, tags.sharing) == (0.8, 3, 1, 0.6)
        assert tags.commonest == ("x", 3)

    def test_as_dict_is_json_and_complete(self) -> None:
        plain = check(
            [*sound(), document("words of this document", "phisics")], TREE, TAGS, min_count=2
        ).as_dict()
        assert json.loads(json.dumps(plain))["documents"] == 13
        assert plain["tree"] == {"depth": 2, "leaves": 3, "categories": 4}
        assert plain["labels"]["per_leaf"] == {"min": 2, "median": 2.0, "max": 2}
        assert plain["labels"]["leaves"][0] == {"leaf": "arts", "documents": 2}
        assert plain["counts"] == {"error": 1, "warning": 0, "note": 0}
        assert plain["problems"] == [
            {
                "severity": "error",
                "place": "document 12",
                "message": "unknown label 'phisics'; did you mean 'physics'?",
            }
        ]


class TestErrors:
    def test_errors_of_documents_and_labels_are_all_in_the_report(self, tmp_path: Path) -> None:
        file = tmp_path / "docs.jsonl"
        rows = [*sound(), document("", "arts"), document("three words here", ["biology", "arts"])]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
        report = check(file, TREE, TAGS)
        errors = messages(report, "error")
        assert [error.partition(": ")[0] for error in errors] == [f"{file} line {n}" for n in (13, 15, 14)]
        assert "the text is empty" in errors[0]
        assert "broken JSON" in errors[1]
        assert "2 different leaves: science/biology and arts" in errors[2]
        assert report.documents == 13
        assert report.labelled == 6

    def test_bad_documents_can_be_skipped(self) -> None:
        report = check([*sound(), document("")], TREE, TAGS, skip_bad=True)
        assert messages(report, "error") == []
        assert messages(report, "warning") == ["document 12: the text is empty."]

    def test_what_cannot_be_read_at_all(self, tmp_path: Path) -> None:
        assert messages(check(tmp_path / "no.jsonl", TREE), "error") == [
            f"{tmp_path / 'no.jsonl'}: there is no such file."
        ]
        assert messages(check([], TREE), "error") == ["There is no document to work with."]
        only_bad = check([document("")], TREE, skip_bad=True)
        assert messages(only_bad, "error") == ["There is no document to work with."]
        assert messages(only_bad, "warning") == ["document 0: the text is empty."]

    def test_a_broken_tree_leaves_the_summary_of_the_documents(self, tmp_path: Path) -> None:
        (tmp_path / "tree.txt").write_text("ROOT a b\na a\nb c c\n")
        report = check(sound(), tmp_path / "tree.txt", TAGS)
        assert len(messages(report, "error")) == 2
        assert report.documents == 12
        assert report.taxonomy is None
        assert report.as_dict()["tree"] is None

    def test_no_labels_at_all(self) -> None:
        documents = [document("three words here")]
        assert messages(check(documents, TREE), "error") == [
            "no document has the field 'labels'; fields found: 'text'. Name the labels' field with label_field=, or "
            "label about five documents of each category."
        ]
        assert messages(check(documents), "error") == messages(check(documents, TREE), "error")

    def test_the_tree_is_inferred_from_labels(self) -> None:
        report = check([document("three words here", label) for label in ("a/b", ["a", "c"], "d", 5, 5.5)])
        assert report.labels_per_leaf == (("5", 1), ("d", 1), ("a/b", 1), ("a/c", 1))
        assert ["the number 5.5" in error for error in messages(report, "error")] == [True]


class TestWarnings:
    @pytest.mark.parametrize(
        ("extra", "tree", "warning"),
        [
            (
                [],
                {**TREE, "law": None},
                "One leaf has no labelled document and is learned from its name and the tree alone: law.",
            ),
            (
                [document("the only one", "law")],
                {**TREE, "law": None},
                "leaves with only one labelled document: law.",
            ),
            (
                [document("too short")],
                TREE,
                "document 12: 1 document with fewer than 3 known words, this one first.",
            ),
            (
                [document("Words number0 of this document, about thing0!")],
                TREE,
                "document 12: 1 document with the same words as an earlier one, this one first, "
                "like document 0.",
            ),
            (
                [document(f"new text {n}", tags=["all"]) for n in range(20)],
                TREE,
                "the value 'all' of 'tags' is in 62% of documents and says little.",
            ),
        ],
    )
    def test_a_warning_for(self, extra: list[Any], tree: dict[str, Any], warning: str) -> None:
        report = check([*sound(), *extra], tree, TAGS, allow_empty_leaves=True)
        assert messages(report, "warning") == [warning]
        assert not report.problems.has_errors

    def test_labels_of_inner_categories_are_no_mistake(self) -> None:
        report = check([*sound(), document("one of science", "science")], TREE, TAGS)
        assert messages(report, "warning") == []
        counted = "1 document labelled with an inner category, which counts for the leaves below it: science."
        assert counted in messages(report, "note")

    def test_many_leaves_are_named_up_to_a_limit(self) -> None:
        tree = {**TREE, "more": [f"m{n:02}" for n in range(14)]}
        (warning,) = messages(check(sound(), tree, TAGS, allow_empty_leaves=True), "warning")
        assert warning.startswith("14 of 17 leaves have no labelled document")
        assert warning.endswith("more/m08, more/m09 and 4 more.")

    def test_rare_words_are_not_known_words(self) -> None:
        report = check([*sound(), document("unheard unseen unknown")], TREE, TAGS, min_count=2)
        assert len(messages(report, "warning")) == 1

    def test_metadata_that_connects_nothing(self) -> None:
        documents = [{**row, "number": f"n{row['text']}", "empty": []} for row in sound()]
        fields = Fields(metadata=("tags", "number", "empty", "absent"))
        report = check(documents, TREE, fields)
        warnings = messages(report, "warning")
        assert "every value of 'number' occurs once, so it connects no documents." in warnings
        assert "no document has a value in 'empty'; leave the field out." in warnings
        assert ["'absent'" in error for error in messages(report, "error")] == [True]
        assert len(warnings) == 2

    def test_without_metadata_other_fields_are_named(self) -> None:
        rows = [
            {
                **row,
                "year": 2019 + number % 2,
                "seen": datetime.date(2019, 5, 1 + number),
                "price": number + 0.5,
                "row": number,
                "body": "long " * 50,
                "source": "web" if number else None,
                "nothing": " ",
                "nested": {"a": 1},
            }
            for number, row in enumerate(sound())
        ]
        assert messages(check(rows, TREE), "note") == [
            "No metadata fields were named: text alone is used.",
            "these fields could serve as metadata: tags, year, seen, price, source.",
        ]

    def test_a_generator_is_read_once(self) -> None:
        report = check((row for row in sound()), TREE)
        assert report.documents == 12
        assert messages(report, "note") == ["No metadata fields were named: text alone is used."]


def test_a_corpus_and_labels_of_its_own() -> None:
    documents = sound()
    corpus = read_corpus(documents, metadata=["tags"])
    labels = [row["labels"] for row in documents]
    model = HiMeCat(TREE, ["tags"], method=Default(min_count=1))
    report = model.check(corpus, labels)
    assert not report.problems.has_errors
    assert report.labels_per_leaf == check(documents, TREE, TAGS).labels_per_leaf
    with pytest.raises(UsageError, match="There are 12 documents but 11 labels"):
        model.check(corpus, labels[1:])
    assert "only one leaf" in str(
        model.set_params(taxonomy=Taxonomy.from_paths([("a",)])).check(corpus).problems.items[0]
    )


class TestDatasets:
    ROWS = tuple(
        document(f"words number{n} of text", ["physics", "biology", "arts"][n % 3], tags=[f"t{n % 5}"])
        for n in range(21)
    )

    def test_a_sound_folder(self, tmp_path: Path) -> None:
        report = check(dataset(tmp_path, list(self.ROWS), "physics\t0 3\nbiology\t1 4\narts\t2 5\n"))
        assert list(report.problems) == []
        assert (report.documents, report.labelled) == (21, 6)
        assert [kind.name for kind in report.metadata] == ["tags"]

    def test_without_a_listed_draw(self, tmp_path: Path) -> None:
        report = check(dataset(tmp_path, list(self.ROWS)))
        assert report.labelled == 15
        assert messages(report, "note") == [
            f"{tmp_path}: there is no doc_id.txt: draw 0 is a random one, like the others."
        ]

    def test_leaves_too_small_for_a_draw(self, tmp_path: Path) -> None:
        report = check(dataset(tmp_path, list(self.ROWS[:16])))
        assert messages(report, "warning") == [
            f"{tmp_path / 'corpus.jsonl'}: leaves with too few documents to draw 5 and test: "
            "arts, science/biology."
        ]

    def test_a_draw_that_contradicts_the_documents(self, tmp_path: Path) -> None:
        report = check(dataset(tmp_path, list(self.ROWS), "physics\t0 1\narts 99\n"))
        assert messages(report, "error") == [
            f"{tmp_path / 'doc_id.txt'}: document 1 is listed for science/physics, "
            "but its own label is science/biology.",
            f"{tmp_path / 'doc_id.txt'}: document 99 of 'arts' does not exist: the last one is 20.",
        ]

    def test_every_document_needs_its_label_and_bad_ones_are_told_once(self, tmp_path: Path) -> None:
        rows = [*self.ROWS, document("no label here"), document("", "arts")]
        report = check(dataset(tmp_path, rows))
        assert len(messages(report, "error")) == 2
        assert report.labels_per_leaf == ()

    def test_skipping_would_shift_the_draws(self, tmp_path: Path) -> None:
        report = check(dataset(tmp_path, [*self.ROWS, document("", "arts")]), skip_bad=True)
        (error,) = messages(report, "error")
        assert "draws count them" in error

    def test_a_malformed_folder(self, tmp_path: Path) -> None:
        (error,) = messages(check(tmp_path), "error")
        assert error.startswith(f"{tmp_path}: the documents are missing")
        (error,) = messages(check(dataset(tmp_path, list(self.ROWS), meta='["text"]')), "error")
        assert error.startswith(f"{tmp_path / 'meta_dict.json'}: The field 'text' is named twice")


class TestPrinted:
    def test_what_a_user_sees(self) -> None:
        text = printed(
            check([*sound(), document("odd [bold]label[/bold]", "[red]")], TREE, TAGS, min_count=2)
        )
        lines = [line.rstrip() for line in text.split("\n")]
        assert lines[0] == "documents            13, of which 6 labelled"
        assert "labels per leaf      2 each" in lines
        assert "├── physics (2)" in lines
        assert any(line.split() == ["tags", "92.3%", "4", "4", "92.3%"] for line in lines)
        assert "1 error" in lines
        assert "- document 12: unknown label '[red]': it is not in the tree." in lines
        assert "no errors" not in lines

    def test_it_fits_80_columns_and_counts_what_it_hides(self) -> None:
        documents = [*sound(), *(document(f"some text {n}", f"{n}nowhere" * 9) for n in range(60))]
        text = printed(check(documents, TREE, TAGS))
        assert max(map(len, text.split("\n"))) <= 80
        assert "60 errors" in text
        assert "... and 10 more" in text

    def test_large_trees_are_not_drawn(self) -> None:
        tree = {**TREE, "more": [f"m{n:02}" for n in range(30)]}
        text = printed(check(sound(), tree, TAGS, allow_empty_leaves=True))
        assert "m03" not in text.split("warning")[0]

    def test_without_documents_only_the_errors_are_printed(self) -> None:
        assert printed(check([], TREE)).split("\n")[1:3] == [
            "1 error",
            "- There is no document to work with.",
        ]

    def test_no_errors_are_stated(self) -> None:
        assert printed(check(sound(), TREE, TAGS)).rstrip().endswith("no errors")


@pytest.mark.real
@pytest.mark.parametrize(("name", "documents", "leaves"), [("packages", 1968, 32), ("reviews", 8618, 41)])
def test_real_folders_are_sound(
    shared_data: Callable[[str], Path], name: str, documents: int, leaves: int
) -> None:
    report = check(shared_data(name))
    assert not report.problems.has_errors
    assert report.documents == documents
    assert report.labelled == 5 * leaves
    assert report.label_range == (5, 5.0, 5)
    assert all(0.5 < kind.coverage <= 1 for kind in report.metadata)
