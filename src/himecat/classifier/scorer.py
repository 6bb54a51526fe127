"""Scores of the leaves: a mixture over the sphere and linear classifiers, self-trained on all documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.linear import cross_fit, leaf_groups
from himecat.classifier.locate import Correction, Seeds, deviation, locate
from himecat.classifier.mixture import Anchors, Whitened
from himecat.classifier.narrowed import Sizes
from himecat.classifier.votes import DECIDING_VOTES, VOTES, Votes, learn_votes
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default
from himecat.runtime.softmax import softmax, softmax_in_place
from himecat.runtime.threads import Stopped, run_parallel, stop_requested
from himecat.views.base import State
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import check_shapes

FloatArray = npt.NDArray[np.float32]
MIXTURE, TEXT, FEATURES, APART = OPINIONS = ("mixture", "text", "features", "ngrams")
"""What has an opinion of a document: the mixture, and linear classifiers over directions and features."""
USUAL_WEIGHTS = {MIXTURE: 1.0, TEXT: 0.5, FEATURES: 1.3, APART: 1.0}
"""Weights of the opinions where none are learned; the mean of their prior elsewhere."""
# Folds of the cross-fitting: each is scored by classifiers trained on the others.
_FOLDS = 3
# Inverse temperature of the weighted sum of opinions that documents vote with.
_VOTING_TEMPERATURE = 0.5
_PENALTY = 2.0
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
    votes : Votes, optional
        What documents that share metadata values say of each other.
    votes_teach : bool
        Whether linear classifiers have learned from that, too.
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
    votes: Votes | None = None
    votes_teach: bool = False

    def opinions(self, vectors: DocumentVectors) -> Iterator[tuple[str, FloatArray]]:
        """Each opinion by its name: one row per document, one column per leaf."""
        heard = np.zeros((len(vectors), len(self.log_prior)), dtype=np.float32)
        for name, part in self._opinions(vectors):
            if self.votes is not None and name in self._voting:
                heard += part * np.float32(_VOTING_TEMPERATURE * USUAL_WEIGHTS[name])
            yield name, part
        if self.votes is not None:
            yield from self.votes.opinions(vectors.groups, vectors.fingerprints, softmax_in_place(heard))

    def texts(self, vectors: DocumentVectors) -> FloatArray:
        """Probabilities of the leaves by the texts alone: what documents vote with."""
        heard = np.zeros((len(vectors), len(self.log_prior)), dtype=np.float32)
        for name, part in self._opinions(vectors, self._voting):
            part *= np.float32(_VOTING_TEMPERATURE * USUAL_WEIGHTS[name])
            heard += part
        return softmax_in_place(heard)

    @property
    def _voting(self) -> tuple[str, ...]:
        trained = {TEXT: self.text_weights, APART: self.apart_weights}
        return tuple(name for name, weights in trained.items() if len(weights)) or (MIXTURE,)

    def _opinions(
        self, vectors: DocumentVectors, wanted: Sequence[str] = OPINIONS
    ) -> Iterator[tuple[str, FloatArray]]:
        if MIXTURE in wanted:
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
            if len(weights) and name in wanted:
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
        settings: dict[str, Any] = {"concentration": self.concentration, "scales": dict(self.scales)}
        if self.votes is not None:
            settings["votes"], own = self.votes.state()
            settings["votes_teach"] = self.votes_teach
            arrays |= {f"votes/{name}": array for name, array in own.items()}
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
        votes = None
        if "votes" in settings:
            own = {name.removeprefix("votes/"): array for name, array in arrays.items()}
            votes = Votes.from_state(settings["votes"], own)
        concentration = settings["concentration"]
        return cls(
            **parts,
            concentration=concentration,
            scales=scales,
            weights=weights,
            whitened=whitened,
            votes=votes,
            votes_teach=bool(settings.get("votes_teach", False)),
        )

    def check(self, taxonomy: Taxonomy, views: Views | Sizes) -> None:
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
        if self.votes is not None:
            self.votes.check(n_leaves, views.n_groups)
            if not {f"{VOTES}{kind}" for kind in self.votes.types} <= set(self.weights):
                raise ValueError("the votes of a metadata type have no weight")
        if not (used <= set(self.scales) and used <= set(self.weights)):
            raise ValueError("an opinion of the classifier has no weight")


_ARRAYS = ("directions", "log_prior", "text_weights", "feature_weights", "apart_weights")


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
    votes_teach: bool = False,
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
    votes_teach : bool
        Whether linear classifiers learn from what documents with the same metadata values say, too.
    """

    def run(jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        # Results are large: no more at once than there are threads. With one, other fits run at the same time.
        for first in range(0, len(jobs), threads):
            some = jobs[first : first + threads]
            yield from run_parallel(some, threads) if threads > 1 else map(_unless_stopped, some)

    evenness = 0.0 if correction is None else correction.evenness
    found = locate(taxonomy, vectors, supervision, seeds, method, learn_prior=learn_prior, evenness=evenness)
    known = correction or Correction(log_prior=found.log_prior if learn_prior else None)
    used = dict(weights or usual_weights(vectors))
    logits, anchors, scale = found.scores, found.anchors, found.scale
    logits *= np.float32(known.inverse_temperature)
    offset = known.offset(logits, anchors.unlabelled(len(logits)))
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
        heard = np.zeros_like(posterior) if rounds_left and votes_teach else None
        for name, result in zip(linear, results, strict=True):
            scales[name] = deviation(result.scores)
            part = result.scores
            if heard is not None and name in (TEXT, APART):
                heard += part * np.float32(_VOTING_TEMPERATURE * USUAL_WEIGHTS[name] / scales[name])
            part *= np.float32(used.get(name, 0.0) / scales[name])
            posterior += part
            learned[name] = result.weights
        del results
        if heard is not None:
            _add_votes(posterior, softmax_in_place(heard), vectors, anchors, used)
        if rounds_left:
            posterior *= np.float32(_SHARPENED / max(used[MIXTURE], 1e-3))
            softmax_in_place(posterior)
            anchors.clamp(posterior)
    scorer = Scorer(
        found.directions,
        offset * np.float32(scales[MIXTURE]),
        method.leaf_concentration,
        learned[TEXT],
        learned[FEATURES],
        scales,
        {name: weight for name, weight in used.items() if name in scales or name.startswith(VOTES)},
        learned[APART],
        found.whitened,
        votes_teach=votes_teach,
    )
    return scorer if not vectors.groups else _with_votes(scorer, vectors, anchors)


def _add_votes(
    total: FloatArray,
    heard: FloatArray,
    vectors: DocumentVectors,
    anchors: Anchors,
    weights: Mapping[str, float],
) -> None:
    """Add to scores what the votes say while the classifiers still learn."""
    anchors.clamp(heard)
    votes = learn_votes(vectors.groups, vectors.fingerprints, heard)
    counted = None if votes is None else votes.only(weights)
    if counted is not None:
        for name, part in counted.opinions(vectors.groups, vectors.fingerprints, heard):
            part *= np.float32(weights[name])
            total += part


def _with_votes(scorer: Scorer, vectors: DocumentVectors, anchors: Anchors) -> Scorer:
    """The documents vote, the labelled ones with what they are known to be."""
    heard = scorer.texts(vectors)
    anchors.clamp(heard)
    votes = learn_votes(vectors.groups, vectors.fingerprints, heard)
    return scorer if votes is None else replace(scorer, votes=votes.only(scorer.weights))


def usual_weights(vectors: DocumentVectors) -> dict[str, float]:
    """The weights of all opinions where none are learned; there the votes of types that may not decide do not count."""
    deciding = {f"{VOTES}{kind}": DECIDING_VOTES for kind, group in vectors.groups.items() if group.decides}
    return USUAL_WEIGHTS | deciding


def offset_prior(known: Correction, like: FloatArray) -> FloatArray:
    """The logarithms of the label prior, or those of a uniform one."""
    return np.zeros_like(like) if known.log_prior is None else known.log_prior


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
