"""Documents in the forms that people have them in: workbooks, CSV, levels, folders; and tables as results."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from faults import material as m
from faults.case import Scene
from faults.forms import Form, text_folder, tree_file
from faults.inputs import models, odd_options
from faults.mutations import odd_text, spoil_bytes, spoil_documents
from faults.runner import Pool, Run

_COMMANDS = ["check"] * 25 + ["fit"] * 22 + ["predict"] * 40 + ["score"] * 8 + ["explain"] * 5
# One in so many is an evaluation or a comparison, which start processes of their own.
_RARE = 120
_TABLES = [".xlsx", ".csv", ".tsv", ".parquet"]


def documents() -> list[m.Document]:
    """The sound documents, with a letter that tells encodings apart, and something for a page to choke on."""
    found = m.sound()
    for one in found:
        one["text"] += " café"
    return found


def attack(scene: Scene) -> None:
    """One odd source, and one command that reads it."""
    rng = scene.random
    if scene.number % _RARE == 11:
        _measured(scene)
        return
    command = rng.choice(_COMMANDS)
    scene.verdict.title = f"{command} with an odd source"
    if command == "score":
        _score(scene)
    elif command == "predict" and rng.random() < 0.4:
        _same_as_lines(scene)
    elif command in ("predict", "explain"):
        _placed(scene, command)
    else:
        _learned(scene, command)


def _source(scene: Scene) -> tuple[str, list[str]]:
    """Write documents in some form, spoiled or not; the name, and the options that belong to it."""
    rng, folder = scene.random, scene.folder
    found: list[Any] = documents()
    if rng.random() < 0.15:
        options = ["--labels-from-folders"] if rng.random() < 0.7 else []
        return text_folder(rng, found, folder), options
    for _ in range(rng.choice([0, 0, 1, 2])):
        found = spoil_documents(found, rng)
    form = Form.sound(rng) if rng.random() < 0.3 else Form.odd(rng)
    try:
        data = form.written(found, rng)
    except (UnicodeEncodeError, TypeError, csv.Error):
        form, data = Form(ending="jsonl"), m.json_lines(found)
    if form.ending != "xlsx" and rng.random() < 0.3:
        data = spoil_bytes(data, rng, data)
    return _write(folder / f"docs.{form.ending}", data), form.options


def _write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return path.name


def _learned(scene: Scene, command: str) -> None:
    rng = scene.random
    name, options = _source(scene)
    arguments = [command, name, *_clean(options)]
    if rng.random() < 0.7:
        arguments += ["--taxonomy", tree_file(rng, scene.folder)]
    if rng.random() < 0.5:
        arguments += ["--metadata=tags"]
    if rng.random() < 0.3:
        arguments.append("--skip-bad")
    if rng.random() < 0.1:
        arguments += odd_options(rng, command)
    if command == "check":
        scene.judged(Run(arguments), also_on_failure=True)
        return
    outputs = {"model": "model"}
    if rng.random() < 0.4:
        arguments.append("--report=page.html")
        outputs["page.html"] = "page"
    scene.judged(Run([*arguments, "-o", "model", *(m.TINY if rng.random() < 0.8 else m.DEFAULT)]), outputs)


def _placed(scene: Scene, command: str) -> None:
    rng = scene.random
    name, options = _source(scene)
    model = str(models(scene.pool)[rng.choice(["model", "default"])])
    if command == "explain":
        scene.judged(Run(["explain", model, "--documents", name]))
        return
    ending = rng.choice([*_TABLES, *_TABLES, ".jsonl", ".XLSX"])
    output = rng.choice(["out", "old"]) + ending
    (scene.folder / f"old{ending}").write_bytes(b"old\n")
    outputs = {output: "lines" if ending == ".jsonl" else "table"}
    allowed = [one for one in options if one.startswith(("--delimiter", "--sheet", "--labels="))]
    arguments = ["predict", model, name, "-o", output, "--threads=1", *_clean(allowed)]
    if rng.random() < 0.4:
        arguments.append("--skip-bad")
    if rng.random() < 0.3:
        arguments.append(rng.choice(["--ignore-labels", "--top=0", "--top=100", "--min-confidence=0.99"]))
    if rng.random() < 0.25:
        arguments.append("--report=page.html")
        outputs["page.html"] = "page"
    scene.judged(Run(arguments), outputs)


def _clean(options: list[str]) -> list[str]:
    """Options as a shell could give them."""
    return [one.replace("\0", "").encode("utf-8", "replace").decode() for one in options]


# -- the same documents, written otherwise ---------------------------------------------------------------------


def expected(pool: Pool) -> dict[str, str]:
    """Where the documents are placed when they come as JSON lines, by id."""

    def make(folder: Path) -> dict[str, str]:
        (folder / "docs.jsonl").write_bytes(m.json_lines(documents()))
        model = str(models(pool)["default"])
        ended = pool.command(
            folder, ["predict", model, "docs.jsonl", "-q", "--threads=1", "--ignore-labels", "-o", "-"]
        )
        assert ended.code == 0, ended.err
        lines = [json.loads(line) for line in ended.out.splitlines()]
        return {line["id"]: "/".join(line["path"]) for line in lines}

    found: dict[str, str] = pool.once("same-as-lines", make)
    return found


def _same_as_lines(scene: Scene) -> None:
    """What is read without help is placed as from JSON lines, and the table has the documents' own columns."""
    rng = scene.random
    form = Form.sound(rng)
    name = _write(scene.folder / f"docs.{form.ending}", form.written(documents(), rng))
    output = f"out{rng.choice(_TABLES)}"
    more = ["--report=page.html"] if rng.random() < 0.1 else []
    scene.verdict.title = (
        f"predict {form.ending} in {form.encoding}, {form.delimiter!r}, {form.separator!r} to {output}"
    )
    arguments = [
        "predict",
        str(models(scene.pool)["default"]),
        name,
        "--ignore-labels",
        "--threads=1",
        "-o",
        output,
    ]
    ended = scene.judged(
        Run([*arguments, *more]), {output: "table", **({"page.html": "page"} if more else {})}
    )
    if ended.code != 0:
        scene.wrong("a form is refused that is read without help")
        return
    rows = table_rows(scene.folder / output)
    known = expected(scene.pool)
    if {row.get("id"): row.get("path") for row in rows} != known:
        scene.wrong("documents are placed otherwise than as JSON lines, or have lost their ids")
    own = {one["id"]: one["text"] for one in documents()}
    if {row.get("id"): row.get("text") for row in rows} != own:
        scene.wrong("the texts of the table are not those of the documents")


