"""Word vectors in closed form: the spectrum of what occurs together more often than by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack, vstack
from sklearn.utils.extmath import randomized_svd

from himecat.corpus.columns import Ragged

FloatArray = npt.NDArray[np.float32]

# How steeply common contexts are discounted, as in negative sampling with counts to this power.
_CONTEXT_POWER = 0.75
# Share of each singular value that goes to the words: between the words' own spread (1) and none (0).
_SPECTRUM_POWER = 0.4
# Words per block of the co-occurrence matrix: what a block holds before most of it is dropped stays small.
_BLOCK = 2000
# A context seen fewer times than this says too little about the words around it.
_RAREST_CONTEXT = 5
_POWER_ITERATIONS = 4


@dataclass(frozen=True)
class SpectralWords:
    """A unit vector and a weight for every word; the weight is how much the word says about its document.

    Examples
    --------
    >>> found = SpectralWords(np.eye(2, dtype=np.float32), np.array([1.0, 0.5], dtype=np.float32))
    >>> found.vectors.shape
    (2, 2)
    """

    vectors: FloatArray
    weights: FloatArray


def occurrences(rows: Ragged, n_values: int) -> Any:
    """Documents x values as a sparse matrix of counts.

    Examples
    --------
    >>> occurrences(Ragged.from_lists([[1, 1], []]), 2).toarray().tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    ones = np.ones(len(rows.values), dtype=np.float32)
    # A copy: adding up duplicates moves indices about, and these are the corpus's own.
    found = csr_matrix((ones, rows.values, rows.offsets), shape=(len(rows), n_values), copy=True)
    found.sum_duplicates()
    return found


def learn_words(
    tokens: Ragged,
    n_words: int,
    others: Sequence[tuple[Ragged, int]] = (),
    *,
    dimension: int = 300,
    contexts: int = 4000,
    seed: int = 0,
) -> SpectralWords:
    """Factor the positive pointwise mutual information of words and their contexts.

    Two words get near vectors when they meet the same contexts. Contexts are the most frequent words and the
    metadata values of the documents.

    Parameters
    ----------
    tokens : Ragged
        Word ids of every document.
    n_words : int
        Size of the vocabulary.
    others : sequence of (Ragged, int)
        Further contexts: ids of metadata values per document, and how many there are.
    dimension : int
        Length of the vectors; less where the corpus is too small for it.
    contexts : int
        How many of the most frequent words serve as contexts.

    Examples
    --------
    >>> rows = Ragged.from_lists([[0, 1, 2], [0, 1], [3, 4, 5], [3, 4], [2, 0], [5, 3]])
    >>> found = learn_words(rows, 6, dimension=2)
    >>> cosines = found.vectors @ found.vectors.T
    >>> bool(cosines[0, 1] > 0.9 and cosines[0, 4] < 0.5)
    True
    """
    present = occurrences(tokens, n_words)
    present.data[:] = 1.0
    frequency = np.asarray(present.sum(axis=0)).ravel()
    sizes = np.asarray(present.sum(axis=1)).ravel()
    # A long document has many pairs of words: its root length keeps it from deciding alone.
    words = (diags(1.0 / np.sqrt(np.maximum(sizes, 1.0))) @ present).astype(np.float32).tocsr()
    frequent = np.sort(np.argsort(-frequency, kind="stable")[:contexts])
    parts = [words[:, frequent]]
    for rows, n_values in others:
        values = occurrences(rows, n_values)
        values.data[:] = 1.0
        often = np.flatnonzero(np.asarray(values.sum(axis=0)).ravel() >= _RAREST_CONTEXT)
        parts.append(values[:, often])
    beside = hstack(parts).tocsr().astype(np.float32)
    information = _information(words, beside)
    smaller = min(information.shape)
    if smaller <= 1 or information.nnz == 0:
        return _too_small(n_words, dimension)
    left, spectrum, _ = randomized_svd(
        information, min(dimension, smaller), n_iter=_POWER_ITERATIONS, random_state=seed
    )
    vectors = left * spectrum**_SPECTRUM_POWER
    lengths = np.linalg.norm(vectors, axis=1)
    units = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    return SpectralWords(np.ascontiguousarray(units, dtype=np.float32), lengths.astype(np.float32))


def learn_topics(features: Any, count: int, *, seed: int = 0) -> FloatArray | None:
    """Factor documents x words: how much each word belongs to each of the strongest topics.

    Parameters
    ----------
    features : sparse matrix
        Weighted words of the documents, rows at length 1.
    count : int
        How many topics; fewer where the corpus is too small for it.

    Returns
    -------
    array of shape (words, topics) or None
        None where there is nothing to factor.

    Examples
    --------
    >>> rows = csr_matrix(np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]))
    >>> found = learn_topics(rows, 2)
    >>> found.shape, bool(abs(found[0] @ found[2]) < 0.01)
    ((4, 2), True)
    """
    kept = min(count, min(features.shape) - 1)
    if kept < 1 or features.nnz == 0:
        return None
    _, _, right = randomized_svd(
        features.astype(np.float32), kept, n_iter=_POWER_ITERATIONS, random_state=seed
    )
    return np.ascontiguousarray(right.T, dtype=np.float32)


def _information(words: Any, beside: Any) -> Any:
    """How much oftener than by chance each word meets each context, in nats; nothing below chance."""
    of_word = words.T @ np.asarray(beside.sum(axis=1)).ravel()
    of_context = beside.T @ np.asarray(words.sum(axis=1)).ravel()
    total = float(of_word.sum())
    if total <= 0:
        return csr_matrix((words.shape[1], beside.shape[1]), dtype=np.float32)
    flattened = np.maximum(of_context, 1e-12) ** _CONTEXT_POWER
    log_context = np.log(flattened / flattened.sum() * total)
    log_word = np.log(np.maximum(of_word, 1e-12))
    by_word = words.T.tocsr()
    blocks = []
    for start in range(0, by_word.shape[0], _BLOCK):
        met = (by_word[start : start + _BLOCK] @ beside).tocoo()
        value = np.log(met.data * total) - log_word[met.row + start] - log_context[met.col]
        kept = value > 0
        blocks.append(
            csr_matrix(
                (value[kept].astype(np.float32), (met.row[kept], met.col[kept])),
                shape=(met.shape[0], beside.shape[1]),
            )
        )
    return vstack(blocks).tocsr()


def _too_small(n_words: int, dimension: int) -> SpectralWords:
    """A corpus in which nothing occurs together: every word has an axis of its own, as far as they go."""
    vectors = np.zeros((n_words, max(2, min(dimension, n_words))), dtype=np.float32)
    vectors[np.arange(n_words), np.arange(n_words) % vectors.shape[1]] = 1.0
    return SpectralWords(vectors, np.ones(n_words, dtype=np.float32))
