"""Two names exchanged in one step, so that nobody ever finds one of them missing; and names kept by the disk."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

# What systems and file systems answer that cannot do it; EPERM is what some containers say of calls they do not know.
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
_AT_FDCWD = -100
_RENAME_EXCHANGE = _RENAME_SWAP = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files or folders in one step; False, and nothing done, where that is not possible.

    Raises
    ------
    OSError
        One of them is missing, or may not be renamed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     one, other = Path(place, "one"), Path(place, "other")
    ...     _ = one.write_text("1"), other.write_text("2")
    ...     done = exchange(one, other)
    ...     (one.read_text() == "2") is done
    True
    """
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = system.renamex_np(first, second, _RENAME_SWAP)
        elif sys.platform == "linux":
            failed = system.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)
        else:
            return False
    except (OSError, AttributeError, TypeError):
        # An older C library has no such function, and Windows no such library.
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def sync_tree(folder: Path) -> None:
    """Have the disk take all files and folders below a folder, and itself."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
        else:
            with open(path, "r+b") as file:
                os.fsync(file.fileno())
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Have the disk take the names in a folder."""
    # Not every system can do it, and the files themselves are safe by now.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
