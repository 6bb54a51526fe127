"""Calibration: a known sharpness is found again, and what cannot be learned is not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Taxonomy
from himecat.classifier.calibration import (
    DEFAULT_INVERSE_TEMPERATURE,
    IDENTITY,
    Calibration,
    calibrate,
    calibrate_paths,
)
from himecat.runtime.softmax import softmax

TREE = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b", "z"), ("b", "w"), ("c",)])


def answered(
    sharpness: float, n: int = 3000, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Scores, and leaves drawn with the probabilities that they have at this sharpness."""
    rng = np.random.default_rng(seed)
    scores = 3.0 * rng.normal(size=(n, TREE.n_leaves))
    odds = softmax(scores * sharpness).astype(np.float64)
    return scores, np.array([rng.choice(TREE.n_leaves, p=row / row.sum()) for row in odds])


@pytest.mark.parametrize("sharpness", [0.1, 0.4, 1.5])
def test_a_known_sharpness_is_found(sharpness: float) -> None:
    found = calibrate(TREE, *answered(sharpness))
    assert found.inverse_temperature == pytest.approx(sharpness, rel=0.1)
    for exponent, slips in found.levels:
        assert exponent == pytest.approx(1.0, abs=0.15)
        assert slips < 0.08
    # No leaf was favoured, and none is.
    np.testing.assert_allclose(found.bias, 0.0, atol=0.2)


def test_probabilities_come_true() -> None:
    scores, leaves = answered(0.3)
    found = calibrate(TREE, scores[:1500], leaves[:1500]).probabilities(TREE, scores[1500:])
    surest, hit = found.max(axis=1), found.argmax(axis=1) == leaves[1500:]
    for low, high in ((0.3, 0.5), (0.5, 0.7), (0.7, 0.9)):
        chosen = (surest > low) & (surest <= high)
        assert chosen.sum() > 50
        assert hit[chosen].mean() == pytest.approx(surest[chosen].mean(), abs=0.08)


def test_slips_are_learned() -> None:
    """However sure the scores: one document in five is anywhere."""
    rng = np.random.default_rng(0)
    leaves = rng.integers(5, size=2000)
    scores = 30.0 * np.eye(5)[leaves]
    slipped = rng.random(2000) < 0.2
    leaves[slipped] = rng.integers(5, size=int(slipped.sum()))
    found = calibrate(TREE, scores, leaves).probabilities(TREE, scores)
    assert found.max(axis=1).mean() == pytest.approx(0.84, abs=0.05)


@pytest.mark.parametrize("levels", [(IDENTITY,) * 2, ((0.5, 0.1), (2.0, 0.0)), ((1.0, 0.0), (0.3, 0.9))])
def test_rows_sum_to_one(levels: tuple[tuple[float, float], ...]) -> None:
    scores = 40.0 * np.random.default_rng(0).normal(size=(50, 5))
    found = Calibration(2.0, levels).probabilities(TREE, scores)
    assert found.dtype == np.float32
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    assert Calibration(2.0, levels).probabilities(TREE, scores[:0]).shape == (0, 5)


def test_an_exponent_acts_on_its_own_level() -> None:
    x, y = (TREE.leaf_position[TREE.find(name)] for name in "xy")
    scores = np.zeros((1, 5))
    scores[0, [x, y]] = 2.0, 1.0
    plain = Calibration(1.0, (IDENTITY, IDENTITY)).probabilities(TREE, scores)[0]
    deeper = Calibration(1.0, (IDENTITY, (0.5, 0.0))).probabilities(TREE, scores)[0]
    assert plain[[x, y]].sum() == pytest.approx(deeper[[x, y]].sum(), abs=1e-5)
    assert deeper[y] / deeper[x] == pytest.approx((plain[y] / plain[x]) ** 0.5, abs=1e-4)


@pytest.mark.parametrize("n", [0, 1, 19])
def test_with_few_documents_the_usual_values_stand(n: int) -> None:
    scores, leaves = answered(3.0)
    assert calibrate(TREE, scores[:n], leaves[:n]) == Calibration(
        DEFAULT_INVERSE_TEMPERATURE, (IDENTITY,) * 2
    )


def test_a_level_with_few_choices_is_left_as_it_is() -> None:
    scores, _ = answered(0.4)
    # All at the leaf c, below which there is nothing to choose.
    found = calibrate(TREE, scores[:40], np.full(40, TREE.leaf_position[TREE.find("c")]))
    assert found.levels[1] == IDENTITY
    assert found.levels[0] != IDENTITY


def test_right_answers_and_wrong_ones() -> None:
    scores = 4.0 * np.eye(5)[np.arange(100) % 5]
    right, wrong = (calibrate(TREE, scores, (np.arange(100) + shift) % 5) for shift in (0, 1))
    assert right.inverse_temperature > 1.0 > 0.1 > wrong.inverse_temperature


