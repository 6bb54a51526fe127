"""Character n-grams of a document's words: features that know `refund`, `refunds` and `refunded` for relatives.

They say most where texts are short. A corpus of long texts would have too many of them; it does without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.runtime.threads import Run, run_serial
from himecat.views.base import Batch, State, View, register_view
from himecat.views.matrices import FloatArray, inverse_frequency, tf_idf, with_entries

# Lengths of the n-grams, the blanks around a word included.
_SHORTEST, _LONGEST = 3, 5
# Only so many characters of a word are looked at.
_WORD = 40
MOST_ENTRIES = 8_000_000
"""Entries of documents x n-grams beyond which there are none."""
MOST_CELLS = 20_000_000
"""N-grams x leaves beyond which there are none."""


@register_view
@dataclass(frozen=True)
class NgramsView(View):
    """Character n-grams as features, without a part in the directions.

    Attributes
    ----------
    most : int
        With more different n-grams there are none either.
    idf : array
        Inverse document frequency of every n-gram of the vocabulary, in their order; 0 for those of one document,
        which say nothing. Empty where the documents have too many n-grams.
    """

    most: int = 1_000_000
    idf: Any = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    _spelled: list[Any] = field(default_factory=list, compare=False, repr=False)

    name = "ngrams"
    apart = True

    @property
    def n_features(self) -> int:
        """One for each n-gram."""
        return len(self.idf)

    def learn(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> Self:
        """Count in how many documents each n-gram occurs."""
        words = batch.corpus.words.names
        per_word = np.array([_count(word) for word in words], dtype=np.int64)
        if int(batch.corpus.tokens.totals(len(words)) @ per_word) > MOST_ENTRIES or not len(words):
            return self
        spelled = _matrix(words)
        if spelled.shape[1] > self.most:
            return self
        documents = np.bincount(self._counts(batch, spelled).indices, minlength=spelled.shape[1])
        idf = inverse_frequency(documents.astype(np.float64), len(batch))
        return replace(self, idf=np.where(documents > 1, idf, np.float32(0.0)))

    def see(self, batch: Batch) -> FloatArray | None:
        """Nothing: these are features only."""
        return None

    def features(self, batch: Batch) -> Any:
        """TF-IDF of the n-grams, rows at length 1; None where there are none."""
        if not len(self.idf):
            return None
        words = batch.corpus.words.names
        # The words of a model stay the same, batch after batch.
        known = [matrix for own, matrix in self._spelled if own is words]
        spelled = known[0] if known else _matrix(words)
        self._spelled[:] = [(words, spelled)]
        if spelled.shape[1] != len(self.idf):
            raise ValueError(f"'ngrams/idf' should hold {spelled.shape[1]} numbers, not {len(self.idf)}")
        counts = self._counts(batch, spelled)
        return tf_idf(with_entries(counts, 1.0 + np.log(counts.data)), self.idf)

    @staticmethod
    def _counts(batch: Batch, spelled: Any) -> Any:
        found = (batch.counts @ spelled).tocsr()
        found.sort_indices()
        return found

    def state(self) -> State:
        """The inverse document frequencies; the n-grams are those of the vocabulary."""
        return {}, {"idf": self.idf}

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The learned view again."""
        return cls(idf=arrays["idf"])


def ngrams_of(word: str) -> list[str]:
    """The n-grams of a word between blanks.

    Examples
    --------
    >>> ngrams_of("ox"), len(ngrams_of("refund"))
    ([' ox', 'ox ', ' ox '], 15)
    """
    padded = f" {word[:_WORD]} "
    return [
        padded[start : start + length]
        for length in range(_SHORTEST, _LONGEST + 1)
        for start in range(len(padded) - length + 1)
    ] or [padded]


def _count(word: str) -> int:
    length = min(len(word), _WORD) + 2
    return max(1, sum(max(0, length - size + 1) for size in range(_SHORTEST, _LONGEST + 1)))


def _matrix(words: Sequence[str]) -> Any:
    """Words x n-grams as a sparse matrix of counts; the n-grams in alphabetical order."""
    per_word = [ngrams_of(word) for word in words]
    column = {name: place for place, name in enumerate(sorted({one for own in per_word for one in own}))}
    indices = np.array([column[one] for own in per_word for one in own], dtype=np.int32)
    starts = np.cumsum([0, *(len(own) for own in per_word)])
    found = csr_matrix((np.ones(len(indices), np.float32), indices, starts), (len(words), len(column)))
    found.sum_duplicates()
    return found
