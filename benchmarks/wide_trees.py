"""Wide trees: what a document costs, and how well it is placed, with 100, 1,000 and 10,000 leaves.

    python benchmarks/wide_trees.py --json wide.json
    python benchmarks/wide_trees.py --corpora arxiv questions     # real trees, cut into stages all the same

No corpus has 10,000 leaves, so the documents are made up: an uneven random tree of depth 8, in which every node has
words that are frequent in its documents and shared with other nodes. A document has words of all nodes on its path and
of no node at all, and authors who mostly write about one part of the tree. `--documents 0` takes as many documents per
leaf in every tree (`--per-leaf`), otherwise every tree gets the same number. Fit and prediction are processes of their
own; figures are per document, ratios to the smallest tree. Character n-grams are left out: only piles of few or short
documents have them, and here that would be the smaller trees. Up to `--flat` leaves the tree is also fitted as a whole,
for comparison.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
DEPTH, LABELLED = 8, 3
Figures = dict[str, Any]


def random_paths(n_leaves: int, depth: int, rng: Any) -> list[tuple[str, ...]]:
    """Paths to the leaves of an uneven tree: no leaf is deeper than `depth`, and some are higher up."""
    paths: list[tuple[str, ...]] = []

    def grow(above: tuple[str, ...], leaves: int) -> None:
        left = depth - len(above)
        if leaves == 1 or left == 0:
            paths.append(above)
            return
        # As wide as is needed to have room for all leaves, and a little more.
        width = leaves if left == 1 else max(2, round(leaves ** (1 / left) * float(rng.uniform(0.8, 1.6))))
        width = min(width, leaves)
        shares = rng.dirichlet([3.0] * width)
        sizes = 1 + rng.multinomial(leaves - width, shares)
        for child, size in enumerate(sizes.tolist()):
            name = f"{above[-1]}x{child}" if above else f"n{child}"
            grow((*above, name), size)

    grow((), n_leaves)
    return paths


def make_up(folder: Path, n_leaves: int, n_documents: int, n_words: int = 40_000, seed: int = 0) -> None:
    """Write a dataset folder: documents with their true paths, of which the first of every leaf are labelled."""
    import numpy as np
    import orjson

    rng = np.random.default_rng([seed, n_leaves])
    paths = random_paths(n_leaves, DEPTH, rng)
    nodes = sorted({path[: level + 1] for path in paths for level in range(len(path))})
    number = {node: place for place, node in enumerate(nodes)}
    words = np.array([f"w{place}" for place in range(n_words)], dtype=object)
    frequency = 1 / np.arange(10, n_words + 10)
    common = np.cumsum(frequency / frequency.sum())
    # A node has words of its own, but other nodes have some of them too.
    own = rng.integers(n_words // 40, n_words, (len(nodes), 20))
    popular = rng.dirichlet([0.5] * len(paths)) * 0.7 + 0.3 / len(paths)
    leaf_of = np.concatenate(
        [
            np.tile(np.arange(n_leaves), LABELLED + 1),
            rng.choice(n_leaves, max(0, n_documents - (LABELLED + 1) * n_leaves), p=popular),
        ]
    )[: max(n_documents, (LABELLED + 1) * n_leaves)]
    authors = max(2, len(leaf_of) // 6)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "corpus.jsonl", "wb") as stream:
        for row, leaf in enumerate(leaf_of.tolist()):
            path = paths[leaf]
            length = int(rng.integers(40, 90))
            text = np.searchsorted(common, rng.random(length))
            kind = rng.random(length)
            # The deeper a node, the more of its words.
            levels = np.arange(1, len(path) + 1)
            level = rng.choice(len(path), length, p=levels / levels.sum())
            at = np.array([number[path[: place + 1]] for place in range(len(path))])[level]
            text = np.where(kind < 0.3, own[at, rng.integers(0, own.shape[1], length)], text)
            # Neighbouring leaves share authors.
            near = (leaf * authors // n_leaves + rng.integers(0, 4, 2)) % authors
            fields = {
                "id": str(row),
                "text": " ".join(words[text]),
                "authors": [f"a{one}" for one in near.tolist()],
                "labels": list(path),
            }
            stream.write(orjson.dumps(fields) + b"\n")
    children: dict[str, list[str]] = {}
    for node in nodes:
        children.setdefault(node[-2] if len(node) > 1 else "ROOT", []).append(node[-1])
    lines = sorted(children.items(), key=lambda item: (item[0] != "ROOT", item[0].count("x"), item[0]))
    (folder / "label_hier.txt").write_text("".join(" ".join([up, *below]) + "\n" for up, below in lines))
    (folder / "meta_dict.json").write_text(json.dumps({"metadata": ["authors"]}) + "\n")


def _set_stages(stages: str) -> None:
    """`flat`, `staged`, or the fewest leaves that are many, the most terminals, and few leaves: `10,40,8`."""
    from himecat.classifier import stages as module

    if stages == "flat":
        module.MANY_LEAVES = 10**9
    elif stages == "staged":
        # A tree of 1,000 leaves is flat otherwise.
        module.MANY_LEAVES = 500
    else:
        module.MANY_LEAVES, module.MOST_TERMINALS, module.FEW_LEAVES = map(int, stages.split(","))


def fit(folder: Path, model: Path, stages: str, draw_number: int) -> Figures:
    """Fit on a dataset folder, and save the model."""
    from himecat import Default, HiMeCat
    from himecat.input.builder import load_corpus
    from himecat.input.dataset import draw, open_dataset, true_nodes
    from himecat.input.fields import Fields

    _set_stages(stages)
    start = time.process_time()
    dataset = open_dataset(folder)
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=2)
    truth = true_nodes(dataset, loaded)
    made_up = not (folder / "doc_id.txt").exists()
    shown = draw(dataset, truth, draw_number, LABELLED if made_up else 5)
    estimator = HiMeCat(
        taxonomy=dataset.taxonomy,
        metadata=dataset.metadata,
        method=Default(ngrams=not made_up),
        threads=2,
        random_state=draw_number,
    )
    estimator.fit(loaded.corpus, shown)
    cpu = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    estimator.save(model, overwrite=True)
    size = (model / "weights.safetensors").stat().st_size
    return {"documents": len(truth), "cpu": cpu, "peak_kb": peak, "model_mb": size / 1e6}


def place(folder: Path, model: Path, draw_number: int) -> Figures:
    """Place all documents of a dataset folder, and score those that had no label."""
    import numpy as np

    from himecat import HiMeCat
    from himecat.evaluation.metrics import score
    from himecat.input.dataset import draw, open_dataset
    from himecat.input.problems import Problems

    estimator = HiMeCat.load(model)
    estimator.threads = 2
    start, wall = time.process_time(), time.perf_counter()
    dataset = open_dataset(folder)
    ends, sure, given = [], [], []
    for origins, _, placed in estimator.iter_assignments(dataset.documents, Problems(), best=3):
        ends.append(placed.nodes)
        sure.append(placed.best_confidence[:, 0])
        given += [one.labels for one in origins]
    cpu, seconds = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tree = dataset.taxonomy
    truth = np.array([tree.find(label) for label in given])
    made_up = not (folder / "doc_id.txt").exists()
    shown = draw(dataset, truth, draw_number, LABELLED if made_up else 5)
    rest = np.setdiff1d(np.arange(len(truth)), shown.rows)
    nodes = np.concatenate(ends)
    found = score(tree, truth[rest], nodes[rest])
    return {
        "cpu": cpu,
        "per_second": len(truth) / seconds,
        "peak_kb": peak,
        "leaf": found.leaf.micro,
        "leaf_macro": found.leaf.macro,
        "overall": found.overall.micro,
        "confidence": float(np.concatenate(sure)[rest].mean()),
        "estimated": estimator.quality_.levels[-1].accuracy if estimator.quality_.levels else None,
    }


def child(*given: Any) -> Figures:
    """Run a part of this file in a process of its own, and read what it prints."""
    command = [sys.executable, __file__, "--child", *map(str, given)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measured(folder: Path, model: Path, stages: str, draw_number: int = 0) -> Figures:
    """The figures of a fit and of a prediction."""
    return {
        "fit": child("fit", folder, model, stages, draw_number),
        "predict": child("place", folder, model, draw_number),
    }


def run(
    leaves: Sequence[int], documents: int, per_leaf: int, flat: int, corpora: Sequence[str], draws: int = 1
) -> list[Figures]:
    """All figures, a row each."""
    rows: list[Figures] = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for count in () if corpora else leaves:
            folder = work / f"leaves-{count}"
            child("make", folder, count, documents or per_leaf * count)
            for stages in ("staged", "flat") if 500 < count <= flat else ("staged",):
                title = f"{count:,} leaves, {stages if count > 500 else 'flat'}"
                rows.append({"title": title} | measured(folder, work / "model", stages))
                print(line(rows[-1], rows[0]), flush=True)
        for corpus in corpora:
            for stages in ("flat", "10,40,8"):
                for number in range(draws):
                    found = measured(DATA / corpus, work / "model", stages, number)
                    rows.append({"title": f"{corpus} {number}, {stages}"} | found)
                    print(line(rows[-1], rows[0]), flush=True)
    return rows


def line(row: Figures, first: Figures) -> str:
    """A row in words."""

    def each(part: str, figure: str) -> tuple[float, float]:
        own, other = (one[part][figure] / one["fit"]["documents"] for one in (row, first))
        return own, own / other

    cpu, memory, place_cpu = each("fit", "cpu"), each("fit", "peak_kb"), each("predict", "cpu")
    at, estimated = row["predict"], row["predict"]["estimated"]
    return (
        f"{row['title']:24} {row['fit']['documents']:8,} documents  fit {1e3 * cpu[0]:6.2f} ms CPU ({cpu[1]:.2f}) "
        f"{memory[0]:7.1f} KB ({memory[1]:.2f}) peak {row['fit']['peak_kb'] / 1024:6.0f} MB  model "
        f"{row['fit']['model_mb']:5.0f} MB  predict {at['per_second']:7,.0f}/s {1e3 * place_cpu[0]:5.2f} ms CPU "
        f"({place_cpu[1]:.2f}) peak {at['peak_kb'] / 1024:6.0f} MB  leaf F1 {at['leaf']:.4f} overall "
        f"{at['overall']:.4f} confidence {at['confidence']:.3f} "
        f"estimated {'-' if estimated is None else f'{estimated:.3f}'}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--leaves", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--documents", type=int, default=0, help="of every tree; 0: as many per leaf")
    parser.add_argument("--per-leaf", type=int, default=10)
    parser.add_argument("--flat", type=int, default=2_000, help="also flat up to so many leaves")
    parser.add_argument("--corpora", nargs="*", default=[], help="dataset folders instead of made-up trees")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.child:
        what, folder, *rest = given.child
        if what == "make":
            make_up(Path(folder), *map(int, rest))
            print("{}")
        elif what == "fit":
            print(json.dumps(fit(Path(folder), Path(rest[0]), rest[1], int(rest[2]))))
        else:
            print(json.dumps(place(Path(folder), Path(rest[0]), int(rest[1]))))
        return
    rows = run(given.leaves, given.documents, given.per_leaf, given.flat, given.corpora, given.draws)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
