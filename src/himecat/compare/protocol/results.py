"""What one run of one system on one draw gave."""

from __future__ import annotations

import json
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
        What tables call the system.
    parameters : mapping
        The parameters of the system that are not its defaults.
    draw, seed : int
        Which labelled documents, and where randomness started from.
    leaf, overall : mapping
        F1 as `{"micro": ..., "macro": ...}`; empty where the run failed.
    seconds, cpu_seconds, peak_rss_mb : float
        Costs of the whole process.
    failure : str
        Why there are no scores; empty where there are.

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

    @property
    def group(self) -> tuple[str, str, str]:
        """What runs have in common that are averaged."""
        return self.dataset, self.system, json.dumps(dict(self.parameters), sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Run:
        """From what `as_dict` gave."""
        return cls(**plain)
