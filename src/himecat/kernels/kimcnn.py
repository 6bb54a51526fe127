"""The hot loops of the convolutional classifier, on raw arrays only.

Word vectors are frozen, so a convolution over a document is a sum of rows of a table that holds, for each
distinct word, its product with every slice of every filter. The tests compare with the same network built from
`nn.Embedding` and `nn.Conv1d`.

Columns of `table` are ordered by the offset inside the window, then by filter width: with widths 2, 3 and 5
they are [offset 0: 2 3 5][offset 1: 2 3 5][offset 2: 3 5][offset 3: 5][offset 4: 5]. The features of a
document are ordered by width, so the filters still growing at an offset are always the last ones.

The loops run over eight numbers at a time (`simd.py`). Where a length is no multiple of eight, the last eight
overlap those before them: they are computed twice, with the same result. Shorter rows are done one by one.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.simd import SIZE, WIDTH, address_of, broadcast, load, select_greater, store


@compiled()
def first_columns(widths, maps):  # type: ignore[no-untyped-def]
    """For every width and offset inside its window, the table's column of the first filter."""
    columns = np.zeros((widths.shape[0], widths[-1]), np.int64)
    column = 0
    for j in range(widths[-1]):
        for w in range(widths.shape[0]):
            if j < widths[w]:
                columns[w, j] = column
                column += maps
    return columns


@compiled()
def max_over_time(words, offsets, table, widths, maps, features, positions):  # type: ignore[no-untyped-def]
    """For every document and filter, the largest window sum and where it starts.

    A window may run past the end of a document only where the document is shorter than the filter (the
    missing words add nothing); a document without words gets 0 and position -1.
    """
    n_features = widths.shape[0] * maps
    columns = first_columns(widths, maps)
    stride = table.shape[1]
    table_at = address_of(table)
    features_at = address_of(features)
    positions_at = address_of(positions)
    for d in range(offsets.shape[0] - 1):
        start = offsets[d]
        length = offsets[d + 1] - start
        if length == 0:
            features[d, :] = np.float32(0.0)
            positions[d, :] = -1
            continue
        for w in range(widths.shape[0]):
            reach = min(widths[w], length)
            n_windows = length - reach + 1
            first = w * maps
            if maps < WIDTH:
                for m in range(maps):
                    best = np.float32(-np.inf)
                    where = 0
                    for t in range(start, start + n_windows):
                        total = table[words[t], columns[w, 0] + m]
                        for j in range(1, reach):
                            total += table[words[t + j], columns[w, j] + m]
                        if total > best:
                            best = total
                            where = t - start
                    features[d, first + m] = best
                    positions[d, first + m] = where
                continue
            # Three times eight filters together: their sums, maxima and positions fit in the registers.
            for m in range(0, maps, 3 * WIDTH):
                m0 = min(m, maps - WIDTH) * SIZE
                m1 = min(m + WIDTH, maps - WIDTH) * SIZE
                m2 = min(m + 2 * WIDTH, maps - WIDTH) * SIZE
                best0, best1, best2 = broadcast(-np.inf), broadcast(-np.inf), broadcast(-np.inf)
                where0, where1, where2 = broadcast(0), broadcast(0), broadcast(0)
                at0, at1, at2 = table_at + m0, table_at + m1, table_at + m2
                for t in range(n_windows):
                    k = (words[start + t] * stride + columns[w, 0]) * SIZE
                    sum0, sum1, sum2 = load(at0 + k), load(at1 + k), load(at2 + k)
                    for j in range(1, reach):
                        k = (words[start + t + j] * stride + columns[w, j]) * SIZE
                        sum0, sum1, sum2 = sum0 + load(at0 + k), sum1 + load(at1 + k), sum2 + load(at2 + k)
                    here = broadcast(t)
                    where0 = select_greater(sum0, best0, here, where0)
                    where1 = select_greater(sum1, best1, here, where1)
                    where2 = select_greater(sum2, best2, here, where2)
                    best0 = select_greater(sum0, best0, sum0, best0)
                    best1 = select_greater(sum1, best1, sum1, best1)
                    best2 = select_greater(sum2, best2, sum2, best2)
                at = features_at + (d * n_features + first) * SIZE
                store(at + m0, best0)
                store(at + m1, best1)
                store(at + m2, best2)
                at = positions_at + (d * n_features + first) * SIZE
                store(at + m0, where0)
                store(at + m1, where1)
                store(at + m2, where2)


