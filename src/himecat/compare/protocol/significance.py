"""Whether two systems differ by more than chance: paired tests over the same draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from himecat.compare.protocol.run import Run
from himecat.errors import UsageError

# Differences in F1 that vary less than this vary by rounding only.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PairedTest:
    """Another system against ours, on the same draws.

    Attributes
    ----------
    pairs : int
        Number of pairs.
    difference : float
        Mean of the other system minus ours; NaN without pairs.
    t_test, wilcoxon : float
        p-value of the paired two-tailed t-test and of the Wilcoxon signed-rank test; NaN where the pairs do
        not determine it. With five pairs the second is never below .0625.

    Examples
    --------
    >>> PairedTest(5, -0.1, 0.003, 0.0625).stars
    '**'
    """

    pairs: int
    difference: float
    t_test: float
    wilcoxon: float

    @property
    def stars(self) -> str:
        """`*` for p < .05 and `**` for p < .01 of the t-test; nothing otherwise."""
        return stars(self.t_test)

    @property
    def better(self) -> bool:
        """Whether the other system is better than ours by more than chance."""
        return bool(self.stars) and self.difference > 0


def stars(p_value: float) -> str:
    """The stars of a p-value; NaN has none.

    Examples
    --------
    >>> stars(0.009), stars(0.04), stars(0.05), stars(float("nan"))
    ('**', '*', '', '')
    """
    return "**" if p_value < 0.01 else "*" if p_value < 0.05 else ""


def paired_test(ours: Sequence[float], theirs: Sequence[float]) -> PairedTest:
    """Compare two systems by scores that belong together one by one.

    One pair says nothing, and neither do differences that are all the same: there is no spread to compare them
    with. Both have no p-value, and hence no star.

    Parameters
    ----------
    ours, theirs : sequence of float
        Scores of the same draws, in the same order.

    Examples
    --------
    >>> found = paired_test([0.71, 0.69, 0.72, 0.70], [0.60, 0.57, 0.62, 0.58])
    >>> found.stars, round(found.difference, 4), round(found.wilcoxon, 4)
    ('**', -0.1125, 0.125)
    >>> paired_test([0.7], [0.2]).stars
    ''
    """
    if len(ours) != len(theirs):
        raise UsageError(
            f"A paired test needs as many scores of both: there are {len(ours)} and {len(theirs)}."
        )
    differences = np.asarray(theirs, dtype=np.float64) - np.asarray(ours, dtype=np.float64)
    if not len(differences):
        return PairedTest(0, math.nan, math.nan, math.nan)
    # Equal scores up to rounding must not be ranked.
    differences[np.abs(differences) <= _ROUNDING] = 0.0
    mean = float(differences.mean())
    if len(differences) < 2 or float(np.ptp(differences)) <= _ROUNDING:
        return PairedTest(len(differences), mean, math.nan, math.nan)
    from scipy.stats import ttest_1samp, wilcoxon

    return PairedTest(
        len(differences),
        mean,
        float(ttest_1samp(differences, 0.0).pvalue),
        float(wilcoxon(differences).pvalue),
    )


def compare_runs(ours: Sequence[Run], theirs: Sequence[Run], part: str, average: str) -> PairedTest:
    """Compare the runs of two systems on one dataset, paired by draw and seed; failed runs have no pair.

    Runs of one draw share the labelled documents and are not independent: several seeds count as one pair of means,
    or repeating them would make any difference significant. With a single draw the seeds are the pairs, and a
    difference is one on this draw.

    Parameters
    ----------
    ours, theirs : sequence of Run
        Runs of the two systems.
    part, average : str
        `leaf` or `overall`, and `micro` or `macro`.

    Examples
    --------
    >>> def run(draw, micro):
    ...     return Run("letters", "a", "A", {}, draw, 0, {"micro": micro, "macro": 0}, {"micro": 0, "macro": 0})
    >>> compare_runs([run(0, 0.5), run(1, 0.6)], [run(1, 0.4), run(2, 0.4)], "leaf", "micro").pairs
    1
    """
    other = {(run.draw, run.seed): run for run in theirs if not run.failure}
    draws: dict[int, list[tuple[float, float]]] = {}
    for run in ours:
        found = other.get((run.draw, run.seed))
        if found is not None and not run.failure:
            scores = (getattr(run, part)[average], getattr(found, part)[average])
            draws.setdefault(run.draw, []).append(scores)
    if len(draws) == 1:
        (pairs,) = draws.values()
    else:
        pairs = [(fmean(mine for mine, _ in one), fmean(their for _, their in one)) for one in draws.values()]
    return paired_test([mine for mine, _ in pairs], [their for _, their in pairs])
