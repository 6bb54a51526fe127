"""The system `hiersvm`: an SVM at every inner node, walked from the top."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems.hiersvm import HierSvm, walk_down
from himecat.compare.systems.system import Task
from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import score
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TREE = Taxonomy.from_paths(
    [("arts", "music", "jazz"), ("arts", "music", "opera"), ("arts", "film"), ("sport",), ("trade", "tax")]
)
JAZZ, OPERA, FILM, SPORT, TAX = (TREE.find(name) for name in ("jazz", "opera", "film", "sport", "tax"))
ARTS, MUSIC, TRADE = (TREE.find(name) for name in ("arts", "music", "trade"))


def task_of(texts: list[Any], labels: dict[int, int], tree: Taxonomy = TREE, **more: Any) -> Task:
    rows, nodes = np.array(list(labels)), np.array(list(labels.values()))
    metadata = more.pop("metadata", ())
    return Task(read_corpus(texts, metadata=metadata), tree, Supervision(rows, nodes), **more)


class Remembering:
    """A classifier that notes what it was taught and says what its first feature says."""

    taught: list[tuple[list[float], list[int]]] = []  # noqa: RUF012

    def fit(self, features: Any, targets: Any) -> Remembering:
        Remembering.taught.append((features[:, 0].tolist(), targets.tolist()))
        self.targets = targets
        return self

    def predict(self, features: Any) -> Any:
        return np.full(len(features), self.targets[-1])


def test_it_finds_the_leaves_of_the_sample_corpus() -> None:
    documents, tree = sample_documents(700), sample_taxonomy()
    truth = np.array([tree.find(document["labels"]) for document in documents])
    shown = np.array([row for row, path in enumerate(sample_split(documents)) if path is not None])
    corpus = read_corpus(documents, metadata=METADATA)
    task = Task(corpus, tree, Supervision(shown, truth[shown]))
    found = HierSvm().fit_predict(task)
    hidden = np.setdiff1d(np.arange(len(truth)), shown)
    scores = score(tree, truth[hidden], found[hidden])
    assert set(found.tolist()) <= set(tree.leaves)
    assert scores.leaf.micro > 6 / tree.n_leaves
    assert scores.overall.micro > scores.leaf.micro
    assert (found[shown] == truth[shown]).mean() > 0.9
    assert found.tolist() == HierSvm().fit_predict(task).tolist()


def test_every_inner_node_learns_from_the_documents_below_it_only() -> None:
    labels = {0: JAZZ, 1: OPERA, 2: FILM, 3: SPORT, 4: TAX}
    features = np.arange(6.0)[:, np.newaxis]
    Remembering.taught.clear()
    found = walk_down(features, task_of(["x"] * 6, labels), Remembering)
    # Everything is sent to the last child taught: trade, which has one child and needs no classifier.
    assert Remembering.taught == [([0, 1, 2, 3, 4], [ARTS, ARTS, ARTS, SPORT, TRADE])]
    assert found.tolist() == [TAX] * 6
    Remembering.taught.clear()
    found = walk_down(features, task_of(["x"] * 6, {3: SPORT, 2: FILM, 1: OPERA, 0: JAZZ}), Remembering)
    assert Remembering.taught == [
        ([3, 2, 1, 0], [SPORT, ARTS, ARTS, ARTS]),
        ([2, 1, 0], [FILM, MUSIC, MUSIC]),
        ([1, 0], [OPERA, JAZZ]),
    ]
    assert found.tolist() == [JAZZ] * 6


def test_metadata_alone_can_tell_documents_apart() -> None:
    texts = [{"text": "one same text", "tags": [tag]} for tag in ("a", "b", "a", "b")]
    found = HierSvm().fit_predict(task_of(texts, {0: FILM, 1: SPORT}, metadata="tags"))
    assert found.tolist() == [FILM, SPORT, FILM, SPORT]


def test_a_document_labelled_with_an_inner_node_helps_above_it_and_not_below() -> None:
    labels = {0: MUSIC, 1: JAZZ, 2: OPERA, 3: FILM, 4: SPORT}
    Remembering.taught.clear()
    walk_down(np.arange(5.0)[:, np.newaxis], task_of(["x"] * 5, dict(reversed(labels.items()))), Remembering)
    assert Remembering.taught == [
        ([4, 3, 2, 1, 0], [SPORT, ARTS, ARTS, ARTS, ARTS]),
        ([3, 2, 1, 0], [FILM, MUSIC, MUSIC, MUSIC]),
        ([2, 1], [OPERA, JAZZ]),
    ]


def test_the_walk_never_ends_where_no_leaf_is_known() -> None:
    # Music has a labelled document but no labelled leaf, so nothing may be sent there.
    texts = ["violin violin", "camera", "goal", "violin"]
    found = HierSvm().fit_predict(task_of(texts, {0: MUSIC, 1: FILM, 2: SPORT}))
    assert set(found.tolist()) <= {FILM, SPORT}
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        HierSvm().fit_predict(task_of(texts, {0: MUSIC}))


def test_small_and_odd_trees_and_documents_without_words() -> None:
    one = Taxonomy.from_paths([("only",)])
    assert HierSvm().fit_predict(task_of(["x y", "?!"], {0: 1}, one)).tolist() == [1, 1]
    chain = Taxonomy.from_paths([("a", "b", "c")])
    assert HierSvm().fit_predict(task_of(["x y", "z"], {0: 3}, chain)).tolist() == [3, 3]
    found = HierSvm().fit_predict(task_of(["goal", "film", "...", "!!"], {0: SPORT, 1: FILM, 2: FILM}))
    assert found[:2].tolist() == [SPORT, FILM]
    assert set(found.tolist()) <= {SPORT, FILM}
    nothing = task_of(["?", "!", "..."], {0: SPORT, 1: FILM, 2: FILM})
    assert HierSvm().fit_predict(nothing).tolist() == [FILM] * 3


def test_a_penalty_that_makes_no_sense_is_told() -> None:
    with pytest.raises(UsageError, match="c must be above 0, not -1"):
        HierSvm(c=-1)
