"""Fixtures shared by all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Give the folder of a real corpus, or skip the test where it is absent."""

    def folder(name: str) -> Path:
        found = SHARED / name
        if not found.is_dir():
            pytest.skip(f"the real corpus {name!r} is not beside the project (../shared/data)")
        return found

    return folder
