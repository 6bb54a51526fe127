"""From files to placed documents: `himecat fit` and `himecat predict` beside TF-IDF with a linear SVM.

    python benchmarks/end_to_end.py --json end_to_end.json
    python benchmarks/end_to_end.py --himecat old/bin/himecat new/bin/himecat

Default settings, 2 threads, five labelled documents per leaf: the files that `fit` gets hold no other labels. Every
command is a process of its own, and its wall time, CPU-seconds and peak memory are those of the whole process:
imports, reading and writing are in them. Kernels are compiled by a first run that is listed apart. The peer is
`himecat.compare.systems.tfidf_svm`, which reads the same file and writes the same predictions. `predict` is then
watched on a long file of documents, beside scikit-learn's TfidfVectorizer and LinearSVC. With --himecat, installed
versions are measured beside each other, in turns.
"""

from __future__ import annotations

# What this process holds is counted as memory of those it starts, so it imports little; the rest is in the tasks.
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS, BATCH = 2, 4096
COSTS = ("wall_seconds", "cpu_seconds", "peak_mb")
PEER, STREAMING_PEER = "TF-IDF + LinearSVC", "TfidfVectorizer + LinearSVC"
Figures = dict[str, Any]
Program = Sequence[str]
CURRENT: Program = (sys.executable, "-m", "himecat")


@dataclass(frozen=True)
class Goal:
    """What a corpus may cost at most, and how often it is measured."""

    wall_seconds: float | None = None
    peak_mb: float | None = None
    rounds: int = 1
    # A run before, that compiles what is not compiled yet.
    warm_up: bool = False


GOALS = {
    "packages": Goal(wall_seconds=5, rounds=3, warm_up=True),
    "arxiv": Goal(wall_seconds=30, peak_mb=1000, rounds=2, warm_up=True),
    "arxiv-large": Goal(wall_seconds=180, peak_mb=3000),
}
DOCUMENTS_PER_SECOND = 10_000


