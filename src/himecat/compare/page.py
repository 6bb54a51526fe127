"""One self-contained HTML page about a comparison: figures, tables and what they rest on."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from himecat.compare.protocol.compare import Comparison, LabelMap
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.summaries import (
    MEASURES,
    Measure,
    Summary,
    find_sweeps,
    panel_per_system,
    row_of,
    summarise_runs,
)
from himecat.compare.protocol.table_styles import Cell, Table
from himecat.compare.protocol.tables import (
    ablation_tables,
    comparison_tables,
    dataset_tables,
    significance_tables,
    sweep_tables,
)
from himecat.errors import UsageError
from himecat.evaluation.report.markup import count, escape, heading, name, page, table
from himecat.runtime.files import write_atomic

# Figures are dark on white, so the page around them does not follow a dark screen.
_STYLE = """
:root {
  color-scheme: light;
  --ink: #1b2126; --soft: #5a646d; --line: #dde2e6; --paper: #ffffff; --shade: #f5f7f9;
  --blue: #0072b2; --orange: #d55e00; --amber: #e69f00; --track: #e6eaed; --quote: #333b42; --alarm: #b34f00;
}
body { max-width: 76rem; }
.plot { margin: 0 0 1rem; overflow-x: auto; }
.plot svg { width: auto; min-width: 44rem; max-width: 100%; height: auto; }
.plot.wide svg { max-width: none; }
.plot svg * { stroke-linejoin: round; stroke-linecap: butt; }
.headline { font-size: 1.1rem; }
td.n small { padding-left: .25rem; }
td sup { display: inline-block; width: 1.2rem; text-align: left; line-height: 0; color: var(--soft); }
td:not(.n), thead th:not(.n):not(:first-child) { padding-left: 1.5rem; }
tr.ours > * { background: #e8f1f7; }
tbody th { white-space: nowrap; }
.compact { font-size: .9rem; }
thead th { white-space: nowrap; }
"""


def write_comparison(
    path: str | os.PathLike[str], found: Comparison, label_maps: Mapping[str, LabelMap] | None = None
) -> None:
    """Write the page; the file needs no other file and no network.

    Without matplotlib the page has its tables, and an explanation in place of each figure.

    Parameters
    ----------
    path : path
        The HTML file to write; an existing one is replaced only once the new one is complete.
    found : Comparison
        The runs, of any number of datasets.
    label_maps : mapping of LabelMap, optional
        The vectors of the labels, and their tree, by dataset.

    Raises
    ------
    UsageError
        There is nothing to show.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> run = Run("letters", "a", "A", {}, 0, 0, failure="There was no time.")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "report.html"
    ...     write_comparison(page, Comparison([run], "a", []))
    ...     "There was no time." in page.read_text(encoding="utf-8")
    True
    """
    runs, ours, ablations, sweeps = found.runs, found.ours, found.ablations, found.sweeps
    if not (runs or ablations or sweeps):
        raise UsageError("There are no runs to write a report about.")
    figures = _Figures()
    sections: list[tuple[str, str, str]] = []

    def add(key: str, heading: str, *parts: str) -> None:
        sections.append((key, heading, "\n".join(part for part in parts if part)))

    if runs:
        add(
            "scores",
            "Scores",
            _headlines(runs, ours),
            _scores_figure(figures, runs, ours, "F1 of all systems"),
        )
        title = _title_of(runs, ours)
        hint = '<p class="tools" data-sort-hint hidden>A click on a heading sorts the table.</p>'
        add(
            "systems",
            "All systems",
            hint,
            *(_table(one, ours=title) for one in comparison_tables(runs, ours)),
        )
        tests = significance_tables(runs, ours)
        if tests:
            add("significance", "Significance", *map(_table, tests))
    if ablations:
        figure = ""
        if any(not run.failure for run in ablations):
            figure = _scores_figure(figures, panel_per_system(ablations), "", "F1 without each part")
        add("ablations", "Ablations", figure, *map(_table, ablation_tables(ablations)))
    if sweeps:
        add("sweeps", "Sweeps", *_sweep_figures(figures, sweeps), *map(_table, sweep_tables(sweeps)))
    if label_maps:
        maps = (_label_figure(figures, of, one) for of, one in label_maps.items())
        add("labels", "Label map" if len(label_maps) == 1 else "Label maps", *maps)
    if found.statistics:
        add("datasets", "Datasets", *map(_table, dataset_tables(found.statistics)))
    if found.left_out:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in found.left_out)
        add("left-out", "Left out", f"<ul>{items}</ul>")
    write_atomic(path, _page(sections, [*runs, *ablations, *sweeps]))


def _page(sections: Sequence[tuple[str, str, str]], runs: Sequence[Run]) -> str:
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    systems = len({run.system for run in runs})
    draws = len({run.draw for run in runs})
    seeds = len({run.seed for run in runs})
    subtitle = (
        f"{_counted(systems, 'system')}, {_counted(draws, 'draw')} of the labelled documents, "
        f"{_counted(seeds, 'seed')}, {_counted(len(runs), 'run')}"
    )
    return page(f"Comparison on {', '.join(datasets)}", subtitle, sections, _STYLE)


def _counted(number: int, what: str) -> str:
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def _headlines(runs: Sequence[Run], ours: str) -> str:
    """Who is first on each dataset, and where ours is if it is another."""
    lines = []
    first = MEASURES[0]
    for dataset, rows in summarise_runs(runs).items():
        ranked = sorted((row for row in rows if row.runs), key=lambda row: -row.mean(first))
        if ranked:
            lines.append(
                f'<p class="headline"><b>{name(dataset)}</b>: {_headline(ranked, row_of(rows, ours), first)}</p>'
            )
    return "\n".join(lines)


def _headline(ranked: Sequence[Summary], ours: Summary | None, measure: Measure) -> str:
    def scored(row: Summary) -> str:
        return f"{name(row.name)} ({row.mean(measure):.3f})"

    best = f"{scored(ranked[0])} has the highest {measure.title} F1"
    place = next((place for place, row in enumerate(ranked) if row is ours), 0)
    if ours is not None and place:
        return f"{best}; {scored(ours)} is number {place + 1} of {len(ranked)}."
    return f"{best}, before {scored(ranked[1])}." if len(ranked) > 1 else f"{best}."


def _title_of(runs: Sequence[Run], ours: str) -> str:
    row = row_of([row for rows in summarise_runs(runs).values() for row in rows], ours)
    return row.name if row else ""


class _Figures:
    """Draws figures and gives them as SVG to stand in a page, each with names of its own inside."""

    def __init__(self) -> None:
        self.drawn = 0

    def inline(self, draw: Callable[[Path], None], about: str, css: str = "plot") -> str:
        """A figure; where it cannot be drawn, the reason."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figure.svg"
            try:
                draw(file)
            except UsageError as error:
                return f'<p class="empty">{escape(str(error))}</p>'
            svg = file.read_text("utf-8")
        self.drawn += 1
        svg = svg[svg.index("<svg") :]
        # What holds for the whole page does not belong in a figure.
        svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
        svg = re.sub(r'\b(id=")|(href="#)|(url\(#)', lambda found: f"{found[0]}f{self.drawn}-", svg)
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(about)}"', 1)
        return f'<figure class="{css}">{svg}</figure>'


