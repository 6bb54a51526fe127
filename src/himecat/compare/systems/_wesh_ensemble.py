"""The parameters of WeSHClass, its convolutional network per inner node, and the classifier of a level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from himecat.classifier.mixture import softmax
from himecat.compare.systems.system import Task, check_parameters, parameter
from himecat.input.corpus import Ragged
from himecat.input.taxonomy.tree import Taxonomy
from himecat.kernels import kimcnn as _kernels
from himecat.paper.kimcnn import Batch, KimNetwork, Weights
from himecat.runtime.threads import Stopped, run_parallel, stop_requested

FloatArray = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_WIDTHS, _MAPS, _HIDDEN = (2, 3, 4, 5), 20, 20
BATCH = 256
_PREDICT_BATCH = 4096
# Documents with less of their target below a node are left out of its training.
_LEAST_MASS = 1e-3


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
    himecat.errors.UsageError: gamma must be between 0 and 1, not 2.0.
    """

    keywords: int = parameter(10, least=1)
    beta: int = parameter(500, least=0)
    length: int = parameter(100, least=1)
    sentence: int = parameter(50, least=1)
    alpha: float = parameter(0.2, least=0, most=1)
    real_share: float = parameter(0.2, least=0, most=1)
    common_words: int = parameter(5000, least=1)
    language_tokens: int = parameter(300_000, least=0)
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


def batch_of(documents: Ragged, rows: Rows, vectors: FloatArray) -> Batch:
    """The documents of some rows as a batch for a network.

    Examples
    --------
    >>> batch = batch_of(Ragged.from_lists([[3], [1, 3]]), np.array([1]), np.eye(4, dtype=np.float32))
    >>> batch.vectors.shape, batch.words.tolist(), batch.offsets.tolist()
    ((2, 4), [0, 1], [0, 2])
    """
    offsets = np.empty(len(rows) + 1, dtype=np.int64)
    local = np.empty(int(documents.lengths[rows].sum()), dtype=np.int32)
    distinct = np.empty(min(len(local), len(vectors)), dtype=np.int32)
    place = np.full(len(vectors), -1, dtype=np.int32)
    n = _kernels.number_words(documents.values, documents.offsets, rows, place, local, offsets, distinct)
    return Batch(vectors[distinct[:n]], local, offsets)


