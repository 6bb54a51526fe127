"""Attack for a while: `python -m faults --minutes 60`, or one attack again: `--replay KIND:SEED:NUMBER`."""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from faults.case import Verdict, attack
from faults.judge import masked
from faults.runner import Pool, why_not

GOALS = {
    "inputs": 8_000,
    "sources": 4_000,
    "answers": 2_000,
    "interrupt": 500,
    "models": 2_000,
    "bombs": 150,
    "places": 200,
}
"""How many attacks of each kind an hour has to try; what time is left goes to more of them, in these shares."""

_SECONDS_BETWEEN_LINES = 30


@dataclass
class Tally:
    """What the attacks of one kind have found so far."""

    tried: int = 0
    failures: int = 0
    seconds: float = 0.0
    megabytes: int = 0


@dataclass
class Campaign:
    """Attacks of all kinds until the time is over, by several threads that each wait for one command."""

    pool: Pool
    seed: int
    minutes: float
    kinds: list[str]
    goals: dict[str, int]
    keep: Path | None = None
    tallies: dict[str, Tally] = field(default_factory=dict)
    first: dict[str, Verdict] = field(default_factory=dict)
    again: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tallies = {kind: Tally() for kind in self.kinds}
        self._next = dict.fromkeys(self.kinds, 0)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._stop = threading.Event()

    def run(self, jobs: int) -> None:
        """Attack until the time is over or Ctrl-C comes."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        said = time.monotonic()
        try:
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.2)
                if time.monotonic() - said > _SECONDS_BETWEEN_LINES:
                    said = time.monotonic()
                    print(self._progress(), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("Stopping ...", file=sys.stderr)
        self._stop.set()
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        while not self._stop.is_set() and time.monotonic() - self._began < self.minutes * 60:
            with self._lock:
                # The kind that is furthest behind its share.
                kind = min(self.kinds, key=lambda one: self._next[one] / self.goals[one])
                number = self._next[kind]
                self._next[kind] += 1
            try:
                self._note(attack(self.pool, kind, self.seed, number, keep=True))
            except Exception as error:
                with self._lock:
                    self.broken.append(f"{kind}:{self.seed}:{number}: {type(error).__name__}: {error}")

    def _note(self, verdict: Verdict) -> None:
        with self._lock:
            tally = self.tallies[verdict.kind]
            tally.tried += 1
            tally.seconds = max(tally.seconds, verdict.seconds)
            tally.megabytes = max(tally.megabytes, verdict.megabytes)
            if not verdict.wrong:
                return
            tally.failures += 1
            new = signature(verdict)
            self.again[new] += 1
            if self.again[new] == 1:
                self.first[new] = verdict
                if self.keep is not None and verdict.folder is not None:
                    kept = self.keep / verdict.replay.replace(":", "-")
                    shutil.move(verdict.folder, kept)
                    verdict.folder = kept
                    return
            if verdict.folder is not None:
                shutil.rmtree(verdict.folder, ignore_errors=True)
                verdict.folder = None

    def _progress(self) -> str:
        counts = ", ".join(f"{kind} {tally.tried:,}" for kind, tally in self.tallies.items())
        minutes = (time.monotonic() - self._began) / 60
        return f"{minutes:.1f} min: {counts}; {sum(one.failures for one in self.tallies.values())} failures"

    def report(self) -> str:
        """The failures, each once, and the table."""
        blocks = []
        for new, verdict in self.first.items():
            where = f"\n  kept in {verdict.folder}" if verdict.folder else ""
            said = f"\n  said: {verdict.said.strip()[-300:]!r}" if verdict.said.strip() else ""
            blocks.append(f"{verdict}{said}{where}\n  {self.again[new]} times; --replay {verdict.replay}\n")
        blocks.extend(f"The harness itself failed: {one}\n" for one in self.broken[:20])
        rows = ["| kind | tried | failures | worst CPU-s | worst MB |", "|---|---:|---:|---:|---:|"]
        rows += [
            f"| {kind} | {one.tried:,} | {one.failures:,} | {one.seconds:.1f} | {one.megabytes:,} |"
            for kind, one in self.tallies.items()
        ]
        return "\n".join([*blocks, *rows])


def signature(verdict: Verdict) -> str:
    """What failures of one cause have in common: the first complaint without names and numbers."""
    first = masked(verdict.wrong[0])
    command = verdict.command[0] if verdict.command else ""
    if "control character" in first:
        said = first.partition(" in ")[2][:12]
        return f"{command} {first.partition(':')[0]} control character {said}"
    return (
        f"{verdict.kind} {first[:70].partition(chr(39))[0]} {command if 'exit code' not in first else ''}"
        + (masked(verdict.wrong[1])[:140] if len(verdict.wrong) > 1 and "exit code" in first else "")
    )


def main(arguments: list[str] | None = None) -> int:
    """Attack, print what was found, and give 1 if anything was."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(GOALS), help="which kinds, separated by commas")
    parser.add_argument("--keep", type=Path, help="a folder that keeps the folder of each new failure")
    parser.add_argument(
        "--replay", metavar="KIND:SEED:NUMBER", help="carry out one attack again, and show it"
    )
    given = parser.parse_args(arguments)
    if why_not():
        print(f"Nothing was tried: {why_not()}.", file=sys.stderr)
        return 0
    kinds = [one for one in given.kinds.split(",") if one]
    if unknown := [one for one in kinds if one not in GOALS]:
        parser.error(f"there is no kind {unknown[0]!r}; the kinds are {', '.join(GOALS)}")
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    pool = Pool(1 if given.replay else given.jobs)
    try:
        if given.replay:
            return _replay(pool, given.replay, given.keep)
        campaign = Campaign(pool, given.seed, given.minutes, kinds, GOALS, given.keep)
        campaign.run(given.jobs)
        print(campaign.report())
        return int(bool(campaign.first or campaign.broken))
    finally:
        pool.close()


def _replay(pool: Pool, name: str, keep: Path | None) -> int:
    kind, seed, number = name.split(":")
    verdict = attack(pool, kind, int(seed), int(number), keep=keep is not None)
    print(verdict)
    print(verdict.said.strip())
    if keep is not None and verdict.folder is not None:
        kept = keep / verdict.replay.replace(":", "-")
        shutil.move(verdict.folder, kept)
        print(f"kept in {kept}")
    return int(bool(verdict.wrong))
