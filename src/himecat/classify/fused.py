"""The default classifier: a mixture over the sphere and two self-trained linear classifiers, added and calibrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classify.calibration import AS_IT_IS, TYPICAL_SHARPNESS, Calibration, calibrate, settle_surest
from himecat.classify.frequencies import log_frequencies
from himecat.classify.linear import cross_fit
from himecat.classify.mixture import (
    Anchors,
    Mixture,
    fit_mixture,
    gather_anchors,
    softmax,
    softmax_in_place,
)
from himecat.corpus.columns import Corpus, Supervision
from himecat.corpus.taxonomy import Taxonomy
from himecat.embedding.views import DocumentViews, Seen, between
from himecat.memory import give_back
from himecat.parallel import Stopped, one_blas_thread, run_all, stop_requested

FloatArray = npt.NDArray[np.float32]

_BATCH = 2048
# Documents are dealt to this many parts; each part is judged by classifiers trained on the others.
_PARTS = 3
_PENALTY = 2.0
# How many documents' worth of a leaf's direction come from all leaves below its parent.
_KIN = 1.0
_LABELLED_WEIGHT = 5.0
# Sharpness of the labels that the linear classifiers learn from: nearly one leaf each.
_DECIDED = 4.0
# Where the leaves' frequencies cannot be estimated: between counting every document once (0), which lets large
# leaves grow, and every leaf once (1).
_BALANCE = 0.5
# Mass spread evenly over the leaves, as a share of the documents' own.
_EVEN_SHARE = 0.1
# A leaf's documents count at most so many times more or less, to bring the leaf to its frequency.
_MOST = 5.0
# Documents x leaves above which labelled documents are held out in three goes instead of five.
_LARGE = 1_000_000
# Unlabelled documents that take part while labelled ones are held out.
_ENOUGH = 12_000


@dataclass(frozen=True)
class FusedSettings:
    """How the classifier is trained; see :class:`himecat.parameters.Settings` for the meaning.

    Examples
    --------
    >>> FusedSettings().em_rounds
    2
    """

    concentration: float = 30.0
    em_rounds: int = 2
    learn_prior: bool = True
    self_training: int = 2
    calibrated: bool = True
    use_hierarchy: bool = True


@dataclass(frozen=True)
class Scorer:
    """Scores of the leaves for documents in their views; three opinions, each on the same scale.

    Attributes
    ----------
    directions, log_prior, concentration
        The mixture.
    text_weights, feature_weights : arrays
        The linear classifiers over text directions and over plain features; empty without self-training.
    scales : tuple of float
        What the three are divided by.
    """

    directions: FloatArray
    log_prior: FloatArray
    concentration: float
    text_weights: FloatArray
    feature_weights: FloatArray
    scales: tuple[float, float, float]

    def scores(self, seen: Seen) -> FloatArray:
        """One row per document, one column per leaf."""
        found = np.asarray(seen.whole @ self.directions.T, dtype=np.float32)
        found *= np.float32(self.concentration)
        found += self.log_prior
        found /= np.float32(self.scales[0])
        if len(self.text_weights):
            part = seen.text @ self.text_weights
            part /= np.float32(self.scales[1])
            found += part
            part = seen.features @ self.feature_weights
            part /= np.float32(self.scales[2])
            found += part
        return found


@dataclass(frozen=True)
class FusedClassifier:
    """A fitted default classifier.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    views : DocumentViews
        How documents are seen.
    scorer : Scorer
        How the leaves are scored.
    calibration : Calibration
        How scores become probabilities.
    """

    taxonomy: Taxonomy
    views: DocumentViews
    scorer: Scorer
    calibration: Calibration

    def place(self, corpus: Corpus, *, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document."""
        starts = range(0, len(corpus), _BATCH)

        def batch_job(start: int) -> Callable[[], FloatArray]:
            def job() -> FloatArray:
                seen = self.views.see(between(corpus, start, start + _BATCH), batches=len(starts))
                return self.calibration.probabilities(self.taxonomy, self.scorer.scores(seen))

            return job

        parts = run_all([batch_job(start) for start in starts], threads)
        return np.concatenate([np.zeros((0, self.taxonomy.n_leaves), dtype=np.float32), *parts])


@dataclass(frozen=True)
class Start:
    """Where self-training starts: the mixture, and what holds it in place."""

    anchors: Anchors
    mixture: Mixture


def start_from(
    taxonomy: Taxonomy,
    seen: Seen,
    supervision: Supervision,
    seeds: tuple[FloatArray, FloatArray],
    settings: FusedSettings,
    *,
    learn_prior: bool,
    log_prior: FloatArray | None = None,
) -> Start:
    """Place all documents by the mixture; with `learn_prior` it finds the leaves' frequencies on its own.

    Parameters
    ----------
    log_prior : array, optional
        Logarithms of the leaves' frequencies, where they are known.
    """
    anchors = gather_anchors(taxonomy, supervision, seen.whole, *seeds)
    mixture = fit_mixture(
        taxonomy,
        anchors,
        seen.whole,
        concentration=settings.concentration,
        rounds=settings.em_rounds,
        learn_prior=learn_prior,
        kin=_KIN if settings.use_hierarchy else 0.0,
        log_prior=log_prior,
    )
    return Start(anchors, mixture)


