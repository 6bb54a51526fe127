"""The sampled joint space against gensim's Doc2Vec (DBOW), in pairs per CPU-second, and what bounds it.

    python benchmarks/embedding.py --json embedding.json

A pair is a positive pair with its 5 negatives, p = 100, on both sides: a word and its document in Doc2Vec; in
ours either the same (`words`), or pairs of all relations (`all relations`), of which more are in place soon and
need no step. Every measurement is a process of its own, the two sides take turns, and the median counts.
Reading the corpus, counting words and compiling are not part of it; everything else is. Doc2Vec is
`pip install gensim`; without it only our side is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import resource
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numba import njit

from himecat.classifier.protocol import Round
from himecat.input.builder import load_corpus, read_corpus
from himecat.input.corpus import Supervision
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.kernels.simd import WIDTH, address_of, broadcast, load, store, sum_lanes
from himecat.methods import Paper
from himecat.paper.pairs import Relations, relate
from himecat.paper.sampled_space import LANE, learn_vectors, pairs_per_pass
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DIMENSION, NEGATIVES, BLOCK = 100, 5, 1500
SIDES = ("gensim Doc2Vec", "words", "all relations")
Figures = dict[str, Any]


# -- the two sides -------------------------------------------------------------------------------------


@cache
def relations_of(corpus: str) -> tuple[Relations, Relations]:
    """The pairs of words and documents alone, and those of all relations."""
    if corpus == "sample":
        documents, tree = sample_documents(400), sample_taxonomy()
        nodes = {row: tree.find(path) for row, path in enumerate(sample_split(documents, per_leaf=3)) if path}
        columns = read_corpus(documents, metadata=METADATA)
        labelled = Supervision(np.array(list(nodes)), np.array(list(nodes.values())))
    else:
        dataset = open_dataset(DATA / corpus)
        loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=10)
        columns, tree = loaded.corpus, dataset.taxonomy
        labelled = draw(dataset, true_nodes(dataset, loaded), 0)
    none = Supervision(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return relate(columns, tree, none, hierarchy=False, metadata=[]), relate(columns, tree, labelled)


def train_doc2vec(relations: Relations, passes: int, threads: int) -> Figures:
    """Train Doc2Vec on the words."""
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    words = relations.pairs[-1]
    names = [str(word) for word in range(relations.n_anchors)]
    bounds = zip(words.offsets[:-1], words.offsets[1:], strict=True)
    documents = [
        TaggedDocument([names[word] for word in words.values[start:end].tolist()], [row])
        for row, (start, end) in enumerate(bounds)
    ]
    model = Doc2Vec(
        dm=0, vector_size=DIMENSION, negative=NEGATIVES, hs=0, sample=0, min_count=1, workers=threads, seed=1
    )
    model.build_vocab(documents)
    began, cpu = time.perf_counter(), time.process_time()
    model.train(documents, total_examples=model.corpus_count, epochs=passes)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - began
    return {"pairs": passes * len(words.values), "cpu": cpu, "wall": wall}


class Busiest:
    """CPU-seconds of the busiest worker in each round, and of all workers; each round has workers of its own."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self.longest, self.all = 0.0, 0.0

    def advance(self, _: int) -> None:
        self.seconds[threading.get_ident()] = time.thread_time()

    def end_round(self, _: Round) -> None:
        self.longest += max(self.seconds.values())
        self.all += sum(self.seconds.values())
        self.seconds = {}


def train_ours(relations: Relations, passes: int, threads: int) -> Figures:
    """Train our vectors with the paper's step size."""
    # Machine code is read from the cache here, so that it is not part of the measurement.
    learn_vectors(relations_of("sample")[1], Paper(dimension=DIMENSION, samples=1), threads=threads)
    busiest = Busiest()
    began, cpu = time.perf_counter(), time.process_time()
    found = learn_vectors(
        relations,
        Paper(
            dimension=DIMENSION,
            samples=passes * pairs_per_pass(relations),
            negatives=NEGATIVES,
            rate=0.04,
        ),
        block_documents=BLOCK,
        threads=threads,
        advance=busiest.advance,
        report=busiest.end_round,
    )
    cpu, wall = time.process_time() - cpu, time.perf_counter() - began
    checksum = f"{found.anchors.sum(dtype=np.float64):.17g} {found.documents.sum(dtype=np.float64):.17g}"
    return {
        "pairs": sum(done.pairs for done in found.rounds),
        "cpu": cpu,
        "wall": wall,
        "checksum": checksum,
        # As long as it takes at least: what no worker was seen to do is counted as done by one alone.
        "critical": busiest.longest + cpu - busiest.all,
    }


