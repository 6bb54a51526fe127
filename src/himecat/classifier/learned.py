"""What cross-validation over the labelled documents has learned, and what final scores still correct in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import Calibration
from himecat.classifier.label_prior import balance, first_level, refine_log_prior
from himecat.classifier.locate import Correction
from himecat.classifier.mixture import ENOUGH
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy

FloatArray = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]


class HeldOut(NamedTuple):
    """Labelled documents, scored by classifiers that did not know their labels.

    Attributes
    ----------
    positions : array
        Their positions in the supervision.
    scores : array
        A row of leaf scores for each.
    n_calibrating : int
        How many of them, the first ones, the calibration was learned from.
    """

    positions: Positions
    scores: FloatArray
    n_calibrating: int


class Learned(NamedTuple):
    """What cross-validation has learned.

    Attributes
    ----------
    correction : Correction
        What is wrong with the scores of the mixture, and the label prior.
    weights : mapping of str to float
        How much each opinion counts.
    votes_teach : bool
        Whether the votes of documents with the same metadata values are good enough to learn from.
    calibration : Calibration
        How scores become probabilities.
    held_out : HeldOut or None
        The held-out scores that these come from; None where they were carried over.
    """

    correction: Correction
    weights: dict[str, float]
    votes_teach: bool
    calibration: Calibration
    held_out: HeldOut | None

    def balanced(
        self, scores: Callable[[Positions], FloatArray], supervision: Supervision, n_documents: int, seed: int
    ) -> Calibration:
        """The calibration, with what makes the leaves of the unlabelled documents as frequent as they should be.

        Parameters
        ----------
        scores : callable
            Gives the final scores of documents.
        """
        evenness, log_prior = self.correction.evenness, self.correction.log_prior
        if not evenness or log_prior is None:
            return self.calibration
        logits = self.calibration.logits(scores(_unlabelled(supervision, n_documents, seed)))
        added = evenness * balance(logits, log_prior)
        return replace(self.calibration, bias=tuple(added.tolist()))

    def refined(
        self,
        taxonomy: Taxonomy,
        scores: Callable[[Positions], FloatArray],
        supervision: Supervision,
        n_documents: int,
        seed: int,
    ) -> Learned | None:
        """The same with the first level's part of the label prior learned again, from final scores of documents.

        The whole tells categories of the first level apart far better than the mixture, from whose scores the prior
        comes. None where nothing would change: leaves are equally frequent, or the tree is nearly flat.
        """
        log_prior, share = self.correction.log_prior, 1.0 - self.correction.evenness
        groups = first_level(taxonomy)
        if groups is None or log_prior is None or not log_prior.any() or not share:
            return None
        rows = _unlabelled(supervision, n_documents, seed)
        found = refine_log_prior(log_prior, self.calibration.probabilities(taxonomy, scores(rows)), groups)
        found = np.asarray(log_prior + share * (found - log_prior), dtype=np.float32)
        mixture = (*self.calibration.mixture[:2], tuple(found.tolist()))
        return self._replace(
            correction=self.correction._replace(log_prior=found),
            calibration=replace(self.calibration, mixture=mixture),
        )


def subsample(supervision: Supervision, n_documents: int, most: int, seed: int) -> Positions:
    """Rows of all labelled documents and of at most so many others, drawn by the seed.

    Examples
    --------
    >>> subsample(Supervision(np.array([7]), np.array([1])), 9, 3, 0).tolist()
    [4, 5, 7, 8]
    """
    others = np.setdiff1d(np.arange(n_documents), supervision.rows)
    if len(others) > most:
        others = np.random.default_rng(seed).choice(others, most, replace=False)
    return np.union1d(others, supervision.rows)


def _unlabelled(supervision: Supervision, n_documents: int, seed: int) -> Positions:
    return np.setdiff1d(subsample(supervision, n_documents, ENOUGH, seed), supervision.rows)
