"""The kernels of the sampled space in NumPy: slow, obvious, in float64 where it matters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def pair_objective(anchor: Array, target: Array, negatives: Array, margin: float) -> float:
    """Sum over the negatives of min(0, anchor.target - anchor.negative - margin).

    Examples
    --------
    >>> float(pair_objective(np.array([1.0, 0]), np.array([1.0, 0]), np.array([[0.0, 1]]), 0.2))
    0.0
    """
    gaps = anchor @ target - negatives @ anchor - margin
    return float(np.minimum(0.0, gaps).sum())


def pair_gradient(
    anchor: Array, target: Array, negatives: Array, margin: float
) -> tuple[Array, Array, Array]:
    """Euclidean gradient of :func:`pair_objective` for the anchor, the target and each negative.

    Examples
    --------
    >>> one, two = np.array([1.0, 0]), np.array([0.0, 1])
    >>> [part.tolist() for part in pair_gradient(one, two, two[None], 0.2)]
    [[0.0, 0.0], [1.0, 0.0], [[-1.0, -0.0]]]
    """
    active = (anchor @ target - negatives @ anchor - margin < 0).astype(float)
    return (
        active.sum() * target - active @ negatives,
        active.sum() * anchor,
        -active[:, None] * anchor[None, :],
    )


def step_on_sphere(vector: Array, gradient: Array, rate: float) -> Array:
    """Project the gradient on the tangent space, step, and return to the sphere.

    Examples
    --------
    >>> step_on_sphere(np.array([1.0, 0.0]), np.array([5.0, 1.0]), 1.0).round(4).tolist()
    [0.7071, 0.7071]
    """
    riemannian = gradient - vector * (vector @ gradient)
    moved = vector + rate * riemannian
    return np.asarray(moved / np.linalg.norm(moved), dtype=np.float64)


def update_pair(
    anchors: Array,
    a: int,
    targets: Array,
    t: int,
    negatives: list[int],
    margin: float,
    rate: float,
    scaled: bool,
) -> float:
    """Do what the kernel `update_pair` does: negatives in turn, then the target, then the anchor.

    Examples
    --------
    >>> anchors, targets = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> update_pair(anchors, 0, targets, 0, [1], 0.2, 0.1, False)
    -1.2
    """
    anchor, target = anchors[a].copy(), targets[t].copy()
    f = anchor @ target
    objective, pull = 0.0, 0.0
    gradient = np.zeros_like(anchor)
    active = 0
    for n in negatives:
        negative = targets[n].copy()
        h = anchor @ negative
        if f - h - margin >= 0:
            continue
        objective += f - h - margin
        active += 1
        weight = 1 - (f - h) if scaled else 1.0
        pull += 1 - f if scaled else 1.0
        gradient += weight * (target - negative)
        targets[n] = step_on_sphere(negative, -(2 * max(h, 0.0) if scaled else 1.0) * anchor, rate)
    if active:
        targets[t] = step_on_sphere(target, pull * anchor, rate)
        anchors[a] = step_on_sphere(anchor, gradient, rate)
    return float(objective / len(negatives))


class SplitMix:
    """The kernels' random numbers.

    Examples
    --------
    >>> rng = SplitMix(1)
    >>> [rng.below(10) for _ in range(4)]
    [5, 7, 9, 4]
    """

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, bound: int) -> int:
        """Draw an integer below `bound`."""
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        return ((z >> 32) * bound) >> 32


def train_block(
    anchors: Array,
    block: Array,
    pair_anchor: list[int],
    pair_document: list[int],
    relation_start: list[int],
    children: list[int],
    parents: list[int],
    n_labels: int,
    with_hierarchy: bool,
    negative_table: list[int],
    margins: list[float],
    n_negatives: int,
    rate: float,
    rate_drop: float,
    n_steps: int,
    seed: int,
    scaled: bool,
    totals: Array,
) -> None:
    """Do what the kernel `train_block` does.

    Examples
    --------
    >>> anchors, block, totals = np.eye(2)[:1], np.eye(2), np.zeros((2, 2))
    >>> train_block(anchors, block, [0], [0], [0, 1], [], [], 0, False, [1], [0.2, 0.2], 1, 0.1, 0.0, 3, 7,
    ...             False, totals)
    >>> totals[0].tolist()
    [0.0, 3.0]
    """
    rng = SplitMix(seed)
    n_relations = len(relation_start) - 1
    for step in range(n_steps):
        alpha = rate - rate_drop * step
        for r in range(n_relations):
            start, count = relation_start[r], relation_start[r + 1] - relation_start[r]
            if count == 0:
                continue
            pair = start + rng.below(count)
            target = pair_document[pair]
            drawn = [negative_table[rng.below(len(negative_table))] for _ in range(n_negatives)]
            drawn = [negative for negative in drawn if negative != target]
            if drawn:
                totals[r] += (
                    update_pair(anchors, pair_anchor[pair], block, target, drawn, margins[r], alpha, scaled),
                    1.0,
                )
        if not with_hierarchy or not len(children):
            continue
        edge = rng.below(len(children))
        child, parent = children[edge], parents[edge]
        drawn = [rng.below(n_labels) for _ in range(n_negatives)]
        drawn = [negative for negative in drawn if negative not in (parent, child)]
        if drawn:
            totals[n_relations] += (
                update_pair(anchors, child, anchors, parent, drawn, margins[n_relations], alpha, scaled),
                1.0,
            )


def merge_rows(anchors: Array, copies: Array) -> Array:
    """Do what the kernel `merge_rows` does to all rows; returns the merged ones.

    Examples
    --------
    >>> before = np.array([[1.0, 0.0]])
    >>> merge_rows(before, np.array([[[1.0, 1.0]], [[1.0, -1.0]]])).tolist()
    [[1.0, 0.0]]
    """
    merged = anchors + (copies - anchors).sum(axis=0)
    return np.asarray(merged / np.maximum(np.linalg.norm(merged, axis=1, keepdims=True), 1e-12))
