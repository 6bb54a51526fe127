"""One parameter at several values: lines of mean F1 with bands of one standard deviation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from himecat.compare.figures.scores import LONGEST_NAME, LOOKS
from himecat.compare.figures.style import INK, check_suffix, house_style, plain, save, shortened
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.summaries import Measure, Sweep, find_sweeps
from himecat.errors import UsageError


def draw_sweep(runs: Sequence[Run], path: str | os.PathLike[str], *, parameter: str = "") -> None:
    """Draw F1 by the value of one parameter; a row of panels for each dataset.

    Parameters
    ----------
    runs : sequence of Run
        Runs whose parameters differ in one value at a time.
    path : path
        Where to write; `.png` or `.svg`.
    parameter : str
        Which parameter, where the runs sweep several.

    Raises
    ------
    UsageError
        The runs sweep no parameter, or several and none is chosen; the suffix is another one, or matplotlib is
        missing.

    Examples
    --------
    >>> draw_sweep([], "sweep.png")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: There are no runs with scores that differ in one parameter.
    """
    check_suffix(path)
    sweeps = [sweep for sweep in find_sweeps(runs) if parameter in ("", sweep.parameter)]
    sweeps = [Sweep(s.dataset, s.parameter, tuple(row for row in s.rows if row.runs)) for s in sweeps]
    sweeps = [sweep for sweep in sweeps if sweep.rows]
    swept = list(dict.fromkeys(sweep.parameter for sweep in sweeps))
    if not swept:
        raise UsageError("There are no runs with scores that differ in one parameter.")
    if len(swept) > 1:
        raise UsageError(f"The runs sweep {' and '.join(swept)}: choose one of them for a figure.")
    with house_style() as figures:
        figure = figures(figsize=(9.5, 3.1 * len(sweeps)), layout="constrained")
        panels = figure.subplots(len(sweeps), 2, squeeze=False, sharey="row")
        for sweep, (left, right) in zip(sweeps, panels, strict=True):
            for panel, part in ((left, "leaf"), (right, "overall")):
                _draw_panel(panel, sweep, part)
            left.set_title(f"{plain(shortened(sweep.dataset, LONGEST_NAME))}: leaf", loc="left")
            right.set_title("overall", loc="left")
            left.set_ylabel("F1")
            _leave_room(left)
        save(figure, path)


def _draw_panel(panel: Any, sweep: Sweep, part: str) -> None:
    # Values of a sweep lie close together at one end: equal steps keep them apart.
    places = np.arange(len(sweep.rows))
    ends = []
    for average, colour, marker, _ in LOOKS:
        measure = Measure(part, average)
        means = np.array([row.mean(measure) for row in sweep.rows])
        sds = np.nan_to_num(np.array([row.sd(measure) for row in sweep.rows]))
        filled = colour if average == "micro" else "white"
        panel.plot(places, means, color=colour, marker=marker, markerfacecolor=filled, linewidth=2, zorder=3)
        if sds.any():
            panel.fill_between(places, means - sds, means + sds, color=colour, alpha=0.18, linewidth=0)
        ends.append((float(means[-1]), average, colour))
    panel.set_xticks(places, [plain(row.name) for row in sweep.rows])
    panel.set_xlim(-0.25, len(sweep.rows) - 0.35)
    panel.set_xlabel(f"{plain(sweep.parameter)} (steps not to scale)")
    panel.tick_params(labelcolor=INK)
    panel.grid(axis="y")
    _name_lines(panel, ends)


def _name_lines(panel: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write what each line is beside its end, the higher one above where they meet."""
    higher = max(ends)
    for value, average, colour in ends:
        panel.annotate(
            average, (1.0, value), xycoords=("axes fraction", "data"), xytext=(2, 7 if average == higher[1] else -7),
            textcoords="offset points", va="center", color=colour, fontweight="bold", fontsize=9,
        )  # fmt: skip


def _leave_room(panel: Any) -> None:
    """A vertical axis that does not make noise look like a mountain."""
    low, high = panel.get_ylim()
    if high - low < 0.1:
        middle = (low + high) / 2
        low, high = middle - 0.05, middle + 0.05
    panel.set_ylim(max(low, 0.0), min(high, 1.0))
