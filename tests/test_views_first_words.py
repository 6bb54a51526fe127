"""How much more the first words of a text count, and that every view counts them so."""

from __future__ import annotations

import numpy as np
import pytest

from himecat import HiMeCat, read_corpus
from himecat.input.corpus import Corpus
from himecat.input.ragged import Ragged
from himecat.methods import Default
from himecat.views.base import Batch
from himecat.views.combined import Views, learn_views
from himecat.views.first_words import WINDOW, Weights, weights_of_first_words
from himecat.views.metadata import MetadataView
from himecat.views.ngrams import NgramsView
from himecat.views.topics import TopicsView
from himecat.views.words import WordsView

N_WORDS, N_SUBJECTS, OWN = 1000, 5, 30
Words = np.ndarray


def subjects(n: int, rng: np.random.Generator) -> Words:
    return rng.integers(N_SUBJECTS, size=n)


def drawn(about: Words, length: int, share: float, rng: np.random.Generator) -> Words:
    """Words, of which a share belongs to the subject of their document and the rest to none."""
    own = about[:, None] * OWN + rng.integers(OWN, size=(len(about), length))
    other = rng.integers(N_SUBJECTS * OWN, N_WORDS, size=(len(about), length))
    return np.where(rng.random((len(about), length)) < share, own, other)


def weights(*parts: Words) -> Weights:
    return weights_of_first_words(Ragged.from_lists(np.hstack(parts).tolist()), N_WORDS)


def test_a_title_counts_more_the_more_it_says() -> None:
    rng = np.random.default_rng(0)
    about = subjects(2000, rng)
    text = drawn(about, 60, 0.3, rng)
    found = [weights(drawn(about, 2 * WINDOW, share, rng), text) for share in (0.45, 0.6, 0.9)]
    for one, least in zip(found, (1.1, 1.5, 2.0), strict=True):
        assert min(one[:2]) > least
        assert max(one[2:]) < 1.2
    assert found == sorted(found)
    assert max(weights(text), default=1.0) < 1.2


def test_what_says_less_than_the_rest_counts_as_much_as_it() -> None:
    rng = np.random.default_rng(0)
    about = subjects(2000, rng)
    text = drawn(about, 60, 0.3, rng)
    salutation = np.tile(np.arange(900, 900 + WINDOW), (2000, 1))
    for nothing in (salutation, drawn(about, WINDOW, 0.05, rng)):
        assert (weights(nothing, text) or (1.0,))[0] == 1.0


def test_where_the_rest_is_about_nothing_there_is_nothing_to_compare_with() -> None:
    rng = np.random.default_rng(0)
    about = subjects(500, rng)
    assert weights(drawn(about, 2 * WINDOW, 0.9, rng), drawn(about, 60, 0.0, rng)) == ()


def test_short_texts_and_few_texts_say_nothing() -> None:
    rng = np.random.default_rng(0)
    about = subjects(500, rng)
    title, text = drawn(about, 2 * WINDOW, 0.9, rng), drawn(about, 60, 0.3, rng)
    assert weights(title, text)
    assert weights(title[:90], text[:90]) == ()
    assert weights(title, text[:, : 4 * WINDOW - 1]) == ()
    assert weights_of_first_words(Ragged.from_lists([]), 0) == ()


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    about = subjects(400, rng)
    rows = np.hstack([drawn(about, 2 * WINDOW, 0.8, rng), drawn(about, 60, 0.3, rng)])
    return read_corpus([" ".join(f"w{word}" for word in row) for row in rows.tolist()])


def views_of(corpus: Corpus, first_words: Weights | None = None) -> Views:
    words = WordsView(dimension=20, contexts=500, first_words=first_words)
    return learn_views([words, TopicsView(10), NgramsView(), MetadataView()], corpus)[0]


def test_first_words_count_more_in_every_view(corpus: Corpus) -> None:
    views, plain = views_of(corpus), views_of(corpus, ())
    assert plain["words"].first_words == ()
    assert views["words"].first_words[0] > 1.5
    seen, before = views.see(corpus), plain.see(corpus)
    assert abs(seen.features - before.features).max() > 0.01
    assert abs(seen.apart - before.apart).max() > 0.01
    for name in ("words", "topics"):
        part = views.part(name)
        assert not np.allclose(seen.text[:, part], before.text[:, part], atol=1e-3)


def test_a_batch_counts_first_words_as_often_as_it_is_told() -> None:
    text = " ".join(["red", "red", "a", "b", "c", "d", "red", *"efghi", "red", "owl"])
    corpus = read_corpus([text, "owl"])
    names = list(corpus.words.names)
    counts = Batch(corpus, first_words=(2.5, 1.5)).counts.toarray()
    assert counts[0, names.index("red")] == 2.5 + 2.5 + 1.5 + 1.0
    assert counts[0, names.index("owl")] == 1.0
    assert counts[1, names.index("owl")] == 2.5


def test_documents_are_seen_alike_one_by_one_and_after_saving(corpus: Corpus) -> None:
    views = views_of(corpus)
    whole = views.see(corpus).smoothed
    alone = views.see(corpus.take(np.array([7]))).smoothed
    np.testing.assert_allclose(alone[0], whole[7], atol=1e-5)
    again = Views.from_state(*views.state())
    assert again["words"].first_words == views["words"].first_words
    np.testing.assert_array_equal(again.see(corpus).smoothed, whole)


def test_views_that_are_known_keep_what_they_learned(corpus: Corpus) -> None:
    views = views_of(corpus)
    chosen = [WordsView(dimension=20, contexts=500), TopicsView(10), NgramsView(), MetadataView()]
    known = {view.name: view for view in views.views if not view.smooths}
    # Too few documents to learn it from.
    again, _ = learn_views(chosen, corpus.take(np.arange(50)), known=known)
    assert again["words"].first_words == views["words"].first_words


def test_a_fit_says_how_often_they_count(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    names = corpus.words.names
    documents = [
        {"text": " ".join(names[word] for word in row)} for row in map(corpus.tokens.__getitem__, range(400))
    ]
    labels = [None] * 400
    for row in range(30):
        own = [int(name[1:]) for name in documents[row]["text"].split()]
        labels[row] = "abcde"[np.bincount([word // OWN for word in own], minlength=40)[:N_SUBJECTS].argmax()]
    HiMeCat(method=Default(dimension=20), threads=1, verbose=True).fit(documents, labels)
    assert "the first words of a text count" in capsys.readouterr().err
    HiMeCat(method=Default(dimension=20, first_words=False), threads=1, verbose=True).fit(documents, labels)
    assert "the first words" not in capsys.readouterr().err
