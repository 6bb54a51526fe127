"""Systems by name: every file in this room that defines one, and files of the user's own."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from contextlib import redirect_stdout
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import himecat.compare.systems
from himecat.compare.systems.system import System
from himecat.errors import HimecatError, UsageError


@cache
def built_in_systems() -> dict[str, type[System]]:
    """The systems that come with the package, by name.

    Examples
    --------
    >>> "tfidf-svm" in built_in_systems()
    True
    """
    found: dict[str, type[System]] = {}
    for module in pkgutil.iter_modules(himecat.compare.systems.__path__):
        if not module.name.startswith("_") and module.name not in ("registry", "system"):
            found |= _defined_in(importlib.import_module(f"himecat.compare.systems.{module.name}"))
    return found


def system_named(name: str) -> type[System]:
    """A system that comes with the package; ours is found without importing all the others.

    Examples
    --------
    >>> system_named("himecat").title
    'himecat'
    """
    module = importlib.import_module("himecat.compare.systems.himecat")
    return _defined_in(module).get(name) or built_in_systems()[name]


def systems_in(file: str | PathLike[str]) -> dict[str, type[System]]:
    """The systems that a Python file of the user's own defines, by name.

    Raises
    ------
    UsageError
        There is no such file, it cannot be run, or it defines no system.

    Examples
    --------
    >>> systems_in("no-such-file.py")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: no-such-file.py: there is no such file.
    """
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file.")
    # Files of one name in different folders are different modules.
    digest = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]
    name = f"himecat_systems_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: this is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # Standard output is for results.
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except HimecatError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    found = _defined_in(module)
    if not found:
        raise UsageError(
            f"{path} defines no system: a class with a name that inherits himecat.compare.systems.system.System."
        )
    for kind in found.values():
        if reason := _not_whole(kind):
            raise UsageError(f"{path}: {kind.__name__} is no system yet: {reason}.")
    return found


def check_installed(kind: type[System]) -> None:
    """Refuse a system whose libraries are not installed.

    Examples
    --------
    >>> check_installed(built_in_systems()["tfidf-svm"])
    """
    for module in kind.requires:
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"The system {kind.name!r} needs {module}: install it with `pip install 'himecat[baselines]'`, "
                "with -c constraints.txt where you have it."
            )


def _not_whole(kind: type[System]) -> str:
    """What a class lacks to be a system; nothing where it lacks nothing."""
    if inspect.isabstract(kind):
        return "it has no method `fit_predict`"
    if not is_dataclass(kind):
        return "write `@dataclass(frozen=True)` above it"
    for name in ("name", "title", "about"):
        if not isinstance(getattr(kind, name, None), str):
            return f'write `{name} = "..."` in it'
    for field in fields(kind):
        if field.default is MISSING and field.default_factory is MISSING:
            return f"its parameter `{field.name}` has no default"
    return ""


def _defined_in(module: ModuleType) -> dict[str, type[System]]:
    kinds: list[Any] = [one for one in vars(module).values() if isinstance(one, type)]
    own = [kind for kind in kinds if issubclass(kind, System) and kind.__module__ == module.__name__]
    return {kind.name: kind for kind in own if hasattr(kind, "name")}
