"""Kim-CNN on frozen word vectors (section 3.4, Hierarchical Classifier Training).

The network is the usual one: filters of several widths slide over the word vectors, the largest response of
each filter is kept, a small dense layer and a softmax follow. Because the word vectors do not change, each
distinct word of a batch is multiplied with the filters once, and a window is a sum of looked-up rows; the
gradient of a maximum reaches only the window that won it. `tests/oracles/kimcnn.py` is the textbook form of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.input.corpus import IntArray, OffsetArray, Ragged
from himecat.kernels import kimcnn as _kernels
from himecat.paper.flat_classifier import FloatArray, TrainingSet
from himecat.runtime.softmax import softmax
from himecat.runtime.threads import Stopped, stop_requested

# Documents scored at a time in prediction: enough to share the table of distinct words, little memory.
_PREDICT_BATCH = 8192


@dataclass(frozen=True)
class Batch:
    """Documents whose words are numbered among themselves: row i of `vectors` belongs to word i.

    `table` is room for the products of the words with the filters, if there is some.
    """

    vectors: FloatArray
    words: IntArray
    offsets: OffsetArray
    table: FloatArray | None = None


@dataclass(frozen=True)
class Pass:
    """What the network computed for a batch, kept for the gradient."""

    batch: Batch
    positions: IntArray
    features: FloatArray
    hidden: FloatArray
    scores: FloatArray


def _glorot(rng: np.random.Generator, fan_in: int, fan_out: int, shape: tuple[int, ...]) -> FloatArray:
    limit = np.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-limit, limit, shape).astype(np.float32)


class Weights:
    """The arrays of the network, laid one after the other in a single vector.

    Examples
    --------
    >>> weights = Weights(4, 3, (2, 3), 5, 6)
    >>> weights.filters.shape, weights.output.shape, len(weights.vector)
    ((4, 25), (6, 3), 197)
    """

    def __init__(
        self, dimension: int, n_classes: int, widths: tuple[int, ...], maps: int, hidden: int
    ) -> None:
        self.sizes = (dimension, n_classes, widths, maps, hidden)
        n_features = len(widths) * maps
        shapes = {
            "filters": (dimension, sum(widths) * maps),
            "bias": (n_features,),
            "dense": (n_features, hidden),
            "dense_bias": (hidden,),
            "output": (hidden, n_classes),
            "output_bias": (n_classes,),
        }
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        self.vector = np.zeros(ends[-1], dtype=np.float32)
        parts = np.split(self.vector, ends[:-1])
        # By name, in the order in which they are saved; all are views of `vector`.
        self.arrays: dict[str, FloatArray] = {
            name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }
        self.filters, self.bias = self.arrays["filters"], self.arrays["bias"]
        self.dense, self.dense_bias = self.arrays["dense"], self.arrays["dense_bias"]
        self.output, self.output_bias = self.arrays["output"], self.arrays["output_bias"]


class KimNetwork:
    """The network itself: filters, maximum over time, dense layer, scores.

    Parameters
    ----------
    dimension, n_classes : int
        Length of a word vector; number of children to choose among.
    widths, maps, hidden
        Filter widths, filters per width, units of the dense layer.
    rng : numpy.random.Generator
        Source of the starting weights.

    Examples
    --------
    >>> network = KimNetwork(4, 3, (2, 3), 5, 6, np.random.default_rng(0))
    >>> batch = Batch(np.eye(4, dtype=np.float32), np.array([0, 1, 2], np.int32), np.array([0, 2, 3]))
    >>> network.forward(batch).scores.shape
    (2, 3)
    """

    def __init__(
        self,
        dimension: int,
        n_classes: int,
        widths: tuple[int, ...],
        maps: int,
        hidden: int,
        rng: np.random.Generator,
    ) -> None:
        self.widths = np.asarray(sorted(widths), dtype=np.int64)
        self.maps = maps
        self.weights = Weights(dimension, n_classes, widths, maps, hidden)
        n_features = len(widths) * maps
        # Slices of one filter share its fan, whatever their place in the table.
        by_width = {
            width: _glorot(rng, width * dimension, width * maps, (width, dimension, maps))
            for width in self.widths.tolist()
        }
        columns = _kernels.first_columns(self.widths, maps)
        for starts, (width, slices) in zip(columns, by_width.items(), strict=True):
            for offset in range(width):
                self.weights.filters[:, starts[offset] : starts[offset] + maps] = slices[offset]
        self.weights.dense[:] = _glorot(rng, n_features, hidden, (n_features, hidden))
        self.weights.output[:] = _glorot(rng, hidden, n_classes, (hidden, n_classes))

    def forward(self, batch: Batch) -> Pass:
        """Compute the scores of the documents."""
        weights = self.weights
        table = np.matmul(batch.vectors, weights.filters, out=batch.table)
        features = np.empty((len(batch.offsets) - 1, len(weights.bias)), dtype=np.float32)
        positions = np.empty(features.shape, dtype=np.int32)
        _kernels.max_over_time(batch.words, batch.offsets, table, self.widths, self.maps, features, positions)
        features += weights.bias
        np.maximum(features, 0.0, out=features)
        hidden = np.maximum(features @ weights.dense + weights.dense_bias, 0.0)
        return Pass(batch, positions, features, hidden, hidden @ weights.output + weights.output_bias)

    def backward(self, done: Pass, slope: FloatArray, gradient: Weights) -> None:
        """Write into `gradient` how the weights change a number whose slope along the scores is given."""
        weights = self.weights
        np.matmul(done.hidden.T, slope, out=gradient.output)
        slope.sum(axis=0, out=gradient.output_bias)
        hidden = slope @ weights.output.T
        hidden *= done.hidden > 0
        np.matmul(done.features.T, hidden, out=gradient.dense)
        hidden.sum(axis=0, out=gradient.dense_bias)
        features = hidden @ weights.dense.T
        features *= done.features > 0
        features.sum(axis=0, out=gradient.bias)
        by_column = np.empty(weights.filters.shape[::-1], dtype=np.float32)
        _kernels.filter_gradient(
            done.batch.words,
            done.batch.offsets,
            done.positions,
            features,
            self.widths,
            self.maps,
            done.batch.vectors,
            by_column,
        )
        gradient.filters[:] = by_column.T


class Descent:
    """Gradient descent with momentum on the cross-entropy of a network's scores to soft targets.

    Examples
    --------
    >>> network = KimNetwork(2, 2, (2, 3), 5, 6, np.random.default_rng(0))
    >>> batch = Batch(np.eye(2, dtype=np.float32), np.array([0, 1], np.int32), np.array([0, 1, 2]))
    >>> descent = Descent(network, rate=0.1, momentum=0.9)
    >>> for _ in range(50):
    ...     descent.step(batch, np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32))
    >>> network.forward(batch).scores.argmax(axis=1).tolist()
    [0, 1]
    """

    def __init__(self, network: KimNetwork, rate: float, momentum: float) -> None:
        self.network, self.rate, self.momentum = network, rate, momentum
        self._gradient = Weights(*network.weights.sizes)
        self._velocity = np.zeros_like(network.weights.vector)

    def step(self, batch: Batch, targets: FloatArray, of: int | None = None) -> None:
        """Take one step; a row of targets sums to the document's weight, and the loss is a mean over `of` documents."""
        done = self.network.forward(batch)
        slope = softmax(done.scores) * targets.sum(axis=1, keepdims=True) - targets
        slope /= of or len(targets)
        self.network.backward(done, slope, self._gradient)
        self._velocity *= self.momentum
        self._velocity += self._gradient.vector
        self.network.weights.vector -= self.rate * self._velocity


