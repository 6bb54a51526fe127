"""The parameters of WeSHClass, and its Kim-CNNs at the inner nodes of the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from himecat.compare.systems.system import Task, check_parameters, parameter
from himecat.input.corpus import Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.flat_classifier import TrainingSet
from himecat.paper.kimcnn import KimCNN
from himecat.paper.synthesis import SyntheticDocuments
from himecat.paper.topdown import fit_top_down
from himecat.runtime.threads import run_parallel

FloatArray = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_PREDICT_BATCH = 4096


@dataclass(frozen=True)
class WeSHClassSettings:
    """The parameters of the classifier.

    Attributes
    ----------
    keywords : int
        Keywords per leaf, taken from its labelled documents.
    beta : int
        Pseudo documents per category.
    length, sentence : int
        Words of a pseudo document, at most, and how many of them are written before the language model begins
        again with the first word.
    alpha : float
        Share of a pseudo document's label that is spread evenly over its category and the siblings.
    real_share : float
        The labelled documents are repeated until they are this share of the pseudo documents.
    common_words, language_tokens : int
        Words that the language model knows, and words of the corpus that it reads in training.
    epochs : int
        Passes over the pseudo documents in pretraining.
    rounds, round_steps : int
        At most so many rounds of self-training per level, and batches per round.
    rate, self_rate, momentum : float
        Of gradient descent in pretraining and in self-training.
    delta : float
        Self-training ends when the labels of less than so many per cent of the documents change.
    block : bool
        Whether documents stay at an inner node where no child is clearly the most probable.
    gamma : float
        The normalised entropy over the children above which none is.

    Examples
    --------
    >>> WeSHClassSettings(beta=100).beta
    100
    >>> WeSHClassSettings(gamma=2.0)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: gamma must be at least 0 and at most 1, not 2.
    """

    keywords: int = parameter(10, least=1)
    beta: int = parameter(500, least=0)
    length: int = parameter(100, least=1)
    sentence: int = parameter(50, least=1)
    alpha: float = parameter(0.2, least=0, most=1)
    real_share: float = parameter(0.2, least=0, most=1)
    common_words: int = parameter(5000, least=1)
    language_tokens: int = parameter(3_000_000, least=0)
    epochs: int = parameter(30, least=0)
    rounds: int = parameter(10, least=0)
    round_steps: int = parameter(30, least=1)
    rate: float = parameter(0.1, least=0)
    self_rate: float = parameter(0.005, least=0)
    momentum: float = parameter(0.9, least=0, most=1)
    delta: float = parameter(0.1, least=0)
    block: bool = True
    gamma: float = parameter(0.9, least=0, most=1)

    def __post_init__(self) -> None:
        check_parameters(self)


@dataclass(frozen=True)
class Ensemble:
    """The local classifiers of a tree; a category's probability is the product of the choices on its path.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    vectors : array
        Unit vectors of the words.
    local : mapping
        The classifiers, by inner node; a node with one child has none.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> ensemble = Ensemble(tree, np.eye(2, dtype=np.float32))
    >>> [[tree.title(node) for node in ensemble.classes_at(level)] for level in range(2)]
    [['a', 'b'], ['b', 'a/x', 'a/y']]
    """

    taxonomy: Taxonomy
    vectors: FloatArray
    local: Mapping[int, KimCNN] = field(default_factory=dict)

    def classes_at(self, level: int) -> list[int]:
        """What the classifier of a level chooses among: the nodes one deeper, and the leaves above them."""
        depths = self.taxonomy.depths
        return [
            node
            for node in range(1, len(self.taxonomy))
            if depths[node] == level + 1 or (depths[node] <= level and self.taxonomy.is_leaf(node))
        ]

    def probabilities(
        self, documents: Ragged, rows: Rows, threads: int = 1, level: int | None = None
    ) -> FloatArray:
        """Probability of every node for the documents of some rows; one without words is as likely in any child.

        With a `level`, nodes deeper than its classes are left at 0.
        """
        taxonomy = self.taxonomy
        inner = [node for node in taxonomy.inner if level is None or taxonomy.depths[node] <= level]

        def in_batch(start: int) -> FloatArray:
            batch = documents.take(rows[start : start + _PREDICT_BATCH])
            found = np.zeros((len(batch), len(taxonomy)), dtype=np.float32)
            found[:, 0] = 1.0
            for node in inner:
                children = list(taxonomy.children[node])
                found[:, children] = found[:, [node]]
                if node in self.local:
                    found[:, children] *= self.local[node].predict_proba(batch, self.vectors)
            return found

        starts = range(0, len(rows), _PREDICT_BATCH)
        empty = np.zeros((0, len(taxonomy)), dtype=np.float32)
        return np.concatenate([empty, *run_parallel([partial(in_batch, at) for at in starts], threads)])


class LocalClassifier(KimCNN):
    """The network of one inner node; its training documents are shuffled by a stream of their own."""

    def fit(
        self,
        training: TrainingSet,
        words: FloatArray,
        *,
        seed: int,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        """Train on documents."""
        self.initialise(words.shape[1], training.n_classes, np.random.default_rng(seed))
        self.train(training, words, np.random.default_rng([seed, 1]), advance)


def pretrain(
    task: Task,
    documents: Ragged,
    vectors: FloatArray,
    made: SyntheticDocuments,
    settings: WeSHClassSettings,
) -> Ensemble:
    """Train a local classifier for every inner node with a choice, on pseudo and labelled documents.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["goal", "law"])
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> made = SyntheticDocuments.from_matrices({1: np.zeros((9, 2), int), 2: np.ones((9, 2), int)}, 3)
    >>> few = WeSHClassSettings(epochs=40)
    >>> ensemble = pretrain(task, corpus.tokens, np.eye(2, dtype=np.float32), made, few)
    >>> ensemble.probabilities(corpus.tokens, np.arange(2))[:, 1:].argmax(axis=1).tolist()
    [0, 1]
    """
    taxonomy = task.taxonomy
    choosing = sum(1 for node in taxonomy.inner if len(taxonomy.children[node]) > 1)
    with task.progress.stage("Pretraining the classifiers", total=settings.epochs * choosing) as stage:
        fitted = fit_top_down(
            taxonomy,
            documents.take(task.leaf_rows),
            Supervision(task.leaf_rows, task.leaf_nodes),
            made,
            vectors,
            lambda: LocalClassifier(epochs=settings.epochs, rate=settings.rate, momentum=settings.momentum),
            real_share=settings.real_share,
            smoothing=settings.alpha,
            seed=task.seed,
            threads=task.threads,
            advance=stage.advance,
        )
    return Ensemble(taxonomy, vectors, cast("Mapping[int, KimCNN]", fitted.classifiers))
