"""Cross-validation over the labelled documents: it gives the calibration and the label prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import Calibration, calibrate, calibrate_paths
from himecat.classifier.label_prior import estimate_log_prior, shrink_log_prior
from himecat.classifier.scorer import Scorer, Seeds, fit_scorer
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default
from himecat.runtime.threads import run_parallel
from himecat.views.combined import DocumentVectors

FloatArray = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

# Documents x leaves above which there are three folds instead of five.
_LARGE = 1_000_000
MAX_UNLABELLED = 12_000
"""Unlabelled documents that take part in cross-validation."""
# Those that take part in the fits with half of the labels.
_MAX_UNLABELLED_HALVES = 6_000
# With fewer labelled documents there is no cross-validation; once this many are held out, no further fold is.
_FEWEST, _PLENTY = 20, 300
# With more labelled documents, only those of the folds for calibration are judged.
_MOST_JUDGED = 3_000
# Unlabelled documents per leaf below which the label prior is not estimated.
_FEW_PER_LEAF = 5


class Plan(NamedTuple):
    """What cross-validation will do.

    Attributes
    ----------
    folds : list of array
        Positions in the supervision to hold out in turn; none where there are too few to learn from.
    estimates_prior : bool
        Whether there are enough unlabelled documents per leaf to estimate the label prior.
    further : tuple of array
        Folds that calibration does not need, held out so that every label is judged once without itself.
    """

    folds: list[Positions]
    estimates_prior: bool
    further: tuple[Positions, ...] = ()

    @property
    def n_fits(self) -> int:
        """How often the classifier is trained in all: the prior needs all labels once, and each half of them."""
        return 1 + len(self.folds) + len(self.further) + 3 * self.estimates_prior


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


def plan_folds(
    taxonomy: Taxonomy, supervision: Supervision, n_documents: int, method: Default, seed: int = 0
) -> Plan:
    """Decide which labelled documents are held out in turn.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.arange(30), np.repeat([1, 2], 15))
    >>> plan = plan_folds(tree, few, 100, Default())
    >>> [len(fold) for fold in plan.folds], plan.estimates_prior, plan.n_fits
    ([6, 6, 6, 6, 6], True, 9)
    """
    if not method.calibrate:
        return Plan([], False)
    count = 3 if min(n_documents, MAX_UNLABELLED) * taxonomy.n_leaves > _LARGE else 5
    folds = _stratified(taxonomy, supervision, count, np.random.default_rng(seed))
    if sum(len(fold) for fold in folds) < _FEWEST:
        return Plan([], False)
    before = np.cumsum([0, *(len(fold) for fold in folds[:-1])])
    kept = [fold for fold, held_out in zip(folds, before, strict=True) if held_out < _PLENTY]
    unlabelled = n_documents - len(np.unique(supervision.rows))
    estimates_prior = method.learn_prior and unlabelled >= _FEW_PER_LEAF * taxonomy.n_leaves
    further = folds[len(kept) :] if len(supervision) <= _MOST_JUDGED else []
    return Plan(kept, estimates_prior, tuple(further))


def _stratified(
    taxonomy: Taxonomy, supervision: Supervision, count: int, rng: np.random.Generator
) -> list[Positions]:
    """Folds of the labelled documents, stratified by leaf; a leaf's only document is in none."""
    leaves = taxonomy.leaf_position[supervision.nodes]
    fold_of = np.full(len(supervision), -1, dtype=np.int64)
    order = np.argsort(leaves, kind="stable")
    # Leaves without documents are never looked at: there may be very many.
    for documents in np.split(order, np.flatnonzero(np.diff(leaves[order])) + 1):
        if len(documents) > 1 and leaves[documents[0]] >= 0:
            own = rng.permutation(documents)
            fold_of[own] = (np.arange(len(own)) + rng.integers(count)) % count
    folds = [np.flatnonzero(fold_of == fold) for fold in range(count)]
    return [fold for fold in folds if len(fold)]


