"""Work in a process of its own, so that its peak memory and CPU time are its own too."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from himecat.errors import HimecatError, by_options, names_options


class Costs(NamedTuple):
    """Wall time, CPU time and peak memory of a process.

    Examples
    --------
    >>> Costs(1.0, 2.0, 100.0).cpu_seconds
    2.0
    """

    seconds: float
    cpu_seconds: float
    peak_rss_mb: float


def costs_since(began: float) -> Costs:
    """Costs of this process: seconds since `began` (of `time.perf_counter`), the rest since its start.

    Examples
    --------
    >>> costs_since(time.perf_counter()).peak_rss_mb > 1
    True
    """
    return Costs(time.perf_counter() - began, time.process_time(), peak_mb())


def peak_mb() -> float:
    """Peak memory of this process, in megabytes.

    Examples
    --------
    >>> peak_mb() > 1
    True
    """
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            # Not `ru_maxrss`: Linux starts it at the peak of the parent process.
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    if sys.platform == "win32":
        return _windows_peak() / 1024**2
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def _windows_peak() -> int:
    """Peak working set of this process in bytes; the structure is PROCESS_MEMORY_COUNTERS of Windows."""

    class Counters(ctypes.Structure):
        _fields_ = (
            ("size", ctypes.c_ulong),
            ("page_faults", ctypes.c_ulong),
            ("peak", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 7),
        )

    counters = Counters(size=ctypes.sizeof(Counters))
    kernel: Any = ctypes.CDLL("kernel32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    kernel.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.size)
    return int(counters.peak)


class Worker:
    """A process that calls `work(*task)` and sends back the result.

    Parameters
    ----------
    work : callable
        A function of a module: the new process finds it by name.
    *task
        Its arguments.
    environment : mapping, optional
        Environment variables for the process, where they are not set already; libraries read some on import.

    Examples
    --------
    >>> worker = Worker(int, "12")
    >>> worker.result()
    12
    """

    def __init__(
        self, work: Callable[..., Any], *task: Any, environment: Mapping[str, str] | None = None
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_serve, args=(sender, names_options(), work, *task), daemon=True
        )
        with _interrupts_ignored(), _environment(environment or {}):
            self._process.start()
        sender.close()

    def result(self) -> Any:
        """Wait for the result, or the exception; Ctrl-C meanwhile ends the process.

        A `HimecatError` of the work arrives as it is, any other exception as a `RuntimeError` with its text.
        """
        try:
            return self.receiver.recv()
        except EOFError:
            self._process.join()
            return HimecatError(
                f"The process ended without a result (exit code {self._process.exitcode}); out of memory? "
                'A script has to start runs below `if __name__ == "__main__":`.'
            )
        except BaseException:
            self._process.kill()
            raise
        finally:
            self._process.join()
            self.receiver.close()

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.receiver.close()


def _serve(sender: Any, options: bool, work: Callable[..., Any], *task: Any) -> None:
    """In the new process: do the work and send back the result, or the exception."""
    # Standard output is for results; what a system prints is none.
    with suppress(OSError):
        os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    found: Any
    try:
        with by_options(options):
            found = work(*task)
    except HimecatError as error:
        found = error
    except Exception as error:
        if os.environ.get("HIMECAT_DEBUG"):
            traceback.print_exc()
        # Not every exception can be pickled.
        found = RuntimeError(f"{type(error).__name__}: {error}")
    sender.send(found)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes started here ignore Ctrl-C: the parent handles it and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    new = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)
