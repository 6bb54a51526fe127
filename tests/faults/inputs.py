"""Bad input: documents, trees, keywords, dataset folders and predictions, spoiled in one to four ways."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from faults import material as m
from faults.case import Scene
from faults.mutations import Random, odd_text, odd_value, spoil_bytes, spoil_documents
from faults.parquet import parquet_bytes
from faults.runner import Pool, Run
from faults.trees import KEYWORD_FILES, TREE_FILES

_FORMATS = (
    ["jsonl"] * 5 + ["json"] * 2 + ["csv"] * 3 + ["tsv"] * 2 + ["parquet"] * 3 + ["ndjson", "txt", "odd"]
)
_COMMANDS = (
    ["check"] * 30 + ["fit"] * 20 + ["predict"] * 30 + ["explain"] * 8 + ["synthesize"] * 2 + ["score"] * 12
)
# One in so many is an evaluation, which starts processes of its own.
_EVALUATIONS = 400


def models(pool: Pool) -> dict[str, Path]:
    """A model of either method, fitted once."""

    def make(folder: Path) -> dict[str, Path]:
        m.write_sound(folder)
        for name, method in (("model", m.TINY), ("default", m.DEFAULT)):
            ended = pool.command(folder, m.fit_arguments(method, name))
            assert ended.code == 0, ended.err
        return {name: folder / name for name in ("model", "default")}

    found: dict[str, Path] = pool.once("models", make)
    return found


def attack(scene: Scene) -> None:
    """One bad input, and one command that reads it."""
    rng = scene.random
    command = "evaluate" if scene.number % _EVALUATIONS == 7 else rng.choice(_COMMANDS)
    if command == "synthesize":
        run, outputs = _synthesize(scene)
    elif command in ("score", "evaluate"):
        run, outputs = _on_dataset(scene, command)
    else:
        run, outputs = _on_documents(scene, command)
    if rng.random() < 0.25:
        run.arguments += odd_options(rng, command)
    scene.verdict.title = f"{command} with bad input"
    scene.judged(run, outputs, also_on_failure=command == "check")


# -- documents, tree and keywords ------------------------------------------------------------------------------


def encoded(documents: list[Any], kind: str, rng: Random) -> bytes:
    """Documents in a format."""
    if kind == "json":
        return json.dumps(documents).encode()
    if kind in ("csv", "tsv"):
        return m.table(documents, "," if kind == "csv" else "\t")
    if kind == "parquet":
        return parquet_bytes(documents, rng)
    return m.json_lines(documents)


def packed(data: bytes, packing: str) -> bytes:
    """Data compressed by the ending of a file's name."""
    if packing == ".gz":
        return gzip.compress(data, mtime=0)
    if packing == ".zst":
        import zstandard

        return zstandard.compress(data)
    return data


def odd_documents(rng: Random, sound: list[Any], folder: Path) -> str:
    """Write documents that are bad in one to three ways; gives the file's name."""
    spoiled: list[Any] = sound
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        spoiled = spoil_documents(spoiled, rng)
    kind = rng.choice(_FORMATS)
    packing = rng.choice(["", "", "", "", ".gz", ".zst"]) if kind != "parquet" else ""
    data = encoded(spoiled, kind, rng)
    for _ in range(rng.choice([0, 0, 1, 2])):
        data = spoil_bytes(data, rng, m.TREE_YAML.encode())
    data = packed(data, packing)
    if packing and rng.random() < 0.4:
        data = spoil_bytes(data, rng, data)
    name = f"{_file_name(rng, 'docs')}.{kind}{packing}"
    return _write(folder, name, data)


def _file_name(rng: Random, plain: str) -> str:
    if rng.random() < 0.94:
        return plain
    odd = [
        "d\udcff",
        "d\x1b[31m",
        "d\x07",
        "x" * 220,
        "-d",
        "d d",
        "d\n",
        "[bold]d",
        "ü" * 100,
        "d\x85",
        "a,b",
    ]
    return rng.choice(odd)


def _write(folder: Path, name: str, data: bytes) -> str:
    """Write a file; where the system refuses the name, a plain one."""
    try:
        (folder / name).write_bytes(data)
    except (OSError, ValueError):
        name = "plain" + Path(name).suffix
        (folder / name).write_bytes(data)
    return name if not name.startswith("-") else f"./{name}"


