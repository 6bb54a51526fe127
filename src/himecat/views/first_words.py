"""How much more the first words of a text say than the others: a title does, a salutation does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.input.ragged import Ragged
from himecat.views.matrices import FloatArray, inverse_frequency, with_entries

WINDOW = 6
"""Words of a text that count alike; the next ones count less or more."""
# Windows that may count more than the rest of a text, and how much at most.
_WINDOWS, _LIMIT = 4, 4.0
# Documents that are looked at, and fewer than which say nothing.
_MOST, _FEWEST = 6_000, 100
# Pairs of windows in the rest of each text that the first ones are compared with.
_PAIRS = 8
# Standard errors by which the rest of a text must be shown to be about something.
_SURE = 3.0

Weights = tuple[float, ...]
"""How often each word of the first windows counts; nothing where all words count alike."""


def weights_of_first_words(tokens: Ragged, n_words: int, *, seed: int = 0) -> Weights:
    """How often the first words should count, learned from the texts alone.

    A window is taken to be a multiple of what its document is about, plus noise; that multiple shows in the covariance
    of windows, seen as vectors of idf. In the best linear estimate of what a document is about, a window weighs
    multiple / noise. The first windows are compared with pairs of windows that stand anywhere behind them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> about = rng.integers(5, size=(900, 1)) * 20
    >>> title, rest = about + rng.integers(20, size=(900, 6)), rng.integers(100, 900, size=(900, 60))
    >>> rest[:, ::4] = about + rng.integers(20, size=(900, 15))
    >>> first, *others = weights_of_first_words(Ragged.from_lists(np.hstack([title, rest]).tolist()), 900)
    >>> first > 2 > max(others)
    True
    >>> max(weights_of_first_words(Ragged.from_lists(np.hstack([rest, title]).tolist()), 900)) < 1.2
    True
    """
    beginning = _WINDOWS * WINDOW
    long = np.flatnonzero(tokens.lengths >= beginning + 2 * WINDOW)
    if len(long) < _FEWEST:
        return ()
    rng = np.random.default_rng([seed, 7])
    if len(long) > _MOST:
        long = np.sort(rng.choice(long, _MOST, replace=False))
    texts = tokens.take(long)
    documents = np.bincount(texts.counts(n_words).indices, minlength=n_words)
    idf = inverse_frequency(documents.astype(np.float64), len(long))
    pairs = []
    for _ in range(_PAIRS):
        one = beginning + _somewhere(texts.lengths - beginning - 2 * WINDOW, rng)
        other = one + WINDOW + _somewhere(texts.lengths - one - 2 * WINDOW, rng)
        pairs.append((_window(texts, one, idf), _window(texts, other, idf)))
    shared = float(np.mean([_covariance(*pair) for pair in pairs]))
    of_documents = np.mean([_products(*pair) for pair in pairs], axis=0)
    if shared <= _SURE * float(of_documents.std()) / len(long) ** 0.5:
        return ()
    rest = [window for pair in pairs for window in pair]
    noise = _mean_covariance(rest, rest) - shared
    found = []
    for number in range(_WINDOWS):
        window = _window(texts, np.full(len(long), number * WINDOW), idf)
        # That of the rest is 1.
        multiple = _mean_covariance([window] * len(rest), rest) / shared
        own_noise = _covariance(window, window) - multiple**2 * shared
        weight = multiple * noise / own_noise if own_noise > 0 else _LIMIT if multiple > 1 else 1.0
        found.append(float(np.clip(weight, 1.0, _LIMIT)))
    return tuple(found) if max(found) > 1.0 else ()


def weights_of_all(tokens: Ragged, first_words: Weights) -> FloatArray:
    """How often each word of each text counts.

    Examples
    --------
    >>> weights_of_all(Ragged.from_lists([[5], range(14)]), (3.0, 2.0)).tolist()
    [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    """
    found = np.ones(len(tokens.values), dtype=np.float32)
    for place, weight in enumerate(np.repeat(np.array(first_words, dtype=np.float32), WINDOW)):
        found[tokens.offsets[:-1][tokens.lengths > place] + place] = weight
    return found


class _Window(NamedTuple):
    """A few words of each text as rows of idf, and the mean of the rows."""

    rows: Any
    mean: npt.NDArray[np.float64]


def _somewhere(room: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return (rng.random(len(room)) * (room + 1)).astype(np.int64)


def _window(texts: Ragged, starts: npt.NDArray[np.int64], idf: FloatArray) -> _Window:
    words = texts.values[(texts.offsets[:-1] + starts)[:, None] + np.arange(WINDOW)]
    present = Ragged(words.ravel(), np.arange(len(words) + 1) * WINDOW).counts(len(idf), binary=True)
    rows = with_entries(present, idf[present.indices])
    return _Window(rows, np.asarray(rows.mean(axis=0), dtype=np.float64).ravel())


def _products(one: _Window, other: _Window) -> npt.NDArray[np.float64]:
    return np.asarray(one.rows.multiply(other.rows).sum(axis=1), dtype=np.float64).ravel()


def _covariance(one: _Window, other: _Window) -> float:
    """The mean product of two windows of the same text, less that of windows of any two."""
    return float(_products(one, other).mean() - one.mean @ other.mean)


def _mean_covariance(some: Sequence[_Window], others: Sequence[_Window]) -> float:
    return float(np.mean([_covariance(one, other) for one, other in zip(some, others, strict=True)]))
