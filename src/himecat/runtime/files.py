"""Atomic files and folders: written beside the target first, renamed once complete."""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from himecat.errors import HimecatError, OutputError

MODEL_FILE = "model.json"
"""The file that tells a model folder from any other folder."""

WEIGHTS_FILE = "weights.safetensors"
"""The other file of a model folder."""

_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/self/fd/")


def write_atomic(path: str | os.PathLike[str], content: str | bytes, what: str = "The report") -> None:
    """Write beside the target, then rename; a failure leaves the old file, and no half-written one.

    Parameters
    ----------
    path : path
        The file; what is not a regular file (a pipe, `/dev/stdout`) is written to as it is.
    content : str or bytes
        Text is written as UTF-8.
    what : str
        What is written, the subject of the sentence when it fails.

    Raises
    ------
    OutputError
        The folder is missing or not writable, the disk is full, or `path` is a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder) / "page.html", "<p>text")
    ...     (Path(folder) / "page.html").read_text()
    '<p>text'
    """
    with _atomic_bytes(path, what) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: str | os.PathLike[str], what: str = "The file") -> Iterator[TextIO]:
    r"""A text stream for a file of any length, which appears under its name when the block ends well.

    A failure in the block, Ctrl-C among them, leaves the old file and no half-written one. A path that cannot
    be written raises before the block starts.

    Parameters
    ----------
    path, what
        As for `write_atomic`.

    Raises
    ------
    OutputError
        As for `write_atomic`. Other errors of the block pass unchanged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "predictions.jsonl", "The predictions") as lines:
    ...         for number in range(3):
    ...             _ = lines.write(f"{number}\n")
    ...     (Path(folder) / "predictions.jsonl").read_text().split()
    ['0', '1', '2']
    """
    with _atomic_bytes(path, what) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        yield text
        text.detach()


@contextmanager
def atomic_folder(
    folder: str | os.PathLike[str], *, overwrite: bool = False, what: str = "The model"
) -> Iterator[Path]:
    """An empty folder to fill, which appears under its name when the block ends well.

    A failure in the block, Ctrl-C among them, leaves nothing; with `overwrite` it leaves the old folder,
    which is replaced only once the new one is complete.

    Parameters
    ----------
    folder : path
        The folder that will appear; the one it stands in must exist.
    overwrite : bool
        Replace a folder that is empty or a model, with all that is in it.
    what : str
        What is written, the subject of the sentence when it fails.

    Raises
    ------
    OutputError
        As for `check_target`, before the block starts; or writing failed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with atomic_folder(Path(place) / "model") as temporary:
    ...         _ = (temporary / "model.json").write_text("{}")
    ...     [file.name for file in (Path(place) / "model").iterdir()]
    ['model.json']
    """
    check_target(folder, overwrite, what)
    with replaced_folder(folder, what) as temporary:
        yield temporary
        # The work in between may have taken hours.
        check_target(folder, overwrite, what)


