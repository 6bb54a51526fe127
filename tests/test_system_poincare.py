"""The system `poincare`: the paper's graph in hyperbolic space."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems._graph import Graph, build_graph
from himecat.errors import UsageError
from small_tasks import ODD_TREES, check_on_letters, check_on_odd_tree

pytest.importorskip("torch")

from himecat.compare.systems.poincare import Poincare, points_of_nodes
from himecat.kernels.poincare import MARGIN, move_edge, move_edges

Points = npt.NDArray[np.float64]
FEW: dict[str, Any] = {"beta": 60, "epochs": 20, "rounds": 2, "language_tokens": 3000}
FEWEST: dict[str, Any] = {"beta": 10, "epochs": 2, "rounds": 1, "language_tokens": 1000}


def distance(one: Points, other: Points) -> float:
    apart = ((one - other) ** 2).sum() / ((1 - one @ one) * (1 - other @ other))
    return float(np.arccosh(1 + 2 * apart))


PENALTY = 0.7


def loss_of(points: Points, u: int, others: list[int], penalty: float = PENALTY) -> float:
    distances = np.array([distance(points[u], points[v]) for v in others])
    shrunk = penalty * points[others[0]] @ points[others[0]]
    return float(distances[0] + np.log(np.exp(-distances).sum()) + shrunk)


def slopes(points: Points, u: int, others: list[int]) -> Points:
    """The Euclidean gradient of the loss, by trying small changes of every coordinate."""
    found = np.zeros_like(points)
    for place in np.ndindex(*points.shape):
        change = np.zeros_like(points)
        change[place] = 1e-6
        found[place] = (loss_of(points + change, u, others) - loss_of(points - change, u, others)) / 2e-6
    return found


def plain_step(points: Points, u: int, others: list[int], rate: float) -> Points:
    """What the kernel does, from the definitions."""
    metric = (1 - (points**2).sum(axis=1, keepdims=True)) ** 2 / 4
    moved = points - rate * metric * slopes(points, u, others)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    return np.asarray(moved * np.minimum(1.0, (1 - MARGIN) / lengths))


def step(
    points: Points, u: int, others: list[int], rate: float, penalty: float = PENALTY
) -> tuple[Points, float]:
    moved = points.copy()
    room = np.empty((len(others), 4)), np.empty(points.shape[1])
    loss = move_edge(moved, u, np.array(others), len(others), rate, penalty, *room)
    return moved, loss


def circle(n_words: int = 4, n_documents: int = 10) -> Graph:
    """Two circles of words, each with documents of its own."""
    words = [side * n_words + word for side in (0, 1) for _ in range(n_documents) for word in range(n_words)]
    documents = 2 * n_words + np.repeat(np.arange(2 * n_documents), n_words)
    n_nodes = 2 * (n_words + n_documents)
    return Graph(
        n_nodes,
        2 * n_documents,
        {"word": (np.array(words), documents)},
        np.arange(2 * n_words, dtype=np.int32),
    )


@pytest.mark.parametrize("radius", [0.01, 0.5, 0.95])
def test_a_step_follows_the_gradient_of_the_loss_in_the_metric_of_the_ball(radius: float) -> None:
    rng = np.random.default_rng(1)
    points = rng.standard_normal((6, 5))
    points *= radius * rng.uniform(0.8, 1.0, (6, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    moved, loss = step(points, 2, [4, 0, 1, 5], 0.1)
    assert loss == pytest.approx(loss_of(points, 2, [4, 0, 1, 5]))
    np.testing.assert_allclose(moved, plain_step(points, 2, [4, 0, 1, 5], 0.1), atol=1e-7)
    assert (moved[3] == points[3]).all()


def test_a_small_step_lowers_the_loss() -> None:
    points = np.random.default_rng(2).uniform(-0.3, 0.3, (5, 4))
    moved, loss = step(points, 0, [1, 2, 3, 4], 0.01)
    assert loss_of(moved, 0, [1, 2, 3, 4]) < loss


def test_no_step_leaves_the_ball() -> None:
    points = np.array([[0.99, 0.0], [0.0, 0.99], [0.985, 0.01]])
    moved, _ = step(points, 0, [1, 2], 1000.0)
    assert np.isfinite(moved).all()
    assert np.linalg.norm(moved, axis=1).max() <= 1 - MARGIN + 1e-9
    np.testing.assert_allclose(moved, plain_step(points, 0, [1, 2], 1000.0), atol=1e-4)


def test_points_at_the_same_place_stay_finite() -> None:
    points = np.full((3, 2), 0.1)
    moved, loss = step(points, 0, [1, 2], 0.1, penalty=0.0)
    assert loss == pytest.approx(np.log(2))
    assert (moved == 0.1).all()
    # Their distance has no gradient; the length of the target has one.
    moved, loss = step(points, 0, [1, 2], 0.1, penalty=1.0)
    assert loss == pytest.approx(np.log(2) + 0.02)
    np.testing.assert_allclose(moved, [[0.1, 0.1], [0.1 - 0.1 * 0.98**2 / 4 * 0.2] * 2, [0.1, 0.1]])


def test_a_step_is_that_of_gensim() -> None:
    gensim = pytest.importorskip("gensim.models.poincare")
    edges = [("a", "b"), ("c", "d"), ("e", "f")]
    model = gensim.PoincareModel(edges, size=4, negative=2, regularization_coeff=PENALTY, burn_in=0)
    points = np.random.default_rng(5).uniform(-0.4, 0.4, (6, 4))
    model.kv.vectors = points.copy()
    u, others = 0, [1, 3, 4]
    batch = model._prepare_training_batch([(u, others[0])], [others[1:]])
    batch.compute_loss()
    model._update_vectors_batch(batch)
    moved, _ = step(points, u, others, model.alpha)
    np.testing.assert_allclose(moved, model.kv.vectors, atol=1e-9)


def moved_by(sources: list[int], targets: list[int], order: list[int], n_negatives: int) -> list[bool]:
    """Which points steps for some edges of a graph move, without a penalty."""
    n_nodes = max(*sources, *targets) + 1
    ends = np.array(sources, dtype=np.int32), np.array(targets, dtype=np.int32)
    linked = Graph(n_nodes, 0, {"word": ends}, ends[0]).linked()
    points = np.random.default_rng(0).uniform(-0.1, 0.1, (n_nodes, 3))
    before = points.copy()
    move_edges(
        points, *ends, np.array(order), linked.values, linked.offsets, n_negatives, 0.1, 0.0, np.uint64(1)
    )
    return [bool(row.any()) for row in points != before]


def test_negatives_are_never_the_node_itself_nor_its_neighbours() -> None:
    # Node 0 is linked with 1, 2 and 3: only 4 and 5 can stand against its edges.
    moved = moved_by([0, 0, 3, 4], [1, 2, 0, 5], [0] * 50, 3)
    assert moved == [True, True, False, False, True, True]


def test_nodes_with_many_edges_are_drawn_more_often() -> None:
    # Against the edge (0, 1): a star of 400 edges with its centre at 2, and a single edge far from it.
    sources, targets = [0, *range(5, 405), 3], [1, *([2] * 400), 4]
    trials = [moved_by(sources, targets, [0] * tries, 1) for tries in range(1, 21)]
    assert sum(moved[2] for moved in trials) > 15
    assert not any(moved[3] or moved[4] for moved in trials)


def test_an_edge_with_nothing_to_stand_against_it_does_not_move() -> None:
    assert moved_by([0], [1], [0] * 5, 3) == [False, False]


def test_words_of_the_same_documents_point_the_same_way() -> None:
    points = points_of_nodes(circle(), Poincare(dimension=8, passes=100))
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosines = unit[:8] @ unit[:8].T
    within = np.kron(np.eye(2), np.ones((4, 4))).astype(bool)
    assert cosines[within].mean() > cosines[~within].mean() + 0.5


def test_the_root_of_a_tree_comes_to_lie_nearest_the_origin() -> None:
    tree = Taxonomy.from_paths([(top, f"{top}{low}") for top in "abcd" for low in range(4)])
    nothing = np.zeros(0, dtype=np.int64)
    graph = build_graph(read_corpus(["..."]), tree, Supervision(nothing, nothing))
    lengths = np.linalg.norm(points_of_nodes(graph, Poincare(dimension=5, passes=300)), axis=1)
    assert lengths[0] < lengths[list(tree.leaves)].min()


def test_the_same_seed_gives_the_same_points_and_few_steps_are_few() -> None:
    first, again, other = (points_of_nodes(circle(), Poincare(dimension=4), seed=seed) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()
    once = points_of_nodes(circle(), Poincare(dimension=4, most_steps=1), seed=3)
    shortest = points_of_nodes(circle(), Poincare(dimension=4, passes=1, burn_in=1), seed=3)
    assert np.linalg.norm(once) > np.linalg.norm(shortest)
    assert np.linalg.norm(once) < np.linalg.norm(first)


def test_a_node_without_edges_stays_at_the_origin() -> None:
    graph = Graph(3, 1, {"word": (np.array([0]), np.array([2]))}, np.array([0, 1], dtype=np.int32))
    assert points_of_nodes(graph, Poincare(dimension=4, passes=3)).any(axis=1).tolist() == [True, False, True]


def test_a_pass_too_few_is_refused() -> None:
    with pytest.raises(UsageError, match="passes must be at least 1, not 0"):
        Poincare(passes=0)


def test_it_finds_leaves_of_the_sample_corpus() -> None:
    check_on_letters(Poincare(dimension=32, **FEW))


@pytest.mark.parametrize(("paths", "labels"), ODD_TREES)
def test_odd_trees_and_empty_documents_are_placed_the_same_each_time(
    paths: list[tuple[str, ...]], labels: dict[int, str]
) -> None:
    check_on_odd_tree(Poincare(dimension=8, passes=3, **FEWEST), paths, labels)
