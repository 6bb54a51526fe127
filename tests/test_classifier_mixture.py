"""The mixture over the leaves: what holds it in place, and what unlabelled documents add."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Supervision, Taxonomy
from himecat.classifier.mixture import Anchors, Mixture, fit_mixture, gather_anchors
from himecat.paper.vmf import sample_vmf
from himecat.runtime.softmax import softmax
from himecat.views.matrices import unit

FloatArray = npt.NDArray[np.float32]
TREE = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b", "z"), ("b", "w")])
LEAVES = {TREE.path(leaf)[-1]: leaf for leaf in TREE.leaves}
DIMENSION, KAPPA = 30, 30.0


def drawn(
    counts: tuple[int, ...] = (150, 150, 150, 150), seed: int = 0
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Directions from one von Mises-Fisher distribution per leaf, and the leaf of each."""
    rng = np.random.default_rng(seed)
    means = unit(rng.normal(size=(4, DIMENSION)))
    # Two leaves of one parent are nearer to each other.
    means = unit(means + 0.5 * means[[1, 0, 3, 2]])
    rows = np.concatenate([sample_vmf(mean, KAPPA, n, rng) for mean, n in zip(means, counts, strict=True)])
    truth = np.repeat(np.arange(4), counts)
    order = rng.permutation(len(truth))
    return unit(rows[order]), truth[order]


def labelled(truth: npt.NDArray[np.int64], per_leaf: int = 2) -> Supervision:
    rows = np.concatenate([np.flatnonzero(truth == leaf)[:per_leaf] for leaf in range(4)])
    return Supervision(rows, np.asarray(TREE.leaves)[truth[rows]])


def anchors_of(supervision: Supervision, directions: FloatArray, mass: FloatArray | None = None) -> Anchors:
    nothing = np.zeros((4, directions.shape[1]), dtype=np.float32)
    return gather_anchors(
        TREE, supervision, directions, nothing, np.zeros(4, np.float32) if mass is None else mass
    )


def fitted(directions: FloatArray, supervision: Supervision, **options: float) -> Mixture:
    given = {"concentration": KAPPA, "rounds": 5, "learn_prior": True} | options
    return fit_mixture(TREE, anchors_of(supervision, directions), directions, **given)  # type: ignore[arg-type]


def right(found: Mixture, truth: npt.NDArray[np.int64]) -> float:
    return float((found.posterior.argmax(axis=1) == truth).mean())


def test_unlabelled_documents_help() -> None:
    before, after, likely_before, likely_after = [], [], [], []
    for seed in range(3):
        directions, truth = drawn(seed=seed)
        few = labelled(truth, 1)
        without, with_them = fitted(directions, few, rounds=0), fitted(directions, few)
        before.append(right(without, truth))
        after.append(right(with_them, truth))
        likely_before.append(float(np.log(np.exp(without.scores).mean(axis=1)).mean()))
        likely_after.append(float(np.log(np.exp(with_them.scores - with_them.log_prior).mean(axis=1)).mean()))
    assert np.mean(after) > np.mean(before) + 0.05
    assert np.mean(likely_after) > np.mean(likely_before)


def test_labelled_documents_stay() -> None:
    directions, truth = drawn()
    few = labelled(truth)
    # One of them is labelled against all appearances.
    wrong = int(few.rows[0])
    nodes = few.nodes.copy()
    nodes[0] = LEAVES["w"]
    found = fitted(directions, Supervision(few.rows, nodes))
    assert TREE.leaves[int(truth[wrong])] != LEAVES["w"]
    for row, node in zip(few.rows, nodes, strict=True):
        assert found.posterior[row, TREE.leaf_position[node]] == pytest.approx(1.0)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1.0, atol=1e-5)


def test_a_label_at_an_inner_node_leaves_the_choice_below_it() -> None:
    directions, truth = drawn()
    few = labelled(truth)
    # Documents of b that are said to be of a, and ones of a that are.
    of_b, of_a = np.flatnonzero(truth >= 2)[50:53], np.flatnonzero(truth < 2)[50:53]
    above = np.concatenate([of_b, of_a])
    rows = np.concatenate([few.rows, above])
    nodes = np.concatenate([few.nodes, np.full(6, TREE.find("a"))])
    held = anchors_of(Supervision(rows, nodes), directions)
    assert held.mass.tolist() == [2, 2, 2, 2]
    found = fitted(directions, Supervision(rows, nodes))
    assert found.posterior[above][:, 2:].max() == 0.0
    np.testing.assert_allclose(found.posterior[above].sum(axis=1), 1.0, atol=1e-5)
    assert (found.posterior[of_a].argmax(axis=1) == truth[of_a]).all()


