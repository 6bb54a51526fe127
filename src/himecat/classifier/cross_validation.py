"""Cross-validation over the labelled documents: it gives the label prior, the opinions' weights, the calibration."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import calibrate, calibrate_paths
from himecat.classifier.label_prior import estimate_log_prior, evenness, shrink_log_prior
from himecat.classifier.learned import HeldOut, Learned, subsample
from himecat.classifier.locate import MIXTURE_TEMPERATURE, Correction, Located, Seeds, locate
from himecat.classifier.scorer import fit_scorer, usual_weights
from himecat.classifier.stacking import stack_or_drop
from himecat.classifier.votes import USUAL_VOTES, VOTES
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
# How often the labels are split into halves, and the documents that take part in the fits with one of them.
_SPLITS = 2
_MAX_UNLABELLED_HALVES = 6_000
# With fewer labelled documents there is no cross-validation; once this many are held out, no further fold is.
_FEWEST, _PLENTY = 20, 300
# With more labelled documents, only those of the folds for calibration are judged.
_MOST_JUDGED = 3_000
# Unlabelled documents per leaf below which the label prior is not estimated.
_FEW_PER_LEAF = 5
# Log-likelihood of held-out documents that votes must bring before classifiers learn from them.
_MUCH_GAINED = 1.0


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
    carried : Learned, optional
        What an earlier fit has learned, in place of cross-validation.
    sizes : array, optional
        How many leaves each leaf stands for, where it is the terminal of a stage of a wide tree.
    """

    folds: list[Positions]
    estimates_prior: bool
    further: tuple[Positions, ...] = ()
    carried: Learned | None = None
    sizes: npt.NDArray[np.int64] | None = None

    @property
    def n_fits(self) -> int:
        """How often the mixture or the whole is trained: the prior needs all labels once, and halves of them."""
        return 1 + 2 * len(self.folds) + len(self.further) + (1 + 2 * _SPLITS) * self.estimates_prior


def plan_folds(
    taxonomy: Taxonomy,
    supervision: Supervision,
    n_documents: int,
    method: Default,
    seed: int = 0,
    carried: Learned | None = None,
) -> Plan:
    """Decide which labelled documents are held out in turn; none where what they would teach is carried over.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.arange(30), np.repeat([1, 2], 15))
    >>> plan = plan_folds(tree, few, 100, Default())
    >>> [len(fold) for fold in plan.folds], plan.estimates_prior, plan.n_fits
    ([6, 6, 6, 6, 6], True, 16)
    """
    if not method.calibrate or carried is not None:
        return Plan([], False, carried=carried)
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


