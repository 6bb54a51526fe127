"""Work on one thing while the next is being made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def one_ahead(
    items: Iterable[Item], work: Callable[[Item], Result], *, beside: bool = True
) -> Iterator[tuple[Item, Result]]:
    """Give every item with what `work` makes of it, in order; the next item is made meanwhile.

    Items are made in the calling thread, which hears Ctrl-C even where making one waits for input. Of items and
    results at most two are held.

    Parameters
    ----------
    beside : bool
        Whether a thread of its own does the work; otherwise nothing is done at the same time.

    Examples
    --------
    >>> list(one_ahead([1, 2, 3], lambda number: number * number))
    [(1, 1), (2, 4), (3, 9)]
    """
    if not beside:
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
                # What was made before is still given, as it would be without a second thread.
                failure = error
                break
            started = item, worker.submit(work, item)
            if waiting is not None:
                yield waiting[0], _result(waiting[1])
            waiting = started
        if waiting is not None:
            yield waiting[0], _result(waiting[1])
    if failure is not None:
        raise failure


def _result(future: Future[Result]) -> Result:
    # A wait with a time limit lets the main thread see Ctrl-C on every platform.
    while not wait([future], timeout=0.5).done:
        pass
    return future.result()
