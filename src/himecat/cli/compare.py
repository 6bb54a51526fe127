"""`himecat compare`, `himecat ablate` and `himecat sweep`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from himecat.cli import options as o
from himecat.cli.compare_output import Outputs, show, write_outputs
from himecat.cli.options import metadata_names, names, parse_value
from himecat.errors import UsageError
from himecat.runtime.terminal import tell

if TYPE_CHECKING:
    from himecat.compare.protocol.compare import Comparison
    from himecat.compare.protocol.runner import Conditions
    from himecat.runtime.progress import Progress

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATASET",
        help="Files with labelled documents, or dataset folders, each with documents, label_hier.txt, doc_id.txt, "
        "meta_dict.json.",
    ),
]
Seeds = Annotated[int, o.option(o.RUNS, "Runs per draw, from seed 0 on.", min=1, metavar="N")]
Limit = Annotated[
    int | None,
    o.option(
        o.RUNS,
        "For a quick look, only N documents: the labelled ones and a random part of the others.",
        min=1,
        metavar="N",
    ),
]
Jobs = Annotated[int, o.option(o.RUNS, "Runs at the same time; they share the cores.", min=1, metavar="N")]
Cache = Annotated[
    Path | None,
    o.option(o.RUNS, "Where results are cached; the user's cache folder by default.", metavar="FOLDER"),
]
Encoder = Annotated[
    str | None,
    o.option(
        o.METHOD,
        "Sentence encoder or transformer for the systems that need one: a local folder, an installed "
        "package or a model name.",
        metavar="PATH-OR-NAME",
    ),
]
Method = Annotated[
    str | None, o.option(o.METHOD, "`paper` or `default`.", "--method", "--preset", metavar="NAME")
]
Markdown = Annotated[Path | None, o.option(o.OUTPUT, "Write the tables as Markdown.", metavar="FILE")]
Latex = Annotated[Path | None, o.option(o.OUTPUT, "Write the tables as LaTeX.", metavar="FILE")]
Csv = Annotated[Path | None, o.option(o.OUTPUT, "Write the table as CSV, with all figures.", metavar="FILE")]
Report = Annotated[Path | None, o.option(o.OUTPUT, "Write a page to look at, report.html.", metavar="FILE")]
Figures = Annotated[Path | None, o.option(o.OUTPUT, "Write the figures as PNG and SVG.", metavar="FOLDER")]


def compare(
    datasets: Folders,
    systems: Annotated[
        str | None,
        o.option(
            o.METHOD,
            "Names of systems and .py files with your own, separated by commas; all by default.",
            metavar="A,B",
        ),
    ] = None,
    against: Annotated[
        str | None,
        o.option(
            o.METHOD, "The system that the others are tested against; himecat by default.", metavar="NAME"
        ),
    ] = None,
    encoder: Encoder = None,
    settings: Annotated[
        list[str] | None,
        o.option(
            o.METHOD,
            "A parameter of a system, e.g. --set bert.epochs=3; may be repeated.",
            "--set",
            metavar="SYSTEM.NAME=VALUE",
        ),
    ] = None,
    ablations: Annotated[
        bool, o.option(o.METHOD, "Also run our systems without each of their parts.", "--ablations")
    ] = False,
    sweeps: Annotated[
        bool, o.option(o.METHOD, "Also run the published method with other values of p and beta.", "--sweeps")
    ] = False,
    draws: o.Draws = 5,
    seeds: Seeds = 1,
    per_leaf: o.FilePerLeaf = None,
    limit: Limit = None,
    jobs: Jobs = 1,
    cache: Cache = None,
    taxonomy: o.Tree = None,
    metadata: o.Metadata = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    separator: o.Separator = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    bound: o.Bound = None,
    report: Report = None,
    figures: Figures = None,
    json: o.Json = None,
    markdown: Markdown = None,
    latex: Latex = None,
    csv: Csv = None,
    quiet: o.Quiet = False,
) -> None:
    """Run all systems on the same draws of datasets and say which differ by more than chance.

    Of a file: cross-validation over its labels, --draws being the number of folds, or with --per-leaf draws of so
    many. Results are cached: a comparison that was interrupted continues where it was.

    Example: `himecat compare datasets/arxiv --draws 5 --report report.html`
    """
    outputs = Outputs(json, markdown, latex, csv, report, figures)
    parameters = _parameters(settings or [])
    from himecat.compare.protocol.compare import compare as run
    from himecat.input.dataset import open_dataset
    from himecat.input.documents import Fields
    from himecat.input.kinds import named as metadata_kinds
    from himecat.input.reading import Reading

    kinds = metadata_kinds(metadata_names(metadata))
    named = Fields(
        tuple(names(text)),
        kinds.names,
        o.name_or_names(labels),
        id_field,
        reading=Reading.given(sheet, delimiter, separator),
        kinds=kinds.kinds,
    )

    def own(one: Path) -> dict[str, Any]:
        """How one dataset is read, and whether its draws are folds."""
        alone, fields = one.is_file(), named
        if metadata is None and not alone:
            fields = replace(named, metadata=open_dataset(one).metadata)
        tree = None if taxonomy is None else str(taxonomy)
        # Where nothing was said, results are cached as they always were.
        asked = alone or named != Fields()
        return {
            "fields": fields if asked else None,
            "taxonomy": tree,
            "folds": alone and per_leaf is None,
        }

    def on_one(conditions: Conditions, progress: Progress) -> Comparison:
        return run(
            conditions,
            names(systems),
            parameters=parameters,
            against=against,
            ablations=ablations,
            sweeps=sweeps,
            progress=progress,
        )

    given = (draws, seeds, per_leaf or 5, limit, encoder, jobs, cache)
    _run(outputs, datasets, given, on_one, quiet, own)


def ablate(
    datasets: Folders,
    method: Method = None,
    draws: o.Draws = 5,
    seeds: Seeds = 1,
    per_leaf: o.PerLeaf = 5,
    limit: Limit = None,
    jobs: Jobs = 1,
    cache: Cache = None,
    bound: o.Bound = None,
    report: Report = None,
    figures: Figures = None,
    json: o.Json = None,
    markdown: Markdown = None,
    latex: Latex = None,
    csv: Csv = None,
    quiet: o.Quiet = False,
) -> None:
    """Run our method without the tree, without metadata, and without each type of it.

    Example: `himecat ablate datasets/arxiv --method paper --markdown table3.md`
    """
    from himecat.compare.protocol.compare import ablate as run

    outputs = Outputs(json, markdown, latex, csv, report, figures)
    given = (draws, seeds, per_leaf, limit, None, jobs, cache)
    _run(outputs, datasets, given, lambda one, shown: run(one, method=method, progress=shown), quiet)


def sweep(
    datasets: Folders,
    parameter: Annotated[str, o.option(o.METHOD, "Which parameter.", metavar="p|beta")],
    values: Annotated[
        str | None,
        o.option(o.METHOD, "Its values, separated by commas; those of the paper by default.", metavar="A,B"),
    ] = None,
    method: Method = "paper",
    draws: o.Draws = 5,
    seeds: Seeds = 1,
    per_leaf: o.PerLeaf = 5,
    limit: Limit = None,
    jobs: Jobs = 1,
    cache: Cache = None,
    bound: o.Bound = None,
    report: Report = None,
    figures: Figures = None,
    json: o.Json = None,
    markdown: Markdown = None,
    latex: Latex = None,
    csv: Csv = None,
    quiet: o.Quiet = False,
) -> None:
    """Run our method with several values of p (dimensions) or beta (synthetic documents per category).

    Example: `himecat sweep datasets/arxiv --parameter beta --figures figures`
    """
    from himecat.compare.protocol.compare import sweep as run

    outputs = Outputs(json, markdown, latex, csv, report, figures)
    chosen = [_whole_number(value) for value in names(values)]

    def on_one(conditions: Conditions, progress: Progress) -> Comparison:
        return run(conditions, parameter, method=method, values=chosen, progress=progress)

    given = (draws, seeds, per_leaf, limit, None, jobs, cache)
    _run(outputs, datasets, given, on_one, quiet)


def _run(
    outputs: Outputs,
    datasets: Sequence[Path],
    given: tuple[Any, ...],
    run: Callable[[Conditions, Progress], Comparison],
    quiet: bool,
    own: Callable[[Path], dict[str, Any]] = lambda _: {},
) -> None:
    """Run on each dataset, show and write the results.

    The further fields of `Conditions` are `given`, and those that `own` gives for each dataset.
    """
    outputs.check()
    from himecat.compare.protocol import tables
    from himecat.compare.protocol.compare import on_each
    from himecat.compare.protocol.runner import Conditions
    from himecat.compare.protocol.table_styles import render
    from himecat.runtime.progress import Progress

    progress = Progress(quiet=quiet)
    conditions = [Conditions(one, *given, **own(one)) for one in datasets]
    found = on_each(conditions, lambda one: run(one, progress), progress=progress)
    if not outputs.to_stdout:
        for table in tables.comparison_tables(found.runs, found.ours):
            show(table, found.ours)
        for table in tables.ablation_tables(found.ablations):
            show(table, "the full system")
        for table in tables.sweep_tables(found.sweeps):
            show(table)
    # Shown even with --quiet, and again without it: many lines may stand between.
    for sentence in (*found.left_out, *found.failures):
        tell(sentence)

    def styled(style: str) -> str:
        shown = [] if style == "csv" else tables.dataset_tables(found.statistics)
        shown += tables.comparison_tables(found.runs, found.ours)
        # One CSV file has one kind of rows: those that the command is about.
        if style != "csv" or not found.runs:
            shown += [*tables.ablation_tables(found.ablations), *tables.sweep_tables(found.sweeps)]
        return render(shown, style)

    write_outputs(outputs, found, styled, conditions, progress)


def _parameters(settings: list[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for written in settings:
        name, equals, value = written.partition("=")
        system, dot, parameter = name.strip().rpartition(".")
        if not equals or not dot or not system or not parameter:
            raise UsageError(f"--set takes SYSTEM.NAME=VALUE, e.g. --set bert.epochs=3, not {written!r}.")
        found.setdefault(system, {})[parameter.replace("-", "_")] = parse_value(value.strip())
    return found


def _whole_number(written: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise UsageError(f"--values takes whole numbers separated by commas, not {written!r}.") from None
