"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from himecat.errors import OutputError


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the target, then rename; a failure leaves the old file, and no half-written one.

    Raises
    ------
    OutputError
        The folder is missing or not writable, the disk is full, or `path` is a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "page.html", "<p>text")
    ...     (Path(folder) / "page.html").read_text()
    '<p>text'
    """
    target = Path(path)
    beside = target.parent / f".himecat-{secrets.token_hex(4)}.part"
    try:
        _refuse_hopeless(target)
        try:
            with open(beside, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        finally:
            # Gone already when the rename worked; also runs when the user interrupts.
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"The report cannot be written to {target}: {error.strerror or error}.") from error


def _refuse_hopeless(target: Path) -> None:
    if target.is_dir():
        raise OSError("it is a folder, name a file in it")
    if not target.parent.is_dir():
        raise OSError(f"the folder {target.parent} does not exist")
