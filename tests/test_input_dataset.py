from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat.errors import DataError, UsageError
from himecat.input.builder import load_corpus
from himecat.input.dataset import Dataset, draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy

DOCUMENTS = [
    {"text": "red apple", "tags": ["x"], "labels": ["fruit", "apple"]},
    {"text": "green apple", "tags": [], "labels": ["fruit", "apple"]},
    {"text": "ripe pear", "tags": ["x"], "labels": ["fruit", "pear"]},
    {"text": "old oak", "tags": ["y"], "labels": ["oak"]},
]


def lines(documents: list[Any]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def make(folder: Path, **files: str | None) -> Path:
    """A small dataset folder; a file given as None is left out (names: documents, tree, meta, draw)."""
    content: dict[str, str | None] = {
        "documents": lines(DOCUMENTS),
        "tree": "ROOT fruit oak\nfruit apple pear\n",
        "meta": '{"metadata": ["tags"]}',
        "draw": "apple\t1\npear 2\noak\t3\n",
    }
    content.update(files)
    names = {
        "documents": "corpus.jsonl",
        "tree": "label_hier.txt",
        "meta": "meta_dict.json",
        "draw": "doc_id.txt",
    }
    for key, text in content.items():
        if text is not None:
            (folder / names[key]).write_text(text, encoding="utf-8")
    return folder


def said_opening(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        open_dataset(folder)
    return str(caught.value)


def small(first_draw: dict[str, list[int]] | None = None) -> Dataset:
    tree = Taxonomy.from_paths([("b", "x"), ("a", "x"), ("z",), ("c", "m")])
    return Dataset(Path("d"), Path("d/corpus.jsonl"), tree, (), first_draw)


def test_a_folder_is_opened_whole(tmp_path: Path) -> None:
    dataset = open_dataset(make(tmp_path))
    assert dataset.documents == tmp_path / "corpus.jsonl"
    assert dataset.taxonomy.n_leaves == 3
    assert dataset.metadata == ("tags",)
    assert dataset.first_draw == {"apple": [1], "pear": [2], "oak": [3]}


def test_without_a_listed_draw(tmp_path: Path) -> None:
    assert open_dataset(make(tmp_path, draw=None)).first_draw is None


@pytest.mark.parametrize("name", ["corpus.jsonl.gz", "corpus.jsonl.zst", "corpus.parquet", "github.json"])
def test_where_the_documents_stand(tmp_path: Path, name: str) -> None:
    make(tmp_path, documents=None)
    (tmp_path / name).write_text("...")
    assert open_dataset(tmp_path).documents == tmp_path / name


def test_a_corpus_file_goes_before_other_json_files(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "statistics.json").write_text("{}")
    assert open_dataset(tmp_path).documents.name == "corpus.jsonl"


def test_documents_missing_or_not_clear(tmp_path: Path) -> None:
    make(tmp_path, documents=None)
    assert "the documents are missing; put them into corpus.jsonl" in said_opening(tmp_path)
    (tmp_path / "b.json").write_text("")
    (tmp_path / "a.json").write_text("")
    assert "2 files could hold the documents (a.json, b.json); keep one" in said_opening(tmp_path)


def test_folders_that_are_none(tmp_path: Path) -> None:
    assert "there is no such file or folder" in said_opening(tmp_path / "none")
    assert "a file, not a folder" in said_opening(make(tmp_path) / "doc_id.txt")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tree": None}, "label_hier.txt is missing"),
        ({"tree": "ROOT a b\na b a\n"}, "label_hier.txt line 2: 'a' is its own parent"),
        ({"meta": None}, "meta_dict.json is missing"),
        ({"meta": '{"metadata": ["tags",\n}'}, "meta_dict.json line 2: broken JSON"),
        ({"meta": '["tags"]'}, "meta_dict.json: the names of the metadata fields were not found"),
        ({"meta": '{"metadata": "tags"}'}, "meta_dict.json: the names"),
        ({"meta": '{"metadata": [1]}'}, "meta_dict.json: the names"),
        ({"draw": "aple\t1\n"}, "doc_id.txt line 1: unknown label 'aple'; did you mean 'apple'?"),
        ({"draw": "fruit\t1\n"}, "doc_id.txt line 1: 'fruit' is not a leaf"),
        ({"draw": "apple\t1 two\n"}, "doc_id.txt line 1: 'two' is not a document number"),
        ({"draw": "apple\t-1\n"}, "'-1' is not a document number"),
        ({"draw": "apple\t²\n"}, "'²' is not a document number"),
        ({"draw": "apple 1\n\napple 2\n"}, "doc_id.txt line 3: 'apple' has a line already (line 1)"),
        ({"draw": "apple 1 1\n"}, "document 1 is listed already, for 'apple'"),
        ({"draw": "apple 1\npear 2 1\n"}, "doc_id.txt line 2: document 1 is listed already, for 'apple'"),
        ({"draw": "\n"}, "doc_id.txt: the file is empty"),
    ],
)
def test_missing_and_malformed_files(tmp_path: Path, files: dict[str, str | None], said: str) -> None:
    assert said in said_opening(make(tmp_path, **files))


def test_every_error_of_the_draw_is_told(tmp_path: Path) -> None:
    said = said_opening(make(tmp_path, draw="aple 1\nfruit 2\noak x\n"))
    assert len(said.split("\n")) == 3


def test_names_with_blanks_and_paths_in_the_draw(tmp_path: Path) -> None:
    tree = "ROOT\told trees\tb\tc\nb\tx\nc\tx\n"
    dataset = open_dataset(make(tmp_path, tree=tree, draw="old trees\t0 1\nb/x\t2\nc/x 3\n"))
    assert dataset.first_draw == {"old trees": [0, 1], "b/x": [2], "c/x": [3]}


