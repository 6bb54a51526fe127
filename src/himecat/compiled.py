"""Compiling the hot loops."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from numba import njit


def compiled(
    *, fastmath: bool | Collection[str] = False, inline: str = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, without the interpreter's lock, and keep the machine code between runs.

    Where there is no folder to keep it in (a read-only installation and no home), it is compiled in each run.

    Examples
    --------
    >>> @compiled()
    ... def twice(x):
    ...     return 2 * x
    >>> twice(4)
    8
    """

    def decorate(function: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "inline": inline}
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return decorate