class Batches:
    """Lays out chosen documents as batches; a batch is good until the next one is made."""

    def __init__(self, documents: Ragged, words: FloatArray, network: KimNetwork, most: int) -> None:
        if len(documents.values) and not 0 <= documents.values.min() <= documents.values.max() < len(words):
            # The kernels do not look: a wrong number would reach into other memory.
            raise UsageError(f"The documents have word ids outside 0 to {len(words) - 1}.")
        self._documents = documents
        self._words = np.ascontiguousarray(words)
        lengths = np.sort(documents.lengths)
        n_tokens = int(lengths[max(len(lengths) - most, 0) :].sum())
        n_distinct = min(n_tokens, len(words))
        self._place = np.full(len(words), -1, dtype=np.int32)
        self._local = np.empty(n_tokens, dtype=np.int32)
        self._offsets = np.empty(most + 1, dtype=np.int64)
        self._distinct = np.empty(n_distinct, dtype=np.int32)
        # Fresh memory of this size for every batch would cost as much as finding the maxima.
        self._vectors = np.empty((n_distinct, words.shape[1]), dtype=np.float32)
        self._table = np.empty((n_distinct, network.weights.filters.shape[1]), dtype=np.float32)

    def __call__(self, rows: npt.NDArray[np.int64]) -> Batch:
        """The documents of the given rows."""
        n = _kernels.number_words(
            self._documents.values,
            self._documents.offsets,
            rows,
            self._place,
            self._local,
            self._offsets,
            self._distinct,
        )
        # The numbers are in range; saying so spares a copy.
        vectors = np.take(self._words, self._distinct[:n], axis=0, out=self._vectors[:n], mode="clip")
        return Batch(vectors, self._local, self._offsets[: len(rows) + 1], self._table[:n])


