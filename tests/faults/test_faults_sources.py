"""Workbooks, CSV of any kind, folders and tables: read as they are meant, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(12, 120, 27))
def test_attacks(survives: Callable[[str, range], None], start: int) -> None:
    # Number 11 is an evaluation, which takes seconds: `make attack` tries it.
    survives("sources", range(start, start + 27))
