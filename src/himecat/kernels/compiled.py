"""Compiling the hot loops, and keeping the machine code in the user's cache folder."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba import njit

# One setting of numba's serves all threads, and kernels are imported in several.
_SETTING = threading.Lock()


def compiled(
    *, fastmath: bool | Collection[str] = False, inline: str = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, without the interpreter's lock, and keep the machine code between runs.

    It is kept in `kernel_folder()` or, where nothing can be written there, beside the program. Where neither
    works (a read-only installation and no home, a full disk), it is compiled in each run.

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
            with _kept_in(kernel_folder()):
                return _forgiving(njit(cache=True, **options)(function))
        except RuntimeError:
            return njit(**options)(function)

    return decorate


def kernel_folder() -> Path | None:
    """The folder for machine code: `himecat/kernels` where the system keeps caches; None without a home.

    Examples
    --------
    >>> kernel_folder().parts[-2:]
    ('himecat', 'kernels')
    """
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        caches = home / "Library" / "Caches"
    else:
        named = Path(os.environ.get("XDG_CACHE_HOME", ""))
        # The standard says that a path that is not absolute is to be ignored.
        caches = named if named.is_absolute() else home / ".cache"
    return caches / "himecat" / "kernels" if caches.is_absolute() else None


@contextmanager
def _kept_in(folder: Path | None) -> Iterator[None]:
    """Let numba use this folder for what is compiled meanwhile; a folder that NUMBA_CACHE_DIR names goes first."""
    config: Any = numba.config
    with _SETTING:
        before = config.CACHE_DIR
        if not before and folder is not None:
            config.CACHE_DIR = str(folder)
        try:
            yield
        finally:
            config.CACHE_DIR = before


def _forgiving(dispatcher: Any) -> Any:
    """Compile anew where kept code is damaged, and go on where it cannot be kept: a cache is a convenience."""
    cache = dispatcher._cache
    load, save = cache.load_overload, cache.save_overload

    def load_if_whole(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:
            return None

    def save_if_possible(*arguments: Any) -> None:
        try:
            save(*arguments)
        except Exception:
            return

    cache.load_overload, cache.save_overload = load_if_whole, save_if_possible
    return dispatcher
