"""Linear classifiers against closed forms, and that no document is judged by its own probable label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from himecat.classify import linear
from himecat.classify.linear import cross_fit, ridge

FloatArray = npt.NDArray[np.float32]


def problem(n: int = 80, p: int = 10, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.4)).astype(np.float32)
    targets = rng.dirichlet(np.ones(3), size=n).astype(np.float32)
    return rows, targets, rng.uniform(0.5, 3.0, size=n).astype(np.float32)


def closed_form(
    rows: FloatArray, targets: FloatArray, weights: FloatArray, penalty: float
) -> npt.NDArray[Any]:
    x, w = rows.astype(np.float64), np.diag(weights.astype(np.float64))
    centred = targets - np.average(targets, axis=0, weights=weights)
    return np.asarray(np.linalg.inv(x.T @ w @ x + penalty * np.eye(x.shape[1])) @ x.T @ w @ centred)


def test_dense_rows_are_solved_exactly() -> None:
    rows, targets, weights = problem()
    np.testing.assert_allclose(
        ridge(rows, targets, weights, 2.0), closed_form(rows, targets, weights, 2.0), atol=1e-5
    )


def test_sparse_rows_come_to_the_same_with_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, targets, weights = problem()
    exact = closed_form(rows, targets, weights, 2.0)
    few = ridge(csr_matrix(rows), targets, weights, 2.0)
    monkeypatch.setattr(linear, "_ITERATIONS", 60)
    many = ridge(csr_matrix(rows), targets, weights, 2.0)
    np.testing.assert_allclose(many, exact, atol=1e-5)
    assert np.abs(few - exact).max() < 0.05 * np.abs(exact).max()


def test_a_weight_is_so_many_documents() -> None:
    rows, targets, _ = problem(20)
    twice = np.array([2.0] + [1.0] * 19, dtype=np.float32)
    repeated = np.concatenate([rows[:1], rows]), np.concatenate([targets[:1], targets])
    np.testing.assert_allclose(
        ridge(rows, targets, twice, 1.0), ridge(*repeated, np.ones(21, np.float32), 1.0), atol=1e-5
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_a_documents_own_target_does_not_reach_its_score(sparse: bool) -> None:
    rows, targets, weights = problem()
    seen: Any = csr_matrix(rows) if sparse else rows
    parts = np.arange(80) % 3
    parts[:6] = -1
    before, mean_before = cross_fit([seen], targets, weights, parts, 2.0)
    for row in (6, 7, 8, 40):
        changed = targets.copy()
        changed[row] = [1.0, 0.0, 0.0] if targets[row, 0] < 0.5 else [0.0, 0.0, 1.0]
        after, mean_after = cross_fit(seen, changed, weights, parts, 2.0)
        same_part = parts == parts[row]
        np.testing.assert_array_equal(after[same_part], before[same_part])
        assert np.abs(after[~same_part] - before[~same_part]).max() > 1e-4
        assert np.abs(mean_after - mean_before).max() > 1e-5


def test_documents_whose_label_is_known_teach_everyone() -> None:
    rows, targets, weights = problem()
    parts = np.arange(80) % 3
    parts[:6] = -1
    before, mean = cross_fit(rows, targets, weights, parts, 2.0)
    np.testing.assert_allclose(before[:6], rows[:6] @ mean, atol=1e-5)
    changed = targets.copy()
    changed[0] = np.eye(3, dtype=np.float32)[targets[0].argmin()]
    after, _ = cross_fit(rows, changed, weights, parts, 2.0)
    for part in range(3):
        assert np.abs(after[parts == part] - before[parts == part]).max() > 1e-4


@pytest.mark.parametrize("parts", [[0], [0, 0], [1, 1, 1], [-1, -1], [-1, 0], [2, -1, 2]])
def test_very_few_documents(parts: list[int]) -> None:
    """All in one part, or all known: there is no other document to learn from."""
    n = len(parts)
    rows, targets = np.eye(n, 4, dtype=np.float32), np.eye(n, 2, dtype=np.float32)
    for seen in (rows, csr_matrix(rows)):
        scores, mean = cross_fit([seen], targets, np.ones(n, np.float32), np.array(parts), 2.0)
        assert scores.shape == (n, 2)
        assert np.isfinite(scores).all()
        assert np.isfinite(mean).all()


def test_it_asks_whether_to_go_on() -> None:
    rows, targets, weights = problem(12)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_fit(rows, targets, weights, np.arange(12) % 3, 2.0, stop)
