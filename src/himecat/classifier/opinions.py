"""What speaks for each category of each document, and how much each opinion counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.classifier.name_seeds import name_phrases
from himecat.input.corpus import Corpus
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.solvers import minimize_lbfgs, sigmoid
from himecat.views.base import phrase_counts
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import FloatArray, inverse_frequency, unit

NodeArray = npt.NDArray[np.int64]

# Strength of the Gaussian prior on the standardised coefficients, in pairs of document and category.
_PRIOR = 1.0
# Where so much of a name, its words weighted by their rarity, stands in a document, more of it adds less.
_ENOUGH = 0.34
N_OPINIONS = 12
"""How many opinions there are."""


@dataclass(frozen=True)
class Opinions:
    """What is said for each category of each document before it is weighed.

    Attributes
    ----------
    text_weights, smoothed_weights, feature_weights : array of shape (columns, categories)
        Ridge classifiers over the three kinds of rows.
    names : array of shape (categories, dimension)
        Unit directions of the names.
    words : sparse matrix of shape (categories, words)
        The share of each word in a name.
    counts : array
        How many labelled documents each category has.

    Examples
    --------
    >>> [part for part in Opinions.__annotations__]
    ['text_weights', 'smoothed_weights', 'feature_weights', 'names', 'words', 'counts']
    """

    text_weights: FloatArray
    smoothed_weights: FloatArray
    feature_weights: FloatArray
    names: FloatArray
    words: Any
    counts: FloatArray

    def of(
        self,
        vectors: DocumentVectors,
        corpus: Corpus,
        linear: Sequence[FloatArray] | None = None,
        counts: FloatArray | None = None,
    ) -> list[FloatArray]:
        """One array (documents x categories) for each opinion.

        Parameters
        ----------
        linear, counts
            The scores of the ridge classifiers and the counts, where they are known without these documents.
        """
        if linear is None:
            linear = [
                vectors.text @ self.text_weights,
                vectors.smoothed @ self.smoothed_weights,
                np.asarray(vectors.features @ self.feature_weights),
            ]
        near = vectors.smoothed @ self.names.T
        present = corpus.tokens.counts(self.words.shape[1]).tocsr()
        present.data = np.ones(len(present.data), dtype=np.float32)
        named = np.asarray((present @ self.words.T).todense(), dtype=np.float32)
        often = np.log((self.counts[None] if counts is None else counts) + 0.5)
        found = []
        for scores in linear:
            found += [scores, np.sqrt(np.maximum(scores, 0.0))]
        found += [near, np.maximum(near, 0.0) ** 2, near - near.max(axis=1, keepdims=True, initial=-1.0)]
        found += [named, np.minimum(named, _ENOUGH), np.broadcast_to(often, near.shape)]
        return [np.asarray(one, dtype=np.float32) for one in found]


def name_opinions(
    taxonomy: Taxonomy,
    views: Views,
    corpus: Corpus,
    categories: NodeArray,
    named: Sequence[int],
    keywords: Mapping[int, Sequence[str]],
) -> tuple[FloatArray, Any]:
    """Directions of the names, and the share of each word in them; nothing for categories that are not named.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.views.combined import learn_views
    >>> from himecat.views.words import WordsView
    >>> corpus, tree = read_corpus(["red fox", "old car", "red car"]), Taxonomy.from_paths([("fox",), ("things",)])
    >>> views, _ = learn_views([WordsView(dimension=2)], corpus)
    >>> name_opinions(tree, views, corpus, np.array([1, 2]), [1, 2], {})[1].sum(axis=1).ravel().tolist()
    [[1.0, 0.0]]
    """
    phrases = name_phrases(taxonomy, named, corpus.words, keywords)
    place = np.searchsorted(categories, np.array(named, dtype=np.int64))
    directions = np.zeros((len(categories), views.dimension), dtype=np.float32)
    words = csr_matrix((len(categories), len(corpus.words)), dtype=np.float32)
    if named:
        directions[place] = unit(views.see_phrases(phrases))
        own = phrase_counts(phrases, len(corpus.words)).astype(np.float32)
        counts = np.bincount(
            corpus.tokens.counts(len(corpus.words)).tocsr().indices, minlength=len(corpus.words)
        )
        own.data *= inverse_frequency(counts.astype(np.float64), len(corpus))[own.indices]
        totals = np.maximum(np.asarray(own.sum(axis=1)).ravel(), 1e-6)
        own.data /= np.repeat(totals, np.diff(own.indptr)).astype(np.float32)
        spread = csr_matrix(
            (np.ones(len(named), np.float32), (place, np.arange(len(named)))),
            shape=(len(categories), len(named)),
        )
        words = (spread @ own).tocsr().astype(np.float32)
        words.sort_indices()
    return directions, words


def weigh(
    opinions: Sequence[FloatArray], targets: FloatArray, weights: FloatArray
) -> npt.NDArray[np.float64]:
    """Logistic regression over pairs of document and category: a coefficient for each opinion, the intercept last.

    Examples
    --------
    >>> opinions = [np.array([[2.0, -2.0], [-2.0, 2.0]] * 20), np.array([[1.0, 1.0], [1.0, 1.0]] * 20)]
    >>> weigh(opinions, np.array([[1.0, 0.0], [0.0, 1.0]] * 20), np.ones(40)).round(1).tolist()
    [1.6..., 0.0, 0.0]
    """
    rows = np.stack([one.ravel() for one in opinions], axis=1).astype(np.float64)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(deviation > 1e-9, 1 / np.maximum(deviation, 1e-9), 0.0)
    rows -= mean
    rows *= scale
    truth = targets.ravel().astype(np.float64)
    counted = np.repeat(weights.astype(np.float64), targets.shape[1])

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        logits = rows @ point[:-1] + point[-1]
        total = (counted * (np.logaddexp(0.0, logits) - truth * logits)).sum()
        off = counted * (sigmoid(logits) - truth)
        gradient = np.append(rows.T @ off + _PRIOR * point[:-1], off.sum())
        return float(total + _PRIOR * (point[:-1] ** 2).sum() / 2), gradient

    found = minimize_lbfgs(loss, np.zeros(rows.shape[1] + 1), tolerance=0.1)
    raw = found[:-1] * scale
    return np.append(raw, found[-1] - float(raw @ mean))
