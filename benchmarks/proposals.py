"""Whether a category that was hidden comes back as a proposal: `python benchmarks/proposals.py packages arxiv`.

One category of the second level after the other is taken out of the tree, with its labelled documents. Its other
documents stay in the pile. Of the first proposals the one with the best F1 is looked at: precision is the share of its
documents that are of the hidden category.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from himecat import Default, HiMeCat
from himecat.input.builder import load_corpus
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.teaching.proposing import propose_categories
from himecat.teaching.tree_changes import apply

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ENOUGH = 0.6
# Looked at while the method was made.
TUNED_ON = ("games/games-chess", "cs/cs.CV")


def measure(name: str, first: int, kept: dict[str, dict[str, float]], cache: Path | None) -> None:
    """One row for each category of the second level."""
    dataset, method = open_dataset(DATA / name), Default()
    tree = dataset.taxonomy
    fields = Fields(metadata=dataset.metadata)
    loaded = load_corpus(dataset.documents, fields, min_count=method.min_count, max_tokens=method.max_tokens)
    truth = true_nodes(dataset, loaded)
    given = draw(dataset, truth, 0)
    # Without cross-validation, nothing that the hidden labels taught is left when the tree is changed.
    whole = HiMeCat(
        tree, dict.fromkeys(dataset.metadata), method=Default(calibrate=False), allow_empty_leaves=True
    ).fit(loaded.corpus, given)
    for node in [one for one in tree if tree.depths[one] == 2]:
        key = f"{name}: {tree.title(node)}"
        if key in kept:
            continue
        model = apply(whole, {"op": "delete", "path": tree.path(node), "labels": "drop"})
        own = np.isin(truth, [one for one in tree if one and node in tree.lineages[one]])
        found = propose_categories(model, count=first)
        rows = []
        for rank, one in enumerate(found, start=1):
            right = int(own[one.rows].sum())
            precision, recall = right / len(one.rows), right / int(own.sum())
            f1 = 2 * right / (len(one.rows) + int(own.sum()))
            rows.append((f1, precision, recall, rank, one.name, one.parent))
        best = max(rows, default=(0.0, 0.0, 0.0, 0, "", ()))
        kept[key] = {
            "precision": best[1],
            "recall": best[2],
            "rank": best[3],
            "name": best[4],
            "parent": best[5] == tree.path(node)[:-1],
            "documents": int(own.sum()),
        }
        print(key, kept[key], flush=True)
        if cache is not None:
            cache.write_text(json.dumps(kept, indent=1))


def table(kept: dict[str, dict[str, float]]) -> str:
    """The rows in Markdown, and how many came back."""
    lines = [
        "| hidden category | documents | precision | recall | rank | proposed as | parent |",
        "|---|--:|--:|--:|--:|---|---|",
    ]
    for key, one in kept.items():
        tuned = " (*)" if key.split(": ")[1] in TUNED_ON else ""
        lines.append(
            f"| {key}{tuned} | {one['documents']:,} | {one['precision']:.2f} | {one['recall']:.2f} | {one['rank']} | "
            f"{one['name']} | {'right' if one['parent'] else 'another'} |"
        )
    for name in dict.fromkeys(key.split(": ")[0] for key in kept):
        rows = [
            one
            for key, one in kept.items()
            if key.startswith(f"{name}: ") and key.split(": ")[1] not in TUNED_ON
        ]
        enough = sum(one["precision"] >= ENOUGH for one in rows)
        lines.append(
            f"\n{name}: {enough} of {len(rows)} with precision >= {ENOUGH}, without the one marked (*)"
        )
    return "\n".join(lines)


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["packages", "arxiv"])
    parser.add_argument("--first", type=int, default=10, help="proposals that are looked at")
    parser.add_argument("--cache", type=Path, help="file with what is measured already")
    options = parser.parse_args(given)
    kept = json.loads(options.cache.read_text()) if options.cache and options.cache.exists() else {}
    for name in options.names:
        measure(name, options.first, kept, options.cache)
    print(table(kept))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
