"""Linear classifiers that learn from probable labels, each document judged by those that did not learn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import diags, issparse

from himecat.products import FAST_WIDTH, Run, conjugate_gradients, is_large, one_by_one, product

FloatArray = npt.NDArray[np.float32]

_ITERATIONS = 8
# Loops loaded for one classifier serve the others of the same fit too, which are at least so many.
_CALLS = 6


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
    mean = (weights @ targets) / float(weights.sum())
    if not issparse(rows):
        centred = targets - mean
        weighted = rows * weights[:, None]
        system = weighted.T @ rows + penalty * np.eye(rows.shape[1], dtype=np.float32)
        return np.asarray(np.linalg.solve(system, weighted.T @ centred), dtype=np.float32)
    # A column without an entry needs no weight, and there are many: most metadata values are rare.
    used = np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]))
    narrow = rows if len(used) == rows.shape[1] else rows[:, used].tocsr()
    across = (diags(weights) @ narrow).T.tocsr().astype(np.float32)
    large = is_large(narrow, targets.shape[1], 2 * _ITERATIONS * _CALLS)
    found = np.zeros((rows.shape[1], targets.shape[1]), dtype=np.float32)
    # Columns do not depend on each other: a few at a time need little memory, however many leaves there are.
    for start in range(0, targets.shape[1], FAST_WIDTH):
        chosen = slice(start, start + FAST_WIDTH)
        width = targets[:, chosen].shape[1]
        # Columns of zeros fill the last ones up, and stay zeros.
        centred = np.zeros((len(targets), FAST_WIDTH if large else width), dtype=np.float32)
        np.subtract(targets[:, chosen], mean[chosen], out=centred[:, :width])
        target = product(across, centred, large=large)
        solved = conjugate_gradients(narrow, across, target, penalty, iterations=_ITERATIONS, large=large)
        found[used, chosen] = solved[:, :width]
    return found


def cross_fit(
    views: Sequence[Any],
    targets: FloatArray,
    weights: FloatArray,
    parts: npt.NDArray[np.integer],
    penalty: float,
    run: Run = one_by_one,
) -> list[tuple[FloatArray, FloatArray]]:
    """Score every document by classifiers that did not see its own probable label.

    Parameters
    ----------
    views : sequence
        The documents as rows of a dense or sparse matrix, once for each way to see them.
    parts : array
        The part each document is in; -1 for those whose label is known, which every classifier learns from.
    run : callable
        Runs the jobs, one for each view and part, and gives their results in order.

    Returns
    -------
    list of (scores, mean)
        For each view the scores, and the mean of the classifiers' weights, which judges new documents.

    Examples
    --------
    >>> rows = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    >>> targets = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    >>> [(scores, _)] = cross_fit([rows], targets, np.ones(8, np.float32), np.arange(8) % 2, 0.1)
    >>> scores.argmax(axis=1).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    n_parts = int(parts.max(initial=0)) + 1
    known = np.flatnonzero(parts < 0)
    away = [np.flatnonzero(parts == part) for part in range(n_parts)]

    def job_of(rows: Any, part: int) -> Callable[[], tuple[FloatArray, FloatArray, FloatArray]]:
        def job() -> tuple[FloatArray, FloatArray, FloatArray]:
            own = away[part]
            # Where there is no other document, its own label is all there is to learn from.
            rest = np.flatnonzero(parts != part) if len(own) < len(parts) else own
            found = ridge(rows[rest], targets[rest], weights[rest], penalty)
            return found, np.asarray(rows[own] @ found), np.asarray(rows[known] @ found)

        return job

    jobs = [job_of(rows, part) for rows in views for part in range(n_parts)]
    results: list[tuple[FloatArray, FloatArray]] = []
    # One result after the other, so that those of jobs run one by one need not be kept.
    done = iter(run(jobs))
    for number in range(len(jobs)):
        found, of_own, of_known = next(done)
        found /= np.float32(n_parts)
        part = number % n_parts
        if part == 0:
            results.append((np.zeros_like(targets), found))
        else:
            results[-1][1][:] += found
        # With many leaves the weights are the largest array of all.
        del found
        scores = results[-1][0]
        scores[away[part]] = of_own
        scores[known] += of_known / np.float32(n_parts)
    return results
