"""Whether two systems differ by more than chance: paired tests over the same draws and seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from himecat.errors import UsageError
from himecat.experiments.results import Run

# Differences that vary less than this, in F1, vary by rounding only.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PairedTest:
    """Another system against ours, on the same draws and seeds.

    Attributes
    ----------
    pairs : int
        Number of pairs.
    difference : float
        Mean of the other system minus ours; NaN without pairs.
    t_test, wilcoxon : float
        p-value of the paired two-tailed t-test and of the Wilcoxon signed-rank test; NaN where the pairs cannot
        tell. With five pairs the second is never below .0625.

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
        Scores of the same draws and seeds, in the same order.

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
    # What rounding leaves of equal scores must not be ranked.
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

    A system without randomness scores the same with every seed. Where both do, the seeds of a draw are one pair
    and not several, or repeating them would make any difference significant.

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
    pairs = {}
    for run in ours:
        found = other.get((run.draw, run.seed))
        if found is not None and not run.failure:
            seen = (run.draw, *(tuple(sorted(s.items())) for r in (run, found) for s in (r.leaf, r.overall)))
            pairs[seen] = (getattr(run, part)[average], getattr(found, part)[average])
    return paired_test([mine for mine, _ in pairs.values()], [their for _, their in pairs.values()])
