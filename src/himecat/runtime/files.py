"""Atomic files and folders: written beside the target first, renamed once complete."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from himecat.errors import HimecatError, OutputError, spelled
from himecat.runtime.exchange import sync_folder, sync_tree
from himecat.runtime.leftovers import clean_leftovers, new_file, new_folder, recover
from himecat.runtime.replacing import move_in

MODEL_FILE = "model.json"
"""The file that tells a model folder from any other folder."""

WEIGHTS_FILE = "weights.safetensors"
"""The arrays of a model."""

CORPUS_FILE = "corpus.safetensors"
"""What a model was fitted on; some model folders do without it."""

MODEL_FILES = (MODEL_FILE, WEIGHTS_FILE, CORPUS_FILE)
"""All files that a model folder may hold."""

MODEL_FORMAT = "himecat-model"
"""What stands first in our `model.json`, as its `format`: other programs have files of that name, too."""

_HEAD = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + MODEL_FORMAT.encode() + rb'"\s*,')
_HEAD_BYTES = 256
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
    with atomic_bytes(path, what) as stream:
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
    with atomic_bytes(path, what) as stream:
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
    with _folder_in_place(folder, what, replace=overwrite) as temporary:
        yield temporary
        # The work in between may have taken hours.
        check_target(folder, overwrite, what)


@contextmanager
def replaced_folder(folder: str | os.PathLike[str], what: str) -> Iterator[Path]:
    """An empty folder as that of `atomic_folder`, which takes the place of whatever is there."""
    with _folder_in_place(folder, what, replace=True) as temporary:
        yield temporary


@contextmanager
def _folder_in_place(folder: str | os.PathLike[str], what: str, *, replace: bool) -> Iterator[Path]:
    shown = _with_slash(folder)
    with _as_output_error(what, shown):
        target = _resolve_link(Path(folder))
        recover(target)
        clean_leftovers(target.parent)
        temporary, lock = new_folder(target)
        try:
            yield temporary
            sync_tree(temporary)
            if not move_in(temporary, target, replace=replace):
                raise _exists_already(shown)
            sync_folder(target.parent)
        finally:
            # What is under the temporary name now is the old folder, or a new one that failed.
            try:
                shutil.rmtree(temporary, ignore_errors=True)
            except BaseException:
                # Ctrl-C in the middle of it: what is begun is done.
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            finally:
                if lock is not None:
                    os.close(lock)


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
        recover(target)
        if not target.exists():
            if not target.parent.is_dir():
                raise OSError(f"the folder {target.parent} does not exist")
        elif not target.is_dir():
            raise OutputError(f"{target} is a file, and a folder is to be written: choose another name.")
        elif not overwrite:
            raise _exists_already(shown)
        else:
            _check_replaceable(target, shown)
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise OSError(f"there is no permission to write in the folder {target.parent}")


def _check_replaceable(target: Path, shown: str) -> None:
    """The old folder goes as a whole, and what somebody put beside the model would go with it."""
    found = {entry.name: entry.is_file(follow_symlinks=False) for entry in os.scandir(target)}
    if not found:
        return
    if not found.get(MODEL_FILE):
        why = f"it is not a himecat model (it holds no {MODEL_FILE})"
    elif not is_our_model(target / MODEL_FILE):
        why = f"it is not a himecat model (its {MODEL_FILE} is of another kind)"
    elif others := sorted(found.keys() - {*MODEL_FILES}):
        raise OutputError(
            f"{shown} is not overwritten, because it holds {others[0]} beside the model: take it out, or "
            "choose another name."
        )
    elif no_files := sorted(name for name, is_file in found.items() if not is_file):
        why = f"its {no_files[0]} is not a file"
    else:
        return
    raise OutputError(f"{shown} is not overwritten, because {why}: choose another name.")


def is_our_model(file: Path) -> bool:
    """Whether a `model.json` begins as ours do; what comes after may be damaged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.json"
    ...     _ = file.write_text('{"format": "layers-model", "weights": []}')
    ...     is_our_model(file)
    False
    """
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as stream:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return regular and _HEAD.match(stream.read(_HEAD_BYTES)) is not None


def _exists_already(shown: str) -> OutputError:
    return OutputError(
        f"{shown} exists already: choose another name or pass {spelled('--overwrite', 'overwrite=True')}."
    )


class _Target(io.FileIO):
    """A file whose writes raise OutputError, wherever in the caller's code the disk is full."""

    def __init__(self, path: str | int, mode: str, to_error: Callable[[OSError], OutputError]) -> None:
        super().__init__(path, mode)
        self._to_error = to_error

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise self._to_error(error) from error


@contextmanager
def atomic_bytes(path: str | os.PathLike[str], what: str) -> Iterator[io.BufferedWriter[_Target]]:
    """A stream of bytes as `atomic_file` gives one of text.

    Examples
    --------
    >>> with atomic_bytes(os.devnull, "The table") as stream: _ = stream.write(b"PAR1")
    """
    shown = os.fspath(path)
    raw: _Target | None = None
    temporary: Path | None = None
    lock: int | None = None
    try:
        with _as_output_error(what, shown):
            target = _file_target(Path(path))
            place: str | int = shown
            if not _is_stream(shown):
                clean_leftovers(target.parent)
                temporary, opened = new_file(target)
                # The lock is to outlast the stream; where there is none, an open file could not be renamed.
                place, lock = opened, os.dup(opened) if os.name == "posix" else None
            raw = _Target(place, "wb" if temporary else "ab", lambda error: _output_error(what, shown, error))
        stream = io.BufferedWriter(raw)
        yield stream
        with _as_output_error(what, shown):
            stream.flush()
            if temporary:
                os.fsync(raw.fileno())
            stream.close()
            if temporary:
                os.replace(temporary, target)
                sync_folder(target.parent)
    finally:
        # The rename has worked, or something has failed, also by Ctrl-C. Closing below the buffers keeps
        # them from being written once more to a disk that is full.
        with suppress(OSError):
            if raw:
                raw.close()
            if temporary:
                temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def _as_output_error(what: str, shown: str) -> Iterator[None]:
    try:
        yield
    except HimecatError:
        raise
    except OSError as error:
        raise _output_error(what, shown, error) from error


def _output_error(what: str, shown: str, error: OSError) -> OutputError:
    shown = shown.replace("\0", "\\0")
    return OutputError(f"{what} cannot be written to {shown}: {error.strerror or error}.")


def _with_slash(folder: str | os.PathLike[str]) -> str:
    return os.path.join(os.fspath(folder), "")


def _resolve_link(path: Path) -> Path:
    """The place a link leads to, so that the link stays; raises where a path cannot exist at all."""
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except ValueError:
        raise OSError("no file can have such a name") from None
    # `.` and `..` have no parent before they are resolved.
    found = Path(os.path.realpath(path)) if path.is_symlink() or path.name in ("", "..") else path
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


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
