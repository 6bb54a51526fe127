"""Where pieces of work run: in this process, or on the nodes of a Ray cluster.

A task is a function at the top of a module, called with what all items share and with one item. Results come in the
order of the items whatever the number of workers, so that whoever adds them up gets the same sums.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, Protocol, Self, TypeVar, cast

from himecat.errors import HimecatError, UsageError, by_options, names_options, spelled
from himecat.runtime.ray_engine import IN_FLIGHT, RETRIES, RayEngine
from himecat.runtime.threads import one_blas_thread, usable_threads

Common = TypeVar("Common")
Item = TypeVar("Item")
Result = TypeVar("Result")

ENGINES = ("local", "ray")
"""The names that `open_engine` takes."""


class Engine(Protocol):
    """Runs a task for each item.

    Examples
    --------
    >>> engine: Engine = open_engine("local", workers=1)
    >>> engine.name, engine.workers
    ('local', 1)
    """

    name: str
    workers: int

    def map(
        self, task: Callable[[Common, Item], Result], items: Iterable[Item], *, common: Common
    ) -> Iterator[Result]:
        """The result of each item, in their order; items are taken as there is room for them.

        Parameters
        ----------
        task : callable
            A function at the top of a module. It may be run again for an item whose worker died, and must not change
            `common`, whose arrays are read-only in another process.
        items : iterable
            What the task is called with, one by one.
        common
            What it is called with each time; it goes to a worker once.
        """

    def close(self) -> None:
        """End what the engine started."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *raised: object) -> None: ...


def open_engine(name: str = "local", address: str | None = None, workers: int | None = None) -> Engine:
    """An engine by its name; it is closed when its block ends.

    Parameters
    ----------
    name : {"local", "ray"}
        In threads of this process, or on Ray.
    address : str, optional
        Of a Ray cluster: `host:port`, or `auto` for the one that runs here. Without it one is started on this machine,
        reached from nowhere else, and ended by `close`.
    workers : int, optional
        How many tasks run at once; by default as many as there are processors.

    Raises
    ------
    UsageError
        There is no such engine, or nobody at that address.
    MissingExtraError
        Ray is not installed.

    Examples
    --------
    >>> from operator import pow
    >>> with open_engine("local", workers=2) as engine:
    ...     list(engine.map(pow, [1, 2, 3], common=2))
    [2, 4, 8]
    """
    if name not in ENGINES:
        raise UsageError(f"There is no engine {name!r}: it is one of {', '.join(ENGINES)}.")
    if name == "ray":
        return RayEngine(address, workers)
    if address is not None:
        raise UsageError(
            f"{spelled('--address', 'address=')} is that of a Ray cluster: "
            f"it goes with {spelled('--engine ray', 'engine=ray')}."
        )
    return LocalEngine(workers)


def on_engine(engine: Engine) -> Callable[[Callable[[Any, Any], Any], Any, Sequence[Any]], Iterator[Any]]:
    """An engine as a function of a task, what all parts share, and the parts.

    Examples
    --------
    >>> from operator import mul
    >>> list(on_engine(LocalEngine(1))(mul, 10, [1, 2]))
    [10, 20]
    """
    return lambda task, common, parts: engine.map(task, parts, common=common)


class LocalEngine:
    """Threads of this process; with one worker the calling thread, and nothing is computed ahead.

    Examples
    --------
    >>> from operator import mul
    >>> list(LocalEngine(1).map(mul, [1, 2], common=10))
    [10, 20]
    """

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = usable_threads(workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left to end."""

    def map(
        self, task: Callable[[Common, Item], Result], items: Iterable[Item], *, common: Common
    ) -> Iterator[Result]:
        """The result of each item, in their order."""
        with one_blas_thread():
            if self.workers == 1:
                for item in items:
                    yield task(common, item)
                return
            waiting: deque[Future[Result]] = deque()
            with ThreadPoolExecutor(self.workers) as pool:
                try:
                    for item in items:
                        waiting.append(pool.submit(task, common, item))
                        if len(waiting) >= IN_FLIGHT * self.workers:
                            yield _result(waiting.popleft())
                    while waiting:
                        yield _result(waiting.popleft())
                finally:
                    for future in waiting:
                        future.cancel()


def _result(future: Future[Result]) -> Result:
    # A wait with a time limit lets the main thread see Ctrl-C on every platform.
    while True:
        try:
            return future.result(timeout=0.5)
        except NotYet:
            if future.done():
                raise


class ProcessEngine(LocalEngine):
    """Processes of this machine, for tasks that keep the interpreter busy.

    An item whose process died is given to another one.

    Examples
    --------
    >>> from operator import pow
    >>> with ProcessEngine(2) as engine:  # doctest: +SKIP
    ...     list(engine.map(pow, [1, 2, 3], common=2))
    [2, 4, 8]
    """

    def map(
        self, task: Callable[[Common, Item], Result], items: Iterable[Item], *, common: Common
    ) -> Iterator[Result]:
        """The result of each item, in their order."""
        told = names_options()
        # Items, and their results as soon as they are asked for.
        waiting: deque[tuple[Item, Future[Result] | None]] = deque()
        source, left = iter(items), RETRIES
        pool = self._pool(task, common, told)
        try:
            while True:
                for item in islice(source, IN_FLIGHT * self.workers - len(waiting)):
                    waiting.append((item, None))
                if not waiting:
                    # They have nothing left to do, and end by themselves.
                    pool.shutdown()
                    return
                try:
                    # Also a pool refuses work whose processes have died.
                    waiting = deque((item, one or pool.submit(_in_process, item)) for item, one in waiting)
                    found = _result(cast("Future[Result]", waiting[0][1]))
                except BrokenProcessPool:
                    left -= 1
                    if not left:
                        raise HimecatError(
                            "Processes of this job died again and again: is there enough memory?"
                        ) from None
                    _end(pool)
                    pool = self._pool(task, common, told)
                    waiting = deque((item, one if _is_there(one) else None) for item, one in waiting)
                    continue
                waiting.popleft()
                yield found
        finally:
            _end(pool)

    def _pool(self, *arguments: Any) -> ProcessPoolExecutor:
        # A process that is forked would have the locks of threads that it has not.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, context, initializer=_begin, initargs=arguments)


_task: tuple[Callable[[Any, Any], Any], Any, bool]


def _begin(task: Callable[[Any, Any], Any], common: Any, told: bool) -> None:
    global _task
    _task = task, common, told
    # Ctrl-C reaches the whole group, and the first process ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _in_process(item: Any) -> Any:
    task, common, told = _task
    with by_options(told), one_blas_thread():
        return task(common, item)


def _is_there(future: Future[Any] | None) -> bool:
    return future is not None and future.done() and not future.cancelled() and future.exception() is None


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once: what they were at is not wanted any more."""
    running = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in running:
        process.terminate()
    for process in running:
        process.join()
