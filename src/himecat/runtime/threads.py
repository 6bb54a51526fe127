"""Threads: independent jobs at once, the next item prefetched, and what both need of the system."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from numbers import Integral
from typing import Any, TypeVar

from himecat.errors import UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")
# What runs jobs: `run_serial`, or `run_parallel` with a number of threads.
Run = Callable[[Sequence[Callable[[], Any]]], Iterable[Any]]


# The number that malloc.h gives to this option.
_MMAP_THRESHOLD = -3


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


_limit_lock = threading.Lock()
_limit_users = 0
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products to one thread while any caller is inside, so that sums are always in the same order.

    It works in every thread, and for several threads that come and go in any order.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    global _limit_users, _limits
    from threadpoolctl import ThreadpoolController

    own = _one_openmp_thread()
    with _limit_lock:
        _limit_users += 1
        if _limit_users == 1:
            with _in_control():
                _limits = ThreadpoolController().select(user_api="blas").limit(limits=1)
    try:
        yield
    finally:
        own.restore_original_limits()
        with _limit_lock:
            _limit_users -= 1
            if _limit_users == 0:
                with _in_control():
                    _limits.restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread change OpenBLAS, and any other one after it.

    Since version 3.8 threadpoolctl obeys one thread only, and ignores the others without a word: whichever came
    first would keep the products of all others on several threads.
    """
    from threadpoolctl import OpenBLASController

    release = getattr(OpenBLASController, "clear_controlling_thread", lambda **_: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


def _one_openmp_thread() -> Any:
    """Limit what is parallel by OpenMP, where each thread has a limit of its own."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp").limit(limits=1)


def run_serial(jobs: Sequence[Callable[[], Result]]) -> Iterator[Result]:
    """Run jobs one after the other, each when its result is asked for.

    Examples
    --------
    >>> list(run_serial([lambda: 1, lambda: 2]))
    [1, 2]
    """
    return (job() for job in jobs)


def run_parallel(jobs: Sequence[Callable[[], Result]], threads: int) -> list[Result]:
    """Run every job and return the results in the order of the jobs.

    The first failure, or Ctrl-C, stops the jobs that have not started and asks the running ones to give up.

    Examples
    --------
    >>> run_parallel([lambda: 1, lambda: 2], threads=2)
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
        ThreadPoolExecutor(max_workers=max(1, threads), initializer=_one_thread_each) as pool,
    ):
        futures = [pool.submit(guarded, job) for job in jobs]
        try:
            _wait(futures)
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


def _one_thread_each() -> None:
    _one_openmp_thread()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def _wait(futures: Sequence[Future[Any]]) -> None:
    # A wait with a time limit lets the main thread see Ctrl-C on every platform.
    pending = set(futures)
    while pending:
        _, pending = wait(pending, timeout=0.5)


def prefetch(
    items: Iterable[Item], work: Callable[[Item], Result], *, background: bool = True
) -> Iterator[tuple[Item, Result]]:
    """Give every item with its result, in order; while `work` runs, the next item is read.

    Items are read in the calling thread, which hears Ctrl-C even where reading waits for input. At most two
    items and results are held.

    Parameters
    ----------
    background : bool
        Whether `work` runs in a thread of its own; otherwise nothing is prefetched.

    Examples
    --------
    >>> list(prefetch([1, 2, 3], lambda number: number * number))
    [(1, 1), (2, 4), (3, 9)]
    """
    if not background:
        for item in items:
            yield item, work(item)
        return
    source = iter(items)
    failure: Exception | None = None
    waiting: tuple[Item, Future[Result]] | None = None
    with ThreadPoolExecutor(1) as worker:
        while True:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:
                # Results of the items before it are given first, as without a second thread.
                failure = error
                break
            started = item, worker.submit(work, item)
            if waiting is not None:
                _wait([waiting[1]])
                yield waiting[0], waiting[1].result()
            waiting = started
        if waiting is not None:
            _wait([waiting[1]])
            yield waiting[0], waiting[1].result()
    if failure is not None:
        raise failure


def spare_memory() -> None:
    """From now on give large arrays back to the system as soon as they are freed; it costs some time.

    Examples
    --------
    >>> spare_memory()
    """
    if sys.platform != "linux":
        return
    try:
        # Otherwise the allocator of Linux raises the size from which it does so, up to 32 MB.
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)
    except (OSError, AttributeError):
        return


def release_memory() -> None:
    """Return free memory to the system: the allocator of Linux keeps what threads have freed.

    Examples
    --------
    >>> release_memory()
    """
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        # C libraries other than glibc have no such function.
        return
