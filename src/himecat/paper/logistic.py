"""The plainest flat classifier, not of the paper: logistic regression on the mean of a document's word vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Ragged
from himecat.paper.flat_classifier import FloatArray, TrainingSet
from himecat.runtime.softmax import softmax


def mean_vectors(documents: Ragged, words: FloatArray) -> FloatArray:
    """Unit-length mean of the word vectors of every document; zero where a document has no words.

    Examples
    --------
    >>> mean_vectors(Ragged.from_lists([[0, 0], []]), np.eye(2, dtype=np.float32)).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    sums = documents.sums_of(words)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


class MeanLogistic:
    """Logistic regression on mean word vectors: trains in seconds.

    Parameters
    ----------
    c : float
        Inverse strength of the penalty.

    Examples
    --------
    >>> words = np.eye(4, dtype=np.float32)
    >>> flat = MeanLogistic()
    >>> flat.fit(TrainingSet(Ragged.from_lists([[0, 1], [2, 3]]), np.array([0, 1]), 2), words, seed=0)
    >>> flat.predict_proba(Ragged.from_lists([[1], []]), words).argmax(axis=1).tolist()
    [0, 0]
    """

    name = "mean-logistic"

    def __init__(self, c: float = 10.0) -> None:
        self.c = c
        self.weights = np.zeros((0, 0), dtype=np.float32)
        self.bias = np.zeros(0, dtype=np.float32)

    @property
    def n_classes(self) -> int:
        """Number of children to choose among."""
        return len(self.bias)

    def fit(
        self,
        training: TrainingSet,
        words: FloatArray,
        *,
        seed: int,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        """Fit on documents; the solver is deterministic, the seed is not needed."""
        seen = np.unique(training.targets)
        self.weights = np.zeros((words.shape[1], training.n_classes), dtype=np.float32)
        # A child without a single training document keeps a score that never wins, unless there is no other.
        self.bias = np.full(training.n_classes, -1e9, dtype=np.float32)
        self.bias[seen] = 0.0
        if len(seen) > 1:
            self._solve(mean_vectors(training.documents, words), training.targets)
        if advance is not None:
            advance(1)

    def _solve(self, vectors: FloatArray, targets: npt.NDArray[np.int64]) -> None:
        from sklearn.linear_model import LogisticRegression

        found = LogisticRegression(C=self.c, max_iter=500).fit(vectors, targets)
        if len(found.classes_) == 2:
            high = found.classes_[1]
            self.weights[:, high], self.bias[high] = found.coef_[0], found.intercept_[0]
        else:
            self.weights[:, found.classes_], self.bias[found.classes_] = found.coef_.T, found.intercept_

    def predict_proba(self, documents: Ragged, words: FloatArray) -> FloatArray:
        """Probabilities over the children; a document without known words gets equal ones."""
        scores = mean_vectors(documents, words) @ self.weights + self.bias
        found = softmax(scores)
        found[documents.lengths == 0] = 1.0 / len(self.bias)
        return found

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Settings and weights."""
        return {"c": self.c}, {"weights": self.weights, "bias": self.bias}

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> MeanLogistic:
        """Rebuild from settings and weights."""
        flat = cls(**settings)
        flat.weights, flat.bias = arrays["weights"], arrays["bias"]
        return flat
