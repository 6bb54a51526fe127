"""Products of sparse and dense matrices, and what is solved with them, on one thread or several."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.runtime.threads import Run, run_serial

FloatArray = npt.NDArray[np.float32]

# Multiplications below which loading compiled loops would take longer than they save.
_WORTH_COMPILING = 100_000_000
# Columns of a dense matrix with which products are fastest.
FAST_WIDTH = 32
# Pieces that a product on several threads is cut into.
_PIECES = 8
# A singular value below this share of the largest one is rounding error.
_NEGLIGIBLE = 1e-6


def is_large(matrix: Any, width: int, passes: int = 1) -> bool:
    """Whether so many products of a sparse matrix with a dense one of this width are worth compiled loops.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> is_large(csr_matrix((3, 3)), 10)
    False
    """
    return bool(matrix.nnz * width * passes > _WORTH_COMPILING)


def product(matrix: Any, dense: FloatArray, run: Run = run_serial, *, large: bool = True) -> FloatArray:
    """A sparse matrix of rows, in float32, times a dense one.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eye = csr_matrix(np.eye(2, dtype=np.float32))
    >>> product(eye, np.ones((2, 3), dtype=np.float32)).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if not large:
        return np.asarray(matrix @ dense, dtype=np.float32)
    from himecat.kernels.sparse_products import csr_product, csr_product_32

    dense = np.ascontiguousarray(dense, dtype=np.float32)
    out = np.empty((matrix.shape[0], dense.shape[1]), dtype=np.float32)
    loop = csr_product_32 if dense.shape[1] == FAST_WIDTH else csr_product

    def rows_from(first: int, last: int) -> Callable[[], None]:
        return lambda: loop(matrix.indptr, matrix.indices, matrix.data, dense, out, first, last)

    if run is run_serial:
        rows_from(0, len(out))()
        return out
    # Pieces with about the same number of entries; a row is never cut.
    ends = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, _PIECES + 1)[1:-1]).tolist()
    bounds = sorted({0, *ends, len(out)})
    for _ in run([rows_from(first, last) for first, last in itertools.pairwise(bounds)]):
        pass
    return out


def truncated_svd(
    matrix: Any, rank: int, *, iterations: int, seed: int, run: Run = run_serial
) -> tuple[FloatArray, FloatArray]:
    """The largest singular values of a sparse matrix and its right singular vectors as rows, by subspace iteration.

    Beyond the rank of the matrix both are 0. The largest entry of every vector is positive.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> diagonal = csr_matrix(np.diag([3.0, 2.0, 1.0]).astype(np.float32))
    >>> values, right = truncated_svd(diagonal, 2, iterations=4, seed=0)
    >>> values.round(3).tolist(), np.abs(right).round(3).tolist()
    ([3.0, 2.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    """
    matrix = matrix.tocsr().astype(np.float32, copy=False)
    width = min(rank + 10, *matrix.shape)
    large = is_large(matrix, width, 2 * iterations + 2)
    transposed = matrix.T.tocsr()
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((matrix.shape[1], width), dtype=np.float32)
    for _ in range(iterations):
        basis = _orthonormal(product(matrix, basis, run, large=large))
        basis = _orthonormal(product(transposed, basis, run, large=large))
    basis = _orthonormal(product(matrix, basis, run, large=large))
    projected = product(transposed, basis, run, large=large).astype(np.float64)
    del transposed, basis
    squares, axes = np.linalg.eigh(projected.T @ projected)
    values = np.sqrt(np.maximum(squares[::-1][:rank], 0.0))
    kept = values > _NEGLIGIBLE * max(float(values[0]), 1e-30)
    right = projected @ (axes[:, ::-1][:, :rank] * np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0))
    return values.astype(np.float32), _fixed_signs(right.T)


def _orthonormal(rows: FloatArray) -> FloatArray:
    """An orthonormal basis of the columns' span; a column that adds nothing to it becomes zero."""
    squares, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    kept = squares > 1e-9 * max(float(squares[-1]), 1e-30)
    scaled = axes * np.where(kept, 1.0 / np.sqrt(np.where(kept, squares, 1.0)), 0.0)
    return rows @ scaled.astype(np.float32)


def _fixed_signs(right: FloatArray) -> FloatArray:
    """Rows whose largest entry is positive: the sign of a singular vector is arbitrary."""
    largest = np.array([np.abs(row).argmax() for row in right], dtype=np.int64)
    signs = np.sign(right[np.arange(len(right)), largest])
    return np.asarray(right * np.where(signs == 0, 1, signs)[:, None], dtype=np.float32)


def conjugate_gradients(
    rows: Any, across: Any, target: FloatArray, penalty: float, *, iterations: int, large: bool = True
) -> FloatArray:
    """A few iterations towards the solution x of (across rows + penalty) x = target, for all columns at once.

    Parameters
    ----------
    rows, across : sparse matrices
        In float32, by rows.
    large : bool
        Whether compiled loops are worth it.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eye = csr_matrix(np.eye(2, dtype=np.float32))
    >>> conjugate_gradients(eye, eye, np.array([[2.0], [4.0]], dtype=np.float32), 1.0, iterations=3).round(3).tolist()
    [[1.0], [2.0]]
    """
    solution, residual, direction = np.zeros_like(target), target.copy(), target.copy()
    square = np.square(residual).sum(axis=0, dtype=np.float64)
    for _ in range(iterations):
        image = product(across, product(rows, direction, large=large), large=large)
        if large:
            from himecat.kernels.sparse_products import add_penalty, next_direction, take_step

            alpha = square / np.maximum(add_penalty(image, direction, np.float32(penalty)), 1e-12)
            smaller = take_step(solution, residual, direction, image, alpha.astype(np.float32))
            next_direction(direction, residual, (smaller / np.maximum(square, 1e-12)).astype(np.float32))
        else:
            image += np.float32(penalty) * direction
            alpha = square / np.maximum((direction * image).sum(axis=0, dtype=np.float64), 1e-12)
            solution += alpha.astype(np.float32) * direction
            residual -= alpha.astype(np.float32) * image
            smaller = np.square(residual).sum(axis=0, dtype=np.float64)
            direction = residual + (smaller / np.maximum(square, 1e-12)).astype(np.float32) * direction
        square = smaller
    return solution
