"""Scores of the leaves: a mixture over the sphere and two linear classifiers, self-trained on all documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.linear import cross_fit
from himecat.classifier.mixture import fit_mixture, gather_anchors, softmax, softmax_in_place
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

# Folds of the cross-fitting: each is scored by classifiers trained on the others.
_FOLDS = 3
_PENALTY = 2.0
# How many documents' worth of a leaf's direction come from all leaves below its parent.
_SIBLING_MASS = 1.0
_LABELLED_WEIGHT = 5.0
# Inverse temperature of the labels that the linear classifiers learn from: nearly one leaf each.
_INVERSE_TEMPERATURE = 4.0
# Where the label prior cannot be estimated: between counting every document once (0), which lets large leaves grow,
# and every leaf once (1).
_BALANCE = 0.5
# Smoothing of the leaves' masses, as a share of their mean.
_SMOOTHING = 0.1
# Limit of the factor by which a leaf's documents are reweighted to its prior.
_MAX_FACTOR = 5.0
# With more leaves, the sparse classifier works group by group.
_MANY_LEAVES = 200


@dataclass(frozen=True)
class Scorer:
    """The sum of three scores, each divided by its standard deviation.

    Attributes
    ----------
    directions, log_prior, concentration
        The mixture.
    text_weights, feature_weights : arrays
        The linear classifiers over text directions and over features; empty without self-training.
    scales : tuple of float
        What the three are divided by.
    """

    directions: FloatArray
    log_prior: FloatArray
    concentration: float
    text_weights: FloatArray
    feature_weights: FloatArray
    scales: tuple[float, float, float]

    def scores(self, vectors: DocumentVectors) -> FloatArray:
        """One row per document, one column per leaf."""
        found = np.asarray(vectors.smoothed @ self.directions.T, dtype=np.float32)
        found *= np.float32(self.concentration)
        found += self.log_prior
        found /= np.float32(self.scales[0])
        if len(self.text_weights):
            part = vectors.text @ self.text_weights
            part /= np.float32(self.scales[1])
            found += part
            part = vectors.features @ self.feature_weights
            part /= np.float32(self.scales[2])
            found += part
        return found

    def state(self) -> State:
        """What a model folder keeps."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return {"concentration": self.concentration, "scales": list(self.scales)}, arrays

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The scorer again."""
        first, second, third = settings["scales"]
        if not np.isfinite([first, second, third, settings["concentration"]]).all():
            raise ValueError("a setting of the classifier is not a number")
        parts = {name: arrays[name] for name in _ARRAYS}
        return cls(**parts, concentration=settings["concentration"], scales=(first, second, third))

    def check(self, taxonomy: Taxonomy, views: Views) -> None:
        """Raise a `ValueError` where the weights fit neither the tree nor the views."""
        n_leaves, dimension = taxonomy.n_leaves, views.dimension
        # Without self-training there are no linear classifiers.
        trained = self.text_weights.size > 0 or self.feature_weights.size > 0
        check_shapes(
            {
                "directions": (self.directions, (n_leaves, dimension)),
                "log_prior": (self.log_prior, (n_leaves,)),
                "text_weights": (self.text_weights, (dimension, n_leaves) if trained else (0, 0)),
                "feature_weights": (
                    self.feature_weights,
                    (views.n_features, n_leaves) if trained else (0, 0),
                ),
            }
        )


_ARRAYS = ("directions", "log_prior", "text_weights", "feature_weights")


def fit_scorer(
    taxonomy: Taxonomy,
    vectors: DocumentVectors,
    supervision: Supervision,
    seeds: Seeds,
    method: Default,
    *,
    seed: int,
    learn_prior: bool = False,
    log_prior: FloatArray | None = None,
    threads: int = 1,
) -> Scorer:
    """Train on all documents, of which a few are labelled.

    Parameters
    ----------
    learn_prior : bool
        Whether the mixture estimates the label prior by EM.
    log_prior : array, optional
        Logarithms of the label prior at the start; without it, all leaves are equally probable.
    """

    def run(jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        # Results are large: no more at once than there are threads. With one, other fits run at the same time.
        for first in range(0, len(jobs), threads):
            some = jobs[first : first + threads]
            yield from run_parallel(some, threads) if threads > 1 else map(_unless_stopped, some)

    anchors = gather_anchors(taxonomy, supervision, vectors.smoothed, *seeds)
    mixture = fit_mixture(
        taxonomy,
        anchors,
        vectors.smoothed,
        concentration=method.leaf_concentration,
        rounds=method.em_rounds,
        learn_prior=learn_prior,
        sibling_mass=_SIBLING_MASS if method.use_hierarchy else 0.0,
        log_prior=log_prior,
    )
    groups = leaf_groups(taxonomy) if method.use_hierarchy else ()
    directions, log_prior, posterior, scores = mixture
    # Else the mixture would hold its posterior while self-training replaces it.
    del mixture
    known_prior = None if learn_prior else log_prior
    n = len(posterior)
    text_weights, feature_weights = np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32)
    scales = (_deviation(scores), 1.0, 1.0)
    rng = np.random.default_rng(seed)
    folds = rng.integers(min(_FOLDS, max(1, n // 2)), size=n)
    folds[anchors.certain] = -1
    for rounds_left in reversed(range(method.self_training)):
        weights = (posterior @ _leaf_weights(posterior.sum(axis=0), known_prior)).astype(np.float32)
        weights[anchors.rows] *= _LABELLED_WEIGHT
        on_text, on_features = cross_fit(
            [vectors.text, vectors.features],
            posterior,
            weights,
            folds,
            _PENALTY,
            run,
            groups,
            want_weights=rounds_left == 0,
        )
        by_text, by_features = on_text.scores, on_features.scores
        text_weights, feature_weights = on_text.weights, on_features.weights
        scales = (scales[0], _deviation(by_text), _deviation(by_features))
        # In place, because all of these are documents x leaves.
        by_text /= np.float32(scales[1])
        by_features /= np.float32(scales[2])
        posterior = scores / np.float32(scales[0])
        posterior += by_text
        posterior += by_features
        del on_text, on_features, by_text, by_features
        posterior *= np.float32(_INVERSE_TEMPERATURE)
        softmax_in_place(posterior)
        anchors.clamp(posterior)
    return Scorer(
        directions,
        log_prior,
        method.leaf_concentration,
        text_weights,
        feature_weights,
        scales,
    )


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
