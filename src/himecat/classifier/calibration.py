"""Probabilities that mean what they say, learned from labelled documents that were held out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import node_probabilities
from himecat.classifier.mixture import softmax
from himecat.classifier.path_confidence import learn_levels, settle
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.solvers import minimize_lbfgs, sigmoid

FloatArray = npt.NDArray[np.float32]

# Where too few documents can be held out: the sharpness that suits most collections.
TYPICAL_SHARPNESS = 0.4
_FEWEST = 20
# How many documents' worth of belief the typical values have.
_BELIEF = 5.0
# Strength of the belief that no leaf is favoured: as that of one document in a leaf's own log-odds.
_FAIRNESS = 1.0
# As a logit: one choice in a hundred.
_USUAL_SLIPS = -4.6
# No exponent is tried whose logarithm is larger.
_STEEPEST = 10.0
# A level at which the choices are believed as they are.
AS_IT_IS = (1.0, 0.0)


@dataclass(frozen=True)
class Calibration:
    """How sharp scores are, and how far the choices at each level of the tree are to be believed.

    Attributes
    ----------
    sharpness : float
        Scores are multiplied by this.
    levels : tuple of (float, float)
        For each level the exponent of the choice among siblings (below 1 it was too sure of itself) and the
        share of documents for which it is no better than chance.
    bias : tuple of float
        What is then added to the scores of each leaf, so that none is favoured; empty for nothing.
    surest : tuple of (float, float)
        For each level the slope and offset of the confidence of the likeliest path; empty for no change.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> Calibration(1.0, (AS_IT_IS, AS_IT_IS)).probabilities(tree, np.zeros((1, 3))).round(2).tolist()
    [[0.33..., 0.33..., 0.33...]]
    """

    sharpness: float
    levels: tuple[tuple[float, float], ...]
    bias: tuple[float, ...] = ()
    surest: tuple[tuple[float, float], ...] = ()

    def logits(self, scores: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """The scores, sharpened and with no leaf favoured."""
        scaled = scores * np.float32(self.sharpness)
        return scaled + np.array(self.bias, dtype=np.float32) if self.bias else scaled

    def probabilities(self, taxonomy: Taxonomy, scores: npt.NDArray[np.floating]) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        leaves = self._believed(taxonomy, softmax(self.logits(scores)))
        return settle(taxonomy, leaves, self.surest) if self.surest else leaves

    def _believed(self, taxonomy: Taxonomy, leaves: FloatArray) -> FloatArray:
        if all(level == AS_IT_IS for level in self.levels):
            return leaves
        # A node after the other, as they lie in memory.
        at_node = node_probabilities(taxonomy, leaves).T
        found = np.ones(at_node.shape)
        for node in taxonomy.inner:
            children = list(taxonomy.children[node])
            exponent, slips = self.levels[taxonomy.depths[node]]
            choice = np.maximum(at_node[children], 1e-30, dtype=np.float64) ** exponent
            choice *= (1 - slips) / choice.sum(axis=0)
            choice += slips / len(children)
            choice *= found[node]
            found[children] = choice
        chosen = found[list(taxonomy.leaves)]
        chosen /= chosen.sum(axis=0)
        return np.ascontiguousarray(chosen.T, dtype=np.float32)


def calibrate(
    taxonomy: Taxonomy,
    scores: npt.NDArray[np.floating],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating] | None = None,
) -> Calibration:
    """Choose the sharpness, the biases and the exponents under which held-out labels are most probable.

    Parameters
    ----------
    scores : array
        Scores of held-out labelled documents, by models that did not know their labels.
    leaves : array
        Positions of their true leaves.
    weights : array, optional
        How much each counts.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> sure = np.array([[9.0, 0.0], [0.0, 9.0]] * 20)
    >>> wrong_half_the_time = np.arange(40) // 2 % 2
    >>> calibrate(tree, sure, wrong_half_the_time).sharpness < 0.2
    True
    """
    unchanged = (AS_IT_IS,) * max(1, taxonomy.depth)
    if len(leaves) < _FEWEST:
        return Calibration(TYPICAL_SHARPNESS, unchanged)
    given = np.ones(len(leaves)) if weights is None else np.asarray(weights, dtype=np.float64)
    counted = given * (len(given) / float(given.sum()))
    exact = np.asarray(scores, dtype=np.float64)
    sharpness, _ = _sharpness(exact, leaves, counted, np.inf)
    # The biases fit the very documents that they are learned from, so what is said about sureness is learned
    # without them.
    sharper, bias = _sharpness(exact, leaves, counted, _FAIRNESS)
    bias = bias * (sharpness / sharper)
    at_node = node_probabilities(taxonomy, softmax(exact * sharpness)).astype(np.float64)
    levels = []
    for level in range(taxonomy.depth):
        choices = []
        for row, position in enumerate(leaves.tolist()):
            lineage = taxonomy.lineages[taxonomy.leaves[position]]
            if len(lineage) > level:
                siblings = taxonomy.children[taxonomy.parents[lineage[level]]]
                if len(siblings) > 1:
                    logs = np.log(np.maximum(at_node[row, list(siblings)], 1e-30))
                    choices.append((float(counted[row]), logs, siblings.index(lineage[level])))
        levels.append(_believed(choices) if len(choices) >= _FEWEST else AS_IT_IS)
    return Calibration(sharpness, tuple(levels), tuple(bias.tolist()))


def settle_surest(
    taxonomy: Taxonomy,
    found: Calibration,
    scores: npt.NDArray[np.floating],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating],
) -> Calibration:
    """Add what held-out documents say about the confidence of the likeliest path.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> scores = np.array([[3.0, 0.0], [0.0, 3.0]] * 20)
    >>> settle_surest(tree, Calibration(1.0, (AS_IT_IS,)), scores, np.tile([0, 1], 20), np.ones(40)).surest
    ((..., ...),)
    """
    fair = replace(found, bias=(), surest=())
    return replace(
        found, surest=learn_levels(taxonomy, fair.probabilities(taxonomy, scores), leaves, weights)
    )


def _sharpness(
    scores: npt.NDArray[np.float64],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.float64],
    fairness: float,
) -> tuple[float, npt.NDArray[np.float64]]:
    """The sharpness, and the bias of each leaf, under which the leaves are most probable.

    With infinite `fairness` there is no bias.
    """
    rows, n_leaves = np.arange(len(leaves)), scores.shape[1]
    # Of a leaf that none of them belongs to, nothing is known.
    seen = (np.bincount(leaves, minlength=n_leaves) > 0) & np.isfinite(fairness)
    belief = fairness if np.isfinite(fairness) else 0.0
    impossible = ~seen & (belief > 0)

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        sharpness, bias = np.exp(point[0]), point[1:]
        # Documents x leaves, with one place for every step.
        off = scores * sharpness
        off += bias
        off[:, impossible] = -1e30
        off -= off.max(axis=1, keepdims=True)
        chosen = off[rows, leaves]
        np.exp(off, out=off)
        sums = off.sum(axis=1)
        off *= (weights / sums)[:, None]
        off[rows, leaves] -= weights
        away = point[0] - np.log(TYPICAL_SHARPNESS)
        logs = chosen - np.log(sums)
        total = -(weights * logs).sum() + (_BELIEF * away**2 + belief * (bias**2).sum()) / 2
        slope = np.concatenate(
            [[np.vdot(off, scores) * sharpness + _BELIEF * away], (off.sum(axis=0) + belief * bias) * seen]
        )
        return float(total), slope

    start = np.concatenate([[np.log(TYPICAL_SHARPNESS)], np.zeros(n_leaves)])
    found = minimize_lbfgs(loss, start, tolerance=1e-4)
    return float(np.exp(np.clip(found[0], -4.0, 5.0))), np.clip(found[1:], -5.0, 5.0)


def _believed(choices: list[tuple[float, npt.NDArray[np.float64], int]]) -> tuple[float, float]:
    """The exponent and the share of slips under which the choices made are most probable."""
    weights = np.array([weight for weight, _, _ in choices])
    counts = np.array([len(logs) for _, logs, _ in choices])
    chosen = np.array([logs[position] for _, logs, position in choices])
    # Choices among fewer siblings than the most are filled up with impossible ones.
    padded = np.full((len(choices), counts.max()), -np.inf)
    for row, (_, logs, _) in enumerate(choices):
        padded[row, : len(logs)] = logs
    finite, best = np.where(np.isfinite(padded), padded, 0.0), padded.max(axis=1)

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        exponent, slips = float(np.exp(min(point[0], _STEEPEST))), float(sigmoid(point[1]))
        away, beside = point[0], point[1] - _USUAL_SLIPS
        among = np.exp((padded - best[:, None]) * exponent)
        sums = among.sum(axis=1)
        right = np.exp((chosen - best) * exponent) / sums
        mixed = (1 - slips) * right + slips / counts
        total = _BELIEF * (away**2 + beside**2 / 9) / 2 - (weights * np.log(mixed)).sum()
        mean = (among * finite).sum(axis=1) / sums
        steeper = (1 - slips) * right * exponent * (chosen - mean) / mixed
        slipperier = slips * (1 - slips) * (1 / counts - right) / mixed
        slope = [
            _BELIEF * away - (weights * steeper).sum(),
            _BELIEF * beside / 9 - (weights * slipperier).sum(),
        ]
        return float(total), np.array(slope)

    found = minimize_lbfgs(loss, [0.0, _USUAL_SLIPS], tolerance=1e-4)
    return float(np.exp(np.clip(found[0], -2, 2))), float(sigmoid(found[1]))
