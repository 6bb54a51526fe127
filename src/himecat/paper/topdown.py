"""Hierarchical classification (section 3.4, Hierarchical Classifier Training), from the root to a leaf.

One flat classifier per inner node is trained on the synthetic documents of the node's children and on the real
labelled ones; the probability of a leaf is the product of the choices on the way to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import rows_at_once
from himecat.errors import HimecatError, UsageError
from himecat.input.corpus import Corpus, Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.flat_classifier import FlatClassifier, FloatArray, TrainingSet
from himecat.paper.registry import classifier_class
from himecat.paper.synthesis import SyntheticDocuments
from himecat.runtime.threads import run_parallel
from himecat.views.base import View
from himecat.views.space import JointSpace

# At most so many documents are classified at a time: enough to be quick, little memory for any number of leaves.
_BATCH = 4096


def training_set(
    taxonomy: Taxonomy,
    node: int,
    real: Ragged,
    supervision: Supervision,
    synthetic: SyntheticDocuments,
    real_share: float,
    smoothing: float = 0.0,
) -> TrainingSet:
    """Mix the real and the synthetic documents of the children of `node`.

    The labelled documents below a child belong to it and are repeated, all equally often, until they make up
    `real_share` of the number of synthetic ones; every labelled document keeps its label.

    Parameters
    ----------
    real : Ragged
        Word ids of the labelled documents, in the order of `supervision`.
    smoothing : float
        Share of a synthetic document's label that is spread evenly over the children.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> made = SyntheticDocuments(Ragged.from_lists([[5], [6]]), {1: np.array([0]), 2: np.array([1])})
    >>> labelled = Supervision(np.array([3, 8]), np.array([2, 1]))
    >>> mixed = training_set(tree, 0, Ragged.from_lists([[1], [2]]), labelled, made, 0.2)
    >>> mixed.documents.values.tolist(), mixed.targets.tolist()
    ([5, 6, 1, 2], [0, 1, 1, 0])
    """
    children = taxonomy.children[node]
    parts = [synthetic.of(child) for child in children]
    targets = [np.full(len(part), position, dtype=np.int64) for position, part in enumerate(parts)]
    n_synthetic = sum(len(part) for part in parts)
    # Children are numbered in rising order.
    towards = taxonomy.child_towards(node, supervision.nodes)
    chosen = np.flatnonzero((towards > 0) & (real.lengths > 0))
    if len(chosen):
        repeats = max(1, math.ceil(real_share * n_synthetic / len(chosen)))
        parts.append(real.take(np.tile(chosen, repeats)))
        targets.append(np.tile(np.searchsorted(children, towards[chosen]), repeats))
    return TrainingSet(
        Ragged.concatenate(parts), np.concatenate(targets), len(children), n_synthetic, smoothing
    )


@dataclass(frozen=True)
class TopDownWalk:
    """Fitted flat classifiers by inner node; a node with one child needs none.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b")])
    >>> TopDownWalk(tree, {}).leaf_probabilities(
    ...     Ragged.from_lists([[0]]), np.eye(2, dtype=np.float32)).tolist()
    [[1.0]]
    """

    taxonomy: Taxonomy
    classifiers: Mapping[int, FlatClassifier]

    def leaf_probabilities(
        self,
        documents: Ragged,
        words: FloatArray,
        *,
        threads: int = 1,
        advance: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Probability of every leaf: the product of the choices on the way to it. Rows sum to 1."""

        def classify(start: int, end: int) -> FloatArray:
            found = self._batch_probabilities(documents.between(start, end), words)
            if advance is not None:
                advance(end - start)
            return found

        count = math.ceil(len(documents) / rows_at_once(len(self.taxonomy), _BATCH, values=1 << 24))
        # Equal batches, and an even number of them, so that two threads end together.
        count += count % 2 if count > 1 else 0
        bounds = np.linspace(0, len(documents), count + 1).astype(np.int64).tolist() if count else []
        parts = run_parallel([partial(classify, start, end) for start, end in pairwise(bounds)], threads)
        empty = np.zeros((0, self.taxonomy.n_leaves), dtype=np.float32)
        return np.concatenate([empty, *parts])

    def _batch_probabilities(self, documents: Ragged, words: FloatArray) -> FloatArray:
        taxonomy = self.taxonomy
        at_node = np.ones((len(documents), len(taxonomy)), dtype=np.float64)
        for node in taxonomy.inner:
            children = list(taxonomy.children[node])
            choice: npt.NDArray[np.floating] = np.ones((len(documents), 1))
            if node in self.classifiers:
                choice = self.classifiers[node].predict_proba(documents, words)
                if choice.shape != (len(documents), len(children)):
                    raise UsageError(
                        f"The classifier {self.classifiers[node].name!r} at {taxonomy.title(node)!r} gave an array "
                        f"of shape {choice.shape} for {len(documents)} documents and {len(children)} children."
                    )
            at_node[:, children] = at_node[:, [node]] * choice
        leaves = at_node[:, list(taxonomy.leaves)]
        if not np.isfinite(leaves).all():
            raise HimecatError("A flat classifier gave probabilities that are not numbers.")
        return np.asarray(leaves / leaves.sum(axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True)
class TopDownClassifier:
    """The walk as a classifier of documents, with the space whose word vectors it reads.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus, axes = read_corpus(["red fox"]), np.eye(3, dtype=np.float32)
    >>> tree = Taxonomy.from_paths([("a", "b")])
    >>> space = JointSpace(tree, axes, axes[1:], axes[:0], {}, corpus.words, {})
    >>> TopDownClassifier(space, TopDownWalk(tree, {})).leaf_probabilities(corpus).tolist()
    [[1.0]]
    """

    name: ClassVar[str] = "top-down"
    word_weights: ClassVar[None] = None
    unused_metadata: ClassVar[tuple[str, ...]] = ()
    own_views: ClassVar[tuple[View, ...]] = ()
    learned_views: ClassVar[Mapping[str, View]] = {}
    quality: ClassVar[None] = None

    space: JointSpace
    walk: TopDownWalk

    def leaf_probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        return self.walk.leaf_probabilities(corpus.tokens, self.space.words, threads=threads)

    def all_probabilities(self, corpus: Corpus, threads: int = 1) -> tuple[FloatArray, FloatArray | None]:
        """The same; the published method places every document."""
        return self.leaf_probabilities(corpus, threads), None

    def directions(self, corpus: Corpus) -> FloatArray:
        """The most likely place of every document in the joint space, given its words and metadata values."""
        return self.space.fold_in(corpus)

    def evidence(self, corpus: Corpus, row: int, node: int) -> list[tuple[str, str, int, float]]:
        """Nothing: there are no views."""
        return []

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The state of every flat classifier, by its node."""
        nodes, arrays = [], {}
        for node, flat in self.walk.classifiers.items():
            settings, own = flat.state()
            nodes.append({"node": node, "name": flat.name, "settings": settings, "arrays": sorted(own)})
            arrays.update({f"{node}/{key}": value for key, value in own.items()})
        return {"nodes": nodes}, arrays

    @classmethod
    def from_state(
        cls, space: JointSpace, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted classifier."""
        taxonomy, classifiers = space.taxonomy, {}
        for one in settings["nodes"]:
            own = {key: arrays[f"{one['node']}/{key}"] for key in one["arrays"]}
            classifiers[int(one["node"])] = classifier_class(one["name"]).from_state(one["settings"], own)
        choosing = {node: len(taxonomy.children[node]) for node in taxonomy.inner}
        choosing = {node: count for node, count in choosing.items() if count > 1}
        if set(choosing) != set(classifiers):
            raise ValueError("the classifiers do not stand at the nodes of the tree that need one")
        for node, count in choosing.items():
            # A plug-in need not say how many classes it has; it is then checked when it is used.
            if getattr(classifiers[node], "n_classes", count) != count:
                raise ValueError(
                    f"the classifier at {taxonomy.title(node)!r} is not made for {count} children"
                )
        return cls(space, TopDownWalk(taxonomy, classifiers))


def fit_top_down(
    taxonomy: Taxonomy,
    real: Ragged,
    supervision: Supervision,
    synthetic: SyntheticDocuments,
    words: FloatArray,
    make: Callable[[], FlatClassifier],
    *,
    real_share: float = 0.2,
    smoothing: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
) -> TopDownWalk:
    """Train one classifier for every inner node that has a choice to make.

    Parameters
    ----------
    real : Ragged
        Word ids of the labelled documents, in the order of `supervision`.
    make : callable
        Makes an untrained flat classifier.

    Examples
    --------
    >>> from himecat.paper.logistic import MeanLogistic
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> made = SyntheticDocuments(Ragged.from_lists([]), {1: np.zeros(0, int), 2: np.zeros(0, int)})
    >>> labelled = Supervision(np.array([0, 1]), np.array([1, 2]))
    >>> few, words = Ragged.from_lists([[0], [1]]), np.eye(2, dtype=np.float32)
    >>> fit_top_down(tree, few, labelled, made, words, MeanLogistic).leaf_probabilities(few, words).argmax(1)
    array([0, 1])
    """
    choosing = [node for node in taxonomy.inner if len(taxonomy.children[node]) > 1]
    # The largest first, so that no long job is left for the end.
    choosing.sort(key=lambda node: (-len(taxonomy.children[node]), node))

    def fit_node(node: int) -> FlatClassifier:
        classifier = make()
        mixed = training_set(taxonomy, node, real, supervision, synthetic, real_share, smoothing)
        own_seed = int(np.random.SeedSequence([seed, node]).generate_state(1)[0])
        classifier.fit(mixed, words, seed=own_seed, advance=advance)
        return classifier

    fitted = run_parallel([partial(fit_node, node) for node in choosing], threads)
    return TopDownWalk(taxonomy, dict(zip(choosing, fitted, strict=True)))