def measure(side: str, corpus: str, passes: int, threads: int) -> Figures:
    words, everything = relations_of(corpus)
    if side == "gensim Doc2Vec":
        figures = train_doc2vec(words, passes, threads)
    else:
        figures = train_ours(words if side == "words" else everything, passes, threads)
    return figures | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_own_process(side: str, corpus: str, passes: int, threads: int) -> Figures:
    relations_of(corpus)
    # Forked, so that the corpus is read once.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(measure, side, corpus, passes, threads).result()


# -- what the machine does -----------------------------------------------------------------------------


@njit
def _multiply_and_add(n):
    factor, plus = broadcast(np.float32(0.999)), broadcast(np.float32(0.001))
    a, b, c, d, e = plus, factor, plus, factor, plus
    f, g, h, i, j = plus, factor, plus, factor, plus
    for _ in range(n):
        a, b, c, d, e = (
            a * factor + plus,
            b * factor + plus,
            c * factor + plus,
            d * factor + plus,
            e * factor + plus,
        )
        f, g, h, i, j = (
            f * factor + plus,
            g * factor + plus,
            h * factor + plus,
            i * factor + plus,
            j * factor + plus,
        )
    return sum_lanes(a + b + c + d + e + f + g + h + i + j)


@njit
def _touch(rows, order, size, factor):
    start = address_of(rows)
    factor = broadcast(factor)
    for row in order:
        for k in range(0, size, 4 * WIDTH):
            place = start + row * size + k
            store(place, load(place) * factor)


