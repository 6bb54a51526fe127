"""The labels of a tree as a map: t-SNE of their vectors, with the tree's edges."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.compare.figures.placement import place_names
from himecat.compare.figures.style import INK, SOFT, check_suffix, house_style, look, plain, save, shortened
from himecat.errors import UsageError
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.matrices import unit

FloatArray = npt.NDArray[np.float64]

_MARGIN = 40.0
_LONGEST_NAME = 28
# t-SNE has no neighbours to go by among fewer.
_FEWEST = 5


def draw_label_map(
    vectors: npt.ArrayLike, taxonomy: Taxonomy, path: str | os.PathLike[str], *, title: str = ""
) -> None:
    """Draw the labels of a tree where t-SNE puts their vectors.

    Names do not overlap: one that finds no room near its point is left out, and the figure says how many are.
    Points have the colour and shape of their category of the first level.

    Parameters
    ----------
    vectors : array
        A vector for each node of the tree, the root among them, as in `JointSpace.labels`.
    taxonomy : Taxonomy
        The tree.
    path : path
        Where to write; `.png` or `.svg`.
    title : str
        What stands above.

    Raises
    ------
    UsageError
        There is not one finite vector per node, the suffix is another one, or matplotlib is missing.

    Examples
    --------
    >>> draw_label_map(np.eye(2), Taxonomy.from_paths([("a",), ("b",)]), "map.svg")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: A map needs a vector for each of the 3 nodes of the tree, not 2.
    """
    check_suffix(path)
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(taxonomy):
        raise UsageError(
            f"A map needs a vector for each of the {len(taxonomy)} nodes of the tree, not {len(rows)}."
        )
    if not np.isfinite(rows).all():
        raise UsageError("A map needs vectors of numbers: some are infinite or missing.")
    width = 72 * min(max(math.sqrt(len(taxonomy)), 8.5), 20.0)
    height = 0.8 * width
    points = _spread_out(project(rows), width, height)
    with house_style() as figures:
        figure = figures(figsize=(width / 72, height / 72))
        # One unit is one point of print, so that names can be measured and placed in it.
        panel = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
        panel.axis("off")
        _draw_tree(panel, points, taxonomy)
        missing = _draw_names(figure, panel, points, taxonomy)
        if title:
            panel.text(8, height - 8, plain(title), va="top", fontweight="bold", fontsize=11)
        note = "t-SNE of the label vectors, with the edges of the tree"
        if len(rows) < _FEWEST:
            note = "The tree; too few labels for a map of their vectors"
        if missing:
            note += f"; {missing} name{'s' if missing > 1 else ''} left out for want of room"
        panel.text(8, 5, note, fontsize=8, color=SOFT)
        save(figure, path)


def project(vectors: FloatArray) -> FloatArray:
    """Two coordinates for each vector, by t-SNE of cosine distances; the same every time.

    Examples
    --------
    >>> project(np.eye(8)).shape, project(np.ones((2, 5))).shape
    ((8, 2), (2, 2))
    """
    count = len(vectors)
    if count < _FEWEST:
        # Too few for t-SNE to have neighbours: a row of points.
        return np.column_stack([np.arange(count), np.arange(count) % 2]).astype(np.float64)
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    units = unit(vectors)
    with threadpool_limits(1):
        # Between unit vectors, Euclidean distances rank like cosines.
        finder = TSNE(
            perplexity=min(20.0, (count - 1) / 3),
            # There are no principal components where all vectors are equal, and only one of single numbers.
            init="pca" if units.shape[1] > 1 and np.ptp(units, axis=0).any() else "random",
            random_state=0,
            method="exact",
        )
        found: FloatArray = finder.fit_transform(units).astype(np.float64)
    return found


def short_name(taxonomy: Taxonomy, node: int) -> str:
    """The name of a node without what it repeats of its parent's.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("cs", "cs.AI"), ("games", "games-board"), ("arts", "artsy")])
    >>> [short_name(tree, leaf) for leaf in tree.leaves]
    ['AI', 'board', 'artsy']
    """
    name, parent = taxonomy.names[node], taxonomy.names[max(taxonomy.parents[node], 0)]
    if taxonomy.depths[node] > 1 and name.startswith(parent):
        rest = name[len(parent) :]
        if re.match(r"[\s._:/-]+\w", rest):
            name = rest.lstrip(" \t._:/-")
    return shortened(name, _LONGEST_NAME)


def _spread_out(points: FloatArray, width: float, height: float) -> FloatArray:
    """Fill the figure; both axes by themselves, as t-SNE gives neither a meaning."""
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    shares = np.where(span > 0, (points - low) / np.where(span > 0, span, 1.0), 0.5)
    return np.asarray(_MARGIN + shares * (np.array([width, height]) - 2 * _MARGIN))


def _first_level(taxonomy: Taxonomy) -> dict[int, int]:
    """For every node but the root, the number of its category of the first level."""
    numbers = {node: number for number, node in enumerate(taxonomy.children[0])}
    return {node: numbers[taxonomy.lineages[node][0]] for node in taxonomy if node}


def _draw_tree(panel: Any, points: FloatArray, taxonomy: Taxonomy) -> None:
    category = _first_level(taxonomy)
    for node in taxonomy:
        if node:
            ends = points[[taxonomy.parents[node], node]]
            top = taxonomy.parents[node] == 0
            panel.plot(
                *ends.T, color=SOFT if top else look(category[node])[0], linewidth=1.0 if top else 0.7,
                linestyle=(0, (4, 3)) if top else "-", alpha=0.6 if top else 0.45, zorder=1,
            )  # fmt: skip
    panel.plot(*points[0], marker="*", color=INK, markersize=15, markeredgecolor="white", zorder=4)
    for node, number in category.items():
        colour, marker = look(number)
        size = _marker_size(taxonomy, node)
        panel.plot(
            *points[node], marker=marker, color=colour, markersize=size, markeredgecolor="white", markeredgewidth=0.6,
            zorder=4 if taxonomy.depths[node] == 1 else 3,
        )  # fmt: skip


def _marker_size(taxonomy: Taxonomy, node: int) -> float:
    return 12.0 if taxonomy.depths[node] == 1 else 5.5 if taxonomy.is_leaf(node) else 8.0


def _draw_names(figure: Any, panel: Any, points: FloatArray, taxonomy: Taxonomy) -> int:
    """Write the names that have room; gives how many have not."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    category = _first_level(taxonomy)
    room = Bbox([[3, 16], [panel.get_xlim()[1] - 3, panel.get_ylim()[1] - 22]])
    # At 72 dots per inch what is measured is in points of print.
    figure.set_dpi(72)
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    texts = []
    for node in taxonomy:
        main = taxonomy.depths[node] <= 1
        colour = INK if node == 0 else _darker(look(category[node])[0])
        name = taxonomy.names[0] if node == 0 else short_name(taxonomy, node)
        text = panel.text(
            *points[node], plain(name), color=colour, ha="center", va="center", fontsize=11 if main else 7.5,
            fontweight="bold" if main else "normal", zorder=6 if main else 5,
        )  # fmt: skip
        texts.append(text)
    boxes = [text.get_window_extent(renderer) for text in texts]
    sizes = np.array([(box.width + 3, box.height + 1) for box in boxes])
    radii = np.array([9.0, *(_marker_size(taxonomy, node) / 2 + 1 for node in range(1, len(taxonomy)))])
    places = place_names(points, sizes, radii, _in_turn(points, taxonomy), room)
    for node, (text, place) in enumerate(zip(texts, places, strict=True)):
        if place is None:
            text.remove()
            continue
        text.set_position((place.p0 + place.p1) / 2)
        text.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8})
        near = np.clip(points[node], place.p0, place.p1)
        if np.hypot(*(near - points[node])) > radii[node] + 5:
            panel.plot(*np.array([points[node], near]).T, color=SOFT, linewidth=0.6, alpha=0.6, zorder=2)
    return sum(place is None for place in places)


def _in_turn(points: FloatArray, taxonomy: Taxonomy) -> list[int]:
    """Whose name is placed first: higher levels, then those in a crowd."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    crowd = (distances < 40).sum(axis=1)
    return sorted(
        taxonomy, key=lambda node: (min(taxonomy.depths[node], 2), taxonomy.is_leaf(node), -crowd[node], node)
    )


def _darker(colour: str) -> str:
    """A colour to write in: the light ones of the palette are hard to read on white."""
    channels = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(0.68 * channel):02x}" for channel in channels)
