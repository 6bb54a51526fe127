"""Compiled loops over sparse matrices: products with dense ones, and conjugate gradients in place.

Every row of a result is summed up by one thread in one order, so the result is the same for any number of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.simd import SIZE, WIDTH, address_of, broadcast, load, store

# A product may be fused with the sum it goes into.
_FUSED = {"contract", "nsz"}
# Bytes of eight numbers, and of a row of 32.
_EIGHT = WIDTH * SIZE
_ROW = 4 * _EIGHT


@compiled(fastmath=_FUSED)
def csr_product(
    indptr: Any, indices: Any, data: Any, dense: Any, out: Any, first: int, last: int
) -> None:  # pragma: no cover
    """Rows `first` to `last` of a sparse matrix times a dense one."""
    for row in range(first, last):
        target = out[row]
        target[:] = 0.0
        for place in range(indptr[row], indptr[row + 1]):
            value, source = data[place], dense[indices[place]]
            for column in range(len(target)):
                target[column] += value * source[column]


@compiled()
def csr_product_32(
    indptr: Any, indices: Any, data: Any, dense: Any, out: Any, first: int, last: int
) -> None:  # pragma: no cover
    """What `csr_product` gives for a dense matrix of 32 columns: the sums stay in registers until a row is done."""
    source, target = address_of(dense), address_of(out)
    for row in range(first, last):
        zero = broadcast(np.float32(0.0))
        sum_1, sum_2, sum_3, sum_4 = zero, zero, zero, zero
        for place in range(indptr[row], indptr[row + 1]):
            value = broadcast(data[place])
            at = source + np.int64(indices[place]) * _ROW
            sum_1 = sum_1 + value * load(at)
            sum_2 = sum_2 + value * load(at + _EIGHT)
            sum_3 = sum_3 + value * load(at + 2 * _EIGHT)
            sum_4 = sum_4 + value * load(at + 3 * _EIGHT)
        at = target + np.int64(row) * _ROW
        store(at, sum_1)
        store(at + _EIGHT, sum_2)
        store(at + 2 * _EIGHT, sum_3)
        store(at + 3 * _EIGHT, sum_4)


@compiled(fastmath=_FUSED)
def take_step(
    solution: Any, residual: Any, direction: Any, image: Any, alpha: Any
) -> Any:  # pragma: no cover
    """Step by `alpha` along the direction in each column; returns the squared lengths of the new residuals."""
    squares = np.zeros(solution.shape[1], dtype=np.float64)
    for row in range(solution.shape[0]):
        x, r, d, a = solution[row], residual[row], direction[row], image[row]
        for column in range(len(squares)):
            x[column] += alpha[column] * d[column]
            r[column] -= alpha[column] * a[column]
        for column in range(len(squares)):
            squares[column] += r[column] * r[column]
    return squares


@compiled(fastmath=_FUSED)
def add_penalty(image: Any, direction: Any, penalty: Any) -> Any:  # pragma: no cover
    """Add the penalty's part to the image of a direction; returns their products by column."""
    sums = np.zeros(direction.shape[1], dtype=np.float64)
    for row in range(direction.shape[0]):
        a, d = image[row], direction[row]
        for column in range(len(sums)):
            a[column] += penalty * d[column]
        for column in range(len(sums)):
            sums[column] += a[column] * d[column]
    return sums


@compiled(fastmath=_FUSED)
def next_direction(direction: Any, residual: Any, beta: Any) -> None:  # pragma: no cover
    """The next conjugate direction: the residual and `beta` times the last direction."""
    for row in range(direction.shape[0]):
        d, r = direction[row], residual[row]
        for column in range(len(d)):
            d[column] = r[column] + beta[column] * d[column]
