from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.errors import UsageError
from himecat.input import documents as documents_module
from himecat.input.documents import Document, Fields, read_documents
from himecat.input.formats import Source
from himecat.input.problems import Problems


def chained(batches: Iterable[list[Document]]) -> list[Document]:
    return [document for batch in batches for document in batch]


def read(source: Source, **fields: Any) -> tuple[list[Document], list[str]]:
    problems = Problems()
    documents = chained(read_documents(source, Fields(**fields), problems))
    return documents, [str(problem) for problem in problems]


def one(record: dict[str, Any], **fields: Any) -> tuple[Document, list[str]]:
    documents, problems = read([record], **fields)
    return documents[0], problems


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": ()}, "at least one text field"),
        ({"metadata": ("tags", "tags")}, "'tags' is named twice"),
        ({"metadata": ("text",)}, "'text' is named twice"),
        ({"metadata": ("labels",)}, "'labels' is named twice"),
        ({"id": "labels"}, "'labels' is named twice"),
        ({"metadata": ("",)}, "non-empty string"),
        ({"metadata": (3,)}, "non-empty string"),
    ],
)
def test_fields_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Fields(**arguments)


def test_fields_take_lists_and_single_names() -> None:
    assert Fields(text="title", metadata=["a", "b"]) == Fields(("title",), ("a", "b"))  # type: ignore[arg-type]


def test_text_fields_are_joined_and_may_be_partly_missing() -> None:
    fields = {"text": ("title", "body")}
    assert one({"body": "b", "title": "a"}, **fields)[0].text == "a\nb"
    assert one({"title": " ", "body": "b"}, **fields)[0].text == "b"
    assert one({"body": "b"}, **fields)[0].text == "b"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"texte": "a", "id": "1"}, "no field 'text'; fields found: 'texte', 'id'."),
        ({}, "no field 'text'; fields found: none."),
        ({str(i): "a" for i in range(10)}, "'7' and 2 more."),
        ({"text": 3}, "the text field 'text' holds the number 3: make it a string."),
        ({"text": ["a"]}, "the text field 'text' holds a list: make it a string."),
        ({"text": ""}, "the text is empty."),
        ({"text": " \n\t"}, "the text is empty."),
        ({"text": "cut \ud83d"}, r"the field 'text' holds \ud83d, half of a character"),
    ],
)
def test_documents_without_a_usable_text(record: dict[str, Any], message: str) -> None:
    document, problems = one(record)
    assert not document.usable
    assert document.text == ""
    assert len(problems) == 1
    assert problems[0].startswith("document 0: ")
    assert message in problems[0]


