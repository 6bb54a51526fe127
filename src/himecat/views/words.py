"""Word vectors in closed form: the spectrum of what occurs together more often than by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack, vstack

from himecat.input.corpus import Ragged
from himecat.runtime.sparse import is_large, product, truncated_svd
from himecat.runtime.threads import Run, run_serial

FloatArray = npt.NDArray[np.float32]

# How steeply common contexts are discounted, as in negative sampling with counts to this power.
_CONTEXT_POWER = 0.75
# Share of each singular value that goes to the words: between the words' own spread (1) and none (0).
_SPECTRUM_POWER = 0.4
# Words per block of the co-occurrence matrix: what a block holds before most of it is dropped stays small.
_BLOCK = 2000
# A context seen fewer times than this says too little about the words around it.
_RAREST_CONTEXT = 5
_POWER_ITERATIONS = 3
# Meetings of words and contexts below which loading a compiled loop would take longer than it saves.
_WORTH_COMPILING = 5_000_000
# So many of the most frequent words span the space.
_SPANNING = 10_000


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
    run: Run = run_serial,
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
    run : callable
        Runs jobs that do not depend on each other, and returns their results in order.

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
    information = _Information(words, beside)
    # The frequent words span the space; the others, most of all words, are then seen in it.
    often = np.sort(np.argsort(-frequency, kind="stable")[:_SPANNING])
    spanning = information.of(often, run)
    smaller = min(spanning.shape)
    if smaller <= 1 or spanning.nnz == 0:
        return _too_small(n_words, dimension)
    strength, right = truncated_svd(
        spanning, min(dimension, smaller), iterations=_POWER_ITERATIONS, seed=seed, run=run
    )
    # A direction without strength would be scaled up to noise.
    there = strength > 1e-3 * strength[0]
    scale = np.where(there, np.where(there, strength, 1.0) ** (_SPECTRUM_POWER - 1), 0.0)
    axes = np.ascontiguousarray((right * scale[:, None]).T, dtype=np.float32)
    large = is_large(spanning, axes.shape[1], 2 * _POWER_ITERATIONS)
    vectors = np.zeros((n_words, axes.shape[1]), dtype=np.float32)
    vectors[often] = product(spanning, axes, run, large=large)
    del spanning
    seldom = np.setdiff1d(np.arange(n_words), often)
    starts = range(0, len(seldom), _BLOCK)

    def projected(start: int) -> Callable[[], FloatArray]:
        return lambda: product(information.block(seldom[start : start + _BLOCK]), axes, large=large)

    for start, part in zip(starts, run([projected(start) for start in starts]), strict=True):
        vectors[seldom[start : start + _BLOCK]] = part
    lengths = np.linalg.norm(vectors, axis=1)
    units = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    return SpectralWords(np.ascontiguousarray(units, dtype=np.float32), lengths.astype(np.float32))


def load_loops(present: Any) -> None:
    """Load the compiled loops that `learn_words` will want for these documents x words.

    Called on a thread beside one that works, it costs no time.

    Examples
    --------
    >>> load_loops(csr_matrix((2, 3), dtype=np.float32))
    """
    if float(np.square(np.diff(present.indptr), dtype=np.float64).sum()) > _WORTH_COMPILING:
        import himecat.kernels.sparse_products
        import himecat.kernels.spectral  # noqa: F401


def learn_topics(features: Any, count: int, *, seed: int = 0, run: Run = run_serial) -> FloatArray | None:
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
    _, right = truncated_svd(features, kept, iterations=_POWER_ITERATIONS, seed=seed, run=run)
    return np.ascontiguousarray(right.T, dtype=np.float32)


class _Information:
    """How much oftener than by chance each word meets each context, in nats; nothing below chance."""

    def __init__(self, words: Any, beside: Any) -> None:
        of_context = beside.T @ np.asarray(words.sum(axis=1)).ravel()
        flattened = np.maximum(of_context, 1e-12) ** _CONTEXT_POWER
        of_word = words.T @ np.asarray(beside.sum(axis=1)).ravel()
        self._log_word = np.log(np.maximum(of_word, 1e-12)).astype(np.float32)
        # The total number of meetings is in both logarithms and drops out.
        self._log_context = np.log(flattened / flattened.sum()).astype(np.float32)
        self._by_word = words.T.tocsr()
        self._beside = beside
        # How often a word meets contexts at most, and all words together.
        self._most = (self._by_word != 0) @ np.diff(beside.indptr).astype(np.int64)
        self._large = int(self._most.sum()) > _WORTH_COMPILING

    def block(self, chosen: npt.NDArray[np.int64]) -> Any:
        """The rows of a few words."""
        if self._large:
            from himecat.kernels.spectral import cooccurrence_rows

            documents, sides = self._by_word, self._beside
            indptr, indices, values = cooccurrence_rows(
                chosen,
                documents.indptr,
                documents.indices,
                documents.data,
                sides.indptr,
                sides.indices,
                sides.data,
                self._log_word,
                self._log_context,
                int(np.minimum(self._most[chosen], sides.shape[1]).sum()),
            )
            return csr_matrix((values, indices, indptr), shape=(len(chosen), sides.shape[1]))
        met = (self._by_word[chosen] @ self._beside).tocsr()
        row = np.repeat(np.arange(len(chosen)), np.diff(met.indptr))
        value = np.log(met.data) - self._log_word[chosen][row] - self._log_context[met.indices]
        kept = value > 0
        counts = np.bincount(row[kept], minlength=len(chosen))
        return csr_matrix(
            (value[kept], met.indices[kept], np.concatenate([[0], np.cumsum(counts)])), shape=met.shape
        )

    def of(self, chosen: npt.NDArray[np.int64], run: Run) -> Any:
        """The rows of many words."""
        starts = range(0, len(chosen), _BLOCK)

        def block(start: int) -> Callable[[], Any]:
            return lambda: self.block(chosen[start : start + _BLOCK])

        blocks = list(run([block(start) for start in starts]))
        return vstack(blocks).tocsr() if blocks else csr_matrix((0, self._beside.shape[1]), dtype=np.float32)


def _too_small(n_words: int, dimension: int) -> SpectralWords:
    """A corpus in which nothing occurs together: every word has an axis of its own, as far as they go."""
    vectors = np.zeros((n_words, max(2, min(dimension, n_words))), dtype=np.float32)
    vectors[np.arange(n_words), np.arange(n_words) % vectors.shape[1]] = 1.0
    return SpectralWords(vectors, np.ones(n_words, dtype=np.float32))