@dataclass(frozen=True)
class _Sample:
    """Documents that take part: all labelled ones, in the order of the supervision, and some unlabelled ones."""

    vectors: DocumentVectors
    labelled: Positions
    unlabelled: Positions


def _sample(vectors: DocumentVectors, supervision: Supervision, most: int, seed: int) -> _Sample:
    rows = subsample(supervision, len(vectors), most, seed)
    chosen = vectors if len(rows) == len(vectors) else vectors.take(rows)
    labelled = np.searchsorted(rows, supervision.rows)
    return _Sample(chosen, labelled, np.setdiff1d(np.arange(len(rows)), labelled))


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


def cross_validate(
    taxonomy: Taxonomy,
    vectors: DocumentVectors,
    supervision: Supervision,
    seeds: Seeds,
    method: Default,
    plan: Plan,
    seed: int,
    threads: int,
    advance: Callable[[int], None] | None,
) -> tuple[Calibration, FloatArray, HeldOut]:
    """The calibration, the logarithms of the label prior, and the held-out scores that they come from."""
    all_leaves = taxonomy.leaf_position[supervision.nodes]

    def trained_without(sample: _Sample, fold: Positions) -> Scorer:
        kept = np.setdiff1d(np.arange(len(supervision)), fold)
        rest = Supervision(sample.labelled[kept], supervision.nodes[kept])
        # With a uniform prior, as among the labelled documents once each is weighted by the size of its leaf.
        scorer = fit_scorer(taxonomy, sample.vectors, rest, seeds, method, seed=seed)
        if advance is not None:
            advance(1)
        return scorer

    def calibrated(scores: FloatArray, fold: Positions) -> Calibration:
        leaves = all_leaves[fold]
        return calibrate(taxonomy, scores, leaves, 1.0 / np.bincount(leaves)[leaves])

    def fold_job(fold: Positions) -> Callable[[], FloatArray]:
        return lambda: trained_without(sample, fold).scores(sample.vectors.take(sample.labelled[fold]))

    def unlabelled_job() -> FloatArray:
        none = np.zeros(0, dtype=np.int64)
        return trained_without(sample, none).scores(sample.vectors.take(sample.unlabelled))

    def half_job(fold: Positions) -> Callable[[], FloatArray]:
        def job() -> FloatArray:
            scorer = trained_without(small, fold)
            own = calibrated(scorer.scores(small.vectors.take(small.labelled[fold])), fold)
            return estimate_log_prior(own.logits(scorer.scores(small.vectors.take(small.unlabelled))))

        return job

    folds = plan.folds
    sample = _sample(vectors, supervision, MAX_UNLABELLED, seed)
    jobs: list[Callable[[], FloatArray]] = [fold_job(fold) for fold in folds]
    if plan.estimates_prior:
        small = sample
        if len(sample.unlabelled) > _MAX_UNLABELLED_HALVES:
            small = _sample(vectors, supervision, _MAX_UNLABELLED_HALVES, seed)
        halves = _stratified(taxonomy, supervision, 2, np.random.default_rng([seed, 2]))
        jobs += [unlabelled_job, *(half_job(half) for half in halves)]
    n_jobs = len(jobs)
    jobs += [fold_job(fold) for fold in plan.further]
    found = run_parallel(jobs, threads)
    held_out = np.concatenate(folds)
    leaves, scores = all_leaves[held_out], np.concatenate(found[: len(folds)])
    calibration = calibrated(scores, held_out)
    log_prior = np.zeros(taxonomy.n_leaves, dtype=np.float32)
    if plan.estimates_prior:
        of_unlabelled, *by_halves = found[len(folds) : n_jobs]
        log_prior = shrink_log_prior(estimate_log_prior(calibration.logits(of_unlabelled)), *by_halves)
    # Held-out documents are weighted by the prior of their leaves.
    weights = np.exp(log_prior)[leaves] / np.bincount(leaves)[leaves]
    judged = HeldOut(
        np.concatenate([held_out, *plan.further]), np.concatenate([scores, *found[n_jobs:]]), len(held_out)
    )
    return calibrate_paths(taxonomy, calibration, scores, leaves, weights), log_prior, judged
