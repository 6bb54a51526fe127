"""Whether what a fit says about itself is true, on real corpora: estimated accuracy, confusions, labels in doubt.

    python benchmarks/quality.py --corpora packages reviews questions arxiv --draws 10
    python benchmarks/quality.py --corpora packages arxiv --draws 5 --wrong 0.1

Estimates are compared with the true labels of the unlabelled documents, which no fit sees. With `--wrong`, that share
of the labels is first swapped to a random other leaf, and the labels that a fit doubts are compared with those.
Constants were chosen on draws 0 to 9; `--first` is the first draw to measure.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from himecat.classifier.quality import Quality
from himecat.compare.protocol.measure import Source, read_draw
from himecat.compare.systems.himecat import Himecat
from himecat.compare.systems.system import Task
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import usable_threads

Figures = dict[str, list[tuple[float, ...]]]


def with_wrong_labels(
    tree: Taxonomy, labelled: Supervision, share: float, seed: int
) -> tuple[Supervision, np.ndarray]:
    """The labels with some swapped to a random other leaf, and which were."""
    rng = np.random.default_rng([seed, 1])
    chosen = rng.choice(len(labelled), round(share * len(labelled)), replace=False)
    nodes, ends = labelled.nodes.copy(), np.array(tree.leaves)
    for position in chosen.tolist():
        nodes[position] = rng.choice(ends[ends != nodes[position]])
    return replace(labelled, nodes=nodes), chosen


def measure(folder: Path, draws: range, wrong: float = 0.0, per_leaf: int = 5) -> Figures:
    """For each draw: estimate, interval and truth of every level and leaf, hits among confusions and suspects."""
    source, system = Source(folder), Himecat()
    dataset = source.open()
    tree = dataset.taxonomy
    found: Figures = defaultdict(list)
    for number in draws:
        read = read_draw(source, dataset, system, number, per_leaf)
        labelled, swapped = with_wrong_labels(tree, read.labelled, wrong, number)
        model = system.fit(Task(read.corpus, tree, labelled, threads=usable_threads(None)))
        quality = model.quality_
        assert isinstance(quality, Quality)
        nodes = model.assign(read.corpus.take(read.test)).nodes
        _compare(tree, quality, nodes, read.truth[read.test], found)
        names = {read.corpus.ids[row] for row in labelled.rows[swapped].tolist()}
        hits = sum(one.id in names for one in quality.suspects)
        found["suspects"].append((len(quality.suspects), hits, len(swapped), len(labelled)))
    return found


def _compare(tree: Taxonomy, quality: Quality, nodes: np.ndarray, truth: np.ndarray, found: Figures) -> None:
    given, known = tree.lineage_rows(nodes), tree.lineage_rows(truth)
    for one in quality.levels:
        column = given[:, one.level - 1] > 0
        right = float((given == known)[column, one.level - 1].mean())
        found[f"level {one.level}"].append((one.accuracy, one.low, one.high, right))
    for leaf, estimate in zip(tree.leaves, quality.leaves, strict=True):
        placed = nodes == leaf
        if estimate.precision is not None and placed.any():
            right = float((truth[placed] == leaf).mean())
            found["leaves"].append((estimate.precision, estimate.low or 0.0, estimate.high or 0.0, right))
    pairs: dict[tuple[int, int], int] = defaultdict(int)
    for one, other in zip(nodes.tolist(), truth.tolist(), strict=True):
        if one != other:
            pairs[min(one, other), max(one, other)] += 1
    most = set(sorted(pairs, key=lambda pair: -pairs[pair])[:20])
    named = [tuple(sorted((tree.find(one.first), tree.find(one.second)))) for one in quality.confusions[:10]]
    expected = sum(one.documents for one in quality.confusions[:10]) * len(nodes) / quality.n_looked_at
    found["confusions"].append(
        (sum(pair in most for pair in named), len(named), expected, sum(pairs[pair] for pair in named))
    )


def summary(figures: Figures) -> dict[str, Any]:
    """Means over the draws: for estimates how far they are off and how often their interval holds the truth."""
    found: dict[str, Any] = {}
    for name, rows in figures.items():
        values = np.array(rows)
        if name == "suspects":
            flagged, hits, swapped, labelled = values.sum(axis=0)
            found[name] = {
                "flagged": flagged / len(rows),
                "labelled": labelled / len(rows),
                "precision": hits / max(flagged, 1),
                "recall": hits / max(swapped, 1),
            }
        elif name == "confusions":
            hits, named, expected, real = values.sum(axis=0)
            found[name] = {"among the 20 most frequent": hits / named, "expected / real": expected / real}
        else:
            estimate, low, high, truth = values.T
            found[name] = {
                "truth": truth.mean(),
                "error": (estimate - truth).mean(),
                "sd": (estimate - truth).std(),
                "held": ((low <= truth) & (truth <= high)).mean(),
                "width": (high - low).mean(),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    parser.add_argument("--data", type=Path, default=data, help="folder of the dataset folders")
    parser.add_argument("--corpora", nargs="+", default=["packages", "reviews", "questions", "arxiv"])
    parser.add_argument("--draws", type=int, default=10, help="draws of the labelled documents")
    parser.add_argument("--first", type=int, default=10, help="the first of them")
    parser.add_argument("--per-leaf", type=int, default=5, help="labelled documents per leaf")
    parser.add_argument("--wrong", type=float, default=0.0, help="share of the labels that are made wrong")
    given = parser.parse_args()
    draws = range(given.first, given.first + given.draws)
    for name in given.corpora:
        for what, row in summary(measure(given.data / name, draws, given.wrong, given.per_leaf)).items():
            shown = ", ".join(f"{key} {value:.3f}" for key, value in row.items())
            print(f"{name}, {what}: {shown}", flush=True)


if __name__ == "__main__":
    main()
