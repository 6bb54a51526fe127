"""Cached results of runs, one small file each, so that nothing is measured twice."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import himecat
from himecat.compare.protocol.run import Run
from himecat.compare.systems.system import System
from himecat.errors import DataError, OutputError
from himecat.input.dataset import DRAW_FILE, METADATA_FILE, TREE_FILE, Dataset
from himecat.runtime.files import write_atomic
from himecat.views.encoder_cache import CACHE_VARIABLE

FloatArray = npt.NDArray[np.floating[Any]]

# What reads, scores and measures, whatever the system.
_PROTOCOL = "himecat.compare.protocol.measure"
# What shows or stores results and changes none; and what lists all systems, though a result depends on one.
_NO_PART = (
    "himecat.cli", "himecat.compare.figures", "himecat.compare.systems.registry", "himecat.errors",
    "himecat.evaluation.report",
    "himecat.model_folder", "himecat.runtime.bounds", "himecat.runtime.exchange", "himecat.runtime.files",
    "himecat.runtime.leftovers", "himecat.runtime.progress", "himecat.runtime.terminal", "himecat.sample",
)  # fmt: skip
_PACKAGE = Path(himecat.__file__).parent


class RunCache:
    """Runs by what they depend on, in the files of one folder.

    A file is written whole or not at all; a damaged one is ignored with a warning, and so is a folder that
    cannot be written. Failed runs are not cached: they are tried again.

    Parameters
    ----------
    folder : Path or None
        Where the files are; None caches nothing.
    warn : callable
        Receives the warnings.

    Examples
    --------
    >>> import tempfile
    >>> scores = {"micro": 0.5, "macro": 0.4}
    >>> run = Run("letters", "tfidf-svm", "TF-IDF + SVM", {}, 0, 0, leaf=scores, overall=scores)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = RunCache(Path(folder), print)
    ...     cache.add({"draw": 0}, run)
    ...     cache.find({"draw": 0}, run) == run, cache.find({"draw": 1}, run)
    (True, None)
    """

    def __init__(self, folder: Path | None, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self._warn = warn
        self._writable = folder is not None

    def find(self, key: Mapping[str, Any], asked: Run) -> Run | None:
        """The run with this key under the names of the one that is asked for; None where there is none."""
        path = self._path(key, asked)
        if path is None:
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["key"] != json.loads(json.dumps(key)):
                return None
            found = Run.from_dict(content["run"])
            if not {"micro", "macro"} <= set(found.leaf) & set(found.overall):
                raise ValueError
        except OSError:
            # There is none, or none that can be read; a folder that cannot be written is reported by `add`.
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            self._warn(f"{path} is damaged: it is left out, and the run is measured again.")
            return None
        # The same dataset may lie in a folder of another name, and a row of a table may be called otherwise.
        return replace(
            found, dataset=asked.dataset, system=asked.system, title=asked.title, parameters=asked.parameters
        )

    def add(self, key: Mapping[str, Any], run: Run) -> None:
        """Cache a run that gave scores."""
        path = self._path(key, run)
        if path is None or not self._writable or run.failure:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            content = json.dumps({"key": dict(key), "run": run.as_dict()}, ensure_ascii=False, indent=1)
            write_atomic(path, content + "\n", "The result of a run")
        except OSError as error:
            self._writable = False
            said = str(error) if isinstance(error, OutputError) else f"{path.parent}: {error.strerror}."
            self._warn(f"results are not cached. {said}")

    def _path(self, key: Mapping[str, Any], run: Run) -> Path | None:
        if self.folder is None:
            return None
        # The dataset's name would split what is the same data under two names.
        name = re.sub(r"[^\w.-]+", "_", run.system)
        return self.folder / f"{name}-{run.draw}-{run.seed}-{_digest(key)}.json"


def cached_vectors(
    folder: Path | None, name: str, key: Mapping[str, Any], make: Callable[[], FloatArray]
) -> FloatArray:
    """Vectors that were computed before for the same key; else they are computed, and cached if that is possible.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = cached_vectors(Path(folder), "labels", {"draw": 0}, lambda: np.eye(2))
    ...     print(cached_vectors(Path(folder), "labels", {"draw": 0}, lambda: np.zeros((2, 2))).tolist())
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if folder is None:
        return make()
    path = folder / f"{name}-{_digest(key)}.npy"
    try:
        found: FloatArray = np.load(path, allow_pickle=False)
        return found
    except (OSError, ValueError, EOFError):
        found = make()
    stream = io.BytesIO()
    np.save(stream, found, allow_pickle=False)
    # Where it cannot be cached, the runs have said so.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, stream.getvalue(), "The map of the labels")
    return found