class Pile:
    """A folder with documents of which few are labelled, as `fit` takes them."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.documents = self.folder / "documents.jsonl"
        self.tree = self.folder / "label_hier.txt"

    @property
    def metadata(self) -> list[str]:
        return list(json.loads((self.folder / "meta_dict.json").read_text())["metadata"])


# -- tasks, each in a process of its own ---------------------------------------------------------------


def prepare(dataset_folder: str, into: str, count: str) -> None:
    """Write the documents of a dataset folder with the labels of draw 0 alone: all, or `count` of them if not 0."""
    import random

    import orjson

    from himecat.input.dataset import open_dataset
    from himecat.input.formats import iter_records
    from himecat.input.problems import Problems

    dataset = open_dataset(dataset_folder)
    assert dataset.first_draw is not None, f"{dataset_folder} has no doc_id.txt"
    labelled = {row for rows in dataset.first_draw.values() for row in rows}
    chosen = None
    if int(count):
        n_documents = sum(1 for _ in iter_records(dataset.documents, Problems()))
        others = [row for row in range(n_documents) if row not in labelled]
        random.Random(0).shuffle(others)
        # The first of one order: what a small pile holds, a larger one holds too.
        chosen = labelled.union(others[: max(int(count) - len(labelled), 0)])
    pile = Pile(into)
    pile.folder.mkdir(parents=True, exist_ok=True)
    with open(pile.documents, "wb") as stream:
        for row, record in enumerate(iter_records(dataset.documents, Problems())):
            if chosen is None or row in chosen:
                fields = dict(record.fields or {})
                if row not in labelled:
                    del fields["labels"]
                stream.write(orjson.dumps(fields) + b"\n")
    for name in ("label_hier.txt", "meta_dict.json"):
        shutil.copyfile(dataset.folder / name, pile.folder / name)


def peer(folder: str, output: str) -> None:
    """Fit TF-IDF with a linear SVM and place all documents."""
    import orjson

    from himecat.compare.systems.system import Task
    from himecat.compare.systems.tfidf_svm import TfidfSvm
    from himecat.input.builder import load_corpus
    from himecat.input.documents import Fields
    from himecat.input.labels import supervise
    from himecat.input.problems import Problems
    from himecat.input.taxonomy.readers import read_taxonomy

    pile = Pile(folder)
    tree = read_taxonomy(pile.tree)
    # Peers get every word there is: leaving out rare ones costs them accuracy.
    loaded = load_corpus(
        pile.documents, Fields(metadata=tuple(pile.metadata)), min_count=1, max_tokens=None, threads=THREADS
    )
    labelled = supervise(tree, loaded.labels, loaded.places.__getitem__, Problems())
    leaves = TfidfSvm().fit_predict(Task(loaded.corpus, tree, labelled))
    with open(output, "wb") as stream:
        for name, leaf in zip(loaded.corpus.ids, leaves.tolist(), strict=True):
            stream.write(orjson.dumps({"id": name, "path": list(tree.path(leaf))}) + b"\n")


def repeat(folder: str, output: str, lines: str) -> None:
    """As many lines as wanted: the documents again and again, without labels, each with an id of its own."""
    import orjson

    written = 0
    with open(output, "wb") as stream:
        while written < int(lines):
            with open(Pile(folder).documents, "rb") as source:
                for line in source:
                    if written == int(lines):
                        break
                    fields = orjson.loads(line)
                    fields.pop("labels", None)
                    stream.write(orjson.dumps(fields | {"id": f"{written}-{fields['id']}"}) + b"\n")
                    written += 1


def peer_predict(folder: str, documents: str, output: str, lines: str) -> None:
    """Place documents with scikit-learn, batch by batch; only that is timed. Words come from the labelled ones."""
    from itertools import islice

    import orjson
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    with open(Pile(folder).documents, "rb") as stream:
        labelled = [fields for fields in map(orjson.loads, stream) if fields.get("labels")]
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(random_state=0))
    model.fit([one["text"] for one in labelled], ["/".join(one["labels"]) for one in labelled])
    wall, cpu, count = time.perf_counter(), time.process_time(), 0
    with open(documents, "rb") as source, open(output, "wb") as placed:
        source_lines = islice(source, int(lines))
        while batch := [orjson.loads(line) for line in islice(source_lines, BATCH)]:
            leaves = model.predict([one["text"] for one in batch])
            for one, leaf in zip(batch, leaves, strict=True):
                placed.write(orjson.dumps({"id": one["id"], "path": str(leaf).split("/")}) + b"\n")
            count += len(batch)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"lines": count, "wall_seconds": wall, "cpu_seconds": cpu}))


TASKS = {"prepare": prepare, "peer": peer, "repeat": repeat, "peer-predict": peer_predict}


# -- processes -----------------------------------------------------------------------------------------


def task(name: str, *arguments: object) -> list[str]:
    """The command of a task, for `measure` or `output_of`."""
    return [sys.executable, __file__, "--task", name, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Two threads for the peer's libraries too, however many cores there are."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return os.environ | dict.fromkeys(names, str(THREADS))


def output_of(command: Sequence[str]) -> str:
    """Run a command, and give what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def measure(command: Sequence[str], watch: Callable[[int, Any], None] | None = None) -> Figures:
    """Run a command in a process of its own, and give what it cost.

    `watch` gets the number of the process and what it writes to standard output.
    """
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE if watch else subprocess.DEVNULL,
            stderr=said,
            env=environment(),
        )
        if watch:
            with process.stdout as stream:  # type: ignore[union-attr]
                watch(process.pid, stream)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {said.read().decode()}")
    cpu = used.ru_utime + used.ru_stime
    return {"wall_seconds": wall, "cpu_seconds": cpu, "peak_mb": used.ru_maxrss / 1024}


def middle(runs: Sequence[Figures]) -> Figures:
    """The median of each cost."""
    return {cost: statistics.median(one[cost] for one in runs) for cost in COSTS}


def himecat(program: Program, *arguments: object) -> list[str]:
    """A command of ours, for `measure`."""
    return [*program, *map(str, arguments), "--threads", str(THREADS), "--quiet"]


def fit_and_predict(pile: Pile, model: Path, predictions: Path, program: Program = CURRENT) -> Figures:
    """What `himecat fit` and `himecat predict` on the same documents cost."""
    metadata = ["--metadata", ",".join(pile.metadata)] if pile.metadata else []
    fit = himecat(
        program, "fit", pile.documents, "--taxonomy", pile.tree, *metadata, "--overwrite", "-o", model
    )
    predict = himecat(program, "predict", model, pile.documents, "-o", predictions)
    parts = {"fit": measure(fit), "predict": measure(predict)}
    whole = {cost: parts["fit"][cost] + parts["predict"][cost] for cost in COSTS}
    # One process after the other.
    return whole | {"peak_mb": max(part["peak_mb"] for part in parts.values())} | parts