def even_log_prior(taxonomy: Taxonomy, sizes: npt.NDArray[np.int64] | None = None) -> FloatArray:
    """Logarithms of a prior under which all leaves are equally frequent, also those that a terminal stands for.

    Examples
    --------
    >>> even_log_prior(Taxonomy.from_paths([("a",), ("b",)]), np.array([1, 1])).tolist()
    [0.0, 0.0]
    """
    found = np.zeros(taxonomy.n_leaves) if sizes is None else np.log(sizes)
    return np.asarray(found - found.mean(), dtype=np.float32)


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
    *,
    one_by_one: bool = False,
    loose: Collection[str] = (),
) -> Learned:
    """Hold out labelled documents in turn, first of the mixture alone and then of the whole.

    The mixture says how far each leaf is chosen too often or too rarely, and how frequent leaves are: what is trained
    on its posterior would repeat its errors. The whole says how much each opinion counts, and what is probable.
    Fits are made at the same time or, which takes less memory, `one_by_one` on all threads; results are the same.
    Opinions in `loose` have a weight that strays farther from its usual value.
    """
    if plan.carried is not None:
        return plan.carried
    at_once, inside = (1, threads) if one_by_one else (threads, 1)
    all_leaves = taxonomy.leaf_position[supervision.nodes]
    folds = plan.folds
    sample = _sample(vectors, supervision, MAX_UNLABELLED, seed)

    def without(chosen: _Sample, fold: Positions) -> Supervision:
        kept = np.setdiff1d(np.arange(len(supervision)), fold)
        return Supervision(chosen.labelled[kept], supervision.nodes[kept])

    def done() -> None:
        if advance is not None:
            advance(1)

    def located(chosen: _Sample, fold: Positions) -> Located:
        found = locate(taxonomy, chosen.vectors, without(chosen, fold), seeds, method)
        done()
        return found

    def corrected(scores: FloatArray, fold: Positions) -> Correction:
        leaves = all_leaves[fold]
        weights = 1.0 / np.bincount(leaves)[leaves]
        found = calibrate(taxonomy, scores, leaves, weights, usual=MIXTURE_TEMPERATURE)
        bias = np.array(found.bias, dtype=np.float32) if found.bias else None
        return Correction(found.inverse_temperature, bias)

    def mixture_job(fold: Positions) -> Callable[[], FloatArray]:
        return lambda: located(sample, fold).scores[sample.labelled[fold]]

    def prior_of(scores: FloatArray, known: Correction) -> FloatArray:
        scores *= np.float32(known.inverse_temperature)
        if known.bias is not None:
            scores += known.bias
        return estimate_log_prior(scores)

    def half_job(fold: Positions) -> Callable[[], FloatArray]:
        def job() -> FloatArray:
            found = located(small, fold).scores
            return prior_of(found[small.unlabelled], corrected(found[small.labelled[fold]], fold))

        return job

    jobs: list[Callable[[], FloatArray]] = [mixture_job(fold) for fold in folds]
    if plan.estimates_prior:
        small = sample
        if len(sample.unlabelled) > _MAX_UNLABELLED_HALVES:
            small = _sample(vectors, supervision, _MAX_UNLABELLED_HALVES, seed)
        rng = np.random.default_rng([seed, 2])
        halves = [half for _ in range(_SPLITS) for half in _stratified(taxonomy, supervision, 2, rng)]
        none = np.zeros(0, dtype=np.int64)
        jobs += [
            lambda: located(sample, none).scores[sample.unlabelled],
            *(half_job(half) for half in halves),
        ]
    found = run_parallel(jobs, at_once)
    held_out = np.concatenate(folds)
    by_mixture = found[: len(folds)]
    correction = corrected(np.concatenate(by_mixture), held_out)
    log_prior, even = even_log_prior(taxonomy, plan.sizes), 0.0
    if plan.estimates_prior:
        of_unlabelled, *by_halves = found[len(folds) :]
        # Shrunk towards leaves that are equally frequent.
        everything = prior_of(of_unlabelled, correction) - log_prior
        by_half = np.stack(by_halves).reshape(-1, 2, taxonomy.n_leaves) - log_prior
        log_prior = log_prior + shrink_log_prior(everything, by_half)
        even = evenness(by_half)

    def fold_job(fold: Positions, known: Correction) -> Callable[[], dict[str, FloatArray]]:
        def job() -> dict[str, FloatArray]:
            # With a uniform prior, as among the labelled documents once each is weighted by the size of its leaf.
            scorer = fit_scorer(
                taxonomy,
                sample.vectors,
                without(sample, fold),
                seeds,
                method,
                seed=seed,
                correction=known,
                weights=usual,
                threads=inside,
            )
            done()
            return dict(scorer.opinions(sample.vectors.take(sample.labelled[fold])))

        return job

    usual = usual_weights(vectors)
    voting = [f"{VOTES}{kind}" for kind, group in vectors.groups.items() if not group.decides]
    if method.learn_weights:
        usual |= dict.fromkeys(voting, USUAL_VOTES)
    whole = []
    for number, fold in enumerate(folds):
        # A fold's own labels say nothing about what is wrong with the scores of its documents.
        others = [place for place in range(len(folds)) if place != number]
        known = Correction()
        if others:
            known = corrected(
                np.concatenate([by_mixture[place] for place in others]),
                np.concatenate([folds[place] for place in others]),
            )
        whole.append(fold_job(fold, known._replace(evenness=even)))
    whole += [fold_job(fold, correction._replace(evenness=even)) for fold in plan.further]
    opinions = run_parallel(whole, at_once)
    leaves, gained = all_leaves[held_out], 0.0
    weights = {name: usual[name] for name in opinions[0]}
    if method.learn_weights:
        by_opinion = {
            name: np.concatenate([one[name] for one in opinions[: len(folds)]]) for name in opinions[0]
        }
        weights, gained = stack_or_drop(by_opinion, leaves, weights, voting, loose)
    scores = [_summed(one, weights) for one in opinions]
    seen = np.concatenate(scores[: len(folds)])
    # The mixture is corrected at each leaf: a second bias, from the same few documents, would overfit them.
    calibration = replace(calibrate(taxonomy, seen, leaves, 1.0 / np.bincount(leaves)[leaves]), bias=())
    # Held-out documents are weighted by the prior of their leaves.
    counted = np.exp(log_prior)[leaves] / np.bincount(leaves)[leaves]
    calibration = calibrate_paths(taxonomy, calibration, seen, leaves, counted)
    bias = () if correction.bias is None else tuple(correction.bias.tolist())
    mixture = ((correction.inverse_temperature, even), bias, tuple(log_prior.tolist()))
    return Learned(
        correction._replace(log_prior=log_prior, evenness=even),
        weights,
        gained > _MUCH_GAINED or any(group.decides for group in vectors.groups.values()),
        replace(calibration, mixture=mixture),
        HeldOut(np.concatenate([held_out, *plan.further]), np.concatenate(scores), len(held_out)),
    )


def _summed(opinions: dict[str, FloatArray], weights: dict[str, float]) -> FloatArray:
    total = np.zeros_like(next(iter(opinions.values())))
    for name, part in opinions.items():
        total += np.float32(weights[name]) * part
    return total