@dataclass(eq=False)
class KimCNN:
    """Kim-CNN as a flat classifier.

    Parameters
    ----------
    widths : tuple of int
        Filter widths.
    maps : int
        Filters per width.
    hidden : int
        Units of the dense layer before the softmax.
    epochs, batch_size : int
        Passes over the training set and documents per step.
    min_steps : int
        A small training set is passed over more often, until this many steps are done.
    epoch_documents : int or None
        Documents of each class that an epoch counts as having, so that training sets of any size are trained
        for as many steps; None for those that there are.
    rate, momentum : float
        Of stochastic gradient descent.

    Examples
    --------
    >>> words = np.eye(4, dtype=np.float32)
    >>> training = TrainingSet(Ragged.from_lists([[0, 1], [2, 3]] * 20), np.array([0, 1] * 20), 2)
    >>> cnn = KimCNN(epochs=40, batch_size=8)
    >>> cnn.fit(training, words, seed=0)
    >>> cnn.predict_proba(Ragged.from_lists([[1, 0], [3, 3]]), words).argmax(axis=1).tolist()
    [0, 1]
    """

    name = "kim-cnn"

    widths: tuple[int, ...] = (2, 3, 4, 5)
    maps: int = 20
    hidden: int = 20
    epochs: int = 30
    batch_size: int = 256
    min_steps: int = 0
    epoch_documents: int | None = None
    rate: float = 0.1
    momentum: float = 0.9
    network: KimNetwork = field(init=False, repr=False)
    n_classes: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Order the filters by their width."""
        self.widths = tuple(sorted(self.widths))

    def fit(
        self,
        training: TrainingSet,
        words: FloatArray,
        *,
        seed: int,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        """Train on documents; the same seed gives the same weights."""
        rng = np.random.default_rng(seed)
        self.initialise(words.shape[1], training.n_classes, rng)
        self.train(training, words, rng, advance)

    def initialise(self, dimension: int, n_classes: int, rng: np.random.Generator) -> None:
        """Begin with random weights."""
        self.n_classes = n_classes
        self.network = KimNetwork(dimension, n_classes, self.widths, self.maps, self.hidden, rng)

    def train(
        self,
        training: TrainingSet,
        words: FloatArray,
        rng: np.random.Generator,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        """Train the network further, on documents in an order that `rng` draws."""
        if not len(training):
            # Nothing to learn from: equal scores, not those of random weights.
            self.network.weights.output[:] = 0.0
            return
        descent = Descent(self.network, self.rate, self.momentum)
        batch_of = Batches(training.documents, words, self.network, self.batch_size)
        batches = math.ceil(len(training) / self.batch_size)
        passes = max(self.epochs, math.ceil(self.min_steps / batches))
        steps = passes * batches
        if self.epoch_documents is not None:
            wanted = self.epochs * math.ceil(self.epoch_documents * self.n_classes / self.batch_size)
            steps = max(wanted, self.min_steps)
            passes = math.ceil(steps / batches)
        for done in range(1, passes + 1):
            order = rng.permutation(len(training))
            for start in range(0, len(order), self.batch_size)[: steps - (done - 1) * batches]:
                if stop_requested():
                    raise Stopped
                chosen = order[start : start + self.batch_size]
                descent.step(batch_of(chosen), training.soft_targets(chosen))
            if advance is not None:
                # Whatever the number of passes, progress counts epochs.
                advance(done * self.epochs // passes - (done - 1) * self.epochs // passes)

    def predict_proba(self, documents: Ragged, words: FloatArray) -> FloatArray:
        """Probabilities over the children; a document without known words gets equal ones."""
        batch_of = Batches(documents, words, self.network, _PREDICT_BATCH)
        found = np.empty((len(documents), self.n_classes), dtype=np.float32)
        for start in range(0, len(documents), _PREDICT_BATCH):
            rows = np.arange(start, min(start + _PREDICT_BATCH, len(documents)))
            found[rows] = softmax(self.network.forward(batch_of(rows)).scores)
        found[documents.lengths == 0] = 1.0 / self.n_classes
        return found

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Settings and weights."""
        settings = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        settings["widths"] = list(self.widths)
        return settings, dict(self.network.weights.arrays)

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> KimCNN:
        """Rebuild from settings and weights."""
        cnn = cls(**{**settings, "widths": tuple(settings["widths"])})
        n_classes = int(arrays["output_bias"].shape[0])
        cnn.initialise(arrays["filters"].shape[0], n_classes, np.random.default_rng(0))
        for name, array in cnn.network.weights.arrays.items():
            if arrays[name].shape != array.shape:
                raise ValueError(f"{name!r} should have the shape {array.shape}, not {arrays[name].shape}")
            array[:] = arrays[name]
        return cnn