def test_a_leaf_of_which_nothing_is_known_stands_with_its_kin() -> None:
    directions, truth = drawn()
    few = labelled(truth)
    kept = few.nodes != LEAVES["y"]
    found = fitted(directions, Supervision(few.rows[kept], few.nodes[kept]), rounds=0)
    x, y, z, w = (found.directions[TREE.leaf_position[LEAVES[name]]] for name in "xyzw")
    np.testing.assert_allclose(y, x, atol=1e-5)
    assert y @ x > max(y @ z, y @ w)
    # Where the parent knows nothing either, all leaves do.
    kept = few.nodes == LEAVES["z"]
    found = fitted(directions, Supervision(few.rows[kept], few.nodes[kept]), rounds=0)
    np.testing.assert_allclose(found.directions, np.tile(found.directions[2], (4, 1)), atol=1e-5)


def test_a_labelled_document_without_a_direction_says_nothing_of_its_leaf() -> None:
    directions, truth = drawn()
    few = labelled(truth, 1)
    directions[few.rows[1]] = 0.0
    held = anchors_of(few, directions)
    assert held.mass.tolist() == [1, 0, 1, 1]
    found = fitted(directions, few, rounds=0)
    np.testing.assert_allclose(found.directions[1], found.directions[0], atol=1e-5)
    assert found.posterior[few.rows[1]].tolist() == [0, 1, 0, 0]


def test_frequencies_are_learned() -> None:
    directions, truth = drawn((400, 100, 60, 40))
    found = fitted(directions, labelled(truth))
    frequencies = np.exp(found.log_prior)
    assert frequencies.sum() == pytest.approx(1.0, abs=1e-5)
    # Drawn towards an even share.
    np.testing.assert_allclose(frequencies, (np.array([400, 100, 60, 40]) / 600 + 0.075) / 1.3, atol=0.04)
    assert not fitted(directions, labelled(truth), learn_prior=False).log_prior.any()


def test_even_leaves_share_the_documents_although_one_attracts_more() -> None:
    directions, truth = drawn((150, 150, 150, 150))
    few = labelled(truth)
    # A leaf that lies in the midst of the others attracts their documents.
    directions = unit(directions + 0.8 * directions[truth == 0].mean(axis=0))
    plain, even = (fitted(directions, few, learn_prior=False, evenness=share) for share in (0.0, 1.0))
    shares = even.posterior.mean(axis=0)
    np.testing.assert_allclose(shares, 0.25, atol=0.02)
    assert np.abs(plain.posterior.mean(axis=0) - 0.25).max() > np.abs(shares - 0.25).max()
    assert right(even, truth) >= right(plain, truth)


def test_of_a_sorted_file_documents_of_all_leaves_are_looked_at() -> None:
    nothing = np.zeros((4, 3), dtype=np.float32)
    few = Supervision(np.array([0, 50_000]), np.array([1, 2]))
    anchors = gather_anchors(TREE, few, np.ones((100_000, 3), np.float32), nothing, np.zeros(4, np.float32))
    rows = anchors.unlabelled(100_000)
    shares = np.bincount(rows // 25_000, minlength=4) / len(rows)
    np.testing.assert_allclose(shares, 0.25, atol=0.03)
    assert len(np.unique(rows)) == len(rows) < 50_000
    assert not np.isin([0, 50_000], rows).any()


def test_kin_draw_a_leaf_towards_its_parent() -> None:
    directions, truth = drawn()
    few = labelled(truth, 1)
    alone, with_kin = fitted(directions, few, rounds=0), fitted(directions, few, rounds=0, sibling_mass=1.0)
    assert with_kin.directions[0] @ with_kin.directions[1] > alone.directions[0] @ alone.directions[1] + 0.1
    flat = Taxonomy.from_paths([("x",), ("y",)])
    pair = unit(np.eye(2))
    held = gather_anchors(
        flat,
        Supervision(np.arange(2), np.array([1, 2])),
        pair,
        np.zeros((2, 2), np.float32),
        np.zeros(2, np.float32),
    )
    found = fit_mixture(flat, held, pair, concentration=9, rounds=0, learn_prior=True, sibling_mass=1.0)
    np.testing.assert_allclose(found.directions, pair)


def test_names_and_keywords_count_as_documents() -> None:
    directions, truth = drawn()
    seeds = unit(np.stack([directions[truth == leaf].mean(axis=0) for leaf in range(4)]))
    nothing = Supervision(np.zeros(0, np.int64), np.zeros(0, np.int64))
    held = gather_anchors(TREE, nothing, directions, seeds * 2, np.full(4, 2, np.float32))
    found = fit_mixture(TREE, held, directions, concentration=KAPPA, rounds=3, learn_prior=True)
    assert right(found, truth) > 0.9
    # What was given is not changed.
    np.testing.assert_allclose(np.linalg.norm(seeds, axis=1), 1.0, atol=1e-5)


def test_all_documents_labelled() -> None:
    directions, truth = drawn((3, 3, 3, 3))
    found = fitted(directions, Supervision(np.arange(12), np.asarray(TREE.leaves)[truth]))
    assert right(found, truth) == 1.0
    assert np.isfinite(found.log_prior).all()
    assert np.isfinite(found.directions).all()


def test_softmax_of_large_scores() -> None:
    np.testing.assert_allclose(
        softmax(np.array([[1000.0, 999.0], [-1000.0, -1000.0]])), [[0.731, 0.269], [0.5, 0.5]], atol=1e-3
    )
