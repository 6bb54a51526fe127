"""What labelled documents tell that are held out in turn: what confidence is worth, and how frequent leaves are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import Calibration, calibrate, settle_surest
from himecat.classifier.label_prior import believed, log_frequencies
from himecat.classifier.scorer import FusedSettings, Scorer, fit_scorer, start_from
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import run_parallel
from himecat.views.base import Seen

FloatArray = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

# Documents x leaves above which labelled documents are held out in three goes instead of five.
_LARGE = 1_000_000
# Unlabelled documents that take part while labelled ones are held out.
_ENOUGH = 12_000
# And while half of the labelled ones are.
_ENOUGH_FOR_HALF = 6_000
# Fewer labelled documents than this teach nothing when they are held out, and beyond this no more are.
_FEWEST, _PLENTY = 20, 300
# Unlabelled documents per leaf below which frequencies are not estimated.
_FEW_PER_LEAF = 5


def folds(taxonomy: Taxonomy, supervision: Supervision, n_documents: int, seed: int) -> list[Positions]:
    """Positions in the supervision to hold out in turn; none where there are too few to learn from.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.arange(30), np.repeat([1, 2], 15))
    >>> [len(fold) for fold in folds(tree, few, 100, 0)], folds(tree, Supervision(few.rows[:9], few.nodes[:9]), 9, 0)
    ([6, 6, 6, 6, 6], [])
    """
    count = 3 if min(n_documents, _ENOUGH) * taxonomy.n_leaves > _LARGE else 5
    dealt = _dealt(taxonomy, supervision, count, np.random.default_rng(seed))
    if sum(len(fold) for fold in dealt) < _FEWEST:
        return []
    before = np.cumsum([0, *(len(fold) for fold in dealt[:-1])])
    return [fold for fold, held in zip(dealt, before, strict=True) if held < _PLENTY]


def wants_frequencies(
    taxonomy: Taxonomy, supervision: Supervision, n_documents: int, settings: FusedSettings
) -> bool:
    """Whether the leaves' frequencies are to be estimated: a few documents per leaf tell nothing about them.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.arange(4), np.array([1, 1, 2, 2]))
    >>> [wants_frequencies(tree, few, n, FusedSettings()) for n in (10, 100)]
    [False, True]
    """
    unlabelled = n_documents - len(np.unique(supervision.rows))
    return settings.learn_prior and unlabelled >= _FEW_PER_LEAF * taxonomy.n_leaves


def _dealt(
    taxonomy: Taxonomy, supervision: Supervision, count: int, rng: np.random.Generator
) -> list[Positions]:
    """Labelled documents dealt to so many folds, leaf by leaf; a leaf's only one is in none."""
    leaves = taxonomy.leaf_position[supervision.nodes]
    fold_of = np.full(len(supervision), -1, dtype=np.int64)
    for leaf in range(taxonomy.n_leaves):
        own = rng.permutation(np.flatnonzero(leaves == leaf))
        if len(own) > 1:
            fold_of[own] = (np.arange(len(own)) + rng.integers(count)) % count
    dealt = [np.flatnonzero(fold_of == fold) for fold in range(count)]
    return [fold for fold in dealt if len(fold)]


@dataclass(frozen=True)
class _Part:
    """Documents that take part: all labelled ones, in the order of the supervision, and some others."""

    seen: Seen
    labelled: Positions
    others: Positions


def _part_of(seen: Seen, supervision: Supervision, most: int, seed: int) -> _Part:
    n_documents = len(seen.text)
    rows = enough(supervision, n_documents, most, seed)
    chosen = seen if len(rows) == n_documents else _rows_of(seen, rows)
    labelled = np.searchsorted(rows, supervision.rows)
    return _Part(chosen, labelled, np.setdiff1d(np.arange(len(rows)), labelled))


