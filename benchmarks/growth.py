"""Growth: what a document costs as there are more of them, more leaves, and deeper trees.

    python benchmarks/growth.py --json growth.json --plot docs/growth.svg

`himecat fit` and `himecat predict` with default settings on 2 threads, beside TF-IDF with a linear SVM, each a process
of its own as in `end_to_end.py`. The numbers of documents are eighths, quarters and so on of `arxiv-large`; leaves and
depth grow on made-up trees, with the same number of made-up documents each time. The vocabulary is the same for all
trees: a leaf and each node above it have words that are frequent in their documents. Ratios are to the smallest.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from end_to_end import COSTS, DATA, PEER, Pile, count_lines, fit_and_predict, measure, output_of
from end_to_end import task as end_to_end_task

AT_MOST = 1.5
Figures = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    # Of arxiv-large; without any, its documents are left out.
    shares: tuple[float, ...] = (1 / 8, 1 / 4, 1 / 2, 1)
    leaves: tuple[int, ...] = (10, 32, 100, 316, 1000)
    leaves_depth: int = 2
    depths: tuple[int, ...] = (2, 4, 8)
    depths_leaves: int = 256
    # Of a made-up pile.
    documents: int = 8_000
    vocabulary: int = 30_000
    rounds: int = 1
    # A run before, that compiles what is not compiled yet.
    warm_up: bool = True


SHORT = Sizes(
    shares=(),
    leaves=(10, 20),
    depths=(2, 8),
    depths_leaves=10,
    documents=300,
    vocabulary=2_000,
    warm_up=False,
)
ALL_OF_ARXIV_LARGE = 147_741


# -- made-up piles -------------------------------------------------------------------------------------


def tree_paths(n_leaves: int, depth: int) -> list[tuple[str, ...]]:
    """Paths to the leaves of a tree in which all leaves are equally deep and all nodes about equally wide.

    >>> tree_paths(4, 2)
    [('n0', 'n0x0'), ('n0', 'n0x1'), ('n1', 'n1x0'), ('n1', 'n1x1')]
    """
    paths: list[tuple[str, ...]] = []

    def grow(above: tuple[str, ...], leaves: int) -> None:
        left = depth - len(above)
        if not left:
            paths.append(above)
            return
        width = leaves if left == 1 else max(1, round(leaves ** (1 / left)))
        for child in range(width):
            below = leaves * (child + 1) // width - leaves * child // width
            name = f"{above[-1]}x{child}" if above else f"n{child}"
            grow((*above, name), below)

    grow((), n_leaves)
    return paths


def make_up(
    folder: Path, n_leaves: int, depth: int, n_documents: int, n_words: int, per_leaf: int = 5
) -> None:
    """Write documents about the leaves of such a tree; the first few of every leaf are labelled."""
    import numpy as np
    import orjson

    rng = np.random.default_rng(0)
    paths = tree_paths(n_leaves, depth)
    words = np.array([f"w{number}" for number in range(n_words)], dtype=object)
    people = max(n_documents // 5, 1)
    # Frequent words are nobody's; a node has its own among the others.
    frequency = 1 / np.arange(10, n_words + 10)
    common = np.cumsum(frequency / frequency.sum())
    nodes = sorted({path[: level + 1] for path in paths for level in range(depth)})
    own = {node: rng.integers(n_words // 20, n_words, 30) for node in nodes}
    folder.mkdir(parents=True, exist_ok=True)
    pile = Pile(folder)
    with open(pile.documents, "wb") as stream:
        for row in range(n_documents):
            number = row % n_leaves
            path = paths[number]
            length = int(rng.integers(60, 120))
            text = np.searchsorted(common, rng.random(length))
            kind = rng.random(length)
            text[kind < 0.25] = rng.choice(own[path], int((kind < 0.25).sum()))
            if depth > 1:
                above = own[path[: int(rng.integers(1, depth))]]
                shared = (kind >= 0.25) & (kind < 0.4)
                text[shared] = rng.choice(above, int(shared.sum()))
            fields = {
                "id": str(row),
                "text": " ".join(words[text]),
                # Each leaf has a part of all authors.
                "authors": [
                    f"a{(int(rng.integers(people)) // n_leaves) * n_leaves + number}" for _ in range(2)
                ],
            }
            if row < per_leaf * n_leaves:
                fields["labels"] = list(path)
            stream.write(orjson.dumps(fields) + b"\n")
    children: dict[str, list[str]] = {}
    for node in nodes:
        children.setdefault(node[-2] if len(node) > 1 else "ROOT", []).append(node[-1])
    # Parents before their children, as in the paper's files.
    lines = sorted(children.items(), key=lambda item: (item[0] != "ROOT", item[0].count("x"), item[0]))
    pile.tree.write_text("".join(" ".join([parent, *below]) + "\n" for parent, below in lines))
    (folder / "meta_dict.json").write_text(json.dumps({"metadata": ["authors"]}) + "\n")


# -- the figures ---------------------------------------------------------------------------------------


def cost(pile: Pile, folder: Path, rounds: int) -> Figures:
    """Least cost of ours and of the peer for one pile, in all and per document."""
    ours, peers = [], []
    for _ in range(rounds):
        ours.append(fit_and_predict(pile, folder / "model", folder / "placed.jsonl"))
        peers.append(measure(end_to_end_task("peer", pile.folder, folder / "peer.jsonl")))
    count = count_lines(folder / "placed.jsonl")
    found: Figures = {"documents": count}
    for title, runs in (("ours", ours), (PEER, peers)):
        least = {name: min(one[name] for one in runs) for name in COSTS}
        per_document = {
            "wall_ms": 1e3 * least["wall_seconds"] / count,
            "cpu_ms": 1e3 * least["cpu_seconds"] / count,
            "kb": 1024 * least["peak_mb"] / count,
        }
        found[title] = least | {"per_document": per_document}
    found["ours_over_peer"] = {name: found["ours"][name] / found[PEER][name] for name in COSTS}
    return found


def with_ratios(rows: list[Figures]) -> list[Figures]:
    """Each row with its costs per document as ratios to those of the first."""
    for row in rows:
        for title in ("ours", PEER):
            first = rows[0][title]["per_document"]
            row[title]["ratio"] = {
                name: value / first[name] for name, value in row[title]["per_document"].items()
            }
    return rows


def run(short: bool = False, data: Path = DATA, sizes: Sizes | None = None) -> Figures:
    """All figures; `short` takes small made-up piles, and its times say nothing."""
    sizes = sizes or (SHORT if short else Sizes())
    found: Figures = {"at_most": AT_MOST}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def series(values: Sequence[float], key: str, command: Callable[[Any], list[str]]) -> list[Figures]:
            rows = []
            for value in values:
                pile = Pile(folder / f"{key}-{value:g}")
                output_of(command(value))
                rows.append({key: value} | cost(pile, folder, sizes.rounds))
            return with_ratios(rows)

        def made_up(key: str, value: int, leaves: int, depth: int) -> list[str]:
            given = (folder / f"{key}-{value:g}", leaves, depth, sizes.documents, sizes.vocabulary)
            return [sys.executable, __file__, "--make-up", *map(str, given)]

        if sizes.warm_up:
            # What is not compiled yet would be counted as the cost of the smallest pile.
            output_of(made_up("first", 0, 10, 2))
            fit_and_predict(Pile(folder / "first-0"), folder / "model", folder / "placed.jsonl")
        if sizes.shares:
            found["documents"] = series(
                sizes.shares,
                "share",
                lambda share: end_to_end_task(
                    "prepare",
                    data / "arxiv-large",
                    folder / f"share-{share:g}",
                    round(share * ALL_OF_ARXIV_LARGE),
                ),
            )
        found["leaves"] = series(
            sizes.leaves, "leaves", lambda leaves: made_up("leaves", leaves, leaves, sizes.leaves_depth)
        )
        found["depth"] = series(
            sizes.depths, "depth", lambda depth: made_up("depth", depth, sizes.depths_leaves, depth)
        )
    return found


TITLES = {"documents": "documents", "leaves": "leaves", "depth": "depth of the tree"}
SERIES = (("wall_ms", "wall time"), ("cpu_ms", "CPU time"), ("kb", "memory"))


def size_of(panel: str, row: Figures) -> float:
    """Where a row stands on the axis of its panel."""
    return float(row["documents"] if panel == "documents" else row[panel])


def show(found: Figures) -> None:
    """Print the figures."""
    for panel in (panel for panel in TITLES if found.get(panel)):
        print(f"per document, by {TITLES[panel]} (ratio to the first; at most {AT_MOST})")
        for row in found[panel]:
            for title in ("ours", PEER):
                each, ratio = row[title]["per_document"], row[title]["ratio"]
                print(
                    f"  {size_of(panel, row):9,.0f} {row['documents']:9,} documents  {title:20}"
                    f" {each['wall_ms']:7.3f} ms wall ({ratio['wall_ms']:.2f})"
                    f" {each['cpu_ms']:7.3f} ms CPU ({ratio['cpu_ms']:.2f})"
                    f" {each['kb']:7.1f} KB ({ratio['kb']:.2f})"
                )


def markdown(found: Figures) -> str:
    """The table of docs/performance.md."""
    lines = ["| | CPU ms | ratio | wall ms | ratio | KB | ratio | peer: CPU ratio |", "|---|" + "---:|" * 7]
    for panel in (panel for panel in TITLES if found.get(panel)):
        for row in found[panel]:
            each, ratio = row["ours"]["per_document"], row["ours"]["ratio"]
            size = f"{size_of(panel, row):,.0f}"
            cells = [f"depth {size}" if panel == "depth" else f"{size} {TITLES[panel]}"]
            for name, digits in (("cpu_ms", 3), ("wall_ms", 3), ("kb", 1)):
                cells += [f"{each[name]:.{digits}f}", f"{ratio[name]:.2f}"]
            lines.append("| " + " | ".join([*cells, f"{row[PEER]['ratio']['cpu_ms']:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


# -- the plot ------------------------------------------------------------------------------------------

# Told apart with any kind of colour vision, and by their marks too.
COLOURS = {"wall_ms": "#0072B2", "cpu_ms": "#009E73", "kb": "#D55E00"}


def _mark(name: str, x: float, y: float) -> str:
    colour = COLOURS[name]
    if name == "wall_ms":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
    if name == "cpu_ms":
        return f'<path d="M{x:.1f} {y - 5.5:.1f}l5.5 9.5h-11z" fill="{colour}"/>'
    return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'


def plot(found: Figures) -> str:
    """The ratios as an SVG picture, a panel for each way to grow."""
    from math import log

    panels = [panel for panel in TITLES if found.get(panel)]
    width, height, left, top, gap = 250, 220, 58, 58, 34
    ratios = [value for panel in panels for row in found[panel] for value in row["ours"]["ratio"].values()]
    highest = max(2.0, 1.1 * max(ratios))
    total = left + len(panels) * (width + gap)

    def up(value: float) -> float:
        return top + height * (1 - value / highest)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {top + height + 52}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="20">Cost per document, as a ratio to the smallest (himecat fit + predict)</text>',
    ]
    for number, (name, title) in enumerate(SERIES):
        x = left + 8 + number * 110
        parts += [_mark(name, x, 40), f'<text x="{x + 12}" y="44.5">{title}</text>']
    for number, panel in enumerate(panels):
        start = left + number * (width + gap)
        rows = found[panel]
        places = [log(size_of(panel, row)) for row in rows]
        span = (places[-1] - places[0]) or 1.0
        across = [start + 22 + (width - 44) * (place - places[0]) / span for place in places]
        step = 0.5 if highest <= 4 else max(1, round(highest / 5))
        ticks = [step * k for k in range(int(highest / step) + 1)]
        for tick in ticks:
            parts.append(
                f'<line x1="{start}" x2="{start + width}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#ddd"/>'
            )
            if not number:
                parts.append(
                    f'<text x="{start - 8}" y="{up(tick) + 4.5:.1f}" text-anchor="end">{tick:g}</text>'
                )
        parts.append(
            f'<line x1="{start}" x2="{start + width}" y1="{up(AT_MOST):.1f}" y2="{up(AT_MOST):.1f}" '
            'stroke="#222" stroke-dasharray="5 4"/>'
        )
        if not number:
            parts.append(
                f'<text x="{start + 4}" y="{up(AT_MOST) - 5:.1f}" font-size="12">at most {AT_MOST}</text>'
            )
        for name, _ in SERIES:
            heights = [up(row["ours"]["ratio"][name]) for row in rows]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, heights, strict=True))
            parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
            parts += [_mark(name, x, y) for x, y in zip(across, heights, strict=True)]
        for x, row in zip(across, rows, strict=True):
            size = size_of(panel, row)
            text = f"{size / 1000:.0f}k" if size >= 10_000 else f"{size:,.0f}"
            parts.append(f'<text x="{x:.1f}" y="{top + height + 18}" text-anchor="middle">{text}</text>')
        parts.append(
            f'<text x="{start + width / 2}" y="{top + height + 40}" text-anchor="middle">{TITLES[panel]}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def main(given: Sequence[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="small made-up piles, for correctness only")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds arxiv-large")
    parser.add_argument("--parts", type=_numbers, help="take 1/N of arxiv-large for each of these; 8,4,2,1")
    parser.add_argument("--leaves", type=_numbers, help="numbers of leaves, separated by commas")
    parser.add_argument("--depths", type=_numbers, help="depths, separated by commas")
    parser.add_argument("--documents", type=int, help="documents of a made-up pile")
    parser.add_argument("--rounds", type=int, help="measurements of each, of which the least counts")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--plot", type=Path, help="SVG file to write")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    parser.add_argument("--make-up", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.make_up:
        make_up(Path(options.make_up[0]), *map(int, options.make_up[1:]))
        return
    chosen: dict[str, Any] = {
        name: value
        for name in ("leaves", "depths", "documents", "rounds")
        if (value := getattr(options, name)) is not None
    }
    if options.parts is not None:
        chosen["shares"] = tuple(1 / part for part in options.parts)
    base = SHORT if options.short else Sizes()
    sizes = Sizes(**(vars(base) | chosen))
    if sizes.shares and not (options.data / "arxiv-large").is_dir():
        parser.error(f"there is no folder {options.data / 'arxiv-large'}; name the data with --data")
    found = run(options.short, options.data, sizes)
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.plot:
        options.plot.write_text(plot(found))
    if options.markdown:
        options.markdown.write_text(markdown(found))


if __name__ == "__main__":
    main()
