"""Jobs on threads: order, failures, interruption."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from himecat.errors import UsageError
from himecat.runtime.threads import Stopped, run_parallel, stop_requested, usable_threads


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
