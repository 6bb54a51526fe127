"""The words of a document: the weighted sum of its word vectors, and TF-IDF features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.runtime.threads import Run, run_serial
from himecat.views.base import Batch, Phrase, State, View, phrase_counts, register_view
from himecat.views.first_words import Weights
from himecat.views.informative import informative_types
from himecat.views.matrices import FloatArray, check_shapes, tf_idf, weighted_sums
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
    first_words : tuple of float, optional
        How often each of the first words of a text counts; by default it is learned.
    """

    dimension: int = 300
    contexts: int = 4000
    weigh_words: bool = True
    metadata: Sequence[str] = ()
    vectors: Any = None
    weights: Any = None
    idf: Any = None
    first_words: Weights | None = None

    name = "words"

    def learn(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> Self:
        """Learn the vectors and weights of the words."""
        corpus = batch.corpus
        if self.vectors is not None:
            found = WordVectors(self.vectors, np.ones(len(self.vectors), dtype=np.float32))
        else:
            columns = {
                kind: (corpus.metadata[kind].values, len(corpus.metadata[kind].vocabulary))
                for kind in self.metadata
            }
            informative = informative_types(columns, tf_idf(batch.counts, batch.idf))
            found = learn_words(
                corpus.tokens,
                len(corpus.words),
                [columns[kind] for kind in informative],
                dimension=self.dimension,
                contexts=self.contexts,
                seed=seed,
                run=run,
            )
        weights = found.lengths * batch.idf if self.weigh_words else np.ones_like(batch.idf)
        return replace(
            self, vectors=found.vectors, weights=weights, idf=batch.idf, first_words=batch.first_words
        )

    def see(self, batch: Batch) -> FloatArray:
        """Unit directions of the texts."""
        return weighted_sums(batch.frequencies, self.weights, self.vectors, batch.n_batches)

    @property
    def n_features(self) -> int:
        """One for each word."""
        return len(self.idf)

    def features(self, batch: Batch) -> Any:
        """TF-IDF, rows at length 1."""
        return tf_idf(batch.frequencies, self.idf)

    def see_phrases(self, phrases: Sequence[Phrase]) -> FloatArray:
        """Names and keywords as texts of their known words."""
        return weighted_sums(phrase_counts(phrases, len(self.vectors)), self.weights, self.vectors)

    def state(self) -> State:
        """The vectors, weights and inverse document frequencies, and how often the first words count."""
        return {"first_words": list(self.first_words or ())}, {
            "vectors": self.vectors,
            "weights": self.weights,
            "idf": self.idf,
        }

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The learned view again."""
        vectors, weights, idf = arrays["vectors"], arrays["weights"], arrays["idf"]
        check_shapes({"words/weights": (weights, (len(vectors),)), "words/idf": (idf, (len(vectors),))})
        # Folders of format 7 and before do not have it.
        first = tuple(map(float, settings.get("first_words", ())))
        if not all(1.0 <= weight <= 1e6 for weight in first):
            raise ValueError("'first_words' holds what is no weight")
        return cls(dimension=vectors.shape[1], vectors=vectors, weights=weights, idf=idf, first_words=first)
