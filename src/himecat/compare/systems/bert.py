"""A pretrained transformer, fine-tuned on the labelled documents with a layer over the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from himecat.compare.systems._checks import require_above_zero, require_at_least
from himecat.compare.systems._transformer import (
    IntArray,
    TokenRows,
    Transformer,
    apply_to_all,
    fine_tune,
    in_batches,
    seeded,
)
from himecat.compare.systems.system import NodeArray, System, Task

if TYPE_CHECKING:
    import torch

# Both as BERT itself was trained and fine-tuned.
_DROPOUT = 0.1
_SPREAD_OF_WEIGHTS = 0.02


@dataclass(frozen=True)
class Bert(System):
    """A pretrained transformer, fine-tuned on the labelled documents with a layer over the leaves.

    Attributes
    ----------
    max_text_tokens : int
        Longer texts are cut in the middle, for training and for placing alike.
    epochs, batch_size : int
        Passes over the labelled documents, and documents per training step.
    learning_rate : float or None
        Highest step size; None for 2e-5, or 1e-4 where the transformer is narrower than BERT's base model.

    Examples
    --------
    >>> Bert().epochs, Bert(max_text_tokens=128).max_text_tokens
    (20, 128)
    """

    name = "bert"
    title = "BERT"
    about = "A pretrained transformer, fine-tuned with one layer over the leaves."
    texts = True
    loads_encoder = True
    requires = ("torch", "sentence_transformers")

    max_text_tokens: int = 64
    epochs: int = 20
    batch_size: int = 16
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        require_at_least(self, max_text_tokens=4, epochs=1, batch_size=1)
        require_above_zero(self, "learning_rate")

    def place(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        leaves, classes = np.unique(task.leaf_nodes, return_inverse=True)
        with seeded(task.seed, task.threads):
            transformer = Transformer.of(task, self.name)
            if len(leaves) == 1:
                return np.full(len(task.corpus), leaves[0], dtype=np.int64)
            rows = transformer.tokens(task.texts, self.max_text_tokens)
            head = self._fine_tuned(task, transformer, [rows[row] for row in task.leaf_rows], classes)
            with task.progress.stage("Placing documents", total=len(rows)) as stage:
                scores = apply_to_all(lambda batch: head(transformer.first_tokens(batch)), rows, stage)
        found: NodeArray = leaves[scores.argmax(axis=1)]
        return found

    def _fine_tuned(
        self, task: Task, transformer: Transformer, rows: TokenRows, classes: IntArray
    ) -> torch.nn.Module:
        """The layer over the leaves; the transformer below it is trained with it."""
        import torch

        output = torch.nn.Linear(transformer.width, int(classes.max()) + 1)
        torch.nn.init.normal_(output.weight, std=_SPREAD_OF_WEIGHTS)
        torch.nn.init.zeros_(output.bias)
        head = torch.nn.Sequential(torch.nn.Dropout(_DROPOUT), output)
        rng = np.random.default_rng(task.seed)
        batches = [
            batch
            for _ in range(self.epochs)
            for batch in in_batches(rng.permutation(len(rows)), self.batch_size)
        ]

        def loss(batch: IntArray) -> torch.Tensor:
            scores = head(transformer.first_tokens([rows[row] for row in batch]))
            return torch.nn.functional.cross_entropy(scores, torch.from_numpy(classes[batch]))

        with task.progress.stage("Fine-tuning the transformer", total=len(batches)) as stage:
            rate = transformer.learning_rate if self.learning_rate is None else self.learning_rate
            fine_tune((transformer.body, head), loss, batches, rate, stage)
        return head