def test_true_nodes_follow_the_rows(tmp_path: Path) -> None:
    dataset = open_dataset(make(tmp_path))
    truth = true_nodes(dataset, load_corpus(dataset.documents, Fields()))
    assert [dataset.taxonomy.title(node) for node in truth] == [
        *("fruit/apple", "fruit/apple", "fruit/pear", "oak"),
    ]


def test_true_nodes_name_documents_without_a_usable_label(tmp_path: Path) -> None:
    documents = [*DOCUMENTS, {"text": "no label"}, {"text": "wrong", "labels": ["elm"]}]
    dataset = open_dataset(make(tmp_path, documents=lines(documents)))
    loaded = load_corpus(dataset.documents, Fields())
    with pytest.raises(DataError) as caught:
        true_nodes(dataset, loaded)
    assert "corpus.jsonl line 5: the document has no labels" in str(caught.value)
    assert "corpus.jsonl line 6: unknown label 'elm'" in str(caught.value)
    problems = Problems()
    assert true_nodes(dataset, loaded, problems)[4:].tolist() == [-1, -1]
    assert problems.counts["error"] == 2


def test_true_nodes_refuse_shifted_rows(tmp_path: Path) -> None:
    # Leaving a document out would move all numbers of doc_id.txt behind it.
    dataset = open_dataset(make(tmp_path, documents='{"text": ""}\n' + lines(DOCUMENTS)))
    loaded = load_corpus(dataset.documents, Fields(), skip_bad=True)
    with pytest.raises(DataError, match="documents that cannot be used: 1; draws count them"):
        true_nodes(dataset, loaded)


def test_draw_0_is_the_listed_one(tmp_path: Path) -> None:
    dataset = open_dataset(make(tmp_path))
    truth = true_nodes(dataset, load_corpus(dataset.documents, Fields()))
    labelled = draw(dataset, truth, 0)
    assert labelled.rows.tolist() == [1, 2, 3]
    assert labelled.nodes.tolist() == truth[[1, 2, 3]].tolist()


def test_a_listed_draw_must_agree_with_the_documents() -> None:
    dataset = small({"z": [0, 7], "m": [1]})
    z, m = dataset.taxonomy.find("z"), dataset.taxonomy.find("m")
    with pytest.raises(DataError) as caught:
        draw(dataset, np.array([z, z, m]), 0)
    assert "document 7 of 'z' does not exist: the last one is 2" in str(caught.value)
    assert "document 1 is listed for c/m, but its own label is z" in str(caught.value)


def test_other_draws_go_through_the_leaves_by_name_with_one_generator() -> None:
    dataset = small()
    tree = dataset.taxonomy
    by_name = [tree.find(label) for label in ("c/m", "a/x", "b/x", "z")]
    truth = np.array([tree.leaves[row % 4] for row in range(80)])
    for number in (0, 1, 2):
        rng = random.Random(number)
        expected = {
            row: leaf for leaf in by_name for row in rng.sample(np.flatnonzero(truth == leaf).tolist(), 5)
        }
        labelled = draw(dataset, truth, number)
        assert dict(zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True)) == expected
        assert labelled.rows.tolist() == sorted(expected)


def test_draws_differ_and_repeat() -> None:
    dataset = small()
    truth = np.repeat(dataset.taxonomy.leaves, 30)
    first, again, other = (draw(dataset, truth, number).rows.tolist() for number in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(draw(dataset, truth, 3, per_leaf=2)) == 8


@pytest.mark.parametrize(("documents", "drawn"), [(0, 0), (1, 1), (2, 1), (5, 4), (6, 5), (7, 5)])
def test_small_leaves_keep_a_document_to_test_with(documents: int, drawn: int) -> None:
    dataset = small()
    leaf = dataset.taxonomy.leaves[0]
    assert len(draw(dataset, np.full(documents, leaf), 1)) == drawn


def test_documents_at_inner_categories_are_never_drawn() -> None:
    dataset = small()
    assert len(draw(dataset, np.full(20, dataset.taxonomy.find("a")), 1)) == 0


def test_numbers_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="from 0 on, not -1"):
        draw(small(), np.array([1]), -1)
    with pytest.raises(UsageError, match="at least 1 document per leaf, not 0"):
        draw(small(), np.array([1]), 1, per_leaf=0)


@pytest.mark.real
@pytest.mark.parametrize("name", ["arxiv", "packages", "reviews", "arxiv-large"])
def test_real_folders_open(shared_data: Any, name: str) -> None:
    dataset = open_dataset(shared_data(name))
    assert dataset.first_draw is not None
    assert {len(rows) for rows in dataset.first_draw.values()} == {5}
    assert len(dataset.first_draw) == dataset.taxonomy.n_leaves


@pytest.mark.real
@pytest.mark.parametrize("name", ["packages", "reviews"])
def test_real_draws(shared_data: Any, name: str) -> None:
    dataset = open_dataset(shared_data(name))
    truth = true_nodes(dataset, load_corpus(dataset.documents, Fields(metadata=dataset.metadata)))
    with gzip.open(dataset.documents, "rt", encoding="utf-8") as stream:
        names = [json.loads(line)["labels"][-1] for line in stream]
    assert [dataset.taxonomy.names[node] for node in truth] == names
    assert len(draw(dataset, truth, 0)) == 5 * dataset.taxonomy.n_leaves
    rng = random.Random(3)
    expected: list[int] = []
    for leaf in sorted(set(names)):
        expected += rng.sample([row for row, name in enumerate(names) if name == leaf], 5)
    assert draw(dataset, truth, 3).rows.tolist() == sorted(expected)
