"""`himecat evaluate`: a comparison with one row, our own method, several draws."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from himecat.compare.protocol.choices import Choice
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import Conditions, run_systems
from himecat.compare.systems.himecat import system_with_method
from himecat.input.dataset import open_dataset
from himecat.input.documents import Fields
from himecat.input.kinds import named
from himecat.input.reading import Reading
from himecat.methods import resolve_method
from himecat.runtime.progress import Progress

SCORES = ("leaf", "overall")
COSTS = ("seconds", "cpu_seconds", "peak_rss_mb")
HOLDOUT = ("held_out", "had_them")


def evaluate(
    folder: str | os.PathLike[str],
    *,
    draws: Sequence[int] = range(5),
    per_leaf: int = 5,
    arguments: Mapping[str, Any] | None = None,
    quiet: bool = True,
    holdout: float = 0.0,
    folds: bool = False,
    truth: str | os.PathLike[str] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> list[Run]:
    """Fit on a few labelled documents per leaf and score all the others, for several draws.

    Each draw runs in a process of its own; nothing is cached, so the costs are those of now.

    Parameters
    ----------
    folder : path
        A dataset folder: documents, `label_hier.txt`, `doc_id.txt`, `meta_dict.json`. Or a file of documents, some
        of which carry labels; the others take part in every fit.
    draws : sequence of int
        Which draws of the labelled documents; 0 is the one in `doc_id.txt`.
    per_leaf : int
        Labelled documents per leaf in the other draws.
    arguments : mapping, optional
        Constructor arguments of the estimator; None means not given. `encoder` must be a path or a name.
    quiet : bool
        Whether the fits show no progress.
    holdout : float
        Share of the unlabelled documents, from 0 to less than 1, for a second fit in each draw that does not
        see them and predicts them afterwards; see `Run.held_out`. 0 for no second fit.
    folds : bool
        Of a file: cross-validation over its labels; each draw holds back one part of them.
    truth : path, optional
        Of a file: another one with the true labels by id; then the labels of the first are all shown.
    on_run : callable, optional
        Called with each draw's run when it is done.

    Examples
    --------
    >>> import tempfile
    >>> from himecat import Paper
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_sample(folder)
    ...     small = {"method": Paper(samples=100_000, beta=10, dimension=16, classifier="mean-logistic")}
    ...     found = evaluate(folder, draws=[0], arguments=small)
    >>> 0 < found[0].leaf["micro"] < 1
    True
    """
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    metadata = {} if os.path.isfile(folder) else dict.fromkeys(open_dataset(folder).metadata)
    asked = named(given.pop("metadata", metadata))
    encoder, taxonomy = given.pop("encoder", None), given.pop("taxonomy", None)
    method = resolve_method(given.pop("method", None), given.pop("preset", None))
    conditions = Conditions(
        Path(folder),
        draws=draws,
        seeds=[given.pop("random_state", 0)],
        per_leaf=per_leaf,
        encoder=encoder,
        cache=False,
        holdout=holdout,
        threads=given.pop("threads", None),
        fields=Fields(
            given.pop("text", "text"),
            asked.names,
            given.pop("label_field", "labels"),
            given.pop("id_field", "id"),
            reading=Reading.given(
                given.pop("sheet", None), given.pop("delimiter", None), given.pop("separator", None)
            ),
            kinds=asked.kinds,
        ),
        taxonomy=None if taxonomy is None else os.fspath(taxonomy),
        tokenizer=given.pop("tokenizer", "unicode"),
        verbose=not quiet,
        folds=folds,
        truth=None if truth is None else os.fspath(truth),
    )
    options = {
        "keywords": given.pop("keywords", None),
        "allow_empty_leaves": given.pop("allow_empty_leaves", False),
        "min_confidence": given.pop("min_confidence", 0.0),
        "several": given.pop("several", None),
        "decides": given.pop("decides", ()),
        "encoder": encoder is not None,
    }
    choice = Choice(system_with_method(method.name), {**method.changed(), **given}, options=options)
    return run_systems(
        conditions,
        [choice],
        progress=Progress(quiet=quiet),
        on_run=on_run or (lambda _: None),
        stop_on_failure=True,
    )


def figures(run: Run) -> dict[str, Any]:
    """Scores and costs of a draw as plain values; without a holdout there is no entry for it.

    Examples
    --------
    >>> list(figures(Run("letters", "himecat", "himecat", {}, 0, 0)))
    ['draw', 'leaf', 'overall', 'seconds', 'cpu_seconds', 'peak_rss_mb', 'calibration']
    """
    names = ("draw", *SCORES, *COSTS, "calibration", *HOLDOUT, "sets")
    values = {name: getattr(run, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def summarise(runs: Sequence[Run], how: Callable[[Sequence[float]], Any] = np.mean) -> dict[str, Any]:
    """Mean (or another statistic) of every figure, in the shape of one draw.

    Examples
    --------
    >>> one = Run("letters", "himecat", "himecat", {}, 0, 0, *[{"micro": 0.5, "macro": 0.4}] * 2)
    >>> summarise([one, one])["leaf"]
    {'micro': 0.5, 'macro': 0.4}
    """
    rows = [figures(run) for run in runs]

    def both(part: str) -> dict[str, float]:
        return {key: float(how([row[part][key] for row in rows])) for key in ("micro", "macro")}

    found: dict[str, Any] = {part: both(part) for part in SCORES}
    found |= {cost: float(how([row[cost] for row in rows])) for cost in COSTS}
    found["calibration"] = []
    for errors in zip(*(row["calibration"] for row in rows), strict=True):
        measured = [error for error in errors if error is not None]
        found["calibration"].append(float(how(measured)) if measured else None)
    if all("sets" in row for row in rows):
        found["sets"] = _means([row["sets"] for row in rows], how)
    return found | {part: both(part) for part in HOLDOUT if all(part in row for row in rows)}


def _means(rows: Sequence[Mapping[str, Any]], how: Callable[[Sequence[float]], Any]) -> dict[str, Any]:
    """The statistic of every number in nested mappings of one shape."""
    return {
        key: _means([row[key] for row in rows], how)
        if isinstance(first, Mapping)
        else float(how([row[key] for row in rows]))
        for key, first in rows[0].items()
    }


def spread(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 for a single value.

    Examples
    --------
    >>> spread([1.0, 3.0]), spread([1.0])
    (1.4142135623730951, 0.0)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
