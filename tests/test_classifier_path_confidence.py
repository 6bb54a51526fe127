"""The confidence of the likeliest path: made to come true without moving a document elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from himecat import Taxonomy
from himecat.classifier.assignments import assign, node_probabilities
from himecat.classifier.path_confidence import IDENTITY, fit_path_confidence, rescale_paths

FLAT = Taxonomy.from_paths([("a",), ("b",), ("c",)])
DEEP = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b", "z"), ("b", "w")])

Levels = Sequence[tuple[float, float]]
Floats = npt.NDArray[np.float64]


def odds(share: npt.ArrayLike) -> Floats:
    given = np.asarray(share, dtype=np.float64)
    return np.asarray(np.log(given / (1 - given)))


def share(logit: npt.ArrayLike) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.asarray(logit, dtype=np.float64))))


@st.composite
def trees(draw: st.DrawFn, most_depth: int = 4) -> Taxonomy:
    """Any shape: leaves at all depths, and nodes with a single child."""
    depth = draw(st.integers(1, most_depth))

    def below(level: int) -> dict[str, object] | None:
        if level == depth or (level > 0 and draw(st.booleans()) and draw(st.booleans())):
            return None
        return {f"n{one}": below(level + 1) for one in range(draw(st.integers(1, 3)))}

    return Taxonomy.from_children(below(0) or {"n0": None})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Taxonomy, npt.NDArray[np.float32], Levels]:
    tree = draw(trees())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    evenness = draw(st.sampled_from([0.05, 0.3, 1.0, 5.0]))
    leaves = rng.dirichlet(np.full(tree.n_leaves, evenness), size=8).astype(np.float32)
    level = st.tuples(st.floats(0.05, 5.0), st.floats(-4.0, 4.0))
    return tree, leaves, draw(st.lists(level, min_size=tree.depth, max_size=tree.depth))


def leads(leaves: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
    """Rows whose likeliest leaf is the likeliest beyond rounding."""
    if leaves.shape[1] < 2:
        return np.ones(len(leaves), dtype=bool)
    ordered = np.sort(leaves, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2] > 1e-3)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_rows_are_probabilities(case: tuple[Taxonomy, npt.NDArray[np.float32], Levels]) -> None:
    tree, leaves, levels = case
    before = leaves.copy()
    found = rescale_paths(tree, leaves, levels)
    assert found.shape == leaves.shape
    assert found.dtype == np.float32
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(leaves, before)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_no_document_moves(case: tuple[Taxonomy, npt.NDArray[np.float32], Levels]) -> None:
    """The leaf that a user is told is the likeliest one before and after."""
    tree, leaves, levels = case
    clear = leads(leaves)
    before, after = assign(tree, leaves), assign(tree, rescale_paths(tree, leaves, levels))
    assert before.nodes[clear].tolist() == after.nodes[clear].tolist()


@pytest.mark.parametrize(
    ("tree", "leaves", "levels"),
    [
        (DEEP, [0.31, 0.29, 0.28, 0.12], [(0.5, 0.0), IDENTITY]),
        (DEEP, [0.30, 0.29, 0.26, 0.15], [(1.0, -5.0), IDENTITY]),
        (FLAT, [0.3, 0.4, 0.3], [(1.0, -5.0)]),
        (FLAT, [0.45, 0.1, 0.45001], [(0.05, -5.0)]),
    ],
    ids=["a sibling's child", "a sibling's child at a tie", "a tie", "nearly a tie before"],
)
def test_an_unsure_document_does_not_move_either(tree: Taxonomy, leaves: list[float], levels: Levels) -> None:
    before = np.array([leaves], dtype=np.float32)
    assert rescale_paths(tree, before, levels).argmax() == before.argmax()


@given(cases())
@settings(max_examples=60, deadline=None)
def test_a_child_is_never_surer_than_its_parent(
    case: tuple[Taxonomy, npt.NDArray[np.float32], Levels],
) -> None:
    tree, leaves, levels = case
    at = node_probabilities(tree, rescale_paths(tree, leaves, levels))
    for node in range(1, len(tree)):
        assert (at[:, node] <= at[:, tree.parents[node]] + 1e-6).all()
    confidence = assign(tree, rescale_paths(tree, leaves, levels)).confidence
    assert not (np.diff(confidence, axis=1) > 1e-6).any()


@given(cases())
@settings(max_examples=60, deadline=None)
def test_unchanged_levels_change_nothing(case: tuple[Taxonomy, npt.NDArray[np.float32], Levels]) -> None:
    tree, leaves, levels = case
    np.testing.assert_allclose(rescale_paths(tree, leaves, [IDENTITY] * len(levels)), leaves, atol=1e-4)


def test_unchanged_levels_change_nothing_where_the_likeliest_leaf_is_below_a_less_likely_node() -> None:
    """The three leaves of a are likelier together than b, and b is likelier than each of them."""
    tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("a", "z"), ("b",)])
    before = node_probabilities(tree, np.array([[0.4, 0.2, 0.2, 0.2]], np.float32))
    after = node_probabilities(tree, rescale_paths(tree, np.array([[0.4, 0.2, 0.2, 0.2]]), [IDENTITY] * 2))
    np.testing.assert_allclose(after, before, atol=1e-5)


@pytest.mark.parametrize(("slope", "offset"), [(0.5, 0.0), (1.0, -0.7), (1.5, 0.4)])
def test_the_confidence_is_the_one_that_was_learned(slope: float, offset: float) -> None:
    leaves = np.array([[0.9, 0.06, 0.04], [0.02, 0.8, 0.18]])
    found = rescale_paths(FLAT, leaves, [(slope, offset)])
    np.testing.assert_allclose(found.max(axis=1), share(slope * odds([0.9, 0.8]) + offset), atol=1e-5)
    # The others share the rest as before.
    assert found[0, 1] / found[0, 2] == pytest.approx(1.5, rel=1e-4)
    assert found[1, 2] / found[1, 0] == pytest.approx(9.0, rel=1e-4)


def test_every_level_has_its_own() -> None:
    leaves = np.array([[0.7, 0.1, 0.15, 0.05]])
    at = node_probabilities(DEEP, rescale_paths(DEEP, leaves, [(1.0, 0.5), (1.0, -0.5)]))[0]
    assert at[DEEP.find("a")] == pytest.approx(share(odds(0.8) + 0.5), abs=1e-5)
    assert at[DEEP.find("x")] == pytest.approx(share(odds(0.7) - 0.5), abs=1e-5)
    assert at[DEEP.find("z")] / at[DEEP.find("w")] == pytest.approx(3.0, rel=1e-4)


def test_a_level_that_is_not_touched_keeps_its_sums() -> None:
    leaves = np.array([[0.7, 0.1, 0.15, 0.05], [0.04, 0.06, 0.2, 0.7]])
    before = node_probabilities(DEEP, leaves.astype(np.float32))
    after = node_probabilities(DEEP, rescale_paths(DEEP, leaves, [IDENTITY, (0.6, 0.2)]))
    above = [DEEP.find("a"), DEEP.find("b")]
    np.testing.assert_allclose(after[:, above], before[:, above], atol=1e-5)
    assert np.abs(after - before).max() > 0.02
    # Nor does anything beside the likeliest path's parent change.
    beside = [DEEP.find("z"), DEEP.find("w")]
    np.testing.assert_allclose(after[0, beside], before[0, beside], atol=1e-5)


def test_surer_documents_stay_surer() -> None:
    tops = np.linspace(0.4, 0.99, 30)
    leaves = np.stack([tops, (1 - tops) * 0.6, (1 - tops) * 0.4], axis=1)
    for level in ((0.05, -3.0), (0.5, 0.5), (3.0, -1.0)):
        assert (np.diff(rescale_paths(FLAT, leaves, [level])[:, 0]) >= -1e-6).all()


def test_a_leaf_above_the_lowest_level_keeps_its_confidence_below_it() -> None:
    tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("c",)])
    c = tree.leaf_position[tree.find("c")]
    leaves = np.full((1, 3), 0.1)
    leaves[0, c] = 0.8
    found = rescale_paths(tree, leaves, [IDENTITY, (1.0, -3.0)])
    np.testing.assert_allclose(found, leaves, atol=1e-5)


def test_a_document_that_is_entirely_sure() -> None:
    leaves = np.array([[1.0, 0.0, 0.0], [1.0 - 1e-7, 1e-7, 0.0]])
    found = rescale_paths(FLAT, leaves, [(0.5, -2.0)])
    assert np.isfinite(found).all()
    assert found.argmax(axis=1).tolist() == [0, 0]
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("tree", [FLAT, DEEP], ids=["flat", "deep"])
def test_an_empty_batch(tree: Taxonomy) -> None:
    found = rescale_paths(tree, np.zeros((0, tree.n_leaves), np.float32), [(0.5, 0.1)] * tree.depth)
    assert found.shape == (0, tree.n_leaves)
    assert found.dtype == np.float32
    nobody = np.zeros(0, dtype=np.int64)
    assert (
        fit_path_confidence(tree, np.zeros((0, tree.n_leaves)), nobody, np.zeros(0))
        == (IDENTITY,) * tree.depth
    )


def test_a_tree_of_one_leaf() -> None:
    tree = Taxonomy.from_paths([("a",)])
    assert rescale_paths(tree, np.ones((3, 1)), [(0.5, -2.0)]).tolist() == [[1.0]] * 3


# -- what is learned -----------------------------------------------------------------------------------


def distorted(slope: float, offset: float, n: int = 6000) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Answers of a classifier: the first leaf with a confidence, right as often as the true line says."""
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.4, 0.98, size=n)
    true = rng.random(n) < share(slope * odds(sure) + offset)
    leaves = np.stack([sure, (1 - sure) * 0.6, (1 - sure) * 0.4], axis=1)
    return leaves, np.where(true, 0, rng.integers(1, 3, size=n)).astype(np.int64)


