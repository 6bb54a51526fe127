"""Whatever call is the last: the old result or the new one is there, whole, and inputs are as they were."""

from __future__ import annotations

import pytest

from faults.case import Scene
from faults.conftest import SEED
from faults.interrupt import attack, points
from faults.runner import Pool

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("start", range(0, 60, 15))
def test_attacks(pool: Pool, start: int) -> None:
    failed = []
    for number in range(start, start + 15):
        scene = Scene(pool, "interrupt", SEED, number)
        # Evaluations and comparisons take seconds each: `make attack` tries them.
        attack(scene, slow=False)
        scene.close(keep=False)
        if scene.verdict.wrong:
            failed.append(str(scene.verdict))
    assert not failed, "\n".join(failed)


def test_killed_between_any_two_calls_of_a_fit_that_overwrites(pool: Pool) -> None:
    """The worst moments: the old model is moved away, and the new one is not there yet."""
    every = points(pool, SEED, slow=False)
    chosen = [
        number
        for number, one in enumerate(every)
        if (one.command.name, one.mode) == ("fit --overwrite", "kill")
    ]
    assert len(chosen) > 5
    failed = []
    for number in chosen:
        scene = Scene(pool, "interrupt", SEED, number)
        attack(scene, slow=False)
        scene.close(keep=False)
        if scene.verdict.wrong:
            failed.append(str(scene.verdict))
    assert not failed, "\n".join(failed)
