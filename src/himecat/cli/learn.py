"""`himecat fit` and `himecat evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from himecat.cli import options as o
from himecat.cli.options import method_arguments, names, write_json

if TYPE_CHECKING:
    from himecat.experiments import DrawResult


def fit(
    documents: o.Documents,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")],
    taxonomy: o.Tree = None,
    metadata: o.Metadata = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    skip_bad: o.SkipBad = False,
    allow_empty_leaves: o.AllowEmpty = False,
    preset: o.Preset = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    no_hierarchy: o.NoHierarchy = False,
    no_metadata: o.NoMetadata = False,
    ignore_metadata: o.IgnoreMetadata = None,
    settings: o.Set = None,
    min_confidence: o.MinConfidence = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn a model from documents of which a few carry labels.

    Example: `himecat fit papers.jsonl --taxonomy tree.yaml --metadata authors,tags -o model`
    """
    arguments = method_arguments(preset, no_hierarchy, no_metadata, ignore_metadata, settings)
    from himecat.files import refuse_existing

    refuse_existing(output, overwrite, "The model")
    from himecat.estimator import HiMeCat
    from himecat.progress import Progress

    progress = Progress(quiet=quiet)
    model = HiMeCat(
        taxonomy=taxonomy,
        metadata=names(metadata),
        text=names(text),
        label_field=labels,
        id_field=id_field,
        skip_bad=skip_bad,
        allow_empty_leaves=allow_empty_leaves,
        min_confidence=min_confidence or 0.0,
        random_state=seed,
        threads=threads,
        **arguments,
    )
    model.fit(documents, progress=progress)
    model.save(output, overwrite=overwrite)
    if not quiet:
        typer.echo(
            f"Learned {model.taxonomy_.n_leaves} leaves from {len(model.space_.documents)} documents; "
            f"the model is in {output}. Next: himecat predict {output} {documents} -o predictions.jsonl"
        )


def evaluate(
    dataset: Annotated[
        Path,
        typer.Argument(help="Dataset folder: documents, label_hier.txt, doc_id.txt, meta_dict.json."),
    ],
    draws: Annotated[int, typer.Option(min=1, help="Draws of the labelled documents; 0 is doc_id.txt.")] = 5,
    per_leaf: Annotated[int, typer.Option(min=1, help="Labelled documents per leaf in draws 1, 2, ...")] = 5,
    metadata: o.Metadata = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    allow_empty_leaves: o.AllowEmpty = False,
    preset: o.Preset = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    no_hierarchy: o.NoHierarchy = False,
    no_metadata: o.NoMetadata = False,
    ignore_metadata: o.IgnoreMetadata = None,
    settings: o.Set = None,
    min_confidence: o.MinConfidence = None,
    json: o.Json = None,
    quiet: o.Quiet = False,
) -> None:
    """Fit on a few labelled documents per leaf, score all the others, for several draws.

    Example: `himecat evaluate datasets/arxiv --draws 5 --preset paper --json scores.json`
    """
    from himecat.experiments import evaluate as run
    from himecat.experiments import spread, summarise
    from himecat.progress import Progress

    arguments: dict[str, Any] = {
        **method_arguments(preset, no_hierarchy, no_metadata, ignore_metadata, settings),
        "metadata": names(metadata) if metadata is not None else None,
        "text": names(text),
        "label_field": labels,
        "id_field": id_field,
        "allow_empty_leaves": allow_empty_leaves,
        "min_confidence": min_confidence or 0.0,
        "random_state": seed,
        "threads": threads,
    }
    progress = Progress(quiet=quiet)

    def told(result: DrawResult) -> None:
        progress.say(_line(f"draw {result.draw}", result.as_dict()))

    results = run(dataset, draws=range(draws), per_leaf=per_leaf, arguments=arguments, quiet=quiet, told=told)
    mean, deviation = summarise(results), summarise(results, spread)
    if json is None or str(json) != "-":
        _table([(f"draw {r.draw}", r.as_dict()) for r in results] + [("mean", mean), ("sd", deviation)])
    if json is not None:
        write_json(json, {
            "dataset": dataset.name or str(dataset.resolve().name),
            "arguments": {k: v for k, v in arguments.items() if v is not None},
            "draws": [result.as_dict() for result in results],
            "mean": mean,
            "sd": deviation,
        })  # fmt: skip


def _figures(row: dict[str, Any]) -> list[str]:
    scores = [f"{row[part][key]:.4f}" for part in ("leaf", "overall") for key in ("micro", "macro")]
    return [*scores, f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", f"{row['peak_rss_mb']:.0f}"]


def _line(name: str, row: dict[str, Any]) -> str:
    leaf, leaf_macro, overall, overall_macro, seconds, cpu, memory = _figures(row)
    return (
        f"{name}: leaf F1 {leaf} / {leaf_macro}, overall F1 {overall} / {overall_macro} (micro / macro), "
        f"{seconds} s, {cpu} CPU-s, {memory} MB"
    )


def _table(rows: list[tuple[str, dict[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for column in ("leaf\nmicro", "\nmacro", "overall\nmicro", "\nmacro", "\ns", "\nCPU-s", "peak\nMB"):
        table.add_column(column, justify="right")
    for name, row in rows:
        table.add_row(name, *_figures(row), style="bold" if name == "mean" else None)
    Console().print(table)
