"""Probabilities that mean what they say, learned from labelled documents that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from himecat.classify.mixture import softmax
from himecat.corpus.taxonomy import Taxonomy

FloatArray = npt.NDArray[np.float32]

# Where too few documents can be held out: the sharpness that suits most collections.
TYPICAL_SHARPNESS = 4.0
_FEWEST = 20
# How many documents' worth of belief the typical values have.
_BELIEF = 5.0


@dataclass(frozen=True)
class Calibration:
    """How sharp scores are, and how far the choices at each level of the tree are to be believed.

    Attributes
    ----------
    sharpness : float
        Scores are multiplied by this.
    levels : tuple of float
        Exponent of the choice among siblings at each level; below 1 it was too sure of itself.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> Calibration(1.0, (1.0, 1.0)).probabilities(tree, np.zeros((1, 3))).round(2).tolist()
    [[0.33..., 0.33..., 0.33...]]
    """

    sharpness: float
    levels: tuple[float, ...]

    def probabilities(self, taxonomy: Taxonomy, scores: npt.NDArray[np.floating]) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        leaves = softmax(scores * self.sharpness)
        if all(level == 1.0 for level in self.levels):
            return leaves
        at_node = _node_mass(taxonomy, leaves)
        found = np.ones_like(at_node)
        for node in taxonomy.inner:
            children = list(taxonomy.children[node])
            exponent = self.levels[taxonomy.depths[node]]
            choice = np.maximum(at_node[:, children], 1e-30) ** exponent
            found[:, children] = found[:, [node]] * choice / choice.sum(axis=1, keepdims=True)
        chosen = found[:, list(taxonomy.leaves)]
        return np.asarray(chosen / chosen.sum(axis=1, keepdims=True), dtype=np.float32)


def _node_mass(taxonomy: Taxonomy, leaves: FloatArray) -> npt.NDArray[np.float64]:
    found = np.zeros((len(leaves), len(taxonomy)))
    found[:, list(taxonomy.leaves)] = leaves
    for node in range(len(taxonomy) - 1, 0, -1):
        found[:, taxonomy.parents[node]] += found[:, node]
    return found


def calibrate(
    taxonomy: Taxonomy,
    scores: npt.NDArray[np.floating],
    leaves: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating],
) -> Calibration:
    """Choose the sharpness and the exponents under which held-out labels are most probable.

    Parameters
    ----------
    scores : array
        Scores of held-out labelled documents, by models that did not know their labels.
    leaves : array
        Positions of their true leaves.
    weights : array
        How many documents of the collection each stands for.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> sure = np.array([[9.0, 0.0], [0.0, 9.0]] * 20)
    >>> wrong_half_the_time = np.arange(40) // 2 % 2
    >>> calibrate(tree, sure, wrong_half_the_time, np.ones(40)).sharpness < 0.2
    True
    """
    unchanged = (1.0,) * max(1, taxonomy.depth)
    if len(leaves) < _FEWEST:
        return Calibration(TYPICAL_SHARPNESS, unchanged)
    weights = np.asarray(weights, dtype=np.float64) * len(weights) / float(np.sum(weights))
    rows = np.arange(len(leaves))

    def loss_of_sharpness(log_sharpness: float) -> float:
        found = softmax(scores * np.exp(log_sharpness))[rows, leaves]
        belief = _BELIEF * (log_sharpness - np.log(TYPICAL_SHARPNESS)) ** 2 / 2
        return float(-(weights * np.log(np.maximum(found, 1e-30))).sum() + belief)

    sharpness = float(np.exp(minimize_scalar(loss_of_sharpness, bounds=(-4, 5), method="bounded").x))
    at_node = _node_mass(taxonomy, softmax(scores * sharpness))
    levels = []
    for level in range(taxonomy.depth):
        choices = []
        for row, position in enumerate(leaves.tolist()):
            lineage = taxonomy.lineages[taxonomy.leaves[position]]
            if len(lineage) > level:
                siblings = taxonomy.children[taxonomy.parents[lineage[level]]]
                if len(siblings) > 1:
                    logs = np.log(np.maximum(at_node[row, list(siblings)], 1e-30))
                    choices.append((weights[row], logs, siblings.index(lineage[level])))
        levels.append(_exponent(choices) if len(choices) >= _FEWEST else 1.0)
    return Calibration(sharpness, tuple(levels))


def _exponent(choices: list[tuple[float, npt.NDArray[np.float64], int]]) -> float:
    def loss(log_exponent: float) -> float:
        total = _BELIEF * log_exponent**2 / 2
        for weight, logs, chosen in choices:
            scaled = logs * np.exp(log_exponent)
            total -= weight * (scaled[chosen] - np.logaddexp.reduce(scaled))
        return float(total)

    return float(np.exp(minimize_scalar(loss, bounds=(-1.5, 1.5), method="bounded").x))
