"""Frequencies of the leaves: found where the classifier can be believed, even where it cannot."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Taxonomy
from himecat.classify.calibration import calibrate
from himecat.classify.frequencies import log_frequencies

SKEW = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
TREE = Taxonomy.from_paths([(name,) for name in "abcdef"])

Floats = npt.NDArray[np.float64]


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
    found = log_frequencies(logits, right(logits, leaves), 30)
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
    found = log_frequencies(logits, 1.0, 1e9)
    assert counted.std() < found.std()
    assert np.abs(found - centred(SKEW)).max() < np.abs(counted - centred(SKEW)).max()
    assert right(logits + found, leaves) > right(logits, leaves) + 0.03


def test_even_leaves_stay_even() -> None:
    logits, leaves = documents(np.full(6, 1 / 6), 3.0)
    found = log_frequencies(logits, right(logits, leaves), 5)
    np.testing.assert_allclose(found, 0.0, atol=0.05)


@pytest.mark.parametrize(("accuracy", "labelled"), [(0.2, 5.0), (0.6, 1.0), (0.0, 5.0), (0.5, 0.0)])
def test_a_poor_or_hardly_known_classifier_is_not_believed(accuracy: float, labelled: float) -> None:
    assert not log_frequencies(documents(SKEW, 3.0)[0], accuracy, labelled).any()


def test_the_better_it_is_known_the_more_is_believed() -> None:
    logits, _ = documents(SKEW, 3.0)
    by_accuracy = [log_frequencies(logits, accuracy, 5).std() for accuracy in (0.5, 0.7, 0.9, 1.0)]
    by_labels = [log_frequencies(logits, 0.7, labelled).std() for labelled in (1, 3, 10, 100)]
    for spreads in (by_accuracy, by_labels):
        assert all(one < next_one for one, next_one in pairwise(spreads))


def test_a_leaf_favoured_by_the_classifier_alone_is_not_taken_for_frequent() -> None:
    """What the scores add to a leaf everywhere is seen on labelled documents, and taken out before."""
    even = np.full(6, 1 / 6)
    favoured = np.array([2.0, 0, 0, 0, 0, 0])
    held_out, truth = documents(even, 2.0, 300, seed=1)
    everywhere, _ = documents(even, 2.0)
    calibration = calibrate(TREE, held_out + favoured, truth)
    plain = log_frequencies(calibration.sharpness * (everywhere + favoured), 0.95, 50)
    fair = log_frequencies(np.asarray(calibration.logits(everywhere + favoured)), 0.95, 50)
    assert plain[0] > 0.5
    assert abs(fair[0]) < 0.25


def test_a_leaf_that_is_both_favoured_and_frequent_is_frequent() -> None:
    favoured = np.array([1.0, 0, 0, 0, 0, 0])
    held_out, truth = documents(np.full(6, 1 / 6), 3.0, 300, seed=1)
    everywhere, _ = documents(SKEW, 3.0)
    calibration = calibrate(TREE, held_out + favoured, truth)
    found = log_frequencies(np.asarray(calibration.logits(everywhere + favoured)), 0.95, 50)
    np.testing.assert_allclose(found, centred(SKEW), atol=0.4)


def test_a_leaf_without_documents_stays_possible() -> None:
    found = log_frequencies(np.repeat(50.0 * np.eye(3)[:2], 500, axis=0), 1.0, 50)
    assert np.isfinite(found).all()
    assert found[2] < -1.0
    # Even mass of a tenth over three leaves, beside eleven tenths in all.
    assert np.exp(found[2] - found[0]) == pytest.approx((0.1 / 3) / (0.5 + 0.1 / 3), rel=0.02)


@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (0, 1), (5, 1)])
def test_no_documents_or_one_leaf(shape: tuple[int, int]) -> None:
    found = log_frequencies(np.ones(shape), 0.9, 5)
    assert found.tolist() == [0.0] * shape[1]
    assert found.dtype == np.float32


def test_one_document() -> None:
    found = log_frequencies(np.array([[2.0, 0.0, 0.0]]), 0.9, 5)
    assert np.isfinite(found).all()
    assert found[0] > found[1] == pytest.approx(found[2])


def test_extreme_scores() -> None:
    logits = np.array([[1e5, -1e5, 0.0]] * 10 + [[-1e5, 1e5, 0.0]] * 5, dtype=np.float32)
    found = log_frequencies(logits, 0.9, 5)
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]


def test_the_scores_are_left_alone() -> None:
    logits, _ = documents(SKEW, 3.0, 50)
    before = logits.copy()
    log_frequencies(logits, 0.9, 5)
    np.testing.assert_array_equal(logits, before)
