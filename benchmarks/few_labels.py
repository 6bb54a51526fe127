"""Accuracy by the number of labelled documents per leaf, and for documents that took no part in fit.

    python benchmarks/few_labels.py --corpora packages reviews --draws 5

Every fit runs in a process of its own. Draws start at 1: draw 0 is the list of five per leaf in the dataset folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from himecat.compare.protocol.evaluate import evaluate, spread
from himecat.errors import HimecatError

COUNTS = (1, 2, 3, 5, 10, 20)


def curve(folder: Path, draws: int) -> None:
    print(
        f"{folder.name}: Leaf micro / macro F1 by labelled documents per leaf, mean of {draws} draws",
        flush=True,
    )
    for count in COUNTS:
        try:
            found = evaluate(folder, draws=range(1, draws + 1), per_leaf=count)
        except HimecatError as error:
            print(f"  {count:>2}: {error}", flush=True)
            continue
        micro = [one.leaf["micro"] for one in found]
        macro = [one.leaf["macro"] for one in found]
        print(
            f"  {count:>2}: {np.mean(micro):.4f} / {np.mean(macro):.4f} (sd {spread(micro):.4f})", flush=True
        )


def new_documents(folder: Path, draws: int, share: float) -> None:
    found = evaluate(folder, draws=range(draws), holdout=share)
    apart = [one.held_out["micro"] for one in found if one.held_out]
    among = [one.had_them["micro"] for one in found if one.had_them]
    print(
        f"{folder.name}: Leaf micro F1 of {share:.0%} of the documents, left out of fit {np.mean(apart):.4f}, "
        f"had in fit {np.mean(among):.4f}, mean of {draws} draws",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder of the dataset folders"
    )
    parser.add_argument(
        "--corpora", nargs="+", default=["packages", "reviews"], help="names of dataset folders"
    )
    parser.add_argument("--draws", type=int, default=5, help="draws of the labelled documents")
    parser.add_argument("--holdout", type=float, default=0.2, help="share of the documents left out of fit")
    given = parser.parse_args()
    for name in given.corpora:
        new_documents(given.data / name, given.draws, given.holdout)
        curve(given.data / name, given.draws)


if __name__ == "__main__":
    main()
