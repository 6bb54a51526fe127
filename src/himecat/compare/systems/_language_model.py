"""A small LSTM language model that continues a text from its first word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Ragged
from himecat.runtime.threads import Stopped, stop_requested

_BATCH = 64
_HIDDEN = 100
_RATE = 0.01
_LONGEST_GRADIENT = 1.0
# Words below each of these ranks have fewer weights each, and are scored only when their group is meant.
_RANKS = (400, 2000)
_FEWER = 2.0


@dataclass(frozen=True)
class LanguageModel:
    """A language model of the common words; all others are one unknown word, which is replaced by a random one.

    Attributes
    ----------
    common, rare : arrays of int
        Word ids: the common ones in the model's order, and those behind the unknown word.
    number : array of int
        For every word id, its place in `common`, or the one after the last.
    parts : tuple
        Vectors of the numbers, the LSTM and the layer that scores the next word (PyTorch).

    Examples
    --------
    >>> texts = Ragged.from_lists([[0, 1, 0, 1], [1, 0, 1, 0]] * 50)
    >>> model = learn_language(texts, np.eye(2, dtype=np.float32), tokens=6000)
    >>> model.texts_from(np.array([0, 1]), 4, seed=0).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0]]
    """

    common: npt.NDArray[np.int64]
    rare: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    parts: tuple[Any, Any, Any]

    def texts_from(self, starts: npt.NDArray[np.integer], length: int, seed: int) -> npt.NDArray[np.int32]:
        """Write one text of `length` words from each first word; a matrix of word ids."""
        import torch

        vectors, lstm, output = self.parts
        source = torch.Generator().manual_seed(seed)
        rng = np.random.default_rng(seed)
        written = np.empty((len(starts), length), dtype=np.int32)
        written[:, :1] = np.asarray(starts)[:, None]
        now, state = torch.from_numpy(self.number[np.asarray(starts)]), None
        with torch.inference_mode():
            for at in range(1, length):
                if stop_requested():
                    raise Stopped
                seen, state = lstm(vectors[now][:, None], state)
                now = _draw(output, seen[:, 0], source).clamp_(max=len(vectors) - 1)
                unknown = now.numpy() == len(self.common)
                written[:, at] = self.common[np.where(unknown, 0, now.numpy())]
                if unknown.any():
                    written[unknown, at] = rng.choice(self.rare, int(unknown.sum()))
        return written


def learn_language(
    documents: Ragged,
    vectors: npt.NDArray[np.float32],
    *,
    common_words: int = 5000,
    tokens: int = 300_000,
    sentence: int = 50,
    seed: int = 0,
    advance: Callable[[int], None] | None = None,
) -> LanguageModel:
    """Train a language model on frozen word vectors to predict the next word of the documents.

    The model knows the `common_words` most frequent ones, and reads `tokens` words of documents that are cut into
    pieces of `sentence` words, over and over in a small corpus; with 0 tokens it stays untrained.

    Examples
    --------
    >>> words = np.eye(3, dtype=np.float32)
    >>> model = learn_language(Ragged.from_lists([[0, 1], [1, 2, 1]]), words, common_words=1, tokens=0)
    >>> model.common.tolist(), model.rare.tolist()
    ([1], [0, 2])
    """
    import torch
    from torch import nn

    counts = np.bincount(documents.values, minlength=len(vectors))
    by_count = np.argsort(-counts, kind="stable")
    common, rare = by_count[:common_words], np.sort(by_count[common_words:])
    number = np.full(len(vectors), len(common), dtype=np.int64)
    number[common] = np.arange(len(common))
    unknown = vectors[rare].mean(axis=0, keepdims=True) if len(rare) else vectors[:0]
    table = torch.from_numpy(np.concatenate([vectors[common], unknown]))

    lstm = nn.LSTM(vectors.shape[1], _HIDDEN, batch_first=True)
    # The layer wants two words at least; a second one that does not exist is never the next.
    size = max(2, len(table))
    ranks = [rank for rank in _RANKS if rank < size] or [size - 1]
    output = nn.AdaptiveLogSoftmaxWithLoss(_HIDDEN, size, ranks, div_value=_FEWER)
    weights = [*lstm.parameters(), *output.parameters()]
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in weights:
            weight.uniform_(-(_HIDDEN**-0.5), _HIDDEN**-0.5, generator=source)
    optimizer = torch.optim.Adam(weights, lr=_RATE)
    pieces = _pieces(documents, number, sentence)
    rng = np.random.default_rng(seed)
    order, read = np.zeros(0, dtype=np.int64), 0
    while read < tokens and len(pieces):
        if stop_requested():
            raise Stopped
        if not len(order):
            order = rng.permutation(len(pieces))
        batch, order = pieces[order[:_BATCH]], order[_BATCH:]
        following = torch.from_numpy(batch[:, 1:])
        real = following >= 0
        # Padding is read as any word: what follows it is never asked for.
        seen, _ = lstm(table[torch.from_numpy(np.maximum(batch[:, :-1], 0))])
        loss = output(seen[real], following[real]).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, _LONGEST_GRADIENT)
        optimizer.step()
        n = int(real.sum())
        read += n
        if advance is not None:
            advance(n)
    return LanguageModel(common, rare, number, (table, lstm, output))


def _draw(output: Any, seen: Any, source: Any) -> Any:
    """Draw the next word's number for every row of what the LSTM has seen."""
    import torch

    def draw(scores: Any) -> Any:
        odds = torch.softmax(scores, dim=1).cumsum_(dim=1)
        draws = torch.rand((len(scores), 1), generator=source) * odds[:, -1:]
        return torch.searchsorted(odds, draws)[:, 0].clamp_(max=odds.shape[1] - 1)

    numbers = draw(output.head(seen))
    groups = numbers - output.shortlist_size
    for group, tail in enumerate(output.tail):
        chosen = torch.nonzero(groups == group)[:, 0]
        numbers[chosen] = output.cutoffs[group] + draw(tail(seen[chosen]))
    return numbers


def _pieces(documents: Ragged, number: npt.NDArray[np.int64], sentence: int) -> npt.NDArray[np.int64]:
    """The documents in the model's numbers, cut into rows of `sentence` words; -1 after the end of one.

    A piece begins with the word that the one before it ends with, so that every word but the first is asked for.
    """
    lengths = documents.lengths
    starts = [
        np.arange(first, last - 1, max(1, sentence - 1))
        for first, last in zip(documents.offsets[:-1], documents.offsets[1:], strict=True)
    ]
    if not len(documents) or lengths.max() < 2:
        return np.zeros((0, max(2, sentence)), dtype=np.int64)
    start = np.concatenate(starts)
    end = np.repeat(documents.offsets[1:], [len(part) for part in starts])
    at = start[:, None] + np.arange(max(2, sentence))
    inside = at < end[:, None]
    numbers: npt.NDArray[np.int64] = number[documents.values[np.where(inside, at, 0)]]
    return np.where(inside, numbers, -1)
