"""The record of one run: one system on one draw of the labelled documents."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Run:
    """One system on one draw of one dataset, with one seed.

    Attributes
    ----------
    dataset, system : str
        Names.
    title : str
        The name of the system in tables.
    parameters : mapping
        The parameters of the system that differ from their defaults.
    draw, seed : int
        The draw of the labelled documents, and the seed of all randomness.
    leaf, overall : mapping
        F1 as `{"micro": ..., "macro": ...}`; empty where the run failed.
    seconds, cpu_seconds, peak_rss_mb : float
        Costs of the process: reading, fitting and predicting.
    failure : str
        Why there are no scores; empty where there are.
    calibration : list of float or None
        Expected calibration error of each level, top-down, where the system gives probabilities; None for a level
        that no document reached.
    held_out, had_them : mapping, optional
        With a holdout, leaf F1 on its documents: of a model fitted without them, and of the model fitted with
        them.

    sets : mapping, optional
        Where documents have several paths: scores of their sets, see `himecat.evaluation.set_metrics`; `leaf` and
        `overall` are then those of the leaves and of all categories above the paths.

    Examples
    --------
    >>> run = Run("letters", "tfidf-svm", "TF-IDF + SVM", {"c": 1.0}, 0, 0, {"micro": 0.5, "macro": 0.4})
    >>> Run.from_dict(run.as_dict()) == run
    True
    >>> run.group
    ('letters', 'tfidf-svm', '{"c": 1.0}')
    """

    dataset: str
    system: str
    title: str
    parameters: Mapping[str, Any]
    draw: int
    seed: int
    leaf: Mapping[str, float] = field(default_factory=dict)
    overall: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_mb: float = 0.0
    failure: str = ""
    calibration: list[float | None] = field(default_factory=list)
    held_out: Mapping[str, float] | None = None
    had_them: Mapping[str, float] | None = None
    sets: Mapping[str, Any] | None = None

    @property
    def group(self) -> tuple[str, str, str]:
        """What runs that are averaged have in common."""
        return self.dataset, self.system, json.dumps(dict(self.parameters), sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON; what was not measured has no entry."""
        optional = ("calibration", "held_out", "had_them", "sets")
        return {name: value for name, value in asdict(self).items() if value or name not in optional}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Run:
        """From the result of `as_dict`."""
        return cls(**plain)


def finite(errors: list[float]) -> list[float | None]:
    """Numbers for JSON, which has no NaN.

    Examples
    --------
    >>> finite([0.5, math.nan])
    [0.5, None]
    """
    return [None if math.isnan(error) else float(error) for error in errors]
