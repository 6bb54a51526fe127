"""Cold start: `himecat --help` and `himecat predict` on one document, each in a new process.

    python benchmarks/cold_start.py --json cold_start.json

The peer is what nobody can do without: a Python that imports NumPy for `--help`, and one that imports scikit-learn
for `predict`, measured in turns with ours. Compiled code is kept from an earlier run, as it is for a user.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LABELS = ("sport", "politics")
TEXTS = ("a late goal in the match", "the new law was passed")


def write_model(folder: Path) -> None:
    """A model of two leaves, and one document to place."""
    from himecat import Default, HiMeCat

    model = HiMeCat(method=Default(min_count=1, dimension=8), threads=1)
    model.fit(list(TEXTS) * 10, [LABELS[0], LABELS[1], *[None] * 18]).save(folder / "model")
    (folder / "one.jsonl").write_text(json.dumps({"text": TEXTS[0]}) + "\n")


def measure(command: list[str]) -> dict[str, float]:
    """CPU, wall and peak memory of one process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(said.decode())
    return {
        "wall_seconds": wall,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
    }


def run(short: bool = False) -> dict[str, Any]:
    """All figures; `short` runs each command once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Elsewhere: the peak memory of a new process starts at that of the process that made it.
        subprocess.run([sys.executable, __file__, "--write-model", str(folder)], check=True)
        output = folder / "placed.jsonl"
        commands = {
            "python -c 'import numpy'": ["-c", "import numpy"],
            "himecat --help": ["-m", "himecat", "--help"],
            "python -c 'import sklearn.base'": ["-c", "import sklearn.base"],
            "himecat predict": [
                *("-m", "himecat", "predict", str(folder / "model"), str(folder / "one.jsonl")),
                *("-o", str(output), "--quiet"),
            ],
        }
        runs: dict[str, list[dict[str, float]]] = {}
        # The first round fills the caches of the file system and of compiled code.
        for number in range(2 if short else 8):
            for what, command in commands.items():
                found = measure(command)
                if number:
                    runs.setdefault(what, []).append(found)
        placed = json.loads(output.read_text())
        assert placed["path"] == [LABELS[0]], placed
    best = {what: min(found, key=lambda one: one["wall_seconds"]) for what, found in runs.items()}
    numpy, ours_help, sklearn, ours_predict = (best[what]["cpu_seconds"] for what in commands)
    return {
        "best": best,
        "help_over_import_numpy": ours_help / numpy,
        "predict_over_import_sklearn": ours_predict / sklearn,
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="each command once, for correctness only")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--write-model", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write_model:
        write_model(options.write_model)
        return
    found = run(options.short)
    for what, one in found["best"].items():
        print(
            f"{what:32} {one['wall_seconds']:6.2f} s wall {one['cpu_seconds']:6.2f} CPU-s {one['peak_mb']:5.0f} MB"
        )
    print(
        f"himecat --help over import numpy: {found['help_over_import_numpy']:.2f} x CPU (wall at most 0.4 s)"
    )
    print(
        f"himecat predict over import sklearn: {found['predict_over_import_sklearn']:.2f} x CPU "
        "(wall at most 3 s)"
    )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
