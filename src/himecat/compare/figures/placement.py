"""Room for names on a map: one after another, each as near to its point as the others let it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# How far a name may be from its point, and what a line under it is worth in distance.
_RINGS = (0.0, 3.0, 7.0, 12.0, 18.0, 25.0, 33.0, 42.0)
_LINE_COST = 1.5
_ROUNDS = 4
# To the right first, then left, then the rest of the compass.
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)


class Box(NamedTuple):
    """A rectangle with its sides upright.

    Examples
    --------
    >>> Box(0, 0, 4, 2).centre
    (2.0, 1.0)
    """

    left: float
    bottom: float
    right: float
    top: float

    @property
    def centre(self) -> tuple[float, float]:
        """The middle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def nearest(self, point: FloatArray) -> FloatArray:
        """The point of the box that is nearest to another one."""
        return np.clip(point, [self.left, self.bottom], [self.right, self.top])


def samples_along(start: FloatArray, end: FloatArray, step: float = 4.0) -> FloatArray:
    """Points along a line, about `step` apart.

    Examples
    --------
    >>> samples_along(np.array([0.0, 0.0]), np.array([8.0, 0.0])).tolist()
    [[0.0, 0.0], [4.0, 0.0], [8.0, 0.0]]
    """
    parts = max(int(math.hypot(*(end - start)) / step), 1)
    return np.asarray(start + np.linspace(0, 1, parts + 1)[:, None] * (end - start))


def place_names(
    points: FloatArray,
    sizes: FloatArray,
    radii: FloatArray,
    turns: Sequence[int],
    room: Box,
    lines: FloatArray,
) -> list[Box | None]:
    """Find a box for the name of every point that overlaps no other name and hides no point.

    Names come one after another. Each takes the free place that is nearest to its point, where lines under a
    name count as distance. Those that find none come first in another round; who finds none in the best round
    goes without. A name far from its point is joined to it by a line, which no other name may hide.

    Parameters
    ----------
    points : array of shape (n, 2)
        The points.
    sizes : array of shape (n, 2)
        Width and height of each name.
    radii : array of shape (n,)
        How far the mark of each point reaches.
    turns : sequence of int
        The order in which names are placed, at first.
    room : Box
        What names have to stay within.
    lines : array of shape (m, 2)
        Points along lines that names had better not cover.

    Returns
    -------
    list of Box or None
        The box of each point's name.

    Examples
    --------
    >>> points = np.array([[50.0, 50.0], [52.0, 50.0]])
    >>> found = place_names(points, np.full((2, 2), 10.0), np.ones(2), [0, 1], Box(0, 0, 100, 100), points)
    >>> [round(float(box.centre[0])) for box in found]
    [43, 59]
    """
    best = _place_in_turn(points, sizes, radii, turns, room, lines)
    order = list(turns)
    for _ in range(_ROUNDS):
        missing = [node for node in order if best[node] is None]
        if not missing:
            break
        # Who found no room comes first in the next round.
        order = missing + [node for node in order if node not in missing]
        found = _place_in_turn(points, sizes, radii, order, room, lines)
        if found.count(None) < len(missing):
            best = found
    return best


def _place_in_turn(
    points: FloatArray,
    sizes: FloatArray,
    radii: FloatArray,
    turns: Sequence[int],
    room: Box,
    lines: FloatArray,
) -> list[Box | None]:
    marks = np.column_stack([points - radii[:, None], points + radii[:, None]])
    found: list[Box | None] = [None] * len(points)
    taken = np.empty((0, 4))
    joins = np.empty((0, 2))
    for node in turns:
        boxes, distances = _candidates(points[node], sizes[node], radii[node] + 1)
        inside = (boxes[:, :2] >= room[:2]).all(axis=1) & (boxes[:, 2:] <= room[2:]).all(axis=1)
        hidden = np.vstack([taken, marks])
        hidden = hidden[_overlap(_around(boxes), hidden)[0]]
        free = inside & ~_overlap(boxes, hidden).any(axis=1)
        boxes, distances = boxes[free], distances[free]
        clear = ~_within(_nearby(joins, boxes), boxes).any(axis=0)
        boxes, distances = boxes[clear], distances[clear]
        costs = distances + _LINE_COST * _within(_nearby(lines, boxes), boxes).sum(axis=0)
        for choice in np.argsort(costs, kind="stable").tolist():
            box = Box(*boxes[choice].tolist())
            join = samples_along(points[node], box.nearest(points[node]), 2.0)
            if not _within(join, taken).any():
                found[node] = box
                taken = np.vstack([taken, box])
                joins = np.vstack([joins, join])
                break
    return found


def _candidates(point: FloatArray, size: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Boxes on rings around a point, nearest first, with their distances.

    The nearest edge or corner of a box is as far from the point as its ring.
    """
    angles = np.tile(np.array(_TURNS) * math.pi / 8, len(_RINGS))
    distances = np.repeat(_RINGS, len(_TURNS))
    ways = np.column_stack([np.cos(angles), np.sin(angles)])
    centres = point + (gap + distances)[:, None] * ways + np.clip(1.5 * ways, -1, 1) * size / 2
    return np.column_stack([centres - size / 2, centres + size / 2]), distances


def _overlap(boxes: FloatArray, others: FloatArray) -> npt.NDArray[np.bool_]:
    """Matrix (boxes x others): whether the two overlap."""
    low, high = boxes[:, None, :2] < others[:, 2:], others[:, :2] < boxes[:, None, 2:]
    return np.asarray((low & high).all(axis=2))


def _within(points: FloatArray, boxes: FloatArray) -> npt.NDArray[np.bool_]:
    """Matrix (points x boxes): whether the point lies in the box."""
    above, below = points[:, None] > boxes[:, :2], points[:, None] < boxes[:, 2:]
    return np.asarray((above & below).all(axis=2))


def _nearby(points: FloatArray, boxes: FloatArray) -> FloatArray:
    """The points that can lie in a box at all."""
    return points[_within(points, _around(boxes))[:, 0]] if len(boxes) else points[:0]


def _around(boxes: FloatArray) -> FloatArray:
    """The rectangle around all boxes."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])[None]
