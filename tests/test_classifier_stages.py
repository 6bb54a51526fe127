"""Stages of a wide tree: how it is cut, and how documents go down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from himecat import Supervision, Taxonomy
from himecat.classifier import walk as walk_module
from himecat.classifier.assignments import assign, hold
from himecat.classifier.stages import Stage, cut, stage_seeds, stage_supervision
from himecat.classifier.walk import Plan, Visit, dense_leaves, place, walk


def random_tree(seed: int, n_nodes: int = 120) -> Taxonomy:
    """An uneven tree with chains and a wide node."""
    rng = np.random.default_rng(seed)
    parents = [-1, 0, 0, 0]
    while len(parents) < n_nodes:
        parents.append(int(rng.integers(0, len(parents))))
    parents += [3] * 20
    order = sorted(range(len(parents)), key=lambda node: _depth(parents, node))
    place_of = {node: place for place, node in enumerate(order)}
    again = [-1 if parents[node] < 0 else place_of[parents[node]] for node in order]
    return Taxonomy([f"c{node}" for node in range(len(again))], again)


def _depth(parents: list[int], node: int) -> int:
    return 0 if node == 0 else 1 + _depth(parents, parents[node])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [4, 9, 30])
def test_stages_make_up_the_tree(seed: int, most: int) -> None:
    tree = random_tree(seed)
    stages = cut(tree, most=most, few=2)
    inside = np.concatenate([stage.nodes[1:] for stage in stages])
    assert sorted(inside.tolist()) == list(range(1, len(tree)))
    met: set[int] = {0}
    for stage in stages:
        first = int(stage.nodes[0])
        assert first in met
        assert stage.tree.n_leaves <= most or stage.tree.n_leaves >= len(tree.children[first])
        # A choice among one is none.
        assert stage.tree.n_leaves > 1
        met |= set(stage.terminals.tolist())
        for node, own in enumerate(stage.nodes.tolist()):
            assert stage.tree.names[node] == tree.names[own]
            assert tree.path(own)[tree.depths[first] :] == stage.tree.path(node)
    assert set(tree.leaves) <= met


def test_a_node_with_very_many_children_is_a_stage_of_its_own() -> None:
    tree = Taxonomy.from_paths([("a", f"a{i}") for i in range(3000)] + [("b", f"b{i}") for i in range(5)])
    assert [stage.tree.n_leaves for stage in cut(tree)] == [6, 3000] or [
        stage.tree.n_leaves for stage in cut(tree)
    ] == [2, 3000, 5]


def test_a_small_tree_is_one_stage() -> None:
    tree = random_tree(0)
    (stage,) = cut(tree)
    assert stage.tree == tree


def test_terminals_are_of_about_the_same_size() -> None:
    tree = Taxonomy.from_paths([(a, a + b, a + b + c) for a in "abcd" for b in "wxyz" for c in "1234"])
    assert {stage.tree.n_leaves for stage in cut(tree, most=20, few=1)} == {16, 4}


def test_labels_and_seeds_of_a_stage() -> None:
    tree = Taxonomy.from_paths([(a, a + b) for a in "ab" for b in "xyz"])
    first, second, _ = cut(tree, most=3, few=1)
    labels = Supervision(
        np.array([2, 5, 7, 9]), np.array([tree.find(name) for name in ("ay", "b", "bz", "a")])
    )
    top = stage_supervision(tree, first, labels, np.arange(10))
    assert top.rows.tolist() == [2, 5, 7, 9]
    assert [first.tree.names[node] for node in top.nodes] == ["a", "b", "b", "a"]
    # A label at its first node says nothing within a stage.
    below = stage_supervision(tree, second, labels, np.array([1, 2, 9]))
    assert below.rows.tolist() == [1]
    assert [second.tree.names[node] for node in below.nodes] == ["ay"]
    sums, mass = stage_seeds(tree, first, (np.ones((6, 2), np.float32), np.arange(6, dtype=np.float32)))
    assert sums.tolist() == [[3, 3], [3, 3]]
    assert mass.tolist() == [3, 12]


def gone_down(
    tree: Taxonomy, stages: tuple[Stage, ...], leaves: Any, known: Any = None
) -> tuple[Plan, list[Visit]]:
    """The visits of documents of which the probabilities of all leaves are known."""
    plan = Plan(tree, stages)
    below = np.stack([leaves[:, tree.positions_under(node)].sum(axis=1) for node in tree], axis=1)

    def probabilities(number: int, rows: Any) -> Any:
        found = below[np.ix_(rows, stages[number].terminals)]
        return (found / found.sum(axis=1, keepdims=True)).astype(np.float32)

    return plan, walk(plan, len(leaves), probabilities, lambda jobs: [job() for job in jobs], known)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents go into all stages."""
    monkeypatch.setattr(walk_module, "_LEAST", 0.0)
    monkeypatch.setattr(walk_module, "_MOST", 10**6)


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", [0.0, 0.1, 0.3, 0.9])
def test_down_the_stages_as_by_all_leaves(seed: int, bound: float) -> None:
    tree = random_tree(seed)
    rng = np.random.default_rng(seed)
    leaves = rng.dirichlet([0.05] * tree.n_leaves, 200).astype(np.float32) + np.float32(1e-7)
    none = rng.random(200).astype(np.float32)
    plan, visits = gone_down(tree, cut(tree, most=6, few=1), leaves)
    assert len(plan.stages) > 5
    np.testing.assert_allclose(dense_leaves(plan, 200, visits), leaves, atol=1e-5)
    expected = assign(tree, leaves, bound, best=4, none=none)
    found = place(plan, 200, visits, bound, best=4, none=none)
    assert found.nodes.tolist() == expected.nodes.tolist()
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-5)
    sure = expected.best_confidence > 1e-4
    assert (found.best == expected.best)[sure].all()
    np.testing.assert_allclose(found.best_confidence, expected.best_confidence, atol=1e-5)


