"""Bombs: small files that become large, and sizes that nobody has."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults import material as m
from faults import workbook_bombs as large
from faults.case import Scene
from faults.inputs import models
from faults.runner import Run

MB = 1 << 20
# Trees with very many leaves must fit into a small machine.
_SMALL_MACHINE = 2048


def attack(scene: Scene) -> None:
    """One bomb, and one command that reads it."""
    name = list(_BOMBS)[scene.number % len(_BOMBS)]
    make, megabytes = _BOMBS[name]
    m.write_sound(scene.folder)
    run, outputs = make(scene)
    scene.verdict.title = f"{name} {scene.verdict.title}".strip()
    ended = scene.judged(run, outputs, also_on_failure=run.arguments[0] == "check", megabytes=megabytes)
    if ended.megabytes > megabytes and not ended.killed:
        scene.wrong(f"it took {ended.megabytes} MB, and {megabytes} are allowed")


# -- documents -------------------------------------------------------------------------------------------------


def _place(scene: Scene, name: str, data: bytes, options: tuple[str, ...] = ()) -> tuple[Run, dict[str, str]]:
    """A command that reads documents from this file."""
    rng = scene.random
    (scene.folder / name).write_bytes(data)
    skip = ["--skip-bad"] if rng.random() < 0.5 else []
    command = rng.choice(["check", "fit", "predict"])
    if command == "predict":
        model = str(models(scene.pool)[rng.choice(["model", "default"])])
        return Run(["predict", model, name, "-o", "out.jsonl", "-q", "--threads=1", *skip]), {
            "out.jsonl": "lines"
        }
    arguments = [command, name, "--taxonomy=tree.yaml", "--metadata=tags", "-q", *skip, *options]
    if command == "fit":
        return Run([*arguments, "-o", "model", *m.TINY]), {"model": "model"}
    return Run(arguments), {}


_FILLINGS: dict[str, bytes] = {
    "one long line": b"x",
    "blank lines": b"\n",
    "blanks": b" ",
    "lists in lists": b"[",
    "a long text": b"quantum ",
    "documents": m.json_lines([{"text": "quantum laser", "labels": "arts"}]),
}


def _packed(scene: Scene) -> tuple[Run, dict[str, str]]:
    rng = scene.random
    filling, packing = rng.choice(sorted(_FILLINGS)), rng.choice([".gz", ".zst"])
    kind = rng.choice(["jsonl", "json", "csv", "tsv"])

    def make(_: Path) -> bytes:
        piece = _FILLINGS[filling]
        whole = piece * (64 * MB // len(piece))
        start = b'{"id": "1", "text": "' if filling == "a long text" else b""
        if packing == ".gz":
            return gzip.compress(start, mtime=0) + gzip.compress(whole, 1, mtime=0) * 40
        import zstandard

        return zstandard.compress(start or b"\n") + zstandard.compress(whole) * 40

    data = scene.pool.once(f"packed-{filling}{packing}".replace(" ", "-"), make)
    return _place(scene, f"docs.{kind}{packing}", data)


def _long_line(scene: Scene) -> tuple[Run, dict[str, str]]:
    rng = scene.random
    kind = rng.choice(["jsonl", "csv", "tsv", "json", "csv quote"])
    inside = rng.choice([b"x", b"quantum laser ", b"\xc3\xa9", b"1"])
    body = inside * (100 * MB // len(inside))
    data = {
        "jsonl": m.json_lines(m.sound()) + b'{"id": "long", "text": "' + body + b'"}\n',
        "json": b'[{"id": "long", "text": "' + body + b'"}]',
        "csv": b"id,text,labels\n1," + body + b",arts\n",
        "tsv": b"id\ttext\tlabels\n1\t" + body + b"\tarts\n",
        "csv quote": b'id,text,labels\n1,"' + body.replace(b"laser", b"laser\n") + b",arts\n",
    }[kind]
    ending = kind.split(" ")[0]
    if rng.random() < 0.4:
        return _place(scene, f"docs.{ending}.gz", gzip.compress(data, 1, mtime=0))
    return _place(scene, f"docs.{ending}", data)


def _parquet(scene: Scene) -> tuple[Run, dict[str, str]]:
    kind = scene.random.choice(["rows", "null rows", "dictionary", "cell", "columns", "long names"])
    return _place(
        scene, "docs.parquet", scene.pool.once(f"parquet-{kind}".replace(" ", "-"), lambda _: _table(kind))
    )


def _table(kind: str) -> bytes:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    if kind in ("rows", "null rows"):
        # Runs of equal values take no room: a hundred million rows in a few kilobytes.
        part = 10 * MB
        same = pa.DictionaryArray.from_arrays(np.zeros(part, np.int32), ["quantum"])
        one = pa.nulls(part, pa.string()) if kind == "null rows" else same
        table = pa.table({"text": one})
        with pq.ParquetWriter(stream, table.schema, compression="zstd") as writer:
            for _ in range(10):
                writer.write_table(table, row_group_size=part)
        return stream.getvalue()
    if kind == "dictionary":
        # One value of 16 MB that every row names.
        column = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["quantum " * (2 * MB)])
        table = pa.table({"text": column})
    elif kind == "cell":
        table = pa.table({"text": ["x" * (1000 * MB)]})
    elif kind == "columns":
        table = pa.table({"text": ["quantum"], **{f"c{number}": [1] for number in range(20_000)}})
    else:
        table = pa.table({"text": ["quantum"] * 3, "x" * (8 * MB): ["y"] * 3})
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()


def _columns(scene: Scene) -> tuple[Run, dict[str, str]]:
    names = ["id", "text", "labels", *(f"column {number}" for number in range(100_000))]
    rows = [
        ",".join([f"{row}", "quantum laser", "arts", *("x" for _ in range(100_000))]) for row in range(30)
    ]
    return _place(scene, "docs.csv", "\n".join([",".join(names), *rows, ""]).encode())


def _many_values(scene: Scene) -> tuple[Run, dict[str, str]]:
    documents: list[Any] = m.sound()
    field = scene.random.choice(["tags", "labels"])
    documents[0][field] = [f"value {number}" for number in range(300_000)]
    return _place(scene, "docs.jsonl", m.json_lines(documents))


def _many_problems(scene: Scene) -> tuple[Run, dict[str, str]]:
    line = scene.random.choice([b"{\n", b'{"text": ""}\n', b"\xff\n", b'{"text": "quantum", "id": "1"}\n'])
    return _place(scene, "docs.jsonl", line * 500_000)


def _many_fields(scene: Scene) -> tuple[Run, dict[str, str]]:
    names = ",".join(f"field {number}" for number in range(10_000))
    run = Run(["check", "docs.jsonl", "--taxonomy=tree.yaml", "-q", f"--metadata={names}"])
    return run, {}


# -- trees and keywords ----------------------------------------------------------------------------------------


def _with_tree(scene: Scene, name: str, data: bytes, *more: str) -> tuple[Run, dict[str, str]]:
    (scene.folder / name).write_bytes(data)
    arguments = ["docs.jsonl", f"--taxonomy={name}", "-q", "--allow-empty-leaves", *more]
    if scene.random.random() < 0.5:
        return Run(["check", *arguments]), {}
    method = m.TINY if scene.random.random() < 0.5 else m.DEFAULT
    return Run(["fit", *arguments, "-o", "model", *method]), {"model": "model"}


def _laughs(levels: int = 9, width: int = 10) -> bytes:
    lines = ["a0: &a0 [x, y, z]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines).encode()


def _yaml_laughs(scene: Scene) -> tuple[Run, dict[str, str]]:
    if scene.random.random() < 0.3:
        (scene.folder / "keywords.yaml").write_bytes(_laughs())
        return Run(["check", "docs.jsonl", "--taxonomy=tree.yaml", "--keywords=keywords.yaml", "-q"]), {}
    return _with_tree(scene, "laughs.yaml", _laughs())


def _diamonds(scene: Scene) -> tuple[Run, dict[str, str]]:
    """Every category has two parents: the paths double with each level."""
    width, levels = scene.random.choice([(2, 40), (10, 12), (3, 100)])
    lines = [
        "ROOT " + " ".join(f"n0.{one}" for one in range(width)) + " science arts",
        "science physics biology",
    ]
    for level in range(levels):
        below = " ".join(f"n{level + 1}.{one}" for one in range(width))
        lines.extend(f"n{level}.{one} {below}" for one in range(width))
    return _with_tree(scene, "diamonds.txt", "\n".join(lines).encode())


def _chain(scene: Scene) -> tuple[Run, dict[str, str]]:
    deep = scene.random.choice([500, 3_000, 100_000])
    kind = scene.random.choice(["txt", "json", "yaml", "yaml lines"])
    if kind == "txt":
        data = "ROOT n0 science arts\nscience physics biology\n" + "\n".join(
            f"n{number} n{number + 1}" for number in range(deep)
        )
    elif kind == "yaml lines":
        deep = min(deep, 3_000)
        data = m.TREE_YAML + "\n".join(f"{' ' * number}n{number}:" for number in range(deep))
    else:
        data = "".join(f'{{"n{number}": ' for number in range(deep)) + "null" + "}" * deep
    return _with_tree(scene, f"chain.{kind.split(' ')[0]}", data.encode())


def _many_leaves(scene: Scene) -> tuple[Run, dict[str, str]]:
    count = scene.random.choice([20_000, 100_000])
    lines = ["ROOT science arts " + " ".join(f"g{group}" for group in range(100)), "science physics biology"]
    for group in range(100):
        lines.append(f"g{group} " + " ".join(f"leaf{group}.{number}" for number in range(count // 100)))
    run, outputs = _with_tree(scene, "leaves.txt", "\n".join(lines).encode())
    # The published method makes documents for every category: its time grows with their number, and it says so.
    run.arguments = [one for one in run.arguments if not one.startswith(("--method", "--set"))]
    return run, outputs


def _unknown_labels(scene: Scene) -> tuple[Run, dict[str, str]]:
    lines = ["ROOT science arts " + " ".join(f"category number {n}".replace(" ", "-") for n in range(5_000))]
    lines.append("science physics biology")
    documents: list[Any] = [
        *m.sound(),
        *({"text": "quantum", "labels": f"categorie-nummer-{n}"} for n in range(3_000)),
    ]
    (scene.folder / "docs.jsonl").write_bytes(m.json_lines(documents))
    return _with_tree(scene, "wide.txt", "\n".join(lines).encode())


def _long_names(scene: Scene) -> tuple[Run, dict[str, str]]:
    long = scene.random.choice(["n" * MB, "n" * 5_000, "é" * 100_000, "name " * 1_000])
    tree = {"science": {"physics": None, "biology": None}, "arts": None, long: {f"{long}x": None}}
    return _with_tree(scene, "long.json", json.dumps(tree).encode())


def _keywords(scene: Scene) -> tuple[Run, dict[str, str]]:
    words = [f"word{number}" for number in range(300_000)]
    (scene.folder / "many.json").write_text(json.dumps({"physics": words, "arts": ["x" * MB]}))
    return _with_tree(scene, "tree.yaml", m.TREE_YAML.encode(), "--keywords=many.json")


def _score(scene: Scene) -> tuple[Run, dict[str, str]]:
    rng = scene.random
    rows: list[Any] = m.predictions()
    rows[0]["path"] = ["deep"] * 200_000 if rng.random() < 0.5 else ["x" * (5 * MB)]
    (scene.folder / "found.jsonl").write_bytes(m.json_lines(rows) * rng.choice([1, 3]))
    return Run(["score", "found.jsonl", "data", "--json=r.json"]), {"r.json": "json"}


def _synthesize(scene: Scene) -> tuple[Run, dict[str, str]]:
    model = str(models(scene.pool)[scene.random.choice(["model", "default"])])
    return Run(["synthesize", model, "physics", "-n", "10000", "--json=r.json"]), {"r.json": "json"}


# -- workbooks, pages and answers ------------------------------------------------------------------------------


def _workbook(scene: Scene) -> tuple[Run, dict[str, str]]:
    kind = scene.random.choice(list(large.KINDS))
    scene.verdict.title = kind
    return _place(
        scene, "docs.xlsx", scene.pool.once(f"workbook-{kind}", lambda _: large.workbook(kind, False))
    )


def _answers(scene: Scene) -> tuple[Run, dict[str, str]]:
    kind = scene.random.choice(list(large.KINDS))
    scene.verdict.title = kind
    data = scene.pool.once(f"answers-{kind}", lambda _: large.workbook(kind, True))
    (scene.folder / "answers.xlsx").write_bytes(data)
    model = str(models(scene.pool)["model"])
    return Run(["correct", model, "answers.xlsx", "-q", "--threads=1", "-o", "new"]), {"new": "model"}


def _pages(scene: Scene) -> tuple[Run, dict[str, str]]:
    scene.verdict.title = scene.random.choice(list(large.PAGES))
    large.page_folder(scene.verdict.title, scene.folder)
    model = str(models(scene.pool)["model"])
    if scene.random.random() < 0.5:
        return Run(["check", "texts", "--labels-from-folders", "-q"]), {}
    return Run(["predict", model, "texts", "-q", "--threads=1", "-o", "out.jsonl"]), {"out.jsonl": "lines"}


def _review(scene: Scene) -> tuple[Run, dict[str, str]]:
    documents: list[Any] = m.sound() + [
        {"id": f"more-{n}", "text": f"quantum laser {n % 7}"} for n in range(1_500)
    ]
    documents[1] |= {"labels": [], "text": "quantum " * MB}
    (scene.folder / "docs.jsonl").write_bytes(m.json_lines(documents))
    output = f"review{scene.random.choice(['.xlsx', '.csv', '.jsonl'])}"
    model = str(models(scene.pool)[scene.random.choice(["model", "default"])])
    run = Run(["review", model, "docs.jsonl", "-n", "500", "-q", "--threads=1", "-o", output])
    return run, {output: "review"}


def _table_of_fields(scene: Scene) -> tuple[Run, dict[str, str]]:
    """Every document has fields of its own: the table has a column for each."""
    many = scene.random.choice([3_000, 40_000])
    documents: list[Any] = [
        {**one, f"field {n}": n} for n, one in enumerate(m.sound() * (many // 24), start=1)
    ]
    for n, one in enumerate(documents):
        one["id"] = str(n)
    (scene.folder / "docs.jsonl").write_bytes(m.json_lines(documents))
    output = f"out{scene.random.choice(['.xlsx', '.csv', '.parquet'])}"
    model = str(models(scene.pool)["model"])
    return Run(["predict", model, "docs.jsonl", "-q", "--threads=1", "-o", output]), {output: "table"}


_BOMBS: dict[str, tuple[Callable[[Scene], tuple[Run, dict[str, str]]], int]] = {
    "a compressed file that becomes gigabytes": (_packed, 4096),
    "a tree of very many leaves": (_many_leaves, _SMALL_MACHINE),
    "Parquet that becomes gigabytes": (_parquet, 4096),
    "a line of 100 MB": (_long_line, 4096),
    "a table of 100,000 columns": (_columns, 4096),
    "very many values": (_many_values, 4096),
    "very many problems": (_many_problems, 4096),
    "very many fields": (_many_fields, 4096),
    "a billion laughs": (_yaml_laughs, 4096),
    "a tree of diamonds": (_diamonds, 4096),
    "a chain of categories": (_chain, 4096),
    "very many unknown labels": (_unknown_labels, 4096),
    "very long names": (_long_names, 4096),
    "very many keywords": (_keywords, 4096),
    "predictions with very long paths": (_score, 4096),
    "very many synthetic documents": (_synthesize, 4096),
    "a workbook that becomes large": (_workbook, _SMALL_MACHINE),
    "answers that become large": (_answers, _SMALL_MACHINE),
    "a page that is all markup": (_pages, _SMALL_MACHINE),
    "a long review": (_review, _SMALL_MACHINE),
    "a table of very many columns": (_table_of_fields, _SMALL_MACHINE),
}
