"""How much more the first words of a text say than the others: a title does, a salutation does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.input.ragged import Ragged
from himecat.views.matrices import FloatArray, inverse_frequency, with_entries

FIRST = 12
"""How many known words of a text are its first ones."""
# Documents that are looked at, and fewer than which say nothing.
_MOST, _FEWEST = 6_000, 100
# The first words never count more than this.
_LIMIT = 4.0


def weight_of_first_words(tokens: Ragged, n_words: int, *, seed: int = 0) -> float:
    """How often each of the first words should count, learned from the texts alone; 1 where they say no more.

    Three windows of a document are looked at, the first and two others at random, each as a vector of idf. A window
    is taken to be a multiple of what the document is about, plus noise; that multiple shows in the covariance of
    windows. In the best linear estimate of what a document is about, a window weighs multiple / noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> about = rng.integers(5, size=300)
    >>> titles, texts = about[:, None] * 20 + rng.integers(20, size=(300, 12)), rng.integers(900, size=(300, 40))
    >>> texts[:, ::9] = about[:, None] * 20 + rng.integers(20, size=(300, 5))
    >>> rows = Ragged.from_lists(np.hstack([titles, texts]).tolist())
    >>> weight_of_first_words(rows, 900)
    4.0
    >>> rows = Ragged.from_lists(np.hstack([texts, titles]).tolist())
    >>> weight_of_first_words(rows, 900)
    1.0
    """
    long = np.flatnonzero(tokens.lengths >= 3 * FIRST)
    if len(long) < _FEWEST:
        return 1.0
    rng = np.random.default_rng([seed, 7])
    if len(long) > _MOST:
        long = np.sort(rng.choice(long, _MOST, replace=False))
    texts = tokens.take(long)
    documents = np.bincount(texts.counts(n_words).indices, minlength=n_words)
    idf = inverse_frequency(documents.astype(np.float64), len(long))
    room = texts.lengths - 3 * FIRST
    second = FIRST + (rng.random(len(long)) * (room + 1)).astype(np.int64)
    third = (
        second + FIRST + (rng.random(len(long)) * (texts.lengths - second - 2 * FIRST + 1)).astype(np.int64)
    )
    first, *others = (_window(texts, start, idf) for start in (np.zeros_like(second), second, third))
    shared = _covariance(*others)
    if shared <= 0:
        return 1.0
    # The multiple of the other windows is 1, and that of the first is `of_first`.
    of_first = (_covariance(first, others[0]) + _covariance(first, others[1])) / (2 * shared)
    noise = (_covariance(others[0], others[0]) + _covariance(others[1], others[1])) / 2 - shared
    own_noise = _covariance(first, first) - of_first**2 * shared
    if own_noise <= 0:
        return _LIMIT if of_first > 1 else 1.0
    return float(np.clip(of_first * noise / own_noise, 1.0, _LIMIT))


class _Window(NamedTuple):
    """A few words of each text as rows of idf, and the mean of the rows."""

    rows: Any
    mean: npt.NDArray[np.float64]


def _window(texts: Ragged, starts: npt.NDArray[np.int64], idf: FloatArray) -> _Window:
    words = texts.values[(texts.offsets[:-1] + starts)[:, None] + np.arange(FIRST)]
    present = Ragged(words.ravel(), np.arange(len(words) + 1) * FIRST).counts(len(idf), binary=True)
    rows = with_entries(present, idf[present.indices])
    return _Window(rows, np.asarray(rows.mean(axis=0), dtype=np.float64).ravel())


def _covariance(one: _Window, other: _Window) -> float:
    """The mean product of two windows of the same text, less that of windows of any two."""
    return float(one.rows.multiply(other.rows).sum() / one.rows.shape[0] - one.mean @ other.mean)
