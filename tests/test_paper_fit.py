"""The whole way from documents to paths, and what each part of it is worth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Corpus, Default, HiMeCat, Paper, Supervision, Taxonomy, score
from himecat.errors import UsageError
from himecat.input.builder import load_corpus
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TWO = Taxonomy.from_paths([("x",), ("y",)])
# The paper's way, with a fraction of its training.
QUICK: dict[str, Any] = {
    "dimension": 300,
    "rate": 0.1,
    "neighbours": None,
    "samples": 8_000_000,
    "beta": 200,
    "epochs": 4,
    "batch_size": 64,
    "min_steps": 200,
}


@pytest.fixture(scope="module")
def sample() -> tuple[Corpus, np.ndarray]:
    documents, tree = sample_documents(), sample_taxonomy()
    corpus = load_corpus(documents, Fields(metadata=METADATA), min_count=5).corpus
    return corpus, np.array([tree.find(document["labels"]) for document in documents])


@pytest.fixture(scope="module")
def leaf_f1(sample: tuple[Corpus, np.ndarray]) -> dict[str, float]:
    corpus, truth = sample
    tree = sample_taxonomy()
    flat = Taxonomy(["ROOT", *(f"leaf {leaf}" for leaf in tree.leaves)], [-1, *[0] * tree.n_leaves])
    found: dict[str, list[float]] = {"whole": [], "flat": [], "text": []}
    for seed in range(2):
        labels = sample_split(sample_documents(), seed=seed)
        rows = np.array([row for row, label in enumerate(labels) if label is not None])
        test = np.setdiff1d(np.arange(len(corpus)), rows)
        in_tree = Supervision(rows, truth[rows])
        in_flat = Supervision(rows, tree.leaf_position[truth[rows]] + 1)
        placed = {
            "whole": HiMeCat(tree, method=Paper(**QUICK)).fit(corpus, in_tree).assign(corpus).nodes,
            "text": HiMeCat(tree, method=Paper(use_metadata=False, **QUICK))
            .fit(corpus, in_tree)
            .assign(corpus)
            .nodes,
            "flat": np.asarray(tree.leaves)[
                HiMeCat(flat, method=Paper(**QUICK)).fit(corpus, in_flat).assign(corpus).nodes - 1
            ],
        }
        for name, nodes in placed.items():
            found[name].append(score(tree, truth[test], nodes[test]).leaf.micro)
    return {name: float(np.mean(values)) for name, values in found.items()}


@pytest.mark.slow
class TestSampleCorpus:
    """The sample corpus must show what the tree and the metadata are for, in the paper's way."""

    def test_hard_but_not_hopeless(self, leaf_f1: dict[str, float]) -> None:
        assert 0.5 < leaf_f1["whole"] < 0.9

    def test_the_tree_helps(self, leaf_f1: dict[str, float]) -> None:
        assert leaf_f1["whole"] > leaf_f1["flat"] + 0.04

    def test_the_metadata_help(self, leaf_f1: dict[str, float]) -> None:
        assert leaf_f1["whole"] > leaf_f1["text"] + 0.02


@pytest.mark.real
@pytest.mark.parametrize(("name", "chance", "floor"), [("packages", 1 / 32, 0.40), ("reviews", 1 / 41, 0.13)])
def test_real_corpora_fit_in_the_papers_way(
    shared_data: Callable[[str], Path], name: str, chance: float, floor: float
) -> None:
    dataset = open_dataset(shared_data(name))
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=5)
    truth = true_nodes(dataset, loaded)
    labelled = draw(dataset, truth, 0)
    model = HiMeCat(dataset.taxonomy, dataset.metadata, method=Paper(**QUICK)).fit(loaded.corpus, labelled)
    test = np.setdiff1d(np.arange(len(truth)), labelled.rows)
    found = score(dataset.taxonomy, truth[test], model.assign(loaded.corpus.take(test)).nodes)
    # The floors lie well below what was measured, and far above chance: they catch a broken part, not noise.
    assert found.leaf.micro > floor > 5 * chance
    assert found.overall.micro > found.leaf.micro


def test_rows_of_a_supervision_cannot_be_shifted_by_skipped_documents() -> None:
    documents = [{"text": "red fox"}, {"text": ""}, {"text": "old car"}]
    labelled = Supervision(np.array([0, 2]), np.array([1, 2]))
    with pytest.raises(UsageError, match="counts rows, and 1 documents were left out"):
        HiMeCat(TWO, method=Default(min_count=1), skip_bad=True).fit(documents, labelled)


def test_a_node_without_training_documents_makes_no_choice() -> None:
    tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    documents = [{"text": "red fox", "labels": "b"}, {"text": "old car", "labels": "a"}] * 3
    model = HiMeCat(
        tree,
        method=Paper(min_count=1, samples=1000, beta=0, dimension=8, min_steps=5),
        allow_empty_leaves=True,
        threads=1,
    ).fit(documents)
    found = model.predict_proba(["old car"])[0]
    x, y = (model.paths_.index(("a", name)) for name in "xy")
    assert found[x] == pytest.approx(found[y])


def test_the_same_seed_gives_the_same_model_files(tmp_path: Path) -> None:
    documents = [{"text": "red fox", "labels": "x"}, {"text": "old car", "labels": "y"}] * 3
    for name, threads in (("one", 1), ("two", 2)):
        HiMeCat(
            TWO, method=Paper(min_count=1, samples=5000, beta=10, dimension=8, epochs=2), threads=threads
        ).fit(documents).save(tmp_path / name)
    for file in ("model.json", "weights.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
