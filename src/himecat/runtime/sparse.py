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
_PIECES = 8
# A direction this much weaker than the strongest is what rounding left.
_NO_STRENGTH = 1e-6


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
    from himecat.kernels.sparse_products import times, times_32

    dense = np.ascontiguousarray(dense, dtype=np.float32)
    out = np.empty((matrix.shape[0], dense.shape[1]), dtype=np.float32)
    loop = times_32 if dense.shape[1] == FAST_WIDTH else times

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
    """The strongest singular values of a sparse matrix, and its right singular vectors as rows; 0 where there is none.

    A random subspace is turned towards the strongest directions by `iterations` rounds of products with the
    matrix and its transpose.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> values, right = truncated_svd(csr_matrix(np.diag([3.0, 2.0, 1.0]).astype(np.float32)), 2, iterations=4, seed=0)
    >>> values.round(3).tolist(), np.abs(right).round(3).tolist()
    ([3.0, 2.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    """
    matrix = matrix.tocsr().astype(np.float32, copy=False)
    width = min(rank + 10, *matrix.shape)
    large = is_large(matrix, width, 2 * iterations + 2)
    back = matrix.T.tocsr()
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((matrix.shape[1], width), dtype=np.float32)
    for _ in range(iterations):
        basis = _orthogonal(product(matrix, basis, run, large=large))
        basis = _orthogonal(product(back, basis, run, large=large))
    basis = _orthogonal(product(matrix, basis, run, large=large))
    small = product(back, basis, run, large=large).astype(np.float64)
    squares, axes = np.linalg.eigh(small.T @ small)
    values = np.sqrt(np.maximum(squares[::-1][:rank], 0.0))
    # A direction without strength stays zero.
    there = values > _NO_STRENGTH * max(float(values[0]), 1e-30)
    right = small @ (axes[:, ::-1][:, :rank] * np.where(there, 1.0 / np.where(there, values, 1.0), 0.0))
    return values.astype(np.float32), _fixed_signs(right.T)


def _orthogonal(rows: FloatArray) -> FloatArray:
    """Columns that span the same space at right angles; a column that adds nothing becomes zero."""
    sizes, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    kept = sizes > 1e-9 * max(float(sizes[-1]), 1e-30)
    scaled = axes * np.where(kept, 1.0 / np.sqrt(np.where(kept, sizes, 1.0)), 0.0)
    return rows @ scaled.astype(np.float32)


def _fixed_signs(right: FloatArray) -> FloatArray:
    """Vectors whose largest entry is positive: nothing else tells a direction from its opposite."""
    largest = np.abs(right).argmax(axis=1)
    signs = np.sign(right[np.arange(len(right)), largest])
    return np.asarray(right * np.where(signs == 0, 1, signs)[:, None], dtype=np.float32)


def conjugate_gradients(
    rows: Any, across: Any, target: FloatArray, penalty: float, *, iterations: int, large: bool = True
) -> FloatArray:
    """A few steps towards the solution x of (across rows + penalty) x = target, for all columns at once.

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
    found, left, step = np.zeros_like(target), target.copy(), target.copy()
    size = np.square(left).sum(axis=0, dtype=np.float64)
    for _ in range(iterations):
        image = product(across, product(rows, step, large=large), large=large)
        if large:
            from himecat.kernels.sparse_products import finish_image, move, turn

            length = size / np.maximum(finish_image(image, step, np.float32(penalty)), 1e-12)
            smaller = move(found, left, step, image, length.astype(np.float32))
            turn(step, left, (smaller / np.maximum(size, 1e-12)).astype(np.float32))
        else:
            image += np.float32(penalty) * step
            length = size / np.maximum((step * image).sum(axis=0, dtype=np.float64), 1e-12)
            found += length.astype(np.float32) * step
            left -= length.astype(np.float32) * image
            smaller = np.square(left).sum(axis=0, dtype=np.float64)
            step = left + (smaller / np.maximum(size, 1e-12)).astype(np.float32) * step
        size = smaller
    return found