@pytest.mark.parametrize("slope", [0.4, 1.0, 1.8])
def test_a_known_distortion_is_found(slope: float) -> None:
    leaves, truth = distorted(slope, 0.3)
    ((found, _),) = fit_path_confidence(FLAT, leaves, truth, np.ones(len(truth)))
    assert found == pytest.approx(slope, rel=0.12)


def test_most_of_what_held_out_documents_fall_short_is_excused() -> None:
    """They are judged by models with fewer labels: the confidence moves towards them, and stops on the way."""
    leaves, truth = distorted(1.0, -1.0)
    settled = rescale_paths(FLAT, leaves, fit_path_confidence(FLAT, leaves, truth, np.ones(len(truth))))[
        :, 0
    ].mean()
    came_true, claimed = (truth == 0).mean(), leaves[:, 0].mean()
    assert came_true + 0.05 < settled < claimed - 0.01


def test_what_comes_true_is_left_nearly_as_it_is() -> None:
    leaves, truth = distorted(1.0, 0.0)
    ((slope, offset),) = fit_path_confidence(FLAT, leaves, truth, np.ones(len(truth)))
    assert slope == pytest.approx(1.0, abs=0.1)
    assert offset == pytest.approx(0.0, abs=0.1)


def test_each_level_is_learned_from_its_own_choices() -> None:
    """Upper nodes are always right; which of their children it is, is a matter of chance."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=1000)
    leaves = np.full((1000, 4), 0.01)
    guessed = truth // 2 * 2 + rng.integers(2, size=1000)
    leaves[np.arange(1000), guessed] = rng.uniform(0.7, 0.95, size=1000)
    leaves[np.arange(1000), guessed ^ 1] = 0.98 - leaves[np.arange(1000), guessed]
    upper, lower = fit_path_confidence(DEEP, leaves, truth, np.ones(1000))
    assert upper[0] > 0.95
    assert lower[0] < 0.3
    at_a = node_probabilities(DEEP, rescale_paths(DEEP, leaves, [upper, lower]))[:, [1, 2]].max(axis=1)
    assert at_a.min() > 0.95


@pytest.mark.parametrize("n", [1, 19])
def test_few_documents_change_nothing(n: int) -> None:
    leaves, truth = distorted(0.3, -2.0, n)
    assert fit_path_confidence(FLAT, leaves, truth, np.ones(n)) == (IDENTITY,)


def test_a_level_that_few_reach_is_left_as_it_is() -> None:
    tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("c",)])
    c = int(tree.leaf_position[tree.find("c")])
    leaves = np.full((60, 3), 0.1)
    leaves[:, c] = 0.8
    upper, lower = fit_path_confidence(tree, leaves, np.full(60, c), np.ones(60))
    assert upper != IDENTITY
    assert lower == IDENTITY


def test_weights_count() -> None:
    leaves, truth = distorted(1.0, 0.0, 400)
    trusting, doubting = (
        fit_path_confidence(FLAT, leaves, truth, np.where((truth == 0) == trusted, 1.0, 0.01))[0]
        for trusted in (True, False)
    )
    confident, doubtful = (
        rescale_paths(FLAT, leaves, [level])[:, 0].mean() for level in (trusting, doubting)
    )
    assert confident > doubtful + 0.05


@pytest.mark.parametrize("always", [True, False])
def test_always_right_and_never_right(always: bool) -> None:
    leaves, _ = distorted(1.0, 0.0, 100)
    ((slope, offset),) = fit_path_confidence(FLAT, leaves, np.full(100, 0 if always else 1), np.ones(100))
    assert np.isfinite([slope, offset]).all()
    assert slope > 0
    after = rescale_paths(FLAT, leaves, [(slope, offset)])[:, 0].mean()
    assert (after > leaves[:, 0].mean()) == always
