"""The topics of a document: latent semantic analysis, a truncated singular value decomposition of TF-IDF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.runtime.sparse import truncated_svd
from himecat.runtime.threads import Run, run_serial
from himecat.views.base import Batch, Phrase, State, View, phrase_counts, register_view
from himecat.views.matrices import FloatArray, check_shapes, tf_idf, weighted_sums

_POWER_ITERATIONS = 3


@register_view
@dataclass(frozen=True)
class TopicsView(View):
    """A document in the strongest topics of all documents, beside the directions of its words.

    Attributes
    ----------
    count : int
        How many topics; fewer where the corpus is too small for it.
    vectors : array of shape (words, topics), optional
        How much each word belongs to each topic.
    idf : array, optional
        Inverse document frequency of each word.
    """

    count: int = 100
    vectors: Any = None
    idf: Any = None

    name = "topics"
    weight = 0.5

    def learn(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> Self:
        """Factor documents x words."""
        features = tf_idf(batch.frequencies, batch.idf)
        return replace(self, vectors=learn_topics(features, self.count, seed=seed, run=run), idf=batch.idf)

    def see(self, batch: Batch) -> FloatArray | None:
        """Unit directions in the topics; None where there was nothing to factor."""
        if not self.vectors.size:
            return None
        return weighted_sums(batch.frequencies, self.idf, self.vectors, batch.n_batches)

    def see_phrases(self, phrases: Sequence[Phrase]) -> FloatArray | None:
        """Names and keywords as texts of their known words."""
        if not self.vectors.size:
            return None
        return weighted_sums(phrase_counts(phrases, len(self.vectors)), self.idf, self.vectors)

    def state(self) -> State:
        """The topics and the inverse document frequencies."""
        return {}, {"vectors": self.vectors, "idf": self.idf}

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The learned view again."""
        vectors, idf = arrays["vectors"], arrays["idf"]
        check_shapes({"topics/vectors": (vectors, (len(idf), vectors.shape[1]))})
        return cls(count=vectors.shape[1], vectors=vectors, idf=idf)


def learn_topics(features: Any, count: int, *, seed: int = 0, run: Run = run_serial) -> FloatArray:
    """Factor documents x words: how much each word belongs to each of the strongest topics.

    Parameters
    ----------
    features : sparse matrix
        TF-IDF of the documents, rows at length 1.
    count : int
        How many topics; fewer where the corpus is too small for it.

    Returns
    -------
    array of shape (words, topics)
        Without any topic where there is nothing to factor.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> rows = csr_matrix(np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]))
    >>> found = learn_topics(rows, 2)
    >>> found.shape, bool(abs(found[0] @ found[2]) < 0.01)
    ((4, 2), True)
    """
    kept = min(count, min(features.shape) - 1)
    if kept < 1 or features.nnz == 0:
        return np.zeros((features.shape[1], 0), dtype=np.float32)
    _, right = truncated_svd(features, kept, iterations=_POWER_ITERATIONS, seed=seed, run=run)
    return np.ascontiguousarray(right.T, dtype=np.float32)
