"""HiGitClass: the network of words, keyword enrichment, pseudo documents, and the system as a whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems._higit_documents import disjoint, enrich, pseudo_documents, write_documents
from himecat.compare.systems._hin import embed_network
from himecat.compare.systems.higitclass import HiGitClass, Star, star_network
from himecat.compare.systems.system import Task
from himecat.errors import DataError, UsageError
from himecat.input.builder import load_corpus
from himecat.input.corpus import Ragged, Vocabulary
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields

# Enough to learn something from a small corpus, and no more.
SMALL = HiGitClass(dimension=24, samples=1_000_000, beta=40, epochs=40)


def on_a_circle(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_it_beats_chance_on_letters_and_names_leaves_and_does_not_depend_on_threads(letters: Path) -> None:
    dataset = open_dataset(letters)
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=5, max_tokens=300)
    truth = true_nodes(dataset, loaded)
    task = Task(loaded.corpus, dataset.taxonomy, draw(dataset, truth, 0))
    found = SMALL.fit_predict(task)
    assert set(found.tolist()) <= set(task.taxonomy.leaves)
    test = np.setdiff1d(np.arange(len(truth)), task.supervision.rows)
    assert np.mean(found[test] == truth[test]) > 5 / task.taxonomy.n_leaves
    again = SMALL.fit_predict(Task(task.corpus, task.taxonomy, task.supervision, threads=2))
    assert found.tolist() == again.tolist()


def test_paths_go_through_the_words_of_all_documents_with_a_value() -> None:
    parts = Ragged.from_lists([[0, 2], [], [1, 3], [2]])
    words = Ragged.from_lists([[0, 1], [2], [3, 3], []])
    star = Star(parts, words)
    assert star.degrees.tolist() == [4, 0, 1, 2]
    centres, ones, others = star.draw_paths(7_000, np.random.default_rng(0))
    around = {0: {0, 1, 3}, 2: {2}, 3: {3}}
    for drawn in (ones, others):
        assert {centre: set(drawn[centres == centre].tolist()) for centre in around} == around
    # Every link is as likely as any other: the first centre has four of seven, half of them to word 3.
    assert np.mean(centres == 0) == pytest.approx(4 / 7, abs=0.03)
    assert np.mean(others[centres == 0] == 3) == pytest.approx(1 / 2, abs=0.03)


def test_edges_join_words_with_centres_and_with_each_other() -> None:
    corpus = read_corpus([{"text": "red fox", "by": "ann"}, {"text": "blue car", "by": "bob"}], metadata="by")
    tree = Taxonomy.from_paths([("animals",), ("things",)])
    fox = corpus.words.index["fox"]
    network = star_network(corpus, tree, {1: np.array([fox])})
    edges = network.draw(3_000, np.random.default_rng(0))
    starts = [0, 4, *(network.first_centre(number) for number in (1, 2)), 11]
    kind_of = np.searchsorted(starts, edges.targets, side="right") - 1
    assert kind_of.tolist() == edges.kinds.tolist()
    pairs = set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    label = network.first_centre(2) + 1
    assert {pair for pair in pairs if label in pair} == {(fox, label), (label, fox)}
    red, blue = corpus.words.index["red"], corpus.words.index["blue"]
    assert (red, fox) in pairs
    assert (red, blue) not in pairs
    assert (red, red) not in pairs


def test_words_of_one_author_come_together() -> None:
    """Two words that never share a document are near if one person writes both."""
    documents = [
        {"text": text, "by": by}
        for text, by in [("sun", "ann"), ("moon", "ann"), ("fork", "bob"), ("knife", "bob")] * 10
    ]
    corpus = read_corpus(documents, metadata="by")
    network = star_network(corpus, Taxonomy.from_paths([("a",)]), {})
    vectors = embed_network(network.draw, network.degrees, samples=100_000, dimension=8)
    sun, moon, fork = (vectors[corpus.words.index[word]] for word in ("sun", "moon", "fork"))
    assert sun @ moon > sun @ fork + 0.5


def test_a_shared_keyword_goes_to_the_leaf_where_it_stands_highest() -> None:
    found = disjoint({1: np.array([5, 6, 7]), 2: np.array([6, 5]), 3: np.array([5])})
    assert {leaf: words.tolist() for leaf, words in found.items()} == {1: [5, 7], 2: [6], 3: []}


def test_classes_grow_evenly_until_two_would_meet() -> None:
    vectors = on_a_circle(0, 8, 20, 45, 62, 80, 90)
    grown = enrich([np.array([0]), np.array([6]), np.zeros(0, dtype=np.int64)], vectors)
    # The word at 45 degrees would be the fourth of both.
    assert [sorted(words.tolist()) for words in grown] == [[0, 1, 2], [4, 5, 6], []]
    # A class that begins with more words keeps them, and none of them is taken by another.
    uneven = enrich([np.array([0, 1, 2, 3]), np.array([6])], vectors)
    assert [sorted(words.tolist()) for words in uneven] == [[0, 1, 2, 3], [4, 5, 6]]


def test_classes_that_share_a_word_do_not_grow() -> None:
    groups = [np.array([0, 1]), np.array([1])]
    assert [words.tolist() for words in enrich(groups, on_a_circle(0, 40, 80))] == [[0, 1], [1]]


def test_a_single_class_grows_no_further_than_the_vocabulary() -> None:
    (grown,) = enrich([np.array([1])], on_a_circle(0, 10, 20))
    assert sorted(grown.tolist()) == [0, 1, 2]


def test_a_pseudo_document_has_its_share_of_background_words() -> None:
    words = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
    topic = on_a_circle(1)
    # Word 4 has no vector: a metadata value, which only the background can bring in.
    made = write_documents(
        np.repeat(topic, 50, axis=0),
        words,
        np.array([0.0, 0.0, 0.0, 1.0, 1.0]),
        length=100,
        neighbours=2,
        alpha=0.2,
        rng=np.random.default_rng(0),
    )
    shares = np.bincount(made.ravel(), minlength=5) / made.size
    assert shares[3:].tolist() == pytest.approx([0.1, 0.1], abs=0.02)
    # Of the two nearest, the one in the topic's direction is about e times as likely.
    assert shares[0] / (shares[0] + shares[1]) == pytest.approx(np.e / (1 + np.e), abs=0.03)


def test_an_inner_category_writes_about_all_its_children() -> None:
    tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",), ("c",)])
    x, y, b = tree.find("x"), tree.find("y"), tree.find("b")
    vectors = np.eye(30, dtype=np.float32)
    keywords = {x: np.array([0]), y: np.array([10]), b: np.array([20])}
    made = pseudo_documents(
        tree, keywords, vectors, np.ones(30), beta=60, length=8, neighbours=1, alpha=0.0, seed=1
    )
    about = {node: set(made.of(node).values.tolist()) for node in (tree.find("a"), x, y, b)}
    assert {0, 10} <= about[tree.find("a")]
    assert 20 not in about[tree.find("a")]
    assert (10 in about[x], 0 in about[y], 20 in about[b]) == (False, False, True)
    assert len(made.of(tree.find("c"))) == 0
    assert all(len(made.of(node)) == 60 for node in about)


def test_odd_trees_and_documents() -> None:
    few = HiGitClass(dimension=8, samples=5_000, beta=3, epochs=2)
    corpus = read_corpus(["red fox", "rare", "blue car", "red car", "red sea car"], min_count=2)
    assert not corpus.tokens.lengths.all()
    ragged = Taxonomy.from_paths([("a", "only"), ("b", "c", "d"), ("b", "c", "e"), ("f",)])
    only, d, inner = ragged.find("only"), ragged.find("d"), ragged.find("c")
    task = Task(corpus, ragged, Supervision(np.array([0, 2, 3]), np.array([only, d, inner])))
    assert set(few.fit_predict(task).tolist()) <= {only, d}
    one = Taxonomy.from_paths([("a",)])
    assert few.fit_predict(Task(corpus, one, Supervision(np.array([0]), np.array([1])))).tolist() == [1] * 5
    blank = replace(corpus, words=Vocabulary((), np.zeros(0, np.int64)), tokens=Ragged.from_lists([[]] * 5))
    found = few.fit_predict(Task(blank, ragged, Supervision(np.array([0, 1]), np.array([only, d]))))
    assert set(found.tolist()) <= {only, d}
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        few.fit_predict(Task(corpus, ragged, Supervision(np.array([0]), np.array([inner]))))


def test_a_parameter_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="epochs must be at least 1, not 0"):
        HiGitClass(epochs=0)
