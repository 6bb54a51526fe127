"""Kim-CNN on frozen word vectors, in PyTorch.

The network is the usual one: filters of several widths slide over the word vectors, the largest response of
each filter is kept, a small dense layer and a softmax follow. Because the word vectors do not change, each
distinct word of a batch is multiplied with the filters once, and a window is a sum of looked-up rows; the
gradient of a maximum reaches only the window that won it. `_plain.py` is the textbook form of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from himecat.classify import _kernels
from himecat.classify.protocol import FloatArray, TrainingSet
from himecat.corpus.columns import Ragged
from himecat.parallel import Stopped, stop_requested

# Documents scored at a time in prediction: enough to share the table of distinct words, little memory.
_PREDICT_BATCH = 2048


class _MaxOverTime(torch.autograd.Function):
    """Table of (word x filter slice) products -> largest window sum of each filter, per document."""

    @staticmethod
    def forward(
        ctx: Any,
        table: torch.Tensor,
        words: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
        widths: npt.NDArray[np.int64],
        maps: int,
    ) -> torch.Tensor:
        n_documents = len(offsets) - 1
        features = np.empty((n_documents, len(widths) * maps), dtype=np.float32)
        positions = np.empty(features.shape, dtype=np.int32)
        _kernels.max_over_time(words, offsets, table.detach().numpy(), widths, maps, features, positions)
        ctx.layout = (words, offsets, widths, maps, positions, table.shape)
        return torch.from_numpy(features)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
        words, offsets, widths, maps, positions, shape = ctx.layout
        gradient = np.ascontiguousarray(gradients[0].numpy())
        table_gradient = np.zeros(tuple(shape), dtype=np.float32)
        _kernels.scatter_gradient(words, offsets, positions, gradient, widths, maps, table_gradient)
        return torch.from_numpy(table_gradient), None, None, None, None


def _glorot(rng: np.random.Generator, fan_in: int, fan_out: int, shape: tuple[int, ...]) -> nn.Parameter:
    limit = np.sqrt(6.0 / (fan_in + fan_out))
    return nn.Parameter(torch.from_numpy(rng.uniform(-limit, limit, shape).astype(np.float32)))


class KimNetwork(nn.Module):
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
    >>> vectors = torch.eye(4)
    >>> network(vectors, np.array([0, 1, 2], np.int32), np.array([0, 2, 3])).shape
    torch.Size([2, 3])
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
        super().__init__()
        self.widths = np.asarray(sorted(widths), dtype=np.int64)
        self.maps = maps
        n_features = len(widths) * maps
        # Slices of one filter share its fan, whatever their place in the table.
        by_width = {
            int(width): _glorot(rng, int(width) * dimension, int(width) * maps, (int(width), dimension, maps))
            for width in self.widths
        }
        slices = [
            by_width[int(width)][offset]
            for offset in range(int(self.widths[-1]))
            for width in self.widths
            if offset < width
        ]
        self.filters = nn.Parameter(torch.cat([part.detach() for part in slices], dim=1).contiguous())
        self.bias = nn.Parameter(torch.zeros(n_features))
        self.dense = _glorot(rng, n_features, hidden, (n_features, hidden))
        self.dense_bias = nn.Parameter(torch.zeros(hidden))
        self.output = _glorot(rng, hidden, n_classes, (hidden, n_classes))
        self.output_bias = nn.Parameter(torch.zeros(n_classes))

    def forward(
        self, vectors: torch.Tensor, words: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
    ) -> torch.Tensor:
        """Scores of documents whose words are rows of `vectors`."""
        table = vectors @ self.filters
        largest: torch.Tensor = _MaxOverTime.apply(table, words, offsets, self.widths, self.maps)  # type: ignore[no-untyped-call]
        features = torch.relu(largest + self.bias)
        hidden = torch.relu(torch.addmm(self.dense_bias, features, self.dense))
        return torch.addmm(self.output_bias, hidden, self.output)


class _Distinct:
    """Renumbers the words of a batch so that each distinct word has one row."""

    def __init__(self, n_words: int) -> None:
        self._seen = np.zeros(n_words, dtype=np.bool_)
        self._place = np.zeros(n_words, dtype=np.int32)

    def __call__(self, words: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        self._seen[words] = True
        distinct = np.flatnonzero(self._seen)
        self._seen[distinct] = False
        self._place[distinct] = np.arange(len(distinct), dtype=np.int32)
        return distinct, self._place[words]


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

    def __init__(
        self,
        widths: tuple[int, ...] = (2, 3, 4, 5),
        maps: int = 20,
        hidden: int = 20,
        epochs: int = 30,
        batch_size: int = 256,
        min_steps: int = 0,
        rate: float = 0.1,
        momentum: float = 0.9,
    ) -> None:
        self.widths = tuple(sorted(widths))
        self.maps = maps
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.rate = rate
        self.momentum = momentum
        self.n_classes = 0
        self.network: KimNetwork | None = None

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
        self.n_classes = training.n_classes
        self.network = KimNetwork(
            words.shape[1], training.n_classes, self.widths, self.maps, self.hidden, rng
        )
        if not len(training):
            # Nothing to learn from: equal scores, not those of random weights.
            with torch.no_grad():
                self.network.output.zero_()
            return
        optimiser = torch.optim.SGD(self.network.parameters(), lr=self.rate, momentum=self.momentum)
        loss_of = nn.CrossEntropyLoss()
        vectors = torch.from_numpy(np.ascontiguousarray(words))
        targets = torch.from_numpy(training.targets)
        distinct_words = _Distinct(len(words))
        batches = math.ceil(len(training) / self.batch_size)
        passes = max(self.epochs, math.ceil(self.min_steps / max(1, batches)))
        for done in range(1, passes + 1):
            order = rng.permutation(len(training))
            for start in range(0, len(order), self.batch_size):
                if stop_requested():
                    raise Stopped
                chosen = order[start : start + self.batch_size]
                batch = training.documents.take(chosen)
                distinct, local = distinct_words(batch.values)
                scores = self.network(vectors[distinct], local, batch.offsets)
                loss = loss_of(scores, targets[chosen])
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
            if advance is not None:
                # Whatever the number of passes, progress is told in epochs.
                advance(done * self.epochs // passes - (done - 1) * self.epochs // passes)

    def predict_proba(self, documents: Ragged, words: FloatArray) -> FloatArray:
        """Probabilities over the children; a document without known words gets equal ones."""
        assert self.network is not None
        vectors = torch.from_numpy(np.ascontiguousarray(words))
        distinct_words = _Distinct(len(words))
        found = np.empty((len(documents), self.n_classes), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(documents), _PREDICT_BATCH):
                batch = documents.take(np.arange(start, min(start + _PREDICT_BATCH, len(documents))))
                distinct, local = distinct_words(batch.values)
                scores = self.network(vectors[distinct], local, batch.offsets)
                found[start : start + len(batch)] = torch.softmax(scores, dim=1).numpy()
        found[documents.lengths == 0] = 1.0 / self.n_classes
        return found

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Settings and weights."""
        assert self.network is not None
        settings = {
            "widths": list(self.widths),
            "maps": self.maps,
            "hidden": self.hidden,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "min_steps": self.min_steps,
            "rate": self.rate,
            "momentum": self.momentum,
        }
        arrays = {key: value.detach().numpy() for key, value in self.network.state_dict().items()}
        return settings, arrays

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> KimCNN:
        """Rebuild from settings and weights."""
        cnn = cls(**{**settings, "widths": tuple(settings["widths"])})
        dimension = arrays["filters"].shape[0]
        cnn.n_classes = int(arrays["output_bias"].shape[0])
        cnn.network = KimNetwork(
            dimension, cnn.n_classes, cnn.widths, cnn.maps, cnn.hidden, np.random.default_rng(0)
        )
        cnn.network.load_state_dict({key: torch.from_numpy(value.copy()) for key, value in arrays.items()})
        return cnn
