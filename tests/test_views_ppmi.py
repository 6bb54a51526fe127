"""Spectral word vectors against the same thing done densely, and on corpora with next to nothing in them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from himecat.input.corpus import Ragged
from himecat.runtime import sparse as products
from himecat.runtime.threads import one_blas_thread, run_parallel
from himecat.views import ppmi
from himecat.views.ppmi import WordVectors, learn_words
from himecat.views.topics import learn_topics

N_WORDS, N_VALUES = 40, 6


def made_up(n: int = 150, seed: int = 0) -> tuple[list[list[int]], list[list[int]]]:
    """Documents of two subjects with common words, and a value or none each."""
    rng = np.random.default_rng(seed)
    documents, values = [], []
    for row in range(n):
        subject = row % 2
        own = rng.integers(subject * 15, subject * 15 + 15, size=rng.integers(3, 9))
        common = rng.integers(30, N_WORDS, size=4)
        documents.append([*own.tolist(), *common.tolist()])
        values.append([int(subject * 3 + rng.integers(3))] if row % 3 else [])
    return documents, values


def dense_information(
    documents: list[list[int]], values: list[list[int]], contexts: int
) -> npt.NDArray[np.float64]:
    """Every pair counted one by one."""
    frequency = np.array([sum(word in document for document in documents) for word in range(N_WORDS)])
    frequent = sorted(np.argsort(-frequency, kind="stable")[:contexts].tolist())
    often = [v for v in range(N_VALUES) if sum(v in one for one in values) >= 5]
    met = np.zeros((N_WORDS, len(frequent) + len(often)))
    for document, carried in zip(documents, values, strict=True):
        words = set(document)
        for word in words:
            for column, other in enumerate(frequent):
                met[word, column] += (other in words) / len(words)
            for column, value in enumerate(often):
                met[word, len(frequent) + column] += (value in carried) / np.sqrt(len(words))
    total = met.sum()
    flat = met.sum(axis=0) ** 0.75
    chance = np.outer(met.sum(axis=1) / total, flat / flat.sum())
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(met / total / chance), 0.0)


@pytest.mark.parametrize("contexts", [N_WORDS, 12])
@pytest.mark.parametrize("block", [2000, 7])
def test_it_is_the_singular_vectors_of_the_information(
    contexts: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppmi, "_BLOCK", block)
    documents, values = made_up()
    tokens, carried = Ragged.from_lists(documents), Ragged.from_lists(values)
    dimension = 5
    found = learn_words(tokens, N_WORDS, [(carried, N_VALUES)], dimension=dimension, contexts=contexts)
    left, spectrum, _ = np.linalg.svd(dense_information(documents, values, contexts))
    expected = left[:, :dimension] * spectrum[:dimension] ** 0.4
    lengths = np.linalg.norm(expected, axis=1)
    np.testing.assert_allclose(found.lengths, lengths, rtol=1e-2)
    # Signs are free; the cosines between words are not.
    units = expected / lengths[:, None]
    np.testing.assert_allclose(found.vectors @ found.vectors.T, units @ units.T, atol=1e-2)


def test_words_of_one_subject_are_near() -> None:
    documents, _ = made_up()
    vectors = learn_words(Ragged.from_lists(documents), N_WORDS, dimension=8).vectors
    cosines = vectors @ vectors.T
    assert cosines[:15, :15].mean() > cosines[:15, 15:30].mean() + 0.3


def test_metadata_values_are_contexts() -> None:
    """Words that never meet are near when the same people write them."""
    documents = [[row % 4] for row in range(80)]
    people = Ragged.from_lists([[row % 4 // 2] for row in range(80)])
    vectors = learn_words(Ragged.from_lists(documents), 4, [(people, 2)], dimension=2).vectors
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > cosines[0, 2] + 0.2


def test_a_value_of_few_documents_is_no_context() -> None:
    documents, _ = made_up()
    rare = Ragged.from_lists([[0] if row < 4 else [] for row in range(150)])
    tokens = Ragged.from_lists(documents)
    assert_same(
        learn_words(tokens, N_WORDS, [(rare, 1)], dimension=4), learn_words(tokens, N_WORDS, dimension=4)
    )


def assert_same(one: WordVectors, other: WordVectors) -> None:
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert one.lengths.tobytes() == other.lengths.tobytes()


def test_the_seed_decides_and_nothing_else() -> None:
    tokens = Ragged.from_lists(made_up()[0])
    assert_same(*(learn_words(tokens, N_WORDS, dimension=4, seed=3) for _ in range(2)))


@pytest.mark.parametrize(
    ("documents", "n_words"),
    [
        ([[0, 1, 2]], 3),
        ([[0]], 1),
        ([[0], [0, 0]], 1),
        ([[0], [1], [2]], 3),
        ([[], [], []], 2),
        ([[], [0, 1], []], 2),
        ([[0, 1], [0, 1]], 4),
    ],
    ids=[
        "one document",
        "one word",
        "one word twice",
        "nothing meets",
        "empty",
        "nearly empty",
        "words unused",
    ],
)
@pytest.mark.parametrize("dimension", [2, 300])
def test_tiny_corpora(documents: list[list[int]], n_words: int, dimension: int) -> None:
    found = learn_words(Ragged.from_lists(documents), n_words, dimension=dimension)
    assert found.vectors.dtype == found.lengths.dtype == np.float32
    assert found.vectors.shape[0] == len(found.lengths) == n_words
    assert found.vectors.shape[1] <= max(2, dimension)
    assert np.isfinite(found.vectors).all()
    assert np.isfinite(found.lengths).all()
    lengths = np.linalg.norm(found.vectors, axis=1)
    assert all(np.isclose(length, 1.0, atol=1e-5) or length == 0 for length in lengths)


def test_the_arrays_of_the_corpus_are_left_alone() -> None:
    """Repeated and unsorted words: a sparse matrix would put them in order in place."""
    tokens, others = Ragged.from_lists([[3, 1, 3, 0], [2, 2, 1]] * 5), Ragged.from_lists([[1, 0], [1, 1]] * 5)
    before = [array.copy() for ragged in (tokens, others) for array in (ragged.values, ragged.offsets)]
    learn_words(tokens, 4, [(others, 2)], dimension=2)
    after = [array for ragged in (tokens, others) for array in (ragged.values, ragged.offsets)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    counts = tokens.counts(4)
    assert counts[0].toarray().tolist() == [[1.0, 1.0, 0.0, 2.0]]


# -- the information, compiled and plain ---------------------------------------------------------------


def random_counts(seed: int, n: int = 60, n_words: int = 30, n_contexts: int = 20) -> tuple[Any, Any]:
    """Words and contexts of documents, some of them empty, with words and contexts that do not occur."""
    rng = np.random.default_rng(seed)
    words = (rng.random((n, n_words)) < 0.15) * rng.uniform(0.2, 1.0, size=(n, 1))
    beside = (rng.random((n, n_contexts)) < 0.2) * rng.uniform(0.2, 1.0, size=(n, n_contexts))
    words[:, 7] = beside[:, 3] = 0.0
    words[5] = beside[6] = 0.0
    return csr_matrix(words.astype(np.float32)), csr_matrix(beside.astype(np.float32))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "chosen",
    [list(range(30)), [4], [29, 7, 0, 7], [7], []],
    ids=["all words", "one word", "in any order", "a word that does not occur", "none"],
)
def test_the_compiled_ppmi_is_the_plain_one(
    seed: int, chosen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, beside = random_counts(seed)
    rows = np.array(chosen, dtype=np.int64)
    plain = ppmi._Ppmi(words, beside)
    monkeypatch.setattr(ppmi, "_WORTH_COMPILING", -1)
    fast = ppmi._Ppmi(words, beside)
    assert (plain._large, fast._large) == (False, True)
    expected, found = plain.block(rows), fast.block(rows)
    assert found.shape == expected.shape == (len(chosen), 20)
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-4, atol=1e-5)
    # Only what is above chance is kept.
    assert (found.data > 0).all()
    assert found.nnz > 0 or not set(chosen) - {7}


def test_the_ppmi_is_the_same_in_blocks_and_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    words, beside = random_counts(0)
    everything = np.arange(30)
    for threshold in (5_000_000, -1):
        monkeypatch.setattr(ppmi, "_WORTH_COMPILING", threshold)
        rows_of = ppmi._Ppmi(words, beside)
        whole = rows_of.block(everything).toarray()
        monkeypatch.setattr(ppmi, "_BLOCK", 7)
        for threads in (1, 2):
            found = rows_of.of(everything, partial(run_parallel, threads=threads)).toarray()
            assert found.tobytes() == whole.tobytes()


@pytest.mark.parametrize("compiled", [False, True])
def test_word_vectors_are_the_same_on_one_thread_and_two(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, values = made_up()
    others = [(Ragged.from_lists(values), N_VALUES)]
    monkeypatch.setattr(ppmi, "_BLOCK", 7)
    monkeypatch.setattr(ppmi, "_SPANNING", 25)

    def learn(**options: Any) -> WordVectors:
        with one_blas_thread():
            return learn_words(Ragged.from_lists(documents), N_WORDS, others, dimension=5, **options)

    plain = learn()
    if compiled:
        monkeypatch.setattr(ppmi, "_WORTH_COMPILING", -1)
        monkeypatch.setattr(products, "_WORTH_COMPILING", -1)
    found = learn()
    for threads in (1, 2):
        assert_same(learn(run=partial(run_parallel, threads=threads)), found)
    np.testing.assert_allclose(found.lengths, plain.lengths, rtol=1e-3)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, plain.vectors @ plain.vectors.T, atol=1e-3)


# -- rare words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("spanning", [12, 25, N_WORDS - 1, N_WORDS])
def test_rare_words_are_seen_in_the_space_of_the_others(
    spanning: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, values = made_up()
    monkeypatch.setattr(ppmi, "_SPANNING", spanning)
    monkeypatch.setattr(ppmi, "_BLOCK", 7)
    # Enough of them to part directions of nearly the same strength.
    monkeypatch.setattr(ppmi, "_POWER_ITERATIONS", 40)
    if compiled:
        monkeypatch.setattr(ppmi, "_WORTH_COMPILING", -1)
        monkeypatch.setattr(products, "_WORTH_COMPILING", -1)
    others = [(Ragged.from_lists(values), N_VALUES)]
    found = learn_words(Ragged.from_lists(documents), N_WORDS, others, dimension=5)
    information = dense_information(documents, values, N_WORDS)
    frequency = np.array([sum(word in document for document in documents) for word in range(N_WORDS)])
    often = np.argsort(-frequency, kind="stable")[:spanning]
    _, strength, right = np.linalg.svd(information[often])
    expected = information @ right[:5].T * strength[:5] ** (0.4 - 1)
    lengths = np.linalg.norm(expected, axis=1)
    np.testing.assert_allclose(found.lengths, lengths, rtol=1e-3, atol=1e-4)
    units = expected / lengths[:, None]
    np.testing.assert_allclose(found.vectors @ found.vectors.T, units @ units.T, atol=1e-3)


def test_where_all_words_are_frequent_there_is_nothing_to_project(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Ragged.from_lists(made_up()[0])
    full = learn_words(tokens, N_WORDS, dimension=5)
    monkeypatch.setattr(ppmi, "_SPANNING", N_WORDS)
    assert_same(learn_words(tokens, N_WORDS, dimension=5), full)


@pytest.mark.parametrize("spanning", [1, 2, 3, 5])
@pytest.mark.parametrize("dimension", [2, 300])
def test_a_space_spanned_by_next_to_no_words(
    spanning: int, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppmi, "_SPANNING", spanning)
    found = learn_words(Ragged.from_lists(made_up()[0]), N_WORDS, dimension=dimension)
    assert len(found.vectors) == len(found.lengths) == N_WORDS
    assert np.isfinite(found.vectors).all()
    assert np.isfinite(found.lengths).all()
    lengths = np.linalg.norm(found.vectors, axis=1)
    assert all(np.isclose(length, 1.0, atol=1e-5) or length == 0 for length in lengths)


@pytest.mark.parametrize("spanning", [4, 6])
def test_frequent_words_that_are_all_alike_leave_rare_words_their_size(
    spanning: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They span fewer directions than there are dimensions: the others say nothing."""
    documents = [[0, 1, 2, 3]] * 30 + [[4, 5, 0]] * 6 + [[6, 7, 1]] * 5 + [[8, 9]] * 4
    monkeypatch.setattr(ppmi, "_SPANNING", spanning)
    weights = learn_words(Ragged.from_lists(documents), 10, dimension=8).lengths
    assert weights.max() < 20 * weights[:4].max()


