"""Whatever call is the last: the old result or the new one is there, whole, and inputs are as they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faults.case import attack
from faults.conftest import SEED
from faults.interrupt import points
from faults.runner import Pool

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(0, 60, 15))
def test_attacks(survives: Callable[[str, range], None], start: int) -> None:
    survives("interrupt-quick", range(start, start + 15))


@pytest.mark.parametrize("command", ["fit --overwrite", "correct"])
def test_killed_between_any_two_calls_that_replace_a_model(pool: Pool, command: str) -> None:
    """The worst moments: the old model is moved away, and the new one is not there yet."""
    chosen = [
        number
        for number, one in enumerate(points(pool, SEED, slow=False))
        if (one.command.name, one.mode) == (command, "kill")
    ]
    assert len(chosen) > 5
    verdicts = [attack(pool, "interrupt-quick", SEED, number) for number in chosen]
    assert [str(one) for one in verdicts if one.wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["correct", "correct -o", "correct --add", "review", "review again", "review as CSV", "predict to Excel"],
)
def test_whatever_happens_at_any_call(pool: Pool, command: str) -> None:
    """Killed, interrupted, ended, and every fault of a disk, at every call: no answer and no model is lost."""
    every = enumerate(points(pool, SEED, slow=False))
    verdicts = [attack(pool, "interrupt-quick", SEED, at) for at, one in every if one.command.name == command]
    assert len(verdicts) > 30
    assert [str(one) for one in verdicts if one.wrong] == []
