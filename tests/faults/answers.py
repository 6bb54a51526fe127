"""`review` and `correct`: odd documents to choose from, answers that are none, models that cannot be fitted again."""

from __future__ import annotations

import copy
import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults import damage, odd_workbooks, workbooks
from faults import material as m
from faults.case import Scene
from faults.forms import Form
from faults.inputs import encoded, models, odd_documents
from faults.judge import Snapshot, snapshot
from faults.mutations import Random, odd_text, odd_value, spoil_bytes, spoil_documents
from faults.runner import Pool, Run

Rows = list[Any]
_FORMATS = ["xlsx"] * 4 + ["csv"] * 3 + ["jsonl"] * 3 + ["tasks"] * 4 + ["json", "parquet"]
_LABELS = [
    "physics", "science/physics", "science", "ROOT", "ROOT/arts", "1", "2", "3", "4", "0", "-1", 1, 2.0, 3.5, "skip",
    "SKIP", " physics ", "artz", "Physics", "science / physics", "science > physics", ["science", "physics"],
    ["physics"], [], True, "'=1", "none", ["arts", "science"],
]  # fmt: skip


def rows(labels: bool = False) -> Rows:
    """A review that somebody has filled in: the documents without a label, with their answers."""
    found: Rows = []
    for one in m.sound():
        if one["labels"]:
            continue
        leaf = one["id"].partition("-")[0]
        answer = {"labels": m.PATHS[leaf]} if labels else {"answer": "/".join(m.PATHS[leaf])}
        suggested = (
            {}
            if labels
            else {f"suggestion{n}": name for n, name in enumerate(("arts", "science/biology"), 1)}
        )
        found.append({**{name: one[name] for name in ("id", "text", "tags")}, **suggested, **answer})
    return found


def attack(scene: Scene) -> None:
    """One command that asks for answers, or takes them."""

    kinds: list[Callable[[Scene], None]] = (
        [_review] * 3 + [_correct] * 8 + [_same_as_fit] * 2 + [_no_corpus, _damaged, _damaged]
    )
    scene.random.choice(kinds)(scene)


def copied_model(scene: Scene, name: str | None = None) -> str:
    name = name or scene.random.choice(["model", "default"])
    shutil.copytree(models(scene.pool)[name], scene.folder / "model")
    return name


def _review(scene: Scene) -> None:
    rng = scene.random
    scene.verdict.title = "review of odd documents"
    copied_model(scene)
    name = odd_documents(rng, m.sound(), scene.folder)
    output = rng.choice(["review", "old"]) + rng.choice([".xlsx", ".xlsx", ".csv", ".jsonl"])
    (scene.folder / f"old{output[output.index('.') :]}").write_bytes(b"old\n")
    arguments = ["review", "model", name, "-o", output, "--threads=1"]
    arguments += rng.choice(
        [[], [], [f"-n={rng.choice([1, 5, 100_000])}"], ["--skip-bad"], [f"--seed={rng.choice([0, 7])}"]]
    )
    if rng.random() < 0.1:
        odd = odd_text(rng).replace("\0", "").encode("utf-8", "replace").decode()
        arguments.append(rng.choice([f"--id={odd}", f"--text={odd}", "-n=0", "--count=x"]))
    scene.judged(Run(arguments), {output: "review"})


# -- answers that are none -------------------------------------------------------------------------------------


def _correct(scene: Scene) -> None:
    rng = scene.random
    scene.verdict.title = "correct with odd answers"
    copied_model(scene)
    given = rows(labels=rng.random() < 0.2)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        given = rng.choice(_ANSWERS)(given, rng)
    name = _written(scene, given)
    arguments, outputs = ["correct", "model", name, "--threads=1"], {"model": "model"}
    chosen = rng.random()
    if chosen < 0.2:
        arguments, outputs = [*arguments, "--dry-run"], {}
    elif chosen < 0.45:
        arguments, outputs = [*arguments, "-o", "new"], {"new": "model"}
    if rng.random() < 0.25:
        arguments.append("--json=r.json")
        outputs["r.json"] = "json"
    if rng.random() < 0.2:
        arguments += ["--add", odd_documents(rng, m.sound(2), scene.folder)]
    scene.judged(Run(arguments), outputs)


def _written(scene: Scene, given: Rows) -> str:
    rng = scene.random
    kind = rng.choice(_FORMATS)
    try:
        if kind == "xlsx":
            data = (odd_workbooks.spoiled if rng.random() < 0.6 else workbooks.sound)(given, rng)
        elif kind == "csv":
            form = Form.odd(rng)
            form.ending, form.levels = "csv", ""
            data = form.written(given, rng)
        elif kind == "tasks":
            kind, data = "json", json.dumps(_spoil_tasks(tasks(given), rng)).encode()
        else:
            data = encoded(given, kind, rng)
    except (UnicodeEncodeError, TypeError, csv.Error):
        kind, data = "jsonl", m.json_lines(given)
    if kind != "xlsx" and rng.random() < 0.25:
        data = spoil_bytes(data, rng, data)
    ending = kind if rng.random() < 0.95 else rng.choice(["xlsx", "csv", "json", "xls", "XLSX", "txt", ""])
    (scene.folder / f"answers.{ending}").write_bytes(data)
    return f"answers.{ending}"


