"""The label prior: how frequent each leaf is among the unlabelled documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.softmax import softmax

_ROUNDS = 50
# Leaves are as frequent as they should be once no logarithm is farther off.
_NEAR = 0.01
# No leaf is moved farther than this to balance the others.
_FARTHEST = 3.0
# Mass of a uniform prior, as a share of the documents' own: no leaf is impossible.
_UNIFORM_SHARE = 0.1
# The same for categories of the first level, which are known far better.
_SMALL = 0.01
# The least of leaves that such a category has, on average.
_LEAVES_PER_CATEGORY = 3
# Variance on which the halves agree by mistake, as in collections whose leaves have the same size.
_BY_MISTAKE = 0.25**2


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
    found: npt.NDArray[np.float32], halves: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Shrink an estimated log-prior towards uniform, given the estimates from either half of the labels.

    The estimate is the mean of that from all labels and of those from the halves. If the errors of the halves were
    independent, their covariance would be the true variance of the log-prior, and its share in the variance of the
    estimate the best factor (Wiener filter). They share some, for both see the same space and the same names: the less
    the covariance is above what they agree on by mistake, the less is believed.

    Parameters
    ----------
    found : array
        Log-prior with a mean of 0, estimated with all labels.
    halves : array of shape (splits, 2, leaves)
        The same, estimated with each half of the labels.

    Examples
    --------
    >>> skew = np.array([0.9, 0.1, -1.0], dtype=np.float32)
    >>> (shrink_log_prior(skew, np.array([[skew, skew]])) / skew).round(2).tolist()
    [0.99..., 0.99..., 0.99...]
    >>> bool(shrink_log_prior(skew, np.array([[skew, -skew]])).any())
    False
    """
    if not found.any():
        return found
    mean = (found + halves.mean(axis=(0, 1))) / 2
    agreed = max(_covariance(halves), _BY_MISTAKE)
    believed = (1.0 - (_BY_MISTAKE / agreed) ** 2) * min(1.0, agreed / max(float(np.mean(mean**2)), 1e-12))
    return np.asarray(believed * mean, dtype=np.float32)


def first_level(taxonomy: Taxonomy) -> npt.NDArray[np.int64] | None:
    """For each leaf the number of its category of the first level; leaves of that level are one category together.

    None where the tree is nearly flat: the categories would be hardly better known than the leaves.

    Examples
    --------
    >>> paths = [(a, a + b) for a in "ab" for b in "xyz"]
    >>> first_level(Taxonomy.from_paths(paths)).tolist()
    [0, 0, 0, 1, 1, 1]
    >>> first_level(Taxonomy.from_paths([("a",), ("b",), ("c",)])) is None
    True
    """
    found = np.zeros(taxonomy.n_leaves, dtype=np.int64)
    for number, node in enumerate((one for one in taxonomy.children[0] if taxonomy.children[one]), start=1):
        found[taxonomy.positions_under(node)] = number
    _, found = np.unique(found, return_inverse=True)
    n_groups = int(found.max(initial=0)) + 1
    return found if 1 < n_groups <= taxonomy.n_leaves / _LEAVES_PER_CATEGORY else None


def refine_log_prior(
    log_prior: npt.NDArray[np.float32],
    probabilities: npt.NDArray[np.floating],
    groups: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """The label prior with other shares for groups of leaves, those under which documents are most probable, by EM.

    Parameters
    ----------
    log_prior : array
        Logarithms of the label prior that the probabilities come from; within a group it keeps its proportions.
    probabilities : array
        Probabilities of the leaves, one row per unlabelled document.
    groups : array
        The group of each leaf.

    Examples
    --------
    >>> sure = np.repeat(0.98 * np.eye(4) + 0.005, [30, 10, 10, 10], axis=0)
    >>> softmax(refine_log_prior(np.zeros(4, np.float32), sure, np.array([0, 0, 1, 1]))[None])[0].round(2).tolist()
    [0.33..., 0.33..., 0.17..., 0.17...]
    """
    n_groups = int(groups.max()) + 1
    member = np.eye(n_groups)[groups]
    before = softmax(log_prior[None].astype(np.float64))[0] @ member
    odds = probabilities @ member / before
    share = before
    for _ in range(_ROUNDS if len(odds) else 0):
        share = share * ((1.0 / np.maximum(odds @ share, 1e-30)) @ odds) / len(odds) + _SMALL / n_groups
        share = share / share.sum()
    found = log_prior + np.log(share / before)[groups]
    return np.asarray(found - found.mean(), dtype=np.float32)


def evenness(halves: npt.NDArray[np.float32]) -> float:
    """How far the leaves can be taken for equally frequent, given the estimates from either half of the labels.

    1 where the halves agree on no more than they would by mistake, 0 where they agree on twice as much.

    Examples
    --------
    >>> skew = np.array([0.9, 0.1, -1.0], dtype=np.float32)
    >>> evenness(np.array([[skew, skew]])), evenness(np.array([[0.1 * skew, 0.1 * skew]]))
    (0.0, 1.0)
    """
    return float(np.clip(2.0 - _covariance(halves) / _BY_MISTAKE, 0.0, 1.0))


def _covariance(halves: npt.NDArray[np.float32]) -> float:
    """What the halves of a split agree on: the mean product of their log-priors."""
    return float(np.mean(halves[:, 0] * halves[:, 1]))


def balance(logits: npt.NDArray[np.floating], log_prior: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """What to add at each leaf so that the mean probabilities of the documents are the label prior (Sinkhorn).

    Examples
    --------
    >>> logits = np.array([[3.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.5, 0.0]])
    >>> added = balance(logits, np.zeros(2))
    >>> softmax(logits + added).mean(axis=0).round(3).tolist()
    [0.5, 0.5]
    """
    wanted = softmax(log_prior[None].astype(np.float64))[0]
    added = np.zeros(len(wanted))
    for _ in range(_ROUNDS if len(logits) else 0):
        step = np.log(wanted / np.maximum(softmax(logits + added).mean(axis=0), 1e-12))
        added += step
        if np.abs(step).max() < _NEAR:
            break
    return np.asarray(np.clip(added - added.mean(), -_FARTHEST, _FARTHEST), dtype=np.float64)
