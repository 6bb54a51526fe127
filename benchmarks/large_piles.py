"""`himecat fit` within a memory budget: arxiv-large, and piles made of its sentences.

    python benchmarks/large_piles.py --documents 0 2000000 --memory 1GB 3GB --json large_piles.json

A pile has Parquet files of 100,000 documents each. A document is made of sentences, and of authors, of documents of one
leaf, drawn at random; five documents per leaf are labelled. With 0 documents, `arxiv-large` is taken as it is. Every
command is a process of its own: wall time, CPU-seconds and peak memory are those of the whole process. Leaf micro F1 is
that of all documents (arxiv-large), or of the first file (made ones), without the labelled ones.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "arxiv-large"
PER_FILE, PER_LEAF = 100_000, 5
HIMECAT = (sys.executable, "-m", "himecat")


def make(into: Path, count: int) -> None:
    """Write the files of a pile, with labels, and the same without those that a fit must not see."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pq.read_table(DATA / "corpus.parquet", columns=["text", "authors", "labels"]).to_pylist()
    by_leaf: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in source:
        path = one["labels"]
        by_leaf[path if isinstance(path, str) else "/".join(path)].append(one)
    leaves, rng = sorted(by_leaf), random.Random(0)
    weights = [len(by_leaf[leaf]) for leaf in leaves]
    sentences = {leaf: [text["text"].split(". ") for text in by_leaf[leaf]] for leaf in leaves}
    shown: dict[str, int] = defaultdict(int)
    for kind in ("documents", "truth"):
        (into / kind).mkdir(parents=True, exist_ok=True)
    for first in range(0, count, PER_FILE):
        rows: dict[str, list[Any]] = {"id": [], "text": [], "authors": [], "labels": []}
        true = []
        for number in range(first, min(first + PER_FILE, count)):
            leaf = rng.choices(leaves, weights)[0]
            own = sentences[leaf]
            parts = [rng.choice(rng.choice(own)) for _ in range(rng.randint(4, 9))]
            authors = [name for _ in range(2) for name in (rng.choice(by_leaf[leaf])["authors"] or [])[:2]]
            shown[leaf] += 1
            rows["id"].append(f"d{number}")
            rows["text"].append(". ".join(parts))
            rows["authors"].append(list(dict.fromkeys(authors)))
            rows["labels"].append(leaf if shown[leaf] <= PER_LEAF else None)
            true.append(leaf)
        schema = pa.schema(
            [
                ("id", pa.string()),
                ("text", pa.string()),
                ("authors", pa.list_(pa.string())),
                ("labels", pa.string()),
            ]
        )
        name = f"part-{first // PER_FILE:04d}.parquet"
        pq.write_table(pa.table(rows, schema=schema), into / "documents" / name)
        pq.write_table(pa.table({"id": rows["id"], "labels": true}), into / "truth" / name)


def run(*command: str) -> dict[str, float]:
    """Run a command to its end; what it took."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    notes = [line for line in said.splitlines() if line.startswith("note: of ")]
    print(*notes, sep="\n", flush=True)
    return {
        "wall_seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def leaf_micro(predictions: Path, truth: Path) -> float:
    """The share of unlabelled documents whose leaf is right."""
    import orjson
    import pyarrow.parquet as pq

    table = pq.read_table(truth)
    true = dict(zip(table.column("id").to_pylist(), table.column("labels").to_pylist(), strict=True))
    right = total = 0
    for line in predictions.read_bytes().splitlines():
        one = orjson.loads(line)
        if not one.get("labelled"):
            total += 1
            right += "/".join(one["path"]) == true[one["id"]]
    return right / total


def measure(count: int, memory: str | None, engine: str, folder: Path) -> dict[str, Any]:
    options = [*(["--memory", memory] if memory else []), "--engine", engine]
    model, predictions = folder / "model", folder / "predictions.jsonl"
    fit = (*HIMECAT, "fit")
    if count:
        pile = folder / f"pile-{count}"
        if not pile.exists():
            make(pile, count)
        tree = ["--taxonomy", str(DATA / "label_hier.txt"), "--metadata", "authors"]
        took = run(*fit, str(pile / "documents"), *tree, *options, "-o", str(model), "--overwrite")
        first = "part-0000.parquet"
        run(*HIMECAT, "predict", str(model), str(pile / "documents" / first), "-o", str(predictions))
        score = leaf_micro(predictions, pile / "truth" / first)
    else:
        took = run(*fit, str(DATA), *options, "-o", str(model), "--overwrite")
        run(
            *HIMECAT,
            "predict",
            str(model),
            str(DATA / "corpus.parquet"),
            "--ignore-labels",
            "-o",
            str(predictions),
        )
        command = [*HIMECAT, "score", str(predictions), str(DATA), "--without-draw", "0", "--json", "-"]
        score = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["leaf"]["micro"]
    documents = count or 147_741
    return {
        "documents": documents,
        "memory": memory or "half",
        "engine": engine,
        **took,
        "cpu_ms_per_document": 1000 * took["cpu_seconds"] / documents,
        "leaf_micro": score,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--documents", type=int, nargs="+", default=[0], help="sizes of made piles; 0: arxiv-large"
    )
    parser.add_argument(
        "--memory", nargs="+", default=["1GB"], help="a budget for each; - for half of what is there"
    )
    parser.add_argument("--engine", default="local")
    parser.add_argument("--folder", type=Path, help="where piles are made, and kept")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not DATA.exists():
        raise SystemExit(f"{DATA} is not there.")
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for count, memory in zip(given.documents, given.memory, strict=True):
            found.append(measure(count, None if memory == "-" else memory, given.engine, folder))
            print(
                {
                    key: round(value, 4) if isinstance(value, float) else value
                    for key, value in found[-1].items()
                }
            )
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
