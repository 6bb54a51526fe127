"""All systems side by side: a dot for each mean, with its standard deviation."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from himecat.compare.figures.style import (
    COLOURS,
    INK,
    SHADE,
    SOFT,
    check_suffix,
    house_style,
    plain,
    save,
    shortened,
)
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.summaries import Measure, Summary, row_of, summarise_runs
from himecat.errors import UsageError

# Of a dataset; a longer name would run into the title of the next panel.
LONGEST_NAME = 40
# How micro and macro F1 look: filled and hollow, above and below the middle of the line.
LOOKS = (("micro", COLOURS[0], "o", -0.15), ("macro", COLOURS[1], "D", 0.15))


def draw_scores(runs: Sequence[Run], path: str | os.PathLike[str], *, ours: str = "") -> None:
    """Draw the F1 of every system, best first; a row of panels for each dataset.

    Parameters
    ----------
    runs : sequence of Run
        The runs; systems whose runs all failed are left out.
    path : path
        Where to write; `.png` or `.svg`.
    ours : str
        The name of the system to set off.

    Raises
    ------
    UsageError
        No run has scores, the suffix is another one, or matplotlib is missing.

    Examples
    --------
    >>> draw_scores([], "scores.png")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: There is no run with scores to draw.
    """
    check_suffix(path)
    found = {name: [row for row in rows if row.runs] for name, rows in summarise_runs(runs).items()}
    datasets = {name: rows for name, rows in found.items() if rows}
    if not datasets:
        raise UsageError("There is no run with scores to draw.")
    with house_style() as figures:
        heights = [0.9 + 0.36 * len(rows) for rows in datasets.values()]
        figure = figures(figsize=(9.5, sum(heights) + 0.35), layout="constrained")
        panels = figure.subplots(len(datasets), 2, squeeze=False, gridspec_kw={"height_ratios": heights})
        for (dataset, rows), (left, right) in zip(datasets.items(), panels, strict=True):
            first = Measure("leaf", "micro")
            ordered = sorted(rows, key=lambda row: -row.mean(first))
            for panel, part in ((left, "leaf"), (right, "overall")):
                _draw_panel(panel, ordered, part, row_of(rows, ours))
            left.set_title(f"{plain(shortened(dataset, LONGEST_NAME))}: leaf", loc="left")
            right.set_title("overall", loc="left")
            right.tick_params(labelleft=False)
        _explain(figure, panels[0][0])
        save(figure, path)


def _draw_panel(panel: Any, rows: Sequence[Summary], part: str, ours: Summary | None) -> None:
    highest = 0.0
    for average, colour, marker, shift in LOOKS:
        measure = Measure(part, average)
        for place, row in enumerate(rows):
            mean, sd = row.mean(measure), row.sd(measure)
            highest = max(highest, mean + (0 if math.isnan(sd) else sd))
            panel.errorbar(
                mean, place + shift, xerr=None if math.isnan(sd) else sd, fmt=marker, color=colour, markersize=6,
                markerfacecolor=colour if average == "micro" else "white", elinewidth=1.4, capsize=2.5, zorder=3,
            )  # fmt: skip
    # Room at the right for the number itself.
    panel.set_xlim(0, max(highest, 0.01) * 1.2)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    for place, row in enumerate(rows):
        bold = "bold" if row is ours else "normal"
        mean = row.mean(Measure(part, "micro"))
        panel.text(
            0.995, place, f"{mean:.3f}", transform=panel.get_yaxis_transform(), ha="right", va="center", fontsize=9,
            color=INK if row is ours else SOFT, fontweight=bold,
        )  # fmt: skip
        if row is ours:
            panel.axhspan(place - 0.5, place + 0.5, color=SHADE, lw=0, zorder=0)
    panel.set_yticks(range(len(rows)), [plain(shortened(row.name, 34)) for row in rows], color=INK)
    for label, row in zip(panel.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row is ours else "normal")
    panel.grid(axis="x")
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)


def _explain(figure: Any, panel: Any) -> None:
    """What the marks mean, once for the whole figure."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=colour, marker=marker, markerfacecolor=colour if average == "micro" else "white",
               linewidth=1.4, markersize=6, label=f"{average} F1")
        for average, colour, marker, _ in LOOKS
    ]  # fmt: skip
    figure.legend(handles=marks, loc="outside upper left", ncols=2)
    several = any(len(container) > 0 and container.has_xerr for container in panel.containers)
    figure.supxlabel(
        "F1; " + ("whiskers: one standard deviation; " if several else "") + "the number is micro F1",
        fontsize=9,
        color=SOFT,
    )
