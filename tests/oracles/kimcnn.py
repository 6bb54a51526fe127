"""The Kim-CNN as a textbook builds it, from `nn.Embedding` and `nn.Conv1d`.

The tests and `benchmarks/classifier.py` compare `himecat.paper.kimcnn` with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from himecat.paper.kimcnn import Batch, KimNetwork  # noqa: F401 (Batch is for the examples)


def filters_by_width(table: torch.Tensor, widths: Sequence[int], maps: int) -> dict[int, torch.Tensor]:
    """Take the columns of the kernels' filter table (or of its gradient) apart: width -> weight of a Conv1d.

    Examples
    --------
    >>> table = torch.arange(8.0)[None]
    >>> {width: weight.shape for width, weight in filters_by_width(table, (1, 3), 2).items()}
    {1: torch.Size([2, 1, 1]), 3: torch.Size([2, 1, 3])}
    """
    slices: dict[int, list[torch.Tensor]] = {width: [] for width in sorted(widths)}
    column = 0
    for offset in range(max(slices)):
        for width, found in slices.items():
            if offset < width:
                found.append(table[:, column : column + maps].T)
                column += maps
    return {width: torch.stack(found, dim=2) for width, found in slices.items()}


class PlainNetwork(nn.Module):
    """Frozen embedding, one convolution per width, maximum over time, ReLU, dense layer, scores.

    Parameters
    ----------
    vectors : tensor
        The word vectors, one row per word.
    n_classes, widths, maps, hidden
        As for :class:`himecat.paper.kimcnn.KimNetwork`.

    Examples
    --------
    >>> plain = PlainNetwork(torch.eye(4), 3, (2, 3), 5, 6)
    >>> plain(np.array([0, 1, 2], np.int32), np.array([0, 2, 3])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, vectors: torch.Tensor, n_classes: int, widths: Sequence[int], maps: int, hidden: int
    ) -> None:
        super().__init__()
        n_words, dimension = vectors.shape
        self.padding = n_words
        rows = torch.cat([vectors, vectors.new_zeros((1, dimension))])
        self.embedding = nn.Embedding(n_words + 1, dimension, padding_idx=self.padding)
        self.embedding.weight = nn.Parameter(rows, requires_grad=False)
        self.widths = sorted(widths)
        self.convolutions = nn.ModuleList(nn.Conv1d(dimension, maps, width) for width in self.widths)
        self.dense = nn.Linear(len(widths) * maps, hidden)
        self.output = nn.Linear(hidden, n_classes)

    def forward(self, words: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]) -> torch.Tensor:
        """Scores of documents given as word ids and the offsets where each document begins."""
        lengths = torch.from_numpy(np.diff(offsets))
        longest = max(int(lengths.max()), *self.widths)
        padded = torch.full((len(lengths), longest), self.padding)
        padded[torch.arange(longest) < lengths[:, None]] = torch.from_numpy(words.astype(np.int64))
        # Laid out once for all widths: each convolution would do it for itself.
        embedded = self.embedding(padded).transpose(1, 2).contiguous()
        features = []
        for width, convolution in zip(self.widths, self.convolutions, strict=True):
            responses = convolution(embedded)
            # Windows inside the document compete; a document shorter than the filter has the first one only.
            last = (lengths - width).clamp(min=0)
            outside = torch.arange(responses.shape[2])[None, :] > last[:, None]
            features.append(responses.masked_fill(outside[:, None, :], -torch.inf).max(dim=2).values)
        hidden = torch.relu(self.dense(torch.relu(torch.cat(features, dim=1))))
        scores: torch.Tensor = self.output(hidden)
        return scores


def plain_copy(network: KimNetwork, vectors: torch.Tensor) -> PlainNetwork:
    """Build the textbook network with the weights of a :class:`~himecat.paper.kimcnn.KimNetwork`.

    Examples
    --------
    >>> network = KimNetwork(4, 3, (2, 3), 5, 6, np.random.default_rng(0))
    >>> words, offsets = np.array([0, 1, 2], np.int32), np.array([0, 2, 3])
    >>> expected = plain_copy(network, torch.eye(4))(words, offsets)
    >>> found = network.forward(Batch(np.eye(4, dtype=np.float32), words, offsets)).scores
    >>> torch.allclose(torch.from_numpy(found), expected, atol=1e-6)
    True
    """
    widths = [int(width) for width in network.widths]
    own = {name: torch.from_numpy(array) for name, array in network.weights.arrays.items()}
    hidden, n_classes = own["output"].shape
    plain = PlainNetwork(vectors, n_classes, widths, network.maps, hidden)
    filters = filters_by_width(own["filters"], widths, network.maps)
    weights = {
        "embedding.weight": plain.embedding.weight,
        "dense.weight": own["dense"].T,
        "dense.bias": own["dense_bias"],
        "output.weight": own["output"].T,
        "output.bias": own["output_bias"],
    }
    for position, bias in enumerate(own["bias"].reshape(len(widths), network.maps)):
        weights[f"convolutions.{position}.weight"] = filters[widths[position]]
        weights[f"convolutions.{position}.bias"] = bias
    plain.load_state_dict(weights)
    return plain
