"""A damaged model is refused, or answers as the sound one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(0, 150, 30))
def test_attacks(survives: Callable[[str, range], None], start: int) -> None:
    survives("models", range(start, start + 30))