@compiled()
def filter_gradient(words, offsets, positions, gradient, widths, maps, vectors, result):  # type: ignore[no-untyped-def]
    """Gradient of every filter slice: the words its winning windows found there, weighted by the feature's gradient.

    `result` has one row per column of the filter table.
    """
    columns = first_columns(widths, maps)
    n_documents = offsets.shape[0] - 1
    p = vectors.shape[1]
    vectors_at = address_of(vectors)
    result_at = address_of(result)
    weights = np.empty(n_documents, np.float32)
    rows = np.empty(n_documents, np.int64)
    firsts = np.empty(n_documents, np.int64)
    ends = np.empty(n_documents, np.int64)
    for w in range(widths.shape[0]):
        for m in range(maps):
            n = 0
            for d in range(n_documents):
                g = gradient[d, w * maps + m]
                if g != np.float32(0.0) and positions[d, w * maps + m] >= 0:
                    weights[n] = g
                    firsts[n] = offsets[d] + positions[d, w * maps + m]
                    ends[n] = offsets[d + 1]
                    n += 1
            for j in range(widths[w]):
                # Documents shorter than the filter have no word here.
                found = 0
                for i in range(n):
                    if firsts[i] + j < ends[i]:
                        rows[found] = words[firsts[i] + j]
                        weights[found] = weights[i]
                        firsts[found] = firsts[i]
                        ends[found] = ends[i]
                        found += 1
                n = found
                column = columns[w, j] + m
                if p < WIDTH:
                    for k in range(p):
                        total = np.float32(0.0)
                        for i in range(n):
                            total += weights[i] * vectors[rows[i], k]
                        result[column, k] = total
                    continue
                for k in range(0, p, 4 * WIDTH):
                    k0 = min(k, p - WIDTH) * SIZE
                    k1 = min(k + WIDTH, p - WIDTH) * SIZE
                    k2 = min(k + 2 * WIDTH, p - WIDTH) * SIZE
                    k3 = min(k + 3 * WIDTH, p - WIDTH) * SIZE
                    zero = broadcast(0.0)
                    sum0, sum1, sum2, sum3 = zero, zero, zero, zero
                    for i in range(n):
                        weight = broadcast(weights[i])
                        at = vectors_at + rows[i] * p * SIZE
                        sum0 = sum0 + weight * load(at + k0)
                        sum1 = sum1 + weight * load(at + k1)
                        sum2 = sum2 + weight * load(at + k2)
                        sum3 = sum3 + weight * load(at + k3)
                    at = result_at + column * p * SIZE
                    store(at + k0, sum0)
                    store(at + k1, sum1)
                    store(at + k2, sum2)
                    store(at + k3, sum3)


@compiled()
def number_words(values, offsets, chosen, place, local, starts, distinct):  # type: ignore[no-untyped-def]
    """Lay out the chosen documents, their distinct words numbered in the order they are met.

    `local` gets the numbers, `starts` where each document begins, `distinct` the word id of every number.
    `place` is -1 everywhere, before and after. Gives how many numbers there are.
    """
    n = 0
    at = 0
    starts[0] = 0
    for d in range(chosen.shape[0]):
        for i in range(offsets[chosen[d]], offsets[chosen[d] + 1]):
            word = values[i]
            if place[word] < 0:
                place[word] = n
                distinct[n] = word
                n += 1
            local[at] = place[word]
            at += 1
        starts[d + 1] = at
    for i in range(n):
        place[distinct[i]] = -1
    return n
