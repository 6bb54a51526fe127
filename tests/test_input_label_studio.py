"""Exports of Label Studio as documents: one reader for `fit`, `predict`, `evaluate` and `correct`."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Himecat
from himecat import Default, HiMeCat
from himecat.input.documents import Fields, read_documents
from himecat.input.formats import iter_records
from himecat.input.problems import Problems

NOTE = "the documents are read as tasks of Label Studio"


def chosen(*paths: list[str], control: str = "topic", kind: str = "taxonomy", **more: Any) -> dict[str, Any]:
    value = {kind: [path if kind == "taxonomy" else path[0] for path in paths]}
    result = {"from_name": control, "to_name": "text", "type": kind, "value": value}
    return {"id": 5, "was_cancelled": False, "result": [result], **more}


def task(number: int, text: str, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {
        "id": number,
        "data": {"text": text, **data},
        "annotations": list(annotations),
        "predictions": [{"result": chosen(["wrong"])["result"], "score": 0.5}],
    }


def documents(source: Any, fields: Fields | None = None) -> tuple[list[tuple[str, object]], list[str]]:
    problems = Problems()
    read = [one for batch in read_documents(source, fields or Fields(), problems) for one in batch]
    return [(one.id, one.labels) for one in read], [str(one) for one in problems]


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_the_fields_are_those_of_data_and_the_annotation_is_the_label(tmp_path: Path) -> None:
    tasks = [
        task(1, "a", chosen(["arts"], ["arts", "opera"]), id="own", stars=None),
        task(2, "b", chosen(["arts", "opera"], was_cancelled=True)),
        task(3, "c", chosen(["sport"], kind="choices")),
        task(4, "d", chosen(["sport"], skipped=True), chosen(["arts", "opera"])),
    ]
    file = written(tmp_path / "export.json", tasks)
    found, said = documents(file)
    assert found == [("own", ["arts", "opera"]), ("2", None), ("3", ["sport"]), ("4", ["arts", "opera"])]
    assert [one.split(":")[1].strip() for one in said] == [NOTE]
    # Lists and lines of the same tasks are read alike.
    lines = tmp_path / "export.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in tasks))
    assert documents(tasks)[0] == documents(lines)[0] == found


def test_annotations_that_disagree_are_one_warning_with_their_number() -> None:
    tasks = [task(n, "a", chosen(["arts"]), chosen(["sport"])) for n in range(4)]
    tasks += [
        task(9, "b", chosen(["arts"]), chosen(["arts"])),
        task(10, "c", chosen(["arts"]), chosen(["sport"], ground_truth=True)),
    ]
    found, said = documents(tasks)
    assert [label for _, label in found] == [None] * 4 + [["arts"], ["sport"]]
    assert said[1:] == [
        "4 documents (document 0, document 1, document 2, ...): the annotations name several categories, so it counts "
        "as unlabelled: keep one of them in Label Studio."
    ]


def test_which_control_has_the_label() -> None:
    tasks = [
        task(
            1,
            "a",
            chosen(["arts"]),
            chosen(["glad"], control="mood", kind="choices"),
            labels="old",
            own="mine",
        ),
        task(2, "b", chosen(["glad"], control="mood", kind="choices"), labels="old", own="mine"),
    ]
    assert [label for _, label in documents(tasks, Fields(labels="topic"))[0]] == [["arts"], ["glad"]]
    assert [label for _, label in documents(tasks, Fields(labels="own"))[0]] == ["mine", "mine"]
    checked = HiMeCat().check(tasks)
    wanted = "annotated with 'topic', 'mood': name the one that has the category with --labels."
    assert any(str(one).endswith(wanted) for one in checked.problems.of("error"))


def test_a_control_that_is_named_like_another_field() -> None:
    checked = HiMeCat().check([task(1, "a", chosen(["arts"], control="id"))])
    assert [str(one) for one in checked.problems.of("error")][:1] == [
        "the annotation 'id' cannot be the category: The field 'id' is named twice; a field can play one part only."
    ]


def test_json_min(tmp_path: Path) -> None:
    about = {"annotation_id": 3, "created_at": "2026-01-01", "updated_at": "2026-01-01", "lead_time": 2.5}
    topic = [{"taxonomy": [["arts"], ["arts", "opera"]]}]
    rows = [
        {"text": "a", "id": 1, "topic": topic, "annotator": 1, **about},
        {"text": "a", "id": 1, "topic": topic, "annotator": 2, **about},
        {"text": "b", "id": 2, "topic": topic, "annotator": 1, **about},
        {"text": "b", "id": 2, "topic": [{"taxonomy": [["sport"]]}], "annotator": 2, **about},
        {"text": "c", "id": 3, "topic": {"choices": ["sport"]}, "annotator": 1, **about},
    ]
    found, said = documents(written(tmp_path / "min.json", rows))
    assert found == [("1", ["arts", "opera"]), ("2", None), ("3", ["sport"])]
    assert [NOTE in said[0], "several categories" in said[1], len(said)] == [True, True, 2]
    assert (
        len(documents([{**rows[0], "topic": {"taxonomy": [3]}}, {**rows[2], "topic": {"choices": 3}}])[0])
        == 2
    )
    # One choice is a text under the name of its control.
    for row, mood in zip(rows, ("glad", "glad", "sad", "glad", "sad"), strict=True):
        row["mood"] = mood
    assert [label for _, label in documents(rows, Fields(labels="mood"))[0]] == ["glad", None, "sad"]


def test_tasks_of_other_documents(himecat: Himecat, tmp_path: Path) -> None:
    tree = written(tmp_path / "tree.json", TREE)
    file, model = written(tmp_path / "export.json", letters()), tmp_path / "model"
    given = ("--taxonomy", tree, "--set=dimension=8", "--set=topics=2", "-o", model)
    assert himecat("fit", file, *given).code == 0
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["text", "when"], ["a late goal", datetime.date(2024, 5, 1)], [None, "x"], ["an aria", None]):
        book.active.append(row)
    book.save(tmp_path / "docs.xlsx")
    tasks = tmp_path / "out.ls.json"
    ended = himecat(
        "predict", model, tmp_path / "docs.xlsx", "--skip-bad", "--min-confidence", 1, "-o", tasks
    )
    assert ended.code == 0, ended.err
    assert json.loads(tasks.read_text()) == [
        {"data": {"id": "0", "text": "a late goal", "when": "2024-05-01T00:00:00"}, "predictions": []},
        {"data": {"id": "1", "when": "x"}, "predictions": []},
        {"data": {"id": "2", "text": "an aria"}, "predictions": []},
    ]


@pytest.mark.parametrize(
    "content",
    [
        [{"data": {"text": "a"}, "annotations": [3]}],
        [{"data": {"text": "a"}, "annotations": [{"result": 3}]}],
        [{"data": {"text": "a"}, "annotations": [{"result": [{"value": {"taxonomy": 3}}]}]}],
        [{"data": {"text": "a"}, "annotations": 3}],
        [{"data": {"text": "a"}, "predictions": []}, 3],
        [{"data": {"te\ud800xt": "a"}, "predictions": []}],
    ],
)
def test_tasks_that_are_none(content: Any, tmp_path: Path) -> None:
    found, said = documents(written(tmp_path / "export.json", content))
    assert len(found) == len(content)
    assert len(said) == 2


def test_other_objects_are_no_tasks() -> None:
    rows = [{"text": "a", "data": {"x": 1}}, {"text": "b", "annotations": []}]
    problems = Problems()
    assert [one.fields for one in iter_records(rows, problems)] == rows
    assert not list(problems)


TREE = {"arts": ["opera", "dance"], "sport": None}
TEXTS = {
    "opera": "the tenor sang an aria in the opera house",
    "dance": "the ballet dancer turned on the stage floor",
    "sport": "a late goal decided the football match today",
}


def letters() -> list[dict[str, Any]]:
    paths = {"opera": ["arts", "opera"], "dance": ["arts", "dance"], "sport": ["sport"]}
    found = []
    for number in range(24):
        name = list(TEXTS)[number % 3]
        given = [chosen(paths[name])] if number < 12 else []
        found.append(task(number, f"{TEXTS[name]} {number}", *given))
    return found


def test_commands(himecat: Himecat, tmp_path: Path) -> None:
    file, tree = written(tmp_path / "export.json", letters()), written(tmp_path / "tree.json", TREE)
    model = tmp_path / "model"
    given = ("--taxonomy", tree, "--set=dimension=8", "--set=topics=2")
    ended = himecat("fit", file, *given, "-o", model)
    assert ended.code == 0, ended.err
    assert NOTE in ended.err
    assert "the annotation 'topic' is taken as the category" in ended.err
    assert HiMeCat.load(model).label_field_ == "topic"
    ended = himecat("predict", model, file, "-o", tmp_path / "out.jsonl")
    assert NOTE in ended.err
    assert "12 of them by their own label" in ended.err
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [str(number) for number in range(24)]
    assert lines[0]["path"] == ["arts", "opera"]
    # What is written for Label Studio is read again as the same documents.
    tasks = tmp_path / "out.ls.json"
    ended = himecat("predict", model, file, "--top", 1, "-o", tasks)
    assert '<Taxonomy name="topic" toName="text">' in ended.err
    first = json.loads(tasks.read_text())[0]
    assert first["data"] == {"id": 0, "text": f"{TEXTS['opera']} 0", "topic": ["arts", "opera"]}
    assert [one["score"] for one in first["predictions"]] == [1.0]
    best, other = json.loads(tasks.read_text())[12]["predictions"]
    assert best["score"] > other["score"] > 0
    assert best["model_version"] == other["model_version"]
    assert best["model_version"].startswith("model ")
    assert best["result"] == chosen(["arts", "opera"])["result"]
    again = tmp_path / "again.jsonl"
    assert himecat("predict", model, tasks, "-o", again).code == 0
    assert again.read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    ended = himecat("evaluate", file, *given, "--draws", 2, "--json", tmp_path / "e.json")
    assert ended.code == 0, ended.err
    assert NOTE in ended.err
    differing = [*letters(), task(99, "a", chosen(["arts"]), chosen(["sport"]))]
    other = written(tmp_path / "differing.json", differing)
    refused = himecat("correct", model, other)
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "the annotations name several categories" in refused.errors[0]
    # What was annotated since then are answers; the ids are those of the tasks.
    tasks = letters()
    tasks[12]["annotations"] = [chosen(["arts", "opera"])]
    ended = himecat("correct", model, written(tmp_path / "more.json", tasks))
    assert ended.code == 0, ended.err
    assert NOTE in ended.err
    assert "13 answers" in ended.err


def test_the_model_is_that_of_the_same_documents_and_labels() -> None:
    tasks = letters()
    plain = [
        {"id": one["id"], **one["data"], "labels": one["annotations"][0]["result"][0]["value"]["taxonomy"][0]}
        if one["annotations"]
        else {"id": one["id"], **one["data"]}
        for one in tasks
    ]
    method = Default(dimension=8, topics=2)
    found, wanted = (HiMeCat(TREE, method=method, threads=1).fit(one) for one in (tasks, plain))
    assert found.predict_proba(plain).tolist() == wanted.predict_proba(tasks).tolist()
