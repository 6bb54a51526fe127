"""From files to placed documents: `himecat fit` and `himecat predict` beside TF-IDF with a linear SVM.

    python benchmarks/end_to_end.py --json end_to_end.json

Default settings, 2 threads, five labelled documents per leaf: the files that `fit` gets hold no other labels. Every
command is a process of its own, and its wall time, CPU-seconds and peak memory are those of the whole process:
imports, reading and writing are in them. Kernels are compiled by a first run that is told apart. The peer is
`himecat.baselines.tfidf_svm`, which reads the same file and writes the same kind of predictions. `predict` is then
watched on a long file of documents, beside scikit-learn's TfidfVectorizer and LinearSVC.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS = 2
COSTS = ("wall_seconds", "cpu_seconds", "peak_mb")
BATCH = 4096
Figures = dict[str, Any]


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


@dataclass(frozen=True)
class Pile:
    """Documents of which few are labelled, as `fit` takes them."""

    folder: Path

    @property
    def documents(self) -> Path:
        return self.folder / "documents.jsonl"

    @property
    def tree(self) -> Path:
        return self.folder / "label_hier.txt"

    @property
    def metadata(self) -> list[str]:
        return list(json.loads((self.folder / "meta_dict.json").read_text())["metadata"])


# -- tasks, each in a process of its own ---------------------------------------------------------------


def prepare(dataset_folder: Path, folder: Path, count: int = 0) -> None:
    """Write the documents of a dataset folder with the labels of draw 0 alone; with `count`, only so many."""
    import random

    import orjson

    from himecat.corpus.dataset import open_dataset
    from himecat.corpus.problems import Problems
    from himecat.corpus.records import iter_records

    dataset = open_dataset(dataset_folder)
    assert dataset.first_draw is not None, f"{dataset_folder} has no doc_id.txt"
    labelled = {row for rows in dataset.first_draw.values() for row in rows}
    chosen = None
    if count:
        with_others = sum(1 for _ in iter_records(dataset.documents, Problems()))
        others = [row for row in range(with_others) if row not in labelled]
        random.Random(0).shuffle(others)
        # The first of one order: what a small pile holds, a larger one holds too.
        chosen = labelled.union(others[: max(count - len(labelled), 0)])
    folder.mkdir(parents=True, exist_ok=True)
    pile = Pile(folder)
    with open(pile.documents, "wb") as stream:
        for row, record in enumerate(iter_records(dataset.documents, Problems())):
            if chosen is None or row in chosen:
                fields = dict(record.fields or {})
                if row not in labelled:
                    del fields["labels"]
                stream.write(orjson.dumps(fields) + b"\n")
    for name in ("label_hier.txt", "meta_dict.json"):
        shutil.copyfile(dataset.folder / name, folder / name)


def prepare_sample(folder: Path, count: int) -> None:
    """The sample corpus, as a dataset folder that is a pile too."""
    from himecat.samples import write_sample

    write_sample(folder, n_documents=count)


def peer(folder: Path, output: Path) -> None:
    """Fit TF-IDF with a linear SVM and place all documents."""
    import orjson

    from himecat.baselines import tfidf_svm
    from himecat.corpus.builder import load_corpus
    from himecat.corpus.documents import Fields
    from himecat.corpus.labels import supervise
    from himecat.corpus.problems import Problems
    from himecat.corpus.taxonomy_readers import read_taxonomy

    pile = Pile(folder)
    tree = read_taxonomy(pile.tree)
    # Peers get every word there is: leaving out rare ones costs them accuracy.
    loaded = load_corpus(
        pile.documents, Fields(metadata=tuple(pile.metadata)), min_count=1, max_tokens=None, threads=THREADS
    )
    labelled = supervise(tree, loaded.labels, loaded.places.__getitem__, Problems())
    leaves = tfidf_svm(loaded.corpus, labelled, tree)
    with open(output, "wb") as stream:
        for name, leaf in zip(loaded.corpus.ids, leaves.tolist(), strict=True):
            stream.write(orjson.dumps({"id": name, "path": list(tree.path(leaf))}) + b"\n")


def repeat(folder: Path, output: Path, lines: int) -> None:
    """As many lines as wanted: the documents again and again, without labels, each with an id of its own."""
    import orjson

    written = 0
    with open(output, "wb") as stream:
        while written < lines:
            with open(Pile(folder).documents, "rb") as source:
                for line in source:
                    if written == lines:
                        break
                    fields = orjson.loads(line)
                    fields.pop("labels", None)
                    stream.write(orjson.dumps(fields | {"id": f"{written}-{fields['id']}"}) + b"\n")
                    written += 1


def peer_predict(folder: Path, documents: Path, output: Path, lines: int) -> None:
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
        source_lines = islice(source, lines)
        while batch := [orjson.loads(line) for line in islice(source_lines, BATCH)]:
            leaves = model.predict([one["text"] for one in batch])
            for one, leaf in zip(batch, leaves, strict=True):
                placed.write(orjson.dumps({"id": one["id"], "path": str(leaf).split("/")}) + b"\n")
            count += len(batch)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"lines": count, "wall_seconds": wall, "cpu_seconds": cpu}))


TASKS: dict[str, Callable[..., None]] = {
    "prepare": lambda dataset, folder, count: prepare(Path(dataset), Path(folder), int(count)),
    "prepare-sample": lambda folder, count: prepare_sample(Path(folder), int(count)),
    "peer": lambda folder, output: peer(Path(folder), Path(output)),
    "repeat": lambda folder, output, lines: repeat(Path(folder), Path(output), int(lines)),
    "peer-predict": lambda folder, documents, output, lines: peer_predict(
        Path(folder), Path(documents), Path(output), int(lines)
    ),
}


# -- processes -----------------------------------------------------------------------------------------


def task(name: str, *arguments: object) -> list[str]:
    """The command of a task, for `measure` or `told`."""
    return [__file__, "--task", name, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Two threads for the peer's libraries too, however many cores there are."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return os.environ | dict.fromkeys(names, str(THREADS))


def told(command: Sequence[str]) -> str:
    """Run Python with these arguments, and give what it prints."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def measure(command: Sequence[str], watch: Callable[[int, Any], None] | None = None) -> Figures:
    """Run Python with these arguments in a process of its own, and give what it cost.

    `watch` gets the number of the process and what it writes to standard output.
    """
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command],
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
    return {
        "wall_seconds": wall,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
    }


