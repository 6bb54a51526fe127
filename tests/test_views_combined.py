"""Documents in their three views: those learned from, new ones, and ones with nothing in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from himecat import Corpus, read_corpus
from himecat.errors import UsageError
from himecat.views.base import Phrase, View
from himecat.views.combined import DocumentVectors, Views, learn_views
from himecat.views.encoder import EncoderView
from himecat.views.matrices import inverse_frequency, unit
from himecat.views.metadata import MetadataView
from himecat.views.text_encoder import TextEncoder
from himecat.views.topics import TopicsView
from himecat.views.words import WordsView


def documents(n: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    found = []
    for row in range(n):
        topic = "xyz"[row % 3]
        words = [f"{topic}{rng.integers(6)}" for _ in range(5)] + [f"any{rng.integers(9)}" for _ in range(3)]
        by = [f"{topic}-{rng.integers(2)}"] if row % 4 else []
        found.append({"text": " ".join(words), "by": by, "key": [f"k{row}"]})
    return found


def learn(
    corpus: Corpus,
    kinds: tuple[str, ...] = ("by", "key"),
    *more: View,
    topics: int = 0,
    **options: Any,
) -> tuple[Views, DocumentVectors]:
    words = WordsView(**({"dimension": 8, "contexts": 100, "metadata": kinds} | options))
    beside = [TopicsView(topics)] if topics else []
    return learn_views([words, *beside, *more, MetadataView(kinds)], corpus)


def direction(views: Views, *ids: int, weights: Any = None, text: str = "") -> np.ndarray:
    given = np.ones(len(ids)) if weights is None else weights
    one = Phrase(np.array(ids, dtype=np.int64), np.asarray(given, dtype=np.float32), text)
    return views.see_phrases([one])[0]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus(documents(), metadata=["by", "key"])


@pytest.fixture(scope="module")
def learned(corpus: Corpus) -> tuple[Views, DocumentVectors]:
    return learn(corpus)


def test_directions_are_units_and_topics_are_apart(learned: tuple[Views, DocumentVectors]) -> None:
    _, seen = learned
    for rows in (seen.text, seen.smoothed):
        assert rows.shape == (60, 8)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
        same = (np.arange(60) % 3)[:, None] == np.arange(60) % 3
        cosines = rows @ rows.T
        assert cosines[same].mean() > cosines[~same].mean() + 0.4


def test_metadata_draw_documents_together(learned: tuple[Views, DocumentVectors]) -> None:
    views, seen = learned
    assert views["metadata"].weights["by"] > 0
    assert views["metadata"].weights["key"] == 0
    same = (np.arange(60) % 3)[:, None] == np.arange(60) % 3
    assert (seen.smoothed @ seen.smoothed.T)[same].mean() > (seen.text @ seen.text.T)[same].mean()
    # Without a value there is nothing to be drawn towards.
    np.testing.assert_allclose(seen.smoothed[::4], seen.text[::4], atol=1e-6)


def test_a_text_is_seen_the_same_whether_learned_from_or_new(
    corpus: Corpus, learned: tuple[Views, DocumentVectors]
) -> None:
    views, seen = learned
    again = views.see(corpus)
    np.testing.assert_array_equal(again.text, seen.text)
    np.testing.assert_array_equal(again.features.toarray(), seen.features.toarray())
    # Its values count it in only if it is new: it was one of those that they were learned from.
    assert not np.array_equal(again.smoothed, seen.smoothed)
    one = views.see(corpus.take(np.array([7])))
    np.testing.assert_allclose(one.smoothed[0], again.smoothed[7], atol=1e-6)


def test_a_document_with_nothing_in_it_is_nowhere(
    corpus: Corpus, learned: tuple[Views, DocumentVectors]
) -> None:
    views, _ = learned
    new = read_corpus(
        [{"text": "unheard of", "key": []}, {"text": "unheard of", "by": "x-1"}], metadata=["by", "key"]
    )
    seen = views.see(
        new.aligned(corpus.words, {kind: corpus.metadata[kind].vocabulary for kind in ("by", "key")})
    )
    assert not seen.text.any()
    assert not seen.smoothed[0].any()
    # What is known of its author still is.
    assert np.linalg.norm(seen.smoothed[1]) == pytest.approx(1.0, abs=1e-5)
    assert seen.features[0].nnz == 0


def test_features_have_a_block_for_words_and_one_for_each_type(
    corpus: Corpus, learned: tuple[Views, DocumentVectors]
) -> None:
    views, seen = learned
    n_words, n_by = len(corpus.words), len(corpus.metadata["by"].vocabulary)
    # A key of each document is shared by no two, and so is no feature.
    assert seen.features.shape == (60, n_words + n_by)
    rows = seen.features.toarray()
    np.testing.assert_allclose(np.linalg.norm(rows[:, :n_words], axis=1), 1.0, atol=1e-5)
    expected = np.where(np.arange(60) % 4 > 0, 1.0, 0.0)
    np.testing.assert_allclose(np.linalg.norm(rows[:, n_words : n_words + n_by], axis=1), expected, atol=1e-5)
    assert len(views["metadata"].types["key"].idf) == 0


def test_rare_words_weigh_more_and_only_on_request(
    corpus: Corpus, learned: tuple[Views, DocumentVectors]
) -> None:
    frequency = inverse_frequency(np.array([1.0, 5.0, 60.0]), 60)
    assert frequency[0] > frequency[1] > frequency[2] == 1.0
    even, _ = learn(corpus, weigh_words=False)
    assert (even["words"].weights == 1).all()
    assert learned[0]["words"].weights.std() > 0


def test_words_learned_elsewhere_are_used(corpus: Corpus) -> None:
    given = unit(np.random.default_rng(0).normal(size=(len(corpus.words), 5)))
    views, seen = learn(corpus, vectors=given)
    assert views["words"].vectors is given
    assert seen.text.shape == (60, 5)


def as_text(corpus: Corpus, text: str) -> Corpus:
    return read_corpus([text]).aligned(
        corpus.words, {kind: one.vocabulary for kind, one in corpus.metadata.items()}
    )


def test_the_direction_of_words_is_that_of_a_text_of_them(
    corpus: Corpus, learned: tuple[Views, DocumentVectors]
) -> None:
    views, _ = learned
    ids = [corpus.words.index["x1"], corpus.words.index["x2"]]
    np.testing.assert_allclose(direction(views, *ids), views.see(as_text(corpus, "x1 x2")).text[0], atol=1e-5)
    assert not direction(views).any()


class Ones(TextEncoder):
    """Encodes every text as ones."""

    def __init__(self) -> None:
        super().__init__("ones", None, "0123abcd")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), 6), dtype=np.float32) * np.array([[bool(text)] for text in texts])


def test_an_encoder_is_a_part_of_its_own(corpus: Corpus) -> None:
    rng = np.random.default_rng(1)
    encoded = replace(corpus, columns={"encoder": rng.normal(size=(60, 6)).astype(np.float32)})
    before = encoded.columns["encoder"].copy()
    views, seen = learn(encoded, ("by", "key"), EncoderView())
    assert views.dimension == seen.text.shape[1] == 14
    np.testing.assert_allclose(np.linalg.norm(seen.text[:, :8], axis=1), np.sqrt(0.2), atol=1e-4)
    found = direction(views, 0)
    assert found[:8].any()
    assert not found[8:].any()
    with pytest.raises(UsageError, match="fitted with an encoder"):
        views.see(corpus)
    # The corpus keeps its column as it was.
    np.testing.assert_array_equal(encoded.columns["encoder"], before)


# -- topics beside the words ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_topics(corpus: Corpus) -> tuple[Views, DocumentVectors]:
    return learn(corpus, topics=4)


def test_topics_are_a_part_of_their_own(
    corpus: Corpus, with_topics: tuple[Views, DocumentVectors], learned: tuple[Views, DocumentVectors]
) -> None:
    views, seen = with_topics
    assert views["topics"].vectors.shape == (len(corpus.words), 4)
    assert views.dimension == seen.text.shape[1] == 12
    np.testing.assert_allclose(np.linalg.norm(seen.text, axis=1), 1.0, atol=1e-5)
    # The words come first, as they are without topics; the topics have half their length.
    parts = np.linalg.norm(seen.text[:, :8], axis=1), np.linalg.norm(seen.text[:, 8:], axis=1)
    np.testing.assert_allclose(parts[1] / parts[0], 0.5, atol=1e-4)
    np.testing.assert_allclose(unit(seen.text[:, :8]), learned[1].text, atol=1e-5)
    same = (np.arange(60) % 3)[:, None] == np.arange(60) % 3
    cosines = unit(seen.text[:, 8:]) @ unit(seen.text[:, 8:]).T
    assert cosines[same].mean() > cosines[~same].mean() + 0.4


def test_topics_are_seen_in_new_texts_as_in_those_learned_from(
    corpus: Corpus, with_topics: tuple[Views, DocumentVectors]
) -> None:
    views, seen = with_topics
    np.testing.assert_array_equal(views.see(corpus).text, seen.text)
    np.testing.assert_allclose(views.see(corpus.take(np.array([7]))).text[0], seen.text[7], atol=1e-5)
    assert not views.see(as_text(corpus, "unheard of")).text.any()


def test_words_have_a_direction_in_the_topics_too(
    corpus: Corpus, with_topics: tuple[Views, DocumentVectors]
) -> None:
    views, _ = with_topics
    ids = [corpus.words.index["x1"], corpus.words.index["x2"]]
    found = direction(views, *ids)
    np.testing.assert_allclose(found, views.see(as_text(corpus, "x1 x2")).text[0], atol=1e-5)
    assert np.linalg.norm(found[8:]) == pytest.approx(0.5 * np.linalg.norm(found[:8]), abs=1e-4)
    assert not direction(views).any()
    # Weights of the words count in both parts.
    heavy = direction(views, *ids, weights=[1.0, 0.0])
    np.testing.assert_allclose(heavy, direction(views, ids[0]), atol=1e-5)


def test_topics_stand_between_words_and_encoder(corpus: Corpus) -> None:
    rng = np.random.default_rng(1)
    encoded = replace(corpus, columns={"encoder": rng.normal(size=(60, 6)).astype(np.float32)})
    views, seen = learn(encoded, ("by", "key"), EncoderView(Ones()), topics=4)
    assert views.dimension == seen.text.shape[1] == 18
    lengths = [np.linalg.norm(seen.text[0, part]) for part in (slice(8), slice(8, 12), slice(12, 18))]
    np.testing.assert_allclose(np.array(lengths) / lengths[0], [1.0, 0.5, 2.0], atol=1e-4)
    found = direction(views, 0)
    assert found[8:12].any()
    assert not found[12:].any()
    assert direction(views, 0, text="fox")[12:].any()
    alone = direction(views, text="fox")
    assert not alone[:12].any()
    assert np.linalg.norm(alone) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("texts", [["red fox"], ["fox", "fox"], ["?", "!"], ["red fox", "?"]])
def test_corpora_too_small_for_topics(texts: list[str]) -> None:
    corpus = read_corpus(texts)
    views, seen = learn(corpus, (), topics=100)
    assert views.dimension == seen.text.shape[1]
    assert (views["topics"].vectors.size > 0) == ("topics" in views.centres)
    assert np.isfinite(seen.text).all()
    assert np.isfinite(views.see(corpus).text).all()


def test_one_document() -> None:
    corpus = read_corpus([{"text": "red fox", "by": "ann"}], metadata=["by"])
    views, seen = learn(corpus, ("by",))
    assert np.isfinite(seen.text).all()
    assert np.isfinite(seen.smoothed).all()
    assert np.isfinite(views.see(corpus).smoothed).all()


# -- several views ----------------------------------------------------------------------------------------


class Broken(View):
    name = "broken"

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def see(self, batch: Any) -> Any:
        return self.rows


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.zeros((3, 2)), "one row of finite numbers for each of 60 documents; it gave 3 x 2"),
        (np.zeros(60), "it gave 60 numbers"),
        (np.full((60, 2), np.nan), "not all of them finite"),
    ],
)
def test_rows_that_cannot_be_used_are_named(corpus: Corpus, rows: Any, said: str) -> None:
    with pytest.raises(UsageError, match=f"The view 'broken' must give .*{said}"):
        learn(corpus, ("by",), Broken(rows))


def test_two_views_of_one_name(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="two views of the name 'words'"):
        learn(corpus, ("by",), WordsView())


def test_without_a_view_that_smooths_there_is_nothing_to_draw_towards(corpus: Corpus) -> None:
    _, seen = learn_views([WordsView(dimension=8)], corpus)
    np.testing.assert_allclose(seen.smoothed, seen.text, atol=1e-6)
    assert seen.features.shape == (60, len(corpus.words))
