"""Calibration and selective prediction: how well confidence tells right from wrong.

Confidence and truth are compared in two ways. *Calibration*: of the documents with a confidence of about 0.8,
about 80 % should be right. *Risk and coverage*: when only documents of a certain confidence are placed, how
many are placed (coverage), and how many of those wrongly (risk).

A threshold always includes its own value, as `min_confidence` does: a document is placed where its confidence
is at least the threshold. Documents of equal confidence are therefore placed or left together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments
from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import checked_nodes
from himecat.input.taxonomy.tree import Taxonomy

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Sums of 32-bit probabilities may miss 0 and 1 by about this much.
_ROUNDING = 1e-5


def calibration_error(confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: int = 15) -> float:
    """Expected calibration error: how far the share of right ones lies from the confidence, on average.

    The confidences are sorted into equally wide bins. The error of a bin is the distance between its mean
    confidence and its share of right ones; the bins are weighted by their number of documents. A confidence
    on the border of two bins belongs to the upper one.

    Parameters
    ----------
    confidence : array of float
        One value from 0 to 1 per document.
    correct : array of bool
        Whether the document is right.
    bins : int
        Number of bins.

    Examples
    --------
    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    >>> calibration_error([1.0, 1.0], [True, False])
    0.5
    """
    if bins < 1:
        raise UsageError(f"bins must be at least 1, not {bins}.")
    confidence, correct = _checked(confidence, correct)
    outside = np.flatnonzero((confidence < -_ROUNDING) | (confidence > 1 + _ROUNDING))
    if len(outside):
        raise UsageError(
            f"confidence[{outside[0]}] is {confidence[outside[0]]}: it must lie between 0 and 1."
        )
    confidence = np.clip(confidence, 0.0, 1.0)
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    # The size of a bin cancels out: its weight times the distance of two means is the distance of two sums.
    gaps = np.bincount(bin_of, weights=confidence - correct, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def level_verdicts(
    taxonomy: Taxonomy, truth: npt.ArrayLike, nodes: npt.ArrayLike
) -> tuple[BoolArray, BoolArray]:
    """Which levels of each assigned path can be judged, and which of those are right.

    A level can be judged where the assigned path reaches it and the truth is known so far: down to the level
    itself, or to a leaf above it. Below a true leaf there is nothing, so a path that goes deeper there is
    wrong. Where the truth ends at an inner category above the level, the level is left out even if the path
    was wrong before: which of such documents are right is not known, so counting only the wrong ones would make
    the model look overconfident.

    Parameters
    ----------
    taxonomy : Taxonomy
    truth, nodes : array of int
        The deepest known and the deepest assigned node of every document; 0, the root, where there is none.

    Returns
    -------
    judged, right : arrays of bool of shape (documents, depth)

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("art", "film"), ("art", "music"), ("sport",)])
    >>> art, sport, film, music = range(1, 5)
    >>> judged, right = level_verdicts(tree, [film, art, sport], [music, music, music])
    >>> judged.tolist()
    [[True, True], [True, False], [True, True]]
    >>> right.tolist()
    [[True, False], [True, False], [False, False]]
    """
    true, given = (checked_nodes(taxonomy, name, ids) for name, ids in (("truth", truth), ("nodes", nodes)))
    if len(true) != len(given):
        raise UsageError(f"There are {len(true)} true categories but {len(given)} assigned ones.")
    known, path = taxonomy.lineage_rows(true), taxonomy.lineage_rows(given)
    ends_at_leaf = taxonomy.leaf_position[true] >= 0
    judged = (path > 0) & ((known > 0) | ends_at_leaf[:, None])
    return judged, judged & (known == path)


def level_calibration(
    taxonomy: Taxonomy, truth_nodes: npt.ArrayLike, assignments: Assignments, bins: int = 15
) -> list[float]:
    """Expected calibration error of each level, top-down.

    At each level the confidence of the path's node is compared with whether the true path passes through that
    node. Which documents count at which level is the rule of `level_verdicts`. A level where no document
    counts has NaN.

    Parameters
    ----------
    taxonomy : Taxonomy
    truth_nodes : array of int
        The deepest known node of every document; 0, the root, where nothing is known.
    assignments : Assignments
        Where the documents were placed.
    bins : int
        Number of bins.

    Examples
    --------
    >>> from himecat.classifier.assignments import assign
    >>> tree = Taxonomy.from_paths([("art", "film"), ("art", "music")])
    >>> film, music = tree.leaves
    >>> placed = assign(tree, np.array([[0.75, 0.25], [0.75, 0.25]], dtype=np.float32))
    >>> level_calibration(tree, [film, music], placed)
    [0.0, 0.25]
    """
    judged, right = level_verdicts(taxonomy, truth_nodes, assignments.nodes)
    return [
        calibration_error(assignments.confidence[rows, level], right[rows, level], bins)
        if rows.any()
        else float("nan")
        for level, rows in enumerate(judged.T)
    ]


def risk_coverage(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """For every threshold, the share of documents placed and the share of wrong ones among them.

    There is one entry for each distinct confidence, from the highest, where few are placed, to the lowest,
    where all are.

    Examples
    --------
    >>> coverage, risk = risk_coverage([0.9, 0.5, 0.5, 0.1], [True, True, False, False])
    >>> coverage.tolist(), [round(share, 2) for share in risk.tolist()]
    ([0.25, 0.75, 1.0], [0.0, 0.33, 0.5])
    """
    _, placed, wrong = _by_threshold(*_checked(confidence, correct))
    return placed / placed[-1], wrong / placed


def area_under_risk_coverage(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Mean risk over all coverages; 0 is best, and the overall share of wrong ones is what guessing gives.

    Without equal confidences this is the mean of the risks of the 1, 2, 3, ... most confident documents.
    Documents of equal confidence all count with the risk of placing the whole group.

    Examples
    --------
    >>> area_under_risk_coverage([0.9, 0.6, 0.3, 0.1], [True, True, True, False])
    0.0625
    >>> area_under_risk_coverage([0.5, 0.5, 0.5, 0.5], [True, True, True, False])
    0.25
    """
    coverage, risk = risk_coverage(confidence, correct)
    return float(np.diff(coverage, prepend=0.0) @ risk)