def count_lines(file: Path) -> int:
    """How many documents or predictions a file holds."""
    with open(file, "rb") as stream:
        return sum(1 for _ in stream)


def leaf_f1(predictions: Path, dataset: Path) -> float:
    """Leaf micro F1 of the documents that were not labelled."""
    command = [*CURRENT, "score", predictions, dataset, "--without-draw", "0", "--json", "-"]
    return float(json.loads(output_of([str(part) for part in command]))["leaf"]["micro"])


# -- the figures ---------------------------------------------------------------------------------------


def compare(
    pile: Pile, dataset: Path, goal: Goal, model: Path, others: Mapping[str, Program] | None = None
) -> Figures:
    """Ours, other versions of it and the peer on one corpus, in turns; the models are left in their folders."""
    peer_placed = pile.folder / "peer.jsonl"
    programs = {"ours": CURRENT, **(others or {})}
    files = {title: pile.folder / f"placed-{number}.jsonl" for number, title in enumerate(programs)}
    found: Figures = {}
    if goal.warm_up:
        first = {
            title: fit_and_predict(pile, model_of(model, title), files[title], program)
            for title, program in programs.items()
        }
        found["first_run"] = first["ours"]
    runs: dict[str, list[Figures]] = {title: [] for title in programs}
    peers = []
    for _ in range(goal.rounds):
        for title, program in programs.items():
            runs[title].append(fit_and_predict(pile, model_of(model, title), files[title], program))
        peers.append(measure(task("peer", pile.folder, peer_placed)))
    for title, own in runs.items():
        parts = {part: middle([one[part] for one in own]) for part in ("fit", "predict")}
        found[title] = middle(own) | parts | {"leaf_micro_f1": leaf_f1(files[title], dataset)}
    placed = files["ours"]
    found[PEER] = middle(peers) | {"leaf_micro_f1": leaf_f1(peer_placed, dataset)}
    found["ours_over_peer"] = {cost: found["ours"][cost] / found[PEER][cost] for cost in COSTS}
    found |= {"documents": count_lines(placed), "rounds": goal.rounds}
    found["at_most"] = {cost: most for cost in COSTS if (most := getattr(goal, cost, None)) is not None}
    return found


class MemoryByProgress:
    """Counts lines that a process writes and notes its memory after each tenth of them, where /proc tells it."""

    def __init__(self, lines: int) -> None:
        self.lines, self.done = lines, 0
        self.samples: list[dict[str, float]] = []

    def __call__(self, pid: int, stream: Any) -> None:
        while chunk := stream.read1(1 << 20):
            before = self.done * 10 // self.lines
            self.done += chunk.count(b"\n")
            if self.done * 10 // self.lines > before:
                with suppress(OSError, IndexError):
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    mb = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
                    # A process that has ended has none.
                    self.samples += [{"documents": self.done, "mb": mb}] if pages else []


def model_of(model: Path, title: str) -> Path:
    """Where the model of a version is; ours in the folder itself."""
    return model if title == "ours" else model.with_name(f"{model.name}-{title.replace(os.sep, '_')}")


def long_file(
    pile: Pile,
    model: Path,
    lines: int,
    folder: Path,
    starts: int,
    others: Mapping[str, Program] | None = None,
) -> Figures:
    """`himecat predict` on a long file; what one document costs, mostly loading, is taken off."""
    documents, one = folder / "lines.jsonl", folder / "one.jsonl"
    output_of(task("repeat", pile.folder, documents, lines))
    output_of(task("repeat", pile.folder, one, 1))
    watch = MemoryByProgress(lines)
    start = middle([measure(himecat(CURRENT, "predict", model, one, "-o", "-")) for _ in range(starts)])
    whole = measure(himecat(CURRENT, "predict", model, documents, "-o", "-"), watch)
    versions = {
        title: measure(himecat(program, "predict", model_of(model, title), documents, "-o", "-"))
        for title, program in (others or {}).items()
    }
    assert watch.done == lines, f"{lines} documents, {watch.done} predictions"
    few = task("peer-predict", pile.folder, documents, folder / "peer.jsonl", min(lines, 50_000))
    theirs = json.loads(output_of(few))
    found: Figures = {"lines": lines, "file_mb": documents.stat().st_size / 1e6, "model": pile.folder.name}
    found |= {"one_document": start, "ours": whole, STREAMING_PEER: theirs, "versions": versions}
    found["at_least"] = {"documents_per_wall_second": DOCUMENTS_PER_SECOND}
    for clock in ("wall", "cpu"):
        name = f"documents_per_{clock}_second"
        whole[name] = lines / max(whole[f"{clock}_seconds"] - start[f"{clock}_seconds"], 1e-3)
        theirs[name] = theirs["lines"] / theirs[f"{clock}_seconds"]
        found[f"{name}_over_peer"] = whole[name] / theirs[name]
    return found | {"resident_mb": watch.samples}


