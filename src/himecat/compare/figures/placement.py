"""Room for names on a map: one after another, each as near to its point as the others let it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# How far a name may be from its point, and in which directions: right first, then left, then the rest of the compass.
_RINGS = (0.0, 3.0, 7.0, 12.0, 18.0, 25.0, 33.0, 42.0)
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)


def place_names(
    points: FloatArray, sizes: FloatArray, radii: FloatArray, order: Sequence[int], room: Any
) -> list[Any]:
    """Find a box for the name of every point that overlaps no other name and hides no point.

    Each name takes the free place that is nearest to its point; one that finds none goes without.

    Parameters
    ----------
    points, sizes : arrays of shape (n, 2)
        The points, and the width and height of each name.
    radii : array of shape (n,)
        How far the mark of each point reaches.
    order : sequence of int
        The order in which names are placed.
    room : matplotlib Bbox
        What names have to stay within.

    Returns
    -------
    list of Bbox or None
        The box of each point's name.

    Examples
    --------
    >>> from matplotlib.transforms import Bbox
    >>> points, room = np.array([[50.0, 50.0], [52.0, 50.0]]), Bbox([[0, 0], [100, 100]])
    >>> found = place_names(points, np.full((2, 2), 10.0), np.ones(2), [0, 1], room)
    >>> [box.p0.round().tolist() for box in found]
    [[38.0, 45.0], [54.0, 45.0]]
    """
    from matplotlib.transforms import Bbox

    angles = np.tile(np.array(_TURNS) * math.pi / 8, len(_RINGS))
    ways = np.column_stack([np.cos(angles), np.sin(angles)])
    distances = np.repeat(_RINGS, len(_TURNS))[:, None]
    # Marks, then the names placed so far, as corners.
    taken = np.stack([points - radii[:, None], points + radii[:, None]], axis=1)
    found: list[Any] = [None] * len(points)
    for node in order:
        half = sizes[node] / 2
        # The nearest edge or corner of a box is as far from the point as its ring.
        centres = points[node] + (radii[node] + 1 + distances) * ways + np.clip(1.5 * ways, -1, 1) * half
        inside = ((centres - half >= room.p0) & (centres + half <= room.p1)).all(axis=1)
        for centre in centres[inside]:
            box = Bbox([centre - half, centre + half])
            if not box.count_overlaps(taken):
                found[node] = box
                taken = np.concatenate([taken, box.get_points()[None]])
                break
    return found
