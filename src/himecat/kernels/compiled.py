"""Compiling the hot loops, and caching the machine code between runs."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import njit

from himecat import __version__

_LOG = logging.getLogger(__name__)
_HERE = Path(__file__).resolve().parent
# numba has one setting for all threads, and kernels are imported in several.
_CONFIG_LOCK = threading.Lock()
# A folder of another version is removed when no process has used it for so long.
_SECONDS_KEPT = 30 * 24 * 3600
_SECONDS_PER_DAY = 24 * 3600
_FOLDER_NAME = re.compile(r".+[-_][0-9a-f]{16,40}")


def compiled(
    *, fastmath: bool | Collection[str] = False, inline: str = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, without the interpreter's lock, and cache the machine code between runs.

    It is cached in the first of `cache_folders` that can be written. Where none can (a read-only installation
    and no home), it is compiled in each run.

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
        if Path(function.__code__.co_filename).is_file():
            for folder in cache_folders():
                dispatcher = _cached(function, folder, options)
                if dispatcher is not None:
                    return dispatcher
            _warn_once(
                "Compiled code cannot be cached, so every run compiles: no cache folder can be written."
            )
        return njit(**options)(function)

    return decorate


def user_cache() -> Path | None:
    """The folder `himecat` where the system keeps caches; None without a home.

    Examples
    --------
    >>> user_cache().name
    'himecat'
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
        # The XDG standard ignores a path that is not absolute.
        caches = named if named.is_absolute() else home / ".cache"
    return caches / "himecat" if caches.is_absolute() else None


def cache_folders() -> list[Path]:
    """Where machine code may be cached, best first: NUMBA_CACHE_DIR or the user's cache, then beside the kernels.

    numba compares only the file that a kernel is written in, not the files whose functions it calls. So the
    folder's name holds a hash of all sources here and of the compiler's version: after any change it is another.

    Examples
    --------
    >>> cache_folders()[-1].parent.name
    '__pycache__'
    """
    config: Any = numba.config
    with _CONFIG_LOCK:
        named = config.CACHE_DIR
    root = Path(named, "himecat") if named else user_cache()
    parents = [*([root / "kernels"] if root else []), _HERE / "__pycache__"]
    return [parent / f"{__version__}-{_fingerprint()}" for parent in parents]


@functools.cache
def _fingerprint() -> str:
    """A hash of the versions of the compiler and of all sources in this folder."""
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted(_HERE.glob("*.py")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _cached(function: Callable[..., Any], folder: Path, options: dict[str, Any]) -> Any:
    """The compiled function with its cache in `folder`; None where the folder cannot be written."""
    with _numba_cache_in(folder):
        try:
            dispatcher = njit(cache=True, **options)(function)
        except RuntimeError as error:
            _LOG.debug("No cache for %s: %s", function.__qualname__, error)
            return None
    if not Path(dispatcher.stats.cache_path).is_relative_to(folder):
        # numba has fallen back on a folder of its own, which old code would share with new code.
        _LOG.info("The cache folder %s cannot be written.", folder)
        return None
    _mark_used(folder)
    _log_failures(dispatcher)
    return dispatcher


@contextmanager
def _numba_cache_in(folder: Path) -> Iterator[None]:
    """Let numba use this folder for what is decorated in the block."""
    config: Any = numba.config
    with _CONFIG_LOCK:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder)
        try:
            yield
        finally:
            config.CACHE_DIR = before


@functools.cache
def _mark_used(folder: Path) -> None:
    """Note once per process that the folder is in use, and remove its siblings that have not been for long."""
    now = time.time()
    try:
        if now - folder.stat().st_mtime > _SECONDS_PER_DAY:
            os.utime(folder)
        others = [path for path in folder.parent.iterdir() if _FOLDER_NAME.fullmatch(path.name)]
        for other in others:
            if other != folder and other.is_dir() and now - other.stat().st_mtime > _SECONDS_KEPT:
                shutil.rmtree(other)
                _LOG.info("Removed the unused compiled code in %s.", other)
    except OSError as error:
        _LOG.info("Old compiled code cannot be removed: %s.", error)


def _log_failures(dispatcher: Any) -> None:
    """Compile anew where cached code is damaged, and go on where it cannot be cached; both are logged."""
    # numba has no public name for the cache of one function.
    cache, name = dispatcher._cache, dispatcher.__qualname__  # noqa: SLF001
    load, save = cache.load_overload, cache.save_overload

    def load_or_none(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception as error:
            _LOG.info("The cached code of %s cannot be used and is compiled anew: %r.", name, error)
            return None

    def save_if_possible(*arguments: Any) -> None:
        try:
            save(*arguments)
        except Exception as error:
            _LOG.info("The compiled code of %s cannot be cached in %s: %r.", name, cache.cache_path, error)
            reason = getattr(error, "strerror", None) or error
            _warn_once(f"Compiled code cannot be cached, so the next run compiles again: {reason}.")

    cache.load_overload, cache.save_overload = load_or_none, save_if_possible


@functools.cache
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)