def run(
    short: bool = False,
    data: Path = DATA,
    corpora: Sequence[str] = tuple(GOALS),
    lines: int = 1_000_000,
    sample_size: int = 660,
    others: Mapping[str, Program] | None = None,
) -> Figures:
    """All figures; `short` takes the sample corpus and few lines, and its times say nothing."""
    if short:
        corpora, lines = ["sample"], min(lines, 2_000)
    found: Figures = {"threads": THREADS, "versions": list(others or {}), "corpora": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for corpus in corpora:
            pile, dataset = Pile(folder / corpus), data / corpus
            if short:
                dataset = pile.folder
                sample = "import sys, himecat.sample as s; s.write_sample(sys.argv[1], int(sys.argv[2]))"
                output_of([sys.executable, "-c", sample, str(pile.folder), str(sample_size)])
            else:
                output_of(task("prepare", dataset, pile.folder, 0))
            goal = GOALS.get(corpus, Goal())
            found["corpora"][corpus] = compare(pile, dataset, goal, folder / f"{corpus}-model", others)
        # The last is the largest, and its model the slowest to apply.
        if lines:
            found["predict"] = long_file(
                pile, folder / f"{corpus}-model", lines, folder, 1 if short else 3, others
            )
    return found


def show(found: Figures) -> None:
    """Print the figures."""

    def line(title: str, one: Figures, more: str = "") -> None:
        wall, cpu, peak = (one[cost] for cost in COSTS)
        print(f"  {title:28} {wall:8.2f} s {cpu:8.2f} CPU-s {peak:6.0f} MB{more}")

    for corpus, one in found["corpora"].items():
        limits = "".join(f", at most {most:,g} {cost}" for cost, most in one["at_most"].items())
        print(f"{corpus}: {one['documents']:,} documents{limits}")
        if "first_run" in one:
            line("first run", one["first_run"])
        line("himecat fit", one["ours"]["fit"])
        line("himecat predict", one["ours"]["predict"])
        for title in ("ours", *found["versions"], PEER):
            line(title, one[title], f"   leaf micro F1 {one[title]['leaf_micro_f1']:.4f}")
        line("ours over the peer (ratios)", one["ours_over_peer"])
    if one := found.get("predict"):
        print(
            f"predict, {one['lines']:,} lines, {one['file_mb']:,.0f} MB, at least {DOCUMENTS_PER_SECOND:,} per s"
        )
        line("ours", one["ours"])
        for title, costs in one["versions"].items():
            line(title, costs)
        for title in ("ours", STREAMING_PEER):
            rate, cpu_rate = (one[title][f"documents_per_{clock}_second"] for clock in ("wall", "cpu"))
            print(f"  {title:28} {rate:8,.0f} documents/s {cpu_rate:8,.0f} per CPU-s")
        print(f"  ours over the peer: {one['documents_per_wall_second_over_peer']:.2f} x")
        print("  memory:", ", ".join(f"{at['documents']:,}: {at['mb']:.0f} MB" for at in one["resident_mb"]))


def main(given: Sequence[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="the sample corpus, for correctness only")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds the dataset folders")
    parser.add_argument("--corpora", nargs="+", default=list(GOALS), help="names of dataset folders")
    parser.add_argument("--lines", type=int, default=1_000_000, help="length of the long file; 0 for none")
    parser.add_argument(
        "--himecat", nargs="+", default=[], metavar="PATH", help="other versions to measure too"
    )
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.task:
        TASKS[options.task[0]](*options.task[1:])
        return
    absent = [name for name in options.corpora if not (options.data / name).is_dir()]
    if absent and not options.short:
        parser.error(f"there is no folder {options.data / absent[0]}; name the data with --data")
    # A version that is named must not import this one.
    others = {path: ["env", "-u", "PYTHONPATH", path] for path in options.himecat}
    found = run(options.short, options.data, options.corpora, options.lines, others=others)
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
