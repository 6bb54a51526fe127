"""Calibration of the confidence that a user sees: that of the chosen path at each level, by Platt scaling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import node_probabilities
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.solvers import bisect_root, logit, minimize_lbfgs, sigmoid

FloatArray = npt.NDArray[np.float32]

IDENTITY = (1.0, 0.0)
"""Slope and offset of the log-odds of a level whose confidences are left as they are."""
_FEWEST = 20
# Strength of the Gaussian prior around the identity, in documents.
_PRIOR = 30.0
# Held-out documents are scored by models that know fewer labels than the final one, and so are wrong more often:
# this share of the fall in mean confidence is undone.
_UNDONE = 0.75
_EPSILON = 1e-6


def rescale_paths(
    taxonomy: Taxonomy, leaves: npt.NDArray[np.floating], levels: Sequence[tuple[float, float]]
) -> FloatArray:
    """Calibrate the nodes on each document's most probable path; the others share the rest as before.

    A node is never more probable than its parent, and the most probable path stays so at every step.

    Parameters
    ----------
    leaves : array
        Probability of every leaf, one row per document.
    levels : sequence of (float, float)
        Slope and offset of the log-odds of the confidence at each level.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",), ("c",)])
    >>> rescale_paths(tree, np.array([[0.8, 0.1, 0.1]]), [(0.5, 0.0)]).round(2).tolist()
    [[0.67..., 0.17..., 0.17...]]
    """
    before = np.asarray(leaves, dtype=np.float64)
    if not len(before):
        return before.astype(np.float32)
    chosen = before.argmax(axis=1)
    paths = taxonomy.lineage_rows(np.array(taxonomy.leaves)[chosen])
    at_node = node_probabilities(taxonomy, np.asarray(leaves, dtype=np.float32))
    above_before, above_after = np.ones(len(before)), np.ones(len(before))
    # Factors of the leaves that leave the most probable path after so many nodes, and at last of its own leaf.
    factors = np.ones((len(before), len(levels) + 1))
    for level, (slope, offset) in enumerate(levels):
        rows = np.flatnonzero(paths[:, level])
        nodes = paths[rows, level]
        own = at_node[rows, nodes].astype(np.float64)
        rest = np.maximum(above_before[rows] - own, 0.0)
        rival = _best_sibling(taxonomy, at_node, rows, nodes)
        room = above_after[rows]
        wanted = sigmoid(slope * _logit(own) + offset)
        # At this probability, the most probable sibling would be as probable.
        tie = np.where(own > rival, room * rival / np.maximum(rest + rival, 1e-300), 0.0)
        new = np.where(rest > _EPSILON * own, np.minimum(np.maximum(wanted, tie), room), room)
        grown = new / np.maximum(own, 1e-300)
        shrunk = np.where(rest > _EPSILON * own, (room - new) / np.maximum(rest, 1e-300), 0.0)
        factors[rows, level], factors[rows, level + 1] = shrunk, grown
        above_before[rows], above_after[rows] = own, new
    after = _factors_of_leaves(taxonomy, paths, factors)
    after *= before
    after /= after.sum(axis=1, keepdims=True)
    return _keep_argmax(before, after, chosen)


def _factors_of_leaves(
    taxonomy: Taxonomy, paths: npt.NDArray[np.int64], factors: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """For each document and leaf, the factor after as many nodes as the leaf's path shares with the document's."""
    # Depth first, the leaves that share a node lie together, and those that share the next one within them.
    starts = taxonomy.first_leaves[paths]
    ends = starts + taxonomy.leaf_counts[paths]
    for level in range(1, paths.shape[1]):
        # A path that has ended shares no further node.
        past = paths[:, level] == 0
        starts[past, level] = ends[past, level] = ends[past, level - 1]
    n = len(paths)
    limits = np.hstack([np.zeros((n, 1), int), starts, ends[:, ::-1], np.full((n, 1), taxonomy.n_leaves)])
    values = np.hstack([factors, factors[:, -2::-1]])
    ordered = np.repeat(values.ravel(), np.diff(limits, axis=1).ravel()).reshape(n, taxonomy.n_leaves)
    found = np.empty_like(ordered)
    found[:, taxonomy.depth_first] = ordered
    return found


def _keep_argmax(
    before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], chosen: npt.NDArray[np.int64]
) -> FloatArray:
    """Go from `before` towards `after` only as far as the chosen leaf stays the most probable."""
    all_rows = np.arange(len(before))
    # The margin to another leaf is linear along the way; half of it is kept.
    halved = after - before / 2
    moved = np.flatnonzero(halved.max(axis=1) > halved[all_rows, chosen])
    if len(moved):
        old, new, rows, stays = before[moved], after[moved], np.arange(len(moved)), chosen[moved]
        margin, later = (at[rows, stays][:, None] - at for at in (old, new))
        step = np.where(later < margin / 2, (margin / 2) / np.maximum(margin - later, 1e-300), 1.0)
        step[rows, stays] = 1.0
        after[moved] = old + step.min(axis=1)[:, None] * (new - old)
    return after.astype(np.float32)


def _best_sibling(
    taxonomy: Taxonomy,
    at_node: FloatArray,
    rows: npt.NDArray[np.int64],
    nodes: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """The probability of each node's most probable sibling; 0 where it has none."""
    found = np.zeros(len(rows))
    parents = taxonomy.parent_array[nodes]
    for parent in np.unique(parents).tolist():
        here = np.flatnonzero(parents == parent)
        children = np.array(taxonomy.children[parent], dtype=np.int64)
        among = at_node.T[np.ix_(children, rows[here])]
        among[np.searchsorted(children, nodes[here]), np.arange(len(here))] = 0.0
        found[here] = among.max(axis=0)
    return found


