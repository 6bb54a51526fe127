"""Contrastive fine-tuning of a sentence encoder on pairs of labelled documents, then logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._transformer import (
    FineTuned,
    IntArray,
    TokenRows,
    Transformer,
    in_batches,
)
from himecat.compare.systems.system import NodeArray, Task, parameter

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class SetFit(FineTuned):
    """Contrastive fine-tuning of a sentence encoder on pairs of labelled documents, then logistic regression.

    Attributes
    ----------
    pairs : int
        Pairs of one leaf, and pairs of two leaves, that are drawn for each leaf.
    max_steps : int
        The most training steps; for the others see `FineTuned`.
    c : float
        Inverse regularisation strength of the logistic regression.

    Examples
    --------
    >>> SetFit().pairs, SetFit(max_steps=50).max_steps
    (20, 50)
    """

    name = "setfit"
    title = "SetFit"
    about = "A sentence encoder, fine-tuned on pairs of labelled documents, and one flat logistic regression."

    pairs: int = parameter(20, least=1)
    max_steps: int = parameter(250, least=0)
    c: float = parameter(1.0, above=0)

    def predict_texts(self, task: Task, transformer: Transformer, rows: TokenRows) -> NodeArray:
        """Fine-tune the encoder on pairs, and classify the vector of every text."""
        import torch
        from sklearn.linear_model import LogisticRegression

        left, right, same = draw_pairs(task.leaf_nodes, self.pairs, np.random.default_rng(task.seed))
        batches = in_batches(np.arange(len(same)), self.batch_size)[: self.max_steps]
        numbers = task.leaf_rows

        def loss(batch: IntArray) -> torch.Tensor:
            both = numbers[np.concatenate([left[batch], right[batch]])]
            vectors = transformer.sentences([rows[row] for row in both])
            found = torch.nn.functional.cosine_similarity(vectors[: len(batch)], vectors[len(batch) :])
            return torch.nn.functional.mse_loss(found, torch.from_numpy(same[batch]))

        self.train(task, transformer, (transformer.model,), loss, batches)
        vectors = self.place(task, "Encoding documents", transformer.sentences, rows)
        return task.predict_flat(vectors, LogisticRegression(C=self.c, max_iter=1000))


def draw_pairs(
    leaves: IntArray, pairs: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, npt.NDArray[np.float32]]:
    """Pairs of labelled documents in random order: as many of one leaf as of two, for each leaf.

    Parameters
    ----------
    leaves : array of int
        The leaf of each labelled document; there are at least two.
    pairs : int
        Pairs of each kind per leaf.
    rng : numpy.random.Generator
        Draws them.

    Returns
    -------
    left, right : arrays of int
        Places of the documents in `leaves`.
    same : array of float
        1 where both are of one leaf, 0 where not.

    Examples
    --------
    >>> leaves = np.array([3, 3, 4, 5, 5])
    >>> left, right, same = draw_pairs(leaves, 2, np.random.default_rng(0))
    >>> len(left), bool(((leaves[left] == leaves[right]) == same).all())
    (10, True)
    """
    left: list[IntArray] = []
    right: list[IntArray] = []
    for leaf in np.unique(leaves):
        inside, outside = np.flatnonzero(leaves == leaf), np.flatnonzero(leaves != leaf)
        left.append(rng.choice(inside, pairs))
        right.append(rng.choice(outside, pairs))
        # The only document of a leaf has no partner: a text is always like itself and would teach nothing.
        if len(inside) > 1:
            place = rng.integers(len(inside), size=pairs)
            left.append(inside[place])
            right.append(inside[(place + rng.integers(1, len(inside), size=pairs)) % len(inside)])
    first, second = np.concatenate(left), np.concatenate(right)
    order = rng.permutation(len(first))
    first, second = first[order], second[order]
    return first, second, (leaves[first] == leaves[second]).astype(np.float32)