def _small_file(rng: Random, folder: Path, kinds: dict[str, Any], plain: str, odds: float) -> str:
    """Write a tree or keywords, spoiled with some chance; gives the file's name."""
    name = rng.choice(list(kinds))
    data = kinds[name](rng)
    if rng.random() < odds:
        for _ in range(rng.choice([1, 1, 2])):
            data = spoil_bytes(data, rng, m.json_lines(m.sound(2)))
    ending = name.split(" ")[0] if rng.random() < 0.95 else rng.choice(["yaml", "json", "txt", "", "gz"])
    return _write(folder, f"{_file_name(rng, plain)}.{ending}", data)


def _on_documents(scene: Scene, command: str) -> tuple[Run, dict[str, str]]:
    rng, folder = scene.random, scene.folder
    if command == "check" and rng.random() < 0.15:
        return _on_dataset(scene, "check")
    name = odd_documents(rng, m.sound(rng.choice([5, 5, 8])), folder)
    skip = ["--skip-bad"] if rng.random() < 0.4 and command != "explain" else []
    if command in ("predict", "explain"):
        model = str(models(scene.pool)[rng.choice(["model", "default"])])
        if command == "explain":
            report, outputs = _json_option(rng)
            category = (
                [rng.choice(["physics", "science", "arts", odd_text(rng)])] if rng.random() < 0.3 else []
            )
            return Run(["explain", model, *_after_dashes(category), "--documents", name, *report]), outputs
        output = rng.choice(["out.jsonl", "out.jsonl", "old.jsonl", "-"])
        (folder / "old.jsonl").write_bytes(b"old\n")
        arguments = ["predict", model, name, "-o", output, "--threads=1", *skip]
        return Run(arguments), {} if output == "-" else {output: "lines"}
    arguments = [command, name, *skip]
    if rng.random() < 0.85:
        arguments += ["--taxonomy", _small_file(rng, folder, TREE_FILES, "tree", 0.25)]
    if rng.random() < 0.8:
        arguments += ["--metadata", rng.choice(["tags", "tags", "tags", "tags,id", "labels", odd_text(rng)])]
    if rng.random() < 0.25:
        arguments += ["--keywords", _small_file(rng, folder, KEYWORD_FILES, "keywords", 0.3)]
    if rng.random() < 0.2:
        arguments.append("--allow-empty-leaves")
    if command == "check":
        report, outputs = _json_option(rng)
        return Run(arguments + report), outputs
    method = m.TINY if rng.random() < 0.8 else m.DEFAULT
    return Run([*arguments, "-o", "model", *method]), {"model": "model"}


def _after_dashes(values: list[str]) -> list[str]:
    return [f"./{value}" if value.startswith("-") else value for value in values]


def _json_option(rng: Random) -> tuple[list[str], dict[str, str]]:
    chosen = rng.random()
    if chosen < 0.5:
        return [], {}
    return (["--json", "-"], {}) if chosen < 0.75 else (["--json", "report.json"], {"report.json": "json"})


# -- dataset folders and predictions ---------------------------------------------------------------------------


def _on_dataset(scene: Scene, command: str) -> tuple[Run, dict[str, str]]:
    """`score`, `evaluate` or `check` on a dataset folder of which one or two files are bad."""
    rng, folder = scene.random, scene.folder
    documents: list[Any] = m.sound(8)
    found: list[Any] = m.predictions()
    if rng.random() < 0.4:
        documents = spoil_documents(documents, rng)
    files = m.dataset_files(documents)
    for _ in range(rng.choice([0, 1, 1, 2])):
        name = rng.choice(sorted(files))
        files[name] = spoil_bytes(files[name], rng, m.TREE_LINES.encode())
    if rng.random() < 0.3:
        files["label_hier.txt"] = TREE_FILES["txt lines"](rng)
    if rng.random() < 0.1:
        del files[rng.choice(sorted(files))]
    m.write_all(folder / "data", files)
    report, outputs = _json_option(rng)
    if command == "check":
        return Run(["check", "data", *report]), outputs
    if command == "evaluate":
        return Run(["evaluate", "data", "--draws=1", *m.TINY, *report]), outputs
    for _ in range(rng.choice([0, 1, 2])):
        row = rng.choice(found)
        row[rng.choice(["id", "path", "confidence", "leaf", "path"])] = odd_value(rng)
    if rng.random() < 0.2:
        found = spoil_documents(found, rng)
    data = encoded(found, rng.choice(["jsonl", "jsonl", "jsonl", "json", "csv", "parquet"]), rng)
    if rng.random() < 0.5:
        data = spoil_bytes(data, rng, files.get("corpus.jsonl", b""))
    name = _write(
        folder, f"{_file_name(rng, 'found')}.{rng.choice(['jsonl', 'jsonl', 'json', 'csv', 'parquet'])}", data
    )
    draw = ["--without-draw", rng.choice(["0", "1", "9"])] if rng.random() < 0.3 else []
    return Run(["score", name, "data", *draw, *report]), outputs


