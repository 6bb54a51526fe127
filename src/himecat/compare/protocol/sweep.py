"""How the scores follow one parameter: p, the number of dimensions, or beta, the synthetic documents per leaf."""

from __future__ import annotations

from collections.abc import Sequence

from himecat.compare.protocol.results import Run
from himecat.compare.protocol.runs import Conditions, run_systems
from himecat.compare.protocol.systems import Choice, ours_with_preset
from himecat.errors import UsageError
from himecat.runtime.progress import Progress

SWEEPS = {
    "p": ("dimension", (10, 50, 100, 200, 300)),
    "beta": ("beta", (0, 50, 100, 500, 1000, 2000)),
}
"""The paper's two sweeps: what the parameter is called here, and its values."""


def sweep_rows(parameter: str, *, preset: str | None = "paper", values: Sequence[int] = ()) -> list[Choice]:
    """The runs of a sweep: one system at every value.

    Parameters
    ----------
    parameter : str
        `p` or `beta`.
    preset : str, optional
        `paper` for the published method, None or `default` for the default one, which makes no synthetic
        documents and so has no beta.
    values : sequence of int
        Other values than the paper's.

    Raises
    ------
    UsageError
        There is no such sweep.

    Examples
    --------
    >>> [row.parameters for row in sweep_rows("p", values=[10, 50])]
    [{'dimension': 10}, {'dimension': 50}]
    """
    if parameter not in SWEEPS:
        raise UsageError(f"There is no sweep of {parameter!r}; known are {' and '.join(SWEEPS)}.")
    name = ours_with_preset(preset)
    if parameter == "beta" and name == "himecat":
        raise UsageError("beta has no part in the default method: sweep it with --preset paper.")
    setting, usual = SWEEPS[parameter]
    chosen = list(dict.fromkeys(values or usual))
    if len(chosen) < 2:
        raise UsageError(
            f"A sweep follows a parameter over two values at least, and there is only {chosen[0]}."
        )
    return [Choice(name, {setting: value}) for value in chosen]


def sweep(
    conditions: Conditions,
    parameter: str,
    *,
    preset: str | None = "paper",
    values: Sequence[int] = (),
    progress: Progress | None = None,
) -> list[Run]:
    """Run the method at every value of a parameter.

    Parameters
    ----------
    conditions : Conditions
        The dataset, and how often and how to run.
    parameter, preset, values
        As for `sweep_rows`.
    progress : Progress, optional
        Told of every run.

    Examples
    --------
    >>> from pathlib import Path
    >>> sweep(Conditions(Path("letters")), "gamma")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: There is no sweep of 'gamma'; known are p and beta.
    """
    return run_systems(conditions, sweep_rows(parameter, preset=preset, values=values), progress=progress)
