"""`himecat evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from himecat.cli import options as o
from himecat.cli.options import (
    as_json,
    metadata_names,
    method_arguments,
    name_or_names,
    names,
    write_json,
)


def evaluate(
    dataset: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET",
            help="A file of documents, some with labels; or a dataset folder: documents, label_hier.txt, doc_id.txt, "
            "meta_dict.json.",
        ),
    ],
    draws: o.Draws = 5,
    per_leaf: o.FilePerLeaf = None,
    truth: o.Truth = None,
    holdout: Annotated[
        float,
        o.option(
            o.INPUT,
            "Fit once more without this share of the unlabelled documents and predict them afterwards.",
            min=0.0,
            metavar="SHARE",
        ),
    ] = 0.0,
    taxonomy: Annotated[
        Path | None,
        o.option(o.INPUT, "The tree of a file; or another one than that of label_hier.txt.", metavar="FILE"),
    ] = None,
    metadata: Annotated[
        str | None,
        o.option(
            o.INPUT,
            "Metadata fields, separated by commas; those of meta_dict.json by default.",
            metavar="A,B",
        ),
    ] = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    separator: o.Separator = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    keywords: o.Keywords = None,
    bound: o.Bound = None,
    allow_empty_leaves: o.AllowEmpty = False,
    several: o.Several = None,
    method: o.Method = None,
    encoder: o.Encoder = None,
    tokenizer: o.Tokenizer = "unicode",
    seed: o.Seed = 0,
    threads: o.Threads = None,
    no_hierarchy: o.NoHierarchy = False,
    no_metadata: o.NoMetadata = False,
    ignore_metadata: o.IgnoreMetadata = None,
    decides: o.Decides = None,
    settings: o.Set = None,
    min_confidence: o.MinConfidence = None,
    json: o.Json = None,
    quiet: o.Quiet = False,
) -> None:
    """Fit on a few labelled documents per leaf, score all the others, for several draws.

    Of a file: cross-validation over its labels, --draws being the number of folds; the other documents take part in
    every fit. With --per-leaf, draws of so many labels per leaf. With --truth, one fit on all its labels, scored by
    those of a second file.

    Example: `himecat evaluate papers.csv --taxonomy tree.yaml --metadata authors --json scores.json`
    """
    arguments: dict[str, Any] = {
        **method_arguments(method, no_hierarchy, no_metadata, ignore_metadata, settings, decides),
        "taxonomy": str(taxonomy) if taxonomy is not None else None,
        "metadata": metadata_names(metadata) if metadata is not None else None,
        "text": names(text),
        "label_field": name_or_names(labels),
        "id_field": id_field,
        "separator": separator,
        "sheet": sheet,
        "delimiter": delimiter,
        "keywords": str(keywords) if keywords is not None else None,
        "encoder": encoder,
        "tokenizer": tokenizer,
        "allow_empty_leaves": allow_empty_leaves,
        "several": several,
        "min_confidence": min_confidence or 0.0,
        "random_state": seed,
        "threads": threads,
    }
    runs = o.draws_of(dataset, draws, per_leaf, truth)
    if json is None or str(json) == o.STDOUT:
        found = _evaluate(dataset, runs, holdout, arguments, quiet)
        if json is None:
            _table(found)
        else:
            write_json(json, found)
        return
    from himecat.runtime.files import atomic_file

    # Opened first: a file that cannot be written is an error before hours of work.
    with atomic_file(json, what="The result") as stream:
        found = _evaluate(dataset, runs, holdout, arguments, quiet)
        stream.write(as_json(found))
    _table(found)


def _evaluate(
    dataset: Path, which: dict[str, Any], holdout: float, arguments: dict[str, Any], quiet: bool
) -> dict[str, Any]:
    from himecat.compare.protocol.evaluate import evaluate as run
    from himecat.compare.protocol.evaluate import figures, spread, summarise
    from himecat.runtime.progress import Progress

    progress = Progress(quiet=quiet)
    runs = run(
        dataset,
        **which,
        arguments=arguments,
        quiet=quiet,
        holdout=holdout,
        on_run=lambda done: progress.say(_line(figures(done))),
    )
    return {
        "dataset": dataset.resolve().name,
        **({"folds": len(which["draws"])} if which["folds"] else {}),
        "arguments": {
            **{name: value for name, value in arguments.items() if value is not None},
            "method": {"name": arguments["method"].name, **arguments["method"].changed()},
        },
        "draws": [figures(one) for one in runs],
        "mean": summarise(runs),
        "sd": summarise(runs, spread),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    scores = [f"{row[part][key]:.4f}" for part in ("leaf", "overall") for key in ("micro", "macro")]
    costs = [f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", f"{row['peak_rss_mb']:.0f}"]
    return [*scores, _errors(row["calibration"]), *costs]


def _errors(calibration: list[float | None]) -> str:
    """Calibration errors in short: `.03 .05`."""
    shown = ["-" if error is None else f"{error:.2f}".removeprefix("0") for error in calibration]
    return " ".join(shown) or "-"


def _line(row: dict[str, Any]) -> str:
    leaf, leaf_macro, overall, overall_macro, errors, seconds, cpu, memory = _cells(row)
    holdout = f"; {_holdout(row)}" if "held_out" in row else ""
    if "sets" in row:
        return f"{_sets(row['sets'])}, ECE {errors}, {seconds} s, {cpu} CPU-s, {memory} MB"
    return (
        f"Leaf F1 {leaf} / {leaf_macro}, overall F1 {overall} / {overall_macro} (micro / macro), "
        f"ECE {errors}, {seconds} s, {cpu} CPU-s, {memory} MB{holdout}"
    )


def _holdout(row: dict[str, Any]) -> str:
    later, before = ("{micro:.4f} / {macro:.4f}".format(**row[part]) for part in ("held_out", "had_them"))
    return f"leaf F1 of documents left out of fit {later}, of the same ones taken in {before}"


def _sets(row: dict[str, Any]) -> str:
    """The scores of sets of paths."""
    sizes = row["paths_per_document"]
    return (
        f"Micro F1 of the categories {row['categories']['micro']:.4f}, with ancestors "
        f"{row['with_ancestors']['micro']:.4f}, example F1 {row['example_f1']:.4f}, paths per document "
        f"{sizes['given']:.2f} (true {sizes['true']:.2f})"
    )


def _table(found: dict[str, Any]) -> None:
    from rich.table import Table

    from himecat.runtime.terminal import console

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    scores = ("leaf\nmicro", "\nmacro", "overall\nmicro", "\nmacro", "ECE by\nlevel")
    for column in (*scores, "\ns", "\nCPU-s", "peak\nMB"):
        table.add_column(column, justify="right")
    for row in found["draws"]:
        table.add_row(f"{'fold' if 'folds' in found else 'draw'} {row['draw']}", *_cells(row))
    table.add_row("mean", *_cells(found["mean"]), style="bold")
    table.add_row("sd", *_cells(found["sd"]))
    shown = console()
    shown.print(table)
    if "sets" in found["mean"]:
        shown.print(f"Mean: {_sets(found['mean']['sets'])}", soft_wrap=True)
    if "held_out" in found["mean"]:
        shown.print(f"mean {_holdout(found['mean'])}", soft_wrap=True)
