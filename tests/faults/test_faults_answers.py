"""No answers lose a model, and no odd ones are taken for others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(0, 60, 15))
def test_attacks(survives: Callable[[str, range], None], start: int) -> None:
    survives("answers", range(start, start + 15))
