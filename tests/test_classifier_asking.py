"""Which documents are asked about: none twice, none that is known, and those that teach before those that do not."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from himecat.classifier import asking
from himecat.classifier.asking import STRATEGIES, choose
from himecat.errors import UsageError
from himecat.views.matrices import unit

Floats = npt.NDArray[np.float32]


def pile(n: int = 300, seed: int = 0, leaves: int = 5) -> tuple[Floats, Floats]:
    """Probabilities and vectors of documents."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(leaves), n).astype(np.float32)
    return probabilities, unit(rng.normal(size=(n, 8)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_seed_asks_the_same_and_never_what_is_known(strategy: str) -> None:
    probabilities, vectors = pile()
    known = np.arange(0, 300, 3)
    asked = choose(probabilities, vectors, labelled=known, count=40, strategy=strategy, seed=4)
    again = choose(probabilities, vectors, labelled=known[::-1], count=40, strategy=strategy, seed=4)
    assert asked.tolist() == again.tolist()
    assert len(set(asked.tolist())) == 40
    assert not set(asked.tolist()) & set(known.tolist())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fewer_questions_are_the_first_of_more(strategy: str) -> None:
    probabilities, vectors = pile()
    more = choose(probabilities, vectors, labelled=[1, 2], count=60, strategy=strategy)
    fewer = choose(probabilities, vectors, labelled=[1, 2], count=20, strategy=strategy)
    assert more[:20].tolist() == fewer.tolist()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_a_small_pile_all_are_asked_about_once_and_empty_documents_last(strategy: str) -> None:
    probabilities, vectors = pile(30)
    vectors[[3, 8]] = 0.0
    probabilities[[3, 8]] = 0.2
    asked = choose(probabilities, vectors, labelled=[0], count=1000, strategy=strategy).tolist()
    assert sorted(asked) == list(range(1, 30))
    assert set(asked[-2:]) == {3, 8}


def test_sets_are_asked_about_where_most_is_in_doubt_but_not_about_the_same_again() -> None:
    rng = np.random.default_rng(0)
    # Two in three documents are in doubt about the first three categories, the others a little less about the rest.
    probabilities = np.full((90, 6), 0.05)
    probabilities[:60, :3], probabilities[60:, 3:] = 0.5, 0.4
    probabilities[:, 0] = np.minimum(probabilities[:, 0] + rng.random(90) * 0.01, 1)
    asked = choose(probabilities, count=20, threshold=0.5, labelled=[0, 70])
    assert not {0, 70} & set(asked.tolist())
    assert 8 <= (asked < 60).sum() <= 12
    assert choose(probabilities, count=7, threshold=0.5, labelled=[0, 70]).tolist() == asked[:7].tolist()
    sure = np.concatenate([probabilities, np.eye(6)])
    assert choose(sure, count=20, threshold=0.5).max() < 90
    vectors = unit(rng.normal(size=(96, 4)))
    vectors[1], vectors[5] = 0.0, vectors[4]
    everything = choose(sure, vectors, count=1000, threshold=0.5).tolist()
    assert sorted(everything) == list(range(96))
    assert 1 in everything[-2:]
    assert {4, 5} & set(everything[-2:])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("n", "known"),
    [(0, []), (1, []), (1, [0]), (3, [0, 1, 2])],
    ids=["no documents", "one", "one that is known", "all known"],
)
def test_piles_with_next_to_nothing_in_them(strategy: str, n: int, known: list[int]) -> None:
    probabilities, vectors = pile(n)
    asked = choose(probabilities, vectors, labelled=known, count=5, strategy=strategy)
    assert asked.dtype == np.int64
    assert sorted(asked.tolist()) == sorted(set(range(n)) - set(known))


def test_no_question_is_a_number_too() -> None:
    assert choose(*pile(), count=0).tolist() == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tree_with_a_single_leaf_leaves_no_doubt(strategy: str) -> None:
    asked = choose(np.ones((6, 1)), np.eye(6), labelled=[2], count=3, strategy=strategy)
    assert len(set(asked.tolist()) - {2}) == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ties_are_not_won_by_the_first_of_the_pile(strategy: str) -> None:
    asked = choose(np.full((500, 4), 0.25), np.eye(500), count=20, strategy=strategy, seed=1)
    assert len(set(asked.tolist())) == 20
    assert asked.max() > 250


def test_without_vectors_the_default_is_random() -> None:
    probabilities, _ = pile()
    asked = choose(probabilities, count=30, labelled=[5], seed=2)
    assert asked.tolist() == choose(probabilities, count=30, labelled=[5], seed=2, strategy="random").tolist()
    assert asked.tolist() != choose(probabilities, count=30, labelled=[5], seed=3).tolist()


def test_ratio_asks_about_the_closest_decisions_first() -> None:
    probabilities = np.array([[0.6, 0.4, 0], [0.34, 0.33, 0.33], [0.9, 0.1, 0], [0.5, 0.45, 0.05]])
    assert choose(probabilities, count=4, strategy="ratio").tolist() == [1, 3, 0, 2]


def groups(
    sizes: list[int], doubts: list[float], seed: int = 0
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Documents in groups far from each other, each with its own doubt between two leaves."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    second = np.array(doubts)[group] / (1 + np.array(doubts)[group])
    near = 3 * np.eye(len(sizes))[group] + rng.normal(scale=0.2, size=(len(group), len(sizes)))
    return np.stack([1 - second, second], axis=1).astype(np.float32), unit(near), group


def test_large_groups_in_doubt_come_first_and_no_group_twice() -> None:
    probabilities, vectors, group = groups([40, 40, 10, 40], [0.9, 0.9, 0.9, 0.05])
    # Of the first group one is labelled.
    asked = choose(probabilities, vectors, labelled=[0], count=3)
    assert group[asked].tolist() == [1, 2, 3]
    assert group[choose(probabilities, vectors, count=2)].tolist() in ([0, 1], [1, 0])


def test_the_same_text_is_not_asked_about_twice_while_there_are_others() -> None:
    probabilities, vectors, _ = groups([30, 30], [1.0, 0.3])
    # The most doubtful document, eleven times, and once more with a label.
    probabilities, vectors = (
        np.concatenate([rows, np.repeat(rows[:1], 10, axis=0)]) for rows in (probabilities, vectors)
    )
    copies = {0, *range(60, 70)}
    asked = choose(probabilities, vectors, count=30).tolist()
    assert len(copies & set(asked)) <= 1
    asked = choose(probabilities, vectors, labelled=[64], count=30).tolist()
    assert not copies & set(asked)


def test_large_piles_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"_CANDIDATES": 50, "_TARGETS": 100, "_PER_SET": 20, "_MOST": 60}.items():
        monkeypatch.setattr(asking, name, size)
    probabilities, vectors = pile(1000)
    known = np.arange(130)
    asked = choose(probabilities, vectors, labelled=known, count=100)
    assert len(set(asked.tolist())) == 100
    assert asked.min() >= 130
    # One set of candidates gives no more than its share, so what comes later does not change what came first.
    assert choose(probabilities, vectors, labelled=known, count=30).tolist() == asked[:30].tolist()
    assert len(choose(probabilities, vectors, labelled=known, count=2000)) == 870


def test_memory_does_not_grow_with_the_pile() -> None:
    probabilities, vectors = pile(60_000, leaves=3)
    choose(*pile(5000), count=5)
    tracemalloc.start()
    choose(probabilities, vectors, count=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "best"}, "'best' is not known; there are default, cover"),
        ({"count": -1}, "at least 0, not -1"),
        ({"labelled": [300]}, "among the 300 documents"),
        ({"labelled": [-1]}, "among the 300 documents"),
        ({"vectors": np.eye(4)}, "300 documents, and vectors of 4"),
        ({"strategy": "cover", "vectors": None}, "needs the vectors"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    probabilities, vectors = pile()
    with pytest.raises(UsageError, match=said):
        choose(probabilities, **{"vectors": vectors, "count": 3} | options)