def _field(given: Rows, rng: Random) -> Rows:
    row = rng.choice([one for one in given if isinstance(one, dict)] or [{}])
    row[rng.choice(["id", "answer", "answer", "labels", "suggestion1", "text", "tags"])] = odd_value(rng)
    return given


def _label(given: Rows, rng: Random) -> Rows:
    for row in given:
        if isinstance(row, dict) and rng.random() < 0.3:
            row[rng.choice(["answer", "answer", "answer", "labels"])] = copy.deepcopy(rng.choice(_LABELS))
    return given


def _unknown(given: Rows, rng: Random) -> Rows:
    row = {"id": rng.choice(["new", "", " ", 7, odd_text(rng)]), "answer": "arts"}
    if rng.random() < 0.6:
        row["text"] = rng.choice(
            ["painting canvas", "", odd_text(rng), "x" * 3_000 + " [...]", "x" * 1_994 + " [...]"]
        )
    return [*given, row]


def _again(given: Rows, rng: Random) -> Rows:
    """The same document twice, with the same answer or with another."""
    for _ in range(rng.choice([1, 5])):
        row = copy.deepcopy(rng.choice(given)) if given else {}
        if isinstance(row, dict) and rng.random() < 0.5:
            row["answer"] = rng.choice(["arts", "science", "skip", "1"])
        given.insert(rng.randrange(len(given) + 1), row)
    return given


def _other_text(given: Rows, rng: Random) -> Rows:
    for row in given:
        if isinstance(row, dict) and rng.random() < 0.2:
            row["text"] = rng.choice(["museum canvas gallery", "", odd_text(rng)])
    return given


def _no_answers(given: Rows, rng: Random) -> Rows:
    value = rng.choice(["", None, "skip", "  "])
    return [{**row, "answer": value} if isinstance(row, dict) else row for row in given]


_ANSWERS: list[Callable[[Rows, Random], Rows]] = [
    _field, _field, _label, _label, _unknown, _again, _other_text, _no_answers, spoil_documents,
]  # fmt: skip

# -- Label Studio ----------------------------------------------------------------------------------------------


def tasks(given: Rows) -> Rows:
    """Answers as an export of Label Studio."""
    found = []
    for number, row in enumerate(given):
        if not isinstance(row, dict):
            found.append(row)
            continue
        answer = row.get("answer", row.get("labels"))
        path = answer.split("/") if isinstance(answer, str) else answer
        result = [{"type": "taxonomy", "value": {"taxonomy": [path]}}] if path else []
        data = {name: value for name, value in row.items() if name not in ("answer", "labels")}
        found.append({"id": number, "data": data, "annotations": [{"result": result}], "predictions": []})
    return found


def _spoil_tasks(found: Rows, rng: Random) -> Rows:
    for _ in range(rng.choice([0, 0, 1, 2])):
        task = rng.choice([one for one in found if isinstance(one, dict)] or [{}])
        place: Any = task
        # Somewhere between the task and the name of a category.
        for _ in range(rng.randrange(7)):
            inner = place.values() if isinstance(place, dict) else place if isinstance(place, list) else ()
            deeper = [one for one in inner if isinstance(one, dict | list) and one]
            if not deeper:
                break
            place = rng.choice(deeper)
        if isinstance(place, dict):
            known = [*place, "was_cancelled", "choices", "taxonomy", "result", "value", "annotations"]
            place[rng.choice(known)] = rng.choice(
                [odd_value(rng), True, [["arts"], ["science"]], ["arts"], {"choices": "x"}]
            )
        elif isinstance(place, list) and place:
            place[rng.randrange(len(place))] = rng.choice(
                [odd_value(rng), [], {}, "arts", ["science", "physics", "more"]]
            )
    return found


# -- what must come out ----------------------------------------------------------------------------------------


def corrected(pool: Pool, name: str) -> Snapshot:
    """The model that the sound answers give, as files."""

    def make(folder: Path) -> Snapshot:
        shutil.copytree(models(pool)[name], folder / "model")
        (folder / "answers.jsonl").write_bytes(m.json_lines(rows()))
        ended = pool.command(folder, ["correct", "model", "answers.jsonl", "-q", "--threads=1"])
        assert ended.code == 0, ended.err
        return snapshot(folder / "model")

    found: Snapshot = pool.once(f"corrected-{name}", make)
    return found