@pytest.mark.usefixtures("everywhere")
def test_documents_stay_where_they_are_known_to_be() -> None:
    tree = random_tree(1)
    rng = np.random.default_rng(0)
    leaves = rng.dirichlet([0.5] * tree.n_leaves, len(tree) - 1).astype(np.float32)
    known = Supervision(np.arange(len(tree) - 1), np.arange(1, len(tree)))
    plan, visits = gone_down(tree, cut(tree, most=6, few=1), leaves, known.nodes)
    expected = assign(tree, leaves, known=known)
    found = hold(place(plan, len(leaves), visits), known)
    assert found.nodes.tolist() == expected.nodes.tolist()
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-5)


def test_few_stages_are_looked_at() -> None:
    tree = Taxonomy.from_paths([(f"a{i}", f"a{i}b{j}") for i in range(20) for j in range(5)])
    rng = np.random.default_rng(0)
    leaves = rng.dirichlet([0.02] * tree.n_leaves, 300).astype(np.float32) + np.float32(1e-7)
    plan, visits = gone_down(tree, cut(tree, most=20, few=1), leaves)
    seen = np.bincount(np.concatenate([visit.rows for visit in visits if visit.stage]), minlength=300)
    assert seen.min() >= 1
    assert seen.max() <= 4
    found = place(plan, 300, visits)
    assert found.nodes.tolist() == assign(tree, leaves).nodes.tolist()
    # What is left over is shared below the nodes that were not looked at.
    dense = dense_leaves(plan, 300, visits)
    np.testing.assert_allclose(dense.sum(axis=1), 1.0, atol=1e-5)


def test_no_documents() -> None:
    tree = random_tree(0)
    plan, visits = gone_down(tree, cut(tree, most=6, few=1), np.zeros((0, tree.n_leaves), np.float32))
    assert len(place(plan, 0, visits, 0.5, best=2)) == 0