def _synthesize(scene: Scene) -> tuple[Run, dict[str, str]]:
    rng = scene.random
    label = rng.choice(["physics", "science", "science/biology", odd_text(rng), odd_text(rng)])
    report, outputs = _json_option(rng)
    model = str(models(scene.pool)[rng.choice(["model", "default"])])
    return Run(["synthesize", model, *_after_dashes([label]), "-n", "2", *report]), outputs


# -- options ---------------------------------------------------------------------------------------------------

_SETTINGS = [
    "beta", "dimension", "min_count", "space", "classifier", "em_rounds", "filter_widths", "samples",
    "use_hierarchy",
    "no_such", "", "method", "window", "epochs", "seed",
]  # fmt: skip
_SETTING_VALUES = [
    "0", "-1", "1", "2", "1.5", "NaN", "Infinity", "-Infinity", "1e999", "null", "true", "[]", "{}", "[[1]]",
    "x", "", "1,2",
    "\x1b[31m", "9" * 400, "[" * 5_000, '"' + "x" * 4_000 + '"', "\udcff", "=", "spectral", "mean-logistic",
    "kim-cnn",
]  # fmt: skip
_BOUNDS = ["line", "ratio", "depth", "label", "nodes", "memory", "no_such", ""]
_BOUND_VALUES = [
    "0",
    "1",
    "64MB",
    "1k",
    "-1",
    "NaN",
    "1e9",
    "",
    "x" * 3_000,
    "9" * 20,
    "1 GB",
    "\x1b[31m",
    "200",
    "١",
]


def odd_options(rng: Random, command: str) -> list[str]:
    """Options with values that nobody should give."""
    choices: list[list[str]] = [
        [f"--bound={rng.choice(_BOUNDS)}={rng.choice(_BOUND_VALUES)}"],
        [f"--id={odd_text(rng)}"],
        [f"--text={odd_text(rng)}"],
    ]
    if command in ("check", "fit", "evaluate"):
        choices += [
            [f"--set={rng.choice(_SETTINGS)}={rng.choice(_SETTING_VALUES)}"],
            [f"--set={odd_text(rng)}"],
            [f"--metadata={odd_text(rng)}"],
            [f"--labels={odd_text(rng)}"],
            [f"--tokenizer={rng.choice(['ngrams', 'subwords', 'unicode', odd_text(rng)])}"],
            [f"--method={rng.choice(['paper', 'default', odd_text(rng)])}"],
            [f"--taxonomy={odd_text(rng)}"],
            [f"--keywords={odd_text(rng)}"],
        ]
    if command in ("fit", "predict", "evaluate"):
        choices += [[f"--min-confidence={rng.choice(['0', '1', '0.5', 'nan', '-1', 'inf', '1e-300', 'x'])}"]]
    if command in ("fit", "evaluate"):
        choices += [[f"--seed={rng.choice(['0', '-1', '4294967296', '9' * 30, 'x'])}"]]
    if command in ("explain",):
        choices += [[f"--top={rng.choice(['0', '1', '999999', '9' * 30])}"]]
    return [os.fsdecode(_without_nul(one)) for one in rng.choice(choices)]


def _without_nul(argument: str) -> bytes:
    """An argument as a shell could give it: no NUL, and bytes where it is no character."""
    return argument.replace("\0", "").encode(
        "utf-8", "surrogateescape" if "\ud800" not in argument else "replace"
    )
