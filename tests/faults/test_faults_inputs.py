"""Bad input of every format ends in a sentence, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(0, 300, 30))
def test_attacks(survives: Callable[[str, range], None], start: int) -> None:
    survives("inputs", range(start, start + 30))
