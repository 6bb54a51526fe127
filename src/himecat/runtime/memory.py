"""Giving memory back to the system between the stages of a fit."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Return what is free to the system.

    The allocator of Linux keeps what threads have freed for later; between stages that would add up.

    Examples
    --------
    >>> give_back()
    """
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        # Another C library: it has its own ways.
        return
