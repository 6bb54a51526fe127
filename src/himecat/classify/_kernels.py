"""The hot loops of the convolutional classifier, on raw arrays only.

Word vectors are frozen, so a convolution over a document is a sum of rows of a table that holds, for each
distinct word, its product with every slice of every filter. `_plain.py` has the same network built from
`nn.Embedding` and `nn.Conv1d`, and the tests compare both.

Columns of `table` are ordered by the offset inside the window, then by filter width: with widths 2, 3 and 5
they are [offset 0: 2 3 5][offset 1: 2 3 5][offset 2: 3 5][offset 3: 5][offset 4: 5]. The features of a
document are ordered by width, so the filters still growing at an offset are always the last ones.

The loops run over eight numbers at a time (`_lanes.py`). Where a length is no multiple of eight, the last
eight overlap those before them: they are computed twice, with the same result. What is shorter than eight is
done one by one.
"""

from __future__ import annotations

import numpy as np

from himecat.classify._lanes import LANES, add, add_scaled, floats, ints, larger, load, store, where_larger
from himecat.compiled import compiled


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
    flat = table.reshape(-1)
    stride = table.shape[1]
    flat_features = features.reshape(-1)
    flat_positions = positions.reshape(-1)
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
            result = d * n_features + w * maps
            if maps < LANES:
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
                    flat_features[result + m] = best
                    flat_positions[result + m] = where
                continue
            # Three times eight filters together: their sums, maxima and positions fit in the registers.
            for m in range(0, maps, 3 * LANES):
                m0 = min(m, maps - LANES)
                m1 = min(m + LANES, maps - LANES)
                m2 = min(m + 2 * LANES, maps - LANES)
                best0, best1, best2 = floats(-np.inf), floats(-np.inf), floats(-np.inf)
                where0, where1, where2 = ints(0), ints(0), ints(0)
                for t in range(n_windows):
                    at = words[start + t] * stride + columns[w, 0]
                    sum0, sum1, sum2 = load(flat, at + m0), load(flat, at + m1), load(flat, at + m2)
                    for j in range(1, reach):
                        at = words[start + t + j] * stride + columns[w, j]
                        sum0 = add(sum0, load(flat, at + m0))
                        sum1 = add(sum1, load(flat, at + m1))
                        sum2 = add(sum2, load(flat, at + m2))
                    where0 = where_larger(sum0, best0, t, where0)
                    where1 = where_larger(sum1, best1, t, where1)
                    where2 = where_larger(sum2, best2, t, where2)
                    best0, best1, best2 = larger(sum0, best0), larger(sum1, best1), larger(sum2, best2)
                store(flat_features, result + m0, best0)
                store(flat_features, result + m1, best1)
                store(flat_features, result + m2, best2)
                store(flat_positions, result + m0, where0)
                store(flat_positions, result + m1, where1)
                store(flat_positions, result + m2, where2)


@compiled()
def filter_gradient(words, offsets, positions, gradient, widths, maps, vectors, result):  # type: ignore[no-untyped-def]
    """Gradient of every filter slice: the words its winning windows found there, weighted by the feature's gradient.

    `result` has one row per column of the filter table.
    """
    columns = first_columns(widths, maps)
    n_documents = offsets.shape[0] - 1
    p = vectors.shape[1]
    flat = vectors.reshape(-1)
    flat_result = result.reshape(-1)
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
                        rows[found] = words[firsts[i] + j] * p
                        weights[found] = weights[i]
                        firsts[found] = firsts[i]
                        ends[found] = ends[i]
                        found += 1
                n = found
                column = columns[w, j] + m
                at = column * p
                if p < LANES:
                    for k in range(p):
                        total = np.float32(0.0)
                        for i in range(n):
                            total += weights[i] * flat[rows[i] + k]
                        result[column, k] = total
                    continue
                for k in range(0, p, 4 * LANES):
                    k0 = min(k, p - LANES)
                    k1 = min(k + LANES, p - LANES)
                    k2 = min(k + 2 * LANES, p - LANES)
                    k3 = min(k + 3 * LANES, p - LANES)
                    sum0, sum1, sum2, sum3 = floats(0.0), floats(0.0), floats(0.0), floats(0.0)
                    for i in range(n):
                        weight = floats(weights[i])
                        sum0 = add_scaled(sum0, weight, load(flat, rows[i] + k0))
                        sum1 = add_scaled(sum1, weight, load(flat, rows[i] + k1))
                        sum2 = add_scaled(sum2, weight, load(flat, rows[i] + k2))
                        sum3 = add_scaled(sum3, weight, load(flat, rows[i] + k3))
                    store(flat_result, at + k0, sum0)
                    store(flat_result, at + k1, sum1)
                    store(flat_result, at + k2, sum2)
                    store(flat_result, at + k3, sum3)


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
