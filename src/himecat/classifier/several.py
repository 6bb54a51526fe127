"""Documents that belong to several categories: a probability for each category, independent of the others.

Ridge classifiers over three views of the labelled documents, and two ways in which a category's name is found in a
document, are opinions about every pair of document and category. One logistic regression, the same for all
categories, makes a probability of them. It is learned from labelled documents that the classifiers did not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.classifier.assignments import rows_at_once
from himecat.classifier.linear import cross_fit
from himecat.classifier.opinions import N_OPINIONS, Opinions, name_opinions, weigh
from himecat.classifier.protocol import SeeingClassifier
from himecat.classifier.quality import Quality
from himecat.classifier.set_assignments import SetAssignments, assign_sets
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default
from himecat.runtime.solvers import sigmoid
from himecat.runtime.threads import one_blas_thread, run_parallel
from himecat.views.base import State
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import FloatArray, check_shapes, unit
from himecat.views.space import JointSpace

NodeArray = npt.NDArray[np.int64]

_BATCH = 2048
_FOLDS = 10
_PENALTY = 2.0
# Pairs that the regression is learned from, and documents that the threshold is learned from, at most.
_PAIRS = 2_000_000
_DOCUMENTS = 20_000
_ARRAYS = (
    "directions", "text_weights", "smoothed_weights", "feature_weights", "names", "words/ids", "words/starts",
    "words/shares", "counts", "coefficients", "categories",
)  # fmt: skip


@dataclass(frozen=True)
class SeveralClassifier(SeeingClassifier):
    """A fitted classifier that gives every document a probability for each of its categories.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    views : Views
        How documents are seen.
    categories : array of int
        The nodes that a document may belong to: the leaves, and the inner categories that label documents.
    opinions : Opinions
        What is said for them.
    coefficients : array
        How much each opinion counts, and the intercept.
    threshold : float
        How probable a category has to be to be chosen: so that the expected F1 is highest.
    directions_of_leaves : array
        Mean directions of the leaves, for the joint space.
    """

    name: ClassVar[str] = "several"

    taxonomy: Taxonomy
    views: Views
    categories: NodeArray
    opinions: Opinions
    coefficients: npt.NDArray[np.float64]
    threshold: float
    directions_of_leaves: FloatArray

    @property
    def quality(self) -> Quality | None:
        """Not known: the estimate is one of single paths."""
        return None

    def leaf_probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every category, one row per document; rows do not sum to 1."""
        size = rows_at_once(N_OPINIONS * len(self.categories), _BATCH)
        starts = range(0, len(corpus), size)

        def batch_job(start: int) -> Callable[[], FloatArray]:
            def job() -> FloatArray:
                some = corpus.between(start, start + size)
                return self.probabilities(self.views.see(some, n_batches=len(starts)), some)

            return job

        parts = run_parallel([batch_job(start) for start in starts], threads)
        return np.concatenate([np.zeros((0, len(self.categories)), dtype=np.float32), *parts])

    def all_probabilities(self, corpus: Corpus, threads: int = 1) -> tuple[FloatArray, FloatArray | None]:
        """The same; where every category has a probability of its own, all may be low."""
        return self.leaf_probabilities(corpus, threads), None

    def probabilities(self, vectors: DocumentVectors, corpus: Corpus) -> FloatArray:
        """The same of documents that were seen already."""
        logits = np.full((len(vectors), len(self.categories)), self.coefficients[-1], dtype=np.float32)
        for weight, opinion in zip(
            self.coefficients.tolist(), self.opinions.of(vectors, corpus), strict=False
        ):
            logits += np.float32(weight) * opinion
        return np.asarray(sigmoid(logits), dtype=np.float32)

    def assign(
        self,
        probabilities: FloatArray,
        min_confidence: float = 0.0,
        best: int = 0,
        known: Supervision | None = None,
    ) -> SetAssignments:
        """The sets of paths of documents with these probabilities."""
        return assign_sets(
            self.taxonomy,
            self.categories,
            probabilities,
            self.threshold,
            min_confidence,
            best=best,
            known=known,
        )

    @one_blas_thread()
    def directions(self, corpus: Corpus) -> FloatArray:
        """Unit vectors of documents among those of words and labels: the words' part of their directions."""
        return unit(self.views.see(corpus).smoothed[:, self.views.part("words")])

    @one_blas_thread()
    def evidence(self, corpus: Corpus, row: int, node: int) -> list[tuple[str, str, int, float]]:
        """What the views of one's own say for a node against its siblings: view, name, count and weight."""
        return self.evidence_by(self.directions_of_leaves, self.taxonomy, corpus, row, node)

    def state(self) -> State:
        """The states of the views and the arrays; the vectors of the words are the space's."""
        settings, own = self.views.state()
        arrays = {f"views/{key}": value for key, value in own.items()}
        del arrays["views/words/vectors"]
        opinions = self.opinions
        arrays |= {
            "directions": self.directions_of_leaves,
            "text_weights": opinions.text_weights,
            "smoothed_weights": opinions.smoothed_weights,
            "feature_weights": opinions.feature_weights,
            "names": opinions.names,
            "words/ids": opinions.words.indices.astype(np.int64),
            "words/starts": opinions.words.indptr.astype(np.int64),
            "words/shares": opinions.words.data,
            "counts": opinions.counts,
            "coefficients": self.coefficients,
            "categories": self.categories,
        }
        return {"views": settings, "threshold": self.threshold}, arrays

    @classmethod
    def from_state(
        cls, space: JointSpace, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted classifier."""
        start = "views/"
        own = {key[len(start) :]: value for key, value in arrays.items() if key.startswith(start)}
        views = Views.from_state(settings["views"], own | {"words/vectors": space.words})
        parts = {name: arrays[name] for name in _ARRAYS}
        categories, dimension = parts["categories"].astype(np.int64), views.dimension
        n, tree = len(categories), space.taxonomy
        expected = {
            "directions": (tree.n_leaves, dimension),
            "text_weights": (dimension, n),
            "smoothed_weights": (dimension, n),
            "feature_weights": (views.n_features, n),
            "names": (n, dimension),
            "words/starts": (n + 1,),
            "words/shares": parts["words/ids"].shape,
            "counts": (n,),
            "coefficients": (N_OPINIONS + 1,),
        }
        check_shapes({name: (parts[name], shape) for name, shape in expected.items()})
        if n == 0 or categories.min() < 1 or categories.max() >= len(tree):
            raise ValueError("'categories' holds other numbers than nodes of the tree")
        words = csr_matrix(
            (parts["words/shares"], parts["words/ids"], parts["words/starts"]), shape=(n, len(space.words))
        )
        words.check_format()
        threshold = float(settings["threshold"])
        if not 0 <= threshold <= 1:
            raise ValueError("'threshold' is no probability")
        opinions = Opinions(
            parts["text_weights"],
            parts["smoothed_weights"],
            parts["feature_weights"],
            parts["names"],
            words,
            parts["counts"],
        )
        return cls(tree, views, categories, opinions, parts["coefficients"], threshold, parts["directions"])


def fit_several(
    taxonomy: Taxonomy,
    views: Views,
    vectors: DocumentVectors,
    corpus: Corpus,
    supervision: Supervision,
    method: Default,
    *,
    seed: int = 0,
    threads: int = 1,
) -> SeveralClassifier:
    """Train the classifiers on the labelled documents, and learn how far to trust them and the names.

    Parameters
    ----------
    supervision : Supervision
        A row for each category of each labelled document.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.views.combined import learn_views
    >>> from himecat.views.metadata import MetadataView
    >>> from himecat.views.words import WordsView
    >>> corpus = read_corpus(["red fox", "red fox den", "old car", "old car wheel", "red fox old car"] * 4)
    >>> views, seen = learn_views([WordsView(dimension=3), MetadataView()], corpus)
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> few = Supervision(np.array([0, 1, 2, 3, 4, 4]), np.array([1, 1, 2, 2, 1, 2]))
    >>> model = fit_several(tree, views, seen, corpus, few, Default())
    >>> (model.leaf_probabilities(corpus)[:5] >= model.threshold).sum(axis=1).tolist()
    [1, 1, 1, 1, 2]
    """
    # Documents that belong nowhere speak against every category.
    labelled = np.union1d(supervision.rows, supervision.nowhere)
    at_inner = set(supervision.nodes.tolist()) - set(taxonomy.leaves)
    categories = np.array(sorted({*taxonomy.leaves, *at_inner}), dtype=np.int64)
    targets = np.zeros((len(labelled), len(categories)), dtype=np.float32)
    targets[np.searchsorted(labelled, supervision.rows), np.searchsorted(categories, supervision.nodes)] = 1.0
    seen = vectors.take(labelled)
    rng = np.random.default_rng(seed)
    n_folds = min(_FOLDS, len(labelled))
    folds = rng.permutation(len(labelled)) % n_folds
    linear = cross_fit(
        [seen.text, seen.smoothed, seen.features],
        targets,
        np.ones(len(labelled), dtype=np.float32),
        folds,
        _PENALTY,
        lambda jobs: run_parallel(jobs, threads),
    )
    counts = np.asarray(targets.sum(axis=0), dtype=np.float32)
    keywords = supervision.keywords
    named = (
        categories.tolist()
        if method.use_names
        else [node for node in categories.tolist() if node in keywords]
    )
    on_text, on_smoothed, on_features = linear
    names, words = name_opinions(taxonomy, views, corpus, categories, named, keywords)
    opinions = Opinions(
        on_text.weights,
        on_smoothed.weights,
        on_features.weights,
        names,
        words,
        # As many as the classifiers of each fold saw.
        counts * np.float32(1 - 1 / n_folds),
    )
    without = np.stack([counts - targets[folds == fold].sum(axis=0) for fold in range(n_folds)])
    # A sample of the documents, where they have very many categories.
    chosen = np.sort(rng.permutation(len(labelled))[: max(1, _PAIRS // len(categories))])
    held_out = opinions.of(
        seen.take(chosen),
        corpus.take(labelled[chosen]),
        [one.scores[chosen] for one in linear],
        without[folds[chosen]],
    )
    # Labelled category by category, a document is as much more likely to be shown as it has categories.
    weights = 1.0 / np.maximum(targets[chosen].sum(axis=1), 1.0)
    coefficients = weigh(held_out, targets[chosen], weights / weights.mean())
    found = SeveralClassifier(
        taxonomy,
        views,
        categories,
        opinions,
        coefficients,
        0.5,
        _leaf_directions(taxonomy, seen.smoothed, targets, categories, opinions.names),
    )
    return SeveralClassifier(
        **{**vars(found), "threshold": _threshold(found, vectors, corpus, labelled, rng)}
    )


def _leaf_directions(
    taxonomy: Taxonomy, smoothed: FloatArray, targets: FloatArray, categories: NodeArray, names: FloatArray
) -> FloatArray:
    """Mean directions of the leaves' documents and names."""
    sums = targets.T @ smoothed + names
    return unit(sums[np.searchsorted(categories, np.array(taxonomy.leaves, dtype=np.int64))])


def _threshold(
    found: SeveralClassifier,
    vectors: DocumentVectors,
    corpus: Corpus,
    labelled: NodeArray,
    rng: np.random.Generator,
) -> float:
    """The threshold with the highest expected F1 among the documents without a label."""
    rows = np.setdiff1d(np.arange(len(corpus)), labelled)
    rows = rows if len(rows) else labelled
    rows = np.sort(rng.permutation(rows)[:_DOCUMENTS])
    size = rows_at_once(N_OPINIONS * len(found.categories), _BATCH)
    parts = [
        found.probabilities(vectors.take(some), corpus.take(some))
        for some in (rows[first : first + size] for first in range(0, len(rows), size))
    ]
    sure = np.sort(np.concatenate([part.ravel() for part in parts]).astype(np.float64))[::-1]
    expected = 2 * np.cumsum(sure) / (np.arange(1, len(sure) + 1) + sure.sum())
    return float(sure[int(expected.argmax())])
