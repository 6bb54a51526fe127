"""What `min_confidence` promises and what it delivers, on real corpora.

    python benchmarks/confidence.py --corpora packages reviews --draws 3

For each bound: the share of documents that are placed anywhere, the share of those whose last category is right
(which should be at least the bound), and the share that reach a leaf, with the share of those that are right.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from himecat.compare.protocol.measure import Source, read_draw
from himecat.compare.systems.himecat import Himecat
from himecat.compare.systems.system import Task
from himecat.runtime.threads import usable_threads

BOUNDS = (0.5, 0.7, 0.8, 0.9, 0.95)


def share(flags: np.ndarray) -> float:
    return float(np.mean(flags)) if len(flags) else np.nan


def measure(folder: Path, draws: int, bounds: tuple[float, ...] = BOUNDS) -> np.ndarray:
    """Mean over the draws: a row per bound with placed, right, leaf reached, leaf right."""
    source, system = Source(folder), Himecat()
    dataset = source.open()
    tree = dataset.taxonomy
    found = np.zeros((draws, len(bounds), 4))
    for number in range(draws):
        read = read_draw(source, dataset, system, number)
        model = system.fit(Task(read.corpus, tree, read.labelled, threads=usable_threads(None)))
        corpus, truth = read.corpus.take(read.test), read.truth[read.test]
        for place, bound in enumerate(bounds):
            nodes = model.set_params(min_confidence=bound).assign(corpus).nodes
            # The last category of a path is right if the true leaf lies at or below it.
            right = np.array(
                [
                    node in (0, true) or node in tree.lineages[true]
                    for node, true in zip(nodes.tolist(), truth.tolist(), strict=True)
                ]
            )
            placed, leaf = nodes > 0, tree.leaf_position[nodes] >= 0
            found[number, place] = share(placed), share(right[placed]), share(leaf), share(right[leaf])
    with warnings.catch_warnings():
        # A bound that no document of any draw reaches has no share of right ones.
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(found, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    parser.add_argument("--data", type=Path, default=data, help="folder of the dataset folders")
    parser.add_argument(
        "--corpora", nargs="+", default=["packages", "reviews"], help="names of dataset folders"
    )
    parser.add_argument("--draws", type=int, default=3, help="draws of the labelled documents")
    given = parser.parse_args()
    for name in given.corpora:
        print(f"{name}, mean of {given.draws} draws: bound | placed, right | leaf reached, right", flush=True)
        rows = measure(given.data / name, given.draws)
        for bound, (placed, right, leaf, leaf_right) in zip(BOUNDS, rows, strict=True):
            print(f"  {bound:.2f} | {placed:.3f} {right:.3f} | {leaf:.3f} {leaf_right:.3f}", flush=True)


if __name__ == "__main__":
    main()
