"""A compiled loop that finds the largest values of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from himecat.kernels.compiled import compiled


@compiled()
def largest_below(values: Any, bound: float, places: Any, found: Any) -> None:  # pragma: no cover
    """The largest values of each row, largest first; those above `bound` count as -1, and of equal ones the first wins.

    Their number is that of the columns of `places` and `found`, which receive them.
    """
    count = places.shape[1]
    for row in range(values.shape[0]):
        at, best = places[row], found[row]
        best[:] = -np.inf
        for column in range(values.shape[1]):
            value = values[row, column]
            if value > bound:
                value = np.float32(-1.0)
            if value > best[count - 1]:
                place = count - 1
                while place > 0 and value > best[place - 1]:
                    best[place], at[place] = best[place - 1], at[place - 1]
                    place -= 1
                best[place], at[place] = value, column
