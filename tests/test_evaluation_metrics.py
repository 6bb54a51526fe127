"""Scores against hand-counted cases and against scikit-learn."""

from __future__ import annotations

import json
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_fscore_support

from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import Outcome, Scores, confusions, outcomes, score
from himecat.input.taxonomy.tree import Taxonomy

# Ragged, a one-child chain, and the name "other" at three places.
TREE = Taxonomy.from_children(
    {
        "science": {"physics": {"optics": {}, "other": {}}, "other": {}},
        "arts": {"music": {"jazz": {}}},
        "other": {},
    }
)
SCIENCE, ARTS, OTHER = 1, 2, 3
PHYSICS, SCIENCE_OTHER, MUSIC = 4, 5, 6
OPTICS, PHYSICS_OTHER, JAZZ = 7, 8, 9


def indicators(tree: Taxonomy, nodes: np.ndarray) -> np.ndarray:
    """Documents x nodes: the node and all its ancestors are 1.

    The root's column stays, all 0: scikit-learn would take a single column for a two-class problem.
    """
    matrix = np.zeros((len(nodes), len(tree)), dtype=int)
    for row, node in enumerate(nodes):
        matrix[row, list(tree.lineages[node])] = 1
    return matrix


@st.composite
def labelled_trees(draw: st.DrawFn) -> tuple[Taxonomy, np.ndarray, np.ndarray]:
    parents = [-1]
    for node in range(1, draw(st.integers(2, 14))):
        parents.append(draw(st.integers(max(parents[-1], 0), node - 1)))
    names = ["ROOT"]
    siblings: dict[int, int] = {}
    for parent in parents[1:]:
        siblings[parent] = siblings.get(parent, 0) + 1
        names.append(f"c{siblings[parent]}")  # the same few names under every parent
    tree = Taxonomy(names, parents)
    n = draw(st.integers(1, 30))
    truth = draw(st.lists(st.sampled_from(tree.leaves), min_size=n, max_size=n))
    predicted = draw(st.lists(st.sampled_from(range(len(tree))), min_size=n, max_size=n))
    return tree, np.array(truth), np.array(predicted)


def assert_matches_sklearn(tree: Taxonomy, truth: np.ndarray, predicted: np.ndarray, scores: Scores) -> None:
    true, given = indicators(tree, truth), indicators(tree, predicted)
    ours = [(scores.leaf, np.array(tree.leaves)), (scores.overall, np.arange(1, len(tree)))]
    ours += [(level.f1, np.flatnonzero(np.array(tree.depths) == level.level)) for level in scores.levels]
    for f1, nodes in ours:
        for average in ("micro", "macro"):
            expected = f1_score(true, given, labels=nodes, average=average, zero_division=0)
            assert getattr(f1, average) == pytest.approx(expected), (nodes, average)
    each = scores.per_category
    expected = precision_recall_fscore_support(true, given, average=None, zero_division=0)
    for mine, theirs in zip((each.precision, each.recall, each.f1, each.support), expected, strict=True):
        np.testing.assert_allclose(mine, theirs)
    np.testing.assert_array_equal(each.predicted, given.sum(axis=0))


@settings(max_examples=40, deadline=None)
@given(labelled_trees())
def test_every_f1_is_scikit_learns(case: tuple[Taxonomy, np.ndarray, np.ndarray]) -> None:
    tree, truth, predicted = case
    scores = score(tree, truth, predicted)
    assert_matches_sklearn(tree, truth, predicted, scores)
    assert scores.hierarchical_f1 == scores.overall.micro
    p, r = scores.hierarchical_precision, scores.hierarchical_recall
    assert scores.hierarchical_f1 == pytest.approx(2 * p * r / (p + r) if p + r else 0.0)
    assert scores.path_accuracy == pytest.approx(np.mean(truth == predicted))
    assert scores.coverage == pytest.approx(np.mean(np.isin(predicted, tree.leaves)))
    assert json.loads(json.dumps(scores.as_dict())) == scores.as_dict()


@settings(max_examples=100, deadline=None)
@given(labelled_trees())
def test_outcomes_follow_the_ancestor_sets(case: tuple[Taxonomy, np.ndarray, np.ndarray]) -> None:
    tree, leaves, nodes = case
    # Any node may be the truth here, so that inner truths are covered too.
    truth = np.where(nodes == 0, leaves, nodes)
    for predicted in (leaves, np.roll(nodes, 1)):
        for true, given_node, outcome in zip(truth, predicted, outcomes(tree, truth, predicted), strict=True):
            known, assigned = set(tree.lineages[true]), set(tree.lineages[given_node])
            if known <= assigned:
                assert outcome == Outcome.RIGHT
            elif assigned <= known:
                assert outcome == Outcome.STOPPED
            else:
                assert outcome == Outcome.WRONG


