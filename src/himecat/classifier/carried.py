"""What cross-validation of an earlier fit says of a tree that was changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import IDENTITY
from himecat.classifier.fit import DefaultClassifier
from himecat.classifier.learned import Learned
from himecat.classifier.locate import Correction
from himecat.classifier.path_confidence import IDENTITY as SAME_CONFIDENCE
from himecat.classifier.regrouped import leaf_positions
from himecat.input.taxonomy.tree import Taxonomy

_Values = npt.NDArray[np.float64]


def carried_over(classifier: DefaultClassifier, now: Taxonomy, nodes: Sequence[int]) -> Learned | None:
    """What an earlier fit has learned by cross-validation, for the leaves of now.

    A new leaf has no bias, and is as frequent as the median of the others; those that a leaf was split into share what
    it had, and merged ones add up. None where the model does not keep it.

    Parameters
    ----------
    classifier : DefaultClassifier
        The earlier fit.
    nodes : sequence of int
        For each node of its tree the node of now, -1 where it is gone.
    """
    known, before = classifier.calibration, classifier.taxonomy
    if not known.mixture:
        return None
    (temperature, *even), bias, prior = known.mixture
    depth = max(1, now.depth)
    levels = (*known.levels, *[IDENTITY] * depth)[:depth]
    paths = (*known.paths, *[SAME_CONFIDENCE] * depth)[:depth] if known.paths else ()
    own_bias = tuple(_biases(known.bias, before, now, nodes))
    of_mixture, log_prior = _biases(bias, before, now, nodes), _log_prior(prior, before, now, nodes)
    calibration = replace(
        known,
        levels=levels,
        paths=paths,
        bias=own_bias,
        mixture=((temperature, *even), tuple(of_mixture), tuple(log_prior.tolist())),
    )
    correction = Correction(
        temperature,
        np.array(of_mixture, dtype=np.float32) if of_mixture else None,
        log_prior.astype(np.float32),
        *even,
    )
    return Learned(
        correction, dict(classifier.scorer.weights), classifier.scorer.votes_teach, calibration, None
    )


def _biases(given: Sequence[float], before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> list[float]:
    if not given:
        return []
    found = np.zeros(now.n_leaves)
    counts = np.zeros(now.n_leaves)
    for bias, position in zip(given, leaf_positions(before, now, nodes).tolist(), strict=True):
        if position >= 0:
            found[position] += bias
            counts[position] += 1
    return [float(one) for one in found / np.maximum(counts, 1)]


def _log_prior(given: Sequence[float], before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> _Values:
    masses = np.exp(np.array(given, dtype=np.float64))
    found = np.zeros(now.n_leaves)
    for leaf, mass in zip(before.leaves, masses.tolist(), strict=True):
        if nodes[leaf] > 0:
            under = now.positions_under(nodes[leaf])
            # A leaf that has become an inner category gives to those of its leaves that were none before.
            became = set(leaf_positions(before, now, nodes).tolist()) if len(under) > 1 else set()
            new = [one for one in under.tolist() if one not in became] or under.tolist()
            found[new] += mass / len(new)
    found[found == 0] = np.median(masses)
    return np.asarray(np.log(found), dtype=np.float64)
