"""The paper's tables: datasets, all systems, ablations and sweeps."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from himecat.compare.protocol.run import Run
from himecat.compare.protocol.significance import PairedTest
from himecat.compare.protocol.statistics import DatasetStatistics
from himecat.compare.protocol.summaries import (
    MEASURES,
    Measure,
    Summary,
    find_sweeps,
    parameters_text,
    row_of,
    summarise_runs,
)
from himecat.compare.protocol.table_styles import ABSENT, Cell, Table
from himecat.evaluation.report.markup import count, seconds

_SCORES = [(measure.part.capitalize(), measure.average) for measure in MEASURES]
_COSTS = [("", "Runs"), ("", "Time"), ("", "CPU time"), ("", "Memory")]


def comparison_tables(runs: Sequence[Run], ours: str) -> list[Table]:
    """Table 2: all systems, a table for each dataset; mean and sd of the four F1, and the costs.

    Stars mark a significant difference to `ours`, the system that comes last; an arrow that ours is the worse.

    Examples
    --------
    >>> from himecat.compare.protocol.table_styles import render
    >>> run = Run("letters", "a", "A", {}, 0, 0, {"micro": 0.5, "macro": 0.4}, {"micro": 0.6, "macro": 0.5})
    >>> print(render(comparison_tables([run], "a"), "markdown").splitlines()[4][:31])
    | A | **0.5000** | **0.4000** |
    """
    found = []
    for dataset, rows in summarise_runs(runs).items():
        reference = row_of(rows, ours)
        ordered = [row for row in rows if row is not reference] + ([reference] if reference else [])
        found.append(_scores(f"{dataset}: F1 of all systems", "System", ordered, reference))
    return found


def ablation_tables(runs: Sequence[Run]) -> list[Table]:
    """Table 3: the full system and what is left of it without a part, a table for each dataset and system.

    The full system is the one with the fewest parameters of its own; it comes first, and stars are against it.

    Examples
    --------
    >>> scores = {"micro": 0.5, "macro": 0.4}
    >>> runs = [Run("letters", "a", "A", chosen, 0, 0, scores, scores) for chosen in ({"tree": False}, {})]
    >>> [row[0].text for row in ablation_tables(runs)[0].rows]
    ['A', 'tree = no']
    """
    found = []
    for dataset, rows in summarise_runs(runs).items():
        for system in dict.fromkeys(row.first.system for row in rows):
            own = [row for row in rows if row.first.system == system]
            full = min(own, key=lambda row: len(row.first.parameters))
            ordered = [full]
            for row in own:
                if row is not full:
                    same_title = row.first.title == full.first.title
                    name = parameters_text(row.first.parameters) if same_title else row.first.title
                    ordered.append(Summary(name, row.runs, row.failed))
            found.append(_scores(f"{dataset}: F1 without parts of {full.name}", "Model", ordered, full))
    return found


def sweep_tables(runs: Sequence[Run]) -> list[Table]:
    """One parameter at several values, a table for each dataset and parameter.

    Examples
    --------
    >>> scores = {"micro": 0.5, "macro": 0.4}
    >>> runs = [Run("letters", "a", "A", {"beta": beta}, 0, 0, scores, scores) for beta in (500, 50)]
    >>> [row[0].text for row in sweep_tables(runs)[0].rows]
    ['50', '500']
    """
    return [
        _scores(f"{sweep.dataset}: F1 by {sweep.parameter}", sweep.parameter, sweep.rows, None)
        for sweep in find_sweeps(runs)
    ]


def dataset_tables(statistics: Sequence[DatasetStatistics]) -> list[Table]:
    """Table 1: the size of the datasets; CSV has a line per metadata type. No table without datasets.

    Examples
    --------
    >>> from himecat.compare.protocol.table_styles import render
    >>> letters = DatasetStatistics("letters", 1200, 40, 11, 8, 3, 61.25, 900)
    >>> print(render(dataset_tables([letters]), "markdown").splitlines()[4])
    | letters | 1,200 | 40 | 1,160 | 11 | 8 | 3 | 61.2 | 900 | – |
    """
    if not statistics:
        return []
    headings = [
        ("", name)
        for name in (
            "Dataset", "Documents", "Labelled", "Test", "Categories", "Leaves", "Levels", "Words per document",
            "Vocabulary", "Metadata",
        )
    ]  # fmt: skip
    note = (
        "Test: all but the labelled ones. Categories without the root. Metadata: distinct values of each type, and "
        "the share of documents with one."
    )
    rows, records = [], []
    for one in statistics:
        metadata = "; ".join(
            f"{kind.name}: {count(kind.values)} ({100 * kind.coverage:.0f} %)" for kind in one.metadata
        )
        tested = None if one.labelled is None else one.documents - one.labelled
        numbers = (one.documents, one.labelled, tested, one.nodes, one.leaves, one.depth)
        cells = [Cell(ABSENT) if n is None else Cell(count(n), value=float(n)) for n in numbers]
        cells.append(Cell(f"{one.words_per_document:.1f}", value=one.words_per_document))
        cells.append(Cell(count(one.vocabulary), value=float(one.vocabulary)))
        rows.append([Cell(one.name), *cells, Cell(metadata or ABSENT)])
        shared = {name: value for name, value in one.as_dict().items() if name != "metadata"}
        shared = {"dataset": shared.pop("name"), **shared}
        kinds: list[tuple[object, ...]] = [
            (kind.name, kind.values, kind.coverage) for kind in one.metadata
        ] or [("", "", "")]
        records += [
            shared | dict(zip(("metadata", "values", "coverage"), kind, strict=True)) for kind in kinds
        ]
    return [Table("Dataset statistics", headings, rows, note, records)]


def significance_tables(runs: Sequence[Run], ours: str) -> list[Table]:
    """Every system against ours: mean difference and the p-values of both tests; no table without ours."""
    found = []
    for dataset, rows in summarise_runs(runs).items():
        reference = row_of(rows, ours)
        if reference is None or not reference.runs:
            continue
        lines = []
        for row in rows:
            if row is not reference and row.runs:
                tests = [row.against(reference, measure) for measure in MEASURES]
                cells = [
                    Cell(_test_text(test), test.stars + "↑" * test.better, value=test.difference)
                    for test in tests
                ]
                lines.append([Cell(row.name), Cell(str(tests[0].pairs), value=tests[0].pairs), *cells])
        note = (
            f"Mean difference to {reference.name}, and in brackets the p-value of the paired two-tailed t-test and of "
            "the Wilcoxon signed-rank test. The latter is at least 0.0625 with five pairs. No correction for the "
            "number of systems."
        )
        headings = [("", "System"), ("", "Pairs"), *_SCORES]
        if lines:
            found.append(Table(f"{dataset}: differences to {reference.name}", headings, lines, note))
    return found


def _test_text(test: PairedTest) -> str:
    if not test.pairs:
        return ABSENT
    difference = f"{test.difference:+.4f}".replace("-", "−")
    if math.isnan(test.t_test):
        return f"{difference} (no test)"
    return f"{difference} ({_p_text(test.t_test)}; {_p_text(test.wilcoxon)})"


def _p_text(p_value: float) -> str:
    return "<0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def _scores(caption: str, what: str, rows: Sequence[Summary], reference: Summary | None) -> Table:
    """A table of scores and costs; stars against the reference, where there is one."""
    best = {
        measure: max((_shown(row.mean(measure)) for row in rows if row.runs), default="")
        for measure in MEASURES
    }
    lines = []
    for row in rows:
        cells = [_score_cell(row, measure, best[measure], reference) for measure in MEASURES]
        lines.append([Cell(row.name), *cells, *_cost_cells(row)])
    return Table(
        caption,
        [("", what), *_SCORES, *_COSTS],
        lines,
        _note(rows, reference),
        [_record(row, reference) for row in rows],
    )


def _shown(score: float) -> str:
    return f"{score:.4f}"


def _score_cell(row: Summary, measure: Measure, best: str, reference: Summary | None) -> Cell:
    mean, sd = row.mean(measure), row.sd(measure)
    if math.isnan(mean):
        return Cell("failed")
    mark = ""
    if reference is not None and row is not reference:
        test = row.against(reference, measure)
        mark = test.stars + "↑" * test.better
    text = _shown(mean) if math.isnan(sd) else f"{_shown(mean)} ± {_shown(sd)}"
    return Cell(text, mark, _shown(mean) == best, mean)


def _cost_cells(row: Summary) -> list[Cell]:
    runs = f"{len(row.runs)} of {len(row.runs) + len(row.failed)}" if row.failed else str(len(row.runs))
    cells = [Cell(runs, value=len(row.runs))]
    if not row.runs:
        return cells + [Cell(ABSENT)] * 3
    for cost in ("seconds", "cpu_seconds"):
        cells.append(Cell(seconds(row.cost(cost)), value=row.cost(cost)))
    memory = row.cost("peak_rss_mb")
    return [*cells, Cell(f"{memory / 1024:.1f} GB" if memory >= 1024 else f"{memory:.0f} MB", value=memory)]


def _note(rows: Sequence[Summary], reference: Summary | None) -> str:
    parts = ["Mean ± standard deviation of the runs; bold: the best."]
    if reference is not None and len(rows) > 1:
        parts.append(
            f"* and **: p < .05 and p < .01 in a paired two-tailed t-test against {reference.name}; with ↑ where "
            f"{reference.name} is the worse of the two."
        )
    for row in rows:
        # One reason is enough to know where to look.
        if row.failed:
            reason = row.failed[0].failure.strip().rstrip(".")
            total = len(row.runs) + len(row.failed)
            parts.append(f"{row.name} failed in {len(row.failed)} of {total} runs: {reason}.")
    return " ".join(parts)


def _record(row: Summary, reference: Summary | None) -> Mapping[str, object]:
    """A row in full; what there is no number for is empty."""

    def number(value: float) -> float | str:
        return "" if math.isnan(value) else round(value, 6)

    first = row.first
    found: dict[str, object] = {
        "dataset": first.dataset,
        "name": row.name,
        "system": first.system,
        "parameters": json.dumps(dict(first.parameters), sort_keys=True),
        "runs": len(row.runs),
        "failed": len(row.failed),
    }
    for measure in MEASURES:
        key = f"{measure.part}_{measure.average}"
        found |= {f"{key}_mean": number(row.mean(measure)), f"{key}_sd": number(row.sd(measure))}
        if reference is not None:
            tested = row is not reference and bool(row.runs)
            test = row.against(reference, measure) if tested else PairedTest(0, math.nan, math.nan, math.nan)
            found |= {
                f"{key}_difference": number(test.difference),
                f"{key}_t_test": number(test.t_test),
                f"{key}_wilcoxon": number(test.wilcoxon),
                f"{key}_stars": test.stars,
            }
    found |= {cost: number(row.cost(cost)) for cost in ("seconds", "cpu_seconds", "peak_rss_mb")}
    return found | {"failure": row.failed[0].failure if row.failed else ""}
