"""How confidence relates to being right, as two small drawings and three tables."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.evaluation.reliability import (
    area_under_risk_coverage,
    calibration_error,
    level_verdicts,
    risk_coverage,
    threshold_for_precision,
)
from himecat.evaluation.report.documents import PlacedDocuments
from himecat.evaluation.report.markup import count, number_table, percent
from himecat.input.taxonomy.tree import Taxonomy

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Bin(NamedTuple):
    """Documents of about the same confidence."""

    confidence: float
    right: float
    documents: int


def reliability(certainty: FloatArray, right: BoolArray, bins: int = 10) -> list[Bin]:
    """Mean confidence and share of right ones in equally wide bins of confidence; empty bins are left out.

    Examples
    --------
    >>> reliability(np.array([0.91, 0.99, 0.2]), np.array([True, False, False]))[-1]
    Bin(confidence=0.95, right=0.5, documents=2)
    """
    place = np.clip((certainty * bins).astype(np.int64), 0, bins - 1)
    found = []
    for position in np.unique(place):
        inside = place == position
        found.append(Bin(float(certainty[inside].mean()), float(right[inside].mean()), int(inside.sum())))
    return found


class RiskPoint(NamedTuple):
    """What a threshold gives: the share placed, and what is promised and true of those."""

    threshold: float
    coverage: float
    risk: float
    promised: float


def risk_points(certainty: FloatArray, right: BoolArray) -> list[RiskPoint]:
    """One point for every distinct confidence, from the highest on; risks are shares of wrong ones.

    The promised risk is what the confidences themselves say: a document with a confidence of 0.8 is wrong
    with a probability of 0.2.

    Examples
    --------
    >>> risk_points(np.array([0.75, 0.5, 0.5]), np.array([True, True, False]))[0]
    RiskPoint(threshold=0.75, coverage=0.3333333333333333, risk=0.0, promised=0.25)
    """
    thresholds, sizes = np.unique(-certainty, return_counts=True)
    promised = 1 + np.cumsum(thresholds * sizes) / np.cumsum(sizes)
    columns = (-thresholds, *risk_coverage(certainty, right), promised)
    return [RiskPoint(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]


def confidence_section(taxonomy: Taxonomy, placed: PlacedDocuments) -> str:
    """Both drawings with their tables, or a sentence where no truth is known.

    Documents whose known path ends at an inner category above the assigned one are left out: whether they are
    right is not known.
    """
    assigned = placed.known & (placed.nodes > 0)
    judged, correct = level_verdicts(taxonomy, placed.truths[assigned], placed.nodes[assigned])
    last = np.asarray(taxonomy.depths)[placed.nodes[assigned]] - 1
    rows = np.arange(len(last))
    comparable = judged[rows, last]
    if not comparable.any():
        return '<p class="empty">No document with a known category was assigned one.</p>'
    certainty = np.clip(placed.certainty[assigned][comparable], 0.0, 1.0)
    right = correct[rows, last][comparable]
    left_out = int((~comparable).sum())
    more = f" Left out because their known path ends above the assigned one: {count(left_out)}."
    points = risk_points(certainty, right)
    # A threshold is shown with three digits, and what stands beside it should hold for those digits.
    rounded = np.floor(certainty * 1000 + 1e-6) / 1000
    shown = _a_few(risk_points(rounded, right))
    area = area_under_risk_coverage(certainty, right)
    levels = _level_table(placed.confidence[assigned], judged, correct)
    return (
        f'<p class="muted">{count(int(comparable.sum()))} documents with a known and an assigned category. '
        f"Right means that the assigned path is right as far as it goes.{more if left_out else ''}</p>\n"
        f'<div class="plots">{_figure(_reliability_svg(reliability(certainty, right)), *_RELIABILITY_TEXT)}\n'
        f"{_figure(_risk_svg(points, shown), *_RISK_TEXT, f' Mean error over all coverages: {area:.3f}.')}</div>\n"
        f'<div class="tables"><div><h3>What a threshold gives</h3>\n{_threshold_table(shown)}</div>\n'
        f"<div><h3>What a precision costs</h3>\n{_precision_table(rounded, right)}</div>\n"
        f"<div><h3>Confidence by level</h3>\n{levels}</div></div>"
    )


_RELIABILITY_TEXT = (
    "Is it as right as it is sure?",
    "Each dot is a group of documents of similar confidence, larger for more documents. On the dashed line "
    "confidence is calibrated; above it the model is underconfident, below it overconfident.",
)
_RISK_TEXT = (
    "How many errors come with more documents?",
    "Place only the most confident documents, from left (few) to right (all): the line is the share of wrong "
    "ones among those placed. The dashed line is the share that the confidences promise; where the line runs "
    "above it, the model is overconfident.",
)


def _figure(svg: str, title: str, text: str, more: str = "") -> str:
    return f"<figure>{svg}<figcaption><b>{title}</b> {text}{more}</figcaption></figure>"


def _a_few(points: list[RiskPoint]) -> list[RiskPoint]:
    """For some round coverages, the strictest threshold that reaches them."""
    coverages = [point.coverage for point in points]
    positions = (bisect_left(coverages, share - 1e-9) for share in (0.1, 0.25, 0.5, 0.75, 1.0))
    return [points[position] for position in dict.fromkeys(min(p, len(points) - 1) for p in positions)]


def _threshold_table(points: list[RiskPoint]) -> str:
    return number_table(
        ("Threshold", "Placed", "Right", "Promised"),
        (
            [f"{point.threshold:.3f}", *map(percent, (point.coverage, 1 - point.risk, 1 - point.promised))]
            for point in points
        ),
    )


def _precision_table(certainty: FloatArray, right: BoolArray) -> str:
    rows = []
    for precision in (0.8, 0.9, 0.95, 0.99):
        threshold = threshold_for_precision(certainty, right, precision)
        if threshold is None:
            rows.append((percent(precision), "out of reach", "–"))
        else:
            share = float(np.mean(certainty >= threshold))
            rows.append((percent(precision), f"{threshold:.3f}", percent(share)))
    return number_table(("Right at least", "Threshold", "Placed"), rows)


def _level_table(confidence: FloatArray, judged: BoolArray, correct: BoolArray) -> str:
    rows = []
    for level in range(confidence.shape[1]):
        inside = judged[:, level]
        cells = [str(level + 1), count(int(inside.sum())), "–", "–", "–"]
        if inside.any():
            sure, right = np.clip(confidence[inside, level], 0.0, 1.0), correct[inside, level]
            cells[2:4] = percent(float(right.mean())), percent(float(sure.mean()))
            cells[4] = f"{calibration_error(sure, right):.3f}"
        rows.append(cells)
    error = '<abbr title="expected calibration error">ECE</abbr>'
    return number_table(("Level", "Documents", "Right", "Promised", error), rows)


# The drawing area inside a 360 x 260 picture.
_LEFT, _TOP, _WIDTH, _HEIGHT = 48, 12, 296, 196


def _x(value: float) -> str:
    return f"{_LEFT + _WIDTH * value:.1f}"


def _y(value: float) -> str:
    return f"{_TOP + _HEIGHT * (1 - value):.1f}"


def _frame(title: str, across: str, up: str, content: str, highest: float = 1.0) -> str:
    """Axes from 0 to 100 % and from 0 to `highest` around a drawing."""
    lines = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        lines.append(f'<line class="grid" x1="{_x(0)}" x2="{_x(1)}" y1="{_y(tick)}" y2="{_y(tick)}"/>')
        lines.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{_y(tick)}" dy="4" text-anchor="end">'
            f"{100 * highest * tick:.0f}%</text>"
        )
        lines.append(
            f'<text class="tick" x="{_x(tick)}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">'
            f"{100 * tick:.0f}%</text>"
        )
    middle = _TOP + _HEIGHT / 2
    return (
        f'<svg viewBox="0 0 360 260" role="img" aria-label="{title}"><title>{title}</title>{"".join(lines)}'
        f'<text class="axis" x="{_x(0.5)}" y="{_TOP + _HEIGHT + 38}" text-anchor="middle">{across}</text>'
        f'<text class="axis" text-anchor="middle" transform="translate(11 {middle}) rotate(-90)">{up}</text>'
        f"{content}</svg>"
    )


def _reliability_svg(bins: list[Bin]) -> str:
    most = max(group.documents for group in bins)
    line = " ".join(f"{_x(group.confidence)},{_y(group.right)}" for group in bins)
    dots = "".join(
        f'<circle class="dot" cx="{_x(group.confidence)}" cy="{_y(group.right)}" '
        f'r="{3 + 6 * (group.documents / most) ** 0.5:.1f}"><title>{count(group.documents)} documents, '
        f"confidence {percent(group.confidence)}, right {percent(group.right)}</title></circle>"
        for group in bins
    )
    ideal = f'<line class="ideal" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>'
    content = f'{ideal}<polyline class="curve thin" points="{line}"/>{dots}'
    return _frame("Share of right documents by confidence", "confidence", "share right", content)


def _risk_svg(points: list[RiskPoint], marked: list[RiskPoint]) -> str:
    # The share among a handful of documents jumps about and says nothing.
    steady = [point for point in points if point.coverage >= 0.02]
    drawn = [steady[i] for i in np.unique(np.linspace(0, len(steady) - 1, 200).astype(np.int64))]
    worst = max(max(point.risk, point.promised) for point in drawn + marked)
    # Heights whose quarters are whole percentages.
    highest = next((height for height in (0.2, 0.4, 0.6, 0.8) if worst <= height), 1.0)
    line, promised = (
        " ".join(f"{_x(point.coverage)},{_y(getattr(point, name) / highest)}" for point in drawn)
        for name in ("risk", "promised")
    )
    dots = "".join(
        f'<circle class="dot" cx="{_x(point.coverage)}" cy="{_y(point.risk / highest)}" r="4">'
        f"<title>confidence at least {point.threshold:.3f}: {percent(point.coverage)} placed, "
        f"{percent(point.risk)} of them wrong</title></circle>"
        for point in marked
    )
    return _frame(
        "Share of wrong documents among those placed, by the share placed",
        "share of documents placed (coverage)",
        "share wrong among them (risk)",
        f'<polyline class="ideal" points="{promised}"/><polyline class="curve" points="{line}"/>{dots}',
        highest,
    )
