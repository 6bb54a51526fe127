"""Summaries: all runs of one system with the same parameters on one dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from himecat.compare.protocol.evaluate import spread
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.significance import PairedTest, compare_runs


class Measure(NamedTuple):
    """One of the four scores of a run.

    Examples
    --------
    >>> Measure("leaf", "micro").title
    'Leaf micro'
    """

    part: str
    average: str

    @property
    def title(self) -> str:
        """What tables call it."""
        return f"{self.part.capitalize()} {self.average}"


MEASURES = tuple(Measure(part, average) for part in ("leaf", "overall") for average in ("micro", "macro"))


@dataclass(frozen=True)
class Summary:
    """One row of a table.

    Attributes
    ----------
    name : str
        What the row is called.
    runs : tuple of Run
        The runs that have scores.
    failed : tuple of Run
        Those that have none.

    Examples
    --------
    >>> run = Run("letters", "a", "A", {}, 0, 0, {"micro": 0.5, "macro": 0.4}, {"micro": 0.6, "macro": 0.5})
    >>> Summary("A", (run,)).mean(Measure("leaf", "micro"))
    0.5
    """

    name: str
    runs: tuple[Run, ...]
    failed: tuple[Run, ...] = ()

    @property
    def first(self) -> Run:
        """Any run, for what they have in common."""
        return (*self.runs, *self.failed)[0]

    def mean(self, measure: Measure) -> float:
        """Mean of one score; NaN where every run failed."""
        return float(np.mean(self._values(measure))) if self.runs else float("nan")

    def sd(self, measure: Measure) -> float:
        """Sample standard deviation of one score; NaN where there are fewer than two runs."""
        return spread(self._values(measure)) if len(self.runs) > 1 else float("nan")

    def cost(self, name: str) -> float:
        """Mean of `seconds`, `cpu_seconds` or `peak_rss_mb`; NaN where every run failed."""
        return float(np.mean([getattr(run, name) for run in self.runs])) if self.runs else float("nan")

    def against(self, ours: Summary, measure: Measure) -> PairedTest:
        """This row compared with ours."""
        return compare_runs(ours.runs, self.runs, *measure)

    def _values(self, measure: Measure) -> list[float]:
        return [getattr(run, measure.part)[measure.average] for run in self.runs]


def summarise_runs(runs: Sequence[Run]) -> dict[str, list[Summary]]:
    """The rows of each dataset, all in the order in which they first come up.

    A row is named by the system's title; where several rows share it, also by what distinguishes them: the
    system's name, the parameters, or both.

    Examples
    --------
    >>> runs = [Run("letters", "a", "A", parameters, 0, 0, failure="no time") for parameters in ({}, {"c": 2})]
    >>> [row.name for row in summarise_runs(runs)["letters"]]
    ['A', 'A (c = 2)']
    """
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    firsts = [group[0] for group in groups.values()]
    named = {(first.dataset, first.title, first.system) for first in firsts}
    systems = Counter((dataset, title) for dataset, title, _ in named)
    rows = Counter((first.dataset, first.title, first.system) for first in firsts)
    found: dict[str, list[Summary]] = {}
    for group in groups.values():
        first = group[0]
        more = [first.system] if systems[first.dataset, first.title] > 1 else []
        if rows[first.dataset, first.title, first.system] > 1 and first.parameters:
            more.append(parameters_text(first.parameters))
        name = f"{first.title} ({', '.join(more)})" if more else first.title
        scored = tuple(run for run in group if not run.failure)
        failed = tuple(run for run in group if run.failure)
        found.setdefault(first.dataset, []).append(Summary(name, scored, failed))
    return found


def panel_per_system(runs: Sequence[Run]) -> list[Run]:
    """Runs for a figure with a panel for each system on each dataset, where there are several systems.

    Panels and their titles go by the dataset, so it has the title of the full system beside its name: the one
    with the fewest parameters.

    Examples
    --------
    >>> given = [("a", "A", {}), ("a", "No-Tree", {"tree": False}), ("b", "B", {}), ("b", "No-Tree", {"tree": False})]
    >>> runs = [Run("letters", system, title, chosen, 0, 0, failure="no time") for system, title, chosen in given]
    >>> [(run.dataset, run.title) for run in panel_per_system(runs)[1:3]]
    [('letters, A', 'No-Tree'), ('letters, B', 'B')]
    """
    if len({run.system for run in runs}) < 2:
        return list(runs)
    full: dict[str, Run] = {}
    for run in runs:
        if run.system not in full or len(run.parameters) < len(full[run.system].parameters):
            full[run.system] = run
    return [replace(run, dataset=f"{run.dataset}, {full[run.system].title}") for run in runs]


def row_of(rows: Sequence[Summary], system: str) -> Summary | None:
    """The row of a system, the one with the fewest parameters of its own where there are several.

    Examples
    --------
    >>> row_of([], "himecat") is None
    True
    """
    own = [row for row in rows if row.first.system == system]
    return min(own, key=lambda row: len(row.first.parameters), default=None)


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Parameters as people write them.

    Examples
    --------
    >>> parameters_text({"beta": 50, "metadata": ["tags", "users"], "hierarchy": False})
    'beta = 50, metadata = tags + users, hierarchy = no'
    """
    return ", ".join(f"{name.replace('_', ' ')} = {value_text(value)}" for name, value in parameters.items())


def value_text(value: object) -> str:
    """The value of a parameter as people write it.

    Examples
    --------
    >>> value_text(None), value_text(0.5), value_text([])
    ('none', '0.5', 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " + ".join(map(value_text, value)) or "none"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class Sweep:
    """One system with one parameter at several values.

    Attributes
    ----------
    dataset, parameter : str
        On what, and which.
    rows : tuple of Summary
        One for each value, called by it, in order of the values.

    Examples
    --------
    >>> Sweep("letters", "beta", ()).parameter
    'beta'
    """

    dataset: str
    parameter: str
    rows: tuple[Summary, ...]


def find_sweeps(runs: Sequence[Run]) -> list[Sweep]:
    """The sweeps that runs belong to, by the parameters in which they differ.

    A run whose parameters name none of the swept ones belongs to every sweep, as its default.

    Examples
    --------
    >>> runs = [Run("letters", "a", "A", parameters, 0, 0, failure="no time")
    ...         for parameters in ({"c": 10}, {"c": 2}, {"k": 1}, {"k": 3})]
    >>> [(sweep.parameter, [row.name for row in sweep.rows]) for sweep in find_sweeps(runs)]
    [('c', ['2', '10']), ('k', ['1', '3'])]
    """
    found = []
    for dataset, system in dict.fromkeys((run.dataset, run.system) for run in runs):
        own = [run for run in runs if (run.dataset, run.system) == (dataset, system)]
        names = dict.fromkeys(name for run in own for name in run.parameters)
        swept = [name for name in names if len({value_text(run.parameters.get(name, "")) for run in own}) > 1]
        for name in swept:
            values: dict[str, tuple[Any, list[Run]]] = {}
            for run in own:
                if any(other in run.parameters for other in swept if other != name):
                    continue
                value = run.parameters.get(name, "default")
                values.setdefault(value_text(value), (value, []))[1].append(run)
            rows = [
                Summary(text, tuple(r for r in group if not r.failure), tuple(r for r in group if r.failure))
                for text, (_, group) in sorted(values.items(), key=lambda item: _in_order(item[1][0]))
            ]
            if len(rows) > 1:
                found.append(Sweep(dataset, name, tuple(rows)))
    return found


def _in_order(value: object) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by name."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return not number, float(value) if number else 0.0, value_text(value)  # type: ignore[arg-type]
