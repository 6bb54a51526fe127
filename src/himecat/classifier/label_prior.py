"""The label prior: how frequent each leaf is among the unlabelled documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.classifier.mixture import softmax

_ROUNDS = 50
# Mass of a uniform prior, as a share of the documents' own: no leaf is impossible.
_UNIFORM_SHARE = 0.1
# Standard deviation on which the halves agree by mistake, as in collections whose leaves have the same size.
_BY_MISTAKE = 0.25


def estimate_log_prior(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Logarithms of the label prior under which the documents are most probable, by EM; their mean is 0.

    Parameters
    ----------
    logits : array
        Calibrated logits of the leaves under a uniform prior, one row per unlabelled document.

    Examples
    --------
    >>> found = estimate_log_prior(np.repeat(9 * np.eye(2), [300, 100], axis=0))
    >>> bool(0.9 < found[0] - found[1] < np.log(3))
    True
    """
    n, n_leaves = logits.shape
    if n == 0 or n_leaves < 2:
        return np.zeros(n_leaves, dtype=np.float32)
    odds = softmax(logits)
    share = np.full(n_leaves, 1.0 / n_leaves, dtype=np.float32)
    for _ in range(_ROUNDS):
        mass = share * ((1.0 / np.maximum(odds @ share, 1e-30)) @ odds) + _UNIFORM_SHARE * n / n_leaves
        share = (mass / mass.sum()).astype(np.float32)
    found = np.log(share)
    return np.asarray(found - found.mean(), dtype=np.float32)


def shrink_log_prior(
    found: npt.NDArray[np.float32], one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Shrink an estimated log-prior towards uniform, given the estimates from either half of the labels.

    If the errors of the two halves were independent, their covariance would be the true variance of the log-prior.
    They share some, for both see the same space and the same names: what is not clearly more than that is not believed.

    Parameters
    ----------
    found, one, other : arrays
        Log-priors with a mean of 0: estimated with all labels, and with each half of them.

    Examples
    --------
    >>> skew = np.array([0.9, 0.1, -1.0], dtype=np.float32)
    >>> (shrink_log_prior(skew, skew, skew) / skew).round(2).tolist()
    [0.8..., 0.8..., 0.8...]
    >>> bool(shrink_log_prior(skew, skew, -skew).any())
    False
    """
    if not found.any():
        return found
    share = float(np.mean(one * other)) / float(np.mean(found**2))
    agreed = np.clip(share, 0.0, 1.0) * found
    beyond = 1.0 - _BY_MISTAKE**2 / max(float(np.mean(agreed**2)), 1e-12)
    return np.asarray(max(beyond, 0.0) * agreed, dtype=np.float32)
