"""The hot loop of network embedding by negative sampling, on raw arrays only.

`vectors` has rows of a multiple of eight floats.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.simd import SIZE, WIDTH, address_of, broadcast, load, prefetch, store, sum_lanes
from himecat.kernels.splitmix import STEP, random_below

# Beyond this the sigmoid is 0 or 1 in float32.
_SATURATED = np.float32(16.0)
# Bytes of a cache line.
_LINE = 64


@compiled()
def _update_pair(u, v, gradient, size, target, rate):  # type: ignore[no-untyped-def]
    """One step of row `v` for the logistic loss of u.v with label `target`; the step of `u` is added to `gradient`."""
    dots = broadcast(np.float32(0.0))
    for k in range(0, size, WIDTH * SIZE):
        dots = dots + load(u + k) * load(v + k)
    x = min(max(sum_lanes(dots), -_SATURATED), _SATURATED)
    step = broadcast(rate * (target - np.float32(1.0) / (np.float32(1.0) + np.exp(-x))))
    for k in range(0, size, WIDTH * SIZE):
        row = load(v + k)
        store(gradient + k, load(gradient + k) + step * row)
        store(v + k, row + step * load(u + k))


@compiled()
def train_edges(vectors, sources, targets, kinds, tables, room, n_negatives, rate, last_rate, seed):  # type: ignore[no-untyped-def]
    """Make one step of gradient ascent for every edge, in order.

    An edge (source, target) raises log s(u.v) + sum over negatives n of log s(-u.n), s the sigmoid; `tables`
    has a row of nodes to draw negatives from for every kind of target. The rate falls linearly. `room` is one
    row of zeros to work in: the caller's, since an array made here is freed once its address is taken.
    """
    size = vectors.shape[1] * SIZE
    at = address_of(vectors)
    gradient = address_of(room)
    zero = broadcast(np.float32(0.0))
    negatives = np.zeros(n_negatives, np.int64)
    n_table = tables.shape[1]
    state = np.uint64(seed)
    n_edges = sources.shape[0]
    for e in range(n_edges):
        alpha = np.float32(rate + (last_rate - rate) * (e / n_edges))
        u, v, kind = np.int64(sources[e]), np.int64(targets[e]), kinds[e]
        # Rows are prefetched: a network is larger than the cache.
        for i in range(n_negatives):
            state += STEP
            negatives[i] = tables[kind, random_below(state, n_table)]
            for k in range(0, size, _LINE):
                prefetch(at + negatives[i] * size + k)
        if e + 1 < n_edges:
            for k in range(0, size, _LINE):
                prefetch(at + np.int64(sources[e + 1]) * size + k)
                prefetch(at + np.int64(targets[e + 1]) * size + k)
        _update_pair(at + u * size, at + v * size, gradient, size, np.float32(1.0), alpha)
        for i in range(n_negatives):
            if negatives[i] != v and negatives[i] != u:
                _update_pair(at + u * size, at + negatives[i] * size, gradient, size, np.float32(0.0), alpha)
        for k in range(0, size, WIDTH * SIZE):
            store(at + u * size + k, load(at + u * size + k) + load(gradient + k))
            store(gradient + k, zero)