def fit_path_confidence(
    taxonomy: Taxonomy,
    leaves: npt.NDArray[np.floating],
    truth: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating],
) -> tuple[tuple[float, float], ...]:
    """Learn the slope and the offset of each level from held-out labelled documents.

    Parameters
    ----------
    leaves : array
        Probability of every leaf for each of them.
    truth : array
        Positions of their true leaves.
    weights : array
        How much each counts.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> mixed = np.repeat([[0.95, 0.05], [0.55, 0.45]], 200, axis=0)
    >>> truth = (np.arange(400) % 4 == 0).astype(int)
    >>> fit_path_confidence(tree, mixed, truth, np.ones(400))[0][0] < 0.5
    True
    """
    at_node = node_probabilities(taxonomy, np.asarray(leaves, dtype=np.float32))
    ends = np.array(taxonomy.leaves)
    given, known = (taxonomy.lineage_rows(ends[places]) for places in (leaves.argmax(axis=1), truth))
    found = []
    for chosen, true in zip(given.T, known.T, strict=True):
        rows = np.flatnonzero(chosen)
        confidence, right = at_node[rows, chosen[rows]], chosen[rows] == true[rows]
        found.append(_platt(*(one.astype(np.float64) for one in (confidence, right, weights[rows]))))
    return tuple(found)


def _platt(
    confidence: npt.NDArray[np.float64], right: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """Logistic regression of being right on the log-odds of the confidence."""
    if len(confidence) < _FEWEST:
        return IDENTITY
    odds, counted = _logit(confidence), weights * (len(weights) / weights.sum())

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        changed = point[0] * odds + point[1]
        away = point - np.array(IDENTITY)
        total = (counted * (np.logaddexp(0.0, changed) - right * changed)).sum() + _PRIOR * (away @ away) / 2
        residual = counted * (sigmoid(changed) - right)
        return float(total), np.array([residual @ odds, residual.sum()]) + _PRIOR * away

    slope, offset = minimize_lbfgs(loss, IDENTITY)
    # The order of the documents by confidence stays.
    slope = float(np.clip(slope, 0.05, 5.0))
    learned = float((counted * sigmoid(slope * odds + offset)).sum())
    wanted = _UNDONE * float((counted * confidence).sum()) + (1 - _UNDONE) * learned

    def excess(shift: float) -> float:
        return float((counted * sigmoid(slope * odds + shift)).sum()) - wanted

    return slope, bisect_root(excess, -100.0, 100.0)


def _logit(share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return logit(np.clip(share, _EPSILON, 1.0 - _EPSILON))
