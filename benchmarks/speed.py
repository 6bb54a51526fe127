"""All figures of speed and memory with one command, each beside a peer measured in the same run.

    python benchmarks/speed.py --json speed.json --markdown speed.md --plot docs/growth.svg
    python benchmarks/speed.py --short        # under 3 minutes: whether everything works; the times say nothing

Each part is a program of its own in this folder and runs in a process of its own, so that none finds the memory or
the caches of another.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# Part -> packages it cannot do without.
PARTS: dict[str, tuple[str, ...]] = {
    "embedding": (),
    "classifier": ("torch",),
    "reading": ("pyarrow",),
    "cold_start": (),
    "end_to_end": (),
    "growth": (),
}
Figures = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A figure: ours, the peer's, their ratio, what is wanted of which of them, and what ours cost."""

    part: str
    figure: str
    ours: float | None = None
    peer: str = ""
    theirs: float | None = None
    ratio: float | None = None
    # What `wanted` is about: "ours" or "ratio".
    about: str = "ours"
    wanted: str = ""
    cost: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the figure is as wanted; None where nothing is."""
        value = self.ratio if self.about == "ratio" else self.ours
        if not self.wanted or value is None:
            return None
        sign, limit = self.wanted.split()
        return value >= float(limit) if sign == ">=" else value <= float(limit)

    def cells(self, short: bool) -> list[str]:
        """The row as the table shows it."""
        cost = [_figure(self.cost.get(name)) for name in ("cpu_seconds", "wall_seconds", "peak_mb")]
        met = "" if short or self.met is None else "yes" if self.met else "no"
        wanted = f"{'ratio ' if self.about == 'ratio' else ''}{self.wanted}" if self.wanted else ""
        both = [_figure(self.ours), self.peer, _figure(self.theirs), _figure(self.ratio)]
        return [self.part, self.figure, *both, wanted, met, *cost]


HEADS = ("part", "figure", "ours", "peer", "peer's", "ratio", "wanted", "met", "CPU-s", "wall s", "peak MB")


def _figure(value: float | None) -> str:
    """Three digits that count, and no more."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# -- the figures of each part --------------------------------------------------------------------------


def _embedding(found: Figures) -> Iterator[Row]:
    peer = "gensim Doc2Vec"
    rows = {(row["side"], row["threads"]): row for row in found["rows"]}
    for (side, threads), row in rows.items():
        if side == peer:
            continue
        theirs = rows.get((peer, threads))
        ratio = row["pairs_per_cpu_second"] / theirs["pairs_per_cpu_second"] if theirs else None
        yield Row(
            "embedding",
            f"{side}, {threads} thread{'s' * (threads > 1)}: million pairs per CPU-s",
            row["pairs_per_cpu_second"] / 1e6,
            peer if theirs else "",
            theirs["pairs_per_cpu_second"] / 1e6 if theirs else None,
            ratio,
            "ratio",
            ">= 3.5",
            row,
        )
    for side, ratios in found["ratios"].items():
        for name in (name for name in ratios if name.startswith("1 to 2")):
            yield Row("embedding", f"{side}: {name}", ratio=ratios[name], about="ratio", wanted=">= 1.8")


def _classifier(found: Figures) -> Iterator[Row]:
    for name, apart in found["largest_difference"].items():
        yield Row("classifier", f"largest difference of a {name}", apart, wanted="<= 1e-5")
    for task, least in (("training", 5), ("inference", 10)):
        if task not in found:
            continue
        sides = found[task]["sides"]
        theirs = min(one["wall_seconds"] for side, one in sides.items() if side != "ours")
        ours = sides["ours"] | {"peak_mb": sides["ours"]["peak_rss_mb"]}
        yield Row(
            "classifier",
            f"{task}, wall s",
            ours["wall_seconds"],
            "nn.Conv1d",
            theirs,
            found[task]["wall_seconds_ratio"],
            "ratio",
            f">= {least}",
            ours,
        )


def _reading(found: Figures) -> Iterator[Row]:
    rates = found["cpu_mb_per_second"]
    yield Row(
        "reading",
        "tokenizer, MB per CPU-s",
        rates["ours"],
        "CountVectorizer",
        rates["CountVectorizer"],
        found["tokenizer_over_count_vectorizer"],
        "ratio",
        ">= 3",
        found["best"]["ours"],
    )
    for kind, rate in found["wall_mb_per_second"].items():
        yield Row("reading", f"{kind}, MB/s", rate, wanted=">= 50", cost=found["best"][kind])


def _cold_start(found: Figures) -> Iterator[Row]:
    pairs = (
        ("himecat --help", "python -c 'import numpy'", "help_over_import_numpy", 0.4),
        ("himecat predict", "python -c 'import sklearn.base'", "predict_over_import_sklearn", 3),
    )
    for ours, peer, ratio, most in pairs:
        mine, theirs = found["best"][ours], found["best"][peer]
        yield Row(
            "cold_start",
            f"{ours}, wall s (ratio: CPU)",
            mine["wall_seconds"],
            peer.removeprefix("python -c ").strip("'"),
            theirs["wall_seconds"],
            found[ratio],
            wanted=f"<= {most}",
            cost=mine,
        )