def enough(supervision: Supervision, n_documents: int, most: int, seed: int) -> Positions:
    """Rows of all labelled documents and of at most so many others, drawn by the seed.

    Examples
    --------
    >>> enough(Supervision(np.array([7]), np.array([1])), 9, 3, 0).tolist()
    [4, 5, 7, 8]
    """
    others = np.setdiff1d(np.arange(n_documents), supervision.rows)
    if len(others) > most:
        others = np.random.default_rng(seed).choice(others, most, replace=False)
    return np.union1d(others, supervision.rows)


def learn_from_held_out(
    taxonomy: Taxonomy,
    seen: Seen,
    supervision: Supervision,
    seeds: tuple[FloatArray, FloatArray],
    settings: FusedSettings,
    held_out: Sequence[Positions],
    seed: int,
    threads: int,
    advance: Callable[[int], None] | None,
) -> tuple[Calibration, FloatArray]:
    """The calibration and the logarithms of the leaves' frequencies."""
    all_leaves = taxonomy.leaf_position[supervision.nodes]

    def trained_without(part: _Part, fold: Positions) -> Scorer:
        kept = np.setdiff1d(np.arange(len(supervision)), fold)
        rest = Supervision(part.labelled[kept], supervision.nodes[kept])
        # All leaves equally frequent, as they are among labelled documents once each counts for its leaf's size.
        start = start_from(taxonomy, part.seen, rest, seeds, settings, learn_prior=False)
        scorer = fit_scorer(part.seen, start, settings, seed, start.mixture.log_prior)
        if advance is not None:
            advance(1)
        return scorer

    def calibrated(scores: FloatArray, fold: Positions) -> Calibration:
        leaves = all_leaves[fold]
        return calibrate(taxonomy, scores, leaves, 1.0 / np.bincount(leaves)[leaves])

    def fold_job(fold: Positions) -> Callable[[], FloatArray]:
        return lambda: trained_without(part, fold).scores(_rows_of(part.seen, part.labelled[fold]))

    def others_job() -> FloatArray:
        nothing = np.zeros(0, dtype=np.int64)
        return trained_without(part, nothing).scores(_rows_of(part.seen, part.others))

    def half_job(fold: Positions) -> Callable[[], FloatArray]:
        def job() -> FloatArray:
            scorer = trained_without(small, fold)
            own = calibrated(scorer.scores(_rows_of(small.seen, small.labelled[fold])), fold)
            return log_frequencies(own.logits(scorer.scores(_rows_of(small.seen, small.others))))

        return job

    estimated = wants_frequencies(taxonomy, supervision, len(seen.text), settings)
    part = _part_of(seen, supervision, _ENOUGH, seed)
    jobs: list[Callable[[], FloatArray]] = [fold_job(fold) for fold in held_out]
    if estimated:
        small = part
        if len(part.others) > _ENOUGH_FOR_HALF:
            small = _part_of(seen, supervision, _ENOUGH_FOR_HALF, seed)
        halves = _dealt(taxonomy, supervision, 2, np.random.default_rng([seed, 2]))
        jobs += [others_job, *(half_job(half) for half in halves)]
    found = run_parallel(jobs, threads)
    everything = np.concatenate(held_out)
    leaves, scores = all_leaves[everything], np.concatenate(found[: len(held_out)])
    calibration = calibrated(scores, everything)
    log_prior = np.zeros(taxonomy.n_leaves, dtype=np.float32)
    if estimated:
        of_others, *by_halves = found[len(held_out) :]
        log_prior = believed(log_frequencies(calibration.logits(of_others)), *by_halves)
    # Documents held out count as their leaves' share of all.
    weights = np.exp(log_prior)[leaves] / np.bincount(leaves)[leaves]
    return settle_surest(taxonomy, calibration, scores, leaves, weights), log_prior


def _rows_of(seen: Seen, rows: Positions) -> Seen:
    return Seen(seen.text[rows], seen.whole[rows], seen.features[rows])
