"""Word vectors in closed form: positive pointwise mutual information (PPMI) of words and contexts, factored.

Skip-gram with negative sampling approximates a factorisation of such a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack, vstack

from himecat.input.corpus import Ragged
from himecat.runtime.sparse import is_large, product, truncated_svd
from himecat.runtime.threads import Run, run_serial
from himecat.views.matrices import FloatArray

# Counts of contexts are raised to this power, as those of negative samples are.
_CONTEXT_POWER = 0.75
# Singular values are raised to this power: between the words' own spread (1) and none (0).
_SPECTRUM_POWER = 0.4
# Words per block of the PPMI matrix: a block is dense before its negative entries are dropped.
_BLOCK = 2000
# Metadata values of fewer documents are no contexts.
_RAREST_CONTEXT = 5
_POWER_ITERATIONS = 3
# Co-occurrences below which loading a compiled loop would take longer than it saves.
_WORTH_COMPILING = 5_000_000
# The most frequent words, whose rows are factored; the others are projected.
_SPANNING = 10_000


class WordVectors(NamedTuple):
    """Unit vectors of words, and the length that each had before: large for words with particular contexts."""

    vectors: FloatArray
    lengths: FloatArray


def learn_words(
    tokens: Ragged,
    n_words: int,
    others: Sequence[tuple[Ragged, int]] = (),
    *,
    dimension: int = 300,
    contexts: int = 4000,
    seed: int = 0,
    run: Run = run_serial,
) -> WordVectors:
    """Factor the positive pointwise mutual information of words and their contexts.

    Words with the same contexts get similar vectors. Contexts are the most frequent words and the
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
    present = tokens.counts(n_words, binary=True)
    frequency = np.asarray(present.sum(axis=0)).ravel()
    sizes = np.asarray(present.sum(axis=1)).ravel()
    # A long document has many pairs of words: it counts by the root of its length.
    words = (diags(1.0 / np.sqrt(np.maximum(sizes, 1.0))) @ present).tocsr().astype(np.float32, copy=False)
    del present
    frequent = np.sort(np.argsort(-frequency, kind="stable")[:contexts])
    parts = [words[:, frequent]]
    for rows, n_values in others:
        values = rows.counts(n_values, binary=True)
        often = np.flatnonzero(np.asarray(values.sum(axis=0)).ravel() >= _RAREST_CONTEXT)
        parts.append(values[:, often])
    context = hstack(parts).tocsr().astype(np.float32)
    ppmi = _Ppmi(words, context)
    del words, parts, context
    # The rows of the frequent words are factored; those of the others are projected on the result.
    often = np.sort(np.argsort(-frequency, kind="stable")[:_SPANNING])
    spanning = ppmi.of(often, run)
    smaller = min(spanning.shape)
    if smaller <= 1 or spanning.nnz == 0:
        return _too_small(n_words, dimension)
    strength, right = truncated_svd(
        spanning, min(dimension, smaller), iterations=_POWER_ITERATIONS, seed=seed, run=run
    )
    # A singular value near zero would scale its vector up to noise.
    there = strength > 1e-3 * strength[0]
    scale = np.where(there, np.where(there, strength, 1.0) ** (_SPECTRUM_POWER - 1), 0.0)
    axes = np.ascontiguousarray((right * scale[:, None]).T, dtype=np.float32)
    large = is_large(spanning, axes.shape[1], 2 * _POWER_ITERATIONS)
    vectors = np.zeros((n_words, axes.shape[1]), dtype=np.float32)
    vectors[often] = product(spanning, axes, run, large=large)
    del spanning
    rare = np.setdiff1d(np.arange(n_words), often)
    starts = range(0, len(rare), _BLOCK)

    def projected(start: int) -> Callable[[], FloatArray]:
        return lambda: product(ppmi.block(rare[start : start + _BLOCK]), axes, large=large)

    for start, part in zip(starts, run([projected(start) for start in starts]), strict=True):
        vectors[rare[start : start + _BLOCK]] = part
    lengths = np.linalg.norm(vectors, axis=1)
    units = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    return WordVectors(np.ascontiguousarray(units, dtype=np.float32), lengths.astype(np.float32))


def preload_kernels(present: Any) -> None:
    """Load the compiled loops that `learn_words` will need for these documents x words, while it starts.

    Examples
    --------
    >>> preload_kernels(csr_matrix((2, 3), dtype=np.float32))
    """
    if float(np.square(np.diff(present.indptr), dtype=np.float64).sum()) > _WORTH_COMPILING:
        import himecat.kernels.sparse_products
        import himecat.kernels.spectral  # noqa: F401


class _Ppmi:
    """Rows of the PPMI matrix, computed in blocks of words."""

    def __init__(self, words: Any, context: Any) -> None:
        of_context = context.T @ np.asarray(words.sum(axis=1)).ravel()
        flattened = np.maximum(of_context, 1e-12) ** _CONTEXT_POWER
        of_word = words.T @ np.asarray(context.sum(axis=1)).ravel()
        self._log_word = np.log(np.maximum(of_word, 1e-12)).astype(np.float32)
        # The total number of co-occurrences is in both logarithms and cancels.
        self._log_context = np.log(flattened / flattened.sum()).astype(np.float32)
        self._by_word = words.T.tocsr()
        self._context = context
        # Upper bounds of the co-occurrences of each word.
        self._most = (self._by_word != 0) @ np.diff(context.indptr).astype(np.int64)
        self._large = int(self._most.sum()) > _WORTH_COMPILING

    def block(self, chosen: npt.NDArray[np.int64]) -> Any:
        """The rows of a few words."""
        if self._large:
            from himecat.kernels.spectral import cooccurrence_rows

            documents, sides = self._by_word, self._context
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
        met = (self._by_word[chosen] @ self._context).tocsr()
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
        return vstack(blocks).tocsr() if blocks else csr_matrix((0, self._context.shape[1]), dtype=np.float32)


def _too_small(n_words: int, dimension: int) -> WordVectors:
    """Where nothing co-occurs, every word gets an axis of its own, as far as they go."""
    vectors = np.zeros((n_words, max(2, min(dimension, n_words))), dtype=np.float32)
    vectors[np.arange(n_words), np.arange(n_words) % vectors.shape[1]] = 1.0
    return WordVectors(vectors, np.ones(n_words, dtype=np.float32))
