"""How frequent each leaf is among the documents that nobody labelled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.classify.mixture import softmax

_ROUNDS = 50
# Mass spread evenly over the leaves, as a share of the documents' own: no leaf is impossible.
_EVEN_SHARE = 0.1


def log_frequencies(
    logits: npt.NDArray[np.floating], accuracy: float, labelled: float
) -> npt.NDArray[np.float32]:
    """Estimate the logarithms of the leaves' frequencies; their mean is 0.

    The logits are right for a collection in which all leaves are equally frequent. The frequencies under which
    the documents are most probable are found by expectation and maximisation, and then drawn together as far as
    they can be expected to vary by mistake.

    Parameters
    ----------
    logits : array
        Calibrated log-odds of the leaves, one row per unlabelled document.
    accuracy : float
        Share of held-out labelled documents that were placed right.
    labelled : float
        How many of those there are per leaf.

    Examples
    --------
    >>> sure = np.repeat(9 * np.eye(2), [300, 100], axis=0)
    >>> found = log_frequencies(sure, 0.99, 5)
    >>> bool(0.9 < found[0] - found[1] < np.log(3))
    True
    >>> bool(np.abs(log_frequencies(sure, 0.1, 5)).max() == 0)
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
    found = np.log(share) - np.log(share).mean()
    # What would vary by mistake if a leaf's frequency were read from its own held-out documents alone. It is read
    # from all documents: clearly more than this is believed nearly whole, no more than this not at all.
    noise = (1.0 - accuracy) / (max(labelled, 1e-9) * max(accuracy, 1e-9))
    kept = max(0.0, 1.0 - (noise / max(float(found.var()), 1e-12)) ** 2)
    return np.asarray(kept * found, dtype=np.float32)
