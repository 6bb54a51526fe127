"""The hot loops of joint representation learning, on raw arrays only.

The tests hold the plain NumPy twin of every function here and run both on the same input.

Rows of `anchors` are the labels, then the metadata values, then the words: everything that a document is
paired with. `block` holds the vectors of the documents being trained, few enough to stay in the cache.

With five negatives per pair, almost every pair has five different ones. `update_five` moves the seven
vectors of such a pair in two passes over them, eight floats at a time; `update_pair` does the same for any
negatives, one after the other.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.simd import (
    SIZE,
    WIDTH,
    address_of,
    broadcast,
    first_lane,
    lane,
    load,
    ones_from_1_to_5,
    prefetch,
    reciprocal_sqrt,
    select_greater,
    store,
    sum_lanes,
    sum_lanes_of_six,
)
from himecat.kernels.splitmix import STEP, random_below

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

# Bytes of a cache line.
_LINE = 64
# Steps that are drawn together, before any of them is done.
_BATCH = 16
# What is kept of a drawn pair; the negatives come last.
_ANCHOR, _TARGET, _COUNT, _IS_FIVE, _NEGATIVES = 0, 1, 2, 3, 4


@compiled(fastmath=FAST)
def update_pair(anchors, a, targets, t, negatives, n_negatives, margin, rate, scaled, gradient):  # type: ignore[no-untyped-def]
    """One Riemannian step for the pair (anchor `a`, target `t`) against corrupted targets.

    Negatives move one after the other, then the target, and the anchor last. Returns the pair's objective,
    the mean over the negatives of min(0, f - h - margin). With `scaled`, steps shrink as a pair comes into
    place: the closer a positive already is, the less it is pulled; the farther a negative, the less it is
    pushed.
    """
    p = anchors.shape[1]
    f = np.float32(0.0)
    for k in range(p):
        f += anchors[a, k] * targets[t, k]
    objective = np.float32(0.0)
    active = 0
    pull = np.float32(0.0)
    for k in range(p):
        gradient[k] = np.float32(0.0)
    along = np.float32(0.0)
    for i in range(n_negatives):
        n = negatives[i]
        h = np.float32(0.0)
        for k in range(p):
            h += anchors[a, k] * targets[n, k]
        gap = f - h - margin
        if gap >= np.float32(0.0):
            continue
        objective += gap
        active += 1
        weight = np.float32(1.0)
        push = np.float32(1.0)
        if scaled:
            weight = np.float32(1.0) - (f - h)
            push = np.float32(2.0) * max(h, np.float32(0.0))
            pull += np.float32(1.0) - f
        else:
            pull += np.float32(1.0)
        # The anchor's gradient is weight * (target - negative); the target's part is added at the end.
        along += weight
        for k in range(p):
            gradient[k] -= weight * targets[n, k]
        # The negative moves along -push * anchor, projected on its tangent space. The new length follows from
        # the old one and the cosine, so one pass both moves and renormalises. The old length is 1 but for
        # rounding; it is measured all the same, because every push would magnify what is left of an error.
        square = np.float32(0.0)
        for k in range(p):
            square += targets[n, k] * targets[n, k]
        x = np.float32(1.0) + rate * push * h
        y = -rate * push
        scale = np.float32(1.0) / np.sqrt(x * x * square + y * y + np.float32(2.0) * x * y * h)
        x *= scale
        y *= scale
        for k in range(p):
            targets[n, k] = x * targets[n, k] + y * anchors[a, k]
    if active == 0:
        return np.float32(0.0)
    inner = np.float32(0.0)
    square = np.float32(0.0)
    for k in range(p):
        gradient[k] += along * targets[t, k]
        inner += gradient[k] * anchors[a, k]
        square += targets[t, k] * targets[t, k]
    x = np.float32(1.0) - rate * pull * f
    y = rate * pull
    scale = np.float32(1.0) / np.sqrt(x * x * square + y * y + np.float32(2.0) * x * y * f)
    x *= scale
    y *= scale
    keep = np.float32(1.0) - rate * inner
    length = np.float32(0.0)
    for k in range(p):
        old = anchors[a, k]
        moved = keep * old + rate * gradient[k]
        targets[t, k] = x * targets[t, k] + y * old
        gradient[k] = moved
        length += moved * moved
    scale = np.float32(1.0) / np.sqrt(length)
    for k in range(p):
        anchors[a, k] = gradient[k] * scale
    return objective / np.float32(n_negatives)


@compiled(fastmath=FAST)
def update_five(a, t, n0, n1, n2, n3, n4, p, margin, rate, scaled):  # type: ignore[no-untyped-def]
    """What `update_pair` does, for five different negatives and a p that is a multiple of 8.

    The rows (anchor, target, negatives) are given by their addresses. Of what is known of each target, lane 0
    is for the target itself and lanes 1 to 5 for the negatives.
    """
    end = p * SIZE
    zero = broadcast(np.float32(0.0))
    f, h0, h1, h2, h3, h4 = zero, zero, zero, zero, zero, zero
    q, q0, q1, q2, q3, q4 = zero, zero, zero, zero, zero, zero
    for k in range(0, end, WIDTH * SIZE):
        anchor = load(a + k)
        row = load(t + k)
        f, q = f + anchor * row, q + row * row
        row = load(n0 + k)
        h0, q0 = h0 + anchor * row, q0 + row * row
        row = load(n1 + k)
        h1, q1 = h1 + anchor * row, q1 + row * row
        row = load(n2 + k)
        h2, q2 = h2 + anchor * row, q2 + row * row
        row = load(n3 + k)
        h3, q3 = h3 + anchor * row, q3 + row * row
        row = load(n4 + k)
        h4, q4 = h4 + anchor * row, q4 + row * row
    cosine = sum_lanes_of_six(f, h0, h1, h2, h3, h4)
    square = sum_lanes_of_six(q, q0, q1, q2, q3, q4)
    positive = lane(cosine, 0)
    lead = broadcast(positive) - cosine
    gap = lead - broadcast(margin)
    active = select_greater(zero, gap, ones_from_1_to_5(), zero)
    pull = sum_lanes(active)
    if pull == np.float32(0.0):
        return np.float32(0.0)
    weight = active
    push = active
    if scaled:
        weight = active - active * lead
        push = active * select_greater(cosine, zero, cosine, zero)
        push = push + push
        pull *= np.float32(1.0) - positive
    # A row moves to x * row + y * anchor: y is positive for the target and negative for the negatives.
    alpha = broadcast(rate)
    y = alpha * (first_lane(pull) - push)
    x = broadcast(np.float32(1.0)) - y * cosine
    cross = x * y * cosine
    scale = reciprocal_sqrt(x * x * square + y * y + cross + cross)
    x, y = x * scale, y * scale
    # The anchor moves to keep * anchor + the sum of gain * row.
    gain = alpha * (first_lane(sum_lanes(weight)) - weight)
    keep = broadcast(np.float32(1.0) - sum_lanes(gain * cosine))
    xt, x0, x1 = broadcast(lane(x, 0)), broadcast(lane(x, 1)), broadcast(lane(x, 2))
    x2, x3, x4 = broadcast(lane(x, 3)), broadcast(lane(x, 4)), broadcast(lane(x, 5))
    yt, y0, y1 = broadcast(lane(y, 0)), broadcast(lane(y, 1)), broadcast(lane(y, 2))
    y2, y3, y4 = broadcast(lane(y, 3)), broadcast(lane(y, 4)), broadcast(lane(y, 5))
    gt, g0, g1 = broadcast(lane(gain, 0)), broadcast(lane(gain, 1)), broadcast(lane(gain, 2))
    g2, g3, g4 = broadcast(lane(gain, 3)), broadcast(lane(gain, 4)), broadcast(lane(gain, 5))
    length = zero
    for k in range(0, end, WIDTH * SIZE):
        anchor = load(a + k)
        moved = anchor * keep
        row = load(n0 + k)
        moved = moved + row * g0
        store(n0 + k, row * x0 + anchor * y0)
        row = load(n1 + k)
        moved = moved + row * g1
        store(n1 + k, row * x1 + anchor * y1)
        row = load(n2 + k)
        moved = moved + row * g2
        store(n2 + k, row * x2 + anchor * y2)
        row = load(n3 + k)
        moved = moved + row * g3
        store(n3 + k, row * x3 + anchor * y3)
        row = load(n4 + k)
        moved = moved + row * g4
        store(n4 + k, row * x4 + anchor * y4)
        row = load(t + k)
        moved = moved + row * gt
        store(t + k, row * xt + anchor * yt)
        length = length + moved * moved
        store(a + k, moved)
    back = reciprocal_sqrt(broadcast(sum_lanes(length)))
    for k in range(0, end, WIDTH * SIZE):
        store(a + k, load(a + k) * back)
    return sum_lanes(gap * active) / np.float32(5.0)


@compiled()
def _prefetch_row(address, size):  # type: ignore[no-untyped-def]
    """Have a row brought into the cache before it is needed."""
    for k in range(0, size, _LINE):
        prefetch(address + k)


@compiled()
def _draw_steps(  # type: ignore[no-untyped-def]
    drawn, n_steps, state, pair_anchor, pair_document, relation_start, children, parents, n_edges, n_labels,
    negative_table, n_negatives,
):  # fmt: skip
    """Draw a pair of every relation for some steps; returns the new state."""
    n_relations = relation_start.shape[0] - 1
    n_table = negative_table.shape[0]
    for s in range(n_steps):
        for r in range(n_relations + 1):
            if r < n_relations:
                count = relation_start[r + 1] - relation_start[r]
                if count == 0:
                    continue
                state += STEP
                pair = relation_start[r] + random_below(state, count)
                anchor = np.int64(pair_anchor[pair])
                target = np.int64(pair_document[pair])
            else:
                if n_edges == 0:
                    continue
                state += STEP
                edge = random_below(state, n_edges)
                anchor = np.int64(children[edge])
                target = np.int64(parents[edge])
            drawn[s, r, _ANCHOR] = anchor
            drawn[s, r, _TARGET] = target
            n_drawn = 0
            differ = True
            for _ in range(n_negatives):
                state += STEP
                if r < n_relations:
                    negative = np.int64(negative_table[random_below(state, n_table)])
                else:
                    negative = random_below(state, n_labels)
                    if negative == anchor:
                        continue
                if negative == target:
                    continue
                for i in range(n_drawn):
                    differ &= drawn[s, r, _NEGATIVES + i] != negative
                drawn[s, r, _NEGATIVES + n_drawn] = negative
                n_drawn += 1
            drawn[s, r, _COUNT] = n_drawn
            drawn[s, r, _IS_FIVE] = differ and n_drawn == 5
    return state


@compiled(fastmath=FAST)
def train_block(  # type: ignore[no-untyped-def]
    anchors, block, pair_anchor, pair_document, relation_start, children, parents, n_labels, with_hierarchy,
    negative_table, margins, n_negatives, rate, rate_drop, n_steps, seed, scaled, sums,
):  # fmt: skip
    """Train one block of documents for `n_steps` steps.

    A step draws one positive pair of every relation that the block has and, with `with_hierarchy`, one pair
    of parent and child labels. `sums` (one row per relation, the hierarchy last) gathers the objective and
    the number of pairs drawn.
    """
    p = anchors.shape[1]
    size = p * SIZE
    is_padded = p % WIDTH == 0
    anchors_at = address_of(anchors)
    block_at = address_of(block)
    n_relations = relation_start.shape[0] - 1
    n_edges = children.shape[0] if with_hierarchy else 0
    gradient = np.empty(p, np.float32)
    drawn = np.zeros((_BATCH, n_relations + 1, _NEGATIVES + n_negatives), np.int64)
    state = np.uint64(seed)
    for first in range(0, n_steps, _BATCH):
        n_batch = min(_BATCH, n_steps - first)
        state = _draw_steps(
            drawn, n_batch, state, pair_anchor, pair_document, relation_start, children, parents, n_edges,
            n_labels, negative_table, n_negatives,
        )  # fmt: skip
        for s in range(n_batch):
            alpha = np.float32(rate - rate_drop * (first + s))
            for r in range(n_relations + 1):
                count = drawn[s, r, _COUNT]
                targets_at = block_at if r < n_relations else anchors_at
                if s + 1 < n_batch:
                    # The anchor of the next step is on its way while this one is done; documents are near.
                    _prefetch_row(anchors_at + drawn[s + 1, r, _ANCHOR] * size, size)
                if count == 0:
                    continue
                if is_padded and drawn[s, r, _IS_FIVE]:
                    sums[r, 0] += update_five(
                        anchors_at + drawn[s, r, _ANCHOR] * size, targets_at + drawn[s, r, _TARGET] * size,
                        targets_at + drawn[s, r, 4] * size, targets_at + drawn[s, r, 5] * size,
                        targets_at + drawn[s, r, 6] * size, targets_at + drawn[s, r, 7] * size,
                        targets_at + drawn[s, r, 8] * size, p, margins[r], alpha, scaled,
                    )  # fmt: skip
                elif r < n_relations:
                    sums[r, 0] += update_pair(
                        anchors, drawn[s, r, _ANCHOR], block, drawn[s, r, _TARGET], drawn[s, r, _NEGATIVES:],
                        count, margins[r], alpha, scaled, gradient,
                    )  # fmt: skip
                else:
                    sums[r, 0] += update_pair(
                        anchors, drawn[s, r, _ANCHOR], anchors, drawn[s, r, _TARGET], drawn[s, r, _NEGATIVES:],
                        count, margins[r], alpha, scaled, gradient,
                    )  # fmt: skip
                sums[r, 1] += 1.0


@compiled(fastmath=FAST)
def merge_rows(anchors, copies, first, last):  # type: ignore[no-untyped-def]
    """Add to some anchors what each copy of them has changed, and bring them back to length 1."""
    for row in range(first, last):
        square = np.float32(0.0)
        for k in range(anchors.shape[1]):
            before = anchors[row, k]
            merged = before
            for copy in range(copies.shape[0]):
                merged += copies[copy, row, k] - before
            anchors[row, k] = merged
            square += merged * merged
        scale = np.float32(1.0) / max(np.sqrt(square), np.float32(1e-12))
        for k in range(anchors.shape[1]):
            anchors[row, k] *= scale
