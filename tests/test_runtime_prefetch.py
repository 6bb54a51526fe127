"""Work on one thing while the next is being made."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from himecat.runtime.threads import prefetch


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
