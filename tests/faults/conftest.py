"""The warm process of the attacks, one for all tests of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faults.case import attack
from faults.runner import Pool, why_not

# The short form tries the same attacks each time; `make attack SEED=...` tries others.
SEED = 0


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """A warm process to fork attacks from."""
    if reason := why_not():
        pytest.skip(reason)
    found = Pool()
    yield found
    found.close()


@pytest.fixture
def survives(pool: Pool) -> Callable[[str, range], None]:
    """Carry out the attacks of a kind with these numbers; all that went wrong is told, with how to replay it."""

    def try_all(kind: str, numbers: range) -> None:
        verdicts = [attack(pool, kind, SEED, number) for number in numbers]
        failed = [f"{one}\n  replay: python -m faults --replay {one.replay}" for one in verdicts if one.wrong]
        assert not failed, "\n".join(failed)

    return try_all
