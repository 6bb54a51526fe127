"""How frequent each leaf is among the documents that nobody labelled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.classifier.mixture import softmax

_ROUNDS = 50
# Mass spread evenly over the leaves, as a share of the documents' own: no leaf is impossible.
_EVEN_SHARE = 0.1


def log_frequencies(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Logarithms of the frequencies under which the documents are most probable; their mean is 0.

    Parameters
    ----------
    logits : array
        Calibrated log-odds of the leaves, one row per unlabelled document, right for a collection in which all
        leaves are equally frequent.

    Examples
    --------
    >>> sure = np.repeat(9 * np.eye(2), [300, 100], axis=0)
    >>> found = log_frequencies(sure)
    >>> bool(0.9 < found[0] - found[1] < np.log(3))
    True
    """
    n, n_leaves = logits.shape
    if n == 0 or n_leaves < 2:
        return np.zeros(n_leaves, dtype=np.float32)
    odds = softmax(logits)
    share = np.full(n_leaves, 1.0 / n_leaves, dtype=np.float32)
    for _ in range(_ROUNDS):
        # Each document's odds times the frequencies, scaled to a sum of 1 and added up.
        mass = share * ((1.0 / np.maximum(odds @ share, 1e-30)) @ odds) + _EVEN_SHARE * n / n_leaves
        share = (mass / mass.sum()).astype(np.float32)
    found = np.log(share)
    return np.asarray(found - found.mean(), dtype=np.float32)


def believed(
    found: npt.NDArray[np.float32], one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """What is to be believed of estimated log-frequencies, given those from either half of the labels.

    Mistakes of the two halves come from different documents. What they have in common is how far the leaves
    truly vary; the estimate varies more, and is drawn together to that.

    Parameters
    ----------
    found, one, other : arrays
        Log-frequencies with a mean of 0: estimated with all labels, and with each half of them.

    Examples
    --------
    >>> skew = np.array([0.9, 0.1, -1.0], dtype=np.float32)
    >>> bool(np.allclose(believed(skew, skew, skew), skew))
    True
    >>> bool(believed(skew, skew, -skew).any())
    False
    """
    if not found.any():
        return found
    share = float(np.mean(one * other)) / float(np.mean(found**2))
    return np.asarray(np.clip(share, 0.0, 1.0) * found, dtype=np.float32)
