"""Interruption: at every call that changes a file, the process is killed, the disk is full, or Ctrl-C comes."""

from __future__ import annotations

import errno
import json
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import answers, workbooks
from faults import material as m
from faults.case import Scene
from faults.inputs import models
from faults.judge import TEMPORARY, Snapshot, is_below, judge_files, judge_output, snapshot
from faults.runner import Ended, Pool, Run


@dataclass(frozen=True)
class Command:
    """A command that writes: its arguments, what it writes, and which of it stands there already.

    `again` is added when it is run once more; `slow` ones are tried at fewer calls.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: dict[str, str]
    old: bool = False
    again: tuple[str, ...] = ()
    slow: bool = False


_PREDICT = ("predict", "MODEL", "docs.jsonl", "-q", "--threads=1", "-o", "out.jsonl")
_FIT = tuple(m.fit_arguments())
_REVIEW = ("review", "MODEL", "docs.jsonl", "-q", "--threads=1", "-o")
_CORRECT = ("correct", "model", "answers.xlsx", "-q", "--threads=1")
_TABLE = ("predict", "MODEL", "docs.jsonl", "-q", "--threads=1", "-o")
_DEMO = ("demo", "-o", "demo", "-q", *m.TINY)
_DEMO_FILES = {"demo": "folder", "demo/model": "model", "demo/predictions.jsonl": "lines"}
_COMPARE = (
    "compare", "data", "--systems=tfidf-svm", "--draws=1", "-q", "--csv=t.csv", "--markdown=t.md",
    "--report=r.html", "--json=t.json",
)  # fmt: skip

COMMANDS = [
    Command("fit", _FIT, {"model": "model"}, again=("--overwrite",)),
    Command("fit --overwrite", (*_FIT, "--overwrite"), {"model": "model"}, old=True),
    Command("predict", _PREDICT, {"out.jsonl": "lines"}),
    Command("predict again", _PREDICT, {"out.jsonl": "lines"}, old=True),
    Command("check", ("check", "docs.jsonl", "--taxonomy=tree.yaml", "-q", "--json=r.json"), {"r.json": "json"}),
    Command(
        "check again",
        ("check", "docs.jsonl", "--taxonomy=tree.yaml", "-q", "--json=r.json"),
        {"r.json": "json"},
        old=True,
    ),
    Command("correct", _CORRECT, {"model": "model"}, old=True),
    Command("correct -o", (*_CORRECT, "-o", "new"), {"new": "model"}, again=("--overwrite",)),
    Command(
        "correct --add", ("correct", "model", "answers.jsonl", "--add=more.jsonl", "-q", "--threads=1"),
        {"model": "model"}, old=True,
    ),
    Command("review", (*_REVIEW, "review.xlsx"), {"review.xlsx": "review"}),
    Command("review again", (*_REVIEW, "review.xlsx"), {"review.xlsx": "review"}, old=True),
    Command("review as CSV", (*_REVIEW, "review.csv"), {"review.csv": "review"}, old=True),
    Command("review as lines", (*_REVIEW, "review.jsonl"), {"review.jsonl": "review"}, old=True),
    Command("predict to Excel", (*_TABLE, "out.xlsx"), {"out.xlsx": "table"}, old=True),
    Command("predict to CSV", (*_TABLE, "out.csv"), {"out.csv": "table"}, old=True),
    Command("predict to Parquet", (*_TABLE, "out.parquet"), {"out.parquet": "table"}, old=True),
    Command(
        "predict --report", (*_TABLE, "out.tsv", "--report=page.html"), {"out.tsv": "table", "page.html": "page"},
        old=True,
    ),
    Command(
        "fit --report", (*_FIT, "--overwrite", "--report=page.html"), {"model": "model", "page.html": "page"}, old=True
    ),
    Command("explain", ("explain", "MODEL", "physics", "--json=r.json"), {"r.json": "json"}, old=True),
    Command("synthesize", ("synthesize", "MODEL", "physics", "--json=r.json"), {"r.json": "json"}, old=True),
    Command("score", ("score", "found.jsonl", "data", "--json=r.json"), {"r.json": "json"}, old=True),
    Command("demo", _DEMO, _DEMO_FILES, again=("--overwrite",)),
    Command("demo --overwrite", (*_DEMO, "--overwrite"), _DEMO_FILES, old=True),
    Command(
        "evaluate", ("evaluate", "data", "--draws=1", "-q", "--json=r.json", *m.TINY), {"r.json": "json"}, old=True,
        slow=True,
    ),
    Command(
        "compare", _COMPARE, {"t.csv": "text", "t.md": "text", "r.html": "text", "t.json": "json"}, old=True,
        slow=True,
    ),
]  # fmt: skip

# What happens at the call: the shim's action, its value, whether also at all later calls.
MODES: dict[str, tuple[str, int, bool]] = {
    "kill": ("kill", 0, False),
    "kill again": ("kill", 0, False),
    "no space once": ("fail", errno.ENOSPC, False),
    "no space from then on": ("fail", errno.ENOSPC, True),
    "input/output error once": ("fail", errno.EIO, False),
    "quota from then on": ("fail", errno.EDQUOT, True),
    "Ctrl-C": ("send", signal.SIGINT, False),
    "terminated": ("send", signal.SIGTERM, False),
}
# Kinds of results that are the same bytes each time; others tell how long something took.
_ALWAYS_THE_SAME = ("model", "lines", "table", "review")
_ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(frozen=True)
class Point:
    """One place to interrupt: a command, the number of the call, what happens there, and the results otherwise."""

    command: Command
    at: int
    mode: str
    results: Snapshot


def points(pool: Pool, seed: int, slow: bool) -> list[Point]:
    """Every call of every command, with each thing that can happen at it, shuffled."""

    def make(folder: Path) -> list[Point]:
        found: list[Point] = []
        for number, command in enumerate(COMMANDS):
            if command.slow and not slow:
                continue
            place = folder / str(number)
            place.mkdir()
            _prepare(pool, place, command)
            ended = pool.command(place, _arguments(pool, command), shim=_shim(place, 0, "count", 0, False))
            assert ended.code == 0, (command.name, ended.err)
            assert ended.calls > 1, f"{command.name} writes, and no call was counted"
            results = snapshot(place)
            for at in range(1, ended.calls + 1):
                modes = [list(MODES)[at % len(MODES)]] if command.slow else list(MODES)
                found.extend(Point(command, at, mode, results) for mode in modes)
        random.Random(seed).shuffle(found)
        return found

    found: list[Point] = pool.once(f"points-{seed}-{slow}", make)
    return found


def attack(scene: Scene, slow: bool = True) -> None:
    """Interrupt one command at one call; then run it again."""
    every = points(scene.pool, scene.seed, slow)
    point = every[scene.number % len(every)]
    command, (action, value, always) = point.command, MODES[point.mode]
    scene.verdict.title = f"{command.name}: {point.mode} at call {point.at}"
    _prepare(scene.pool, scene.folder, command)
    before = snapshot(scene.folder)
    shim = _shim(scene.folder, point.at, action, value, always)
    sent = signal.SIGKILL if action == "kill" else None
    codes = (0, _ENDS[signal.Signals(value)]) if action == "send" else (0, 2)
    arguments = _arguments(scene.pool, command)
    (ended,) = scene.run(Run(arguments, shim=shim), sent=sent, codes=codes)
    scene.verdict.title += f" ({ended.call} of {_short(ended.path)})"
    if not ended.fired:
        # Calls made by timing, such as a progress line's, could be fewer: then nothing was tried.
        scene.wrong("the call was not reached: the command makes fewer calls than when they were counted")
    _judge(scene, point, ended, before, action)
    _run_again(scene, point, arguments)


def quick_attack(scene: Scene) -> None:
    """Interrupt a command that takes no seconds: evaluations and comparisons are left out."""
    attack(scene, slow=False)


def _short(path: str) -> str:
    return "/".join("*.part" if TEMPORARY.fullmatch(part) else part for part in path.split("/")[-3:])


def _judge(scene: Scene, point: Point, ended: Ended, before: Snapshot, action: str) -> None:
    command, after = point.command, snapshot(scene.folder)
    # A signal may come when the result is there already. Of several files some may be new when one fails.
    several = len({name.split("/")[0] for name in command.outputs}) > 1
    done = ended.code == 0 or action != "fail" or several
    # Where removing itself failed, what could not be removed stays.
    may_stay = action == "kill" or (action == "fail" and ended.call in ("unlink", "rmdir"))
    scene.wrong(*judge_files(before, after, command.outputs, done=done, killed=may_stay))
    if action == "fail" and ended.code == 2 and not ended.sentences:
        scene.wrong("no sentence says what failed")
    for name, kind in command.outputs.items():
        path = scene.folder / name
        if not path.exists():
            if command.old or ended.code == 0:
                scene.wrong(f"{name} is there neither as it was nor as it should be")
        elif kind == "folder":
            names = sorted(found.name for found in path.iterdir())
            if "report.html" not in names:
                scene.wrong(f"{name} is not whole: it holds {', '.join(names)}")
        elif kind != "text" and _below(before, name) != _below(after, name):
            scene.wrong(*judge_output(path, kind))
            if kind in _ALWAYS_THE_SAME and _below(after, name) != _below(point.results, name):
                scene.wrong(f"{name} is neither the old one nor the new one")


def _below(found: Snapshot, name: str) -> Snapshot:
    return {key: value for key, value in found.items() if is_below(key, [name])}


def _run_again(scene: Scene, point: Point, arguments: list[str]) -> None:
    """The same command ends well afterwards with the same result, and nothing that the first try left stays."""
    command = point.command
    more = [one for one in command.again if one not in arguments]
    (ended,) = scene.run(Run([*arguments, *more]), codes=(0,))
    if ended.code != 0:
        scene.wrong("run again, it fails")
        return
    left = sorted(
        str(found.relative_to(scene.folder))
        for found in scene.folder.rglob("*")
        if TEMPORARY.fullmatch(found.name)
    )
    if left:
        scene.wrong(f"run again, {len(left)} unfinished files stay: {left[0]}")
    after = snapshot(scene.folder)
    for name, kind in command.outputs.items():
        if kind not in ("text", "folder"):
            scene.wrong(*judge_output(scene.folder / name, kind))
        if kind in _ALWAYS_THE_SAME and _below(after, name) != _below(point.results, name):
            scene.wrong(f"run again, {name} is another one")


def _shim(folder: Path, at: int, action: str, value: int, always: bool) -> dict[str, Any]:
    return {"below": str(folder), "at": at, "action": action, "value": int(value), "always": always}


def _arguments(pool: Pool, command: Command) -> list[str]:
    model = str(models(pool)["model"])
    return [model if one == "MODEL" else one for one in command.arguments]


def _prepare(pool: Pool, folder: Path, command: Command) -> None:
    m.write_sound(folder)
    if command.name.startswith("correct"):
        given = answers.rows()
        (folder / "answers.xlsx").write_bytes(
            workbooks.packed(workbooks.Book(workbooks.table(given)).parts())
        )
        (folder / "answers.jsonl").write_bytes(m.json_lines(given))
        (folder / "more.jsonl").write_bytes(
            m.json_lines([{"id": "new", "text": "quantum laser", "labels": "arts"}])
        )
        if "model" not in command.outputs:
            shutil.copytree(models(pool)["default"], folder / "model")
    if not command.old:
        return
    for name, kind in command.outputs.items():
        target = folder / name
        if kind == "model" and "/" not in name:
            shutil.copytree(models(pool)["default"], target)
        elif kind == "folder":
            shutil.copytree(_old_demo(pool), target)
        elif not target.exists():
            old = {"id": "old", "path": [], "confidence": [], "leaf": False}
            target.write_text(json.dumps(old) + "\n")


def _old_demo(pool: Pool) -> Path:
    def make(folder: Path) -> Path:
        ended = pool.command(folder, [*_DEMO, "--seed=1"])
        assert ended.code == 0, ended.err
        return folder / "demo"

    found: Path = pool.once("demo", make)
    return found
