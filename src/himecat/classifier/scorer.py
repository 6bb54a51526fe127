"""Training of the default classifier on all documents, of which a few are labelled: mixture and self-training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.linear import cross_fit
from himecat.classifier.mixture import (
    Anchors,
    Mixture,
    fit_mixture,
    gather_anchors,
    softmax,
    softmax_in_place,
)
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import Stopped, run_parallel, stop_requested
from himecat.views.base import Seen

FloatArray = npt.NDArray[np.float32]

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
# Leaves beyond which they are told apart level by level.
_MANY = 200


@dataclass(frozen=True)
class FusedSettings:
    """How the classifier is trained; see :class:`himecat.methods.Settings` for the meaning.

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
class Start:
    """Where self-training starts: the mixture, what holds it in place, and which leaves stand together."""

    anchors: Anchors
    mixture: Mixture
    groups: tuple[npt.NDArray[np.int64], ...] = ()


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
    return Start(anchors, mixture, leaf_groups(taxonomy) if settings.use_hierarchy else ())


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
            yield from run_parallel(some, threads) if threads > 1 else map(_unless_stopped, some)

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
    for left in reversed(range(settings.self_training)):
        weights = (posterior @ _leaf_weights(posterior.sum(axis=0), log_prior)).astype(np.float32)
        weights[anchors.rows] *= _LABELLED_WEIGHT
        on_text, on_features = cross_fit(
            [seen.text, seen.features],
            posterior,
            weights,
            parts,
            _PENALTY,
            run,
            start.groups,
            want_weights=left == 0,
        )
        by_text, by_feature = on_text.scores, on_features.scores
        text, features = on_text.weights, on_features.weights
        scales = (scale, _spread(by_text), _spread(by_feature))
        # In their own places, because all of these are documents x leaves.
        by_text /= np.float32(scales[1])
        by_feature /= np.float32(scales[2])
        posterior = found / np.float32(scales[0])
        posterior += by_text
        posterior += by_feature
        del on_text, on_features, by_text, by_feature
        posterior *= np.float32(_DECIDED)
        softmax_in_place(posterior)
        anchors.hold(posterior)
    return Scorer(mixture.directions, prior, settings.concentration, text, features, scales)


def leaf_groups(taxonomy: Taxonomy, many: int = _MANY) -> tuple[npt.NDArray[np.int64], ...]:
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
    member = taxonomy.leaf_membership
    size = member.sum(axis=1)
    nodes, enough = list(taxonomy.children[0]), 2 * float(np.sqrt(taxonomy.n_leaves))
    while len(nodes) < enough:
        # A group that falls into single leaves is none.
        wide = [node for node in nodes if size[node] > max(enough, len(taxonomy.children[node]))]
        if not wide:
            break
        place = nodes.index(max(wide, key=lambda node: int(size[node])))
        nodes[place : place + 1] = taxonomy.children[nodes[place]]
    if len(nodes) + max(size[node] for node in nodes) > taxonomy.n_leaves / 2:
        return ()
    return tuple(np.flatnonzero(member[node]) for node in nodes)


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
