"""What `compare`, `ablate` and `sweep` write: tables in three styles, JSON, figures and the report."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from himecat.cli.options import STDOUT, as_json
from himecat.errors import HimecatError, MissingExtraError, OutputError, UsageError
from himecat.runtime.terminal import write

if TYPE_CHECKING:
    from himecat.compare.protocol.compare import Comparison, LabelMap
    from himecat.compare.protocol.runner import Conditions
    from himecat.compare.protocol.table_styles import Table
    from himecat.runtime.progress import Progress


@dataclass(frozen=True)
class Outputs:
    """The files that were asked for; None where one was not.

    Examples
    --------
    >>> Outputs(json=Path("no-such-folder/found.json")).check()
    Traceback (most recent call last):
    ...
    himecat.errors.OutputError: no-such-folder/found.json cannot be written: the folder no-such-folder does not
    exist.
    """

    json: Path | None = None
    markdown: Path | None = None
    latex: Path | None = None
    csv: Path | None = None
    report: Path | None = None
    figures: Path | None = None

    def check(self) -> None:
        """Refuse a file that cannot be written before hours of work are done for it."""
        for path in (self.json, self.markdown, self.latex, self.csv, self.report, self.figures):
            if path is None:
                continue
            if str(path) == STDOUT:
                if path in (self.report, self.figures):
                    raise UsageError("The report and the figures cannot go to standard output: name a place.")
                continue
            if not path.parent.is_dir():
                raise OutputError(f"{path} cannot be written: the folder {path.parent} does not exist.")
            if path.is_dir() and path != self.figures:
                raise OutputError(f"{path} cannot be written: it is a folder, name a file in it.")
            # A file is written beside the old one and then takes its place, so the folder counts; a pipe is not.
            folder = path if path.is_dir() else path.parent
            if (path.is_file() or path.is_dir() or not path.exists()) and not os.access(
                folder, os.W_OK | os.X_OK
            ):
                raise OutputError(f"{path} cannot be written: nothing can be written to {folder.absolute()}.")
        if self.figures is not None:
            if self.figures.exists() and not self.figures.is_dir():
                raise OutputError(f"{self.figures} is a file: name a folder for the figures.")
            if importlib.util.find_spec("matplotlib") is None:
                raise MissingExtraError.for_package("matplotlib", "plots", "--figures")

    @property
    def to_stdout(self) -> bool:
        """Whether standard output is taken by one of the results."""
        return any(str(path) == STDOUT for path in (self.json, self.markdown, self.latex, self.csv))


def write_outputs(
    outputs: Outputs,
    found: Comparison,
    tables: Callable[[str], str],
    conditions: Sequence[Conditions],
    progress: Progress,
) -> None:
    """Write everything that was asked for; `tables` gives the tables in a style, `conditions` are of each dataset."""
    for path, style in ((outputs.markdown, "markdown"), (outputs.latex, "latex"), (outputs.csv, "csv")):
        if path is not None:
            _write(path, tables(style), "The table")
    if outputs.json is not None:
        _write(outputs.json, as_json(_with_conditions(found, conditions[0])), "The result")
    if outputs.report is None and outputs.figures is None:
        return
    labels = _label_maps(found, conditions, progress) if found.runs else {}
    if outputs.report is not None:
        from himecat.compare.page import write_comparison

        write_comparison(outputs.report, found, labels)
    if outputs.figures is not None:
        _draw(outputs.figures, found, labels)


def _write(path: Path, content: str, what: str) -> None:
    if str(path) == STDOUT:
        write(content)
        return
    from himecat.runtime.files import write_atomic

    write_atomic(path, content, what)


def _with_conditions(found: Comparison, conditions: Conditions) -> dict[str, Any]:
    shared = {name: getattr(conditions, name) for name in ("draws", "seeds", "per_leaf", "limit", "encoder")}
    return {"conditions": shared, **found.as_dict()}


def _label_maps(
    found: Comparison, conditions: Sequence[Conditions], progress: Progress
) -> dict[str, LabelMap]:
    """The map of each dataset that gave results, by its name; one that cannot be made is left out with a sentence."""
    from himecat.compare.protocol.compare import label_map

    shown = {one.name for one in found.statistics}
    maps = {}
    for one in conditions:
        try:
            name = one.source.open().name
            if name in shown:
                maps[name] = label_map(one, progress)
        except HimecatError as error:
            progress.say(f"note: there is no map of the labels. {error}")
    return maps


def _draw(folder: Path, found: Comparison, labels: Mapping[str, LabelMap]) -> None:
    from himecat.compare.figures.label_map import draw_label_map
    from himecat.compare.figures.scores import draw_scores
    from himecat.compare.figures.sweep import draw_sweep
    from himecat.compare.protocol.summaries import find_sweeps, panel_per_system

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}.") from error
    for suffix in ("png", "svg"):
        if any(not run.failure for run in found.runs):
            draw_scores(found.runs, folder / f"systems.{suffix}", ours=found.ours)
        if any(not run.failure for run in found.ablations):
            draw_scores(panel_per_system(found.ablations), folder / f"ablations.{suffix}")
        for parameter in dict.fromkeys(sweep.parameter for sweep in find_sweeps(found.sweeps)):
            draw_sweep(found.sweeps, folder / f"sweep-{parameter}.{suffix}", parameter=parameter)
        for name, one in labels.items():
            of = f"labels-{name}" if len(found.statistics) > 1 else "labels"
            draw_label_map(one.vectors, one.taxonomy, folder / f"{of}.{suffix}")


def show(table: Table, against: str = "") -> None:
    """Print a table for a terminal: means with their stars, CPU time and memory; the rest is in the files."""
    from rich import box
    from rich.table import Table as Printed

    from himecat.runtime.terminal import console, text

    printed = Printed(box=box.SIMPLE_HEAD, pad_edge=False, title=text(table.caption), title_justify="left")
    shown = [number for number, (_, column) in enumerate(table.headings) if column not in ("Runs", "Time")]
    for number in shown:
        group, column = table.headings[number]
        printed.add_column(
            text(f"{group}\n{column}"),
            justify="right" if number else "left",
            no_wrap=number > 0,
            overflow="fold",
        )
    for row in table.rows:
        cells = [row[number] for number in shown]
        texts = [cell.text.partition(" ±")[0] + cell.mark for cell in cells]
        printed.add_row(*(text(one, "bold" * cell.bold) for one, cell in zip(texts, cells, strict=True)))
    shown_on = console()
    shown_on.print(printed)
    if any(cell.mark for row in table.rows for cell in row):
        note = f"* and **: p < .05 and p < .01 in a paired two-tailed t-test against {against}; ↑: it is the worse."
        shown_on.print(note, soft_wrap=True)