def threshold_for_precision(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, precision: float
) -> float | None:
    """The smallest confidence from which on the share of right ones is at least `precision`.

    It is one of the given confidences, so it is the `min_confidence` that places the most documents with that
    precision. None where no threshold reaches it.

    Examples
    --------
    >>> threshold_for_precision([0.9, 0.8, 0.6, 0.3], [True, True, False, False], 0.6)
    0.6
    >>> threshold_for_precision([0.9, 0.8], [False, True], 0.9) is None
    True
    """
    if not 0 <= precision <= 1:
        raise UsageError(f"precision must lie between 0 and 1, not {precision}.")
    thresholds, placed, wrong = _by_threshold(*_checked(confidence, correct))
    enough = np.flatnonzero((placed - wrong) / placed >= precision)
    return float(thresholds[enough[-1]]) if len(enough) else None


def _by_threshold(confidence: FloatArray, correct: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The distinct confidences, falling, with the documents placed from each on and the wrong ones of them."""
    thresholds, group, sizes = np.unique(-confidence, return_inverse=True, return_counts=True)
    wrong = np.bincount(group, weights=~correct, minlength=len(thresholds))
    return -thresholds, np.cumsum(sizes).astype(np.float64), np.cumsum(wrong)


def _checked(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    values, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct)
    if values.ndim != 1 or values.shape != right.shape:
        raise UsageError(
            "confidence and correct must be two flat lists of the same length, not arrays of the shapes "
            f"{values.shape} and {right.shape}."
        )
    if not len(values):
        raise DataError("There is no document to judge the confidence by.")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise UsageError(f"confidence[{row}] is {values[row]}: leave out documents that were not placed.")
    return values, right.astype(np.bool_)