def together(parts: Sequence[Figures]) -> Figures:
    """The cost of one process after another."""
    return {cost: (max if cost == "peak_mb" else sum)(part[cost] for part in parts) for cost in COSTS}


def middle(runs: Sequence[Figures]) -> Figures:
    """The median of each cost."""
    return {cost: statistics.median(one[cost] for one in runs) for cost in COSTS}


def fit_and_predict(pile: Pile, model: Path, predictions: Path) -> Figures:
    """What `himecat fit` and `himecat predict` on the same documents cost."""
    metadata = ["--metadata", ",".join(pile.metadata)] if pile.metadata else []
    fit = ["-m", "himecat", "fit", str(pile.documents), "--taxonomy", str(pile.tree), *metadata,
           "--threads", str(THREADS), "--overwrite", "--quiet", "-o", str(model)]  # fmt: skip
    predict = ["-m", "himecat", "predict", str(model), str(pile.documents),
               "--threads", str(THREADS), "--quiet", "-o", str(predictions)]  # fmt: skip
    parts = {"fit": measure(fit), "predict": measure(predict)}
    return together(list(parts.values())) | parts


def leaf_f1(predictions: Path, dataset: Path) -> float:
    """Leaf micro F1 of the documents that were not labelled."""
    command = ["-m", "himecat", "score", str(predictions), str(dataset), "--without-draw", "0", "--json", "-"]
    return float(json.loads(told(command))["leaf"]["micro"])


# -- the figures ---------------------------------------------------------------------------------------


def compare(pile: Pile, dataset: Path, goal: Goal, model: Path) -> Figures:
    """Ours and the peer on one corpus, in turns; the model is left in its folder."""
    placed, peer_placed = pile.folder / "placed.jsonl", pile.folder / "peer.jsonl"
    found: Figures = {}
    if goal.warm_up:
        found["first_run"] = fit_and_predict(pile, model, placed)
    ours, peers = [], []
    for _ in range(goal.rounds):
        ours.append(fit_and_predict(pile, model, placed))
        peers.append(measure(task("peer", pile.folder, peer_placed)))
    parts = {part: middle([one[part] for one in ours]) for part in ("fit", "predict")}
    found["ours"] = middle(ours) | parts | {"leaf_micro_f1": leaf_f1(placed, dataset)}
    found["TF-IDF + LinearSVC"] = middle(peers) | {"leaf_micro_f1": leaf_f1(peer_placed, dataset)}
    found["ours_over_peer"] = {
        cost: found["ours"][cost] / found["TF-IDF + LinearSVC"][cost] for cost in COSTS
    }
    with open(placed, "rb") as stream:
        found["documents"] = sum(1 for _ in stream)
    found["rounds"] = goal.rounds
    found["at_most"] = {cost: most for cost in COSTS if (most := getattr(goal, cost, None)) is not None}
    return found


