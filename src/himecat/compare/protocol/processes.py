"""Work in a process of its own, so that its peak memory and CPU time are its own too."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from himecat.errors import HimecatError


@dataclass(frozen=True)
class Costs:
    """What a process has used so far.

    Examples
    --------
    >>> Costs(1.0, 2.0, 100.0).cpu_seconds
    2.0
    """

    seconds: float
    cpu_seconds: float
    peak_rss_mb: float


def costs_since(began: float) -> Costs:
    """What this process has used: seconds since `began` (of `time.perf_counter`), the rest since its start.

    Examples
    --------
    >>> costs_since(time.perf_counter()).peak_rss_mb > 1
    True
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Costs(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak_mb(usage.ru_maxrss))


def peak_mb(ru_maxrss: int) -> float:
    """The most memory this process has held, in megabytes; `ru_maxrss` is what `getrusage` says of it.

    Examples
    --------
    >>> peak_mb(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) > 1
    True
    """
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            # Linux starts `ru_maxrss` of a new program at what its parent held.
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def answer(sender: Any, work: Callable[..., Any], *task: Any) -> None:
    """In a new process: do the work and send back the result, or what went wrong.

    A failure that the work foresaw arrives as it is, any other as a `RuntimeError` with its text.

    Examples
    --------
    >>> receiver, sender = multiprocessing.Pipe(duplex=False)
    >>> answer(sender, int, "12")
    >>> receiver.recv()
    12
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    found: Any
    try:
        found = work(*task)
    except HimecatError as error:
        found = error
    except Exception as error:
        if os.environ.get("HIMECAT_DEBUG"):
            traceback.print_exc()
        # Not every exception can be sent to another process as it is.
        found = RuntimeError(f"{type(error).__name__}: {error}")
    sender.send(found)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@dataclass(frozen=True)
class Started:
    """A process that will send one answer through `receiver`; made by `start`.

    Examples
    --------
    >>> receiver, _ = multiprocessing.Pipe(duplex=False)
    >>> Started(None, receiver).receiver is receiver
    True
    """

    process: Any
    receiver: Any

    def wait(self) -> Any:
        """The answer; raises EOFError where the process ended without one. Ctrl-C here ends the process."""
        try:
            return self.receiver.recv()
        except EOFError:
            raise
        except BaseException:
            self.process.kill()
            raise
        finally:
            self.process.join()
            self.receiver.close()

    def end(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.receiver.close()


def start(target: Callable[..., None], *task: Any, environment: Mapping[str, str] | None = None) -> Started:
    """Start `target(sender, *task)` in a new process, where it should call `answer`.

    Parameters
    ----------
    target : callable
        A function of a module: the new process finds it by name.
    *task
        Its other arguments.
    environment : mapping, optional
        Environment variables for the process, where they are not set already.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_begin, args=(target, sender, *task), daemon=True)
    with _deaf_to_interrupts(), _environment(environment or {}):
        process.start()
    sender.close()
    return Started(process, receiver)


def _begin(target: Callable[..., None], *task: Any) -> None:
    # Standard output is for results; what is printed here is none.
    with suppress(OSError):
        os.dup2(2, 1)
    target(*task)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C: it is the parent that hears it and ends them."""
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
    """Variables that processes started here inherit; libraries read some of them when they are imported."""
    new = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)
