"""The hot loop of network embedding by negative sampling, on raw arrays only.

`vectors` has rows of a multiple of eight floats.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.simd import SIZE, WIDTH, address_of, load, prefetch, spread, store, total
from himecat.kernels.splitmix import STEP, random_below

# Where the sigmoid is 0 or 1 to float32.
_STEEP = np.float32(16.0)
# Bytes of a line of the cache.
_LINE = 64


@compiled()
def _pull(u, v, moved, size, wanted, rate):  # type: ignore[no-untyped-def]
    """Move row `v` so that the sigmoid of u.v comes nearer to `wanted`; what `u` should move by goes to `moved`."""
    dots = spread(np.float32(0.0))
    for k in range(0, size, WIDTH * SIZE):
        dots = dots + load(u + k) * load(v + k)
    x = min(max(total(dots), -_STEEP), _STEEP)
    step = spread(rate * (wanted - np.float32(1.0) / (np.float32(1.0) + np.exp(-x))))
    for k in range(0, size, WIDTH * SIZE):
        row = load(v + k)
        store(moved + k, load(moved + k) + step * row)
        store(v + k, row + step * load(u + k))


@compiled()
def train_edges(vectors, sources, targets, kinds, tables, gathered, n_negatives, rate, last_rate, seed):  # type: ignore[no-untyped-def]
    """Make one step of gradient ascent for every edge, in order.

    An edge (source, target) raises log s(u.v) + sum over negatives n of log s(-u.n), s the sigmoid; `tables`
    has a row of nodes to draw negatives from for every kind of target. The rate falls linearly. `gathered` is
    room for one row, zeros: the caller's, since an array made here is freed once its address is taken.
    """
    size = vectors.shape[1] * SIZE
    at = address_of(vectors)
    moved = address_of(gathered)
    nothing = spread(np.float32(0.0))
    negatives = np.zeros(n_negatives, np.int64)
    n_table = tables.shape[1]
    state = np.uint64(seed)
    n_edges = sources.shape[0]
    for e in range(n_edges):
        alpha = np.float32(rate + (last_rate - rate) * (e / n_edges))
        u, v, kind = np.int64(sources[e]), np.int64(targets[e]), kinds[e]
        # Rows are asked for before they are needed: a network is larger than the cache.
        for i in range(n_negatives):
            state += STEP
            negatives[i] = tables[kind, random_below(state, n_table)]
            for k in range(0, size, _LINE):
                prefetch(at + negatives[i] * size + k)
        if e + 1 < n_edges:
            for k in range(0, size, _LINE):
                prefetch(at + np.int64(sources[e + 1]) * size + k)
                prefetch(at + np.int64(targets[e + 1]) * size + k)
        _pull(at + u * size, at + v * size, moved, size, np.float32(1.0), alpha)
        for i in range(n_negatives):
            if negatives[i] != v and negatives[i] != u:
                _pull(at + u * size, at + negatives[i] * size, moved, size, np.float32(0.0), alpha)
        for k in range(0, size, WIDTH * SIZE):
            store(at + u * size + k, load(at + u * size + k) + load(moved + k))
            store(moved + k, nothing)
