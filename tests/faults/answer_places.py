"""Results of `review`, `correct` and tables under the names of what is read, and two commands on one model."""

from __future__ import annotations

from faults import material as m
from faults import workbooks
from faults.answers import copied_model, corrected, rows
from faults.case import Scene
from faults.inputs import encoded
from faults.judge import judge_files, judge_output, snapshot
from faults.runner import Run

_OVER_INPUTS = [
    ["review", "model", "IN.jsonl", "-o", "OUT.jsonl"],
    ["review", "model", "IN.csv", "-o", "OUT.csv"],
    ["predict", "model", "IN.csv", "--threads=1", "-o", "OUT.csv"],
    ["predict", "model", "IN.xlsx", "--threads=1", "-o", "OUT.xlsx"],
    ["predict", "model", "IN.csv", "--threads=1", "-o", "out.csv", "--report", "OUT.csv"],
    ["correct", "model", "IN.jsonl", "--threads=1", "-o", "new", "--json", "OUT.jsonl"],
    ["correct", "model", "IN.xlsx", "--threads=1", "--dry-run", "--json", "OUT.xlsx"],
    ["correct", "model", "docs.jsonl", "--add", "IN.jsonl", "--threads=1", "-o", "OUT.jsonl", "--overwrite"],
    ["correct", "model", "IN.csv", "--threads=1", "-o", "OUT.csv"],
    ["fit", "IN.csv", "-o", "new", *m.TINY, "--report", "OUT.csv"],
]  # fmt: skip


def over_an_input(scene: Scene) -> None:
    """A result under the name of what the command reads, by whatever way."""
    rng = scene.random
    copied_model(scene)
    arguments = rng.choice(_OVER_INPUTS)
    ending = next(one for one in arguments if one.startswith("IN")).partition(".")[2]
    data = workbooks.sound(m.sound(), rng) if ending == "xlsx" else encoded(m.sound(), ending, rng)
    (scene.folder / f"in.{ending}").write_bytes(data)
    (scene.folder / "docs.jsonl").write_bytes(m.json_lines(m.sound()))
    way = rng.choice(["same", "same", "link", "hard link", "relative"])
    (scene.folder / "far").mkdir()
    output = {"same": f"in.{ending}", "relative": f"far/../in.{ending}"}.get(way, f"way.{ending}")
    if way == "link":
        (scene.folder / output).symlink_to(f"in.{ending}")
    elif way == "hard link":
        (scene.folder / output).hardlink_to(scene.folder / f"in.{ending}")
    names = {f"IN.{ending}": f"in.{ending}", f"OUT.{ending}": output}
    run = Run([names.get(one, one) for one in arguments])
    scene.verdict.title = f"{arguments[0]} over an input by {way}"
    before = snapshot(scene.folder)
    (ended,) = scene.run(run)
    # A hard link may be replaced: what was read keeps its other name, and its content.
    mine = ["new", "out.csv", *([output] if way == "hard link" else [])] if ended.code == 0 else []
    scene.wrong(*judge_files(before, snapshot(scene.folder), mine, done=ended.code == 0))
    if ended.code == 0 and way != "hard link":
        scene.wrong("it says that it has written over what it has read")


def two_at_once(scene: Scene) -> None:
    """Two corrections of one model: one of them, whole, and the answers of both untouched."""
    rng = scene.random
    name = copied_model(scene)
    (scene.folder / "answers.jsonl").write_bytes(m.json_lines(rows()))
    (scene.folder / "others.jsonl").write_bytes(m.json_lines([{**rows()[0], "answer": "arts"}]))
    both = rng.random() < 0.5
    runs = [Run(["correct", "model", "answers.jsonl", "--threads=1"]) for _ in range(2)]
    if not both:
        runs[1] = rng.choice([
            Run(["correct", "model", "others.jsonl", "--threads=1"]),
            Run(["predict", "model", "others.jsonl", "-q", "--threads=1", "-o", "out.jsonl"]),
            Run(["review", "model", "others.jsonl", "-q", "--threads=1", "-o", "out.jsonl"]),
        ])  # fmt: skip
    scene.verdict.title = f"correct and {runs[1].arguments[0]} at once"
    before = snapshot(scene.folder)
    ended = scene.run(*runs)
    scene.wrong(*judge_files(before, snapshot(scene.folder), ["model", "out.jsonl"], done=True))
    scene.wrong(*judge_output(scene.folder / "model", "model"))
    if all(one.code != 0 for one in ended):
        scene.wrong("none of them ends well")
    if both and snapshot(scene.folder / "model") != corrected(scene.pool, name):
        scene.wrong("the model is not the one that the answers give")