@contextmanager
def replaced_folder(folder: str | os.PathLike[str], what: str) -> Iterator[Path]:
    """An empty folder as that of `atomic_folder`, which takes the place of whatever is there."""
    with _as_output_error(what, _with_slash(folder)):
        target = _resolve_link(Path(folder))
        temporary = _temporary_name(target)
        try:
            temporary.mkdir()
            yield temporary
            _sync_tree(temporary)
            _replace_folder(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_target(folder: str | os.PathLike[str], overwrite: bool = False, what: str = "The model") -> None:
    """Say that a folder cannot be written before any work is done for it.

    Parameters
    ----------
    folder, overwrite, what
        As for `atomic_folder`.

    Raises
    ------
    OutputError
        The folder exists and may not be overwritten, is a file, or stands where nothing can be written.

    Examples
    --------
    >>> check_target("no-such-place/model")
    Traceback (most recent call last):
    ...
    himecat.errors.OutputError: The model cannot be written to no-such-place/model/: the folder no-such-place
    does not exist.
    """
    shown = _with_slash(folder)
    with _as_output_error(what, shown):
        target = _resolve_link(Path(folder))
        if not target.exists():
            if not target.parent.is_dir():
                raise OSError(f"the folder {target.parent} does not exist")
        elif not target.is_dir():
            raise OutputError(f"{target} is a file, and a folder is to be written: choose another name.")
        elif not overwrite:
            raise OutputError(f"{shown} exists already: choose another name or pass --overwrite.")
        elif (target / MODEL_FILE).exists():
            # The old folder goes as a whole: what somebody put beside the model would go with it.
            if others := sorted({found.name for found in target.iterdir()} - {MODEL_FILE, WEIGHTS_FILE}):
                raise OutputError(
                    f"{shown} is not overwritten, because it holds {others[0]} beside the model: take it out, or "
                    "choose another name."
                )
        elif any(target.iterdir()):
            raise OutputError(
                f"{shown} is not overwritten, because it is not a himecat model (it holds no {MODEL_FILE}): "
                "choose another name."
            )
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise OSError(f"there is no permission to write in the folder {target.parent}")


class _Target(io.FileIO):
    """A file whose writes raise OutputError, wherever in the caller's code the disk is full."""

    def __init__(self, path: str | Path, mode: str, to_error: Callable[[OSError], OutputError]) -> None:
        super().__init__(path, mode)
        self._to_error = to_error

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise self._to_error(error) from error


@contextmanager
def _atomic_bytes(path: str | os.PathLike[str], what: str) -> Iterator[io.BufferedWriter[_Target]]:
    shown = os.fspath(path)
    raw: _Target | None = None
    temporary: Path | None = None
    try:
        with _as_output_error(what, shown):
            target = _file_target(Path(path))
            temporary = None if _is_stream(shown) else _temporary_name(target)
            place, mode = (temporary, "xb") if temporary else (shown, "ab")
            raw = _Target(place, mode, lambda error: _output_error(what, shown, error))
        stream = io.BufferedWriter(raw)
        yield stream
        with _as_output_error(what, shown):
            stream.flush()
            if temporary:
                os.fsync(raw.fileno())
            stream.close()
            if temporary:
                os.replace(temporary, target)
                _sync_folder(target.parent)
    finally:
        # The rename has worked, or something has failed, also by Ctrl-C. Closing below the buffers keeps
        # them from being written once more to a disk that is full.
        with suppress(OSError):
            if raw:
                raw.close()
        if temporary:
            temporary.unlink(missing_ok=True)


@contextmanager
def _as_output_error(what: str, shown: str) -> Iterator[None]:
    try:
        yield
    except HimecatError:
        raise
    except OSError as error:
        raise _output_error(what, shown, error) from error


def _output_error(what: str, shown: str, error: OSError) -> OutputError:
    return OutputError(f"{what} cannot be written to {shown}: {error.strerror or error}.")


def _with_slash(folder: str | os.PathLike[str]) -> str:
    return os.path.join(os.fspath(folder), "")


def _resolve_link(path: Path) -> Path:
    """The place a link leads to, so that the link stays; raises where a path cannot exist at all."""
    with suppress(FileNotFoundError):
        path.lstat()
    # `.` and `..` have no parent before they are resolved.
    return Path(os.path.realpath(path)) if path.is_symlink() or path.name in ("", "..") else path


def _file_target(path: Path) -> Path:
    target = _resolve_link(path)
    if target.is_dir():
        raise OSError("it is a folder, name a file in it")
    if not target.parent.is_dir() and not _is_stream(path):
        raise OSError(f"the folder {target.parent} does not exist")
    return target


def _is_stream(path: str | Path) -> bool:
    """Whether a path leads to a pipe, a device or an open file, which a rename would cut off."""
    is_open = os.path.abspath(path).startswith(_OPEN_FILES)
    return os.path.exists(path) and (is_open or not os.path.isfile(path))


def _temporary_name(target: Path) -> Path:
    return target.parent / f".himecat-{secrets.token_hex(4)}.part"


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            _sync_folder(path)
        else:
            with open(path, "r+b") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    # Not every system can do it, and the files themselves are safe by now.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _replace_folder(temporary: Path, target: Path) -> None:
    aside = _temporary_name(target)
    try:
        if target.exists():
            os.rename(target, aside)
        os.rename(temporary, target)
        _sync_folder(target.parent)
    finally:
        if aside.exists():
            if not target.exists():
                os.rename(aside, target)
            else:
                shutil.rmtree(aside, ignore_errors=True)
