"""The sample corpus that comes with the package."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat.errors import OutputError, UsageError
from himecat.input.builder import load_corpus
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.taxonomy.readers import read_taxonomy
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy, write_sample

Document = dict[str, Any]


@pytest.fixture(scope="module")
def letters() -> list[Document]:
    return sample_documents()


@pytest.fixture(scope="module")
def leaves(letters: list[Document]) -> np.ndarray:
    return np.array(["/".join(letter["labels"]) for letter in letters])


# --- the tree


def test_tree_is_uneven_and_has_an_only_child_and_repeated_names() -> None:
    tree = sample_taxonomy()
    depths = Counter(tree.depths[leaf] for leaf in tree.leaves)
    assert depths == {1: 1, 2: 3, 3: 18}
    assert [tree.title(node) for node in tree.inner if len(tree.children[node]) == 1] == ["homes/neighbours"]
    twice = {name: [tree.title(node) for node in nodes] for name, nodes in tree.nodes_by_name.items()}
    assert {name: places for name, places in twice.items() if len(places) > 1} == {
        "repairs": ["streets/roads/repairs", "homes/council-homes/repairs"],
        "permits": ["streets/parking/permits", "homes/building/permits"],
    }


# --- the letters


def test_letters_have_unique_ids_and_texts_and_leaves_of_the_tree(letters: list[Document]) -> None:
    tree = sample_taxonomy()
    assert len(letters) == 1200
    assert len({letter["id"] for letter in letters}) == 1200
    assert len({letter["text"] for letter in letters}) == 1200
    for letter in letters:
        assert list(letter) == ["id", "text", *METADATA, "labels"]
        node = tree.walk(letter["labels"])
        assert node is not None
        assert tree.is_leaf(node)


def test_leaves_are_uneven(leaves: np.ndarray) -> None:
    counts = Counter(leaves.tolist())
    assert len(counts) == sample_taxonomy().n_leaves
    assert min(counts.values()) == 25
    assert max(counts.values()) == 122


@pytest.mark.parametrize("n_documents", [22, 23, 176, 300, 900])
def test_any_cut_covers_every_leaf_and_keeps_the_order(letters: list[Document], n_documents: int) -> None:
    cut = sample_documents(n_documents)
    counts = Counter(tuple(letter["labels"]) for letter in cut)
    assert counts.total() == n_documents
    assert len(counts) == 22
    assert min(counts.values()) >= min(8, n_documents // 22)
    kept = {letter["id"] for letter in cut}
    assert cut == [letter for letter in letters if letter["id"] in kept]


# --- the metadata


def test_metadata_has_gaps(letters: list[Document]) -> None:
    assert METADATA == ("senders", "tags")
    for kind, missing in (("senders", 0.15), ("tags", 0.45)):
        assert np.mean([not letter[kind] for letter in letters]) == pytest.approx(missing, abs=0.03)
        for letter in letters:
            assert len(set(letter[kind])) == len(letter[kind])
            assert all(isinstance(value, str) and value for value in letter[kind])


def test_regulars_write_often_and_mostly_about_one_leaf(letters: list[Document]) -> None:
    about = defaultdict(Counter)
    for letter in letters:
        for sender in letter["senders"]:
            about[sender]["/".join(letter["labels"])] += 1
    regulars = [counts for counts in about.values() if counts.total() >= 3]
    assert sum(counts.total() == 1 for counts in about.values()) > 50
    assert len(regulars) > 80
    assert max(counts.total() for counts in regulars) < 20
    loyal = sum(max(counts.values()) for counts in regulars) / sum(counts.total() for counts in regulars)
    assert 0.65 < loyal < 0.9


# --- how hard it is


def accuracy(texts: list[str], leaves: np.ndarray, trained: np.ndarray) -> tuple[float, float]:
    """Of leaves and of level 1, on the documents not trained on, for a flat classifier."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    words = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    found = LinearSVC(random_state=0).fit(words[trained], leaves[trained]).predict(words[~trained])
    true = leaves[~trained]
    areas = [(a.split("/")[0], b.split("/")[0]) for a, b in zip(found, true, strict=True)]
    return float(np.mean(found == true)), float(np.mean([a == b for a, b in areas]))


