"""Draw docs/results.svg from the tables of docs/results.md, so that the figure is never older than they are.

python scripts/results_figure.py
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from himecat.compare.figures.scores import draw_scores
from himecat.compare.protocol.run import Run

DOCS = Path(__file__).resolve().parents[1] / "docs"
_NUMBER = re.compile(r"\.\d{4}")
_MARKS = re.compile(r"[`†§\\]")


def runs_of(page: str) -> Iterator[Run]:
    """Two runs for each row of Table 2, with its mean and standard deviation; rows without all scores stay out."""
    dataset = whole = ""
    for line in page.partition("## Table 2")[2].partition("## Table 3")[0].splitlines():
        cells = [_MARKS.sub("", cell).strip() for cell in line.strip("|").split("|")]
        if "Leaf micro" in line:
            dataset = cells[0]
        scores = [_NUMBER.findall(cell) for cell in cells[1:5]]
        if len(scores) < 4 or not all(scores):
            continue
        name = cells[0].replace("the same", whole)
        whole = whole if "the same" in cells[0] else name
        (micro, *spread), (macro, *_), (overall, *_), (overall_macro, *_) = scores
        for draw, sign in enumerate((1, -1)):
            # Two values so far apart have the deviation of the row.
            off = sign * float(*spread) / math.sqrt(2)
            leaf = {"micro": float(micro) + off, "macro": float(macro)}
            above = {"micro": float(overall), "macro": float(overall_macro)}
            yield Run(dataset, name, name, {}, draw, 0, leaf, above)


if __name__ == "__main__":
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    draw_scores(list(runs_of(page)), DOCS / "results.svg", ours="himecat")
