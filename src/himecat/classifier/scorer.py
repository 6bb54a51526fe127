"""Scores of the leaves: a mixture over the sphere and linear classifiers, self-trained on all documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.linear import cross_fit
from himecat.classifier.mixture import (
    Anchors,
    Whitened,
    fit_mixture,
    gather_anchors,
    softmax,
    softmax_in_place,
    whiten,
)
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default
from himecat.runtime.threads import Stopped, run_parallel, stop_requested
from himecat.views.base import State
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import check_shapes

FloatArray = npt.NDArray[np.float32]
Seeds = tuple[FloatArray, FloatArray]
"""Summed seed directions of each leaf, and how many documents they count as."""

MIXTURE, TEXT, FEATURES, APART = OPINIONS = ("mixture", "text", "features", "ngrams")
"""What has an opinion of a document: the mixture, and linear classifiers over directions and features."""
USUAL_WEIGHTS = {MIXTURE: 1.0, TEXT: 0.5, FEATURES: 1.3, APART: 1.0}
"""Weights of the opinions where none are learned; the mean of their prior elsewhere."""
MIXTURE_TEMPERATURE = 1.7
"""Inverse temperature of the mixture's scores, at a standard deviation of 1, where none is learned."""

# Folds of the cross-fitting: each is scored by classifiers trained on the others.
_FOLDS = 3
_PENALTY = 2.0
# How many documents' worth of a leaf's direction come from all leaves below its parent.
_SIBLING_MASS = 1.0
_LABELLED_WEIGHT = 5.0
# How much surer than calibrated probabilities the labels are that linear classifiers learn from.
_SHARPENED = 2.5
# Where the label prior cannot be estimated: between counting every document once (0), which lets large leaves grow,
# and every leaf once (1).
_BALANCE = 0.5
# Smoothing of the leaves' masses, as a share of their mean.
_SMOOTHING = 0.1
# Limit of the factor by which a leaf's documents are reweighted to its prior.
_MAX_FACTOR = 5.0
# With more leaves, the sparse classifier works group by group.
_MANY_LEAVES = 200


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
    """

    inverse_temperature: float = MIXTURE_TEMPERATURE
    bias: FloatArray | None = None
    log_prior: FloatArray | None = None


@dataclass(frozen=True)
class Scorer:
    """The weighted sum of several opinions, each divided by its standard deviation.

    Attributes
    ----------
    directions, log_prior, concentration
        The mixture: mean direction of each leaf, what is added at each leaf, and the concentration.
    text_weights, feature_weights, apart_weights : arrays
        The linear classifiers over text directions, over features, and over those that stand apart; empty where
        there is none.
    scales : mapping of str to float
        What each opinion is divided by.
    weights : mapping of str to float
        How much each counts.
    whitened : Whitened, optional
        The mixture after whitening; older models have none.
    """

    directions: FloatArray
    log_prior: FloatArray
    concentration: float
    text_weights: FloatArray
    feature_weights: FloatArray
    scales: Mapping[str, float]
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(OPINIONS, 1.0))
    apart_weights: FloatArray = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    whitened: Whitened | None = None

    def opinions(self, vectors: DocumentVectors) -> Iterator[tuple[str, FloatArray]]:
        """Each opinion by its name: one row per document, one column per leaf."""
        if self.whitened is None:
            found = np.asarray(vectors.smoothed @ self.directions.T, dtype=np.float32)
            found *= np.float32(self.concentration)
        else:
            found = self.whitened.scores(vectors.smoothed, self.concentration)
        found += self.log_prior
        found /= np.float32(self.scales[MIXTURE])
        yield MIXTURE, found
        for name, rows, weights in (
            (TEXT, vectors.text, self.text_weights),
            (FEATURES, vectors.features, self.feature_weights),
            (APART, vectors.apart, self.apart_weights),
        ):
            if len(weights):
                part = np.asarray(rows @ weights, dtype=np.float32)
                part /= np.float32(self.scales[name])
                yield name, part

    def scores(self, vectors: DocumentVectors) -> FloatArray:
        """One row per document, one column per leaf."""
        total: FloatArray | None = None
        for name, part in self.opinions(vectors):
            if self.weights[name] != 1.0:
                part *= np.float32(self.weights[name])
            if total is None:
                total = part
            else:
                total += part
        assert total is not None
        return total

    def state(self) -> State:
        """What a model folder keeps."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        if self.whitened is not None:
            arrays |= {"whitener": self.whitened.whitener, "whitened": self.whitened.directions}
        settings = {"concentration": self.concentration, "scales": dict(self.scales)}
        return {**settings, "weights": dict(self.weights)}, arrays

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The scorer again."""
        scales, weights = settings["scales"], settings.get("weights", dict.fromkeys(OPINIONS, 1.0))
        if not isinstance(scales, Mapping):
            # Folders of format 5 and before have three opinions of the same weight.
            scales = dict(zip((MIXTURE, TEXT, FEATURES), scales, strict=True))
        numbers = [*scales.values(), *weights.values(), settings["concentration"]]
        if not np.isfinite(numbers).all():
            raise ValueError("a setting of the classifier is not a number")
        parts = {name: arrays[name] for name in _ARRAYS if name in arrays}
        whitened = Whitened(arrays["whitener"], arrays["whitened"]) if "whitener" in arrays else None
        concentration = settings["concentration"]
        return cls(**parts, concentration=concentration, scales=scales, weights=weights, whitened=whitened)

    def check(self, taxonomy: Taxonomy, views: Views) -> None:
        """Raise a `ValueError` where the weights fit neither the tree nor the views."""
        n_leaves, dimension = taxonomy.n_leaves, views.dimension
        expected = {
            "directions": (self.directions, (n_leaves, dimension)),
            "log_prior": (self.log_prior, (n_leaves,)),
        }
        used = {MIXTURE}
        for name, weights, rows in (
            (TEXT, self.text_weights, dimension),
            (FEATURES, self.feature_weights, views.n_features),
            (APART, self.apart_weights, views.n_apart),
        ):
            if weights.size:
                expected[name] = (weights, (rows, n_leaves))
                used.add(name)
        if self.whitened is not None:
            expected["whitener"] = (self.whitened.whitener, (dimension, dimension))
            expected["whitened"] = (self.whitened.directions, (n_leaves, dimension))
        check_shapes(expected)
        if not (used <= set(self.scales) and used <= set(self.weights)):
            raise ValueError("an opinion of the classifier has no weight")


_ARRAYS = ("directions", "log_prior", "text_weights", "feature_weights", "apart_weights")


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
) -> Located:
    """Fit the mixture; `learn_prior`: by EM, together with the label prior."""
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
    )
    directions, log_prior, posterior, scores = mixture
    del mixture, scores
    whitened = whiten(taxonomy, supervision, rows, seeds, posterior, sibling_mass=sibling_mass)
    del posterior
    scores = whitened.scores(rows, method.leaf_concentration)
    scale = _deviation(scores)
    scores /= np.float32(scale)
    return Located(anchors, directions, log_prior, whitened, scale, scores)


def fit_scorer(
    taxonomy: Taxonomy,
    vectors: DocumentVectors,
    supervision: Supervision,
    seeds: Seeds,
    method: Default,
    *,
    seed: int,
    learn_prior: bool = False,
    correction: Correction | None = None,
    weights: Mapping[str, float] | None = None,
    threads: int = 1,
) -> Scorer:
    """Train on all documents, of which a few are labelled.

    Parameters
    ----------
    learn_prior : bool
        Whether the mixture estimates the label prior by EM.
    correction : Correction, optional
        What cross-validation has learned about the mixture's scores.
    weights : mapping of str to float, optional
        How much each opinion counts.
    """

    def run(jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        # Results are large: no more at once than there are threads. With one, other fits run at the same time.
        for first in range(0, len(jobs), threads):
            some = jobs[first : first + threads]
            yield from run_parallel(some, threads) if threads > 1 else map(_unless_stopped, some)

    found = locate(taxonomy, vectors, supervision, seeds, method, learn_prior=learn_prior)
    known = correction or Correction(log_prior=found.log_prior if learn_prior else None)
    used = dict(weights or USUAL_WEIGHTS)
    logits, anchors, scale = found.scores, found.anchors, found.scale
    offset = np.zeros(taxonomy.n_leaves, dtype=np.float32)
    for part in (known.bias, known.log_prior):
        if part is not None:
            offset += part
    logits *= np.float32(known.inverse_temperature)
    logits += offset
    linear = {TEXT: vectors.text, FEATURES: vectors.features, APART: vectors.apart}
    linear = {name: rows for name, rows in linear.items() if rows is not None and method.self_training}
    scales = {MIXTURE: scale / known.inverse_temperature, **dict.fromkeys(linear, 1.0)}
    learned = {name: np.zeros((0, 0), np.float32) for name in (TEXT, FEATURES, APART)}
    groups = leaf_groups(taxonomy) if method.use_hierarchy else ()
    n = len(logits)
    folds = np.random.default_rng(seed).integers(min(_FOLDS, max(1, n // 2)), size=n)
    folds[anchors.certain] = -1
    posterior = softmax_in_place(logits * np.float32(_SHARPENED))
    anchors.clamp(posterior)
    for rounds_left in reversed(range(method.self_training)):
        of_leaf = _leaf_weights(posterior.sum(axis=0), None if learn_prior else offset_prior(known, offset))
        counted = (posterior @ of_leaf).astype(np.float32)
        counted[anchors.rows] *= _LABELLED_WEIGHT
        results = cross_fit(
            list(linear.values()),
            posterior,
            counted,
            folds,
            _PENALTY,
            run,
            groups,
            want_weights=rounds_left == 0,
        )
        # In place, because all of these are documents x leaves.
        posterior = logits * np.float32(used[MIXTURE])
        for name, result in zip(linear, results, strict=True):
            scales[name] = _deviation(result.scores)
            part = result.scores
            part *= np.float32(used.get(name, 0.0) / scales[name])
            posterior += part
            learned[name] = result.weights
        del results
        if rounds_left:
            posterior *= np.float32(_SHARPENED / max(used[MIXTURE], 1e-3))
            softmax_in_place(posterior)
            anchors.clamp(posterior)
    return Scorer(
        found.directions,
        offset * np.float32(scales[MIXTURE]),
        method.leaf_concentration,
        learned[TEXT],
        learned[FEATURES],
        scales,
        {name: used.get(name, 0.0) for name in scales},
        learned[APART],
        found.whitened,
    )


def offset_prior(known: Correction, like: FloatArray) -> FloatArray:
    """The logarithms of the label prior, or those of a uniform one."""
    return np.zeros_like(like) if known.log_prior is None else known.log_prior


def leaf_groups(taxonomy: Taxonomy, many: int = _MANY_LEAVES) -> tuple[npt.NDArray[np.int64], ...]:
    """The leaves below each of a few nodes, as positions; nothing where leaves are few or the tree is flat.

    The nodes are found from the root down, the largest being replaced by its children, until neither they nor
    the leaves below one of them are many.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([(a, a + b) for a in "abcd" for b in "stuvw"])
    >>> [group.tolist() for group in leaf_groups(tree, many=10)][:2], leaf_groups(tree)
    ([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], ())
    """
    if taxonomy.n_leaves <= many:
        return ()
    size = taxonomy.leaf_counts.tolist()
    nodes, enough = list(taxonomy.children[0]), 2 * float(np.sqrt(taxonomy.n_leaves))
    while len(nodes) < enough:
        # A group that falls into single leaves is none.
        wide = [node for node in nodes if size[node] > max(enough, len(taxonomy.children[node]))]
        if not wide:
            break
        place = nodes.index(max(wide, key=size.__getitem__))
        nodes[place : place + 1] = taxonomy.children[nodes[place]]
    if len(nodes) + max(size[node] for node in nodes) > taxonomy.n_leaves / 2:
        return ()
    return tuple(taxonomy.positions_under(node) for node in nodes)


def _leaf_weights(mass: FloatArray, log_prior: FloatArray | None) -> FloatArray:
    """How much the documents of each leaf count, given how many seem to belong to it."""
    smoothing = _SMOOTHING * mass.mean()
    if log_prior is None:
        return np.asarray((mass.mean() / (mass + smoothing)) ** _BALANCE, dtype=np.float32)
    wanted = softmax(log_prior[None])[0] * mass.sum()
    factor = (wanted + smoothing) / (mass + smoothing)
    return np.asarray(np.clip(factor, 1 / _MAX_FACTOR, _MAX_FACTOR), dtype=np.float32)


def _unless_stopped(job: Callable[[], Any]) -> Any:
    """Run a job, unless another one failed meanwhile."""
    if stop_requested():
        raise Stopped
    return job()


def _deviation(scores: FloatArray) -> float:
    return max(float(scores.std()), 1e-6)