def fit_scorer(
    seen: Seen,
    start: Start,
    settings: FusedSettings,
    seed: int,
    log_prior: FloatArray | None = None,
    *,
    threads: int = 1,
) -> Scorer:
    """Train on all documents, of which a few are labelled.

    Parameters
    ----------
    log_prior : array, optional
        Logarithms of the leaves' frequencies; without it, the mixture's own are taken.
    """

    def run(jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        # Results are large: no more at once than threads can make. With one, others run beside this fit.
        for first in range(0, len(jobs), threads):
            some = jobs[first : first + threads]
            yield from run_all(some, threads) if threads > 1 else map(_unless_stopped, some)

    anchors, mixture = start.anchors, start.mixture
    found, posterior, prior = mixture.scores, mixture.posterior, mixture.log_prior
    if log_prior is not None and log_prior is not prior:
        found = found + (log_prior - prior)
        posterior, prior = softmax(found), log_prior
        anchors.hold(posterior)
    n = len(posterior)
    scale = _spread(found)
    text, features = np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32)
    scales = (scale, 1.0, 1.0)
    rng = np.random.default_rng(seed)
    parts = rng.integers(min(_PARTS, max(1, n // 2)), size=n)
    parts[anchors.certain] = -1
    for _ in range(settings.self_training):
        weights = (posterior @ _leaf_weights(posterior.sum(axis=0), log_prior)).astype(np.float32)
        weights[anchors.rows] *= _LABELLED_WEIGHT
        (by_text, text), (by_feature, features) = cross_fit(
            [seen.text, seen.features], posterior, weights, parts, _PENALTY, run
        )
        scales = (scale, _spread(by_text), _spread(by_feature))
        # In their own places, because all of these are documents x leaves.
        by_text /= np.float32(scales[1])
        by_feature /= np.float32(scales[2])
        posterior = found / np.float32(scales[0])
        posterior += by_text
        posterior += by_feature
        del by_text, by_feature
        posterior *= np.float32(_DECIDED)
        softmax_in_place(posterior)
        anchors.hold(posterior)
    return Scorer(mixture.directions, prior, settings.concentration, text, features, scales)


def _leaf_weights(mass: FloatArray, log_prior: FloatArray | None) -> FloatArray:
    """How much the documents of each leaf count, given how many seem to belong to it."""
    even = _EVEN_SHARE * mass.mean()
    if log_prior is None:
        return np.asarray((mass.mean() / (mass + even)) ** _BALANCE, dtype=np.float32)
    wanted = softmax(log_prior[None])[0] * mass.sum()
    return np.asarray(np.clip((wanted + even) / (mass + even), 1 / _MOST, _MOST), dtype=np.float32)


def _unless_stopped(job: Callable[[], Any]) -> Any:
    """Ends a fit that nobody waits for any more."""
    if stop_requested():
        raise Stopped
    return job()


def _spread(scores: FloatArray) -> float:
    return max(float(scores.std()), 1e-6)


def fit_fused(
    taxonomy: Taxonomy,
    views: DocumentViews,
    seen: Seen,
    supervision: Supervision,
    seeds: tuple[FloatArray, FloatArray],
    settings: FusedSettings,
    *,
    seed: int = 0,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
) -> FusedClassifier:
    """Train the classifier, and learn its calibration from labelled documents held out in turn.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.embedding.views import learn_views
    >>> corpus = read_corpus(["red fox den", "red fox", "old car wheel", "old car"])
    >>> views, seen = learn_views(corpus, [], dimension=3, contexts=9, weigh_words=True, learned_trust=True,
    ...                           seed=0)
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.array([0, 2]), np.array([1, 2]))
    >>> none = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
    >>> model = fit_fused(tree, views, seen, few, none, FusedSettings())
    >>> model.place(corpus).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    held_out = _folds(taxonomy, supervision, len(seen.text), seed) if settings.calibrated else []
    log_prior = None
    calibration = Calibration(TYPICAL_SHARPNESS, (AS_IT_IS,) * max(1, taxonomy.depth))
    if held_out:
        calibration, log_prior = _learn_from_held_out(
            taxonomy, seen, supervision, seeds, settings, held_out, seed, threads, advance
        )
        give_back()

    def place_all() -> Start:
        own = not held_out and settings.learn_prior
        return start_from(taxonomy, seen, supervision, seeds, settings, learn_prior=own, log_prior=log_prior)

    # One product of matrices after the other, in the same order for any number of threads.
    with one_blas_thread():
        start = run_all([place_all], 1)[0]
        if log_prior is None and not settings.learn_prior:
            log_prior = start.mixture.log_prior
        scorer = fit_scorer(seen, start, settings, seed, log_prior, threads=threads)
    if advance is not None:
        advance(1)
    return FusedClassifier(taxonomy, views, scorer, calibration)


def _learn_from_held_out(
    taxonomy: Taxonomy,
    seen: Seen,
    supervision: Supervision,
    seeds: tuple[FloatArray, FloatArray],
    settings: FusedSettings,
    held_out: Sequence[npt.NDArray[np.int64]],
    seed: int,
    threads: int,
    advance: Callable[[int], None] | None,
) -> tuple[Calibration, FloatArray]:
    """The calibration and the leaves' frequencies, from labelled documents that were held out in turn."""
    rows = _enough(supervision, len(seen.text), seed)
    seen = seen if len(rows) == len(seen.text) else _rows_of(seen, rows)
    known = np.searchsorted(rows, supervision.rows)

    def fold_job(fold: npt.NDArray[np.int64]) -> Callable[[], FloatArray]:
        def job() -> FloatArray:
            kept = np.setdiff1d(np.arange(len(supervision)), fold)
            rest = Supervision(known[kept], supervision.nodes[kept])
            start = start_from(taxonomy, seen, rest, seeds, settings, learn_prior=False)
            scorer = fit_scorer(seen, start, settings, seed, start.mixture.log_prior)
            if advance is not None:
                advance(1)
            asked = known[fold] if len(fold) else np.setdiff1d(np.arange(len(rows)), known)
            return scorer.scores(_rows_of(seen, asked))

        return job

    # All leaves equally frequent, as they are among the documents held out once each counts for its leaf's size.
    jobs = [fold_job(fold) for fold in held_out]
    if settings.learn_prior:
        jobs.append(fold_job(np.zeros(0, dtype=np.int64)))
    found = run_all(jobs, threads)
    leaves = taxonomy.leaf_position[supervision.nodes[np.concatenate(held_out)]]
    scores = np.concatenate(found[: len(held_out)])
    size = np.bincount(leaves, minlength=taxonomy.n_leaves)
    calibration = calibrate(taxonomy, scores, leaves, 1.0 / size[leaves])
    log_prior = np.zeros(taxonomy.n_leaves, dtype=np.float32)
    if settings.learn_prior:
        right = float((calibration.logits(scores).argmax(axis=1) == leaves).mean())
        log_prior = log_frequencies(
            calibration.logits(found[-1]), right, len(leaves) / max(1, int((size > 0).sum()))
        )
    # Documents held out count as their leaves' share of all.
    weights = np.exp(log_prior)[leaves] / size[leaves]
    return settle_surest(taxonomy, calibration, scores, leaves, weights), log_prior


def _enough(supervision: Supervision, n_documents: int, seed: int) -> npt.NDArray[np.int64]:
    """Rows among which documents are held out: all labelled ones, and as many others as tell enough."""
    others = np.setdiff1d(np.arange(n_documents), supervision.rows)
    if len(others) > _ENOUGH:
        others = np.random.default_rng(seed).choice(others, _ENOUGH, replace=False)
    return np.union1d(others, supervision.rows)


def count_fits(
    taxonomy: Taxonomy, supervision: Supervision, n_documents: int, settings: FusedSettings, seed: int = 0
) -> int:
    """How often the classifier is trained in all.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> count_fits(tree, Supervision(np.array([0, 2]), np.array([1, 2])), 4, FusedSettings())
    1
    """
    held_out = _folds(taxonomy, supervision, n_documents, seed) if settings.calibrated else []
    return 1 + len(held_out) + (1 if held_out and settings.learn_prior else 0)


def _folds(
    taxonomy: Taxonomy, supervision: Supervision, n_documents: int, seed: int
) -> list[npt.NDArray[np.int64]]:
    """Positions in the supervision to hold out in turn; every leaf keeps at least one labelled document."""
    count = 3 if min(n_documents, _ENOUGH) * taxonomy.n_leaves > _LARGE else 5
    rng = np.random.default_rng(seed)
    leaves = taxonomy.leaf_position[supervision.nodes]
    fold_of = np.full(len(supervision), -1, dtype=np.int64)
    for leaf in range(taxonomy.n_leaves):
        own = rng.permutation(np.flatnonzero(leaves == leaf))
        if len(own) > 1:
            fold_of[own] = (np.arange(len(own)) + rng.integers(count)) % count
    folds = [np.flatnonzero(fold_of == fold) for fold in range(count)]
    return [fold for fold in folds if len(fold)] if (fold_of >= 0).sum() >= 20 else []


def _rows_of(seen: Seen, rows: npt.NDArray[np.int64]) -> Seen:
    return Seen(seen.text[rows], seen.whole[rows], seen.features[rows])
