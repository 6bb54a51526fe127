"""Compiled loops over sparse matrices: products with dense ones, and conjugate gradients in place.

Every row of a result is summed up by one thread in one order, so the result is the same for any number of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.simd import SIZE, WIDTH, address_of, load, spread, store

# A product may be fused with the sum it goes into.
_FUSED = {"contract", "nsz"}
# Bytes of eight numbers, and of a row of 32.
_EIGHT = WIDTH * SIZE
_ROW = 4 * _EIGHT


@compiled(fastmath=_FUSED)
def times(
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
def times_32(
    indptr: Any, indices: Any, data: Any, dense: Any, out: Any, first: int, last: int
) -> None:  # pragma: no cover
    """What `times` gives for a dense matrix of 32 columns: the sums stay in registers until a row is done."""
    source, target = address_of(dense), address_of(out)
    for row in range(first, last):
        zero = spread(np.float32(0.0))
        sum_1, sum_2, sum_3, sum_4 = zero, zero, zero, zero
        for place in range(indptr[row], indptr[row + 1]):
            value = spread(data[place])
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
def move(found: Any, left: Any, step: Any, image: Any, length: Any) -> Any:  # pragma: no cover
    """Go `length` along the step in each column; returns the squared sizes of what is left."""
    sizes = np.zeros(found.shape[1], dtype=np.float64)
    for row in range(found.shape[0]):
        there, rest, way, seen = found[row], left[row], step[row], image[row]
        for column in range(len(sizes)):
            there[column] += length[column] * way[column]
            rest[column] -= length[column] * seen[column]
        for column in range(len(sizes)):
            sizes[column] += rest[column] * rest[column]
    return sizes


@compiled(fastmath=_FUSED)
def finish_image(image: Any, step: Any, penalty: Any) -> Any:  # pragma: no cover
    """Add the penalty's part to the image of a step; returns the products of step and image by column."""
    sums = np.zeros(step.shape[1], dtype=np.float64)
    for row in range(step.shape[0]):
        seen, way = image[row], step[row]
        for column in range(len(sums)):
            seen[column] += penalty * way[column]
        for column in range(len(sums)):
            sums[column] += seen[column] * way[column]
    return sums


@compiled(fastmath=_FUSED)
def turn(step: Any, left: Any, share: Any) -> None:  # pragma: no cover
    """The next step: what is left, and a share of the last step."""
    for row in range(step.shape[0]):
        way, rest = step[row], left[row]
        for column in range(len(way)):
            way[column] = rest[column] + share[column] * way[column]
