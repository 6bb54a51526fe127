"""The random numbers of the kernels: splitmix64, whose whole state is one integer.

A kernel adds `STEP` to the state for every number, so its result depends on the seed alone.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled

STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@compiled(inline="always")
def random_below(state, bound):  # type: ignore[no-untyped-def]
    """The state's random number between 0 and bound - 1, from the high 32 bits and without a division."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    z = z ^ (z >> np.uint64(31))
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
