"""Vectors of a text encoder with flat logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._checks import require_above_zero
from himecat.compare.systems._flat import predict_leaves
from himecat.compare.systems.system import NodeArray, System, Task
from himecat.errors import UsageError
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.encoder_cache import COLUMN


@dataclass(frozen=True)
class EncoderLogistic(System):
    """Vectors of a text encoder with flat logistic regression; see `encoder_logistic`.

    The vectors are those of the text alone: metadata at the end of a text would lie beyond what most encoders read.

    Examples
    --------
    >>> EncoderLogistic().c
    10.0
    """

    name = "encoder-lr"
    title = "Encoder + LR"
    about = "A pretrained sentence encoder, one flat logistic regression over the leaves."
    vectors = True
    requires = ("sentence_transformers",)

    c: float = 10.0

    def __post_init__(self) -> None:
        require_above_zero(self, "c")

    def place(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        return encoder_logistic(task.corpus.columns.get(COLUMN), task.supervision, task.taxonomy, c=self.c)


def encoder_logistic(
    vectors: npt.NDArray[np.float32] | None, supervision: Supervision, taxonomy: Taxonomy, *, c: float = 10.0
) -> NodeArray:
    """Place every document on a leaf by multinomial logistic regression on its vector.

    Parameters
    ----------
    vectors : array
        One row per document, from a text encoder; brought to unit length here.
    supervision : Supervision
        The labelled documents; those labelled with an inner node are not used.
    taxonomy : Taxonomy
        The tree.
    c : float
        Inverse strength of the penalty.

    Returns
    -------
    array of int
        The leaf of every document, as a node of the tree.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("sport",), ("politics",)])
    >>> vectors = np.array([[1, 0], [0, 1], [0.9, 0.2], [0.1, 1]], dtype=np.float32)
    >>> encoder_logistic(vectors, Supervision(np.array([0, 1]), np.array([1, 2])), tree).tolist()
    [1, 2, 1, 2]
    """
    from sklearn.linear_model import LogisticRegression

    if vectors is None:
        raise UsageError("The documents were read without a text encoder: name one to get their vectors.")
    if vectors.ndim != 2:
        raise UsageError(f"vectors must have one row per document, not the shape {vectors.shape}.")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1.0)
    return predict_leaves(unit, supervision, taxonomy, LogisticRegression(C=c, max_iter=1000))