def test_weights_count() -> None:
    scores = 4.0 * np.eye(5)[np.zeros(60, dtype=int)]
    leaves = np.where(np.arange(60) < 30, 0, 1)
    trusting = calibrate(TREE, scores, leaves, np.where(leaves == 0, 1.0, 0.01))
    assert trusting.inverse_temperature > calibrate(TREE, scores, leaves).inverse_temperature


# -- leaves that the scores favour ---------------------------------------------------------------------


@pytest.mark.parametrize("favour", [-2.0, 2.0])
def test_a_leaf_that_the_scores_favour_is_corrected(favour: float) -> None:
    scores, leaves = answered(0.5)
    tilted = scores.copy()
    tilted[:, 2] += favour / 0.5
    found = calibrate(TREE, tilted[:1500], leaves[:1500])
    assert len(found.bias) == 5
    # In the scores' own measure, whatever the sharpness: exactly what was added is taken away.
    taken = (found.bias[2] - np.mean(np.delete(found.bias, 2))) / found.inverse_temperature
    assert taken == pytest.approx(-favour / 0.5, abs=0.6)
    plain = Calibration(found.inverse_temperature, found.levels)
    fair_hits, plain_hits = (
        (one.probabilities(TREE, tilted[1500:]).argmax(axis=1) == leaves[1500:]).mean()
        for one in (found, plain)
    )
    assert fair_hits > plain_hits + 0.01
    # Its share among the answers is what it should be.
    expected = found.probabilities(TREE, tilted[1500:])[:, 2].mean()
    assert expected == pytest.approx((leaves[1500:] == 2).mean(), abs=0.04)


def test_a_leaf_without_held_out_documents_gets_no_bias() -> None:
    scores, leaves = answered(0.5)
    scores[:, 2] += 3.0
    seen = leaves != 4
    found = calibrate(TREE, scores[seen], leaves[seen])
    assert found.bias[4] == 0.0
    assert found.bias[2] < -0.5


@pytest.mark.parametrize("n", [60, 2000])
def test_a_leaf_without_held_out_documents_is_not_put_back_by_the_others_biases(n: int) -> None:
    """That none of the documents belongs to it says nothing: it had none to hold out."""
    scores, leaves = answered(0.5)
    seen = np.flatnonzero(leaves != 4)[:n]
    found = calibrate(TREE, scores[seen], leaves[seen])
    assert found.bias[4] == pytest.approx(np.mean(found.bias[:4]), abs=0.2)


def test_a_few_documents_hardly_make_a_bias() -> None:
    scores, leaves = answered(0.5)
    tilted = scores.copy()
    tilted[:, 2] += 2.0
    few, many = (calibrate(TREE, tilted[:n], leaves[:n]).bias[2] for n in (25, 2500))
    assert many < few < 0.3


def test_what_is_said_about_sureness_is_learned_without_the_biases() -> None:
    """They fit the very documents that they are learned from."""
    scores, leaves = answered(0.5, n=60)
    scores[:, 2] += 3.0
    found = calibrate(TREE, scores, leaves)
    fair = calibrate(TREE, scores + np.array(found.bias) / found.inverse_temperature, leaves)
    assert found.inverse_temperature < fair.inverse_temperature


def test_biases_are_added_to_the_logits() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 5))
    bias = (0.5, 0.0, -1.0, 0.0, 2.0)
    found = Calibration(2.0, (IDENTITY,) * 2, bias)
    np.testing.assert_allclose(found.logits(scores), scores * 2.0 + np.array(bias), atol=1e-6)
    np.testing.assert_allclose(found.probabilities(TREE, scores), softmax(scores * 2.0 + bias), atol=1e-6)
    np.testing.assert_allclose(Calibration(2.0, (IDENTITY,) * 2).logits(scores), scores * 2.0, atol=1e-6)


def test_the_confidence_of_the_likeliest_path_is_added_last() -> None:
    scores, leaves = answered(0.5)
    plain = Calibration(0.5, (IDENTITY,) * 2, (0.0, 0.0, 0.5, 0.0, 0.0))
    found = calibrate_paths(TREE, plain, scores, leaves, np.ones(len(leaves)))
    assert (found.inverse_temperature, found.levels, found.bias) == (
        plain.inverse_temperature,
        plain.levels,
        plain.bias,
    )
    assert len(found.paths) == 2
    # A second time nothing is learned on top of the first.
    assert calibrate_paths(TREE, found, scores, leaves, np.ones(len(leaves))) == found
    rows = found.probabilities(TREE, scores)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-5)
    assert found.probabilities(TREE, scores[:0]).shape == (0, 5)


def test_too_sure_scores_are_believed_less() -> None:
    scores, leaves = answered(0.2)
    loud = Calibration(1.0, (IDENTITY,) * 2)
    found = calibrate_paths(TREE, loud, scores[:1500], leaves[:1500], np.ones(1500))
    before, after = (one.probabilities(TREE, scores[1500:]).max(axis=1) for one in (loud, found))
    hit = (scores[1500:].argmax(axis=1) == leaves[1500:]).mean()
    assert hit < after.mean() < before.mean() - 0.05
