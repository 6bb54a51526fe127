"""Jobs on threads and prefetched items: order, failures, interruption."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from himecat.errors import UsageError
from himecat.runtime.threads import (
    Stopped,
    one_blas_thread,
    prefetch,
    run_parallel,
    stop_requested,
    usable_threads,
)


def test_results_come_in_the_order_of_the_jobs() -> None:
    def job(number: int) -> Callable[[], int]:
        def run() -> int:
            time.sleep(0.02 * (3 - number))
            return number

        return run

    for threads in (1, 2, 7):
        assert run_parallel([job(number) for number in range(4)], threads) == [0, 1, 2, 3]
    assert run_parallel([], 2) == []


def test_jobs_run_at_the_same_time() -> None:
    barrier = threading.Barrier(2, timeout=5)
    assert sorted(run_parallel([barrier.wait, barrier.wait], 2)) == [0, 1]


def test_no_more_jobs_run_than_there_are_threads() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def job() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    run_parallel([job] * 6, 1)
    assert most == 1


def test_the_first_failure_stops_the_others() -> None:
    started: list[int] = []
    failed = threading.Event()

    def failing() -> None:
        failed.set()
        raise ValueError("broken")

    def long() -> None:
        started.append(1)
        failed.wait(5)
        deadline = time.monotonic() + 5
        while not stop_requested():
            assert time.monotonic() < deadline, "nobody asked the job to stop"
            time.sleep(0.005)
        raise Stopped

    def late() -> None:
        started.append(2)

    with pytest.raises(ValueError, match="broken"):
        run_parallel([long, failing, *[late] * 20], 2)
    assert started == [1]
    assert not stop_requested()


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need it")
def test_an_interrupt_stops_the_jobs() -> None:
    ended: list[str] = []
    # A program started in the background ignores Ctrl-C, and the tests may be such a program.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def job() -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if stop_requested():
                ended.append("asked")
                raise Stopped
            time.sleep(0.005)
        ended.append("waited")

    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_parallel([job] * 5, 2)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    # The two that ran were asked; the three that waited never started.
    assert ended == ["asked", "asked"]


def test_matrix_products_inside_jobs_use_one_thread() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    before = torch.get_num_threads()
    outside = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    torch.set_num_threads(3)

    def job() -> tuple[int, list[int]]:
        blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        return torch.get_num_threads(), blas

    for found, blas in run_parallel([job] * 3, 2):
        assert found == 1
        assert set(blas) <= {1}
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)
    assert {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()} == outside


def test_the_number_of_threads_is_checked() -> None:
    assert usable_threads(None) >= 1
    assert usable_threads(5) == 5
    assert usable_threads(np.int64(2)) == 2  # type: ignore[arg-type]
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(UsageError, match=f"threads must be a whole number of at least 1, not {wrong!r}"):
            usable_threads(wrong)  # type: ignore[arg-type]


# -- prefetching ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [False, True])
def test_all_items_come_in_order_with_what_was_made_of_them(background: bool) -> None:
    found = list(prefetch(range(20), lambda number: number * number, background=background))
    assert found == [(number, number * number) for number in range(20)]
    assert list(prefetch([], str, background=background)) == []


def test_an_item_is_made_while_the_one_before_is_worked_on() -> None:
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    # Without a second thread the first work would wait for ever.
    assert [result for _, result in prefetch(items(), lambda _: made.wait(60))] == [True, True]


def test_nothing_is_done_at_the_same_time_without_a_second_thread() -> None:
    here = threading.current_thread()
    assert all(
        thread is here
        for _, thread in prefetch(range(3), lambda _: threading.current_thread(), background=False)
    )


def test_few_items_are_held() -> None:
    ahead: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            ahead.append(number)
            yield number

    for number, _ in prefetch(items(), str):
        assert len(ahead) - number <= 2


@pytest.mark.parametrize("background", [False, True])
def test_what_was_made_before_a_failure_is_given_first(background: bool) -> None:
    def items() -> Iterator[int]:
        yield from (1, 2)
        raise OSError("the end")

    found = prefetch(items(), lambda number: number, background=background)
    assert [next(found), next(found)] == [(1, 1), (2, 2)]
    with pytest.raises(OSError, match="the end"):
        next(found)


@pytest.mark.parametrize("background", [False, True])
def test_failed_work_is_told_in_its_turn(background: bool) -> None:
    found = prefetch([1, 0, 2], lambda number: 1 // number, background=background)
    assert next(found) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_making_items_stays_in_the_calling_thread() -> None:
    here = threading.current_thread()

    def items() -> Iterator[bool]:
        for _ in range(3):
            yield threading.current_thread() is here

    assert all(same for same, _ in prefetch(items(), str))


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def in_a_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as other:
        return other.submit(work).result()


def test_one_blas_thread_holds_in_every_thread() -> None:
    def inside() -> set[int]:
        with one_blas_thread():
            return blas_threads()

    outside = blas_threads()
    # The first thread to limit OpenBLAS must not keep others from it.
    for found in (inside(), in_a_thread(inside), inside(), in_a_thread(inside)):
        assert found == {1}
    assert blas_threads() == outside


def test_one_blas_thread_holds_until_the_last_one_leaves() -> None:
    outside = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def stay() -> set[int]:
        with one_blas_thread():
            entered.set()
            leave.wait(5)
            return blas_threads()

    with ThreadPoolExecutor(1) as other:
        with one_blas_thread():
            found = other.submit(stay)
            assert entered.wait(5)
        leave.set()
        assert found.result() == {1}
    assert blas_threads() == outside


def test_one_blas_thread_holds_beside_a_limit_of_the_callers() -> None:
    with threadpool_limits(2, user_api="blas"):
        outside = blas_threads()
        assert in_a_thread(lambda: run_parallel([blas_threads], 1)) == [{1}]
        assert blas_threads() == outside
