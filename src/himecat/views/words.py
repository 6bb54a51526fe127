"""The words of a document: the weighted sum of its word vectors, and TF-IDF features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Corpus
from himecat.runtime.threads import Run, run_serial
from himecat.views.base import Batch, Phrase, State, View, phrase_counts, register_view
from himecat.views.matrices import (
    FloatArray,
    check_shapes,
    document_frequency,
    inverse_frequency,
    scale_columns,
    unit_rows,
    weighted_sums,
)
from himecat.views.metadata import informative_types
from himecat.views.ppmi import WordVectors, learn_words


@register_view
@dataclass(frozen=True)
class WordsView(View):
    """A document as the weighted sum of its word vectors, and as TF-IDF features.

    Attributes
    ----------
    dimension, contexts : int
        Length of the vectors; how many frequent words are contexts.
    weigh_words : bool
        Whether words count by their idf and by the length of their vectors; otherwise all count the same.
    metadata : sequence of str
        Metadata types whose values may be contexts, if they are informative.
    vectors : array, optional
        Unit vectors of the words; given in advance, they are taken as they are.
    weights, idf : arrays
        Weight of each word in the direction, and inverse document frequency.
    """

    dimension: int = 300
    contexts: int = 4000
    weigh_words: bool = True
    metadata: Sequence[str] = ()
    vectors: FloatArray | None = None
    weights: FloatArray | None = None
    idf: FloatArray | None = None

    name = "words"

    def learn(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> Self:
        """Learn the vectors and weights of the words."""
        corpus = batch.corpus
        idf = inverse_frequency(document_frequency(batch.counts), len(corpus))
        if self.vectors is not None:
            found = WordVectors(self.vectors, np.ones(len(self.vectors), dtype=np.float32))
        else:
            columns = {
                kind: (corpus.metadata[kind].values, len(corpus.metadata[kind].vocabulary))
                for kind in self.metadata
            }
            informative = informative_types(columns, unit_rows(scale_columns(batch.counts, idf)))
            found = learn_words(
                corpus.tokens,
                len(corpus.words),
                [columns[kind] for kind in informative],
                dimension=self.dimension,
                contexts=self.contexts,
                seed=seed,
                run=run,
            )
        weights = found.lengths * idf if self.weigh_words else np.ones_like(idf)
        return replace(self, vectors=found.vectors, weights=weights, idf=idf)

    def see(self, batch: Batch) -> FloatArray:
        """Unit directions of the texts."""
        vectors, weights, _ = self._learned
        return weighted_sums(batch.frequencies, weights, vectors, batch.n_batches)

    @property
    def n_features(self) -> int:
        """One for each word."""
        return len(self._learned[2])

    def features(self, batch: Batch) -> Any:
        """TF-IDF, rows at length 1."""
        return unit_rows(scale_columns(batch.frequencies, self._learned[2]))

    def see_phrases(self, phrases: Sequence[Phrase]) -> FloatArray:
        """Names and keywords as texts of their known words."""
        vectors, weights, _ = self._learned
        return weighted_sums(phrase_counts(phrases, len(vectors)), weights, vectors)

    def explain(self, corpus: Corpus, row: int, direction: FloatArray) -> list[tuple[str, int, float]]:
        """Every word of a document with its cosine to the direction, times how much the word counts."""
        vectors, weights, _ = self._learned
        ids, counts = np.unique(corpus.tokens[row], return_counts=True)
        scores = (vectors[ids] @ direction) * (1.0 + np.log(counts))
        scores = scores * weights[ids] / max(float(weights.mean()), 1e-12)
        names = corpus.words.names
        return [
            (names[i], n, w) for i, n, w in zip(ids.tolist(), counts.tolist(), scores.tolist(), strict=True)
        ]

    def state(self) -> State:
        """The vectors, weights and inverse document frequencies."""
        vectors, weights, idf = self._learned
        return {}, {"vectors": vectors, "weights": weights, "idf": idf}

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The learned view again."""
        vectors, weights, idf = arrays["vectors"], arrays["weights"], arrays["idf"]
        check_shapes({"words/weights": (weights, (len(vectors),)), "words/idf": (idf, (len(vectors),))})
        return cls(dimension=vectors.shape[1], vectors=vectors, weights=weights, idf=idf)

    @property
    def _learned(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        assert self.vectors is not None
        assert self.weights is not None
        assert self.idf is not None
        return self.vectors, self.weights, self.idf
