"""Scores of systems on documents that have several paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from himecat.classifier.assignments import Assignments
from himecat.classifier.set_assignments import SetAssignments
from himecat.evaluation.reliability import calibration_error
from himecat.evaluation.set_metrics import SetScores, score_sets
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy


def scores_of_sets(taxonomy: Taxonomy, truth: Supervision, found: Any) -> SetScores:
    """The scores of what a system gave for all documents; a system that gives one node each gives sets of one.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> truth = Supervision(np.array([0, 0, 1]), np.array([1, 2, 1]))
    >>> round(scores_of_sets(tree, truth, np.array([1, 1])).categories.micro, 2)
    0.8
    """
    if isinstance(found, SetAssignments):
        return score_sets(taxonomy, truth, found.as_pairs())
    nodes = found.nodes if isinstance(found, Assignments) else np.asarray(found, dtype=np.int64)
    placed = np.flatnonzero(nodes)
    return score_sets(taxonomy, truth, Supervision(placed, nodes[placed]))


def calibration_of_sets(truth: Supervision, found: Any) -> list[float | None]:
    """Expected calibration error of the paths that documents were given, as a list of one; empty without sets."""
    if not isinstance(found, SetAssignments):
        return []
    given = found.as_pairs()
    scored = np.isin(given.rows, truth.rows)
    size = len(found.taxonomy)
    right = np.isin(given.rows * size + given.nodes, truth.rows * size + truth.nodes)
    return [calibration_error(found.chances[scored], right[scored]) if scored.any() else None]
