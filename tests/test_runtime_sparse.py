"""Products of matrices, compiled and plain, and what is solved with them against the same thing done densely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix, random

from himecat.kernels import sparse_products as _products
from himecat.runtime import sparse as products
from himecat.runtime.sparse import conjugate_gradients, is_large, product, truncated_svd
from himecat.runtime.threads import one_blas_thread, run_parallel

FloatArray = npt.NDArray[np.float32]


def sparse(shape: tuple[int, int], density: float = 0.3, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return csr_matrix((rng.normal(size=shape) * (rng.random(shape) < density)).astype(np.float32))


def dense(shape: tuple[int, int], seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# -- products ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(40, 30, 7), (1, 1, 1), (5, 30, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0)]
)
@pytest.mark.parametrize("pieces", [1, 2, 8])
def test_compiled_and_plain_products_agree(
    rows: int, inner: int, columns: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_PIECES", pieces)
    matrix, other = sparse((rows, inner)), dense((inner, columns))
    expected = matrix.toarray() @ other
    for large in (True, False):
        found = product(matrix, other, large=large)
        assert found.shape == (rows, columns)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_row_without_entries_is_zero() -> None:
    """The result is written over memory that holds anything."""
    matrix = csr_matrix(np.array([[0, 0], [1, 2], [0, 0]], dtype=np.float32))
    for _ in range(20):
        np.full((3, 4), np.nan, dtype=np.float32)
        found = product(matrix, np.ones((2, 4), dtype=np.float32))
        assert found.tolist() == [[0.0] * 4, [3.0] * 4, [0.0] * 4]


def test_any_layout_of_the_dense_matrix_will_do() -> None:
    matrix, other = sparse((12, 9)), dense((9, 8))
    expected = product(matrix, other)
    turned = np.asfortranarray(other)
    every_second = np.repeat(other, 2, axis=1)[:, ::2]
    for same in (turned, every_second, other.astype(np.float64)):
        assert product(matrix, same).tobytes() == expected.tobytes()


@pytest.mark.parametrize("large", [True, False])
def test_products_are_the_same_on_one_thread_and_two(large: bool) -> None:
    matrix, other = sparse((100, 60)), dense((60, 11))
    one, two = (product(matrix, other, partial(run_parallel, threads=n), large=large) for n in (1, 2))
    assert one.tobytes() == two.tobytes() == product(matrix, other, large=large).tobytes()


@pytest.mark.parametrize(
    "entries",
    [[5] * 40, [0] * 20 + [5] * 20, [5] * 20 + [0] * 20, [0] * 39 + [30], [30] + [1] * 39, [0] * 40, [3]],
    ids=["even", "empty first", "empty last", "all in the last", "most in the first", "none", "one row"],
)
def test_every_row_is_in_one_piece(entries: list[int]) -> None:
    """However the entries lie, and in whatever order the pieces are done."""
    matrix = csr_matrix(
        (
            np.ones(sum(entries), dtype=np.float32),
            np.concatenate([np.arange(count) for count in entries]).astype(np.int32),
            np.concatenate([[0], np.cumsum(entries)]),
        ),
        shape=(len(entries), 30),
    )
    counted: list[int] = []

    def backwards(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        counted.append(len(jobs))
        return [job() for job in reversed(jobs)]

    found = product(matrix, np.ones((30, 2), dtype=np.float32), backwards)
    assert found.tolist() == [[count, count] for count in entries]
    assert len(counted) == 1
    assert 1 <= counted[0] <= 8


def test_work_is_dealt_out_evenly() -> None:
    sizes: list[int] = []
    matrix = csr_matrix(np.tril(np.ones((200, 200), dtype=np.float32)))
    times = _products.csr_product

    def counted(*arguments: Any) -> None:
        first, last = arguments[-2:]
        sizes.append(int(matrix.indptr[last] - matrix.indptr[first]))
        times(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_products, "csr_product", counted)
        product(matrix, np.ones((200, 2), dtype=np.float32), lambda jobs: [job() for job in jobs])
    assert len(sizes) == 8
    assert sum(sizes) == matrix.nnz
    assert max(sizes) < 1.2 * min(sizes)


def test_the_loop_for_32_columns_adds_up_in_the_same_order() -> None:
    rng = np.random.default_rng(0)
    matrix = random(50, 40, 0.2, "csr", np.float32, rng)
    matrix.data[:] = rng.normal(size=matrix.nnz)
    dense = rng.normal(size=(40, products.FAST_WIDTH)).astype(np.float32)
    parts = [product(matrix, np.ascontiguousarray(dense[:, half])) for half in (slice(0, 16), slice(16, 32))]
    whole = product(matrix, dense)
    assert whole.tobytes() == np.hstack(parts).tobytes()
    np.testing.assert_allclose(whole, matrix @ dense, atol=1e-5)


def test_size_is_entries_times_width_times_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = csr_matrix(np.eye(10, dtype=np.float32))
    monkeypatch.setattr(products, "_WORTH_COMPILING", 600)
    assert not is_large(matrix, 20, 3)
    assert is_large(matrix, 20, 4)
    assert is_large(matrix, 61)


# -- conjugate gradients -------------------------------------------------------------------------------


def system(n: int = 50, p: int = 12, columns: int = 4) -> tuple[Any, Any, FloatArray]:
    rows = sparse((n, p))
    weights = np.random.default_rng(2).uniform(0.5, 3.0, size=(n, 1)).astype(np.float32)
    across = csr_matrix(rows.multiply(weights).T, dtype=np.float32)
    return rows, across, dense((p, columns))


@pytest.mark.parametrize("iterations", [0, 1, 2, 8, 40])
def test_compiled_and_plain_steps_agree(iterations: int) -> None:
    arguments = system()
    before = arguments[2].copy()
    found, plain = (
        conjugate_gradients(*arguments, 2.0, iterations=iterations, large=large) for large in (True, False)
    )
    np.testing.assert_allclose(found, plain, atol=1e-5)
    assert found.dtype == plain.dtype == np.float32
    # Steps are taken in place, but not in what the caller gave.
    np.testing.assert_array_equal(arguments[2], before)


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("penalty", [0.5, 20.0])
def test_many_steps_come_to_the_solution(penalty: float, large: bool) -> None:
    rows, across, target = system()
    whole = across.toarray().astype(np.float64) @ rows.toarray() + penalty * np.eye(12)
    found = conjugate_gradients(rows, across, target, penalty, iterations=60, large=large)
    np.testing.assert_allclose(found, np.linalg.solve(whole, target), atol=1e-4)


@pytest.mark.parametrize("large", [True, False])
def test_columns_do_not_touch_each_other(large: bool) -> None:
    """A column of zeros is solved at once, and does not spoil those beside it."""
    rows, across, target = system()
    target[:, 1] = 0.0
    found = conjugate_gradients(rows, across, target, 2.0, iterations=60, large=large)
    assert np.isfinite(found).all()
    assert not found[:, 1].any()
    alone = conjugate_gradients(
        rows, across, np.ascontiguousarray(target[:, 2:3]), 2.0, iterations=60, large=large
    )
    np.testing.assert_allclose(found[:, 2:3], alone, atol=1e-5)


# -- the spectrum --------------------------------------------------------------------------------------


def low_rank(rank: int, shape: tuple[int, int], seed: int = 0) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])))


def assert_spectrum(matrix: npt.NDArray[np.float64], rank: int, **options: Any) -> None:
    """As numpy's; where strengths are equal, directions are free but at right angles; where nought, there are none."""
    given = matrix.astype(np.float32)
    values, right = truncated_svd(csr_matrix(given), rank, iterations=40, seed=0, **options)
    expected = np.linalg.svd(given.astype(np.float64), compute_uv=False)
    kept = min(rank, *matrix.shape)
    assert values.shape == (kept,)
    assert right.shape == (kept, matrix.shape[1])
    assert values.dtype == right.dtype == np.float32
    size = max(1.0, float(expected[0]))
    np.testing.assert_allclose(values, expected[:kept], atol=1e-5 * size)
    there = right.any(axis=1)
    assert there[values > 1e-5 * size].all()
    np.testing.assert_allclose(right @ right.T, np.diag(there.astype(float)), atol=1e-5)
    # What the matrix does to each direction is as strong as it is said to be.
    np.testing.assert_allclose(np.linalg.norm(given @ right.T, axis=0), values, atol=1e-4 * size)
    assert (right[np.arange(kept), np.abs(right).argmax(axis=1)] > 0)[there].all()


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (12, 200)])
@pytest.mark.parametrize("rank", [1, 5, 30])
def test_it_is_numpys(shape: tuple[int, int], rank: int) -> None:
    assert_spectrum(sparse(shape).toarray().astype(np.float64), rank)


