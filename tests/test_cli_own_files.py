"""`fit --report`, `predict --report`, and evaluate, score and compare on files of one's own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conftest import Himecat
from himecat.sample import sample_documents, sample_files, sample_split

N_DOCUMENTS = 330


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spreadsheet with a few labels, the truth in another one, and the tree."""
    place = tmp_path_factory.mktemp("own")
    documents = sample_documents(N_DOCUMENTS)
    shown = sample_split(documents, 5)
    lines = [
        json.dumps({**document, "labels": None if label is None else "/".join(label)})
        for document, label in zip(documents, shown, strict=True)
    ]
    (place / "letters.jsonl").write_text("\n".join(lines) + "\n")
    truth = [f"{document['id']},{'/'.join(document['labels'])}" for document in documents]
    (place / "truth.csv").write_text("\n".join(["id,labels", *truth]) + "\n")
    (place / "all.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    (place / "tree.yaml").write_text(sample_files()["taxonomy.yaml"])
    return place


@pytest.fixture
def place(own: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(own)
    return own


FIELDS = ("--taxonomy=tree.yaml", "--metadata=senders,tags")


def test_fit_says_how_good_it_is_and_writes_the_page(himecat: Himecat, place: Path) -> None:
    ended = himecat(
        "fit", "letters.jsonl", *FIELDS, "-o", "model", "--overwrite", "--report=fit.html", "--json=fit.json"
    )
    assert ended.code == 0, ended.err
    assert "Estimated from 110 labelled documents held out in turn" in ended.err
    assert "  level 3: " in ended.err
    found = json.loads((place / "fit.json").read_text())
    assert [one["level"] for one in found["levels"]] == [1, 2, 3]
    assert len(found["leaves"]) == 22
    page = (place / "fit.html").read_text()
    assert 'id="quality"' in page
    assert "Labels to look at again" in page
    assert "330 documents" in page
    # Labels that a fit has seen say nothing about how often it is right.
    assert "micro F1" not in page
    # The model tells the same later.
    later = himecat("explain", "model", "--json=-")
    assert later.json == found
    assert "level 1: " in himecat("explain", "model").out

    placed = himecat(
        "predict", "model", "all.jsonl", "-o", "found.jsonl", "--report=predict.html", "-q", "--ignore-labels"
    )
    assert placed.code == 0, placed.err
    page = (place / "predict.html").read_text()
    assert "Leaf micro F1" in page
    # Documents that keep their own label say nothing about the model.
    kept = himecat("predict", "model", "all.jsonl", "-o", "kept.jsonl", "--report=kept.html", "-q")
    assert (kept.code, "Leaf micro F1" in (place / "kept.html").read_text()) == (0, False)
    assert page.count('<article class="doc">') <= 24
    scored = himecat("score", "found.jsonl", "truth.csv", "--taxonomy=tree.yaml", "--json=-").json
    assert scored["documents"] == N_DOCUMENTS
    without_tree = himecat("score", "found.jsonl", "truth.csv", "--json=-").json["leaf"]
    assert without_tree == pytest.approx(scored["leaf"])


def test_a_page_is_refused_before_any_work(himecat: Himecat, place: Path) -> None:
    ended = himecat("fit", "letters.jsonl", *FIELDS, "-o", "never", "--report=nowhere/page.html")
    assert (ended.code, ended.errors) == (
        2,
        ["nowhere/page.html cannot be written: name a file in a folder that exists."],
    )
    assert not (place / "never").exists()
    ended = himecat("fit", "letters.jsonl", *FIELDS, "-o", "never", "--report=letters.jsonl")
    assert ended.code == 2
    assert "is read by this command" in ended.errors[0]
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        ended = himecat("fit", "pipe", *FIELDS, "-o", "never", "--report=page.html")
        assert ended.errors == ["--report reads the documents more than once, and pipe is no file."]


def test_cross_validation_over_the_labels_of_a_file(himecat: Himecat, place: Path) -> None:
    found = himecat("evaluate", "letters.jsonl", *FIELDS, "--draws=2", "--json=-", "-q").json
    assert found["folds"] == 2
    assert [one["draw"] for one in found["draws"]] == [0, 1]
    assert found["mean"]["leaf"]["micro"] > 0.5
    assert "fold 1" in himecat("evaluate", "letters.jsonl", *FIELDS, "--draws=2", "-q").out


def test_draws_over_a_file_that_is_labelled_throughout(himecat: Himecat, place: Path) -> None:
    # The tree is the one that the labels span.
    arguments = ("all.jsonl", "--metadata=senders,tags", "--draws=1", "--per-leaf=3", "--json=-", "-q")
    found = himecat("evaluate", *arguments).json
    assert "folds" not in found
    assert found["mean"]["leaf"]["micro"] > 0.5


def test_a_second_file_has_the_truth(himecat: Himecat, place: Path) -> None:
    found = himecat("evaluate", "letters.jsonl", *FIELDS, "--truth=truth.csv", "--json=-", "-q").json
    assert len(found["draws"]) == 1
    assert found["mean"]["leaf"]["micro"] > 0.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "letters.jsonl", "--draws=1"], "at least 2 folds"),
        (["evaluate", "letters.jsonl", "--truth=truth.csv", "--per-leaf=3"], "--truth goes with"),
        (["evaluate", "letters.jsonl", "--truth=none.csv"], "none.csv"),
        (["evaluate", "letters.jsonl", "--labels=category"], "no document carries labels"),
        (["evaluate", "letters.jsonl", "--truth=other.csv"], "none of its ids"),
        (["evaluate", "nothing.jsonl"], "there is no such file or folder"),
        (["score", "found.jsonl", "other.csv"], "none of its ids"),
        (["score", "found.jsonl", "truth.csv", "--without-draw=0"], "Draws are those of a dataset folder"),
    ],
)
def test_what_cannot_be_is_said(himecat: Himecat, place: Path, arguments: list[str], said: str) -> None:
    (place / "other.csv").write_text("id,labels\nnobody,waste/fly-tipping\n")
    if not (place / "found.jsonl").exists():
        (place / "found.jsonl").write_text('{"id": "1", "path": ["waste", "fly-tipping"]}\n')
    more = FIELDS if arguments[0] == "evaluate" and "--labels=category" not in arguments else ()
    ended = himecat(*arguments, *more, "-q")
    assert ended.code == 2
    assert said in " ".join(ended.errors)


def test_systems_are_compared_on_a_file(himecat: Himecat, place: Path, tmp_path: Path) -> None:
    arguments = ("letters.jsonl", *FIELDS, "--systems=tfidf-svm", "--draws=2", f"--cache={tmp_path}")
    found = himecat("compare", *arguments, "--json=-", "-q").json
    assert [run["draw"] for run in found["runs"]] == [0, 1]
    assert {run["dataset"] for run in found["runs"]} == {"letters"}
    # A file whose labels changed is another one.
    first = len(list(tmp_path.iterdir()))
    himecat("compare", *arguments[:-2], "--draws=2", f"--cache={tmp_path}", "-q")
    assert len(list(tmp_path.iterdir())) == first