def _same_as_fit(scene: Scene) -> None:
    """Sound answers in any format give the same model, byte by byte."""
    rng = scene.random
    name = copied_model(scene)
    kind = rng.choice(["xlsx", "csv", "jsonl", "json", "tasks", "labels", "parquet"])
    scene.verdict.title = f"correct with sound answers as {kind}"
    given = rows(labels=kind == "labels")
    rng.shuffle(given)
    ending = {"tasks": "json", "labels": "jsonl"}.get(kind, kind)
    if kind == "xlsx":
        data = workbooks.sound(given, rng)
    elif kind == "csv":
        form = Form.sound(rng)
        form.ending, form.levels, form.separator = "csv", "", "/"
        data = form.written(given, rng)
    elif kind == "parquet":
        data = _parquet(given)
    else:
        data = encoded(tasks(given) if kind == "tasks" else given, ending, rng)
    (scene.folder / f"answers.{ending}").write_bytes(data)
    target = rng.choice(["model", "new"])
    more = ["-o", "new"] if target == "new" else []
    ended = scene.judged(
        Run(["correct", "model", f"answers.{ending}", "--threads=1", *more]), {target: "model"}
    )
    if ended.code != 0:
        scene.wrong("sound answers are refused")
    elif snapshot(scene.folder / target) != corrected(scene.pool, name):
        scene.wrong("the model is not the one that the same answers give as JSON lines")


def _parquet(given: Rows) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(given), stream)
    return stream.getvalue()


def _no_corpus(scene: Scene) -> None:
    """A folder that does not keep its documents, or has lost them: it can be asked, and not fitted again."""
    rng = scene.random
    copied_model(scene)
    lost = rng.random() < 0.4
    if lost:
        (scene.folder / "model" / "corpus.safetensors").unlink()
    else:
        shutil.rmtree(scene.folder / "model")
        shutil.copytree(_bare(scene.pool), scene.folder / "model")
    (scene.folder / "answers.jsonl").write_bytes(m.json_lines(rows()))
    (scene.folder / "docs.jsonl").write_bytes(m.json_lines(m.sound()))
    command = rng.choice(["correct", "correct", "review"])
    scene.verdict.title = (
        f"{command} with a model that {'has lost' if lost else 'does not keep'} its documents"
    )
    if command == "review":
        ended = scene.judged(
            Run(["review", "model", "docs.jsonl", "-o", "review.xlsx"]), {"review.xlsx": "review"}
        )
        if not lost and ended.code != 0:
            scene.wrong("it cannot be reviewed")
        return
    more = rng.choice([[], ["--dry-run"], ["-o", "new"]])
    ended = scene.judged(Run(["correct", "model", "answers.jsonl", *more]))
    if ended.code != 2 or len(ended.sentences) != 1:
        scene.wrong(f"exit code {ended.code} and {len(ended.sentences)} sentences instead of 2 and one")


def _bare(pool: Pool) -> Path:
    def make(folder: Path) -> Path:
        m.write_sound(folder)
        ended = pool.command(folder, [*m.fit_arguments(), "--no-corpus"])
        assert ended.code == 0, ended.err
        return folder / "model"

    found: Path = pool.once("bare", make)
    return found


def _damaged(scene: Scene) -> None:
    """A damaged `corpus.safetensors` is refused, or makes no difference."""
    rng = scene.random
    name = copied_model(scene)
    other = models(scene.pool)["default" if name == "model" else "model"]
    what = damage.damage_corpus(scene.folder / "model", other, rng)
    command = rng.choice(["correct"] * 5 + ["review", "predict"])
    scene.verdict.title = f"{command} with the model {name}, {what}"
    (scene.folder / "answers.jsonl").write_bytes(m.json_lines(rows()))
    (scene.folder / "docs.jsonl").write_bytes(m.json_lines(m.sound()))
    if command == "review":
        scene.judged(Run(["review", "model", "docs.jsonl", "-o", "review.csv"]), {"review.csv": "review"})
        return
    if command == "predict":
        # Nothing of it is read.
        ended = scene.judged(
            Run(["predict", "model", "docs.jsonl", "-q", "-o", "out.jsonl"]), {"out.jsonl": "lines"}
        )
        whole = models(scene.pool)[name] / "model.json"
        described = scene.folder / "model" / "model.json"
        if ended.code != 0 and described.is_file() and described.read_bytes() == whole.read_bytes():
            scene.wrong("a prediction needs the documents of the fit")
        return
    ended = scene.judged(
        Run(["correct", "model", "answers.jsonl", "--threads=1", "-o", "new"]), {"new": "model"}
    )
    if ended.code == 0 and snapshot(scene.folder / "new") != corrected(scene.pool, name):
        scene.wrong("it gives another model than the sound one")
    if ended.code == 2 and len(ended.sentences) != 1:
        scene.wrong(f"{len(ended.sentences)} sentences instead of one")
