"""Temporary files and folders: their names, whether their writer lives, and what dead writers have left behind."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_LOG = logging.getLogger("himecat.files")
_PART = re.compile(r"\.himecat-[0-9a-f]{8}\.part")
_ASIDE = re.compile(r"\.himecat-[0-9a-f]{8}-([0-9a-f]{16})\.old")
_ATTEMPTS = 20


def new_file(target: Path) -> tuple[Path, int]:
    """An empty temporary file beside a target, and a descriptor to write it; locked for as long as that is open.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     part, descriptor = new_file(Path(place) / "report.html")
    ...     os.close(descriptor)
    ...     part.name.endswith(".part"), part.exists()
    (True, True)
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for _ in range(_ATTEMPTS):
        part = _part_beside(target)
        with _gone_if_interrupted(part):
            descriptor = os.open(part, flags, 0o666)
            if _is_ours(descriptor, part):
                return part, descriptor
            os.close(descriptor)
    raise OSError(f"temporary files in {target.parent} disappear at once")


def new_folder(target: Path) -> tuple[Path, int | None]:
    """An empty temporary folder beside a target, locked for as long as the descriptor is open.

    On systems without such locks there is no descriptor.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     part, descriptor = new_folder(Path(place) / "model")
    ...     if descriptor is not None:
    ...         os.close(descriptor)
    ...     part.is_dir()
    True
    """
    for _ in range(_ATTEMPTS):
        part = _part_beside(target)
        with _gone_if_interrupted(part):
            part.mkdir()
            if fcntl is None:
                return part, None
            with suppress(FileNotFoundError):
                descriptor = _opened(part)
                if _is_ours(descriptor, part):
                    return part, descriptor
                os.close(descriptor)
    raise OSError(f"temporary folders in {target.parent} disappear at once")


@contextmanager
def _gone_if_interrupted(part: Path) -> Iterator[None]:
    """Ctrl-C may come before the caller knows that there is something to remove."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        with suppress(OSError):
            os.rmdir(part) if part.is_dir() else os.unlink(part)
        raise


def _is_ours(descriptor: int, part: Path) -> bool:
    """Lock something new; False where somebody who cleans came between the making and the lock."""
    return _lock(descriptor) is not False and _is_under(descriptor, part)


def clean_leftovers(folder: str | os.PathLike[str]) -> list[str]:
    """Remove what writers that died have left in a folder: temporary files and folders of himecat, nothing else.

    A writer that lives holds a lock, by which it is told from a dead one. On systems without such locks nothing is
    removed. Nothing is raised: what cannot be removed stays.

    Parameters
    ----------
    folder : path
        The folder in which results were written.

    Returns
    -------
    list of str
        The names of what was removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / ".himecat-0123abcd.part").write_text("half a repo")
    ...     _ = (Path(place) / "report.html").write_text("a report")
    ...     clean_leftovers(place), os.listdir(place)
    (['.himecat-0123abcd.part'], ['report.html'])
    """
    removed = []
    try:
        names = os.listdir(folder)
        marks = {_mark(name) for name in names}
        for name in sorted(names):
            aside = _ASIDE.fullmatch(name)
            # A folder moved aside whose place is empty is the only copy: `recover` gives it its name back.
            if (_PART.fullmatch(name) or (aside and aside[1] in marks)) and _removed(Path(folder, name)):
                removed.append(name)
    except (OSError, ValueError):
        pass
    if removed:
        _LOG.info("Removed unfinished files of an earlier run from %s: %s.", folder, ", ".join(removed))
    return removed


def recover(target: Path) -> bool:
    """Give a folder its name back where a process died while it was replacing it; whether that was so.

    Examples
    --------
    >>> recover(Path("no-such-place/model"))
    False
    """
    try:
        if os.path.lexists(target):
            return False
        for name in sorted(os.listdir(target.parent)):
            found = _ASIDE.fullmatch(name)
            if found and found[1] == _mark(target.name) and _brought_back(target.parent / name, target):
                _LOG.info("Brought back %s: a process died while it was replacing it.", target)
                return True
    except (OSError, ValueError):
        pass
    return False


def swap_by_renames(new: Path, target: Path) -> None:
    """Exchange two folders by renames, where there is no exchange in one step.

    Killed in between, the old folder is beside its place, under a name by which `recover` knows it.
    """
    aside = target.parent / f".himecat-{secrets.token_hex(4)}-{_mark(target.name)}.old"
    with _held(target):
        try:
            os.rename(target, aside)
            os.rename(new, target)
            # It now is a leftover like others: only whole folders have the name of one moved aside. Another writer may
            # have taken it away by now; the new folder is in its place all the same.
            with suppress(FileNotFoundError):
                os.rename(aside, new)
        except BaseException:
            if os.path.lexists(aside):
                _put_back(aside, target)
            raise


def _put_back(aside: Path, target: Path) -> None:
    if not os.path.lexists(target):
        os.rename(aside, target)
        return
    # Another writer was quicker, and its folder stays.
    part = aside.rename(_part_beside(target))
    shutil.rmtree(part, ignore_errors=True)


def _part_beside(path: Path) -> Path:
    return path.parent / f".himecat-{secrets.token_hex(4)}.part"


def _mark(name: str) -> str:
    """What stands for a name within another one, which has to be short."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _opened(path: Path) -> int:
    """A descriptor of a file or folder to lock it by; links are not followed, and nothing waits for a pipe."""
    if not stat.S_ISREG(mode := os.lstat(path).st_mode) and not stat.S_ISDIR(mode):
        raise OSError(f"{path} is neither a file nor a folder")
    return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _lock(descriptor: int) -> bool | None:
    """Lock what is open until it is closed; False where another process has the lock, None where there are none."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some network drives have no locks.
        return None
    return True


def _is_under(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False


def _removed(path: Path) -> bool:
    """Remove a file or folder whose writer is dead; whether it is gone."""
    try:
        descriptor = _opened(path)
    except OSError:
        return False
    try:
        if not _lock(descriptor) or not _is_under(descriptor, path):
            return False
        if _ASIDE.fullmatch(path.name):
            path = path.rename(_part_beside(path))
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
        return not os.path.lexists(path)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _brought_back(aside: Path, target: Path) -> bool:
    if fcntl is None:
        os.rename(aside, target)
        return True
    descriptor = _opened(aside)
    try:
        if _lock(descriptor) is False or not _is_under(descriptor, aside):
            return False
        os.rename(aside, target)
        return True
    finally:
        os.close(descriptor)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock a folder in the block, if that is possible: whoever finds it aside sees that its writer lives."""
    descriptor = None
    with suppress(OSError):
        descriptor = _opened(folder) if fcntl else None
    try:
        if descriptor is not None:
            _lock(descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