# -- topics --------------------------------------------------------------------------------------------


def weighted(documents: list[list[int]], n_words: int = N_WORDS) -> Any:
    rows = Ragged.from_lists(documents).counts(n_words).toarray()
    return csr_matrix(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def test_topics_are_the_right_singular_vectors() -> None:
    rows = weighted(made_up()[0])
    found = learn_topics(rows, 3)
    assert found.shape == (N_WORDS, 3)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-4)
    _, spectrum, right = np.linalg.svd(rows.toarray())
    # The two subjects stand out; what comes after them is noise that a few rounds do not part exactly.
    np.testing.assert_allclose(np.abs((found[:, :2] * right[:2].T).sum(axis=0)), 1.0, atol=1e-3)
    kept = np.linalg.norm(rows.toarray() @ found)
    assert kept == pytest.approx(np.linalg.norm(spectrum[:3]), rel=1e-2)


def test_words_of_one_subject_are_in_one_topic() -> None:
    found = learn_topics(weighted(made_up()[0]), 2)
    apart = found[:, 1]
    assert np.sign(apart[:15].mean()) == -np.sign(apart[15:30].mean())
    assert abs(apart[30:].mean()) < 0.2 * abs(apart[:15].mean())


def test_the_seed_decides_about_topics() -> None:
    rows = weighted(made_up()[0])
    first, second = (learn_topics(rows, 4, seed=3) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(
    ("documents", "n_words", "topics"),
    [
        ([[0, 1, 2]], 3, 0),
        ([[0], [0], [0]], 1, 0),
        ([[], [], []], 3, 0),
        ([], 3, 0),
        ([[0, 1], [1, 2]], 3, 1),
        ([[0, 1], [1, 2], [0], []], 3, 2),
    ],
    ids=["one document", "one word", "empty", "no documents", "two documents", "few words"],
)
def test_corpora_too_small_for_the_topics_asked_for(
    documents: list[list[int]], n_words: int, topics: int
) -> None:
    rows = csr_matrix(Ragged.from_lists(documents).counts(n_words), dtype=np.float32)
    found = learn_topics(rows, 100)
    assert found.shape == (n_words, topics)
    assert np.isfinite(found).all()