class MemoryByProgress:
    """Counts lines that a process writes and notes its memory after each tenth of them."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.done = 0
        self.samples: list[tuple[int, float]] = []

    def __call__(self, pid: int, stream: Any) -> None:
        while chunk := stream.read1(1 << 20):
            before = self.done * 10 // self.lines
            self.done += chunk.count(b"\n")
            if self.done * 10 // self.lines > before and (now := resident_mb(pid)):
                self.samples.append((self.done, now))


def resident_mb(pid: int) -> float:
    """Memory of a running process; 0 where it is not told."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def long_file(pile: Pile, model: Path, lines: int, folder: Path) -> Figures:
    """`himecat predict` on a long file; what one document costs, mostly loading, is taken off."""
    documents, one = folder / "lines.jsonl", folder / "one.jsonl"
    told(task("repeat", pile.folder, documents, lines))
    told(task("repeat", pile.folder, one, 1))
    watch = MemoryByProgress(lines)

    def command(source: Path) -> list[str]:
        return ["-m", "himecat", "predict", str(model), str(source),
                "--threads", str(THREADS), "--quiet", "-o", "-"]  # fmt: skip

    start = middle([measure(command(one)) for _ in range(2)])
    whole = measure(command(documents), watch)
    assert watch.done == lines, f"{lines} documents, {watch.done} predictions"
    few = min(lines, 50_000)
    theirs = json.loads(told(task("peer-predict", pile.folder, documents, folder / "peer.jsonl", few)))
    found: Figures = {"lines": lines, "file_mb": documents.stat().st_size / 1e6, "one_document": start}
    found["ours"] = dict(whole)
    found["TfidfVectorizer + LinearSVC"] = theirs
    for clock in ("wall", "cpu"):
        name = f"documents_per_{clock}_second"
        found["ours"][name] = lines / max(whole[f"{clock}_seconds"] - start[f"{clock}_seconds"], 1e-3)
        theirs[name] = theirs["lines"] / theirs[f"{clock}_seconds"]
        found[f"{name}_over_peer"] = found["ours"][name] / theirs[name]
    found["resident_mb"] = [{"documents": done, "mb": mb} for done, mb in watch.samples]
    if watch.samples:
        found["memory_end_over_first_tenth"] = watch.samples[-1][1] / watch.samples[0][1]
    documents.unlink()
    return found


def run(
    short: bool = False,
    data: Path = DATA,
    corpora: Sequence[str] = tuple(GOALS),
    lines: int = 1_000_000,
    sample_size: int = 660,
) -> Figures:
    """All figures; `short` takes the sample corpus and few lines, and its times say nothing."""
    if short:
        corpora, lines = ["sample"], min(lines, 2_000)
    found: Figures = {"threads": THREADS, "corpora": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for corpus in corpora:
            pile, dataset = Pile(folder / corpus), data / corpus
            if short:
                dataset = pile.folder
                told(task("prepare-sample", pile.folder, sample_size))
            else:
                told(task("prepare", dataset, pile.folder, 0))
            goal = GOALS.get(corpus, Goal())
            found["corpora"][corpus] = compare(pile, dataset, goal, folder / f"{corpus}-model")
        # The last is the largest, and its model the slowest to apply.
        if lines:
            found["predict"] = long_file(pile, folder / f"{corpus}-model", lines, folder)
            found["predict"]["model"] = corpus
            found["predict"]["at_least"] = {"documents_per_wall_second": DOCUMENTS_PER_SECOND}
    return found


def _line(name: str, one: Figures) -> str:
    return (
        f"  {name:28} {one['wall_seconds']:8.2f} s {one['cpu_seconds']:8.2f} CPU-s {one['peak_mb']:6.0f} MB"
    )


def show(found: Figures) -> None:
    """Print the figures."""
    for corpus, one in found["corpora"].items():
        print(
            f"{corpus}: {one['documents']:,} documents, {found['threads']} threads, median of {one['rounds']}"
        )
        if "first_run" in one:
            print(_line("first run", one["first_run"]))
        for title, row in (("himecat fit", one["ours"]["fit"]), ("himecat predict", one["ours"]["predict"])):
            print(_line(title, row))
        for title in ("ours", "TF-IDF + LinearSVC"):
            print(_line(title, one[title]) + f"   leaf micro F1 {one[title]['leaf_micro_f1']:.4f}")
        ratio = one["ours_over_peer"]
        most = "".join(f", at most {limit:,g} {cost}" for cost, limit in one["at_most"].items())
        print(
            f"  ours over the peer: {ratio['wall_seconds']:.2f} x wall, {ratio['cpu_seconds']:.2f} x CPU, "
            f"{ratio['peak_mb']:.2f} x memory{most}"
        )
    if "predict" in found:
        one = found["predict"]
        print(f"himecat predict, {one['lines']:,} lines, {one['file_mb']:,.0f} MB, model of {one['model']}")
        print(_line("ours", one["ours"]))
        for title in ("ours", "TfidfVectorizer + LinearSVC"):
            rate, cpu_rate = (one[title][f"documents_per_{clock}_second"] for clock in ("wall", "cpu"))
            print(f"  {title:28} {rate:8,.0f} documents/s {cpu_rate:8,.0f} per CPU-s")
        print(
            f"  ours over the peer: {one['documents_per_wall_second_over_peer']:.2f} x wall, "
            f"{one['documents_per_cpu_second_over_peer']:.2f} x CPU, at least {DOCUMENTS_PER_SECOND:,} documents/s"
        )
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
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.task:
        TASKS[options.task[0]](*options.task[1:])
        return
    absent = [name for name in options.corpora if not (options.data / name).is_dir()]
    if absent and not options.short:
        parser.error(f"there is no folder {options.data / absent[0]}; name the data with --data")
    found = run(options.short, options.data, options.corpora, options.lines)
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