def _end_to_end(found: Figures) -> Iterator[Row]:
    peer = "TF-IDF + LinearSVC"
    for corpus, one in found["corpora"].items():
        for cost, title in (("wall_seconds", "wall s"), ("peak_mb", "peak MB")):
            most = one["at_most"].get(cost)
            yield Row(
                "end_to_end",
                f"{corpus}, fit + predict, {title}",
                one["ours"][cost],
                peer,
                one[peer][cost],
                one["ours_over_peer"][cost],
                wanted=f"<= {most:g}" if most else "",
                cost=one["ours"],
            )
    if "predict" in found:
        one, name = found["predict"], "documents_per_wall_second"
        yield Row(
            "end_to_end",
            f"predict, {one['lines']:,} lines, documents/s",
            one["ours"][name],
            "TfidfVectorizer + LinearSVC",
            one["TfidfVectorizer + LinearSVC"][name],
            one[f"{name}_over_peer"],
            wanted=f">= {one['at_least'][name]}",
            cost=one["ours"],
        )
        if one["resident_mb"]:
            first, last = one["resident_mb"][0]["mb"], one["resident_mb"][-1]["mb"]
            title = "predict, memory at the end, MB"
            yield Row("end_to_end", title, last, "ours at a tenth", first, last / first)


def _growth(found: Figures) -> Iterator[Row]:
    names = {"cpu_ms": "CPU ms", "wall_ms": "wall ms", "kb": "KB"}
    for panel in (panel for panel in ("documents", "leaves", "depth") if found.get(panel)):
        rows = found[panel]
        for name, title in names.items():
            worst = max(rows, key=lambda row: row["ours"]["ratio"][name])
            yield Row(
                "growth",
                f"{title} per document, most over {len(rows)} sizes of {panel}",
                worst["ours"]["per_document"][name],
                "ours, smallest",
                rows[0]["ours"]["per_document"][name],
                worst["ours"]["ratio"][name],
                "ratio",
                f"<= {found['at_most']}",
                worst["ours"],
            )


ROWS: dict[str, Callable[[Figures], Iterator[Row]]] = {
    "embedding": _embedding,
    "classifier": _classifier,
    "reading": _reading,
    "cold_start": _cold_start,
    "end_to_end": _end_to_end,
    "growth": _growth,
}


# -- running them --------------------------------------------------------------------------------------


def missing(part: str) -> list[str]:
    """Packages without which a part cannot run."""
    return [name for name in PARTS[part] if importlib.util.find_spec(name) is None]


def run_part(part: str, short: bool, more: Sequence[str] = ()) -> Figures:
    """The figures of a part, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "figures.json"
        command = [sys.executable, str(Path(__file__).with_name(f"{part}.py")), "--json", str(written)]
        done = subprocess.run(
            [*command, *(["--short"] if short else []), *more], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())
        found: Figures = json.loads(written.read_text())
        return found


def run(short: bool = False, parts: Sequence[str] = tuple(PARTS), plot: Path | None = None) -> Figures:
    """All parts; one that fails or lacks a package is named, and the others run all the same."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: Figures = {
        "short": short,
        "python": platform.python_version(),
        "processor": processor(),
        "cores": cores,
        "parts": {},
        "left_out": {},
        "failed": {},
        "seconds": {},
    }
    for part in parts:
        if absent := missing(part):
            found["left_out"][part] = f"needs {', '.join(absent)}"
            continue
        more = ["--plot", str(plot)] if plot and part == "growth" else []
        began = time.perf_counter()
        try:
            found["parts"][part] = run_part(part, short, more)
        except RuntimeError as error:
            found["failed"][part] = str(error)
        found["seconds"][part] = time.perf_counter() - began
        print(f"{part}: {found['seconds'][part]:.0f} s", file=sys.stderr, flush=True)
    found["rows"] = [asdict(row) | {"met": row.met} for row in rows_of(found)]
    return found


def processor() -> str:
    """What the processor is called."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def rows_of(found: Figures) -> list[Row]:
    """The rows of the table."""
    return [row for part, figures in found["parts"].items() for row in ROWS[part](figures)]


def table(found: Figures) -> str:
    """The rows as a Markdown table that can be read as it stands."""
    cells = [list(HEADS), *(row.cells(found["short"]) for row in rows_of(found))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADS))]

    def one(line: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"

    lines = [one(cells[0]), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    return "\n".join([*lines, *map(one, cells[1:]), ""])


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--short", action="store_true", help="whether everything works; the times say nothing"
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="parts to run")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--markdown", type=Path, help="file for the table, which is printed in any case")
    parser.add_argument("--plot", type=Path, help="SVG file for the plot of growth")
    options = parser.parse_args(given)
    found = run(options.short, options.only, options.plot)
    shown = table(found)
    print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}\n\n{shown}")
    for part, why in found["left_out"].items():
        print(f"{part} was left out: {why}.")
    for part, why in found["failed"].items():
        print(f"{part} failed: {why}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(shown)
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
