"""What the page shows of a model as a whole: its figures, and its tree with counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from himecat import __version__
from himecat.server.placing import UNLABELLED
from himecat.server.workspace import ROOT, Workspace


def about(workspace: Workspace) -> dict[str, Any]:
    """What the page shows of the model."""
    view = workspace.view
    quality = view.model.quality_
    levels = None
    if quality is not None and quality.levels:
        levels = [
            {"level": one.level, "estimate": one.accuracy, "low": one.low, "high": one.high}
            for one in quality.levels
        ]
    return {
        "name": workspace.folder.name,
        "himecat": __version__,
        "tree_version": workspace.tree_version,
        "model_version": view.version,
        "documents": len(view.placed),
        "labelled": int((view.placed.labels != UNLABELLED).sum()),
        "answered": int(workspace.answered.sum()),
        "last_action": workspace.log.last,
        "metadata": list(view.model.fields().metadata),
        "levels": view.tree.depth,
        "accuracy": levels,
        "can_go_back": workspace.before.is_dir(),
        "source": workspace.source,
        "several": view.model.gives_sets,
        "knows_none": view.model.knows_nowhere,
    }


def counts(workspace: Workspace) -> npt.NDArray[np.int64]:
    """How many documents are at or below each category."""
    tree = workspace.view.tree
    found = np.bincount(workspace.effective[workspace.effective >= 0], minlength=len(tree))
    for node in range(len(tree) - 1, 0, -1):
        found[tree.parents[node]] += found[node]
    return found


def tree_of(workspace: Workspace) -> dict[str, Any]:
    """All categories, with how many documents are at or below each."""
    view = workspace.view
    tree, placed = view.tree, view.placed
    here = np.where(workspace.effective >= 0, workspace.effective, 0)
    counts = np.bincount(here, weights=workspace.effective >= 0, minlength=len(tree))
    # Documents known to belong nowhere have no confidence to add.
    sure = np.bincount(here, weights=view.confidence * (workspace.effective >= 0), minlength=len(tree))
    has_label = placed.labels >= 0
    labelled = np.bincount(placed.labels[has_label], minlength=len(tree))
    accuracy = _leaf_accuracy(workspace)
    right, known = np.zeros(len(tree)), np.zeros(len(tree))
    for node, one in accuracy.items():
        right[node], known[node] = one * max(counts[node], 1), max(counts[node], 1)
    for node in range(len(tree) - 1, 0, -1):
        for sums in (counts, sure, labelled, right, known):
            sums[tree.parents[node]] += sums[node]
    nodes = [
        {
            "node": node,
            "parent": None if node == ROOT else int(tree.parents[node]),
            "name": tree.names[node],
            "depth": int(tree.depths[node]),
            "leaf": tree.is_leaf(node),
            "count": int(counts[node]),
            "labelled": int(labelled[node]),
            "confidence": round(float(sure[node] / counts[node]), 4) if counts[node] else None,
            "accuracy": round(float(right[node] / known[node]), 4) if known[node] else None,
        }
        for node in range(len(tree))
    ]
    return {"tree_version": workspace.tree_version, "nodes": nodes}


def _leaf_accuracy(workspace: Workspace) -> dict[int, float]:
    quality, tree = workspace.view.model.quality_, workspace.view.tree
    found = {}
    for one in () if quality is None else quality.leaves:
        node = tree.walk(list(one.path))
        if one.precision is not None and node is not None:
            found[node] = one.precision
    return found
