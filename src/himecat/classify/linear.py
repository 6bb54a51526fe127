"""Linear classifiers that learn from probable labels, each document judged by those that did not learn from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import diags, issparse

FloatArray = npt.NDArray[np.float32]

_ITERATIONS = 8


def ridge(rows: Any, targets: FloatArray, weights: FloatArray, penalty: float) -> FloatArray:
    """Weighted least squares with a penalty, for all categories at once.

    Dense rows are solved exactly, sparse ones by a few steps of conjugate gradients, whose early end is a
    penalty of its own.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    >>> found = ridge(rows, np.eye(2, dtype=np.float32), np.ones(2, np.float32), 0.1)
    >>> (rows @ found).argmax(axis=1).tolist()
    [0, 1]
    """
    total = float(weights.sum())
    centred = targets - (weights @ targets) / total
    if not issparse(rows):
        weighted = rows * weights[:, None]
        system = weighted.T @ rows + penalty * np.eye(rows.shape[1], dtype=np.float32)
        return np.asarray(np.linalg.solve(system, weighted.T @ centred), dtype=np.float32)
    across = (diags(weights) @ rows).T.tocsr()
    left = np.asarray(across @ centred, dtype=np.float32)
    found = np.zeros_like(left)
    step = left.copy()
    size = (left * left).sum(axis=0)
    for _ in range(_ITERATIONS):
        image = across @ (rows @ step) + np.float32(penalty) * step
        length = size / np.maximum((step * image).sum(axis=0), 1e-12)
        found += length * step
        left -= length * image
        smaller = (left * left).sum(axis=0)
        step = left + (smaller / np.maximum(size, 1e-12)) * step
        size = smaller
    return found


def cross_fit(
    rows: Any,
    targets: FloatArray,
    weights: FloatArray,
    parts: npt.NDArray[np.integer],
    penalty: float,
    check: Callable[[], None] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Score every document by classifiers that did not see its own probable label.

    Parameters
    ----------
    parts : array
        The part each document is in; -1 for those whose label is known, which every classifier learns from.

    Returns
    -------
    scores, mean
        The scores, and the mean of the classifiers' weights, which judges new documents.

    Examples
    --------
    >>> rows = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    >>> targets = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    >>> scores, _ = cross_fit(rows, targets, np.ones(8, np.float32), np.arange(8) % 2, 0.1)
    >>> scores.argmax(axis=1).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    n_parts = int(parts.max(initial=0)) + 1
    scores = np.zeros_like(targets)
    mean: FloatArray | None = None
    known = np.flatnonzero(parts < 0)
    for part in range(n_parts):
        if check is not None:
            check()
        away = np.flatnonzero(parts == part)
        # Where there is no other document, its own label is all there is to learn from.
        rest = np.flatnonzero(parts != part) if len(away) < len(parts) else away
        found = ridge(rows[rest], targets[rest], weights[rest], penalty)
        scores[away] = rows[away] @ found
        scores[known] += (rows[known] @ found) / np.float32(n_parts)
        mean = found if mean is None else mean + found
    assert mean is not None
    return scores, mean / np.float32(n_parts)
