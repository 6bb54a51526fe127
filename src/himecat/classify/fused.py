"""The default classifier: a mixture over the sphere and two self-trained linear classifiers, added and calibrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classify.calibration import AS_IT_IS, TYPICAL_SHARPNESS, Calibration, calibrate
from himecat.classify.linear import cross_fit
from himecat.classify.mixture import fit_mixture, gather_anchors, softmax
from himecat.corpus.columns import Corpus, Supervision
from himecat.corpus.taxonomy import Taxonomy
from himecat.embedding.views import DocumentViews, Seen
from himecat.parallel import Stopped, run_all, stop_requested

FloatArray = npt.NDArray[np.float32]

_BATCH = 4096
# Documents are dealt to this many parts; each part is judged by classifiers trained on the others.
_PARTS = 3
_PENALTY = 2.0
# How many documents' worth of a leaf's direction come from all leaves below its parent.
_KIN = 1.0
_LABELLED_WEIGHT = 5.0
# Sharpness of the labels that the linear classifiers learn from: nearly one leaf each.
_DECIDED = 4.0
# Between counting every document once (0), which lets large leaves grow, and every leaf once (1).
_BALANCE = 0.5
# Documents x leaves above which labelled documents are held out in three goes instead of five.
_LARGE = 1_000_000


@dataclass(frozen=True)
class FusedSettings:
    """How the classifier is trained; see :class:`himecat.parameters.Settings` for the meaning.

    Examples
    --------
    >>> FusedSettings().em_rounds
    5
    """

    concentration: float = 30.0
    em_rounds: int = 5
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
        by_mixture = np.float32(self.concentration) * (seen.whole @ self.directions.T) + self.log_prior
        found = by_mixture / np.float32(self.scales[0])
        if len(self.text_weights):
            found = found + (seen.text @ self.text_weights) / np.float32(self.scales[1])
            found = found + (seen.features @ self.feature_weights) / np.float32(self.scales[2])
        return np.asarray(found, dtype=np.float32)


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

        def batch_job(start: int) -> Callable[[], FloatArray]:
            def job() -> FloatArray:
                rows = np.arange(start, min(start + _BATCH, len(corpus)))
                scores = self.scorer.scores(self.views.see(corpus.take(rows)))
                return self.calibration.probabilities(self.taxonomy, scores)

            return job

        parts = run_all([batch_job(start) for start in range(0, len(corpus), _BATCH)], threads)
        return np.concatenate([np.zeros((0, self.taxonomy.n_leaves), dtype=np.float32), *parts])


def fit_scorer(
    taxonomy: Taxonomy,
    seen: Seen,
    supervision: Supervision,
    seeds: tuple[FloatArray, FloatArray],
    settings: FusedSettings,
    seed: int,
) -> tuple[Scorer, FloatArray]:
    """Train on all documents, of which a few are labelled; also returns where each document belongs."""
    anchors = gather_anchors(taxonomy, supervision, seen.whole, *seeds)
    mixture = fit_mixture(
        taxonomy,
        anchors,
        seen.whole,
        concentration=settings.concentration,
        rounds=settings.em_rounds,
        learn_prior=settings.learn_prior,
        kin=_KIN if settings.use_hierarchy else 0.0,
    )
    posterior = mixture.posterior
    scale = _spread(mixture.scores)
    text, features = np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32)
    scales = (scale, 1.0, 1.0)
    rng = np.random.default_rng(seed)
    parts = rng.integers(min(_PARTS, max(1, len(posterior) // 2)), size=len(posterior))
    parts[anchors.certain] = -1
    for _ in range(settings.self_training):
        mass = posterior.sum(axis=0) + 0.1 * len(posterior) / taxonomy.n_leaves
        weights = (posterior @ ((mass.mean() / mass) ** _BALANCE)).astype(np.float32)
        weights[anchors.rows] *= _LABELLED_WEIGHT
        by_text, text = cross_fit(seen.text, posterior, weights, parts, _PENALTY, _go_on)
        by_feature, features = cross_fit(seen.features, posterior, weights, parts, _PENALTY, _go_on)
        scales = (scale, _spread(by_text), _spread(by_feature))
        total = mixture.scores / scales[0] + by_text / scales[1] + by_feature / scales[2]
        posterior = softmax(np.float32(_DECIDED) * total)
        anchors.hold(posterior)
    scorer = Scorer(mixture.directions, mixture.log_prior, settings.concentration, text, features, scales)
    return scorer, posterior


def _go_on() -> None:
    """Ends a fit that nobody waits for any more."""
    if stop_requested():
        raise Stopped


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

    def fold_job(fold: npt.NDArray[np.int64]) -> Callable[[], tuple[Any, FloatArray]]:
        def job() -> tuple[Any, FloatArray]:
            kept = np.setdiff1d(np.arange(len(supervision)), fold)
            rest = Supervision(supervision.rows[kept], supervision.nodes[kept])
            scorer, posterior = fit_scorer(taxonomy, seen, rest, seeds, settings, seed)
            if advance is not None:
                advance(1)
            if not len(fold):
                return scorer, posterior
            return None, scorer.scores(_rows_of(seen, supervision.rows[fold]))

        return job

    nothing = np.zeros(0, dtype=np.int64)
    found = run_all([fold_job(fold) for fold in [nothing, *held_out]], threads)
    scorer = found[0][0]
    calibration = Calibration(TYPICAL_SHARPNESS, (AS_IT_IS,) * max(1, taxonomy.depth))
    if held_out:
        chosen = np.concatenate(held_out)
        leaves = taxonomy.leaf_position[supervision.nodes[chosen]]
        scores = np.concatenate([part for _, part in found[1:]])
        calibration = calibrate(taxonomy, scores, leaves)
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
    return 1 + (len(_folds(taxonomy, supervision, n_documents, seed)) if settings.calibrated else 0)


def _folds(
    taxonomy: Taxonomy, supervision: Supervision, n_documents: int, seed: int
) -> list[npt.NDArray[np.int64]]:
    """Positions in the supervision to hold out in turn; every leaf keeps at least one labelled document."""
    count = 3 if n_documents * taxonomy.n_leaves > _LARGE else 5
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


def state_of(model: FusedClassifier) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What a model folder keeps of a classifier, word vectors aside: plain values and arrays."""
    views, scorer = model.views, model.scorer
    arrays: dict[str, npt.NDArray[Any]] = {
        "word_weights": views.weights,
        "word_rarity": views.rarity,
        "centre": views.centre,
        "leaf_directions": scorer.directions,
        "log_prior": scorer.log_prior,
        "text_weights": scorer.text_weights,
        "feature_weights": scorer.feature_weights,
    }
    if views.encoder_centre is not None:
        arrays["encoder_centre"] = views.encoder_centre
    for kind, one in views.trust.items():
        for name in ("likeness", "counts", "rows", "sums"):
            arrays[f"trust/{kind}/{name}"] = getattr(one, name)
        arrays[f"trust/{kind}/rarity"] = views.value_rarity[kind]
    settings = {
        "trust": {kind: one.trust for kind, one in views.trust.items()},
        "concentration": scorer.concentration,
        "scales": list(scorer.scales),
        "sharpness": model.calibration.sharpness,
        "levels": [list(level) for level in model.calibration.levels],
    }
    return settings, arrays


