"""A map of documents and categories as a picture."""

from __future__ import annotations

import os

import numpy as np

from himecat.compare.figures.label_map import short_name
from himecat.compare.figures.style import INK, SOFT, check_suffix, house_style, look, plain, save
from himecat.teaching.map import DocumentMap

_INCHES = 10.0
# The largest radius of a point, in points of print, and how much of the map all points cover.
_LARGEST, _COVERED = 2.2, 0.12


def draw_document_map(found: DocumentMap, path: str | os.PathLike[str], *, title: str = "") -> None:
    """Draw the documents in the colours of their categories of the first level, with the discs of all categories.

    Parameters
    ----------
    path : path
        Where to write; `.png` or `.svg`.
    title : str
        What stands above.

    Raises
    ------
    UsageError
        The suffix is another one, or matplotlib is missing.
    """
    check_suffix(path)
    tree = found.taxonomy
    number = {node: place for place, node in enumerate(tree.children[0])}
    top = np.array([number[tree.lineages[node][0]] if node else -1 for node in tree])
    radius = min(_LARGEST, np.sqrt(_COVERED / max(len(found), 1)) * 36 * _INCHES)
    with house_style() as figures:
        figure = figures(figsize=(_INCHES, _INCHES))
        panel = figure.add_axes((0, 0, 1, 1), xlim=(-1.03, 1.03), ylim=(-1.03, 1.03))
        panel.axis("off")
        for place in range(-1, len(number)):
            rows = np.flatnonzero(top[found.nodes] == place)
            if len(rows):
                colour = look(place)[0] if place >= 0 else SOFT
                panel.scatter(
                    *found.points[rows].T, s=(2 * radius) ** 2, c=colour, alpha=0.55, linewidths=0, rasterized=True,
                    zorder=2,
                )  # fmt: skip
        angle = np.linspace(0, 2 * np.pi, 90)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        for node in range(1, len(tree)):
            ring = found.places[node] + found.radii[node] * circle
            panel.plot(
                *ring.T, color=SOFT, linewidth=0.9 if tree.depths[node] == 1 else 0.4, alpha=0.6, zorder=1
            )
            _write_name(panel, found, node)
        if title:
            panel.text(-1.0, 1.0, plain(title), va="top", fontweight="bold", fontsize=12, color=INK)
        save(figure, path)


def _write_name(panel: object, found: DocumentMap, node: int) -> None:
    """The name of a category, as large as its disc has room for; none where that is too small to read."""
    tree = found.taxonomy
    name = plain(short_name(tree, node))
    main = tree.depths[node] == 1
    # A character is about half as wide as it is high.
    room = 2 * float(found.radii[node]) * 36 * _INCHES / 1.03
    size = min(13.0 if main else 8.0, room / (0.55 * max(len(name), 1)) * (1.6 if main else 1.15))
    if size < 3.5:
        return
    x, y = (float(one) for one in found.places[node])
    leaf = tree.is_leaf(node)
    panel.text(  # type: ignore[attr-defined]
        x, y if leaf else y + float(found.radii[node]), name, fontsize=size, color=INK, ha="center",
        va="center" if leaf else "bottom", fontweight="bold" if main else "normal", zorder=4,
        bbox={"facecolor": "white", "alpha": 0.65, "linewidth": 0, "pad": 0.6},
    )  # fmt: skip
