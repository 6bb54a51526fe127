"""Calibration: scores become probabilities, by what cross-validation says about labelled documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import node_probabilities
from himecat.classifier.path_confidence import fit_path_confidence, rescale_paths
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.softmax import softmax
from himecat.runtime.solvers import minimize_lbfgs, sigmoid

FloatArray = npt.NDArray[np.float32]

DEFAULT_INVERSE_TEMPERATURE = 0.8
"""Where too few documents can be held out; also the mean of the prior elsewhere."""
IDENTITY = (1.0, 0.0)
"""A level of the tree without calibration: exponent 1, no noise."""
# With fewer held-out documents nothing is fitted.
_FEWEST = 20
# Strength of the Gaussian prior on inverse temperature, exponents and noise, in documents.
_PRIOR = 5.0
# That of the prior on the biases of the leaves.
_BIAS_PRIOR = 1.0
# Prior mean of the noise as a logit: one choice in a hundred.
_NOISE_PRIOR_MEAN = -4.6
# No exponent is tried whose logarithm is larger.
_MAX_LOG_EXPONENT = 10.0


@dataclass(frozen=True)
class Calibration:
    """Temperature and bias of the scores, calibration of the choices at each level and of the chosen path.

    Attributes
    ----------
    inverse_temperature : float
        Scores are multiplied by this.
    levels : tuple of (float, float)
        For each level the exponent of the choice among siblings (below 1: it was overconfident) and the share of
        documents for which it is uniform noise.
    bias : tuple of float
        What is added to the scaled scores of each leaf; empty for nothing.
    paths : tuple of (float, float)
        For each level slope and offset of the confidence of the chosen path (Platt scaling); empty for none.
    mixture : tuple of tuple of float
        What cross-validation said of the mixture: its inverse temperature and how even the leaves are, the bias of
        each leaf, and the logarithms of the label prior. A fit after a change of the tree can go on from it; older
        models do not have it.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> Calibration(1.0, (IDENTITY, IDENTITY)).probabilities(tree, np.zeros((1, 3))).round(2).tolist()
    [[0.33..., 0.33..., 0.33...]]
    """

    inverse_temperature: float
    levels: tuple[tuple[float, float], ...]
    bias: tuple[float, ...] = ()
    paths: tuple[tuple[float, float], ...] = ()
    mixture: tuple[tuple[float, ...], ...] = ()

    def logits(self, scores: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """The scores by the inverse temperature, and the biases."""
        scaled = scores * np.float32(self.inverse_temperature)
        return scaled + np.array(self.bias, dtype=np.float32) if self.bias else scaled

    def probabilities(self, taxonomy: Taxonomy, scores: npt.NDArray[np.floating]) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        leaves = self._by_level(taxonomy, softmax(self.logits(scores)))
        return rescale_paths(taxonomy, leaves, self.paths) if self.paths else leaves

    def state(self) -> dict[str, Any]:
        """What a model folder keeps, as JSON values."""
        return {
            "inverse_temperature": self.inverse_temperature,
            "levels": [list(level) for level in self.levels],
            "bias": list(self.bias),
            "paths": [list(level) for level in self.paths],
            **({"mixture": [list(part) for part in self.mixture]} if self.mixture else {}),
        }

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, state: Mapping[str, Any]) -> Self:
        """The calibration again, if it fits the tree."""
        depth = max(1, taxonomy.depth)
        temperature = float(state["inverse_temperature"])
        bias = tuple(float(one) for one in state["bias"])
        levels, paths = (tuple((float(a), float(b)) for a, b in state[name]) for name in ("levels", "paths"))
        if not np.isfinite(temperature):
            raise ValueError("'inverse_temperature' is not a number")
        if len(levels) != depth or not np.isfinite(levels).all():
            raise ValueError(f"the tree has {taxonomy.depth} levels, and {len(levels)} are calibrated")
        if len(bias) not in (0, taxonomy.n_leaves) or not np.isfinite(bias).all():
            raise ValueError(f"'bias' should hold {taxonomy.n_leaves} numbers")
        if len(paths) not in (0, depth) or not np.isfinite(paths).all():
            raise ValueError(f"'paths' should hold a slope and an offset for each of {depth} levels")
        mixture = tuple(tuple(float(one) for one in part) for part in state.get("mixture", ()))
        sizes = ({1, 2}, {0, taxonomy.n_leaves}, {taxonomy.n_leaves})
        for part, size in zip(mixture, sizes, strict=True) if mixture else ():
            if len(part) not in size or not np.isfinite(part).all():
                raise ValueError("'mixture' does not fit the leaves")
        return cls(temperature, levels, bias, paths, mixture)

    def _by_level(self, taxonomy: Taxonomy, leaves: FloatArray) -> FloatArray:
        if all(level == IDENTITY for level in self.levels):
            return leaves
        # Nodes by documents: a node's probabilities lie together in memory.
        at_node = node_probabilities(taxonomy, leaves).T
        found = np.ones(at_node.shape)
        for node in taxonomy.inner:
            children = list(taxonomy.children[node])
            exponent, noise = self.levels[taxonomy.depths[node]]
            choice = np.maximum(at_node[children], 1e-30, dtype=np.float64) ** exponent
            choice *= (1 - noise) / choice.sum(axis=0)
            choice += noise / len(children)
            choice *= found[node]
            found[children] = choice
        chosen = found[list(taxonomy.leaves)]
        chosen /= chosen.sum(axis=0)
        return np.ascontiguousarray(chosen.T, dtype=np.float32)


def uncalibrated(taxonomy: Taxonomy, usual: float = DEFAULT_INVERSE_TEMPERATURE) -> Calibration:
    """What is used where there is nothing to calibrate with.

    Examples
    --------
    >>> uncalibrated(Taxonomy.from_paths([("a",), ("b",)])).levels
    ((1.0, 0.0),)
    """
    return Calibration(usual, (IDENTITY,) * max(1, taxonomy.depth))


def calibrate(
    taxonomy: Taxonomy,
    scores: npt.NDArray[np.floating],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating] | None = None,
    *,
    usual: float = DEFAULT_INVERSE_TEMPERATURE,
) -> Calibration:
    """Fit temperature, biases, exponents and noise to held-out labels, by maximum a posteriori.

    Parameters
    ----------
    scores : array
        Scores of held-out labelled documents, by models that did not know their labels.
    leaves : array
        Positions of their true leaves.
    weights : array, optional
        How much each counts.
    usual : float
        The inverse temperature that its prior is centred at.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> confident = np.array([[9.0, 0.0], [0.0, 9.0]] * 20)
    >>> wrong_half_the_time = np.arange(40) // 2 % 2
    >>> calibrate(tree, confident, wrong_half_the_time).inverse_temperature < 0.2
    True
    """
    if len(leaves) < _FEWEST:
        return uncalibrated(taxonomy, usual)
    given = np.ones(len(leaves)) if weights is None else np.asarray(weights, dtype=np.float64)
    counted = given * (len(given) / float(given.sum()))
    exact = np.asarray(scores, dtype=np.float64)
    temperature, _ = _fit_temperature(exact, leaves, counted, np.inf, usual)
    # The biases overfit the documents that they are learned from, so the temperature is learned without them.
    with_bias, bias = _fit_temperature(exact, leaves, counted, _BIAS_PRIOR, usual)
    bias = bias * (temperature / with_bias)
    at_node = node_probabilities(taxonomy, softmax(exact * temperature)).astype(np.float64)
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
        levels.append(fit_level(choices) if len(choices) >= _FEWEST else IDENTITY)
    return Calibration(temperature, tuple(levels), tuple(bias.tolist()))


def calibrate_paths(
    taxonomy: Taxonomy,
    found: Calibration,
    scores: npt.NDArray[np.floating],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating],
) -> Calibration:
    """Add the calibration of the chosen path's confidence, from held-out documents.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> scores = np.array([[3.0, 0.0], [0.0, 3.0]] * 20)
    >>> calibrate_paths(tree, Calibration(1.0, (IDENTITY,)), scores, np.tile([0, 1], 20), np.ones(40)).paths
    ((..., ...),)
    """
    without_bias = replace(found, bias=(), paths=()).probabilities(taxonomy, scores)
    return replace(found, paths=fit_path_confidence(taxonomy, without_bias, leaves, weights))


def _fit_temperature(
    scores: npt.NDArray[np.float64],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.float64],
    bias_prior: float,
    usual: float,
) -> tuple[float, npt.NDArray[np.float64]]:
    """The inverse temperature, and the bias of each leaf; with an infinite `bias_prior` there is no bias."""
    rows, n_leaves = np.arange(len(leaves)), scores.shape[1]
    # A leaf without a held-out document gets no bias.
    fitted = (np.bincount(leaves, minlength=n_leaves) > 0) & np.isfinite(bias_prior)
    strength = bias_prior if np.isfinite(bias_prior) else 0.0
    left_out = ~fitted & (strength > 0)

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        temperature, bias = np.exp(np.clip(point[0], -8.0, 8.0)), point[1:]
        # Documents x leaves, in place.
        off = scores * temperature
        off += bias
        off[:, left_out] = -1e30
        off -= off.max(axis=1, keepdims=True)
        chosen = off[rows, leaves]
        np.exp(off, out=off)
        sums = off.sum(axis=1)
        off *= (weights / sums)[:, None]
        off[rows, leaves] -= weights
        away = point[0] - np.log(usual)
        logs = chosen - np.log(sums)
        total = -(weights * logs).sum() + (_PRIOR * away**2 + strength * (bias**2).sum()) / 2
        gradient = np.concatenate(
            [
                [np.vdot(off, scores) * temperature + _PRIOR * away],
                (off.sum(axis=0) + strength * bias) * fitted,
            ]
        )
        return float(total), gradient

    start = np.concatenate([[np.log(usual)], np.zeros(n_leaves)])
    found = minimize_lbfgs(loss, start, tolerance=1e-4)
    return float(np.exp(np.clip(found[0], -4.0, 5.0))), np.clip(found[1:], -5.0, 5.0)


def fit_level(choices: list[tuple[float, npt.NDArray[np.float64], int]]) -> tuple[float, float]:
    """The exponent and the share of noise under which the right choices among siblings are most probable.

    Parameters
    ----------
    choices : list of (float, array, int)
        Weight, log-probabilities of the siblings, and which of them is right.

    Examples
    --------
    >>> confident = (1.0, np.log([0.99, 0.01]), 0), (1.0, np.log([0.99, 0.01]), 1)
    >>> exponent, noise = fit_level(list(confident) * 20)
    >>> exponent < 0.25
    True
    """
    weights = np.array([weight for weight, _, _ in choices])
    counts = np.array([len(logs) for _, logs, _ in choices])
    chosen = np.array([logs[position] for _, logs, position in choices])
    # Choices among fewer siblings are padded with impossible ones.
    padded = np.full((len(choices), counts.max()), -np.inf)
    for row, (_, logs, _) in enumerate(choices):
        padded[row, : len(logs)] = logs
    finite, best = np.where(np.isfinite(padded), padded, 0.0), padded.max(axis=1)

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        exponent, noise = float(np.exp(min(point[0], _MAX_LOG_EXPONENT))), float(sigmoid(point[1]))
        away, noise_away = point[0], point[1] - _NOISE_PRIOR_MEAN
        among = np.exp((padded - best[:, None]) * exponent)
        sums = among.sum(axis=1)
        right = np.exp((chosen - best) * exponent) / sums
        mixed = (1 - noise) * right + noise / counts
        total = _PRIOR * (away**2 + noise_away**2 / 9) / 2 - (weights * np.log(mixed)).sum()
        mean = (among * finite).sum(axis=1) / sums
        by_exponent = (1 - noise) * right * exponent * (chosen - mean) / mixed
        by_noise = noise * (1 - noise) * (1 / counts - right) / mixed
        gradient = [
            _PRIOR * away - (weights * by_exponent).sum(),
            _PRIOR * noise_away / 9 - (weights * by_noise).sum(),
        ]
        return float(total), np.array(gradient)

    found = minimize_lbfgs(loss, [0.0, _NOISE_PRIOR_MEAN], tolerance=1e-4)
    return float(np.exp(np.clip(found[0], -2, 2))), float(sigmoid(found[1]))