class LocalClassifier:
    """The network of one inner node, which learns by gradient descent with momentum.

    Parameters
    ----------
    dimension, n_classes : int
        Length of a word vector; number of children.
    seed : int
        Source of the starting weights.

    Examples
    --------
    >>> local = LocalClassifier(2, 2, seed=0)
    >>> batch = batch_of(Ragged.from_lists([[0], [1]]), np.arange(2), np.eye(2, dtype=np.float32))
    >>> for _ in range(50):
    ...     local.learn(batch, np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32), 0.1, 0.9)
    >>> local.scores(batch).argmax(axis=1).tolist()
    [0, 1]
    """

    def __init__(self, dimension: int, n_classes: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.network = KimNetwork(dimension, n_classes, _WIDTHS, _MAPS, _HIDDEN, rng)
        self._gradient = Weights(*self.network.weights.sizes)
        self._velocity = np.zeros_like(self.network.weights.vector)

    def scores(self, batch: Batch) -> FloatArray:
        """Probabilities over the children."""
        return softmax(self.network.forward(batch).scores)

    def learn(
        self, batch: Batch, targets: FloatArray, rate: float, momentum: float, of: int | None = None
    ) -> None:
        """Take one step towards targets over the children.

        A row of targets sums to what the document weighs here; the slope is a mean over `of` documents.
        """
        seen = self.network.forward(batch)
        slope = softmax(seen.scores) * targets.sum(axis=1, keepdims=True) - targets
        slope /= of or len(targets)
        self.network.backward(seen, slope, self._gradient)
        self._velocity *= momentum
        self._velocity += self._gradient.vector
        self.network.weights.vector -= rate * self._velocity

    def reset_momentum(self) -> None:
        """Start anew without momentum."""
        self._velocity[:] = 0.0

    def reset_output(self) -> None:
        """Give equal scores to all children."""
        self.network.weights.output[:] = 0.0
        self.network.weights.output_bias[:] = 0.0


@dataclass(frozen=True)
class Ensemble:
    """The local classifiers of a tree; a category's probability is the product of the choices on its path.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    vectors : array
        Unit vectors of the words.
    local : dict
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
    local: dict[int, LocalClassifier] = field(default_factory=dict)

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
        inner = [node for node in self.taxonomy.inner if level is None or self.taxonomy.depths[node] <= level]
        pieces = [rows[start : start + _PREDICT_BATCH] for start in range(0, len(rows), _PREDICT_BATCH)]

        def job_for(piece: Rows) -> Callable[[], FloatArray]:
            return lambda: self._batch_probabilities(documents, piece, inner)

        empty = np.zeros((0, len(self.taxonomy)), dtype=np.float32)
        return np.concatenate([empty, *run_parallel([job_for(piece) for piece in pieces], threads)])

    def _batch_probabilities(self, documents: Ragged, rows: Rows, inner: list[int]) -> FloatArray:
        batch = batch_of(documents, rows, self.vectors)
        wordless = np.diff(batch.offsets) == 0
        found = np.zeros((len(rows), len(self.taxonomy)), dtype=np.float32)
        found[:, 0] = 1.0
        for node in inner:
            children = list(self.taxonomy.children[node])
            found[:, children] = found[:, [node]]
            if node in self.local:
                choice = self.local[node].scores(batch)
                choice[wordless] = 1.0 / len(children)
                found[:, children] *= choice
        return found

    def learn(
        self, documents: Ragged, rows: Rows, targets: FloatArray, level: int, rate: float, momentum: float
    ) -> None:
        """Take one step towards targets over the classes of a level, in all local classifiers above them.

        The Kullback-Leibler divergence from the targets to products of choices is a sum over the inner nodes:
        each has its own divergence, weighed by the part of the target that lies below it.
        """
        mass = np.zeros((len(rows), len(self.taxonomy)), dtype=np.float32)
        mass[:, self.classes_at(level)] = targets
        for node in range(len(self.taxonomy) - 1, 0, -1):
            mass[:, self.taxonomy.parents[node]] += mass[:, node]
        for node, classifier in self.local.items():
            if self.taxonomy.depths[node] <= level:
                relevant = np.flatnonzero(mass[:, node] > _LEAST_MASS)
                if len(relevant):
                    batch = batch_of(documents, rows[relevant], self.vectors)
                    wanted = mass[relevant][:, list(self.taxonomy.children[node])]
                    classifier.learn(batch, wanted, rate, momentum, of=len(rows))


def softened(position: int, n_classes: int, alpha: float) -> FloatArray:
    """The label of a pseudo document: its category, and a share `alpha` spread evenly over all.

    Examples
    --------
    >>> softened(1, 4, 0.2).astype(float).round(2).tolist()
    [0.05, 0.85, 0.05, 0.05]
    """
    label = np.full(n_classes, alpha / n_classes, dtype=np.float32)
    label[position] += 1.0 - alpha
    return label


def pretrain(
    task: Task,
    documents: Ragged,
    vectors: FloatArray,
    made: Mapping[int, Ragged],
    settings: WeSHClassSettings,
) -> Ensemble:
    """Train a local classifier for every inner node with a choice, on pseudo and labelled documents.

    Examples
    --------
    >>> from himecat import Supervision, read_corpus
    >>> corpus = read_corpus(["goal", "law"])
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> made = {1: Ragged.from_lists([[0, 0]] * 9), 2: Ragged.from_lists([[1, 1]] * 9)}
    >>> few = WeSHClassSettings(epochs=40)
    >>> ensemble = pretrain(task, corpus.tokens, np.eye(2, dtype=np.float32), made, few)
    >>> ensemble.probabilities(corpus.tokens, np.arange(2))[:, 1:].argmax(axis=1).tolist()
    [0, 1]
    """
    taxonomy = task.taxonomy
    choosing = [node for node in taxonomy.inner if len(taxonomy.children[node]) > 1]
    # The largest first, so that no long job is left for the end.
    choosing.sort(key=lambda node: (-len(taxonomy.children[node]), node))
    with task.progress.stage("Pretraining the classifiers", total=settings.epochs * len(choosing)) as stage:

        def job_for(node: int) -> Callable[[], LocalClassifier]:
            def job() -> LocalClassifier:
                texts, targets = training_texts(task, documents, made, node, settings)
                seed = int(np.random.SeedSequence([task.seed, node]).generate_state(1)[0])
                classifier = LocalClassifier(vectors.shape[1], targets.shape[1], seed)
                _train(classifier, texts, targets, vectors, settings, seed, stage.advance)
                return classifier

            return job

        trained = run_parallel([job_for(node) for node in choosing], task.threads)
    return Ensemble(taxonomy, vectors, dict(zip(choosing, trained, strict=True)))


def training_texts(
    task: Task, documents: Ragged, made: Mapping[int, Ragged], node: int, settings: WeSHClassSettings
) -> tuple[Ragged, FloatArray]:
    """Texts and targets over the children of a node: pseudo documents with softened labels, labelled ones.

    Examples
    --------
    >>> from himecat import Supervision, read_corpus
    >>> corpus = read_corpus(["goal", "law"])
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> made = {1: Ragged.from_lists([[0, 0]])}
    >>> texts, targets = training_texts(task, corpus.tokens, made, 0, WeSHClassSettings(alpha=0.5))
    >>> len(texts), targets.tolist()
    (3, [[0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    """
    children = task.taxonomy.children[node]
    member = task.taxonomy.leaf_membership[list(children)][:, task.taxonomy.leaf_position[task.leaf_nodes]]
    known = np.flatnonzero(member.any(axis=0) & (documents.lengths[task.leaf_rows] > 0))
    parts = [made[child] for child in children if child in made]
    targets = [
        np.tile(softened(position, len(children), settings.alpha), (len(made[child]), 1))
        for position, child in enumerate(children)
        if child in made
    ]
    n_made = sum(len(part) for part in parts)
    repeats = max(1, math.ceil(settings.real_share * n_made / len(known))) if len(known) else 0
    parts.append(documents.take(np.tile(task.leaf_rows[known], repeats)))
    targets.append(np.tile(member[:, known].T, (repeats, 1)).astype(np.float32).reshape(-1, len(children)))
    return Ragged.concatenate(parts), np.concatenate(targets)


def _train(
    classifier: LocalClassifier,
    texts: Ragged,
    targets: FloatArray,
    vectors: FloatArray,
    settings: WeSHClassSettings,
    seed: int,
    advance: Callable[[int], None],
) -> None:
    rng = np.random.default_rng([seed, 1])
    if not len(texts):
        classifier.reset_output()
    for _ in range(settings.epochs):
        order = rng.permutation(len(texts))
        for start in range(0, len(order), BATCH):
            if stop_requested():
                raise Stopped
            rows = order[start : start + BATCH]
            batch = batch_of(texts, rows, vectors)
            classifier.learn(batch, targets[rows], settings.rate, settings.momentum)
        advance(1)
    classifier.reset_momentum()
