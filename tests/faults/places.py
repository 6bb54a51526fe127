"""Odd places for a result: devices, links, inputs, folders that vanish, two writers at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace

from faults import material as m
from faults.case import Scene
from faults.inputs import models
from faults.judge import TEMPORARY, judge_end, judge_files, judge_output, snapshot
from faults.runner import Run

# Commands that write one file, without the name of it.
_TO_FILE = ("predict", "check", "explain", "synthesize", "score")
_INPUTS = {
    "predict": ["docs.jsonl", "model/model.json", "model/weights.safetensors"],
    "check": ["docs.jsonl", "tree.yaml", "keywords.yaml"],
    "explain": ["docs.jsonl", "model/model.json", "model/weights.safetensors"],
    "synthesize": ["model/model.json", "model/weights.safetensors"],
    "score": [
        "found.jsonl",
        "data/corpus.jsonl",
        "data/doc_id.txt",
        "data/label_hier.txt",
        "data/meta_dict.json",
    ],
}


def attack(scene: Scene) -> None:
    """One odd place, and one command that writes to it."""
    name = list(_PLACES)[scene.number % len(_PLACES)]
    scene.verdict.title = name
    m.write_sound(scene.folder)
    shutil.copytree(models(scene.pool)["model"], scene.folder / "model")
    _PLACES[name](scene)


def command(name: str, output: str) -> list[str]:
    """A command that writes a file, or a folder, under this name."""
    return {
        "predict": ["predict", "model", "docs.jsonl", "-q", "--threads=1", "-o", output],
        "check": [
            "check",
            "docs.jsonl",
            "--taxonomy=tree.yaml",
            "--keywords=keywords.yaml",
            "-q",
            "--json",
            output,
        ],
        "explain": ["explain", "model", "physics", "--documents=docs.jsonl", "--json", output],
        "synthesize": ["synthesize", "model", "physics", "--json", output],
        "score": ["score", "found.jsonl", "data", "--json", output],
        "fit": m.fit_arguments(output=output),
        "demo": ["demo", "-q", "-o", output, *m.TINY],
    }[name]


def _kind(name: str) -> str:
    return "lines" if name == "predict" else "model" if name == "fit" else "json"


def _any(scene: Scene, *more: str) -> str:
    return scene.random.choice([*_TO_FILE, *more])


def _refused(scene: Scene, run: Run, megabytes: int = 4096) -> None:
    """It must fail, and leave everything as it was."""
    ended = scene.judged(run, {}, megabytes=megabytes)
    if ended.code == 0:
        scene.wrong("it says that it has written something")


# -- names -----------------------------------------------------------------------------------------------------


def _over_an_input(scene: Scene) -> None:
    rng = scene.random
    name = _any(scene)
    read = rng.choice(_INPUTS[name])
    way = rng.choice(["same", "relative", "absolute", "link", "hard link", "link to a folder"])
    output = {"same": read, "relative": f"./data/../{read}", "absolute": str(scene.folder / read)}.get(
        way, "way"
    )
    if way == "link":
        (scene.folder / "way").symlink_to(read)
    elif way == "hard link":
        os.link(scene.folder / read, scene.folder / "way")
    elif way == "link to a folder":
        (scene.folder / "there").symlink_to(scene.folder)
        output = f"there/{read}"
    scene.verdict.title += f": {name}, {read} by {way}"
    before = snapshot(scene.folder)
    (ended,) = scene.run(Run(command(name, output)))
    # A hard link may be replaced: what was read keeps its other name, and its content.
    done = way == "hard link" and ended.code == 0
    scene.wrong(*judge_files(before, snapshot(scene.folder), ["way"], done=done))


def _model_over_an_input(scene: Scene) -> None:
    name = scene.random.choice(["fit", "demo"])
    output = scene.random.choice(
        ["docs.jsonl", "data", ".", "..", "tree.yaml", "/", "data/..", str(scene.folder), "model/.."]
    )
    more = ["--overwrite"] if scene.random.random() < 0.7 else []
    scene.verdict.title += f": {name} -o {output if output[0] != '/' else 'absolute'}"
    _refused(scene, Run([*command(name, output), *more]))


def _odd_names(scene: Scene) -> None:
    rng = scene.random
    name = _any(scene, "fit", "demo")
    odd = rng.choice(
        [
            "",
            "x" * 255,
            "x" * 300,
            "a/" * 2_500 + "x",
            "r\x1b[31m",
            "r\udcff",
            "r\n",
            "é" * 120,
            "r\x85",
            "[bold]r",
            "~",
            "r/",
            "r//.",
        ]
    )
    before = snapshot(scene.folder)
    (ended,) = scene.run(Run(command(name, odd)))
    after = snapshot(scene.folder)
    if ended.code != 0:
        scene.wrong(*judge_files(before, after))
    else:
        scene.wrong(
            *(f"{one} was left behind" for one in after if TEMPORARY.fullmatch(one.rpartition("/")[2]))
        )
        scene.wrong(*(f"{one} has changed" for one in before if before[one] != after.get(one)))


def _not_there(scene: Scene) -> None:
    name = _any(scene, "fit")
    output = scene.random.choice(
        [
            "no/such/out",
            "docs.jsonl/out",
            "loop",
            "loop/out",
            "dangling/out",
            "/proc/out",
            "/sys/out",
            "/proc/1/x",
            "/dev/x/out",
        ]
    )
    (scene.folder / "loop").symlink_to("loop")
    (scene.folder / "dangling").symlink_to("nowhere")
    scene.verdict.title += f": {name} to {output}"
    _refused(scene, Run(command(name, output)))


def _links(scene: Scene) -> None:
    """Through a link the result goes to where it leads, and the link stays."""
    name = _any(scene)
    (scene.folder / "far").mkdir()
    if scene.random.random() < 0.5:
        (scene.folder / "far" / "out").write_text("old\n")
    (scene.folder / "way").symlink_to(scene.random.choice(["far/out", str(scene.folder / "far" / "out")]))
    ended = scene.judged(Run(command(name, "way")), {"far/out": _kind(name)})
    if ended.code != 0:
        scene.wrong(f"exit code {ended.code} where a link leads to a file")


def _folder_for_a_file(scene: Scene) -> None:
    name = _any(scene)
    (scene.folder / "folder").mkdir()
    _refused(scene, Run(command(name, scene.random.choice(["folder", "data", ".", "folder/"]))))


def _file_for_a_folder(scene: Scene) -> None:
    name = scene.random.choice(["fit", "demo"])
    (scene.folder / "file").write_text("mine\n")
    more = ["--overwrite"] if scene.random.random() < 0.5 else []
    _refused(scene, Run([*command(name, "file"), *more]))


def _strange_folder(scene: Scene) -> None:
    """A folder that holds something else is never replaced."""
    name = scene.random.choice(["fit", "demo"])
    shutil.copytree(scene.folder / "model", scene.folder / "mine")
    inside = scene.random.choice(["notes.txt", ".hidden", "more/notes.txt", "docs.jsonl.bak"])
    (scene.folder / "mine" / inside).parent.mkdir(exist_ok=True)
    (scene.folder / "mine" / inside).write_text("mine\n")
    _refused(scene, Run([*command(name, "mine"), "--overwrite"]))


# -- devices and streams ---------------------------------------------------------------------------------------


def _full_device(scene: Scene) -> None:
    _refused(scene, Run(command(_any(scene), "/dev/full")))


def _pipe(scene: Scene) -> None:
    name = _any(scene)
    pipe = scene.folder / "pipe"
    os.mkfifo(pipe)
    # Open both ways, so that nobody waits for the other end.
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        ended = scene.judged(Run(command(name, "pipe")))
        if ended.code != 0:
            scene.wrong(f"exit code {ended.code} on writing to a pipe")
        elif not os.read(end, 1 << 16).endswith(b"\n"):
            scene.wrong("the pipe did not get the whole result")
    finally:
        os.close(end)


def _streams(scene: Scene) -> None:
    rng = scene.random
    name = _any(scene)
    out, err = rng.choice(["closed", "full", "unread", ""]), rng.choice(["closed", "full", "unread", "", ""])
    output = rng.choice(["-", "out", "/dev/stdout"])
    scene.verdict.title += f": {name} to {output}, standard output {out or 'sound'}, error {err or 'sound'}"
    before = snapshot(scene.folder)
    arguments = [one for one in command(name, output) if one != "-q"]
    run = Run(arguments, stdout=out, stderr=err)
    (ended,) = scene.pool.run(scene.folder, run)
    scene.note(run, ended)
    if err in ("closed", "full", "unread"):
        # What it says cannot be seen; that it ends well can.
        ended = replace(ended, err=ended.err or b"unseen")
    scene.wrong(*judge_end(ended, codes=(0, 2)))
    # Of a command that shows its scores and writes them too, the file may be there when showing failed.
    scene.wrong(*judge_files(before, snapshot(scene.folder), ["out"], done=True))
    if (scene.folder / "out").exists():
        scene.wrong(*judge_output(scene.folder / "out", _kind(name)))
    if output != "out" and out in ("full", "unread", "closed") and ended.code == 0:
        scene.wrong("exit code 0, and nobody got the result")


def _no_rights(scene: Scene) -> None:
    """As a user who may read and not write."""
    if os.geteuid() != 0:
        scene.verdict.title += " (skipped: only root can become somebody else)"
        return
    name = _any(scene, "fit")
    what = scene.random.choice(["folder", "old file", "input"])
    output = "out"
    if what == "old file":
        (scene.folder / "out").write_text("old\n")
    if what == "input":
        scene.folder.chmod(0o777)
        for path in scene.folder.rglob("*"):
            if path.is_file() and scene.random.random() < 0.7:
                path.chmod(0o000)
        before = snapshot(scene.folder)
        (ended,) = scene.run(Run(command(name, output), nobody=True))
        done = ended.code == 0
        scene.wrong(*judge_files(before, snapshot(scene.folder), ["out"], done=done))
        return
    _refused(scene, Run(command(name, output), nobody=True))


def _full_disk(scene: Scene) -> None:
    """A real disk that is full: a file system in memory of a few pages, which only this command sees."""
    name = _any(scene, "fit", "demo")
    (scene.folder / "disk").mkdir()
    run = Run(command(name, "disk/out"), disk=f"{scene.folder / 'disk'}:4k")
    before = snapshot(scene.folder)
    (ended,) = scene.pool.run(scene.folder, run)
    scene.note(run, ended)
    if ended.code == 77:
        scene.verdict.title += " (skipped: there is no right to mount)"
        return
    scene.wrong(*judge_end(ended, codes=(0, 2)), *judge_files(before, snapshot(scene.folder)))
    left = [one for one in ended.listing if one != "out"]
    if left or (ended.code != 0 and ended.listing):
        scene.wrong(f"left on the full disk: {', '.join(ended.listing)}")
    if ended.code == 0 and name in ("fit", "demo"):
        scene.wrong("it says that it has written more than the disk holds")


# -- others at work --------------------------------------------------------------------------------------------


def _vanishing(scene: Scene) -> None:
    """The folder of the result is removed while the command writes to it."""
    name = _any(scene, "fit", "demo")
    (scene.folder / "gone").mkdir()
    shim = {"below": str(scene.folder), "at": scene.random.randint(1, 8), "action": "remove"}
    before = snapshot(scene.folder)
    (ended,) = scene.run(Run(command(name, "gone/out"), shim=shim))
    scene.verdict.title += f": {name}, at {ended.call or 'no call'} {shim['at']}"
    after = snapshot(scene.folder)
    scene.wrong(*judge_files(before, after, ["gone"], done=True))
    if ended.code == 0 and not (scene.folder / "gone" / "out").exists() and not ended.fired:
        scene.wrong("it says that it has written, and nothing is there")


def _two_writers(scene: Scene) -> None:
    """Two at once on one target: one whole result, and nothing else."""
    rng = scene.random
    name = rng.choice(["fit", "fit", "predict", "check", "demo"])
    old = rng.random() < 0.6
    count = rng.choice([2, 2, 3])
    if old and name == "fit":
        shutil.copytree(models(scene.pool)["default"], scene.folder / "out")
    elif old and name != "demo":
        (scene.folder / "out").write_text("old\n")
    more = ["--overwrite"] if name in ("fit", "demo") else []
    scene.verdict.title += f": {count} of {name}"
    before = snapshot(scene.folder)
    ended = scene.run(*(Run([*command(name, "out"), *more]) for _ in range(count)))
    scene.wrong(*judge_files(before, snapshot(scene.folder), ["out"], done=True))
    out = scene.folder / "out"
    if not out.exists():
        scene.wrong("no result is there")
    elif any(one.code == 0 for one in ended):
        scene.wrong(
            *judge_output(
                out / "model" if name == "demo" else out, "model" if name == "demo" else _kind(name)
            )
        )
    else:
        scene.wrong("none of them ends well")


def _two_outputs(scene: Scene) -> None:
    arguments = ["compare", "data", "--systems=tfidf-svm", "--draws=1", "-q"]
    pair = scene.random.choice(
        [
            ("--csv=t", "--markdown=t"),
            ("--json=t", "--report=./t"),
            ("--csv=t", "--latex=link"),
            ("--figures=t", "--csv=t"),
        ]
    )
    (scene.folder / "t").write_text("old\n")
    (scene.folder / "link").symlink_to("t")
    _refused(scene, Run([*arguments, *pair]))


def _no_home(scene: Scene) -> None:
    name = _any(scene, "fit")
    environment = scene.random.choice(
        [{"HOME": "/nonexistent", "XDG_CACHE_HOME": ""}, {"TMPDIR": "/nonexistent"}, {"HIMECAT_BOUNDS": "x"},
        {"COLUMNS": "1"},
         {"COLUMNS": "0"}, {"HIMECAT_BOUNDS": "line=1"}, {"HIMECAT_BOUNDS": "depth=9999999"}]
    )  # fmt: skip
    scene.judged(Run(command(name, "out"), environment=environment), {"out": _kind(name)})


_PLACES: dict[str, Callable[[Scene], None]] = {
    "over an input": _over_an_input,
    "two writers at once": _two_writers,
    "over an input folder": _model_over_an_input,
    "an odd name": _odd_names,
    "a place that is not there": _not_there,
    "streams that take nothing": _streams,
    "a link": _links,
    "a folder where a file should be": _folder_for_a_file,
    "a file where a folder should be": _file_for_a_folder,
    "somebody's folder": _strange_folder,
    "a device that is full": _full_device,
    "a pipe": _pipe,
    "no rights": _no_rights,
    "a disk that is full": _full_disk,
    "a folder that vanishes": _vanishing,
    "two writers again": _two_writers,
    "over an input again": _over_an_input,
    "an odd environment": _no_home,
    "streams again": _streams,
    "two outputs": _two_outputs,
}