def from_state(
    taxonomy: Taxonomy, words: FloatArray, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> FusedClassifier:
    """Rebuild a classifier from what a model folder kept."""
    from himecat.embedding.trust import ValueTrust

    trust = {
        kind: ValueTrust(
            float(weight),
            *(arrays[f"trust/{kind}/{name}"] for name in ("likeness", "counts", "rows", "sums")),
        )
        for kind, weight in settings["trust"].items()
    }
    views = DocumentViews(
        words,
        arrays["word_weights"],
        arrays["word_rarity"],
        arrays["centre"],
        trust,
        {kind: arrays[f"trust/{kind}/rarity"] for kind in trust},
        arrays.get("encoder_centre"),
    )
    first, second, third = settings["scales"]
    scorer = Scorer(
        arrays["leaf_directions"],
        arrays["log_prior"],
        settings["concentration"],
        arrays["text_weights"],
        arrays["feature_weights"],
        (first, second, third),
    )
    _check_shapes(taxonomy, views, scorer)
    levels = tuple((float(exponent), float(slips)) for exponent, slips in settings["levels"])
    if len(levels) != max(1, taxonomy.depth):
        raise ValueError(f"the tree has {taxonomy.depth} levels, and {len(levels)} are calibrated")
    if not np.isfinite([*scorer.scales, scorer.concentration, settings["sharpness"]]).all():
        raise ValueError("a setting of the classifier is not a number")
    return FusedClassifier(taxonomy, views, scorer, Calibration(float(settings["sharpness"]), levels))


def _check_shapes(taxonomy: Taxonomy, views: DocumentViews, scorer: Scorer) -> None:
    """Make sure that the parts fit each other, and not only once a document is placed."""
    n_words, length = views.words.shape
    n_leaves = taxonomy.n_leaves
    n_features = n_words + sum(len(rarity) for rarity in views.value_rarity.values())
    # Without self-training there are no linear classifiers.
    trained = scorer.text_weights.size > 0 or scorer.feature_weights.size > 0
    expected: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]] = {
        "word_weights": (views.weights, (n_words,)),
        "word_rarity": (views.rarity, (n_words,)),
        "centre": (views.centre, (length,)),
        "leaf_directions": (scorer.directions, (n_leaves, views.dimension)),
        "log_prior": (scorer.log_prior, (n_leaves,)),
        "text_weights": (scorer.text_weights, (views.dimension, n_leaves) if trained else (0, 0)),
        "feature_weights": (scorer.feature_weights, (n_features, n_leaves) if trained else (0, 0)),
    }
    for kind, one in views.trust.items():
        shared = int((one.rows >= 0).sum())
        n_values = (len(views.value_rarity[kind]),)
        for name in ("likeness", "counts", "rows"):
            expected[f"trust/{kind}/{name}"] = (getattr(one, name), n_values)
        expected[f"trust/{kind}/sums"] = (one.sums, (shared, views.dimension))
    for name, (found, shape) in expected.items():
        if found.shape != shape:
            raise ValueError(
                f"'fused/{name}' should hold {' x '.join(map(str, shape))} numbers, not "
                f"{' x '.join(map(str, found.shape))}"
            )
