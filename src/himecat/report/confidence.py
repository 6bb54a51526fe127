"""How confidence relates to being right, as two small drawings and one table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.metrics import Outcome
from himecat.report.documents import PlacedDocuments
from himecat.report.markup import count, percent, table

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bin:
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


def kept_and_right(certainty: FloatArray, right: BoolArray) -> tuple[FloatArray, FloatArray]:
    """For every confidence threshold, the share of documents at or above it and how many of those are right.

    Documents of equal confidence are kept or left together, so their order does not matter.

    Examples
    --------
    >>> kept, good = kept_and_right(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    >>> kept.tolist(), [round(share, 2) for share in good.tolist()]
    ([0.25, 0.75, 1.0], [1.0, 0.67, 0.5])
    """
    order = np.argsort(-certainty, kind="stable")
    ranked = certainty[order]
    last_of_its_kind = np.append(ranked[1:] != ranked[:-1], True)
    number = np.arange(1, len(order) + 1)
    good = np.cumsum(right[order]) / number
    return (number / len(order))[last_of_its_kind], good[last_of_its_kind]


def confidence_section(placed: PlacedDocuments) -> str:
    """Both drawings with their table, or a sentence where no truth is known."""
    chosen = placed.known & (placed.nodes > 0)
    if not chosen.any():
        return '<p class="empty">No document with a known category was assigned one.</p>'
    certainty = np.clip(placed.certainty[chosen], 0.0, 1.0)
    right = placed.outcome[chosen] != Outcome.WRONG
    bins = reliability(certainty, right)
    kept, good = kept_and_right(certainty, right)
    return (
        f'<p class="muted">{count(int(chosen.sum()))} documents with a known and an assigned category. '
        "Right means that the assigned path is right as far as it goes.</p>\n"
        f'<div class="plots">{_figure(_reliability_svg(bins), *_RELIABILITY_TEXT)}\n'
        f"{_figure(_kept_svg(kept, good), *_KEPT_TEXT)}</div>\n{_kept_table(certainty, kept, good)}"
    )


_RELIABILITY_TEXT = (
    "Is it as right as it is sure?",
    "Each dot is a group of documents of similar confidence, larger for more documents. On the dashed line "
    "confidence can be taken at its word; above it the model is too modest, below it too sure.",
)
_KEPT_TEXT = (
    "Does leaving out unsure ones help?",
    "Keep only the most confident documents, from left (few) to right (all): the line is the share of right "
    "ones among those kept.",
)


def _figure(svg: str, title: str, text: str) -> str:
    return f"<figure>{svg}<figcaption><b>{title}</b> {text}</figcaption></figure>"


def _kept_table(certainty: FloatArray, kept: FloatArray, good: FloatArray) -> str:
    thresholds = np.unique(certainty)[::-1]
    rows = []
    shown: set[int] = set()
    for share in (0.1, 0.25, 0.5, 0.75, 1.0):
        # The strictest threshold that keeps at least this share.
        position = min(int(np.searchsorted(kept, share - 1e-9)), len(kept) - 1)
        if position not in shown:
            shown.add(position)
            cells = (percent(kept[position]), f"{thresholds[position]:.3f}", percent(good[position]))
            rows.append("<tr>" + "".join(f'<td class="n">{cell}</td>' for cell in cells) + "</tr>")
    headings = [
        f'<th scope="col" class="n">{h}</th>' for h in ("Documents kept", "Confidence at least", "Right")
    ]
    return table(headings, rows, "narrow")


# The drawing area inside a 360 x 260 picture.
_LEFT, _TOP, _WIDTH, _HEIGHT = 48, 12, 296, 196


def _x(value: float) -> str:
    return f"{_LEFT + _WIDTH * value:.1f}"


def _y(value: float) -> str:
    return f"{_TOP + _HEIGHT * (1 - value):.1f}"


def _frame(title: str, across: str, up: str, content: str) -> str:
    lines = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        label = f"{100 * tick:.0f}%"
        lines.append(f'<line class="grid" x1="{_x(0)}" x2="{_x(1)}" y1="{_y(tick)}" y2="{_y(tick)}"/>')
        lines.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{_y(tick)}" dy="4" text-anchor="end">{label}</text>'
        )
        lines.append(
            f'<text class="tick" x="{_x(tick)}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{label}</text>'
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


def _kept_svg(kept: FloatArray, good: FloatArray) -> str:
    # The share among a handful of documents jumps about and says nothing.
    steady = np.flatnonzero(kept >= 0.02)
    points = steady[np.unique(np.linspace(0, len(steady) - 1, 200).astype(np.int64))]
    line = " ".join(f"{_x(float(kept[i]))},{_y(float(good[i]))}" for i in points)
    end = points[-1]
    content = (
        f'<polyline class="curve" points="{line}"/>'
        f'<circle class="dot" cx="{_x(float(kept[end]))}" cy="{_y(float(good[end]))}" r="4">'
        f"<title>all documents: {percent(float(good[end]))} right</title></circle>"
    )
    return _frame(
        "Share of right documents among those kept", "share of documents kept", "share right", content
    )
