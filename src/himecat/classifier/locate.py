"""Documents placed by the mixture alone: where everything else starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.label_prior import balance
from himecat.classifier.mixture import Anchors, Whitened, fit_mixture, gather_anchors, whiten
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default
from himecat.views.combined import DocumentVectors

FloatArray = npt.NDArray[np.float32]
Seeds = tuple[FloatArray, FloatArray]
"""Summed seed directions of each leaf, and how many documents they count as."""
MIXTURE_TEMPERATURE = 1.7
"""Inverse temperature of the mixture's scores, at a standard deviation of 1, where none is learned."""

# How many documents' worth of a leaf's direction come from all leaves below its parent.
_SIBLING_MASS = 1.0


class Correction(NamedTuple):
    """What held-out documents say about the mixture's scores, which have a standard deviation of 1.

    Attributes
    ----------
    inverse_temperature : float
        The scores are multiplied by this.
    bias : array or None
        What is added at each leaf, because it is chosen too rarely.
    log_prior : array or None
        Logarithms of the label prior.
    evenness : float
        How far the prior can be believed to the letter, because leaves are equally frequent: 0 for not at all, 1 for
        entirely. So far the leaves are balanced among the documents, in place of the bias.
    """

    inverse_temperature: float = MIXTURE_TEMPERATURE
    bias: FloatArray | None = None
    log_prior: FloatArray | None = None
    evenness: float = 0.0

    def offset(self, logits: FloatArray, unlabelled: npt.NDArray[np.integer]) -> FloatArray:
        """What is added at each leaf to scores that have been multiplied by the inverse temperature."""
        prior = np.zeros(logits.shape[1], dtype=np.float32) if self.log_prior is None else self.log_prior
        found = prior if self.bias is None else prior + self.bias
        if self.evenness:
            balanced = balance(logits[unlabelled], prior)
            found = (1.0 - self.evenness) * found + self.evenness * balanced
        return np.asarray(found, dtype=np.float32)


class Located(NamedTuple):
    """Documents placed by the mixture alone.

    Attributes
    ----------
    anchors : Anchors
        What was known of the leaves.
    directions, log_prior : arrays
        The mixture before whitening.
    whitened : Whitened
        The mixture after it.
    scale : float
        Standard deviation of the scores.
    scores : array
        Scores of all documents, divided by the scale.
    """

    anchors: Anchors
    directions: FloatArray
    log_prior: FloatArray
    whitened: Whitened
    scale: float
    scores: FloatArray


def locate(
    taxonomy: Taxonomy,
    vectors: DocumentVectors,
    supervision: Supervision,
    seeds: Seeds,
    method: Default,
    *,
    learn_prior: bool = False,
    evenness: float = 0.0,
) -> Located:
    """Fit the mixture; `learn_prior`: by EM, together with the label prior; `evenness` as in `Correction`."""
    rows = vectors.smoothed
    sibling_mass = _SIBLING_MASS if method.use_hierarchy else 0.0
    anchors = gather_anchors(taxonomy, supervision, rows, *seeds)
    mixture = fit_mixture(
        taxonomy,
        anchors,
        rows,
        concentration=method.leaf_concentration,
        rounds=method.em_rounds,
        learn_prior=learn_prior,
        sibling_mass=sibling_mass,
        evenness=evenness,
    )
    directions, log_prior, posterior, scores = mixture
    del mixture, scores
    whitened = whiten(taxonomy, supervision, rows, seeds, posterior, sibling_mass=sibling_mass)
    del posterior
    scores = whitened.scores(rows, method.leaf_concentration)
    scale = deviation(scores)
    scores /= np.float32(scale)
    return Located(anchors, directions, log_prior, whitened, scale, scores)


def deviation(scores: FloatArray) -> float:
    """The standard deviation of scores, which is never 0.

    Examples
    --------
    >>> deviation(np.zeros((2, 2), np.float32))
    1e-06
    """
    return max(float(scores.std()), 1e-6)
