"""Estimators from arguments and hyperparameters side by side, as tests vary both."""

from __future__ import annotations

from typing import Any

from himecat import Default, HiMeCat, Paper
from himecat.methods import hyperparameters


def estimator(*arguments: Any, **options: Any) -> HiMeCat:
    """An estimator; the method is the one that has all the hyperparameters among the options."""
    known = {*hyperparameters(Default), *hyperparameters(Paper)}
    given = {name: options.pop(name) for name in known if name in options}
    kind = Default if given.keys() <= set(hyperparameters(Default)) else Paper
    return HiMeCat(*arguments, method=kind(**given), **options)
