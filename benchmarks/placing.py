"""Placing: documents a second of `himecat predict` with one process and with all cores, into files and into parts.

    python benchmarks/placing.py --model model --documents documents.jsonl --copies 4 --json placing.json

Each measurement is a process of its own; what it costs to place one document, which is mostly loading the model, is
taken off. With several processes the wall time is taken off that one of them needs. "Share" is the rate with all
cores, divided by that of one process and by their number: of wall time, and of CPU time, which other programs on the
machine do not change.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from end_to_end import measure


def write_inputs(documents: Path, folder: Path, copies: int, files: int) -> int:
    """The documents several times over, without labels and each with an id of its own: lines, and Parquet files."""
    import orjson
    import pyarrow
    from pyarrow import parquet

    read = [orjson.loads(line) for line in documents.read_bytes().splitlines()]
    rows = [
        {name: value for name, value in one.items() if name != "labels"} | {"id": f"{copy}-{one['id']}"}
        for copy in range(copies)
        for one in read
    ]
    (folder / "documents.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (folder / "one.jsonl").write_bytes(orjson.dumps(rows[0]))
    (folder / "parquet").mkdir()
    (folder / "one").mkdir()
    table = pyarrow.Table.from_pylist(rows)
    size = -(-len(rows) // files)
    for number in range(files):
        parquet.write_table(table.slice(number * size, size), folder / "parquet" / f"{number:03}.parquet")
    parquet.write_table(table.slice(0, 1), folder / "one" / "0.parquet")
    return len(rows)


def rate(model: Path, documents: Path, one: Path, output: str, threads: int, count: int) -> dict[str, float]:
    """Documents a second, with the cost of a single document taken off."""

    def run(source: Path) -> dict[str, Any]:
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "himecat", "predict", str(model), str(source), "-o", output, "-q"]
        return measure([*command, "--threads", str(threads)])

    start, whole = run(one), run(documents)
    # Every process of a folder loads the model.
    loads = threads if output.endswith("/") else 1
    wall = whole["wall_seconds"] - start["wall_seconds"]
    cpu = whole["cpu_seconds"] - loads * start["cpu_seconds"]
    return {
        "documents_per_second": count / wall,
        "documents_per_cpu_second": count / cpu,
        "wall_seconds": whole["wall_seconds"],
        "cpu_seconds": whole["cpu_seconds"],
        "peak_mb": whole["peak_mb"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--documents", type=Path, required=True, help="JSON lines with an id")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    found: dict[str, Any] = {"cores": cores}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # In a process of its own: one that is started later would be told to have this one's memory.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            wanted = given.documents, folder, given.copies, given.files
            count = found["documents"] = pool.submit(write_inputs, *wanted).result()
        lines, parts = folder / "documents.jsonl", folder / "parquet"
        for title, source, one, output in (
            ("lines to lines", lines, folder / "one.jsonl", "out.jsonl"),
            ("Parquet to Parquet", parts, folder / "one", "out.parquet"),
            ("Parquet to parts", parts, folder / "one", "out/"),
        ):
            sides = found[title] = {
                threads: rate(given.model, source, one, f"{folder}/{output}", threads, count)
                for threads in (1, cores)
            }
            for by in ("second", "cpu_second"):
                share = sides[cores][f"documents_per_{by}"] / sides[1][f"documents_per_{by}"]
                sides[f"share_by_{by}"] = share / cores if by == "second" else share
            print(title, json.dumps(sides, indent=1), flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
