"""Keywords of the leaves, and the von Mises-Fisher mixture of a category's keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Ragged
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.vmf import estimate_concentration, sample_vmf

# Words in more than this share of the labelled documents are not specific enough.
_COMMON_SHARE = 0.2
# A single keyword has no variance, and few have too little.
_CONCENTRATIONS = (1.0, 1000.0)
_EM_STEPS = 20


def keywords_of_leaves(
    documents: Ragged,
    names: Sequence[str],
    rows: npt.NDArray[np.int64],
    leaves: npt.NDArray[np.int64],
    count: int,
) -> dict[int, npt.NDArray[np.int64]]:
    """For every leaf with labelled documents, the words with the largest mean TF-IDF in them.

    Document frequencies are those among the labelled documents. English function words are left out, and so
    are words in more than a fifth of these documents (or more than one leaf's share, if that is larger).

    `rows` are the labelled documents, with their `leaves`; a leaf has at most `count` keywords.

    Examples
    --------
    >>> documents = Ragged.from_lists([[0, 0, 1], [2, 2, 1]])
    >>> found = keywords_of_leaves(documents, ["goal", "new", "law"], np.array([0, 1]), np.array([5, 6]), 1)
    >>> {leaf: words.tolist() for leaf, words in found.items()}
    {5: [0], 6: [2]}
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer

    labelled = documents.take(rows)
    counts = labelled.counts(len(names), dtype=np.float64)
    distinct = np.unique(leaves)
    share = np.bincount(counts.indices, minlength=len(names)) / len(labelled)
    usable = share <= max(_COMMON_SHARE, 1.0 / len(distinct))
    usable &= np.array([name not in ENGLISH_STOP_WORDS for name in names], dtype=np.bool_)
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    found: dict[int, npt.NDArray[np.int64]] = {}
    for leaf in distinct.tolist():
        mean = np.asarray(weights[np.flatnonzero(leaves == leaf)].mean(axis=0)).ravel() * usable
        best = np.argsort(-mean, kind="stable")[:count]
        found[leaf] = best[mean[best] > 0]
    return found


@dataclass(frozen=True)
class Topic:
    """A mixture of von Mises-Fisher distributions over the word space.

    Attributes
    ----------
    means : array of shape (components, p)
        Unit vectors.
    concentrations, shares : arrays of shape (components,)
        Kappa and weight of every component.

    Examples
    --------
    >>> topic = Topic(np.eye(3)[:1], np.array([900.0]), np.array([1.0]))
    >>> draws = topic.draw(5, np.random.default_rng(0))
    >>> draws.shape, bool((draws[:, 0] > 0.9).all())
    ((5, 3), True)
    """

    means: npt.NDArray[np.float64]
    concentrations: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]

    def draw(self, size: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """Draw unit vectors, from a component of its own each."""
        sizes = rng.multinomial(size, self.shares)
        parts = [
            sample_vmf(mean, float(concentration), int(n), rng)
            for mean, concentration, n in zip(self.means, self.concentrations, sizes, strict=True)
        ]
        return np.concatenate(parts)


def fit_topic(groups: Sequence[npt.NDArray[np.int64]], vectors: npt.NDArray[np.float32]) -> Topic:
    """Fit a mixture with one component per group of keywords, by expectation maximisation.

    Every component begins at its own keywords; a word may then move to a neighbouring one.

    Parameters
    ----------
    groups : sequence of arrays
        Word ids; none of the groups is empty.
    vectors : array
        Unit vectors of the words.

    Examples
    --------
    >>> topic = fit_topic([np.array([0]), np.array([1, 2])], np.eye(3, dtype=np.float32))
    >>> topic.means.round(2).tolist(), topic.shares.round(2).tolist()
    ([[1.0, 0.0, 0.0], [0.0, 0.71, 0.71]], [0.33, 0.67])
    """
    words = np.unique(np.concatenate(groups))
    points = vectors[words].astype(np.float64)
    belongs = np.array([np.isin(words, group) for group in groups], dtype=np.float64)
    belongs /= belongs.sum(axis=0)
    topic = _maximise(points, belongs)
    for _ in range(_EM_STEPS if len(groups) > 1 else 0):
        odds = _log_density(points, topic) + np.log(topic.shares)[:, None]
        belongs = np.exp(odds - odds.max(axis=0))
        belongs /= belongs.sum(axis=0)
        # A component that lost all its words to others is gone.
        topic = _maximise(points, belongs[belongs.sum(axis=1) > 1e-6])
    return topic


def topic_of(
    taxonomy: Taxonomy,
    node: int,
    keywords: Mapping[int, npt.NDArray[np.int64]],
    vectors: npt.NDArray[np.float32],
) -> Topic | None:
    """The topic of a category: a component for each child, of the keywords below it; none without keywords.

    A leaf has one component, of its own keywords.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> topic = topic_of(tree, 1, {3: np.array([0]), 4: np.array([1])}, np.eye(3, dtype=np.float32))
    >>> len(topic.means), topic_of(tree, 2, {3: np.array([0])}, np.eye(3, dtype=np.float32))
    (2, None)
    """
    groups = [
        np.concatenate([keywords[leaf] for leaf in below])
        for part in taxonomy.children[node] or (node,)
        if (below := [leaf for leaf in taxonomy.leaves_under(part) if len(keywords.get(leaf, ()))])
    ]
    return fit_topic(groups, vectors) if groups else None


def _maximise(points: npt.NDArray[np.float64], belongs: npt.NDArray[np.float64]) -> Topic:
    """The mixture that fits points best which belong to its components to the given degrees."""
    totals = belongs.sum(axis=1)
    means = belongs @ points / totals[:, None]
    lengths = np.linalg.norm(means, axis=1)
    # The estimate depends on the mean of the points alone, so a weighted mean will do.
    concentrations = [estimate_concentration(mean[None]) for mean in means]
    # Keywords that cancel out have no direction: the first of them is taken.
    means[lengths < 1e-9] = points[0]
    return Topic(
        means / np.linalg.norm(means, axis=1, keepdims=True),
        np.clip(concentrations, *_CONCENTRATIONS),
        totals / totals.sum(),
    )


def _log_density(points: npt.NDArray[np.float64], topic: Topic) -> npt.NDArray[np.float64]:
    """Log density (components x points), up to what all components share."""
    kappa, order = topic.concentrations, points.shape[1] / 2 - 1
    # The Bessel function itself underflows in many dimensions; this is its expansion for large orders.
    root = np.hypot(order, kappa)
    log_bessel = root + order * np.log(kappa / (order + root)) - 0.5 * np.log(root)
    scale = order * np.log(kappa) - log_bessel
    density: npt.NDArray[np.float64] = scale[:, None] + kappa[:, None] * (topic.means @ points.T)
    return density
