"""What the systems say of parameters that cannot work."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from himecat.errors import UsageError


def require_at_least(system: object, **smallest: float) -> None:
    """Say which parameter of a system is too small or no number; None is left to the system.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> require_at_least(SimpleNamespace(beta=-1), beta=0)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: beta must be at least 0, not -1.
    """
    for name, least in smallest.items():
        value = getattr(system, name)
        if value is not None and not (_is_number(value) and least <= value < math.inf):
            raise UsageError(f"{name} must be at least {least:g}, not {value!r}.")


def require_above_zero(system: object, *names: str) -> None:
    """Say which parameter of a system is not above zero.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> require_above_zero(SimpleNamespace(c=0.0), "c")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: c must be a number above 0, not 0.0.
    """
    for name in names:
        value = getattr(system, name)
        if value is not None and not (_is_number(value) and 0 < value < math.inf):
            raise UsageError(f"{name} must be a number above 0, not {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