def _digest(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(key), sort_keys=True).encode()).hexdigest()[:20]


def results_folder(named: str | os.PathLike[str] | bool | None = None) -> Path | None:
    """Where results are cached: the named folder, `runs` in HIMECAT_CACHE, or in the user's cache folder.

    Examples
    --------
    >>> results_folder("results").name, results_folder(False)
    ('results', None)
    """
    if isinstance(named, bool):
        return None
    if named is not None:
        return Path(named).expanduser()
    if common := os.environ.get(CACHE_VARIABLE, "").strip():
        return Path(common).expanduser() / "runs"
    from himecat.kernels.compiled import user_cache

    common_folder = user_cache()
    return None if common_folder is None else common_folder / "runs"


def dataset_fingerprint(dataset: Dataset) -> str:
    """A hash of what the files of a dataset hold; where the folder lies does not matter.

    Examples
    --------
    >>> import tempfile
    >>> from himecat.input.dataset import open_dataset
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as place:
    ...     one, two = (open_dataset(write_sample(f"{place}/{name}", 330)) for name in "ab")
    ...     dataset_fingerprint(one) == dataset_fingerprint(two)
    True
    """
    digest = hashlib.sha256()
    small = [dataset.folder / name for name in (TREE_FILE, METADATA_FILE, DRAW_FILE)]
    if dataset.is_file:
        # Its tree lies elsewhere, or in its labels.
        digest.update(repr([dataset.taxonomy.path(leaf) for leaf in dataset.taxonomy.leaves]).encode())
        small = [] if dataset.truth is None else [dataset.truth]
    try:
        for path in (dataset.documents, *(path for path in small if path.is_file())):
            digest.update(f"{path.name}\0".encode(errors="surrogateescape"))
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise DataError(f"{dataset.folder} cannot be read: {error.strerror or error}.") from error
    return digest.hexdigest()[:16]


def code_version(kind: type[System]) -> str:
    """A hash of the source code that a result of this system depends on.

    These are the system's own file, the one that reads and scores, and every file of the package that they
    import, directly or through others. Code that only shows or stores results (command line, report, figures,
    model folders, progress) does not count, and neither do the files of other systems. Files that a system of
    the user's own imports from beside it are not followed.

    Examples
    --------
    >>> from himecat.compare.systems.registry import built_in_systems
    >>> kinds = built_in_systems()
    >>> code_version(kinds["tfidf-svm"]) == code_version(kinds["encoder-lr"])
    False
    """
    own = Path(str(sys.modules[kind.__module__].__file__))
    files = {own, *_files_behind(_PROTOCOL)}
    for module in _imported(own):
        files |= _files_behind(module)
    digest = hashlib.sha256(himecat.__version__.encode())
    for path in sorted(files, key=lambda path: path.as_posix()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _files_behind(root: str) -> frozenset[Path]:
    """The file of a module of the package, and those of all it imports."""
    files: dict[str, Path] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in files and (path := _file_of(name)) is not None:
            files[name] = path
            waiting += _imported(path)
    return frozenset(files.values())


def _file_of(module: str) -> Path | None:
    """The source file of a module that has a part in results; found without importing it."""
    if any(module == name or module.startswith(f"{name}.") for name in _NO_PART):
        return None
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, anywhere in it; a name may be that of a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "himecat":
            # Its names are imported from elsewhere when they are first used.
            found.update(
                str(getattr(getattr(himecat, one.name, None), "__module__", "")) for one in node.names
            )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return {name for name in found if name.startswith("himecat.")}
