"""Small tasks that several systems are tried on."""

from __future__ import annotations

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems.system import System, Task
from himecat.evaluation.metrics import score
from himecat.sample import METADATA, sample_documents, sample_split

# Paths of a tree, and the leaves of the first documents.
ODD_TREES = [
    pytest.param([("only",)], {0: "only"}, id="one leaf"),
    pytest.param([("a",), ("b", "c"), ("b", "d")], {0: "a", 1: "c"}, id="a leaf without documents"),
    pytest.param([("a",), ("b", "c", "d")], {0: "a", 1: "d"}, id="ragged, one child"),
    # A document without words has the same chance at every node, so a shallow leaf would be the likeliest.
    pytest.param([("a",), ("b", "c"), ("b", "d")], {0: "c", 1: "d"}, id="a shallow leaf without documents"),
]


def check_on_letters(system: System) -> None:
    """It names leaves, and finds them far more often than by always naming the commonest."""
    documents = [one for one in sample_documents(900) if one["labels"][0] in ("waste", "leisure")]
    tree = Taxonomy.from_paths([tuple(one["labels"]) for one in documents])
    truth = np.array([tree.find(one["labels"]) for one in documents])
    shown = np.array([row for row, path in enumerate(sample_split(documents)) if path is not None])
    corpus = read_corpus(documents, metadata=METADATA, min_count=2)
    found = system.fit_predict(Task(corpus, tree, Supervision(shown, truth[shown])))
    unseen = np.setdiff1d(np.arange(len(truth)), shown)
    assert all(tree.is_leaf(node) for node in set(found.tolist()))
    commonest = np.bincount(truth[unseen]).max() / len(unseen)
    assert score(tree, truth[unseen], found[unseen]).leaf.micro > 1.5 * commonest


def check_on_odd_tree(system: System, paths: list[tuple[str, ...]], labels: dict[int, str]) -> None:
    """It names a labelled leaf for every document, an empty one too, and the same again."""
    documents = [
        {"text": "jazz jazz band", "by": ["ann", "bob"], "tags": ["x"]},
        {"text": "goal", "by": ["ann"]},
        {"text": "..."},
        {"text": "goal match", "tags": ["x"]},
    ]
    tree = Taxonomy.from_paths(paths)
    nodes = np.array([tree.find(name) for name in labels.values()])
    corpus = read_corpus(documents, metadata=["by", "tags"])
    task = Task(corpus, tree, Supervision(np.array(list(labels)), nodes))
    found = system.fit_predict(task)
    assert (system.fit_predict(task) == found).all()
    assert len(found) == len(documents)
    assert set(found.tolist()) <= set(nodes.tolist())
