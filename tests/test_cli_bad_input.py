"""Bad input ends in exit code 2, with a sentence that names the place, and nothing is written."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import TINY, Himecat
from himecat import Taxonomy
from himecat.classifier.assignments import assign

WORDS = {
    "physics": "quantum field energy particle laser photon",
    "biology": "cell gene protein species forest enzyme",
    "arts": "painting museum sculpture canvas gallery colour",
}
PATHS = {"physics": ["science", "physics"], "biology": ["science", "biology"], "arts": ["arts"]}
TREE = "science:\n  physics:\n  biology:\narts:\n"
TREE_LINES = "ROOT science arts\nscience physics biology\n"


def sound(labelled: int = 5) -> list[dict[str, Any]]:
    """Eight documents per leaf, of which the first few are labelled; nothing to complain about."""
    return [
        {
            "id": f"{leaf}-{number}",
            "text": f"{words} number {number}",
            "tags": [f"about-{leaf}"],
            "labels": PATHS[leaf] if number < labelled else [],
        }
        for number in range(8)
        for leaf, words in WORDS.items()
    ]


def write_lines(path: Path, documents: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with sound documents and a sound tree."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "docs.jsonl", sound())
    (tmp_path / "tree.yaml").write_text(TREE)
    return tmp_path


@contextmanager
def nothing_written(folder: Path) -> Iterator[None]:
    def found() -> dict[str, bytes | None]:
        return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}

    before = found()
    yield
    assert found() == before


def command(name: str, documents: object = "docs.jsonl", tree: str = "tree.yaml") -> list[object]:
    """`check` or `fit` with all they need."""
    given = [name, documents, "--taxonomy", tree, "--metadata", "tags", "-q"]
    return [*given, "-o", "model", *TINY] if name == "fit" else given


def refuses(himecat: Himecat, place: Path, arguments: list[object], *sentences: str) -> None:
    """The command ends with code 2, says exactly these things, and leaves all as it was."""
    with nothing_written(place):
        ended = himecat(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "".join(f"himecat: {line}\n" for line in ended.errors), "only sentences are shown"
    assert len(ended.errors) == len(sentences), ended.err
    for line, sentence in zip(ended.errors, sentences, strict=True):
        assert sentence in line
        assert line.endswith((".", "?"))


# -- documents -------------------------------------------------------------------------------------------------

Lines = list[bytes]


def third(**changes: object) -> Callable[[Lines], Lines]:
    """Change fields of the third document; an ellipsis takes the field out."""

    def change(lines: Lines) -> Lines:
        fields = {**json.loads(lines[2]), **changes}
        kept = {name: value for name, value in fields.items() if value is not ...}
        return [*lines[:2], json.dumps(kept).encode(), *lines[3:]]

    return change


def third_line(line: bytes) -> Callable[[Lines], Lines]:
    return lambda lines: [*lines[:2], line, *lines[3:]]


HERE = "docs.jsonl line 3: "

# What any command that reads documents has to refuse.
UNREADABLE: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "broken JSON": (third_line(b'{"text": "x"'), f"{HERE}broken JSON at column 13"),
    "JSON of another kind": (third_line(b"[1, 2]"), f"{HERE}a JSON object is expected, not a list"),
    "invalid UTF-8": (
        third_line(b'{"text": "caf\xe9"}'),
        f"{HERE}invalid UTF-8 at byte 14 of the line (0xe9)",
    ),
    "half a character": (third_line(b'{"text": "caf\\ud800"}'), f"{HERE}the field 'text' holds \\ud800"),
    "missing text": (third(text=...), f"{HERE}the document has no field 'text'; fields found: 'id', 'tags'"),
    "empty text": (third(text=" \t "), f"{HERE}the text is empty"),
    "text that is a number": (third(text=5), f"{HERE}the text field 'text' holds the number 5"),
    "metadata: a dict": (third(tags={"a": 1}), f"{HERE}the metadata field 'tags' holds an object"),
    "metadata: lists": (
        third(tags=["a", [1]]),
        f"{HERE}the metadata field 'tags' holds a list with a list",
    ),
    "duplicate id": (third(id="physics-0"), f"{HERE}the id 'physics-0' is also the id of docs.jsonl line 1"),
    "an id that is a list": (third(id=["a"]), f"{HERE}the id in the field 'id' is a list"),
    "an empty file": (lambda _: [], "docs.jsonl: the file is empty"),
    "blank lines only": (lambda _: [b"", b"  "], "docs.jsonl: the file is empty"),
    "UTF-16": (lambda _: ["{}".encode("utf-16")], "docs.jsonl: the file is in UTF-16"),
}

# What matters only where labels are learned from.
MISLABELLED: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "unknown label": (third(labels="artz"), f"{HERE}unknown label 'artz'; did you mean 'arts'?"),
    "unknown label in a path": (
        third(labels="science/physic"),
        f"{HERE}unknown label 'physic'; did you mean",
    ),
    "contradicting path": (
        third(labels=["biology", "science", "arts"]),
        f"{HERE}the document is labelled with 2 different leaves: science/biology and arts",
    ),
    "two leaves": (
        third(labels=["arts", "biology"]),
        f"{HERE}the document is labelled with 2 different leaves",
    ),
    "two paths": (third(labels=["arts", "science/biology"]), "2 different leaves: arts and science/biology"),
    "the root": (third(labels="ROOT"), f"{HERE}the label 'ROOT' is the root of the tree"),
    "a label that is a number": (third(labels=3.5), f"{HERE}a label must be a name or a list of names"),
    "a label that is a dict": (third(labels={"a": 1}), f"{HERE}a label must be a name or a list of names"),
    "no label at all": (
        lambda lines: [line.replace(b'"labels"', b'"labelz"') for line in lines],
        "label",
    ),
    "a leaf without labels": (lambda lines: [line for line in lines if b'["arts"]' not in line], ": arts"),
}


@pytest.mark.parametrize("name", ["check", "fit"])
@pytest.mark.parametrize("case", [*UNREADABLE, *MISLABELLED])
def test_documents_that_cannot_be_learned_from(himecat: Himecat, place: Path, name: str, case: str) -> None:
    spoil, sentence = {**UNREADABLE, **MISLABELLED}[case]
    file = place / "docs.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in spoil(file.read_bytes().splitlines())))
    refuses(himecat, place, command(name), sentence)


@pytest.mark.parametrize("case", UNREADABLE)
def test_documents_that_cannot_be_placed(
    himecat: Himecat, place: Path, letters_model: Path, case: str
) -> None:
    spoil, sentence = UNREADABLE[case]
    file = place / "docs.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in spoil(file.read_bytes().splitlines())))
    refuses(himecat, place, ["predict", letters_model, "docs.jsonl", "-o", "out.jsonl", "-q"], sentence)


@pytest.mark.parametrize("case", MISLABELLED)
def test_wrong_labels_are_no_matter_to_predict(
    himecat: Himecat, place: Path, letters_model: Path, case: str
) -> None:
    spoil, _ = MISLABELLED[case]
    file = place / "docs.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in spoil(file.read_bytes().splitlines())))
    assert himecat("predict", letters_model, "docs.jsonl", "-o", "out.jsonl", "-q").code == 0


def test_a_path_that_contradicts_the_tree(himecat: Himecat, place: Path) -> None:
    (place / "tree.yaml").write_text("science: [physics, biology]\nleisure: [arts, sport]\n")
    documents = sound()
    documents[2]["labels"] = ["leisure", "physics"]
    write_lines(place / "docs.jsonl", documents)
    wrong = f"{HERE}the label path leisure/physics contradicts the tree, where physics is below science"
    assert wrong in himecat(*command("check")).err
    assert wrong in himecat(*command("fit")).err


def test_every_problem_is_told_with_its_line(himecat: Himecat, place: Path) -> None:
    documents = sound()
    documents[3]["text"] = ""
    documents[5]["id"] = documents[1]["id"]
    documents[7]["tags"] = {}
    write_lines(place / "docs.jsonl", documents)
    expected = [f"docs.jsonl line {number}: " for number in (4, 6, 8)]
    refuses(himecat, place, command("fit"), *expected)
    # A check goes on to the labels.
    documents[8]["labels"] = "artz"
    write_lines(place / "docs.jsonl", documents)
    refuses(himecat, place, command("check"), *expected, "docs.jsonl line 9: unknown label 'artz'")


def test_very_many_problems_are_counted(himecat: Himecat, place: Path) -> None:
    documents = [{"text": "x", "tags": "a", "id": f"{number // 2}"} for number in range(400)]
    write_lines(place / "docs.jsonl", documents)
    ended = himecat(*command("fit"))
    assert len(ended.errors) == 51
    assert ended.errors[-1] == "... and 150 more errors."


class TestALeafWithoutLabels:
    @pytest.fixture(autouse=True)
    def _two_leaves_without(self, place: Path) -> None:
        (place / "tree.yaml").write_text(f"{TREE}law:\nsport:\n")

    def test_all_such_leaves_are_named(self, himecat: Himecat, place: Path) -> None:
        for name in ("check", "fit"):
            refuses(himecat, place, command(name), "2 of 5 leaves have no labelled document: law, sport.")

    def test_it_goes_on_if_allowed(self, himecat: Himecat, place: Path) -> None:
        checked = himecat(*command("check")[:-1], "--allow-empty-leaves")
        assert checked.code == 0
        told = "2 of 5 leaves have no labelled document and are learned from their names and the tree alone:"
        assert told in " ".join(checked.out.split())
        ended = himecat(*(part for part in command("fit") if part != "-q"), "--allow-empty-leaves")
        assert ended.code == 0
        assert f"warning: {told}" in ended.err
        assert himecat("predict", "model", "docs.jsonl", "-o", "out.jsonl").code == 0


def test_documents_labelled_with_inner_categories(himecat: Himecat, place: Path) -> None:
    documents = sound()
    documents[-1]["labels"] = "science"
    write_lines(place / "docs.jsonl", documents)
    checked = himecat(*command("check")[:-1])
    assert checked.code == 0
    said = " ".join(checked.out.split())
    assert (
        "1 document labelled with an inner category, which counts for the leaves below it: science." in said
    )
    assert himecat(*command("fit")).code == 0
    # Alone they are not enough.
    for document in documents:
        document["labels"] = document["labels"] and "science"
    write_lines(place / "docs.jsonl", documents)
    shutil.rmtree(place / "model")
    refuses(himecat, place, command("fit"), "No leaf has a labelled document")
    refuses(himecat, place, command("check"), "No leaf has a labelled document")


class TestNoMetadata:
    def test_it_works_and_says_so(self, himecat: Himecat, place: Path) -> None:
        checked = himecat("check", "docs.jsonl", "--taxonomy", "tree.yaml")
        assert checked.code == 0
        said = " ".join(checked.out.split())
        assert "No metadata fields were named: text alone is used." in said
        assert "these fields could serve as metadata: tags." in said
        ended = himecat("fit", "docs.jsonl", "--taxonomy", "tree.yaml", "-o", "model", *TINY)
        assert ended.code == 0
        assert "note: No metadata fields were named: text alone is used." in ended.err
        assert himecat("predict", "model", "docs.jsonl", "-o", "out.jsonl").code == 0

    def test_fields_that_no_document_has(self, himecat: Himecat, place: Path) -> None:
        absent = "no document has the metadata field 'authors'; fields seen: 'id', 'text', 'tags', 'labels'."
        checked = himecat("check", "docs.jsonl", "--taxonomy", "tree.yaml", "--metadata", "authors,tags")
        assert checked.code == 2
        assert checked.errors == [absent]
        arguments = [
            "fit",
            "docs.jsonl",
            "--taxonomy=tree.yaml",
            "--metadata=authors,tags",
            "-o",
            "model",
            *TINY,
        ]
        refuses(himecat, place, arguments, absent)


# -- trees -----------------------------------------------------------------------------------------------------

TREES: dict[str, tuple[str, bytes | None, str]] = {
    "a cycle": (
        "tree.txt",
        b"ROOT a arts\na b\nb a\n",
        "tree.txt line 3: the tree runs in a circle, a -> b -> a",
    ),
    "its own parent": ("tree.txt", b"ROOT a b\na a\n", "tree.txt line 2: 'a' is its own parent"),
    "two roots": (
        "tree.txt",
        b"science physics biology\narts x y\n",
        "tree.txt: there are 2 roots, 'science' (line 1), 'arts' (line 2)",
    ),
    "an orphan": (
        "tree.txt",
        b"ROOT science arts\nscience physics\nlaw biology\n",
        "tree.txt line 3: 'law' has no parent",
    ),
    "one leaf": (
        "tree.yaml",
        b"science:\n  physics:\n",
        "tree.yaml: there is only one leaf, science/physics",
    ),
    "no leaf": ("tree.json", b"{}", "tree.json: there are no categories"),
    "an empty file": ("tree.yaml", b"\n", "tree.yaml: the file is empty"),
    "broken YAML": ("tree.yaml", b"a: [b\nc: {", "tree.yaml line 2: broken YAML"),
    "broken JSON": ("tree.json", b'{"a":\n', "tree.json line 2: broken JSON"),
    "a lone word": ("tree.yaml", b"arts", "tree.yaml: at the top 'arts' was found"),
    "a name twice": ("tree.yaml", b"a:\nb:\na:\n", "tree.yaml line 3: 'a' stands twice below one parent"),
    "invalid UTF-8": ("tree.txt", b"ROOT a b\na caf\xe9 d\n", "tree.txt line 2: invalid UTF-8"),
    "no file": ("missing.yaml", None, "missing.yaml: there is no such file"),
    "a folder": ("folder", None, "folder: this is a folder, but a file is needed"),
}


@pytest.mark.parametrize("name", ["check", "fit"])
@pytest.mark.parametrize("case", TREES)
def test_files_that_are_no_tree(himecat: Himecat, place: Path, name: str, case: str) -> None:
    file, content, sentence = TREES[case]
    (place / "folder").mkdir()
    if content is not None:
        (place / file).write_bytes(content)
    refuses(himecat, place, command(name, tree=file), sentence)


def test_a_broken_tree_is_told_before_documents_are_read(himecat: Himecat, place: Path) -> None:
    refuses(
        himecat, place, command("fit", "no-such-file.jsonl", tree="none.yaml"), "none.yaml: there is no such"
    )


def test_without_a_tree_the_labels_must_span_one(himecat: Himecat, place: Path) -> None:
    arguments = ["fit", "docs.jsonl", "-q", "-o", "model", *TINY]
    write_lines(place / "docs.jsonl", [document for document in sound() if document["id"].startswith("arts")])
    refuses(himecat, place, arguments, "the labels found in the documents: there is only one leaf, arts")
    documents = sound()
    documents[2]["labels"] = 3.5
    write_lines(place / "docs.jsonl", documents)
    refuses(himecat, place, arguments, f"{HERE}a label must be a name or a list of names, but the number 3.5")


# -- paths and tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["check", "fit", "predict"])
@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ("none.jsonl", "none.jsonl: there is no such file"),
        ("docs.jsonl/more.jsonl", "docs.jsonl/more.jsonl: the file cannot be opened (Not a directory)"),
        ("folder", "folder: "),
        ("notes.txt", "notes.txt: files ending in '.txt' are not known; documents are read from .jsonl"),
        ("cut.jsonl.gz", "cut.jsonl.gz: the compressed file is "),
        ("data.parquet", "data.parquet: the Parquet file is damaged or of another kind"),
    ],
)
def test_paths_that_lead_to_no_documents(
    himecat: Himecat, place: Path, letters_model: Path, name: str, documents: str, sentence: str
) -> None:
    (place / "folder").mkdir()
    for file in ("notes.txt", "cut.jsonl.gz", "data.parquet"):
        (place / file).write_bytes(b"\x1f\x8b\x08" if file.endswith(".gz") else b"some words")
    arguments = command(name, documents)
    if name == "predict":
        arguments = ["predict", letters_model, documents, "-o", "out.jsonl", "-q"]
    refuses(himecat, place, arguments, sentence)


@pytest.mark.parametrize("name", ["check", "fit"])
def test_no_permission_to_read(
    himecat: Himecat, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    really_open = open

    def refusing(path: Any, *arguments: Any, **more: Any) -> Any:
        if str(path) == "docs.jsonl":
            raise PermissionError(errno.EACCES, "Permission denied", "docs.jsonl")
        return really_open(path, *arguments, **more)

    monkeypatch.setattr("builtins.open", refusing)
    with monkeypatch.context():
        ended = himecat(*command(name))
    assert ended.code == 2
    assert ended.errors == ["docs.jsonl: there is no permission to read this file."]


RAGGED = 'id,text,labels\n1,quantum laser,physics\n2,a,b,c\n3\n4,"unclosed\n'


def test_ragged_rows(himecat: Himecat, place: Path, letters_model: Path) -> None:
    (place / "rows.csv").write_text(RAGGED)
    sentences = (
        "rows.csv line 3: 4 fields under a header of 3: quote a field with a comma in it.",
        "rows.csv line 4: the document has no field 'text'; fields found: 'id'.",
        "rows.csv line 5: broken quotation marks",
    )
    refuses(himecat, place, ["predict", letters_model, "rows.csv", "-o", "out.jsonl", "-q"], *sentences)
    refuses(himecat, place, ["fit", "rows.csv", "-q", "-o", "model"], *sentences)


# -- dataset folders -------------------------------------------------------------------------------------------


@pytest.fixture
def dataset(place: Path) -> Path:
    """A dataset folder, in which every document has a label."""
    folder = place / "dataset"
    folder.mkdir()
    write_lines(folder / "corpus.jsonl", sound(labelled=8))
    (folder / "label_hier.txt").write_text(TREE_LINES)
    (folder / "meta_dict.json").write_text('{"metadata": ["tags"]}')
    return folder


@pytest.mark.parametrize("name", ["check", "evaluate", "score"])
@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("corpus.jsonl", None, "dataset: the documents are missing; put them into corpus.jsonl"),
        ("label_hier.txt", None, "dataset: label_hier.txt is missing"),
        ("meta_dict.json", None, "dataset: meta_dict.json is missing"),
        ("corpus.jsonl.gz", "", "dataset: 2 files could hold the documents"),
        ("label_hier.txt", "ROOT a b\na a\n", "label_hier.txt line 2: 'a' is its own parent"),
        ("meta_dict.json", "{", "dataset/meta_dict.json line 1: broken JSON"),
        ("meta_dict.json", "[1]", "dataset/meta_dict.json: the names of the metadata fields were not found"),
        ("doc_id.txt", "arts\t0 x\n", "dataset/doc_id.txt line 1: 'x' is not a document number"),
        ("doc_id.txt", "law\t0\n", "dataset/doc_id.txt line 1: unknown label 'law'"),
        ("doc_id.txt", "science\t0\n", "dataset/doc_id.txt line 1: 'science' is not a leaf"),
    ],
)
def test_dataset_folders_with_a_missing_or_broken_piece(
    himecat: Himecat, dataset: Path, name: str, file: str, content: str | None, sentence: str
) -> None:
    if content is None:
        (dataset / file).unlink()
    else:
        (dataset / file).write_text(content)
    arguments = {
        "check": ["dataset", "-q"],
        "score": ["docs.jsonl", "dataset"],
        "evaluate": ["dataset", "-q"],
    }
    refuses(himecat, dataset.parent, [name, *arguments[name]], sentence)


@pytest.mark.parametrize("name", ["check", "score"])
def test_dataset_documents_need_true_labels(himecat: Himecat, dataset: Path, name: str) -> None:
    documents = sound(labelled=8)
    documents[2]["labels"] = []
    documents[3]["labels"] = "artz"
    write_lines(dataset / "corpus.jsonl", documents)
    ended = himecat(name, *(["docs.jsonl"] if name == "score" else []), "dataset", "-q")
    assert ended.code == 2
    assert any("corpus.jsonl line 3: the document has no labels" in line for line in ended.errors)
    assert any("corpus.jsonl line 4: unknown label 'artz'" in line for line in ended.errors)


def test_a_listed_draw_must_agree_with_the_labels(himecat: Himecat, dataset: Path) -> None:
    (dataset / "doc_id.txt").write_text("arts\t0\nphysics\t99\nbiology\t1\n")
    refuses(
        himecat,
        dataset.parent,
        ["check", "dataset", "-q"],
        "doc_id.txt: document 0 is listed for arts, but its own label is science/physics",
        "doc_id.txt: document 99 of 'physics' does not exist",
    )


PREDICTION = '{"id": "arts-0", "path": ["arts"]}\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "out.jsonl: there is no such file"),
        ("", "out.jsonl: the file is empty"),
        ("{", "out.jsonl line 1: broken JSON"),
        ('{"id": "arts-0"}', "out.jsonl line 1: a prediction needs an 'id' and a 'path'"),
        ('{"id": "arts-0", "path": "arts"}', "out.jsonl line 1: a prediction needs an 'id' and a 'path'"),
        ('{"id": "arts-0", "path": ["law"]}', "out.jsonl line 1: the path 'law' is not in the tree"),
        (PREDICTION * 2, "out.jsonl line 2: the id 'arts-0' was predicted before"),
        (
            '{"id": "a-letter", "path": ["arts"]}',
            "out.jsonl: the id 'a-letter' is not in dataset/corpus.jsonl",
        ),
        ('{"id": "docs.jsonl line 7", "path": []}', "out.jsonl has no prediction to score"),
    ],
)
def test_files_that_are_no_predictions(
    himecat: Himecat, dataset: Path, content: str | None, sentence: str
) -> None:
    if content is not None:
        (dataset.parent / "out.jsonl").write_text(content)
    refuses(himecat, dataset.parent, ["score", "out.jsonl", "dataset"], sentence)


# -- model folders ---------------------------------------------------------------------------------------------


def _cut(file: str) -> Callable[[Path], object]:
    return lambda model: (model / file).write_bytes((model / file).read_bytes()[:5000])


def _with(**changes: object) -> Callable[[Path], object]:
    def change(model: Path) -> None:
        # As the format before the digest: what comes after the check of the digest is meant.
        document = {**json.loads((model / "model.json").read_text()), "version": 4, **changes}
        del document["digest"]
        (model / "model.json").write_text(json.dumps(document))

    return change


def test_a_probability_that_is_no_number_is_never_written(
    himecat: Himecat, place: Path, letters_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(taxonomy: Taxonomy, found: Any, *arguments: Any, **options: Any) -> Any:
        return assign(taxonomy, np.full_like(found, np.nan), *arguments, **options)

    monkeypatch.setattr("himecat.classifier.assigned.assign", broken)
    command = ["predict", letters_model, "docs.jsonl", "-o", "out.jsonl"]
    refuses(himecat, place, command, "a probability that is not a number: fit it anew.")


@pytest.mark.parametrize("name", ["predict", "explain", "synthesize"])
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (shutil.rmtree, "model: there is no such model folder."),
        (
            lambda model: (model / "model.json").unlink(),
            "model/ is not a himecat model: there is no model.json",
        ),
        (lambda model: (model / "weights.safetensors").unlink(), "there is no weights.safetensors in it"),
        (_cut("model.json"), "model/model.json is damaged (cut short after 5,000 bytes)"),
        (_cut("weights.safetensors"), "model/weights.safetensors is damaged (cut short, 5,000 of "),
        (
            lambda model: (model / "model.json").write_bytes(
                (model / "model.json").read_bytes().replace(b"pool", b"poll", 1)
            ),
            "model/model.json is damaged (changed since it was written): copy the whole folder again",
        ),
        (_with(version=99), "model/ was written by a newer himecat (format 99)"),
        (_with(format="of-others"), "model/ is not a himecat model: its model.json is of another kind"),
        (
            _with(tokenizer={"name": "words-99", "state": {}}),
            "model/ cannot be used: There is no tokenizer 'words-99'",
        ),
        (_with(vocabulary=["only"]), "model"),
        (_with(taxonomy=3), "model"),
    ],
)
def test_model_folders_that_cannot_be_used(
    himecat: Himecat,
    place: Path,
    letters_model: Path,
    spoil: Callable[[Path], object],
    sentence: str,
    name: str,
) -> None:
    shutil.copytree(letters_model, place / "model")
    spoil(place / "model")
    more = {"predict": ["docs.jsonl", "-o", "out.jsonl"]}.get(name, ["pool"])
    refuses(himecat, place, [name, "model", *more], sentence)


@pytest.mark.parametrize("name", ["explain", "synthesize"])
@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        ("poool", "unknown label 'poool'; did you mean 'pool'"),
        ("repairs", "stands at 2 places in the tree: write streets/roads/repairs or homes/"),
        ("waste/pool", "contradicts the tree, where pool is below leisure"),
        ("ROOT", "is the root of the tree"),
        (" ", "the label is empty."),
    ],
)
def test_labels_that_mean_no_category(
    himecat: Himecat, place: Path, letters_model: Path, name: str, label: str, sentence: str
) -> None:
    refuses(himecat, place, [name, letters_model, label], sentence)


# -- options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--set", "beta"], "--set takes NAME=VALUE, e.g. --set em_rounds=3, not 'beta'."),
        (["--set", "beta="], "beta must be a number, not ''."),
        (["--set", "beta=-1"], "beta must be at least 0, not -1."),
        (["--set", "beta=1.5"], "beta must be a whole number, not 1.5."),
        (["--set", "bta=1"], "The method 'paper' has no hyperparameter 'bta'; did you mean 'beta'?"),
        (["--set", "x=1"], "The method 'paper' has no hyperparameter 'x'; known are min_count, max_tokens"),
        (["--set", "rate=NaN"], "rate must be above 0, not nan."),
        (["--set", "samples=Infinity"], "samples must be a whole number"),
        (["--set", "use_metadata=maybe"], "use_metadata must be True or False, not 'maybe'."),
        (["--set", "filter_widths=2,x"], "filter_widths must be whole numbers"),
        (["--set", "classifier=svm"], "There is no classifier 'svm'; known are"),
        (
            ["--method=default", "--set", "beta=3"],
            "The method 'default' has no hyperparameter 'space'; it is one of the method 'paper' (--method paper).",
        ),
        (
            ["--set", "em_rounds=3"],
            "hyperparameter 'em_rounds'; it is one of the method 'default' (--method default).",
        ),
        (["--set", "min_count=1000"], "No word occurs 1000 times or more in the 24 documents"),
        (["--preset", "papr"], "There is no method 'papr'; known are default, paper."),
        (["--ignore-metadata", "authors"], "'authors', which is not among the metadata fields."),
        (["--metadata", "text"], "The field 'text' is named twice"),
        (["--text", ","], "Name at least one text field."),
    ],
)
def test_options_of_fit(himecat: Himecat, place: Path, options: list[str], sentence: str) -> None:
    refuses(himecat, place, [*command("fit"), *options], sentence)


def test_evaluate_checks_its_options_before_it_starts(
    himecat: Himecat, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multiprocessing.get_context", lambda _: pytest.fail("a draw was started"))
    for options, sentence in {
        ("--preset", "papr"): "There is no method 'papr'",
        ("--set", "topics=x"): "topics must be a number",
        ("--set", "beta=3"): "it is one of the method 'paper' (--method paper).",
        ("--json", "no/where.json"): "cannot be written to no/where.json: the folder no does not exist",
    }.items():
        refuses(himecat, dataset.parent, ["evaluate", "dataset", "-q", *options], sentence)


# -- output ----------------------------------------------------------------------------------------------------


def test_a_model_folder_that_exists(himecat: Himecat, place: Path) -> None:
    (place / "model").mkdir()
    refuses(
        himecat,
        place,
        command("fit"),
        "model/ exists already: choose another name or pass --overwrite.",
    )
    (place / "model" / "letter.txt").write_text("mine")
    refuses(
        himecat, place, [*command("fit"), "--overwrite"], "model/ is not overwritten, because it is not a"
    )


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("docs.jsonl", "docs.jsonl is read by this command"),
        ("notes.txt", "notes.txt is a file, and a folder is to be written"),
        ("no/model", "The model cannot be written to no/model/: the folder no does not exist."),
    ],
)
def test_places_for_a_model_are_checked_first(
    himecat: Himecat, place: Path, target: str, sentence: str
) -> None:
    (place / "tree.yaml").unlink()
    (place / "notes.txt").touch()
    refuses(himecat, place, [*command("fit"), "-o", target], sentence)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (".", "Every file of the input lies in ., where the result goes."),
        ("no/out.jsonl", "The predictions cannot be written to no/out.jsonl: the folder no does not exist."),
        ("docs.jsonl", "docs.jsonl is read by this command: name another file for the result."),
        ("link.jsonl", "link.jsonl is read by this command"),
    ],
)
def test_places_for_predictions(
    himecat: Himecat, place: Path, letters_model: Path, target: str, sentence: str
) -> None:
    (place / "link.jsonl").symlink_to("docs.jsonl")
    refuses(himecat, place, ["predict", letters_model, "docs.jsonl", "-o", target], sentence)


def test_folders_that_no_demo_wrote(himecat: Himecat, place: Path) -> None:
    refuses(himecat, place, ["demo", "-o", "."], ". exists already")
    refuses(
        himecat,
        place,
        ["demo", "-o", ".", "--overwrite"],
        ". holds docs.jsonl, which himecat demo did not write",
    )
    refuses(himecat, place, ["demo", "-o", "docs.jsonl"], "docs.jsonl is a file")


def test_a_dataset_of_somebody_else_is_no_demo(himecat: Himecat, place: Path, letters: Path) -> None:
    """Its files have the names of the sample's."""
    shutil.copytree(letters, place / "data")
    command = ["demo", "-o", "data", "--overwrite"]
    refuses(himecat, place, command, "data is left alone, because README.md is not what himecat demo wrote")
    for file in (place / "data").iterdir():
        file.unlink()
    (place / "data" / "model").mkdir()
    (place / "data" / "model" / "notes.txt").write_text("mine")
    refuses(himecat, place, command, "data holds model/notes.txt, which himecat demo did not write")


