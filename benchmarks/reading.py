"""Reading: MB of text a second from a file to word ids, and the tokenizer beside scikit-learn's CountVectorizer.

    python benchmarks/reading.py --json reading.json

Every measurement runs in a process of its own, the two sides of a ratio in turns. Compiled code is loaded before
the clock starts. A MB is a million bytes of the text field as UTF-8; what else the file holds is read but not
counted. The figures of the tokenizer are CPU-seconds, those of reading wall time on all cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "arxiv-large" / "corpus.parquet"
# As close to our words as one pattern comes; a plain \w\w+ is no faster.
WORDS = r"[a-z0-9]+(?:-[a-z0-9]+){0,3}"


def records(limit: int | None) -> Iterator[dict[str, Any]]:
    """Documents of arxiv-large, or drawn ones where it is absent."""
    if DATA.exists():
        from himecat.input.formats import iter_records
        from himecat.input.problems import Problems

        for number, record in enumerate(iter_records(DATA, Problems())):
            if number == limit:
                return
            yield dict(record.fields or {})
        return
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("aeioustrnlé-"), size)) for size in rng.integers(2, 12, 20_000)]
    for number in range(limit or 20_000):
        chosen = rng.zipf(1.3, 150) % len(words)
        yield {"id": str(number), "text": " ".join(words[word] for word in chosen), "labels": ["a"]}


def write_corpora(folder: Path, limit: int | None) -> None:
    """The same documents as JSON lines and as Parquet."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    writer = None
    batch: list[dict[str, Any]] = []

    def flush() -> None:
        nonlocal writer
        table = pyarrow.Table.from_pylist(batch)
        writer = writer or ParquetWriter(folder / "corpus.parquet", table.schema)
        writer.write_table(table)
        batch.clear()

    with open(folder / "corpus.jsonl", "w", encoding="utf-8") as lines:
        for record in records(limit):
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
            batch.append(record)
            if len(batch) == 10_000:
                flush()
    if batch:
        flush()
    assert writer is not None
    writer.close()


def texts_of(folder: Path) -> list[str]:
    """All texts, for the two tokenizers."""
    from pyarrow.parquet import read_table

    return list(read_table(folder / "corpus.parquet", columns=["text"])["text"].to_pylist())


def _ours(texts: list[str]) -> Callable[[], int]:
    from himecat.input.token_ids import TokenRows, WordIds
    from himecat.input.vocabulary import ranked

    def work() -> int:
        ids = WordIds(grows=True)
        with TokenRows(ids, None, threads=1) as rows:
            rows.extend(texts)
            tokens = rows.finish()
        vocabulary, _ = ranked(ids.names(), tokens)
        return len(vocabulary)

    return work


def _count_vectorizer(texts: list[str]) -> Callable[[], int]:
    from sklearn.feature_extraction.text import CountVectorizer

    def work() -> int:
        vectorizer = CountVectorizer(token_pattern=WORDS)
        vectorizer.fit_transform(texts)
        return len(vectorizer.vocabulary_)

    return work


def peak_mb() -> float:
    """Peak memory; not `ru_maxrss` where there is better, because that starts at the peak of the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_here(what: str, folder: Path) -> dict[str, Any]:
    """One measurement, in this process."""
    from himecat.input.builder import read_corpus
    from himecat.input.token_ids import WordIds

    WordIds(compile_from=0).rows(["a"])
    if what in ("jsonl", "parquet"):
        path = folder / f"corpus.{what}"
        read_corpus(["a"])

        def work() -> int:
            return len(read_corpus(path).words)

    else:
        work = {"ours": _ours, "CountVectorizer": _count_vectorizer}[what](texts_of(folder))
    wall, cpu = time.perf_counter(), time.process_time()
    n_words = work()
    return {
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "peak_mb": peak_mb(),
        "words": n_words,
    }


def measure(what: str, folder: Path) -> dict[str, Any]:
    """One measurement, in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(folder: Path) -> None:
    """Both files give the same corpus, and its words are those of the plain tokenizer."""
    from himecat.input.builder import read_corpus
    from himecat.input.unicode_words import tokenize

    corpora = [read_corpus(folder / f"corpus.{kind}") for kind in ("jsonl", "parquet")]
    first, second = corpora
    assert first.words.names == second.words.names
    assert np.array_equal(first.tokens.values, second.tokens.values)
    texts = texts_of(folder)
    for row in range(0, len(texts), max(1, len(texts) // 2000)):
        found = [first.words.names[word] for word in first.tokens[row]]
        assert found == tokenize(texts[row])[:300], f"row {row}"


def run(short: bool = False) -> dict[str, Any]:
    """All figures; `short` looks at correctness on few documents."""
    limit, rounds = (3_000, 1) if short else (None, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpora(folder, limit)
        check(folder)
        megabytes = sum(len(text.encode()) for text in texts_of(folder)) / 1e6
        runs: dict[str, list[dict[str, Any]]] = {}
        for _ in range(rounds):
            for what in ("ours", "CountVectorizer", "jsonl", "parquet"):
                runs.setdefault(what, []).append(measure(what, folder))
    best = {what: min(found, key=lambda one: one["cpu_seconds"]) for what, found in runs.items()}
    ratios = [
        peer["cpu_seconds"] / ours["cpu_seconds"]
        for ours, peer in zip(runs["ours"], runs["CountVectorizer"], strict=True)
    ]
    return {
        "megabytes": megabytes,
        "corpus": "arxiv-large" if DATA.exists() else "drawn texts",
        "tokenizer_over_count_vectorizer": statistics.median(ratios),
        "wall_mb_per_second": {
            kind: megabytes / min(one["wall_seconds"] for one in runs[kind]) for kind in ("jsonl", "parquet")
        },
        "cpu_mb_per_second": {what: megabytes / one["cpu_seconds"] for what, one in best.items()},
        "best": best,
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="few documents, for correctness only")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure_here(options.measure, options.folder)))
        return
    found = run(options.short)
    print(f"{found['megabytes']:.1f} MB of text, {found['corpus']}")
    for what, one in found["best"].items():
        print(
            f"{what:16} {one['cpu_seconds']:7.2f} CPU-s {one['wall_seconds']:7.2f} s wall "
            f"{one['peak_mb']:6.0f} MB {found['cpu_mb_per_second'][what]:6.1f} MB per CPU-s"
        )
    print(
        f"tokenizer over CountVectorizer: {found['tokenizer_over_count_vectorizer']:.2f} x (CPU, at least 3)"
    )
    for kind, rate in found["wall_mb_per_second"].items():
        print(f"{kind}: {rate:.1f} MB/s wall (at least 50)")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
