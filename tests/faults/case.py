"""One attack with its verdict, and the kinds there are."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.judge import judge_end, judge_files, judge_output, snapshot
from faults.runner import Ended, Pool, Run


@dataclass
class Verdict:
    """What an attack found: nothing `wrong` is what is wanted."""

    kind: str
    seed: int
    number: int
    title: str = ""
    command: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    said: str = ""
    seconds: float = 0.0
    megabytes: int = 0
    folder: Path | None = None

    @property
    def replay(self) -> str:
        """What `--replay` takes."""
        return f"{self.kind}:{self.seed}:{self.number}"

    def __str__(self) -> str:
        what = "\n".join(f"  - {one}" for one in self.wrong)
        return f"{self.replay} {self.title}\n  himecat {' '.join(map(ascii, self.command))[:600]}\n{what}"


class Scene:
    """What an attack has at hand: its folder, its own random numbers, the warm processes, and a verdict to fill."""

    def __init__(self, pool: Pool, kind: str, seed: int, number: int) -> None:
        self.pool = pool
        self.random = random.Random(f"{kind}:{seed}:{number}")
        self.number = number
        self.seed = seed
        # The folder of an attack stands in one of its own: what is written beside it is seen too.
        self.outer = Path(tempfile.mkdtemp(dir=pool.work, prefix=f"{kind}-{number}-"))
        self.outer.chmod(0o755)
        self.folder = self.outer / "here"
        self.folder.mkdir()
        self.verdict = Verdict(kind, seed, number, folder=self.outer)

    def run(
        self,
        *runs: Run,
        sent: int | None = None,
        codes: Sequence[int] = (0, 2),
        seconds: float = 60,
        megabytes: int = 4096,
    ) -> list[Ended]:
        """Run commands at once, and judge how they ended."""
        ended = self.pool.run(self.folder, *runs, seconds=seconds, megabytes=megabytes)
        for run, one in zip(runs, ended, strict=True):
            self.note(run, one)
            self.wrong(*judge_end(one, sent, codes))
        return ended

    def note(self, run: Run, ended: Ended) -> None:
        """Take down a command and how it ended."""
        self.verdict.command = run.arguments
        self.verdict.seconds = max(self.verdict.seconds, ended.cpu)
        self.verdict.megabytes = max(self.verdict.megabytes, ended.megabytes)
        self.verdict.said = ended.err.decode(errors="replace")[-600:]

    def judged(
        self,
        run: Run,
        outputs: dict[str, str] | None = None,
        *,
        also_on_failure: bool = False,
        seconds: float = 60,
        megabytes: int = 4096,
    ) -> Ended:
        """Run one command that may fail or not: files stay, outputs are whole or untouched.

        `outputs` are names and kinds of what the command may write; `check` writes its report also when it
        finds faults (`also_on_failure`).
        """
        before = snapshot(self.folder)
        (ended,) = self.run(run, seconds=seconds, megabytes=megabytes)
        after = snapshot(self.folder)
        places = outputs or {}
        if ended.killed:
            return ended
        done = ended.code == 0
        may_change = done or (also_on_failure and ended.code == 2)
        self.wrong(*judge_files(before, after, places, done=may_change))
        for name, kind in places.items():
            path = self.folder / name
            if done and not path.exists():
                self.wrong(f"{name} was not written")
            elif may_change and after.get(name) != before.get(name):
                self.wrong(*judge_output(path, kind))
        return ended

    def wrong(self, *found: str) -> None:
        """Add to what is wrong."""
        self.verdict.wrong.extend(found)

    def close(self, keep: bool) -> None:
        """Remove the folder, unless there is something to look at."""
        if not keep:
            shutil.rmtree(self.outer, ignore_errors=True)
            self.verdict.folder = None


Attack = Callable[[Scene], None]


def attack(pool: Pool, kind: str, seed: int, number: int, keep: bool = False) -> Verdict:
    """Carry out the attack of this kind, seed and number: the same ones are the same attack."""
    scene = Scene(pool, kind, seed, number)
    try:
        kinds()[kind](scene)
    finally:
        scene.close(keep=keep and bool(scene.verdict.wrong))
    return scene.verdict


def kinds() -> dict[str, Attack]:
    """The kinds of attacks by name."""
    from faults import answers, bombs, damage, inputs, interrupt, places, sources

    return {
        "inputs": inputs.attack,
        "sources": sources.attack,
        "answers": answers.attack,
        "interrupt": interrupt.attack,
        "interrupt-quick": interrupt.quick_attack,
        "models": damage.attack,
        "bombs": bombs.attack,
        "places": places.attack,
    }
