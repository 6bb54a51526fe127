"""Labels and documents in two dimensions: every category is a disc within that of its parent.

Siblings lie as similar as their vectors are, on areas as large as what they hold. A document lies in the disc of its
leaf, beside documents like it, the nearer to the edge towards another leaf the more probable that one is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import one_blas_thread
from himecat.views.matrices import FloatArray, unit

_Points = npt.NDArray[np.float64]

# The share of its parent's disc that the discs of children may reach, and how full a leaf's disc is.
_INSIDE, _FILLED = 0.95, 0.92
# The smallest area of a category, as a share of the mean of its siblings.
_SMALLEST = 0.12
# With more siblings, they stand in rows; with fewer, discs are pushed apart, in so many rounds.
_MANY, _ROUNDS = 600, 400
# Ways to turn the children of a category around its centre.
_TURNS = 36
# How far beyond its radius a document may lie from the centre of its leaf.
_BEYOND = 1.5
# Dimensions that documents are looked at in.
_KEPT = 24


class NodePlaces(NamedTuple):
    """Where the nodes of a tree lie, and the radii of their discs; the root's is the unit disc.

    Examples
    --------
    >>> NodePlaces(np.zeros((1, 2)), np.ones(1)).radii.tolist()
    [1.0]
    """

    points: _Points
    radii: _Points


@one_blas_thread()
def place_nodes(taxonomy: Taxonomy, labels: FloatArray, masses: npt.ArrayLike) -> NodePlaces:
    """Lay out a tree from the top.

    Parameters
    ----------
    labels : array
        A vector for each node, the root among them.
    masses : array
        How much each node holds, at or below it.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> places = place_nodes(tree, np.eye(5, dtype=np.float32), [4, 2, 2, 1, 1])
    >>> inside = np.hypot(*(places.points[3] - places.points[1])) + places.radii[3] <= places.radii[1]
    >>> places.points.shape, bool(inside)
    ((5, 2), True)
    """
    points, radii = np.zeros((len(taxonomy), 2)), np.ones(len(taxonomy))
    mass = np.asarray(masses, dtype=np.float64)
    units = unit(np.asarray(labels, dtype=np.float32)).astype(np.float64)
    for node in taxonomy.inner:
        children = list(taxonomy.children[node])
        own = mass[children]
        size = np.sqrt(np.maximum(own, _SMALLEST * max(float(own.mean()), 1e-9)))
        places, sizes = _packed(units[children], size)
        if node:
            # Towards what is like them elsewhere.
            others = [one for one in taxonomy.children[taxonomy.parents[node]] if one != node]
            places = _turned(places, units[children], units[others], points[others] - points[node])
        points[children] = points[node] + places * radii[node] * _INSIDE
        radii[children] = sizes * radii[node] * _INSIDE
    return NodePlaces(points, radii)


def _packed(vectors: _Points, sizes: _Points) -> tuple[_Points, _Points]:
    """Discs of siblings in the unit disc, which do not overlap: their centres and radii."""
    count = len(vectors)
    if count == 1:
        return np.zeros((1, 2)), np.full(1, _INSIDE)
    points = _projected(vectors)
    if count > _MANY:
        points, sizes = _in_rows(points), np.full(count, 0.5)
    else:
        # As far apart at first that discs keep their order when they are drawn together.
        points *= 2.5 * np.sqrt((sizes**2).sum()) / max(float(np.hypot(*points.T).max()), 1e-9)
        points = _pushed_apart(points, sizes)
    points -= _centre(points, sizes)
    reach = float((np.hypot(*points.T) + sizes).max())
    return points / reach, sizes / reach


def _centre(points: _Points, sizes: _Points) -> _Points:
    """The centre of about the smallest disc around discs: a step towards the farthest one, ever shorter."""
    found = points.mean(axis=0)
    for turn in range(1, 300):
        away = points - found
        apart = np.hypot(*away.T)
        far = int((apart + sizes).argmax())
        reach = float(apart[far] + sizes[far])
        found = found + away[far] / max(float(apart[far]), 1e-9) * reach / (turn + 1) * (apart[far] > 1e-9)
    return np.asarray(found)


def _projected(vectors: _Points) -> _Points:
    """The two directions in which vectors differ most."""
    centred = vectors - vectors.mean(axis=0)
    found = np.zeros((len(vectors), 2))
    if np.abs(centred).max() > 1e-9:
        left, values, _ = np.linalg.svd(centred, full_matrices=False)
        left, values = left[:, :2], values[:2]
        # Of either sign, the one whose largest part is positive; both directions count nearly alike.
        left = left * np.where(left[np.abs(left).argmax(axis=0), range(left.shape[1])] < 0, -1.0, 1.0)
        found[:, : left.shape[1]] = left * np.sqrt(np.maximum(values, 1e-12))
    # No two at the same place.
    angle = np.arange(len(vectors)) * 2.399963229728653
    return found + 1e-3 * np.column_stack([np.cos(angle), np.sin(angle)])


def _in_rows(points: _Points) -> _Points:
    """Very many: in rows of a square, by the first direction and then by the second."""
    count = len(points)
    per_row = int(np.ceil(np.sqrt(count)))
    found = np.zeros_like(points)
    for row, members in enumerate(np.array_split(np.argsort(points[:, 0], kind="stable"), per_row)):
        inside = members[np.argsort(points[members, 1], kind="stable")]
        found[inside] = np.column_stack([np.full(len(inside), row), np.arange(len(inside))])
    return found


def _pushed_apart(points: _Points, sizes: _Points) -> _Points:
    """Draw discs towards the centre and push those apart that overlap, in turn."""
    found = points.copy()
    needed = (sizes[:, None] + sizes[None, :]) * 1.02
    np.fill_diagonal(needed, 0.0)
    share = (sizes**2)[None, :] / ((sizes**2)[:, None] + (sizes**2)[None, :])
    for turn in range(_ROUNDS):
        found *= 1 - 0.03 * max(0.0, 1 - turn / (0.75 * _ROUNDS))
        for _ in range(2 if turn < _ROUNDS - 40 else 6):
            away = found[:, None, :] - found[None, :, :]
            apart = np.sqrt((away**2).sum(axis=2))
            over = np.maximum(needed - apart, 0.0)
            if not over.any():
                break
            found += ((0.6 * over * share / np.maximum(apart, 1e-9))[:, :, None] * away).sum(axis=1)
    return found


def _turned(places: _Points, vectors: _Points, others: _Points, away: _Points) -> _Points:
    """Children turned, or mirrored, so that they lie towards those siblings of their parent that they are like."""
    if not len(others) or len(places) < 2:
        return places
    likeness = vectors @ others.T
    likeness -= likeness.mean(axis=0)
    # Where each child would lie if it could.
    wanted = likeness @ (away / np.maximum(np.hypot(*away.T), 1e-9)[:, None])
    best, found = -np.inf, places
    for mirrored in (1.0, -1.0):
        for turn in range(_TURNS):
            angle = 2 * np.pi * turn / _TURNS
            rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            tried = (places * [1.0, mirrored]) @ rotation.T
            fit = float((tried * wanted).sum())
            if fit > best + 1e-12:
                best, found = fit, tried
    return found


@one_blas_thread()
def place_documents(
    places: NodePlaces,
    nodes: npt.NDArray[np.int64],
    shares: FloatArray,
    vectors: FloatArray,
) -> FloatArray:
    """Where documents lie: a point for each.

    Parameters
    ----------
    nodes, shares : arrays of shape (documents, n)
        The most probable leaves of each document, the surest first, and their probabilities; 0 for none.
    vectors : array
        What documents are like; a few dimensions are enough.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> places = place_nodes(tree, np.eye(3, dtype=np.float32), [2, 1, 1])
    >>> nodes, shares = np.array([[1, 2], [2, 1]]), np.array([[0.9, 0.1], [0.6, 0.4]], dtype=np.float32)
    >>> found = place_documents(places, nodes, shares, np.eye(2, dtype=np.float32))
    >>> bool(np.hypot(*(found[0] - places.points[1])) < places.radii[1])
    True
    """
    own = nodes[:, 0]
    local = np.zeros((len(nodes), 2))
    order = np.argsort(own, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(own[order])) + 1) if len(order) else ():
        local[rows] = _filled(vectors[rows].astype(np.float64))
    radius = places.radii[own][:, None]
    found = places.points[own] + _FILLED * radius * local
    if nodes.shape[1] > 1:
        rivals, given = nodes[:, 1:], np.where(nodes[:, 1:] > 0, shares[:, 1:], 0.0).astype(np.float64)
        drawn = 2 * given / np.maximum(given + shares[:, :1], 1e-9)
        away = places.points[rivals] - places.points[own][:, None, :]
        far = np.sqrt((away**2).sum(axis=2))
        # Half-way between two leaves that are equally probable, if that is not too far.
        step = np.minimum(far / 2, _BEYOND * radius)
        weights = (given / np.maximum(given.sum(axis=1, keepdims=True), 1e-9)) * drawn
        found += ((weights * step / np.maximum(far, 1e-9))[:, :, None] * away).sum(axis=1)
    return found.astype(np.float32)


def _filled(vectors: _Points) -> _Points:
    """Points that fill the unit disc evenly, in the two directions in which documents differ most."""
    count = len(vectors)
    if count < 3:
        return np.array([[0.0, 0.0], [0.35, 0.0]])[:count]
    centred = vectors - vectors.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, [-1, -2]] if len(values) > 1 else np.repeat(axes, 2, axis=1)
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(2)] < 0, -1.0, 1.0)
    flat = centred @ axes
    flat /= np.maximum(flat.std(axis=0), 1e-9)
    length = np.hypot(*flat.T)
    rank = np.empty(count)
    rank[np.argsort(length, kind="stable")] = (np.arange(count) + 0.5) / count
    return np.asarray(flat / np.maximum(length, 1e-9)[:, None] * np.sqrt(rank)[:, None])


def main_directions(vectors: FloatArray, count: int = _KEPT) -> FloatArray:
    """A few directions in which vectors differ most, as columns.

    Examples
    --------
    >>> main_directions(np.eye(4, dtype=np.float32), 2).shape
    (4, 2)
    """
    centred = vectors - vectors.mean(axis=0)
    with one_blas_thread():
        _, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    return np.asarray(axes[:, ::-1][:, :count], dtype=np.float32)
