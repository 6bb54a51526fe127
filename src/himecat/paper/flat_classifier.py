"""What a flat classifier has to offer to stand at an inner node of the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Ragged

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TrainingSet:
    """Documents as word ids with the position of the child category each belongs to.

    The first `n_soft` of them, which are synthetic, have soft labels: a share `smoothing` is spread evenly.

    Examples
    --------
    >>> few = TrainingSet(Ragged.from_lists([[0, 1], [2]]), np.array([0, 1]), 2, n_soft=1, smoothing=0.5)
    >>> len(few), few.soft_targets(np.arange(2)).tolist()
    (2, [[0.75, 0.25], [0.0, 1.0]])
    """

    documents: Ragged
    targets: npt.NDArray[np.int64]
    n_classes: int
    n_soft: int = 0
    smoothing: float = 0.0

    def __len__(self) -> int:
        return len(self.targets)

    def soft_targets(self, rows: npt.NDArray[np.int64]) -> FloatArray:
        """The share of every child in the label of some documents."""
        shares = np.zeros((len(rows), self.n_classes), dtype=np.float32)
        shares[np.arange(len(rows)), self.targets[rows]] = 1.0
        if self.smoothing:
            soft = rows < self.n_soft
            shares[soft] = shares[soft] * (1.0 - self.smoothing) + self.smoothing / self.n_classes
        return shares


@runtime_checkable
class FlatClassifier(Protocol):
    """Chooses among the children of one node from the words of a document.

    `name` is what the model folder records; `state` and `from_state` carry the fitted classifier through it.
    Register a class with :func:`himecat.paper.registry.register_classifier` to use it by name.
    """

    name: str

    def fit(
        self,
        training: TrainingSet,
        words: FloatArray,
        *,
        seed: int,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        """Learn from documents; `words` holds one unit vector per word id; `advance` is called after each pass."""
        ...

    def predict_proba(self, documents: Ragged, words: FloatArray) -> FloatArray:
        """Probabilities over the children, one row per document, each row summing to 1."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The settings (JSON) and arrays that `from_state` rebuilds the classifier from."""
        ...

    @classmethod
    def from_state(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> FlatClassifier:
        """Rebuild a fitted classifier."""
        ...
