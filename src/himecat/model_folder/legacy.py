"""Model folders of formats 1 to 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from himecat.methods import MIXTURE, Default, Method, Paper, hyperparameters


def method_of(settings: Mapping[str, Any]) -> Method:
    """The method with the hyperparameters that formats 1 to 3 keep in one list for both methods.

    Examples
    --------
    >>> method_of({"space": "spectral", "classifier": "mixture", "em_rounds": 3, "topics": 100, "beta": 5})
    Default(em_rounds=3)
    """
    unknown = settings.keys() - {*hyperparameters(Default), *hyperparameters(Paper)}
    if unknown:
        raise ValueError(f"unknown setting {min(unknown)!r}")
    # Models of the first release know of no other space; nor do those of the second know topics.
    known = {"space": "sampled", "topics": 0, **settings}
    kind = Default if (known["space"], known["classifier"]) == ("spectral", MIXTURE) else Paper
    return kind(**{name: known[name] for name in hyperparameters(kind) if name in known})
