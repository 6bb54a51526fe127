"""Votes of documents that share metadata values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from himecat import Default, HiMeCat
from himecat.classifier.votes import Votes, learn_votes
from himecat.errors import UsageError
from himecat.views.base import Group

WORDS = {
    "fruit": "apple pear plum grape cherry",
    "metal": "iron steel copper tin zinc",
    "cloth": "silk wool linen felt",
}


def shop_documents(n: int, pure: bool, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Documents with one telling word among many that say nothing; a shop sells one kind of thing, or anything."""
    rng = np.random.default_rng(seed)
    kinds = list(WORDS)
    documents, labels = [], []
    for number in range(n):
        label = kinds[number % 3]
        noise = [f"w{one}" for one in rng.integers(60, size=6)]
        # A third of the texts tell nothing, and a sixth the wrong thing.
        told = rng.choice([label, rng.choice(kinds), ""], p=[0.5, 0.2, 0.3])
        word = [str(rng.choice(WORDS[told].split()))] if told else []
        shop = f"{label if pure else ''}{rng.integers(6 if pure else 18)}"
        documents.append({"id": str(number), "text": " ".join([*word, *noise]), "shop": [shop]})
        labels.append(label)
    return documents, labels


def accuracy(documents: list[dict[str, Any]], labels: list[str], **options: Any) -> float:
    known = [label if number < 45 else None for number, label in enumerate(labels)]
    model = HiMeCat(metadata=["shop"], threads=1, **options).fit(documents, known)
    return float(np.mean(model.predict(documents)[45:] == np.array(labels[45:], dtype=object)))


def test_votes_add_up_where_a_value_decides() -> None:
    documents, labels = shop_documents(420, pure=True)
    without = accuracy(documents, labels, method=Default(votes=False))
    learned, told = accuracy(documents, labels), accuracy(documents, labels, decides=["shop"])
    assert learned > without + 0.02
    assert told > 0.97


def test_votes_of_values_that_say_nothing_cost_nothing() -> None:
    gains = []
    for seed in (0, 1):
        documents, labels = shop_documents(900, pure=False, seed=seed)
        gains.append(accuracy(documents, labels) - accuracy(documents, labels, method=Default(votes=False)))
    assert np.mean(gains) > -0.005


def test_a_document_does_not_vote_on_itself() -> None:
    """The opinion on a voter is that of the others; a stranger with the same value hears all of them."""
    members = csr_matrix(np.ones((3, 1), np.float32))
    marks = np.arange(3, dtype=np.uint64)
    texts = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], dtype=np.float32)
    votes = learn_votes({"shop": Group(members)}, marks, texts)
    assert votes is not None
    [(name, own)] = votes.opinions({"shop": Group(members)}, marks, texts)
    [(_, strange)] = votes.opinions({"shop": Group(members)}, marks + 7, texts)
    assert name == "votes:shop"
    # Two say the first leaf to the third, one each way to the others.
    assert own[2, 0] > 0.3 > abs(own[0, 0]) + abs(own[1, 0])
    assert np.allclose(strange[0], strange[1])
    assert np.allclose(strange[1], strange[2])


def test_a_value_of_mixed_documents_is_less_pure() -> None:
    members = csr_matrix(np.repeat(np.eye(2, dtype=np.float32), 4, axis=0))
    texts = np.array([[0.95, 0.05]] * 6 + [[0.05, 0.95]] * 2, dtype=np.float32)
    votes = learn_votes({"shop": Group(members)}, np.arange(8, dtype=np.uint64), texts)
    assert votes is not None
    same, mixed = votes.types["shop"].purity.tolist()
    assert same > 0.85 > mixed + 0.1


def test_votes_in_small_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    members = csr_matrix((rng.random((50, 7)) < 0.3).astype(np.float32))
    texts = rng.dirichlet(np.ones(4), 50).astype(np.float32)
    groups, marks = {"by": Group(members)}, np.arange(50, dtype=np.uint64)

    def opinion() -> Any:
        votes = learn_votes(groups, marks, texts)
        assert votes is not None
        return next(votes.opinions(groups, marks, texts))[1]

    whole = opinion()
    monkeypatch.setattr("himecat.classifier.votes._BLOCK_CELLS", 12)
    assert np.allclose(whole, opinion(), atol=1e-6)


def test_votes_survive_a_folder(tmp_path: Any) -> None:
    documents, labels = shop_documents(150, pure=True)
    known = [label if number < 45 else None for number, label in enumerate(labels)]
    model = HiMeCat(metadata=["shop"], decides=["shop"], threads=1).fit(documents, known)
    model.save(tmp_path / "model")
    again = HiMeCat.load(tmp_path / "model")
    assert again.decides == ["shop"]
    assert isinstance(again.classifier_.scorer.votes, Votes)
    assert np.array_equal(model.predict_proba(documents), again.predict_proba(documents))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decides": "shop"}, r"decides must be a list of field names: \['shop'\]\."),
        ({"decides": ["brand"]}, r"decides names 'brand', which is not among the metadata fields\."),
        (
            {"decides": ["shop"], "method": "paper"},
            r"The classifier 'kim-cnn' cannot use decides: leave it out, or take the default classifier\.",
        ),
    ],
)
def test_what_cannot_decide_is_refused(options: dict[str, Any], message: str) -> None:
    documents, labels = shop_documents(60, pure=True)
    with pytest.raises(UsageError, match=message):
        HiMeCat(metadata=["shop"], **options).fit(documents, labels)
