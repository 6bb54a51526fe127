"""The hot loop of Poincaré embeddings, on raw arrays only; `tests/test_system_poincare.py` has a plain twin.

All points lie in the open unit ball. The distance of u and v there is arcosh(1 + 2 |u - v|^2 / (a b)) with
a = 1 - |u|^2 and b = 1 - |v|^2.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled
from himecat.kernels.splitmix import STEP, random_below

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}

# No point comes closer to the boundary than this: distances have no end there.
MARGIN = 1e-5
# Below this the two points of a pair are taken for the same one: their distance has no gradient.
_SAME = 1e-15
# Draws per negative that is wanted; of a common word, a large part of them are its own documents.
_TRIES = 10
# What is kept of each of the nodes that stand against each other in a step.
_DISTANCE, _SQUARE, _INNER, _ROOT, _FACTS = 0, 1, 2, 3, 4


@compiled(inline="always")
def _into_ball(square):  # type: ignore[no-untyped-def]
    """What a vector of this squared length is multiplied with to stay within the ball."""
    longest = 1.0 - MARGIN
    if square > longest * longest:
        return longest / np.sqrt(square)
    return 1.0


@compiled(fastmath=_FAST, inline="always")
def move_edge(points, u, others, n_others, rate, penalty, facts, sum_of_pulls):  # type: ignore[no-untyped-def]
    """One step of Riemannian gradient descent for the edge (u, others[0]) against the rest of `others`.

    The loss, which is returned, is -log of the softmax of the negative distances from u, at others[0], and
    `penalty` times the squared length of others[0]. All points move by the gradient at their old places. The nodes
    in `others` must be distinct, and none of them u. `facts` (n_others x 4) and `sum_of_pulls` (dimension) are
    room to work in.
    """
    p = points.shape[1]
    uu = 0.0
    for k in range(p):
        uu += points[u, k] * points[u, k]
        sum_of_pulls[k] = 0.0
    a = 1.0 - uu
    nearest = np.inf
    for j in range(n_others):
        v = others[j]
        vv = 0.0
        gap = 0.0
        for k in range(p):
            apart = points[u, k] - points[v, k]
            vv += points[v, k] * points[v, k]
            gap += apart * apart
        beyond = 2.0 * gap / (a * (1.0 - vv))
        root = np.sqrt(beyond * (beyond + 2.0))
        facts[j, _DISTANCE] = np.log1p(beyond + root)
        facts[j, _SQUARE] = vv
        facts[j, _INNER] = (uu + vv - gap) * 0.5
        facts[j, _ROOT] = root
        nearest = min(nearest, facts[j, _DISTANCE])
    total = 0.0
    for j in range(n_others):
        total += np.exp(nearest - facts[j, _DISTANCE])
    loss = facts[0, _DISTANCE] - nearest + np.log(total) + penalty * facts[0, _SQUARE]
    keep = 1.0
    for j in range(n_others):
        is_apart = facts[j, _ROOT] >= _SAME
        if not is_apart and j > 0:
            continue
        v = others[j]
        vv = facts[j, _SQUARE]
        inner = facts[j, _INNER]
        b = 1.0 - vv
        weight = -np.exp(nearest - facts[j, _DISTANCE]) / total
        if j == 0:
            weight += 1.0
        # The inverse of the metric, (1 - |x|^2)^2 / 4, is in these factors: much of it cancels out.
        along = rate * weight / facts[j, _ROOT] if is_apart else 0.0
        keep -= along / b * (vv - 2.0 * inner + 1.0)
        pull = along * a / b
        stay = 1.0 - along / a * (uu - 2.0 * inner + 1.0)
        if j == 0:
            stay -= rate * penalty * 0.5 * b * b
        draw = along * b / a
        # The new length follows from the old ones, so one pass both moves a point and keeps it in the ball.
        scale = _into_ball(stay * stay * vv + draw * draw * uu + 2.0 * stay * draw * inner)
        stay *= scale
        draw *= scale
        for k in range(p):
            old = points[v, k]
            sum_of_pulls[k] += pull * old
            points[v, k] = stay * old + draw * points[u, k]
    square = 0.0
    for k in range(p):
        moved = keep * points[u, k] + sum_of_pulls[k]
        points[u, k] = moved
        square += moved * moved
    scale = _into_ball(square)
    if scale < 1.0:
        for k in range(p):
            points[u, k] *= scale
    return loss


@compiled()
def _has(values, start, end, wanted):  # type: ignore[no-untyped-def]
    """Whether a number is among values[start:end], which rise."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] == wanted:
            return True
        if values[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    return False


@compiled(fastmath=_FAST)
def move_edges(  # type: ignore[no-untyped-def]
    points, sources, targets, order, linked, offsets, n_negatives, rate, penalty, seed
):  # fmt: skip
    """Take a step for each edge in `order`, against nodes that its source has no edge with.

    A negative is a random end of a random edge, so nodes are drawn by how many edges they have. Linked ones and
    those drawn before do not count; after ten times as many draws as negatives are wanted, a step makes do with
    what it has. `linked` and `offsets` hold the neighbours of every node in rising order. Returns the sum of the
    losses.
    """
    n_edges = sources.shape[0]
    others = np.empty(n_negatives + 1, dtype=np.int64)
    facts = np.empty((n_negatives + 1, _FACTS))
    sum_of_pulls = np.empty(points.shape[1])
    state = np.uint64(seed)
    loss = 0.0
    for edge in order:
        u = sources[edge]
        others[0] = targets[edge]
        found = 1
        for _ in range(_TRIES * n_negatives):
            if found > n_negatives:
                break
            state += STEP
            end = random_below(state, 2 * n_edges)
            one = sources[end] if end < n_edges else targets[end - n_edges]
            fresh = one != u
            for j in range(found):
                fresh = fresh and others[j] != one
            if fresh and not _has(linked, offsets[u], offsets[u + 1], one):
                others[found] = one
                found += 1
        loss += move_edge(points, u, others, found, rate, penalty, facts, sum_of_pulls)
    return loss