def _scores_figure(figures: _Figures, runs: Sequence[Run], ours: str, about: str) -> str:
    from himecat.compare.figures.scores import draw_scores

    return figures.inline(
        lambda file: draw_scores(runs, file, ours=ours), f"{about}; the table has the numbers"
    )


def _sweep_figures(figures: _Figures, runs: Sequence[Run]) -> list[str]:
    from himecat.compare.figures.sweep import draw_sweep

    found = []
    for parameter in dict.fromkeys(sweep.parameter for sweep in find_sweeps(runs)):

        def draw(file: Path, parameter: str = parameter) -> None:
            draw_sweep(runs, file, parameter=parameter)

        found.append(figures.inline(draw, f"F1 by {parameter}; the table has the numbers"))
    return found


def _label_figure(figures: _Figures, dataset: str, label_map: LabelMap) -> str:
    from himecat.compare.figures.label_map import draw_label_map

    figure = figures.inline(
        lambda file: draw_label_map(label_map.vectors, label_map.taxonomy, file),
        f"The labels of {dataset}, near to each other where their vectors are",
        # Names made smaller to fit the page could not be read: a large map is scrolled.
        css="plot wide",
    )
    return f"<h3>{escape(dataset)}: the tree</h3>\n{figure}"


def _table(found: Table, ours: str = "") -> str:
    columns = range(len(found.titles))
    # Columns of numbers sort by them; what failed or is absent has none and comes last.
    numeric = [any(row[column].value is not None for row in found.rows) for column in columns]
    marked = [any(row[column].mark for row in found.rows) for column in columns]
    heads = [heading(escape(found.titles[column]), "n" if numeric[column] else "") for column in columns]
    rows = []
    for row in found.rows:
        cells = [f'<th scope="row" data-value="{escape(row[0].text)}">{name(row[0].text)}</th>']
        cells += [_cell(row[column], numeric[column], marked[column]) for column in columns[1:]]
        mine = ' class="ours"' if ours and row[0].text == ours else ""
        rows.append(f"<tr{mine}>{''.join(cells)}</tr>")
    note = f'<p class="muted">{escape(found.note)}</p>' if found.note else ""
    return f"<h3>{escape(found.caption)}</h3>\n{table(heads, rows, 'compact', 'data-sortable')}\n{note}"


def _cell(cell: Cell, numeric: bool, marked: bool) -> str:
    """A cell; in a column with stars each keeps room for them, so that the numbers stand below each other."""
    # What stands beside a number, its spread or the chances of tests, is smaller than the number.
    beside = re.search(r" (?=[±(])", cell.text) if numeric else None
    number = cell.text[: beside.start()] if beside else cell.text
    text = f"<b>{escape(number)}</b>" if cell.bold else escape(number)
    if beside:
        text += f"<small>{escape(cell.text[beside.end() :])}</small>"
    if marked:
        text += f"<sup>{escape(cell.mark)}</sup>"
    value = cell.value if numeric else cell.text
    known = "" if value is None else str(value)
    return f'<td{" class=n" if numeric else ""} data-value="{escape(known)}">{text}</td>'
