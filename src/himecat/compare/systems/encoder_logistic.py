"""Vectors of a text encoder with flat logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himecat.compare.systems.system import NodeArray, System, Task, parameter
from himecat.errors import UsageError
from himecat.views.encoder_cache import COLUMN


@dataclass(frozen=True)
class EncoderLogistic(System):
    """Vectors of a text encoder, scaled to unit length, with flat multinomial logistic regression.

    The vectors are those of the text alone: metadata at the end of a text would lie beyond what most encoders read.

    Attributes
    ----------
    c : float
        Inverse regularisation strength.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> vectors = np.array([[1, 0], [0, 1], [0.9, 0.2], [0.1, 1]], dtype=np.float32)
    >>> corpus = replace(read_corpus(["a", "b", "c", "d"]), columns={COLUMN: vectors})
    >>> few = Supervision(np.array([0, 1]), np.array([1, 2]))
    >>> EncoderLogistic().fit_predict(Task(corpus, Taxonomy.from_paths([("sport",), ("politics",)]), few)).tolist()
    [1, 2, 1, 2]
    """

    name = "encoder-lr"
    title = "Encoder + LR"
    about = "A pretrained sentence encoder, one flat logistic regression over the leaves."
    vectors = True

    c: float = parameter(10.0, above=0)

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        from sklearn.linear_model import LogisticRegression

        vectors = task.corpus.columns.get(COLUMN)
        if vectors is None:
            raise UsageError("The documents were read without a text encoder: name one to get their vectors.")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / np.where(lengths > 0, lengths, 1.0)
        return task.predict_flat(unit, LogisticRegression(C=self.c, max_iter=1000))
