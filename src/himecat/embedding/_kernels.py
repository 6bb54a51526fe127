"""The hot loops of joint representation learning, on raw arrays only.

`_reference.py` holds the plain NumPy twin of every function here; the tests run both on the same input.

Rows of `anchors` are the labels, then the metadata values, then the words: everything that a document is
paired with. `block` holds the vectors of the documents being trained, few enough to stay in the cache.
Randomness is splitmix64 carried as one integer, so a block's result depends on its seed alone.
"""

from __future__ import annotations

import numpy as np

from himecat.compiled import compiled

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@compiled(inline="always")
def _mix(state):  # type: ignore[no-untyped-def]
    """The output of splitmix64 for a state."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@compiled(inline="always")
def _below(word, bound):  # type: ignore[no-untyped-def]
    """Map the high 32 bits of a random word to 0 .. bound - 1 without a division."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


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
def train_block(  # type: ignore[no-untyped-def]
    anchors, block, pair_anchor, pair_document, relation_start, children, parents, n_labels, with_hierarchy,
    negative_table, margins, n_negatives, rate, rate_drop, n_steps, seed, scaled, totals,
):  # fmt: skip
    """Train one block of documents for `n_steps` steps.

    A step draws one positive pair of every relation that the block has and, with `with_hierarchy`, one pair
    of parent and child labels. `totals` (one row per relation, the hierarchy last) gathers the objective and
    the number of pairs drawn.
    """
    gradient = np.empty(anchors.shape[1], np.float32)
    drawn = np.empty(n_negatives, np.int64)
    n_relations = relation_start.shape[0] - 1
    n_table = negative_table.shape[0]
    n_edges = children.shape[0] if with_hierarchy else 0
    state = np.uint64(seed)
    for step in range(n_steps):
        alpha = np.float32(rate - rate_drop * step)
        for r in range(n_relations):
            start = relation_start[r]
            count = relation_start[r + 1] - start
            if count == 0:
                continue
            state += _GOLDEN
            pair = start + _below(_mix(state), count)
            target = np.int64(pair_document[pair])
            n_drawn = 0
            for _ in range(n_negatives):
                state += _GOLDEN
                negative = np.int64(negative_table[_below(_mix(state), n_table)])
                if negative != target:
                    drawn[n_drawn] = negative
                    n_drawn += 1
            if n_drawn == 0:
                continue
            totals[r, 0] += update_pair(
                anchors, np.int64(pair_anchor[pair]), block, target, drawn, n_drawn, margins[r], alpha, scaled, gradient
            )  # fmt: skip
            totals[r, 1] += 1.0
        if n_edges == 0:
            continue
        state += _GOLDEN
        edge = _below(_mix(state), n_edges)
        child = np.int64(children[edge])
        parent = np.int64(parents[edge])
        n_drawn = 0
        for _ in range(n_negatives):
            state += _GOLDEN
            negative = _below(_mix(state), n_labels)
            if negative not in (parent, child):
                drawn[n_drawn] = negative
                n_drawn += 1
        if n_drawn == 0:
            continue
        totals[n_relations, 0] += update_pair(
            anchors, child, anchors, parent, drawn, n_drawn, margins[n_relations], alpha, scaled, gradient
        )
        totals[n_relations, 1] += 1.0
