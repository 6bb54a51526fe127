"""A map as a page that needs no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from string import Template

import numpy as np

from himecat.evaluation.report.markup import escape
from himecat.runtime.files import write_atomic
from himecat.teaching.map import DocumentMap

# With more documents, their texts would make the page too large.
_MOST_TEXTS = 30_000


def map_page(found: DocumentMap, title: str = "Map") -> str:
    """A map as HTML: zoom, pan, what lies under the pointer; nothing is fetched.

    Examples
    --------
    >>> from himecat import Taxonomy
    >>> from himecat.teaching.map import arrange
    >>> tree, sure = Taxonomy.from_paths([("a",), ("b",)]), np.ones((2, 1), np.float32)
    >>> two = arrange(tree, np.eye(3, dtype=np.float32), np.array([[1], [2]]), sure, sure, ids=["x", "y"])
    >>> map_page(two).splitlines()[0]
    '<!DOCTYPE html>'
    """
    template, style, script = (
        files("himecat.teaching.map_page").joinpath(part).read_text("utf-8")
        for part in ("page.html", "style.css", "script.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    count = f"{len(found):,} document{'s' * (len(found) != 1)}, {found.taxonomy.n_leaves:,} leaves"
    return Template(template).substitute(
        title=escape(title),
        subtitle=count,
        style=style,
        script=script,
        script_hash=f"sha256-{digest}",
        data=_embedded(found),
    )


def write_map_page(path: str | os.PathLike[str], found: DocumentMap, title: str = "Map") -> None:
    """Write the page, whole or not at all."""
    write_atomic(path, map_page(found, title), what="The map")


def _embedded(found: DocumentMap) -> str:
    """The map as JSON inside an element: no text can end the element, or be half a character."""
    tree = found.taxonomy
    top = {node: number for number, node in enumerate(tree.children[0])}
    nodes = [
        {
            "x": round(float(found.places[node, 0]), 5),
            "y": round(float(found.places[node, 1]), 5),
            "radius": round(float(found.radii[node]), 5),
            "depth": tree.depths[node],
            "leaf": tree.is_leaf(node),
            "top": top[tree.lineages[node][0]] if node else -1,
            "short": short_name(tree.names[node], tree.names[max(tree.parents[node], 0)]),
            "path": list(tree.path(node)),
        }
        for node in tree
    ]
    data = {
        "documents": len(found),
        "points": base64.b64encode(_packed(found)).decode(),
        "nodes": nodes,
        "ids": list(found.ids),
        "texts": list(found.texts) if len(found.texts) <= _MOST_TEXTS else [],
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return text.replace("$", "\\u0024")


def _packed(found: DocumentMap) -> bytes:
    """Eight bytes for each document: place, node, confidence."""
    rows = np.zeros((len(found), 8), dtype=np.uint8)
    places = np.round((np.clip(found.points, -2, 2) + 2) / 4 * 65535).astype("<u2")
    rows[:, :4] = places.view(np.uint8).reshape(-1, 4)
    rows[:, 4:6] = (found.nodes % 65536).astype("<u2").view(np.uint8).reshape(-1, 2)
    rows[:, 6] = np.round(np.clip(found.confidence, 0, 1) * 255).astype(np.uint8)
    rows[:, 7] = found.nodes // 65536
    return rows.tobytes()


def short_name(name: str, parent: str) -> str:
    """A name without what it repeats of its parent's.

    Examples
    --------
    >>> short_name("cs.AI", "cs"), short_name("artsy", "arts")
    ('AI', 'artsy')
    """
    rest = name.removeprefix(parent)
    cut = rest.lstrip(" \t._:/-")
    return cut if rest != name and cut and cut != rest else name
