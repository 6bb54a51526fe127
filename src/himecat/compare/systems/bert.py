"""A pretrained transformer, fine-tuned on the labelled documents with a layer over the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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

# As in the training and fine-tuning of BERT itself.
_DROPOUT = 0.1
_INITIAL_SD = 0.02


@dataclass(frozen=True)
class Bert(FineTuned):
    """A pretrained transformer, fine-tuned on the labelled documents with a layer over the leaves.

    Attributes
    ----------
    epochs : int
        Passes over the labelled documents; for the others see `FineTuned`.

    Examples
    --------
    >>> Bert().epochs, Bert(max_text_tokens=64).max_text_tokens
    (20, 64)
    """

    name = "bert"
    title = "BERT"
    about = "A pretrained transformer, fine-tuned with one layer over the leaves."

    epochs: int = parameter(20, least=1)

    def predict_texts(self, task: Task, transformer: Transformer, rows: TokenRows) -> NodeArray:
        """Fine-tune the transformer with a layer over the leaves, and predict every text."""
        import torch

        leaves, classes = np.unique(task.leaf_nodes, return_inverse=True)
        output = torch.nn.Linear(transformer.width, len(leaves))
        torch.nn.init.normal_(output.weight, std=_INITIAL_SD)
        torch.nn.init.zeros_(output.bias)
        head = torch.nn.Sequential(torch.nn.Dropout(_DROPOUT), output)
        rng, labelled = np.random.default_rng(task.seed), task.leaf_rows
        orders = [rng.permutation(len(labelled)) for _ in range(self.epochs)]
        batches = [batch for order in orders for batch in in_batches(order, self.batch_size)]

        def loss(batch: IntArray) -> torch.Tensor:
            scores = head(transformer.first_tokens([rows[row] for row in labelled[batch]])).float()
            return torch.nn.functional.cross_entropy(scores, torch.from_numpy(classes[batch]))

        self.train(task, transformer, (transformer.body, head), loss, batches)
        scores = self.place(
            task, "Placing documents", lambda batch: head(transformer.first_tokens(batch)), rows
        )
        found: NodeArray = leaves[scores.argmax(axis=1)]
        return found