def test_hand_counted_case() -> None:
    truth = [OPTICS, OPTICS, PHYSICS_OTHER, OTHER, JAZZ]
    predicted = [OPTICS, PHYSICS_OTHER, SCIENCE_OTHER, OTHER, 0]
    scores = score(TREE, truth, predicted)
    # Leaves: TP = optics, other = 2; 4 leaves predicted, 5 true.
    assert scores.leaf.micro == pytest.approx(2 * 2 / (4 + 5))
    # optics: P 1, R 1/2; the top "other": 1; science/other, physics/other, jazz: 0.
    assert scores.leaf.macro == pytest.approx((2 / 3 + 1) / 5)
    # TP: science 3, physics 2, optics 1, other 1; predicted nodes 3 + 3 + 2 + 1 + 0; true nodes 3*3 + 1 + 3.
    assert scores.hierarchical_precision == pytest.approx(7 / 9)
    assert scores.hierarchical_recall == pytest.approx(7 / 13)
    assert scores.overall.micro == pytest.approx(14 / 22)
    assert [level.accuracy for level in scores.levels] == pytest.approx([4 / 5, 2 / 4, 1 / 4])
    assert [level.documents for level in scores.levels] == [5, 4, 4]
    assert scores.path_accuracy == pytest.approx(2 / 5)
    assert scores.coverage == pytest.approx(4 / 5)
    assert scores.n_documents == 5


def test_the_same_name_at_two_places_is_no_hit() -> None:
    scores = score(TREE, [PHYSICS_OTHER] * 3, [OTHER, SCIENCE_OTHER, OTHER])
    assert scores.leaf.micro == 0
    assert scores.overall.micro == pytest.approx(2 * 1 / (9 + 4))


def test_classes_never_true_nor_predicted_stay_in_the_macro_average() -> None:
    scores = score(TREE, [OPTICS], [OPTICS])
    assert scores.leaf.micro == 1
    assert scores.leaf.macro == pytest.approx(1 / TREE.n_leaves)
    assert scores.overall.macro == pytest.approx(3 / (len(TREE) - 1))


def test_nothing_assigned_at_all_scores_zero() -> None:
    scores = score(TREE, [OPTICS, JAZZ], [0, 0])
    assert (scores.leaf.micro, scores.overall.macro, scores.coverage, scores.hierarchical_precision) == (
        0,
    ) * 4


def test_inner_truth_is_judged_only_as_far_as_it_is_known() -> None:
    # Known only as physics: physics/optics may be right, so only science and physics count.
    below = score(TREE, [PHYSICS, OPTICS], [OPTICS, OPTICS])
    assert below.path_accuracy == 1
    assert below.overall.micro == 1
    assert below.leaf.micro == 1
    assert below.per_category.predicted[OPTICS] == 1
    assert below.coverage == 1
    # A walk that leaves the known path is wrong in every category it adds.
    beside = score(TREE, [PHYSICS], [JAZZ])
    assert beside.path_accuracy == 0
    assert beside.per_category.predicted[[ARTS, MUSIC, JAZZ]].tolist() == [1, 1, 1]
    assert outcomes(TREE, [PHYSICS], [SCIENCE]).tolist() == [Outcome.STOPPED]


def test_categories_are_listed_by_title_even_when_titles_collide() -> None:
    tree = Taxonomy.from_paths([("a/b", "c"), ("a", "b/c")])
    listed = score(tree, [tree.leaves[0]], [tree.leaves[1]]).as_dict()["categories"]
    assert [row["category"] for row in listed] == ["a/b", "a", "a/b/c", "a/b/c"]
    assert [row["path"] for row in listed][2:] == [["a/b", "c"], ["a", "b/c"]]


def test_confusions_are_counted_and_ordered() -> None:
    truth = [OPTICS] * 4 + [JAZZ] * 3 + [OTHER]
    predicted = [OPTICS, JAZZ, JAZZ, PHYSICS, OTHER, ARTS, SCIENCE, OTHER]
    found = confusions(TREE, truth, predicted)
    # Equally frequent pairs keep the order of the node ids.
    assert [(c.truth, c.predicted, c.documents) for c in found] == [
        (OPTICS, JAZZ, 2),
        (JAZZ, SCIENCE, 1),
        (JAZZ, OTHER, 1),
    ]
    assert found[0].share == pytest.approx(2 / 4)
    assert confusions(TREE, truth, predicted, top=1) == found[:1]
    assert confusions(TREE, truth, truth) == []


@pytest.mark.parametrize(
    ("truth", "predicted", "error", "says"),
    [
        ([], [], DataError, "no document to score"),
        ([1, 2], [1], UsageError, "2 true categories but 1 predicted"),
        ([1, 0], [1, 1], DataError, "Document 1 .* no known category"),
        ([1], [99], UsageError, r"predicted\[0\] is 99"),
        ([1], [-1], UsageError, r"predicted\[0\] is -1"),
        ([1.5], [1], UsageError, "integers"),
        ([[1]], [1], UsageError, "flat"),
    ],
)
def test_unusable_input_is_a_sentence(truth: list, predicted: list, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        score(TREE, truth, predicted)


def test_a_tree_without_categories_is_refused() -> None:
    with pytest.raises(DataError, match="no category below its root"):
        score(Taxonomy(["ROOT"], [-1]), [0], [0])


def test_large_input_is_fast_and_needs_memory_in_proportion_to_documents() -> None:
    tree = Taxonomy.from_paths([(f"top{i % 5}", f"leaf{i}") for i in range(88)])
    rng = np.random.default_rng(0)
    truth = rng.choice(tree.leaves, size=26_400)
    predicted = rng.choice(tree.leaves, size=26_400)
    score(tree, truth, predicted)
    started = time.perf_counter()
    score(tree, truth, predicted)
    assert time.perf_counter() - started < 0.2
    tracemalloc.start()
    try:
        score(tree, truth, predicted)
        confusions(tree, truth, predicted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(truth)
