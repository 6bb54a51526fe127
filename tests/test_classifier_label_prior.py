"""Frequencies of the leaves: found, and shrink_log_prior as far as two halves of the labels agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Taxonomy
from himecat.classifier.calibration import calibrate
from himecat.classifier.label_prior import balance, estimate_log_prior, evenness, shrink_log_prior
from himecat.runtime.softmax import softmax

SKEW = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
TREE = Taxonomy.from_paths([(name,) for name in "abcdef"])

Floats = npt.NDArray[np.float64]
Estimate = npt.NDArray[np.float32]


def documents(
    shares: Floats, apart: float, n: int = 4000, seed: int = 0
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """True log-odds of documents, were all leaves equally frequent, and their leaves.

    Every leaf has a normal distribution of its own around a corner `apart` from the origin.
    """
    rng = np.random.default_rng(seed)
    leaves = rng.choice(len(shares), size=n, p=shares)
    points = rng.normal(size=(n, len(shares)))
    points[np.arange(n), leaves] += apart
    return apart * points, leaves


def centred(shares: Floats) -> Floats:
    return np.asarray(np.log(shares) - np.log(shares).mean())


def right(logits: Floats, leaves: npt.NDArray[np.int64]) -> float:
    return float((logits.argmax(axis=1) == leaves).mean())


@pytest.mark.parametrize("apart", [3.0, 5.0])
def test_a_known_skew_is_found(apart: float) -> None:
    logits, leaves = documents(SKEW, apart)
    found = estimate_log_prior(logits)
    assert found.dtype == np.float32
    assert found.mean() == pytest.approx(0.0, abs=1e-5)
    # Even mass and the doubt about the rest draw them together, and never apart.
    np.testing.assert_allclose(found, centred(SKEW), atol=0.35)
    assert found.std() < centred(SKEW).std()
    # It pays: more documents are placed right.
    assert right(logits + found, leaves) >= right(logits, leaves)


def test_overlapping_leaves_are_told_apart_by_their_frequencies() -> None:
    """Counting the likeliest leaves would find frequent leaves too rare."""
    logits, leaves = documents(SKEW, 1.5)
    counted = centred(np.bincount(logits.argmax(axis=1), minlength=6) / len(leaves))
    found = estimate_log_prior(logits)
    assert counted.std() < found.std()
    assert np.abs(found - centred(SKEW)).max() < np.abs(counted - centred(SKEW)).max()
    assert right(logits + found, leaves) > right(logits, leaves) + 0.03


def test_even_leaves_stay_even() -> None:
    found = estimate_log_prior(documents(np.full(6, 1 / 6), 3.0)[0])
    np.testing.assert_allclose(found, 0.0, atol=0.15)


def estimates(true: Floats, mistakes: float, seed: int) -> list[npt.NDArray[np.float32]]:
    """Three estimates of the same log-frequencies, each with mistakes of its own."""
    rng = np.random.default_rng(seed)
    found = true + rng.normal(scale=mistakes, size=(3, len(true)))
    return [np.asarray(one - one.mean(), dtype=np.float32) for one in found]


def shrunk(found: Estimate, one: Estimate, other: Estimate) -> Estimate:
    return shrink_log_prior(found, np.array([[one, other]]))


def test_estimates_that_agree_by_chance_only_are_not_believed() -> None:
    even = np.zeros(80)
    left = [shrunk(*estimates(even, 0.6, seed)).std() for seed in range(20)]
    assert np.mean(left) < 0.15 * 0.6


@pytest.mark.parametrize("mistakes", [0.1, 0.4, 0.8])
def test_as_much_is_believed_as_the_leaves_truly_vary(mistakes: float) -> None:
    true = np.random.default_rng(9).normal(scale=0.7, size=80)
    true -= true.mean()
    errors, shares = [], []
    for seed in range(20):
        found, *halves = estimates(true, mistakes, seed)
        kept = shrunk(found, *halves)
        assert kept.dtype == np.float32
        mean = (2 * found + sum(halves)) / 4
        shares.append(kept.std() / mean.std())
        errors.append(np.square(kept - true).mean() - np.square(found - true).mean())
    # The share of the truth in the variance of the mean, in which mistakes count 1/4 + 1/16 + 1/16.
    assert np.mean(shares) == pytest.approx(0.49 / (0.49 + 0.375 * mistakes**2), abs=0.1)
    # Better than the estimate from all labels, or as good where mistakes are small.
    assert np.mean(errors) < (0.002 if mistakes < 0.3 else -0.05)


def test_a_second_split_that_disagrees_lowers_what_is_believed() -> None:
    rng = np.random.default_rng(1)
    skew, one, other = rng.normal(scale=0.5, size=(3, 60)).astype(np.float32)
    agreeing, both = np.array([[skew, skew]]), np.array([[skew, skew], [one, other]])
    assert evenness(agreeing) < evenness(both) or evenness(both) == 0.0
    assert shrink_log_prior(skew, both).std() < 0.8 * shrink_log_prior(skew, agreeing).std()


def test_nothing_found_and_one_leaf() -> None:
    nothing = np.zeros(4, dtype=np.float32)
    assert not shrunk(nothing, nothing, nothing).any()
    one = np.zeros(1, dtype=np.float32)
    assert shrunk(one, one, one).tolist() == [0.0]


def test_an_estimate_is_never_drawn_apart() -> None:
    found = np.array([0.5, -0.5], dtype=np.float32)
    assert (np.abs(shrunk(found, 3 * found, 3 * found)) <= np.abs(2 * found)).all()


def test_what_balanced_collections_show_too_is_not_believed() -> None:
    found = np.array([0.2, -0.2], dtype=np.float32)
    assert not shrunk(found, found, found).any()


def test_leaves_are_even_only_where_halves_agree_on_nothing_else() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(scale=0.3, size=(2, 200)).astype(np.float32)
    assert evenness(np.array([[one, other]])) == 1.0
    skew = rng.normal(scale=0.6, size=200).astype(np.float32)
    assert evenness(np.array([[one + skew, other + skew]])) == 0.0
    # Between the two it falls, and nothing jumps.
    agreed = np.full(200, np.sqrt(1.5) * 0.25, dtype=np.float32)
    assert evenness(np.array([[agreed, agreed]])) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("shares", [np.full(6, 1 / 6), SKEW])
def test_balanced_leaves_are_as_frequent_as_wanted(shares: Floats) -> None:
    favoured = np.array([2.0, 0, 0, 0, -1.0, 0])
    logits, leaves = documents(shares, 2.0)
    added = balance(logits + favoured, np.log(shares))
    np.testing.assert_allclose(softmax(logits + favoured + added).mean(axis=0), shares, atol=0.003)
    # What the scores add to a leaf everywhere is gone, and with it the mistakes.
    np.testing.assert_allclose(added, -(favoured - favoured.mean()) + centred(shares), atol=0.25)
    assert right(logits + favoured + added, leaves) > right(logits + favoured, leaves) + 0.02


def test_a_leaf_that_nothing_belongs_to_does_not_take_all() -> None:
    logits = np.tile([5.0, 4.0, -60.0], (50, 1))
    added = balance(logits, np.zeros(3))
    assert np.isfinite(added).all()
    assert np.abs(added).max() <= 3.0
    assert (logits + added).argmax(axis=1).max() < 2
    assert not balance(logits[:0], np.zeros(3)).any()


def test_a_leaf_favoured_by_the_classifier_alone_is_not_taken_for_frequent() -> None:
    """What the scores add to a leaf everywhere is seen on labelled documents, and taken out before."""
    even = np.full(6, 1 / 6)
    favoured = np.array([2.0, 0, 0, 0, 0, 0])
    held_out, truth = documents(even, 2.0, 300, seed=1)
    everywhere, _ = documents(even, 2.0)
    calibration = calibrate(TREE, held_out + favoured, truth)
    plain = estimate_log_prior(calibration.inverse_temperature * (everywhere + favoured))
    fair = estimate_log_prior(np.asarray(calibration.logits(everywhere + favoured)))
    assert plain[0] > 0.5
    assert abs(fair[0]) < 0.25


def test_a_leaf_that_is_both_favoured_and_frequent_is_frequent() -> None:
    favoured = np.array([1.0, 0, 0, 0, 0, 0])
    held_out, truth = documents(np.full(6, 1 / 6), 3.0, 300, seed=1)
    everywhere, _ = documents(SKEW, 3.0)
    calibration = calibrate(TREE, held_out + favoured, truth)
    found = estimate_log_prior(np.asarray(calibration.logits(everywhere + favoured)))
    np.testing.assert_allclose(found, centred(SKEW), atol=0.4)


def test_a_leaf_without_documents_stays_possible() -> None:
    found = estimate_log_prior(np.repeat(50.0 * np.eye(3)[:2], 500, axis=0))
    assert np.isfinite(found).all()
    assert found[2] < -1.0
    # Even mass of a tenth over three leaves, beside eleven tenths in all.
    assert np.exp(found[2] - found[0]) == pytest.approx((0.1 / 3) / (0.5 + 0.1 / 3), rel=0.02)


@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (0, 1), (5, 1)])
def test_no_documents_or_one_leaf(shape: tuple[int, int]) -> None:
    found = estimate_log_prior(np.ones(shape))
    assert found.tolist() == [0.0] * shape[1]
    assert found.dtype == np.float32


def test_one_document() -> None:
    found = estimate_log_prior(np.array([[2.0, 0.0, 0.0]]))
    assert np.isfinite(found).all()
    assert found[0] > found[1] == pytest.approx(found[2])


def test_extreme_scores() -> None:
    logits = np.array([[1e5, -1e5, 0.0]] * 10 + [[-1e5, 1e5, 0.0]] * 5, dtype=np.float32)
    found = estimate_log_prior(logits)
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]


def test_the_scores_are_left_alone() -> None:
    logits, _ = documents(SKEW, 3.0, 50)
    before = logits.copy()
    estimate_log_prior(logits)
    np.testing.assert_array_equal(logits, before)
