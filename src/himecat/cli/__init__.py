"""The command line. Heavy imports happen inside the commands, so that help appears at once."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from himecat.errors import HimecatError

_INTERRUPTED = 128 + signal.SIGINT
_ENDED = 128 + signal.SIGTERM


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and end the process: 0 done, 2 for usage and bad data, 1 for our own fault.

    Ctrl-C ends it with 130. With HIMECAT_DEBUG set, a fault of ours shows where it happened.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    try:
        with _ended_cleanly():
            code = _run(arguments)
            sys.stdout.flush()
    except HimecatError as error:
        code = _tell(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
            code = _give_up_output(error)
        elif os.environ.get("HIMECAT_DEBUG"):
            raise
        else:
            found = " ".join(f"{type(error).__name__}: {error}".split())
            hint = "set HIMECAT_DEBUG=1 to see where, and please report it"
            code = _tell(f"this should not have happened: {found} ({hint}).", 1)
    if code in (_INTERRUPTED, _ENDED):
        _tell("interrupted; nothing was left half-written.", code)
    raise SystemExit(code)


def _run(arguments: list[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # JSON is UTF-8 wherever it is written; a file name that is not must not end the program.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    from himecat.cli.app import app

    try:
        app(args=arguments, prog_name="himecat")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _tell(message: str, code: int) -> int:
    with suppress(OSError):
        for line in message.splitlines():
            print(f"himecat: {line}", file=sys.stderr)
    return code


def _give_up_output(error: OSError) -> int:
    """Standard output takes no more: its reader is gone, or the disk it is written to is full."""
    # What is still buffered would be tried once more when Python ends, and fail aloud.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if error.errno == errno.EPIPE:
        return 1
    return _tell(f"The result cannot be written: {error.strerror}.", 2)


@contextmanager
def _ended_cleanly() -> Iterator[None]:
    """Let `kill` end the work as Ctrl-C does, so that it leaves nothing half-written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> NoReturn:
        raise SystemExit(_ENDED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