def best_cpu(job: Any, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        job()
        times.append(time.process_time() - began)
    return min(times)


def roofline(n_anchors: int, short: bool) -> Figures:
    """The work of a pair, and how long the machine needs for as much at least."""
    padded = -(-DIMENSION // LANE) * LANE
    size = 4 * padded
    _multiply_and_add(1)
    n = 10_000 if short else 5_000_000
    peak = n * 10 * WIDTH * 2 / best_cpu(lambda: _multiply_and_add(n))
    rng = np.random.default_rng(0)
    row_seconds, bandwidth = {}, {}
    # Not 1: a product with 1 is left out, and then the whole loop.
    factor = np.float32(0.999)
    for name, n_rows in (("document", BLOCK), ("anchor", n_anchors)):
        rows = np.ones((n_rows, padded), dtype=np.float32)
        order = rng.integers(n_rows, size=1_000 if short else 500_000)
        _touch(rows, order[:1], size, factor)
        row_seconds[name] = best_cpu(lambda rows=rows, order=order: _touch(rows, order, size, factor)) / len(
            order
        )
        bandwidth[name] = 2 * size / row_seconds[name]
    # Two products with each of 6 rows; then, if anything is out of place, 6 rows move by 3 operations each, the
    # anchor by 13, and it is measured (2) and scaled (1).
    flops = (6 * 4 + 6 * 3 + 13 + 3) * padded
    return {
        "flops_per_pair": flops,
        "bytes_per_pair": 2 * 7 * size,
        "bytes_per_pair_beyond_the_block": 2 * size,
        "peak_gflops": peak / 1e9,
        "gbytes_per_second_in_a_block": bandwidth["document"] / 1e9,
        "gbytes_per_second_among_anchors": bandwidth["anchor"] / 1e9,
        "arithmetic_ns": flops / peak * 1e9,
        "memory_ns": (6 * row_seconds["document"] + row_seconds["anchor"]) * 1e9,
    }


# -- the figures ---------------------------------------------------------------------------------------


def run(short: bool = False, repeats: int = 3) -> Figures:
    """Measure both sides and the machine; with `short`, check on a small corpus that everything works."""
    corpus, passes, repeats = ("sample", 2, 1) if short else ("arxiv", 3, repeats)
    has_peer = importlib.util.find_spec("gensim") is not None
    sides = SIDES if has_peer else SIDES[1:]
    found: dict[tuple[str, int], list[Figures]] = {}
    for _ in range(repeats):
        for threads in (1, 2):
            for side in sides:
                found.setdefault((side, threads), []).append(in_own_process(side, corpus, passes, threads))
    rows = []
    for (side, threads), runs in found.items():
        rows.append(
            {
                "side": side,
                "threads": threads,
                "pairs": runs[0]["pairs"],
                "cpu_seconds": median(one["cpu"] for one in runs),
                "wall_seconds": median(one["wall"] for one in runs),
                "pairs_per_cpu_second": median(one["pairs"] / one["cpu"] for one in runs),
                "pairs_per_second": median(one["pairs"] / one["wall"] for one in runs),
                "peak_mb": max(one["peak_mb"] for one in runs),
            }
        )
    rates = {(row["side"], row["threads"]): row for row in rows}
    ratios = {}
    for side in SIDES[1:]:
        results = {one["checksum"] for threads in (1, 2) for one in found[side, threads]}
        if len(results) != 1:
            raise AssertionError(f"{side}: the result depends on the number of threads.")
        single, double = rates[side, 1], rates[side, 2]
        ratios[side] = {
            "1 to 2 threads, wall": double["pairs_per_second"] / single["pairs_per_second"],
            # Says more than the wall where other programs run: how much longer one thread works than the
            # busiest of two.
            "1 to 2 threads, by CPU-seconds of the busiest": median(one["cpu"] for one in found[side, 1])
            / median(one["critical"] for one in found[side, 2]),
        }
        for threads in (1, 2) if has_peer else ():
            ratios[side][f"times Doc2Vec per CPU-second, {threads} threads"] = (
                rates[side, threads]["pairs_per_cpu_second"]
                / rates[SIDES[0], threads]["pairs_per_cpu_second"]
            )
    bound = roofline(relations_of(corpus)[1].n_anchors, short)
    return {"corpus": corpus, "passes": passes, "rows": rows, "ratios": ratios, "roofline": bound}


def show(found: Figures) -> None:
    print(f"{found['corpus']}, {found['passes']} passes, p = {DIMENSION}, {NEGATIVES} negatives")
    for row in found["rows"]:
        print(
            f"  {row['side']:<16} {row['threads']} threads: "
            f"{row['pairs_per_cpu_second'] / 1e6:6.2f} M pairs per CPU-s, "
            f"{row['pairs_per_second'] / 1e6:6.2f} per s; {row['cpu_seconds']:.1f} CPU-s, "
            f"{row['wall_seconds']:.1f} s, {row['peak_mb']:.0f} MB"
        )
    for side, ratios in found["ratios"].items():
        for name, ratio in ratios.items():
            print(f"  {side}: {name}: {ratio:.2f}")
    bound = found["roofline"]
    for side in SIDES[1:]:
        rate = next(row["pairs_per_cpu_second"] for row in found["rows"] if row["side"] == side)
        print(f"  {side}: {1e9 / rate:.0f} ns for a pair")
    print(
        f"  A pair that moves: {bound['flops_per_pair']} flops, {bound['arithmetic_ns']:.0f} ns at the "
        f"{bound['peak_gflops']:.0f} Gflop/s of a core; {bound['bytes_per_pair']} bytes read or written, of which "
        f"{bound['bytes_per_pair_beyond_the_block']} outside of the block, {bound['memory_ns']:.0f} ns at "
        f"{bound['gbytes_per_second_in_a_block']:.0f} GB/s in the block and "
        f"{bound['gbytes_per_second_among_anchors']:.0f} GB/s outside of it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="check on a small corpus; the times say nothing")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each row")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    found = run(arguments.short, arguments.repeats)
    show(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
