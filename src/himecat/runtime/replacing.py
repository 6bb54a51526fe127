"""Finished folders that take the place of others."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

from himecat.runtime.exchange import exchange, sync_folder
from himecat.runtime.leftovers import swap_by_renames

# Writers of one target that are in each other's way try again.
_ATTEMPTS = 20


def replace_folder(new: Path, target: Path, kept: Path) -> None:
    """Put a finished folder in the place of another in one step; that one is kept under a third name.

    What had the third name goes. Who is ended after the first step finds the old folder under the name of the new one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     new, target, kept = (Path(place, name) for name in ("new", "target", "kept"))
    ...     new.mkdir(), target.mkdir(), (new / "a").touch(), (target / "b").touch()
    ...     replace_folder(new, target, kept)
    ...     sorted(str(file.relative_to(place)) for file in Path(place).rglob("*"))
    (None, None, None, None)
    ['kept', 'kept/b', 'target', 'target/a']
    """
    move_in(new, target, replace=True)
    sync_folder(target.parent)
    keep_folder(new, kept)


def keep_folder(folder: Path, kept: Path) -> None:
    """Rename a folder; what had the name before goes."""
    move_in(folder, kept, replace=True)
    sync_folder(kept.parent)
    shutil.rmtree(folder, ignore_errors=True)


def move_in(temporary: Path, target: Path, *, replace: bool) -> bool:
    """Give a finished folder its name; whoever had it is under the temporary name then. False where it is taken."""
    for attempt in range(_ATTEMPTS):
        try:
            if not (replace and os.path.lexists(target)):
                os.rename(temporary, target)
            elif not stat.S_ISDIR(os.lstat(target).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            elif not exchange(temporary, target):
                swap_by_renames(temporary, target)
            return True
        except OSError as error:
            taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            if taken and not replace:
                return False
            # Another writer has put its folder there, or taken the old one away, in the meantime.
            if attempt == _ATTEMPTS - 1 or not (taken or error.errno == errno.ENOENT):
                raise
    return False
