"""What names and keywords of categories say before any document is labelled."""

from __future__ import annotations

import numpy as np
import pytest

from himecat import Corpus, Taxonomy, read_corpus
from himecat.classifier.name_seeds import name_seeds, name_words
from himecat.views.base import Phrase
from himecat.views.combined import DocumentVectors, Views, learn_views
from himecat.views.topics import TopicsView
from himecat.views.words import WordsView

TEXTS = [
    "red fox den forest",
    "red foxes den forest",
    "old car wheel road",
    "old cars wheel road",
    "glass bottle wine cellar",
    "glass bottle wine",
    "news of the day",
    "news day",
]
TREE = Taxonomy.from_paths([("animals", "fox"), ("animals", "den"), ("things", "cars"), ("things", "glass")])


def learn(corpus: Corpus, dimension: int, topics: int = 0) -> tuple[Views, DocumentVectors]:
    beside = [TopicsView(topics)] if topics else []
    return learn_views([WordsView(dimension, contexts=50), *beside], corpus)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus(TEXTS)


@pytest.fixture(scope="module")
def views(corpus: Corpus) -> Views:
    return learn(corpus, 6)[0]


def direction(views: Views, corpus: Corpus, *words: str) -> np.ndarray:
    ids = np.array(sorted(corpus.words.index[word] for word in words), dtype=np.int64)
    return views.see_phrases([Phrase(ids, np.ones(len(ids), np.float32), "")])[0]


def test_a_name_is_one_document_of_its_words(views: Views, corpus: Corpus) -> None:
    sums, mass = name_seeds(TREE, views, corpus.words, {}, use_names=True)
    assert mass.tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(sums[1], direction(views, corpus, "den"), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(sums, axis=1), 1.0, atol=1e-5)
    nothing, no_mass = name_seeds(TREE, views, corpus.words, {}, use_names=False)
    assert not nothing.any()
    assert not no_mass.any()


def test_singular_and_plural_are_one(views: Views, corpus: Corpus) -> None:
    sums, _ = name_seeds(TREE, views, corpus.words, {}, use_names=True)
    np.testing.assert_allclose(sums[2], direction(views, corpus, "car", "cars"), atol=1e-6)
    # Only one s is an ending.
    odd = Taxonomy.from_paths([("glasss",), ("gla",)])
    assert name_seeds(odd, views, corpus.words, {}, use_names=True)[1].tolist() == [1, 0]
    short = read_corpus(["gla x", "gla x", "glass y"])
    found, _ = learn(short, 3)
    one = Taxonomy.from_paths([("glass",), ("y",)])
    sums, _ = name_seeds(one, found, short.words, {}, use_names=True)
    np.testing.assert_allclose(sums[0], direction(found, short, "glass"), atol=1e-6)


def test_words_that_all_names_share_are_ignored(views: Views, corpus: Corpus) -> None:
    shared = Taxonomy.from_paths([("red news",), ("car news",), ("news",)])
    sums, mass = name_seeds(shared, views, corpus.words, {}, use_names=True)
    assert mass.tolist() == [1, 1, 0]
    np.testing.assert_allclose(sums[0], direction(views, corpus, "red"), atol=1e-6)
    assert not sums[2].any()


def test_an_unknown_name_says_nothing(views: Views, corpus: Corpus) -> None:
    tree = Taxonomy.from_paths([("qwerty",), ("fox",), ("...",)])
    assert name_seeds(tree, views, corpus.words, {}, use_names=True)[1].tolist() == [0, 1, 0]


def test_names_are_parted_at_whatever_joins_them() -> None:
    assert name_words("missed-bins") == ["missed", "bins"]
    assert name_words("Street_Lights/LED") == ["street", "lights", "led"]
    assert name_words("--") == []


def test_keywords_count_as_two_documents(views: Views, corpus: Corpus) -> None:
    leaf = TREE.find("glass")
    sums, mass = name_seeds(TREE, views, corpus.words, {leaf: ["wine", "cellar"]}, use_names=False)
    assert mass.tolist() == [0, 0, 0, 2]
    np.testing.assert_allclose(sums[3], 2 * direction(views, corpus, "wine", "cellar"), atol=1e-5)
    both, mass = name_seeds(TREE, views, corpus.words, {leaf: ["wine"]}, use_names=True)
    assert mass.tolist() == [1, 1, 1, 3]
    expected = direction(views, corpus, "glass") + 2 * direction(views, corpus, "wine")
    np.testing.assert_allclose(both[3], expected, atol=1e-5)


def test_keywords_of_an_inner_node_speak_for_all_below(views: Views, corpus: Corpus) -> None:
    sums, mass = name_seeds(TREE, views, corpus.words, {TREE.find("animals"): ["forest"]}, use_names=False)
    assert mass.tolist() == [2, 2, 0, 0]
    np.testing.assert_allclose(sums[0], sums[1])
    np.testing.assert_allclose(sums[0], 2 * direction(views, corpus, "forest"), atol=1e-5)
    unknown = {TREE.find("animals"): ["nowhere"]}
    assert not name_seeds(TREE, views, corpus.words, unknown, use_names=False)[1].any()


def test_names_and_keywords_have_a_place_in_the_topics(corpus: Corpus) -> None:
    views, seen = learn(corpus, 6, topics=4)
    assert seen.text.shape[1] == views.dimension
    beside = slice(len(views.centres["words"]), views.dimension)
    assert views.dimension - len(views.centres["words"]) == 4
    sums, mass = name_seeds(TREE, views, corpus.words, {TREE.find("glass"): ["wine"]}, use_names=True)
    assert sums.shape == (4, views.dimension)
    assert mass.tolist() == [1, 1, 1, 3]
    np.testing.assert_allclose(sums[1], direction(views, corpus, "den"), atol=1e-6)
    np.testing.assert_allclose(
        sums[3], direction(views, corpus, "glass") + 2 * direction(views, corpus, "wine"), atol=1e-5
    )
    # In the topics alone, too, the letters about bottles are nearest to the leaf that has them.
    nearness = seen.text[:, beside] @ sums[:, beside].T
    assert nearness[4:6].argmax(axis=1).tolist() == [3, 3]
    assert nearness[2:4].argmax(axis=1).tolist() == [2, 2]
