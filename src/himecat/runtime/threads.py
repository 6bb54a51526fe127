"""Running independent jobs on a few threads, with the same result for any number of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from numbers import Integral
from typing import Any, TypeVar

from himecat.errors import UsageError

Result = TypeVar("Result")


class Stopped(Exception):
    """Raised inside a job when another job failed or the user interrupted."""


_local = threading.local()


def stop_requested() -> bool:
    """Whether the running job should give up; long jobs ask now and then.

    Examples
    --------
    >>> stop_requested()
    False
    """
    flag = getattr(_local, "stop", None)
    return flag is not None and bool(flag.is_set())


def usable_threads(threads: int | None) -> int:
    """Number of threads to run: the given one, or as many as the process may use.

    Examples
    --------
    >>> usable_threads(3)
    3
    """
    if threads is None:
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:  # not on every platform
            return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise UsageError(f"threads must be a whole number of at least 1, not {threads!r}.")
    return int(threads)


def _single_threaded_blas() -> None:
    """Keep matrix products in this worker on one thread: sums are then always taken in the same order."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


_limit_lock = threading.Lock()
_limit_users = 0
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products to one thread while any caller is inside, and give the threads back after the last.

    Sums are then taken in the same order, however many threads there are.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    global _limit_users, _limits
    from threadpoolctl import threadpool_limits

    with _limit_lock:
        _limit_users += 1
        if _limit_users == 1:
            _limits = threadpool_limits(limits=1)
    try:
        yield
    finally:
        with _limit_lock:
            _limit_users -= 1
            if _limit_users == 0:
                _limits.restore_original_limits()


def run_all(jobs: Sequence[Callable[[], Result]], threads: int) -> list[Result]:
    """Run every job and return the results in the order of the jobs.

    The first failure, or Ctrl-C, stops the jobs that have not started and asks the running ones to give up.

    Examples
    --------
    >>> run_all([lambda: 1, lambda: 2], threads=2)
    [1, 2]
    """
    stop = threading.Event()

    def guarded(job: Callable[[], Result]) -> Result:
        if stop.is_set():
            raise Stopped
        _local.stop = stop
        try:
            return job()
        except BaseException:
            stop.set()
            raise
        finally:
            _local.stop = None

    with (
        one_blas_thread(),
        ThreadPoolExecutor(max_workers=max(1, threads), initializer=_single_threaded_blas) as pool,
    ):
        futures = [pool.submit(guarded, job) for job in jobs]
        try:
            # A wait with a time limit lets the main thread see Ctrl-C on every platform.
            pending = set(futures)
            while pending:
                _, pending = wait(pending, timeout=0.5)
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
    failures = [error for future in futures if (error := future.exception()) is not None]
    for error in failures:
        if not isinstance(error, Stopped):
            raise error
    return [future.result() for future in futures]
