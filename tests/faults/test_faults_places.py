"""Bombs are refused in time, and odd places get the whole result or none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(0, 19, 5))
def test_places(survives: Callable[[str, range], None], start: int) -> None:
    # The last place is that of a comparison, which takes seconds: `make attack` tries it.
    survives("places", range(start, min(start + 5, 19)))


@pytest.mark.parametrize("number", range(21))
def test_bombs(survives: Callable[[str, range], None], number: int) -> None:
    survives("bombs", range(number, number + 1))