def test_directions_are_numpys_where_they_stand_apart() -> None:
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 6)))[0] for n in (50, 30))
    matrix = csr_matrix((left * [9.0, 7, 5, 3, 2, 1] @ right.T).astype(np.float32))
    values, found = truncated_svd(matrix, 4, iterations=10, seed=3)
    np.testing.assert_allclose(values, [9, 7, 5, 3], rtol=1e-5)
    np.testing.assert_allclose(np.abs((found.T * right[:, :4]).sum(axis=0)), 1.0, atol=1e-5)


@pytest.mark.parametrize("true_rank", [1, 2, 5, 12])
def test_rank_deficient_matrices(true_rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The subspace is wider than the matrix's: what is left of it must not pass for a direction."""
    matrix = low_rank(true_rank, (60, 40))
    assert_spectrum(matrix, 20)
    monkeypatch.setattr(products, "_WORTH_COMPILING", -1)
    assert_spectrum(matrix, 20)


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[2.0]]),
        np.array([[0.0]]),
        np.array([[3.0, 4.0]]),
        np.array([[3.0], [4.0]]),
        np.eye(2),
        np.ones((2, 3)),
        np.zeros((4, 5)),
        np.diag([1.0, 1.0, 0.0]),
        np.ones((50, 40)),
    ],
    ids=["one", "nought", "row", "column", "eye", "ones", "zeros", "two of three", "many ones"],
)
@pytest.mark.parametrize("rank", [1, 2, 10])
def test_tiny_and_degenerate_matrices(matrix: npt.NDArray[np.float64], rank: int) -> None:
    assert_spectrum(matrix, rank)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_it_does_not_depend_on_the_unit(size: float) -> None:
    matrix = sparse((30, 20))
    values, right = truncated_svd(matrix, 3, iterations=20, seed=0)
    scaled, same = truncated_svd(matrix * np.float32(size), 3, iterations=20, seed=0)
    np.testing.assert_allclose(scaled, values * size, rtol=1e-4)
    np.testing.assert_allclose(same, right, atol=1e-3)


@pytest.mark.parametrize("threshold", [-1, 100_000_000])
def test_the_spectrum_is_the_same_on_one_thread_and_two(
    threshold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_WORTH_COMPILING", threshold)
    matrix = sparse((80, 50))
    with one_blas_thread():
        (values, right), (same_values, same_right) = (
            truncated_svd(matrix, 6, iterations=3, seed=1, run=partial(run_parallel, threads=threads))
            for threads in (1, 2)
        )
    assert values.tobytes() == same_values.tobytes()
    assert right.tobytes() == same_right.tobytes()


def test_a_compiled_spectrum_is_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = sparse((80, 50))
    values, right = truncated_svd(matrix, 3, iterations=20, seed=1)
    called: list[int] = []
    times = _products.csr_product
    monkeypatch.setattr(products, "_WORTH_COMPILING", -1)
    monkeypatch.setattr(_products, "csr_product", lambda *arguments: (called.append(1), times(*arguments)))
    same_values, same_right = truncated_svd(matrix, 3, iterations=20, seed=1)
    np.testing.assert_allclose(same_values, values, rtol=1e-5)
    np.testing.assert_allclose(same_right, right, atol=1e-3)
    assert called
