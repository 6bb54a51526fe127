"""The options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from himecat.errors import UsageError

# Panels keep the everyday options apart from the many hyperparameters in `--help`.
_INPUT, _METHOD, _OUTPUT = "Input", "Method", "Output"

Documents = Annotated[Path, typer.Argument(help="JSONL, CSV, TSV or Parquet file (.gz and .zst too).")]
Model = Annotated[Path, typer.Argument(help="Model folder written by `himecat fit`.")]
Label = Annotated[str, typer.Argument(help="A category: its name, or its path a/b/c.")]
Tree = Annotated[
    Path | None,
    typer.Option(
        "--taxonomy",
        help="The category tree: `parent child ...` lines, or nested YAML or JSON. "
        "Without it, the tree that the labels span.",
        rich_help_panel=_INPUT,
    ),
]
Metadata = Annotated[
    str | None, typer.Option(help="Metadata fields, separated by commas.", rich_help_panel=_INPUT)
]
Text = Annotated[str, typer.Option(help="Text fields, separated by commas.", rich_help_panel=_INPUT)]
LabelField = Annotated[str, typer.Option("--labels", help="Field with the labels.", rich_help_panel=_INPUT)]
IdField = Annotated[str, typer.Option("--id", help="Field with the id.", rich_help_panel=_INPUT)]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out documents that cannot be used.", rich_help_panel=_INPUT),
]
AllowEmpty = Annotated[
    bool,
    typer.Option(
        "--allow-empty-leaves",
        help="Go on when a leaf has no labelled document.",
        rich_help_panel=_INPUT,
    ),
]
Preset = Annotated[
    str | None, typer.Option(help="`paper`: the published method as it is.", rich_help_panel=_METHOD)
]
Seed = Annotated[
    int, typer.Option(min=0, help="The same seed gives the same model.", rich_help_panel=_METHOD)
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads; all there are by default.", rich_help_panel=_METHOD),
]
NoHierarchy = Annotated[
    bool,
    typer.Option("--no-hierarchy", help="Leave the tree out of the space.", rich_help_panel=_METHOD),
]
NoMetadata = Annotated[
    bool,
    typer.Option("--no-metadata", help="Leave all metadata out of the space.", rich_help_panel=_METHOD),
]
IgnoreMetadata = Annotated[
    str | None,
    typer.Option(help="Metadata fields to leave out, separated by commas.", rich_help_panel=_METHOD),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any hyperparameter, e.g. --set beta=100; may be repeated.",
        rich_help_panel=_METHOD,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show results only.", rich_help_panel=_OUTPUT)]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Write the result as JSON; - for standard output.", rich_help_panel=_OUTPUT),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace what is there.", rich_help_panel=_OUTPUT),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Cut a path above the first category less sure than this.",
        rich_help_panel=_METHOD,
    ),
]


def names(listed: str | None) -> list[str]:
    """Split a comma-separated list of field names.

    Examples
    --------
    >>> names("authors, tags"), names(None)
    (['authors', 'tags'], [])
    """
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def method_arguments(
    preset: str | None,
    no_hierarchy: bool,
    no_metadata: bool,
    ignore_metadata: str | None,
    settings: list[str] | None,
) -> dict[str, Any]:
    """The estimator's arguments that say how to learn.

    Examples
    --------
    >>> method_arguments("paper", True, False, None, ["beta=10", "classifier=mean-logistic"])
    {'preset': 'paper', 'use_hierarchy': False, 'beta': 10, 'classifier': 'mean-logistic'}
    """
    from himecat.parameters import NAMES, check_value

    found: dict[str, Any] = {}
    if preset is not None:
        found["preset"] = preset
    if no_hierarchy:
        found["use_hierarchy"] = False
    if no_metadata:
        found["use_metadata"] = False
    if ignore_metadata:
        found["ignore_metadata"] = names(ignore_metadata)
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in NAMES:
            raise UsageError(f"--set takes NAME=VALUE with one of {', '.join(NAMES)}, not {setting!r}.")
        found[name] = check_value(name, _value(value.strip()))
    return found


def _value(written: str) -> Any:
    try:
        return json.loads(written)
    except json.JSONDecodeError:
        if "," in written:
            return [_value(part) for part in written.split(",")]
        return {"True": True, "False": False}.get(written, written)


def write_json(target: Path, result: Any) -> None:
    """Write a result to a file, whole or not at all, or to standard output."""
    text = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    if str(target) == "-":
        typer.echo(text, nl=False)
        return
    from himecat.files import write_whole

    write_whole(target, text, what="The result")
