"""`himecat review` and `himecat correct`: choose, fill in, fit again."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Himecat
from himecat import Default, HiMeCat, Paper
from himecat.errors import DataError
from himecat.input.answers import LONGEST_TEXT
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

openpyxl = pytest.importorskip("openpyxl")

DOCUMENTS = sample_documents(330)
TRUE = {one["id"]: one["labels"] for one in DOCUMENTS}
LABELS = sample_split(DOCUMENTS)
FILES = ("model.json", "weights.safetensors", "corpus.safetensors")


def estimator(**more: Any) -> HiMeCat:
    method = Default(dimension=16, topics=4, em_rounds=1)
    usual = {"metadata": list(METADATA), "method": method, "threads": 2}
    return HiMeCat(sample_taxonomy(), **{**usual, **more})


def written(path: Path, labels: Mapping[str, Any]) -> Path:
    lines = (
        json.dumps({**one, "labels": labels.get(one["id"])} if one["id"] in labels else unlabelled(one))
        for one in DOCUMENTS
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def unlabelled(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "labels"}


GIVEN = {one["id"]: label for one, label in zip(DOCUMENTS, LABELS, strict=True) if label is not None}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("letters") / "docs.jsonl", GIVEN)


@pytest.fixture(scope="module")
def fitted(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    estimator().fit(docs).save(folder)
    return folder


@pytest.fixture
def model(fitted: Path, tmp_path: Path) -> Path:
    shutil.copytree(fitted, tmp_path / "model")
    return tmp_path / "model"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def fill(file: Path, answers: Callable[[str, list[Any]], Any]) -> list[str]:
    """Fill a review in, as a person would; the ids in it."""
    ids: list[str] = []
    if file.suffix == ".xlsx":
        book = openpyxl.load_workbook(file)
        head, *rows = book.worksheets[0].iter_rows()
        places = {cell.value: place for place, cell in enumerate(head)}
        for row in rows:
            suggested = [row[places[f"suggestion{n}"]].value for n in (1, 2, 3)]
            ids.append(row[places["id"]].value)
            row[places["answer"]].value = answers(ids[-1], suggested)
        book.save(file)
        return ids
    if file.suffix == ".csv":
        with open(file, encoding="utf-8-sig", newline="") as stream:
            table = list(csv.DictReader(stream))
    else:
        table = [json.loads(line) for line in file.read_text().splitlines()]
    for line in table:
        suggested = [line[f"suggestion{n}"] for n in (1, 2, 3)]
        ids.append(line["id"])
        line["answer"] = answers(ids[-1], ["/".join(s) if isinstance(s, list) else s for s in suggested])
    if file.suffix == ".csv":
        with open(file, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(table[0]))
            writer.writeheader()
            writer.writerows(table)
    else:
        file.write_text("".join(json.dumps(line) + "\n" for line in table))
    return ids


def true_answer(name: str, suggested: list[Any]) -> Any:
    title = "/".join(TRUE[name])
    return str(suggested.index(title) + 1) if title in suggested else title


@pytest.mark.parametrize("ending", ["xlsx", "csv", "jsonl"])
def test_review_fill_in_correct(
    ending: str, himecat: Himecat, docs: Path, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / f"review.{ending}"
    ended = himecat("review", model, docs, "-n", 20, "-o", file)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines()[-1] == f"  himecat correct {model} {file}"
    ids = fill(file, true_answer)
    assert len(set(ids)) == 20
    assert not set(ids) & GIVEN.keys()
    filled, before = file.read_bytes(), contents(model)
    dry = himecat("correct", model, file, "--dry-run")
    assert dry.code == 0
    assert dry.out.startswith("20 answers: ")
    assert contents(model) == before
    ended = himecat("correct", model, file, "--json", tmp_path / "found.json")
    assert ended.code == 0, ended.err
    assert file.read_bytes() == filled
    assert dry.out.strip() in ended.err
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["confirmed"] + found["moved"] == 20
    assert found["labelled"] == len(GIVEN) + 20
    assert found["changed"] == sum(move["count"] for move in found["moves"])
    assert ended.out.startswith(f"{found['changed']} document")
    # What a fit gives that has had these labels from the start.
    whole = written(tmp_path / "whole.jsonl", {**GIVEN, **{name: TRUE[name] for name in ids}})
    estimator(threads=1).fit(whole).save(tmp_path / "whole")
    assert contents(model) == contents(tmp_path / "whole")
    # The next review asks for others.
    again = {row["id"] for row in HiMeCat.load(model).review(docs, 20)}
    assert not again & {*ids}


@pytest.mark.parametrize("ending", ["xlsx", "csv"])
def test_categories_are_written_as_the_labels_were(ending: str, himecat: Himecat, tmp_path: Path) -> None:
    labels = {name: " > ".join(path) for name, path in GIVEN.items()}
    docs, file = written(tmp_path / "docs.jsonl", labels), tmp_path / f"review.{ending}"
    estimator().fit(docs).save(tmp_path / "model")
    assert himecat("review", tmp_path / "model", docs, "-n", 6, "-o", file, "-q").code == 0
    seen: list[str] = []

    def answer(name: str, suggested: list[Any]) -> str:
        seen.extend(suggested)
        # A suggestion, what is written in its column, and the path with slashes.
        return ("1", suggested[1], suggested[2].replace(" > ", "/"))[len(seen) // 3 % 3]

    fill(file, answer)
    tree = sample_taxonomy()
    assert {*seen} <= {tree.spelled(leaf, " > ") for leaf in tree.leaves}
    ended = himecat("correct", tmp_path / "model", file, "--dry-run")
    assert (ended.code, ended.out.split(":")[0]) == (0, "6 answers"), ended.err
    if ending == "xlsx":
        offered = [row[0].value for row in openpyxl.load_workbook(file).worksheets[1].iter_rows(min_row=2)]
        assert sorted(offered) == sorted(tree.spelled(node, " > ") for node in range(1, len(tree)))


def test_metadata_that_says_nothing_is_no_reason() -> None:
    years = np.random.default_rng(0).integers(2000, 2005, len(DOCUMENTS)).tolist()
    rows = [{**unlabelled(one), "year": year} for one, year in zip(DOCUMENTS, years, strict=True)]
    model = estimator(metadata=[*METADATA, "year"]).fit(rows, LABELS)
    assert model.classifier_.unused_metadata == ("year",)
    assert [*model.explain("streets").metadata] == [*METADATA]
    kinds = {one.kind for found in model.explain(documents=rows, top=50) for one in found.evidence}
    assert kinds == {"word", *(f"metadata:{kind}" for kind in METADATA)}
    assert not any("year: " in row["why"] for row in model.review(rows, 50))


def test_the_workbook(himecat: Himecat, docs: Path, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "review.xlsx"
    assert himecat("review", model, docs, "-n", 5, "-o", file, "-q").code == 0
    first = file.read_bytes()
    assert himecat("review", model, docs, "-n", 5, "-o", file, "-q").code == 0
    assert file.read_bytes() == first
    book = openpyxl.load_workbook(file)
    sheet, categories = book.worksheets
    suggested = [f"{name}{n}" for n in (1, 2, 3) for name in ("suggestion", "confidence")]
    assert [cell.value for cell in sheet[1]] == ["id", "text", *METADATA, *suggested, "why", "answer"]
    assert sheet.freeze_panes == "B2"
    tree = sample_taxonomy()
    paths = [row[0].value for row in categories.iter_rows(min_row=2)]
    assert sorted(map(tree.find, paths)) == list(range(1, len(tree)))
    (offered,) = sheet.data_validations.dataValidation
    assert (str(offered.sqref), offered.formula1) == ("L2:L6", f"categories!$A$2:$A${len(paths) + 1}")
    for row in sheet.iter_rows(min_row=2, values_only=True):
        assert row[5] >= row[7] >= row[9]
        assert row[10]
        assert row[11] is None


def test_long_texts_are_cut_and_no_ids_are_needed(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    texts = [one["text"] * 40 for one in DOCUMENTS[:3]]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    file = tmp_path / "review.jsonl"
    assert himecat("review", model, tmp_path / "new.jsonl", "-o", file).code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["id"] for row in rows} == {"0", "1", "2"}
    assert {len(row["text"]) for row in rows} == {LONGEST_TEXT}
    fill(file, lambda name, suggested: "1")
    refused = himecat("correct", model, file)
    assert refused.code == 2
    assert [error.split(": ", 1)[1] for error in refused.errors] == [
        f"the model does not know the document '{row['id']}', and its text is cut short here: name its file "
        "(--add DOCS)."
        for row in rows
    ]
    assert himecat("correct", model, file, "--add", tmp_path / "new.jsonl").code == 0
    assert len(HiMeCat.load(model)._kept().corpus) == len(DOCUMENTS) + 3


def test_everything_wrong_is_told_at_once_and_nothing_changes(
    himecat: Himecat, model: Path, tmp_path: Path
) -> None:
    known, other = DOCUMENTS[0], DOCUMENTS[1]
    answers = tmp_path / "answers.csv"
    with open(answers, "w", newline="") as stream:
        csv.writer(stream).writerows(
            [
                ("id", "text", "answer"),
                (known["id"], "", "repairs"),
                ("unheard-of", "", "missed-bins"),
                (other["id"], "", "mised-bins"),
                (DOCUMENTS[2]["id"], "an utterly different text about zebras and the snow", "missed-bins"),
                ("", "", "missed-bins"),
            ]
        )
    before = contents(model)
    ended = himecat("correct", model, answers)
    assert ended.code == 2
    assert len(ended.errors) == 5
    for line, part in zip(
        (2, 4, 6, 5, 3), ("2 places", "did you mean", "no id", "not that of", "--add"), strict=True
    ):
        assert any(error.startswith(f"{answers} line {line}: ") and part in error for error in ended.errors)
    assert contents(model) == before


@pytest.mark.parametrize(
    "content", ["", "id,answer\n", "id,answer\na,\n", "{", '{"id": "a"}\n', "\x00\x01", '["a"]'], ids=repr
)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "xlsx", "txt", "parquet"])
def test_foreign_files(ending: str, content: str, himecat: Himecat, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"answers.{ending}"
    file.write_text(content)
    before = contents(model)
    ended = himecat("correct", model, file)
    assert ended.code == 2, ended
    assert ended.errors
    assert contents(model) == before


def test_new_documents_and_unlabelled_ones(himecat: Himecat, model: Path, tmp_path: Path) -> None:
    new = [{**unlabelled(one), "id": f"new {number}"} for number, one in enumerate(DOCUMENTS[:6])]
    (tmp_path / "add.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*new[:4], DOCUMENTS[9]]))
    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        "".join(json.dumps({**one, "labels": DOCUMENTS[0]["labels"]}) + "\n" for one in (new[0], new[5]))
    )
    ended = himecat("correct", model, answers, "--add", tmp_path / "add.jsonl", "-o", tmp_path / "other")
    assert ended.code == 0, ended.err
    assert "5 new documents" in ended.err
    assert "not learned until a whole fit" in ended.err
    corpus, supervision = HiMeCat.load(tmp_path / "other")._kept()
    assert [*corpus.ids[-5:]] == ["new 0", "new 1", "new 2", "new 3", "new 5"]
    assert len(supervision) == len(GIVEN) + 2
    old = HiMeCat.load(model)._kept().corpus
    for number, document in enumerate((0, 1, 2, 3, 5)):
        assert corpus.tokens[len(DOCUMENTS) + number].tolist() == old.tokens[document].tolist()
    assert corpus.words.counts.tolist() == corpus.tokens.totals(len(corpus.words)).tolist()
    refused = himecat("correct", model, answers, "-o", tmp_path / "other")
    assert (refused.code, "exists already" in refused.errors[0]) == (2, True)


def test_an_answer_replaces_a_label_and_may_be_an_inner_category(fitted: Path) -> None:
    model = HiMeCat.load(fitted)
    name, label = next(iter(GIVEN.items()))
    other = next(one for one in GIVEN.values() if one[0] != label[0])
    found = model.correct({name: other[0]})
    assert (found.n_moved + found.n_confirmed, found.n_replaced, found.n_labelled) == (1, 1, len(GIVEN))
    corpus, supervision = model._kept()
    node = supervision.nodes[supervision.rows.tolist().index(corpus.ids.index(name))]
    assert model.taxonomy_.path(node) == (other[0],)
    # Agreed with a category further down.
    placed = model.predict([one for one in DOCUMENTS if one["id"] == name], as_tuples=True)[0]
    assert model.correct({name: placed[0]}, dry_run=True).n_confirmed == 1
    # Back again, the model is what it was.
    model.correct({name: label})
    assert model.predict(DOCUMENTS).tolist() == HiMeCat.load(fitted).predict(DOCUMENTS).tolist()


def test_a_model_that_was_never_saved_with_tree_of_its_labels_and_keywords() -> None:
    words = {"/".join(TRUE[name]): one["text"].split()[:3] for name, one in zip(TRUE, DOCUMENTS, strict=True)}
    more: dict[str, Any] = {"keywords": words, "ignore_metadata": ["tags"], "taxonomy": None}
    some = {one["id"]: one["labels"] for one in DOCUMENTS if one["id"] not in GIVEN}
    name = next(iter(some))
    model = HiMeCat(None, list(METADATA), **{k: v for k, v in more.items() if k != "taxonomy"}).fit(
        DOCUMENTS, LABELS
    )
    model.correct({name: some[name]})
    labels = [
        some[name] if one["id"] == name else label for one, label in zip(DOCUMENTS, LABELS, strict=True)
    ]
    whole = HiMeCat(None, list(METADATA), keywords=words, ignore_metadata=["tags"]).fit(DOCUMENTS, labels)
    assert np.array_equal(model.predict_proba(DOCUMENTS), whole.predict_proba(DOCUMENTS))


@pytest.mark.parametrize("where", ["himecat.estimator.HiMeCat._learn", "himecat.estimator.HiMeCat.save",
                                   "himecat.model_folder.files._rendered"])  # fmt: skip
def test_interrupted_the_old_model_stays(
    where: str, himecat: Himecat, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"id": DOCUMENTS[1]["id"], "answer": TRUE[DOCUMENTS[1]["id"]]}) + "\n")
    before, given = contents(model), answers.read_bytes()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    ended = himecat("correct", model, answers)
    assert ended.code == 130
    assert ended.errors == ["interrupted; nothing was left half-written."]
    assert contents(model) == before
    assert answers.read_bytes() == given
    assert sorted(os.listdir(tmp_path)) == ["answers.jsonl", "model"]


def test_a_model_that_another_run_has_corrected_meanwhile_stays(
    himecat: Himecat, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"id": DOCUMENTS[1]["id"], "answer": TRUE[DOCUMENTS[1]["id"]]}) + "\n")
    learn = HiMeCat._learn

    def meanwhile(self: HiMeCat, *arguments: Any, **more: Any) -> None:
        learn(self, *arguments, **more)
        HiMeCat.load(model).save(model, corpus=False, overwrite=True)

    monkeypatch.setattr(HiMeCat, "_learn", meanwhile)
    ended = himecat("correct", model, answers)
    assert ended.code == 2
    assert "in the meantime" in ended.errors[0]
    assert "corpus.safetensors" not in contents(model)


def test_a_model_without_its_documents(himecat: Himecat, docs: Path, model: Path, tmp_path: Path) -> None:
    HiMeCat.load(model).save(model, corpus=False, overwrite=True)
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"id": "a", "answer": "missed-bins"}\n')
    ended = himecat("correct", model, answers)
    assert (ended.code, len(ended.errors)) == (2, 1)
    assert "does not keep the documents" in ended.errors[0]
    # Labels in the documents are all that tells which ones need no review.
    assert himecat("review", model, docs, "-o", tmp_path / "r.csv").code == 0


def test_places(himecat: Himecat, docs: Path, model: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"id": "a", "answer": "missed-bins"}\n')
    assert (
        "ends in .xlsx, .csv or .jsonl" in himecat("review", model, docs, "-o", tmp_path / "r.txt").errors[0]
    )
    assert "is read by this command" in himecat("review", model, docs, "-o", docs).errors[0]
    assert "is read by this command" in himecat("correct", model, answers, "--json", answers).errors[0]
    assert "is read by this command" in himecat("correct", model, answers, "-o", model).errors[0]
    assert "no such model folder" in himecat("correct", tmp_path / "no", answers).errors[0]
    assert "no such file" in himecat("correct", model, tmp_path / "no.xlsx").errors[0]


def test_fit_without_the_documents(himecat: Himecat, docs: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree.json"
    tree.write_text(json.dumps({}))
    ended = himecat(
        "fit", docs, "--no-corpus", "--set=dimension=8", "--allow-empty-leaves", "-q", "-o", tmp_path / "m"
    )
    assert ended.code == 0, ended.err
    assert sorted(os.listdir(tmp_path / "m")) == ["model.json", "weights.safetensors"]


def test_nothing_to_review_and_nothing_to_show(fitted: Path) -> None:
    model = HiMeCat.load(fitted)
    with pytest.raises(DataError, match="labelled already"):
        model.review(DOCUMENTS)
    rows = model.review(iter([unlabelled(one) for one in DOCUMENTS]), count=1000)
    assert len(rows) == len(DOCUMENTS) - len(GIVEN)
    assert [*model.review(["the bin was not emptied"])[0]][:2] == ["id", "text"]


@pytest.mark.real
@pytest.mark.slow
def test_answers_teach(shared_data: Callable[[str], Path]) -> None:
    folder = shared_data("packages")
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    drawn = {
        int(n)
        for line in (folder / "doc_id.txt").read_text().splitlines()
        for n in line.split("\t")[1].split()
    }
    labels = [one["labels"] if row in drawn else None for row, one in enumerate(documents)]
    texts = [unlabelled(one) for one in documents]
    true = {one["id"]: one["labels"] for one in documents}
    tree = folder / "label_hier.txt"
    model = HiMeCat(tree, ["uploaders", "tags"]).fit(texts, labels)
    rows = model.review(texts, count=50)
    asked = {row["id"] for row in rows}
    rest = [one for row, one in enumerate(documents) if row not in drawn and one["id"] not in asked]
    before = model.score([unlabelled(one) for one in rest], [one["labels"] for one in rest])
    found = model.correct([{**row, "answer": true[row["id"]]} for row in rows])
    assert found.n_labelled == len(drawn) + 50
    assert model.score([unlabelled(one) for one in rest], [one["labels"] for one in rest]) > before
    both = [
        true[one["id"]] if label or one["id"] in asked else None
        for one, label in zip(documents, labels, strict=True)
    ]
    whole = HiMeCat(tree, ["uploaders", "tags"]).fit(texts, both)
    assert np.array_equal(model.predict_proba(texts), whole.predict_proba(texts))


@pytest.mark.parametrize(
    "method",
    [
        Paper(space="spectral", classifier="mean-logistic", dimension=16, beta=5, min_count=2),
        Paper(classifier="mixture", dimension=16, samples=20_000, min_count=2),
        Default(dimension=16, use_metadata=False, topics=0),
    ],
    ids=["flat", "sampled", "no metadata"],
)
def test_every_method_is_fitted_again_as_a_fit_would(method: Any, tmp_path: Path) -> None:
    labels = list(LABELS)
    row = labels.index(None)
    estimator(method=method, ignore_metadata=["tags"]).fit(DOCUMENTS, labels).save(tmp_path / "model")
    model = HiMeCat.load(tmp_path / "model")
    model.correct({DOCUMENTS[row]["id"]: TRUE[DOCUMENTS[row]["id"]]})
    model.save(tmp_path / "model", overwrite=True)
    labels[row] = TRUE[DOCUMENTS[row]["id"]]
    estimator(method=method, ignore_metadata=["tags"]).fit(DOCUMENTS, labels).save(tmp_path / "whole")
    assert contents(tmp_path / "model") == contents(tmp_path / "whole")


def test_whoever_chooses_is_asked_for_rows(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def choose(probabilities: Any, vectors: Any, *, labelled: Any, count: int, seed: int) -> list[int]:
        asked.append((probabilities.shape, len(vectors), labelled.tolist(), count, seed))
        return [7, 2]

    module = types.ModuleType("himecat.classifier.asking")
    module.choose = choose  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "himecat.classifier.asking", module)
    model = HiMeCat.load(fitted)
    texts = [unlabelled(one) for one in DOCUMENTS]
    rows = model.review(texts, count=2, seed=3)
    assert [row["id"] for row in rows] == [DOCUMENTS[7]["id"], DOCUMENTS[2]["id"]]
    known = [row for row, one in enumerate(DOCUMENTS) if one["id"] in GIVEN]
    assert asked == [((len(texts), 22), len(texts), known, 2, 3)]


def test_added_documents_without_ids_are_not_taken_for_others(tmp_path: Path) -> None:
    texts = [one["text"] for one in DOCUMENTS]
    model = estimator(metadata=[]).fit(texts, LABELS)
    with pytest.raises(DataError, match="give every document an id of its own"):
        model.correct({}, ["zebras bite the postman in winter", *texts[40:60]])
    with pytest.raises(DataError, match="There is no answer"):
        model.correct({}, texts[:10])