@pytest.mark.parametrize(
    ("value", "values"),
    [
        ("a", ["a"]),
        ("a|b", ["a|b"]),
        (" a ", ["a"]),
        (["b", "a", "b ", "", " ", None], ["b", "a"]),
        (("a", "b"), ["a", "b"]),
        ("", None),
        ([], None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_metadata_values(value: Any, values: list[str] | None) -> None:
    document, problems = one({"text": "x", "tags": value, "other": "y"}, metadata=("tags", "other"))
    assert document.usable
    assert document.metadata == ({"tags": values} if values else {}) | {"other": ["y"]}
    assert not [problem for problem in problems if "no document" not in problem]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (float("inf"), "the number inf"),
        ({"a": "b"}, "an object"),
        ([["a"]], "a list with a list in it"),
        (b"a", "a value of type bytes"),
    ],
)
def test_metadata_that_is_not_text(value: Any, found: str) -> None:
    document, problems = one({"text": "x", "year": value}, metadata=("year",))
    assert not document.usable
    message = (
        f"the metadata field 'year' holds {found}: make it a string, a number, a date, or a list of them."
    )
    assert problems == [f"document 0: {message}"]


@pytest.mark.parametrize(
    ("value", "values"),
    [
        (2019, ["2019"]),
        (2019.0, ["2019"]),
        (1.5, ["1.5"]),
        (True, ["true"]),
        (["a", 3], ["a", "3"]),
        ({"b", "a"}, ["a", "b"]),
        (datetime.date(2024, 5, 1), ["2024-05-01"]),
        (np.array([2, 1]), ["2", "1"]),
    ],
)
def test_metadata_as_people_have_them(value: Any, values: list[str]) -> None:
    document, problems = one({"text": "x", "year": value}, metadata=("year",))
    assert problems == []
    assert document.metadata == {"year": values}


def test_every_error_of_a_document_is_reported() -> None:
    _, problems = one({"id": 1.5, "a": [[]], "b": {}}, metadata=("a", "b"))
    assert len(problems) == 4


def test_only_in_delimited_files_a_bar_separates_values(tmp_path: Path) -> None:
    path = tmp_path / "docs.csv"
    path.write_text("text,tags,labels,id\nx,a | b|a||,p/q,\ny,,,7\n")
    documents, problems = read(path, metadata=("tags",))
    assert problems == []
    assert [d.metadata for d in documents] == [{"tags": ["a", "b"]}, {}]
    assert [d.labels for d in documents] == ["p/q", None]
    assert [d.id for d in documents] == ["0", "7"]


@pytest.mark.parametrize(
    ("raw", "labels"),
    [
        (None, None),
        ("", None),
        (" ", None),
        ([], None),
        ((), None),
        ("a/b", "a/b"),
        (["a", "b"], ["a", "b"]),
        (0, "0"),
        (2.0, "2"),
        (2.5, 2.5),
    ],
)
def test_labels_stay_as_written(raw: Any, labels: Any) -> None:
    assert one({"text": "x", "labels": raw})[0].labels == labels


def test_ids() -> None:
    documents, problems = read([{"text": "x", "id": value} for value in ("a", 7, None, "", True, 1.5, [1])])
    assert [d.id for d in documents] == ["a", "7", "2", "3", "4", "5", "6"]
    assert [d.usable for d in documents] == [True] * 4 + [False] * 3
    wrong = "the id in the field 'id' is the truth value true: make it a string or a whole number."
    assert problems[0] == f"document 4: {wrong}"


def test_duplicate_ids_name_both_places(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(
        '{"text": "x", "id": "a"}\n\n{"text": "x"}\n{"text": "x", "id": "a"}\n{"text": "x", "id": "b"}\n'
    )
    documents, problems = read(path)
    assert [d.usable for d in documents] == [True, True, False, True]
    assert problems == [f"{path} line 4: the id 'a' is also the id of {path} line 1: ids must differ."]


def test_ids_may_not_clash_with_positions() -> None:
    _, problems = read([{"text": "x", "id": "1"}, {"text": "x"}])
    assert problems == [
        "document 1: there is no id, and its position 1 is the id of document 0: give every document an id."
    ]
    _, problems = read(
        [{"text": "x"}, {"text": "x", "id": 0}, {"text": "x", "id": "00"}, {"text": "x", "id": "9"}]
    )
    assert problems == [
        "document 1: the id '0' is the position of document 0, which has no id: give every document an id."
    ]


@given(st.lists(st.none() | st.integers(-1, 12) | st.sampled_from(["a", "01", "3", "٣"]), max_size=12))
def test_usable_documents_never_share_an_id(values: list[Any]) -> None:
    documents, problems = read([{"text": "x", "id": value} for value in values])
    ids = [d.id for d in documents if d.usable]
    assert len(ids) == len(set(ids))
    assert len(documents) == len(values)
    assert bool(problems) == any(not d.usable for d in documents)


def test_unreadable_records_keep_their_position(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"text": "x"}\n{oops\n{"text": "y"}\n')
    documents, problems = read(path)
    assert [(d.id, d.text, d.usable) for d in documents] == [
        ("0", "x", True),
        ("1", "", False),
        ("2", "y", True),
    ]
    assert len(problems) == 1


def test_a_metadata_field_that_no_document_has_is_a_warning() -> None:
    problems = Problems()
    source = [{"text": "x", "tag": "a"}, {"text": "y", "brand": "b"}]
    chained(read_documents(source, Fields(metadata=("tags", "brand")), problems))
    assert [(p.severity, str(p)) for p in problems] == [
        (
            "warning",
            "no document has the metadata field 'tags'; did you mean 'tag'? fields seen: 'text', 'tag', 'brand'.",
        )
    ]
    assert read([], metadata=("tags",))[1] == []
    assert read([{"text": "x"}])[1] == []


def test_a_data_frame_with_gaps() -> None:
    frame = pd.DataFrame({"id": [5, None], "text": ["x", None], "tags": [["a"], None]})
    documents, problems = read(frame, metadata=("tags",))
    assert documents[0] == Document("row 0", "5", "x", {"tags": ["a"]}, None, True)
    assert problems == ["row 1: the document has no field 'text'; fields found: none."]


@given(st.lists(st.text("a\n ", max_size=9), max_size=9), st.integers(1, 4), st.integers(1, 12))
def test_batches_hold_all_documents_in_order(texts: list[str], size: int, characters: int) -> None:
    together, _ = read([{"text": text} for text in texts])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents_module, "_BATCH_CHARACTERS", characters)
        batches = list(read_documents([{"text": text} for text in texts], Fields(), Problems(), size=size))
    assert chained(batches) == together
    assert all(1 <= len(batch) <= size for batch in batches)
    assert all(sum(len(one.text) for one in batch[:-1]) < characters for batch in batches)


def test_the_unknown_id_of_an_unreadable_record_takes_no_id_away(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"text": "x", "id": 2}\n{oops\n{"text": "y", "id": 1}\n')
    documents, problems = read(path)
    assert [d.usable for d in documents] == [True, False, True]
    assert len(problems) == 1


@pytest.mark.parametrize(("between", "found"), [(0, True), (3, True), (4, False)])
def test_only_the_last_ids_are_remembered_where_memory_must_not_grow(between: int, found: bool) -> None:
    source = [
        {"id": name, "text": "a hen"} for name in ["twin", *map(str, range(100, 100 + between)), "twin"]
    ]
    problems = Problems()
    documents = chained(read_documents(source, Fields(), problems, remember=4))
    ids = [record["id"] for record in source]
    # The second of two is not the one that the id means.
    assert [one.id for one in documents] == ([*ids[:-1], documents[-1].place] if found else ids)
    assert problems.has_errors is found


def test_remembering_few_ids_says_the_same_as_remembering_all() -> None:
    source = [{"text": "a"}, {"id": "0", "text": "b"}, {"id": "x", "text": "c"}, {"id": "x", "text": "d"}]
    said = []
    for remember in (None, 100):
        problems = Problems()
        chained(read_documents(source, Fields(), problems, remember=remember))
        said.append([str(one) for one in problems.of("error")])
    assert said[0] == said[1]
    assert len(said[0]) == 2