def table_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table that a command has written."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    if path.suffix == ".xlsx":
        import openpyxl

        head, *below = openpyxl.load_workbook(path).worksheets[0].iter_rows(values_only=True)
        return [dict(zip(head, row, strict=True)) for row in below]
    text = path.read_text("utf-8-sig")
    first = text.split("\n", 1)[0]
    delimiter = "\t" if path.suffix == ".tsv" else max(",;|", key=first.count)
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


# -- scores of one's own files ---------------------------------------------------------------------------------


def _score(scene: Scene) -> None:
    rng = scene.random
    found: list[Any] = m.predictions(m.sound())
    truth: list[Any] = m.sound(rng.choice([5, 8]))
    for _ in range(rng.choice([0, 1, 2])):
        truth = spoil_documents(truth, rng)
    if rng.random() < 0.4:
        found = spoil_documents(found, rng)
    form = Form.sound(rng) if rng.random() < 0.4 else Form.odd(rng)
    try:
        data = form.written(truth, rng)
    except (UnicodeEncodeError, TypeError, csv.Error):
        form, data = Form(ending="jsonl"), m.json_lines(truth)
    name = _write(scene.folder / f"truth.{form.ending}", data)
    _write(scene.folder / "found.jsonl", m.json_lines(found))
    arguments = ["score", "found.jsonl", name]
    if rng.random() < 0.7:
        arguments += ["--taxonomy", tree_file(rng, scene.folder)]
    if form.levels and rng.random() < 0.8:
        arguments.append(f"--labels={form.levels.format(1)},{form.levels.format(2)}")
    outputs = {"r.json": "json"} if rng.random() < 0.5 else {}
    scene.judged(Run([*arguments, *(["--json=r.json"] if outputs else [])]), outputs)


def _measured(scene: Scene) -> None:
    """`evaluate` and `compare` on a file of one's own."""
    rng = scene.random
    command = rng.choice(["evaluate", "compare"])
    scene.verdict.title = f"{command} with an odd source"
    name, _ = _source(scene)
    arguments = [command, name, "--draws=2", "-q"]
    if rng.random() < 0.7:
        arguments += ["--taxonomy", tree_file(rng, scene.folder)]
    if rng.random() < 0.4:
        _write(scene.folder / "truth.csv", m.table(m.sound(8)))
        arguments += ["--truth=truth.csv"]
    elif rng.random() < 0.3:
        arguments += [f"--per-leaf={rng.choice(['1', '3', '9'])}"]
    if rng.random() < 0.3:
        arguments += [f"--labels={rng.choice(['level1,level2', 'labels', odd_text(rng)])}"]
    if command == "evaluate":
        scene.judged(Run([*_clean(arguments), *m.TINY, "--json=r.json"]), {"r.json": "json"})
    else:
        outputs = {"t.json": "json", "r.html": "page"}
        scene.judged(
            Run([*_clean(arguments), "--systems=tfidf-svm", "--json=t.json", "--report=r.html"]), outputs
        )
