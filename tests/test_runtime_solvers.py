"""The small solvers agree with scipy's, also where the problem is awkward."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import approx_fprime, brentq, minimize, nnls, rosen, rosen_der
from scipy.special import expit
from scipy.special import logit as scipy_logit

from himecat.classifier import calibration
from himecat.classifier import path_confidence as surest
from himecat.runtime.solvers import bisect_root, logit, minimize_lbfgs, nonnegative_least_squares, sigmoid

Vector = npt.NDArray[np.float64]


def test_the_logistic_function_and_its_inverse() -> None:
    odds = np.linspace(-20, 20, 81)
    np.testing.assert_allclose(sigmoid(odds), expit(odds), atol=1e-15)
    shares = np.linspace(1e-6, 1 - 1e-6, 50)
    np.testing.assert_allclose(logit(shares), scipy_logit(shares), rtol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_a_narrow_bent_valley_is_followed_to_its_end(size: int) -> None:
    start = np.full(size, 1.3)
    found = minimize_lbfgs(lambda point: (float(rosen(point)), rosen_der(point)), start, tolerance=1e-8)
    np.testing.assert_allclose(found, np.ones(size), atol=1e-4)


def test_a_badly_scaled_bowl() -> None:
    scales = np.array([1e-3, 1.0, 1e4])
    found = minimize_lbfgs(
        lambda p: (float(scales @ (p - 1) ** 2), 2 * scales * (p - 1)), np.zeros(3), tolerance=1e-8
    )
    np.testing.assert_allclose(found, np.ones(3), atol=1e-3)


def test_a_start_at_the_end_stays() -> None:
    assert minimize_lbfgs(lambda p: (float(p @ p), 2 * p), [0.0, 0.0]).tolist() == [0.0, 0.0]


def test_a_function_that_only_falls_ends_in_time() -> None:
    assert np.isfinite(minimize_lbfgs(lambda p: (float(-p.sum()), -np.ones(1)), [0.0])).all()


def test_parameters_without_a_slope_do_not_move() -> None:
    found = minimize_lbfgs(lambda p: (float((p[0] - 3) ** 2), np.array([2 * (p[0] - 3), 0.0])), [0.0, 7.0])
    np.testing.assert_allclose(found, [3.0, 7.0], atol=1e-5)


@pytest.mark.parametrize("shift", [-30.0, -1.0, 0.0, 5.5])
def test_the_zero_is_brents(shift: float) -> None:
    def rising(x: float) -> float:
        return float(np.tanh(x - shift) + 0.1)

    assert bisect_root(rising, -100, 100) == pytest.approx(brentq(rising, -100, 100), abs=1e-9)


def test_without_a_zero_it_is_the_nearer_end() -> None:
    assert bisect_root(lambda x: x + 5, 0, 1) == pytest.approx(0, abs=1e-12)
    assert bisect_root(lambda x: x - 5, 0, 1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_not_negative_least_squares_are_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    vectors, other = rng.normal(size=(30, count)), rng.normal(size=30)
    found = nonnegative_least_squares(vectors.T @ vectors, vectors.T @ other)
    np.testing.assert_allclose(found, nnls(vectors, other)[0], atol=1e-9)


def test_nearly_the_same_vector_twice() -> None:
    vector = np.random.default_rng(0).normal(size=50)
    vectors = np.stack([vector, vector + 1e-3], axis=1)
    gram = vectors.T @ vectors + 1e-6 * np.eye(2)
    found = nonnegative_least_squares(gram, vectors.T @ vector)
    assert (found >= 0).all()
    np.testing.assert_allclose(vectors @ found, vector, atol=1e-2)


def test_no_vectors() -> None:
    assert nonnegative_least_squares(np.zeros((0, 0)), np.zeros(0)).shape == (0,)


# -- the losses of the calibration have the slopes they say ---------------------------------------------


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, Vector]]:
    """What is handed to the solver, and where it starts."""
    seen: list[tuple[object, Vector]] = []

    def spy(loss: object, start: npt.ArrayLike, **options: float) -> Vector:
        seen.append((loss, np.array(start, dtype=np.float64)))
        return minimize_lbfgs(loss, start, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(calibration, "minimize_lbfgs", spy)
    monkeypatch.setattr(surest, "minimize_lbfgs", spy)
    return seen


def test_slopes_are_those_of_the_losses(losses: list[tuple[object, Vector]]) -> None:
    rng = np.random.default_rng(1)
    from himecat.input.taxonomy.tree import Taxonomy

    tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b", "u"), ("b", "v"), ("b", "w")])
    leaves = rng.integers(5, size=80)
    scores = rng.normal(size=(80, 5)) + 2 * np.eye(5)[leaves]
    found = calibration.calibrate(tree, scores, leaves)
    calibration.calibrate_paths(tree, found, scores, leaves, np.ones(80))
    assert len(losses) == 2 + 2 + 2
    for loss, start in losses:
        for point in (start, start + rng.normal(size=len(start)) * 0.3):
            slope = loss(point)[1]  # type: ignore[operator]
            numeric = approx_fprime(point, lambda at, loss=loss: loss(at)[0], 1e-6)
            if len(point) > 2:
                # Without biases their slope is not wanted.
                numeric = np.where(slope == 0, 0, numeric)
            np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3)


def test_exponents_and_slips_are_those_of_a_slow_search() -> None:
    rng = np.random.default_rng(2)
    choices = []
    for _ in range(200):
        logs = np.log(rng.dirichlet(np.full(int(rng.integers(2, 6)), 0.4)) + 1e-12)
        choices.append(
            (1.0, logs, int(rng.choice(len(logs), p=np.exp(0.5 * logs) / np.exp(0.5 * logs).sum())))
        )
    exponent, slips = calibration.fit_level(choices)

    def loss(point: Vector) -> float:
        steep, share = np.exp(point[0]), expit(point[1])
        total = 5 * (point[0] ** 2 + (point[1] + 4.6) ** 2 / 9) / 2
        for weight, logs, chosen in choices:
            right = np.exp(steep * logs[chosen]) / np.exp(steep * logs).sum()
            total -= weight * np.log((1 - share) * right + share / len(logs))
        return float(total)

    slow = minimize(loss, [0.0, -4.6], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x
    assert exponent == pytest.approx(np.exp(slow[0]), abs=2e-3)
    assert slips == pytest.approx(expit(slow[1]), abs=2e-3)
