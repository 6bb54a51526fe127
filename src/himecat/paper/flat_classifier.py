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

    Examples
    --------
    >>> few = TrainingSet(Ragged.from_lists([[0, 1], [2]]), np.array([0, 1]), 2)
    >>> len(few)
    2
    """

    documents: Ragged
    targets: npt.NDArray[np.int64]
    n_classes: int

    def __len__(self) -> int:
        return len(self.targets)


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
