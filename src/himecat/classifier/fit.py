"""The default classifier: a mixture over the sphere and two self-trained linear classifiers, added and calibrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import AS_IT_IS, TYPICAL_SHARPNESS, Calibration
from himecat.classifier.cross_validation import folds, learn_from_held_out, wants_frequencies
from himecat.classifier.scorer import FusedSettings, Scorer, Start, fit_scorer, start_from
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import one_blas_thread, release_memory, run_parallel
from himecat.views.base import DocumentViews, Seen

FloatArray = npt.NDArray[np.float32]

_BATCH = 2048


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
                seen = self.views.see(corpus.between(start, start + _BATCH), batches=len(starts))
                return self.calibration.probabilities(self.taxonomy, self.scorer.scores(seen))

            return job

        parts = run_parallel([batch_job(start) for start in starts], threads)
        return np.concatenate([np.zeros((0, self.taxonomy.n_leaves), dtype=np.float32), *parts])


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
    >>> from himecat.views.base import learn_views
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
    held_out = folds(taxonomy, supervision, len(seen.text), seed) if settings.calibrated else []
    log_prior = None
    calibration = Calibration(TYPICAL_SHARPNESS, (AS_IT_IS,) * max(1, taxonomy.depth))
    if held_out:
        calibration, log_prior = learn_from_held_out(
            taxonomy, seen, supervision, seeds, settings, held_out, seed, threads, advance
        )
        release_memory()

    def place_all() -> Start:
        own = not held_out and settings.learn_prior
        return start_from(taxonomy, seen, supervision, seeds, settings, learn_prior=own, log_prior=log_prior)

    # One product of matrices after the other, in the same order for any number of threads.
    with one_blas_thread():
        start = run_parallel([place_all], 1)[0]
        if log_prior is None and not settings.learn_prior:
            log_prior = start.mixture.log_prior
        scorer = fit_scorer(seen, start, settings, seed, log_prior, threads=threads)
    if advance is not None:
        advance(1)
    return FusedClassifier(taxonomy, views, scorer, calibration)


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
    held_out = folds(taxonomy, supervision, n_documents, seed) if settings.calibrated else []
    # Frequencies need one fit with all labels, and one with each half of them.
    estimated = held_out and wants_frequencies(taxonomy, supervision, n_documents, settings)
    return 1 + len(held_out) + (3 if estimated else 0)