def test_few_labels_are_hard_areas_are_easier_and_metadata_helps(
    letters: list[Document], leaves: np.ndarray
) -> None:
    texts = [letter["text"] for letter in letters]
    with_metadata = [
        " ".join(
            [letter["text"], *(re.sub(r"\W", "_", f"{kind} {v}") for kind in METADATA for v in letter[kind])]
        )
        for letter in letters
    ]
    plain, rich = [], []
    for seed in range(5):
        shown = np.array([path is not None for path in sample_split(letters, seed=seed)])
        plain.append(accuracy(texts, leaves, shown))
        rich.append(accuracy(with_metadata, leaves, shown))
    leaf, area = np.mean(plain, axis=0)
    assert 0.55 < leaf < 0.75
    assert area > leaf + 0.1
    assert np.mean(rich, axis=0)[0] > leaf + 0.02


def test_many_labels_are_enough(letters: list[Document], leaves: np.ndarray) -> None:
    trained = np.arange(len(letters)) % 5 != 0
    leaf, _ = accuracy([letter["text"] for letter in letters], leaves, trained)
    assert 0.85 < leaf < 0.95


# --- what fit gets to see


def test_split_shows_true_paths_of_a_few_per_leaf(letters: list[Document]) -> None:
    labels = sample_split(letters, per_leaf=3, seed=4)
    shown = [tuple(path) for path in labels if path is not None]
    assert set(Counter(shown).values()) == {3}
    assert len(set(shown)) == 22
    assert all(path is None or path == letter["labels"] for path, letter in zip(labels, letters, strict=True))
    assert labels == sample_split(letters, per_leaf=3, seed=4)
    assert labels != sample_split(letters, per_leaf=3, seed=5)


def test_split_leaves_one_document_to_test_with() -> None:
    documents = [{"labels": ["a"]}, {"labels": ["a"]}, {"labels": ["b"]}]
    assert Counter(path[0] for path in sample_split(documents) if path) == {"a": 1, "b": 1}
    assert sample_split(documents, per_leaf=0) == [None, None, None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_documents(21), r"n_documents must be a whole number from 22.*found 21"),
        (lambda: sample_documents(1201), r"to 1200; found 1201"),
        (lambda: sample_documents(100.5), r"found 100\.5"),
        (lambda: sample_split([], per_leaf=-1), r"per_leaf must be a whole number from 0 on; found -1"),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


# --- the files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("sample") / "letters")


def read_lines(file: Path) -> list[Document]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_written_folder_is_a_dataset_with_the_same_tree_letters_and_draws(
    folder: Path, letters: list[Document]
) -> None:
    dataset = open_dataset(folder)
    assert dataset.taxonomy == sample_taxonomy()
    assert dataset.metadata == METADATA
    assert read_lines(dataset.documents) == letters
    truth = true_nodes(dataset, load_corpus(dataset.documents, Fields(metadata=METADATA)))
    for seed in range(3):
        shown = sample_split(letters, seed=seed)
        rows = [row for row, path in enumerate(shown) if path is not None]
        assert draw(dataset, truth, seed).rows.tolist() == rows


def test_yaml_and_lines_hold_the_same_tree(folder: Path) -> None:
    assert read_taxonomy(folder / "taxonomy.yaml") == read_taxonomy(folder / "label_hier.txt")


def test_only_labelled_documents_carry_labels_for_fit(folder: Path, letters: list[Document]) -> None:
    documents = read_lines(folder / "documents.jsonl")
    assert [document["labels"] or None for document in documents] == sample_split(letters)
    for document, letter in zip(documents, letters, strict=True):
        assert {**document, "labels": letter["labels"]} == letter


def test_readme_names_every_file(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    for file in folder.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in text


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    for name in ("full", "file"):
        with pytest.raises(OutputError, match=f"{name} exists already; name a new or an empty folder"):
            write_sample(tmp_path / name)
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"
    (tmp_path / "empty").mkdir()
    assert write_sample(tmp_path / "empty", n_documents=50, per_leaf=1).joinpath("corpus.jsonl").exists()


def test_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_text

    def full(self: Path, *args: Any, **options: Any) -> int:
        if self.name == "doc_id.txt":
            raise OSError(28, "No space left on device")
        return written(self, *args, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(
        OutputError, match=r"The sample corpus cannot be written to .*letters/: No space left"
    ):
        write_sample(tmp_path / "letters", n_documents=50)
    assert list(tmp_path.iterdir()) == []
