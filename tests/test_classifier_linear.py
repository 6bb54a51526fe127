"""Linear classifiers against closed forms, and that no document is judged by its own probable label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from himecat.classifier import linear
from himecat.classifier.linear import cross_fit
from himecat.runtime import sparse as products
from himecat.runtime.threads import run_parallel

FloatArray = npt.NDArray[np.float32]


def ridge(rows: Any, targets: Any, weights: Any, penalty: float, groups: Any = ()) -> npt.NDArray[np.float32]:
    """One classifier, trained on all rows: no document is in a fold."""
    none = np.full(rows.shape[0], -1)
    return cross_fit([rows], targets, weights, none, penalty, groups=groups)[0].weights


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
    [(before, mean_before)] = cross_fit([seen], targets, weights, parts, 2.0)
    for row in (6, 7, 8, 40):
        changed = targets.copy()
        changed[row] = [1.0, 0.0, 0.0] if targets[row, 0] < 0.5 else [0.0, 0.0, 1.0]
        [(after, mean_after)] = cross_fit([seen], changed, weights, parts, 2.0)
        same_part = parts == parts[row]
        np.testing.assert_array_equal(after[same_part], before[same_part])
        assert np.abs(after[~same_part] - before[~same_part]).max() > 1e-4
        assert np.abs(mean_after - mean_before).max() > 1e-5


def test_documents_whose_label_is_known_teach_everyone() -> None:
    rows, targets, weights = problem()
    parts = np.arange(80) % 3
    parts[:6] = -1
    [(before, mean)] = cross_fit([rows], targets, weights, parts, 2.0)
    np.testing.assert_allclose(before[:6], rows[:6] @ mean, atol=1e-5)
    changed = targets.copy()
    changed[0] = np.eye(3, dtype=np.float32)[targets[0].argmin()]
    [(after, _)] = cross_fit([rows], changed, weights, parts, 2.0)
    for part in range(3):
        assert np.abs(after[parts == part] - before[parts == part]).max() > 1e-4


@pytest.mark.parametrize("parts", [[0], [0, 0], [1, 1, 1], [-1, -1], [-1, 0], [2, -1, 2]])
def test_very_few_documents(parts: list[int]) -> None:
    """All in one part, or all known: there is no other document to learn from."""
    n = len(parts)
    rows, targets = np.eye(n, 4, dtype=np.float32), np.eye(n, 2, dtype=np.float32)
    for seen in (rows, csr_matrix(rows)):
        [(scores, mean)] = cross_fit([seen], targets, np.ones(n, np.float32), np.array(parts), 2.0)
        assert scores.shape == (n, 2)
        assert np.isfinite(scores).all()
        assert np.isfinite(mean).all()


def test_each_view_is_judged_on_its_own() -> None:
    """Together or one by one, dense or sparse, wide or narrow."""
    rows, targets, weights = problem()
    views = [rows, csr_matrix(rows), csr_matrix(rows[:, :4])]
    parts = np.arange(80) % 3 - 1
    together = cross_fit(views, targets, weights, parts, 2.0)
    assert [mean.shape for _, mean in together] == [(10, 3), (10, 3), (4, 3)]
    for view, (scores, mean) in zip(views, together, strict=True):
        [(alone, mean_alone)] = cross_fit([view], targets, weights, parts, 2.0)
        assert scores.tobytes() == alone.tobytes()
        assert mean.tobytes() == mean_alone.tobytes()
    assert np.abs(together[1][0] - together[2][0]).max() > 1e-3


def test_the_jobs_are_left_to_the_caller() -> None:
    """One for each view and part, in any order and on any thread."""
    rows, targets, weights = problem()
    views, parts = [rows, csr_matrix(rows)], np.arange(80) % 3
    counted: list[int] = []

    def backwards(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        counted.append(len(jobs))
        return [job() for job in reversed(jobs)][::-1]

    expected = cross_fit(views, targets, weights, parts, 2.0)
    for run in (backwards, partial(run_parallel, threads=1), partial(run_parallel, threads=2)):
        found = cross_fit(views, targets, weights, parts, 2.0, run)
        for (scores, mean), (same_scores, same_mean) in zip(found, expected, strict=True):
            assert scores.tobytes() == same_scores.tobytes()
            assert mean.tobytes() == same_mean.tobytes()
    assert counted == [6]


def test_leaves_are_solved_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, weights = problem()
    targets = np.random.default_rng(1).dirichlet(np.ones(8), size=80).astype(np.float32)
    together = ridge(csr_matrix(rows), targets, weights, 2.0)
    for columns in (1, 3, 8):
        monkeypatch.setattr(linear, "FAST_WIDTH", columns)
        np.testing.assert_allclose(ridge(csr_matrix(rows), targets, weights, 2.0), together, atol=1e-5)


def test_compiled_loops_come_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, targets, weights = problem()
    # A column without an entry, as rare metadata values leave them in a part of the documents.
    rows[:, 3] = 0.0
    plain = ridge(csr_matrix(rows), targets, weights, 2.0)
    monkeypatch.setattr(products, "_WORTH_COMPILING", -1)
    np.testing.assert_allclose(ridge(csr_matrix(rows), targets, weights, 2.0), plain, atol=1e-5)
    assert not plain[3].any()
    assert np.abs(plain).max() > 0.01


@pytest.mark.parametrize("leaves", [1, 32, 40])
def test_any_number_of_leaves_is_solved_by_the_compiled_loops(
    monkeypatch: pytest.MonkeyPatch, leaves: int
) -> None:
    rows, _, weights = problem()
    targets = np.random.default_rng(1).dirichlet(np.ones(leaves + 1), size=80).astype(np.float32)[:, 1:]
    plain = ridge(csr_matrix(rows), targets, weights, 2.0)
    monkeypatch.setattr(products, "_WORTH_COMPILING", -1)
    found = ridge(csr_matrix(rows), targets, weights, 2.0)
    assert found.shape == plain.shape == (rows.shape[1], leaves)
    np.testing.assert_allclose(found, plain, atol=1e-5)


# -- very many categories, told apart group by group -----------------------------------------------------


def grouped_problem(groups: Sequence[npt.NDArray[np.int64]], n: int = 400) -> tuple[Any, FloatArray, Any]:
    """Documents with words of their group and of their category, and noise; a category each."""
    rng = np.random.default_rng(3)
    n_categories = sum(len(group) for group in groups)
    group_of = np.empty(n_categories, dtype=int)
    for number, group in enumerate(groups):
        group_of[group] = number
    truth = rng.integers(n_categories, size=n)
    rows = (rng.random((n, 20 + n_categories + len(groups))) < 0.1).astype(np.float32)
    rows[np.arange(n), 20 + truth] = 1.0
    rows[np.arange(n), 20 + n_categories + group_of[truth]] = 1.0
    return csr_matrix(rows), np.eye(n_categories, dtype=np.float32)[truth], truth


NEIGHBOURS = [np.arange(0, 4), np.arange(4, 9), np.arange(9, 10), np.arange(10, 12)]
SCATTERED = [np.array([0, 3, 7]), np.array([1, 2]), np.array([4, 5, 6, 8])]


@pytest.mark.parametrize("groups", [NEIGHBOURS, SCATTERED], ids=["neighbours", "scattered"])
@pytest.mark.parametrize("compile_from", [-1, 10**12], ids=["compiled", "plain"])
def test_groups_are_told_apart_first_and_then_their_categories(
    groups: Sequence[npt.NDArray[np.int64]], compile_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_WORTH_COMPILING", compile_from)
    rows, targets, truth = grouped_problem(groups)
    weights = np.ones(len(truth), np.float32)
    found = ridge(rows, targets, weights, 1.0, groups)
    assert ((rows @ found).argmax(axis=1) == truth).mean() > 0.9
    # By hand: the weights of the group, and of the category among the documents of the group alone.
    for group in groups:
        of_group = targets[:, group].sum(axis=1)
        expected = np.repeat(ridge(rows, of_group[:, None], weights, 1.0), len(group), axis=1)
        inside = np.flatnonzero(of_group)
        inner = ridge(rows[inside], targets[inside][:, group], weights[inside], 1.0)
        expected += inner if len(group) > 1 else expected
        np.testing.assert_allclose(found[:, group], expected, atol=1e-5)


def test_categories_do_not_care_how_many_groups_are_solved_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, targets, truth = grouped_problem(NEIGHBOURS)
    weights = np.ones(len(truth), np.float32)
    together = ridge(rows, targets, weights, 1.0, NEIGHBOURS)
    monkeypatch.setattr(linear, "FAST_WIDTH", 3)
    np.testing.assert_allclose(ridge(rows, targets, weights, 1.0, NEIGHBOURS), together, atol=1e-5)


def test_a_group_without_a_document_has_weights_without_surprise() -> None:
    rows, targets, truth = grouped_problem(NEIGHBOURS)
    targets[:, NEIGHBOURS[1]] = 0.0
    found = ridge(rows, targets, np.ones(len(truth), np.float32), 1.0, NEIGHBOURS)
    assert np.abs(found[:, NEIGHBOURS[1]]).max() < 1e-6
    assert np.isfinite(found).all()


@pytest.mark.parametrize("groups", [(), NEIGHBOURS], ids=["flat", "groups"])
def test_weights_are_the_mean_of_the_classifiers_and_left_out_where_nobody_asks(
    groups: Sequence[npt.NDArray[np.int64]],
) -> None:
    rows, targets, truth = grouped_problem(NEIGHBOURS)
    weights, parts = np.ones(len(truth), np.float32), np.arange(len(truth)) % 3 - (np.arange(len(truth)) < 30)
    views = [rows, rows.toarray()]
    with_weights = cross_fit(views, targets, weights, parts, 1.0, groups=groups)
    without = cross_fit(views, targets, weights, parts, 1.0, groups=groups, want_weights=False)
    for view, one, other in zip(views, with_weights, without, strict=True):
        assert one.scores.tobytes() == other.scores.tobytes()
        assert other.weights.shape == (0, 12)
        given = groups if view is rows else ()
        expected = np.mean(
            [
                ridge(view[parts != part], targets[parts != part], weights[parts != part], 1.0, given)
                for part in range(3)
            ],
            axis=0,
        )
        np.testing.assert_allclose(one.weights, expected, atol=1e-5)