class TestFullDisk:
    @pytest.fixture(autouse=True)
    def _full(self, monkeypatch: pytest.MonkeyPatch, letters_model: Path) -> None:
        """From here on, no file gets from memory to the disk."""

        def refuse(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", refuse)

    def test_fit(self, himecat: Himecat, place: Path) -> None:
        refuses(
            himecat, place, command("fit"), "The model cannot be written to model/: No space left on device."
        )

    def test_predict(self, himecat: Himecat, place: Path, letters_model: Path) -> None:
        refuses(
            himecat,
            place,
            ["predict", letters_model, "docs.jsonl", "-o", "out.jsonl", "-q"],
            "The predictions cannot be written to out.jsonl: No space left on device.",
        )

    def test_evaluate(
        self, himecat: Himecat, letters: Path, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from himecat.compare.protocol.run import Run

        scores = {"micro": 0.5, "macro": 0.5}
        draw = Run("letters", "himecat", "himecat", {}, 0, 0, scores, scores, 1.0, 1.0, 1.0)
        monkeypatch.setattr("himecat.compare.protocol.evaluate.evaluate", lambda *_, **__: [draw])
        refuses(
            himecat,
            place,
            ["evaluate", letters, "--draws", "1", "-q", "--json", "scores.json"],
            "The result cannot be written to scores.json: No space left on device.",
        )

    def test_check(self, himecat: Himecat, place: Path) -> None:
        refuses(
            himecat,
            place,
            [*command("check"), "--json", "report.json"],
            "The result cannot be written to report.json",
        )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_device_that_takes_nothing(himecat: Himecat, place: Path, letters_model: Path) -> None:
    refuses(
        himecat,
        place,
        ["predict", letters_model, "docs.jsonl", "-o", "/dev/full", "-q"],
        "The predictions cannot be written to /dev/full: No space left on device.",
    )


# -- what is odd but allowed -----------------------------------------------------------------------------------


def test_skip_bad_keeps_one_line_per_document(himecat: Himecat, place: Path, letters_model: Path) -> None:
    documents: list[Any] = sound()[:6]
    documents[1]["text"] = " "
    del documents[3]["text"]
    documents[4]["tags"] = {}
    lines = [json.dumps(document) for document in documents]
    lines[2] = "{"
    (place / "docs.jsonl").write_text("\n".join(lines))
    ended = himecat("predict", letters_model, "docs.jsonl", "-o", "out.jsonl", "--skip-bad")
    assert ended.code == 0
    for number in (2, 3, 4, 5):
        assert f"skipped: docs.jsonl line {number}: " in ended.err
    found = [json.loads(line) for line in (place / "out.jsonl").read_text().splitlines()]
    ids = [document["id"] for document in documents]
    ids[2] = "docs.jsonl line 3"
    assert [one["id"] for one in found] == ids
    assert [bool(one["path"]) for one in found] == [True, False, False, False, False, True]
    empty = {"path": [], "confidence": [], "leaf": False}
    assert all(one == {"id": one["id"], **empty} for one in found[1:5])


def test_skip_bad_in_fit(himecat: Himecat, place: Path) -> None:
    documents = sound()
    documents[2]["text"] = ""
    write_lines(place / "docs.jsonl", documents)
    arguments = [part for part in command("fit") if part != "-q"]
    ended = himecat(*arguments, "--skip-bad")
    assert ended.code == 0
    assert f"warning: {HERE}the text is empty." in ended.err
    assert "from 23 documents" in ended.err
    assert himecat(*command("check"), "--skip-bad").code == 0
    write_lines(place / "docs.jsonl", [{"text": ""}])
    ended = himecat(*command("check"), "--skip-bad")
    assert (ended.code, ended.errors) == (2, ["There is no document to work with."])


ODD_TEXTS = {
    "NUL bytes": "quantum\0laser \0\0 photon",
    "a very long word": "x" * 200_000,
    "emoji": "🧪🔬 laser 👩‍🔬 🇬🇧",
    "right to left": "ليزر كمومي وفوتون جسيم \u202eمجال טבע",
    "only numbers": "12 2019 3.14159 1234567890",
    "punctuation": "?!... --- ((()))",
    "a million characters": "quantum laser photon " * 50_000,
    "control characters": "laser\x1b[31mred\x07\x08",
    "line separators": "laser\u2028photon\u2029field\x85energy",
}


def test_odd_texts(himecat: Himecat, place: Path) -> None:
    documents = sound()
    odd = [{"id": name, "text": text, "tags": [text[:50], "\0"]} for name, text in ODD_TEXTS.items()]
    write_lines(place / "docs.jsonl", [*documents, *odd])
    assert himecat(*command("check")).code == 0
    assert himecat(*command("fit")).code == 0
    assert himecat("predict", "model", "docs.jsonl", "-o", "out.jsonl", "-q").code == 0
    found = [json.loads(line) for line in (place / "out.jsonl").read_text().split("\n")[:-1]]
    assert [one["id"] for one in found] == [document["id"] for document in (*documents, *odd)]
    assert all(one["leaf"] and 0 < one["confidence"][-1] <= 1 for one in found)
    ended = himecat("explain", "model", "--documents", "docs.jsonl")
    assert ended.code == 0
    assert "\x1b" not in ended.out, "a text must not reach into the terminal"


@pytest.mark.parametrize("where", ["id", "text", "tags", "labels", "name"])
@pytest.mark.parametrize("name", ["check", "fit", "predict"])
def test_half_a_character_leaves_out_one_document(
    himecat: Himecat, place: Path, letters_model: Path, where: str, name: str
) -> None:
    documents = sound()
    half = {
        "id": "a\ud800",
        "text": "a \udc00",
        "tags": ["\ud800"],
        "labels": ["arts", "\ud800"],
        "name": "x",
    }
    documents[20]["\ud800" if where == "name" else where] = half[where]
    write_lines(place / "docs.jsonl", documents)
    arguments = (
        ["predict", letters_model, "docs.jsonl", "-o", "out.jsonl", "-q"]
        if name == "predict"
        else command(name)
    )
    refuses(himecat, place, arguments, "docs.jsonl line 21: the")
    ended = himecat(*arguments, "--skip-bad")
    assert ended.code == 0, ended.err
    if name == "predict":
        lines = [json.loads(line) for line in (place / "out.jsonl").read_text().splitlines()]
        assert len(lines) == len(documents)
        assert [line["path"] == [] for line in lines].count(True) == 1


def test_no_sentence_is_too_long(himecat: Himecat, place: Path) -> None:
    long = "x" * 100_000
    odd = [{long: 1}, {"id": long, "text": "a"}, {"id": long, "text": "b"}, {"text": "c", "labels": long}]
    write_lines(place / "docs.jsonl", [*sound(), *odd, {f"field {number}": 1 for number in range(5000)}])
    for arguments in (command("check"), command("check", long), command("check", tree=long)):
        ended = himecat(*arguments)
        assert ended.code == 2
        assert max(map(len, ended.err.splitlines())) < 2000


@pytest.mark.parametrize("name", ["check", "fit", "score", "evaluate"])
def test_folders_that_one_may_not_enter(
    himecat: Himecat, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    look = os.stat

    def refused(path: Any, *more: Any, **options: Any) -> os.stat_result:
        # As for any user but root, who may enter every folder.
        if "closed" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, *more, **options)

    inside = "closed/docs.jsonl"
    arguments = {"score": ["score", inside, "closed/set"], "evaluate": ["evaluate", "closed/set", "-q"]}
    monkeypatch.setattr(os, "stat", refused)
    ended = himecat(*arguments.get(name, command(name, inside)))
    assert ended.code == 2, ended.err
    assert "there is no permission to enter the folder" in ended.err
