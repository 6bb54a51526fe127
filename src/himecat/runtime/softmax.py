"""Probabilities from scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def softmax(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Probabilities from scores, row by row.

    Examples
    --------
    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    return np.asarray(softmax_in_place(scores.copy()), dtype=np.float32)


def softmax_in_place(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What `softmax` gives, written over the scores: documents x leaves are large.

    Examples
    --------
    >>> scores = np.array([[0.0, 0.0]], dtype=np.float32)
    >>> softmax_in_place(scores) is scores, scores.tolist()
    (True, [[0.5, 0.5]])
    """
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
