"""The command line. Heavy imports happen inside the commands, so that help appears at once."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from himecat.errors import HimecatError, by_options
from himecat.runtime.bounds import VARIABLE as BOUNDS
from himecat.runtime.terminal import tell

_INTERRUPTED = 128 + signal.SIGINT
_ENDED = 128 + signal.SIGTERM
_OUTPUT_FAULTS = (errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EIO)


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
    _open_standard_streams()
    bounds = os.environ.get(BOUNDS)
    try:
        with by_options(), _ended_cleanly():
            code = _run(arguments)
            sys.stdout.flush()
    except HimecatError as error:
        code = _tell(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except MemoryError:
        code = _tell("There is not enough memory for this input: take a part of it, or another machine.", 2)
    except Exception as error:
        if os.environ.get("HIMECAT_DEBUG"):
            raise
        if isinstance(error, OSError):
            code = _tell(_what_the_system_said(error), 2)
        else:
            found = " ".join(f"{type(error).__name__}: {error}".split())
            hint = "set HIMECAT_DEBUG=1 to see where, and please report it"
            code = _tell(f"this should not have happened: {found} ({hint}).", 1)
    finally:
        # Bounds hold for one command; whoever calls this function in a program of their own keeps theirs.
        os.environ.pop(BOUNDS, None) if bounds is None else os.environ.update({BOUNDS: bounds})
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
        return app(args=arguments, prog_name="himecat", standalone_mode=False) or 0
    except SystemExit as end:
        if end.code == 1:
            # No command of ours ends so: it is how typer takes a standard output whose reader is gone.
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:
        # Typer's own errors of usage, told as all errors are: an argument may hold anything.
        if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", "himecat")
        return _tell(f"{error.format_message().rstrip('.')}. See {command} --help.", error.exit_code)


def _tell(message: str, code: int) -> int:
    tell(message, "himecat: ")
    return code


class _Closed(io.TextIOBase):
    """Standard output that the caller has closed: whoever writes to it learns that."""

    def write(self, _: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def fileno(self) -> int:
        return 1


def _open_standard_streams() -> None:
    """Put something in the place of standard streams that the caller has closed.

    Otherwise the next file that is opened gets their number, and whatever a library says lands in it.
    """
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Nothing can be read from the first. To a folder nothing can be written, under whatever name it is opened.
            try:
                os.open(os.sep if number == 1 else os.devnull, mode)
            except OSError:
                os.open(os.devnull, mode)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False))


def _what_the_system_said(error: OSError) -> str:
    """The sentence for a fault of a disk, a folder or a stream that no command expected."""
    if error.filename is None and error.errno in _OUTPUT_FAULTS:
        # What is still buffered would be tried once more when Python ends, and fail aloud.
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        closed = error.errno in (errno.EPIPE, errno.EBADF)
        return f"The result cannot be written: {'standard output is closed' if closed else error.strerror}."
    place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{place}{error.strerror or error}."


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
