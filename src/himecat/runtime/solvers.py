"""Small problems solved in plain NumPy: loading a library for them would take longer than they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

# Steps whose curvature is remembered, and how many are taken at most.
_REMEMBERED = 10
_STEPS = 200
# A step must bring this share of what its slope promised.
_SHARE = 1e-4
_HALVINGS = 40


def sigmoid(odds: npt.ArrayLike) -> Vector:
    """Probability of log-odds.

    Examples
    --------
    >>> sigmoid([0.0, -1000.0, 1000.0]).tolist()
    [0.5, 0.0, 1.0]
    """
    # tanh neither overflows nor warns.
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * np.asarray(odds, dtype=np.float64))))


def logit(shares: npt.ArrayLike) -> Vector:
    """Log-odds of probabilities strictly between 0 and 1.

    Examples
    --------
    >>> logit([0.5, 0.9]).round(3).tolist()
    [0.0, 2.197]
    """
    given = np.asarray(shares, dtype=np.float64)
    return np.asarray(np.log(given) - np.log1p(-given))


def minimize_lbfgs(
    loss: Callable[[Vector], tuple[float, Vector]], start: npt.ArrayLike, *, tolerance: float = 1e-6
) -> Vector:
    """The point at which a smooth function is smallest, from its value and slope (limited-memory BFGS).

    Parameters
    ----------
    loss : callable
        Value and slope at a point.
    tolerance : float
        It ends where no entry of the slope is larger, or where no step brings anything.

    Examples
    --------
    >>> def bowl(point):
    ...     away = point - np.array([1.0, -2.0])
    ...     return float(away @ away), 2 * away
    >>> minimize_lbfgs(bowl, [0.0, 0.0]).round(4).tolist()
    [1.0, -2.0]
    """
    point = np.array(start, dtype=np.float64)
    value, slope = loss(point)
    moves: list[tuple[Vector, Vector]] = []
    for _ in range(_STEPS):
        if np.abs(slope).max(initial=0.0) <= tolerance:
            break
        direction = -_with_curvature(slope, moves)
        promised = float(direction @ slope)
        # The first step knows no curvature, so it goes no farther than 1.
        length = 1.0 if moves else min(1.0, 1.0 / float(np.abs(slope).sum()))
        for _ in range(_HALVINGS):
            there, (next_value, next_slope) = point + length * direction, loss(point + length * direction)
            if next_value <= value + _SHARE * length * promised:
                break
            length /= 2
        else:
            break
        move, change = there - point, next_slope - slope
        gained = value - next_value
        point, value, slope = there, next_value, next_slope
        if float(move @ change) > 1e-12 * float(change @ change):
            moves = [*moves[-_REMEMBERED + 1 :], (move, change)]
        if gained <= 1e-12 * max(abs(value), 1.0):
            break
    return point


def _with_curvature(slope: Vector, moves: list[tuple[Vector, Vector]]) -> Vector:
    """The slope, seen through the curvature that the last moves met."""
    found, shares = slope.copy(), []
    for move, change in reversed(moves):
        share = float(move @ found) / float(move @ change)
        shares.append(share)
        found -= share * change
    if moves:
        move, change = moves[-1]
        found *= float(move @ change) / float(change @ change)
    for (move, change), share in zip(moves, reversed(shares), strict=True):
        found += move * (share - float(change @ found) / float(move @ change))
    return found


def bisect_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that never falls crosses zero; the nearer end where it does not.

    Examples
    --------
    >>> round(bisect_root(lambda x: x**3 - 8, -100, 100), 6)
    2.0
    """
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if function(middle) < 0:
            low = middle
        else:
            high = middle


def nonnegative_least_squares(products: npt.ArrayLike, target: npt.ArrayLike) -> Vector:
    """Weights of at least 0 whose sum of a few vectors comes nearest to another vector.

    Parameters
    ----------
    products : array
        Products of the vectors with each other; positive definite.
    target : array
        Products of the vectors with the other one.

    Examples
    --------
    >>> nonnegative_least_squares([[2.0, 0.0], [0.0, 1.0]], [4.0, -1.0]).tolist()
    [2.0, 0.0]
    """
    gram, wanted = np.asarray(products, dtype=np.float64), np.asarray(target, dtype=np.float64)
    found = np.zeros(len(wanted))
    used = np.zeros(len(wanted), dtype=bool)
    # Lawson and Hanson: take in the vector that helps most, and let go of those that would turn negative.
    for _ in range(10 * len(wanted) + 10):
        missing = np.where(used, 0.0, wanted - gram @ found)
        best = int(missing.argmax()) if len(missing) else 0
        if not len(missing) or missing[best] <= 1e-10 * max(float(np.abs(wanted).max()), 1e-300):
            break
        used[best] = True
        while True:
            free = np.zeros_like(found)
            free[used] = np.linalg.solve(gram[np.ix_(used, used)], wanted[used])
            below = used & (free <= 0)
            if not below.any():
                break
            far = float((found[below] / np.maximum(found[below] - free[below], 1e-300)).min())
            found = np.maximum(found + far * (free - found), 0.0)
            used &= found > 0
        found = free
    return found
