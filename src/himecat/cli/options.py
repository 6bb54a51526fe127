"""The options that several commands share."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from himecat.errors import UsageError
from himecat.runtime.bounds import set_bounds
from himecat.runtime.terminal import plain_json, tell, write

if TYPE_CHECKING:
    from himecat.estimator import HiMeCat

# Panels keep the everyday options apart from the many hyperparameters in `--help`.
INPUT, METHOD, RUNS, OUTPUT = "Input", "Method", "Runs", "Output"


def option(panel: str, explanation: str, *flags: str, metavar: str = "", **limits: Any) -> Any:
    """An option as it stands in a panel of `--help`; an empty `metavar` keeps the word "bool" out of a switch's.

    Examples
    --------
    >>> option(OUTPUT, "Show the scores as JSON.", "--json", metavar="FILE").rich_help_panel
    'Output'
    """
    return typer.Option(*flags, metavar=metavar, help=explanation, rich_help_panel=panel, **limits)


Documents = Annotated[
    Path,
    typer.Argument(
        metavar="DOCS", help="JSONL, CSV, Excel or Parquet file (.gz and .zst too), or a folder of texts."
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder written by `himecat fit`.")]
Label = Annotated[str, typer.Argument(metavar="LABEL", help="A category: its name, or its path a/b/c.")]
Tree = Annotated[
    Path | None,
    option(
        INPUT,
        "The category tree: nested YAML or JSON, `parent child ...` lines, one path per line, or a table of levels. "
        "Without it, the tree that the labels span.",
        "--taxonomy",
        metavar="FILE",
    ),
]
Metadata = Annotated[
    str | None,
    option(
        INPUT,
        "Metadata fields, separated by commas. What their values are is found, or said: `created:month`, "
        "`price:number`, `tags:list(;)`, `zip:name`.",
        metavar="A,B",
    ),
]
Text = Annotated[str, option(INPUT, "Text fields, separated by commas.", metavar="A,B")]
LabelField = Annotated[
    str,
    option(
        INPUT, "Field with the labels; several are the levels: level1,level2.", "--labels", metavar="NAME"
    ),
]
Separator = Annotated[
    str | None,
    option(
        INPUT,
        "What separates levels in a label, such as '>'; `none`: nothing. Found by default.",
        metavar="TEXT",
    ),
]
Sheet = Annotated[str | None, option(INPUT, "Sheet of a workbook; the first by default.", metavar="NAME")]
Delimiter = Annotated[
    str | None,
    option(INPUT, "What separates the columns of a CSV file; found by default.", metavar="CHARACTER"),
]
FolderLabels = Annotated[
    bool, option(INPUT, "The sub-folders of a folder of texts are its labels.", "--labels-from-folders")
]
IdField = Annotated[str, option(INPUT, "Field with the id.", "--id", metavar="NAME")]
SkipBad = Annotated[
    bool, option(INPUT, "Leave out documents that cannot be used, and say which.", "--skip-bad")
]
AllowEmpty = Annotated[
    bool,
    option(INPUT, "Go on when a leaf has neither labelled documents nor keywords.", "--allow-empty-leaves"),
]
Several = Annotated[
    bool | None,
    option(
        INPUT,
        "Documents may belong to several categories, and get a set of paths; found from the labels by default.",
        "--several/--no-several",
    ),
]
Keywords = Annotated[
    Path | None,
    option(
        INPUT,
        "YAML or JSON with words for categories, beside or instead of labelled documents: "
        "`physics: quantum, laser`.",
        metavar="FILE",
    ),
]
Encoder = Annotated[
    str | None,
    option(
        METHOD,
        "Sentence encoder used as one more view: a local folder, an installed package or a model name.",
        metavar="PATH-OR-NAME",
    ),
]
Online = Annotated[
    bool,
    option(
        METHOD,
        "Fetch the encoder that the model names from its hub if it is not on this machine.",
        "--online",
    ),
]
Tokenizer = Annotated[
    str,
    option(
        METHOD,
        "What splits texts into words: `unicode`, `subwords`; for scripts without spaces `ngrams`, `dictionary`.",
        metavar="NAME",
    ),
]
Method = Annotated[
    str | None,
    option(METHOD, "`paper`: the published method as it is.", "--method", "--preset", metavar="NAME"),
]
Seed = Annotated[int, option(METHOD, "The same seed gives the same model.", min=0, metavar="N")]
Threads = Annotated[
    int | None,
    option(METHOD, "Threads, all there are by default; the result is the same.", min=1, metavar="N"),
]
NoHierarchy = Annotated[
    bool, option(METHOD, "Learn each leaf without the categories around it in the tree.", "--no-hierarchy")
]
NoMetadata = Annotated[bool, option(METHOD, "Leave all metadata out of the space.", "--no-metadata")]
IgnoreMetadata = Annotated[
    str | None,
    option(METHOD, "Metadata fields to leave out of the space, separated by commas.", metavar="A,B"),
]
Decides = Annotated[
    str | None,
    option(
        METHOD,
        "Metadata fields whose values decide the category, separated by commas; otherwise trust is learned.",
        metavar="A,B",
    ),
]
Set = Annotated[
    list[str] | None,
    option(
        METHOD,
        "Any hyperparameter of the method, e.g. --set em_rounds=3; may be repeated.",
        "--set",
        metavar="NAME=VALUE",
    ),
]
MinConfidence = Annotated[
    float | None,
    option(
        METHOD,
        "Where the leaf is less sure than this, end at the deepest category that is not.",
        min=0.0,
        max=1.0,
        metavar="P",
    ),
]


def _raise_bounds(written: list[str] | None) -> list[str] | None:
    for one in written or []:
        name, _, value = one.partition("=")
        set_bounds(**{name.strip(): value.strip()})
    return written


Bound = Annotated[
    list[str] | None,
    option(
        INPUT,
        "Raise a bound on the input, e.g. --bound line=64MB; may be repeated. Bounds: line, ratio, depth, label, "
        "nodes, memory.",
        "--bound",
        metavar="NAME=VALUE",
        callback=_raise_bounds,
    ),
]
Quiet = Annotated[bool, option(OUTPUT, "Show results and errors only.", "--quiet", "-q")]
Json = Annotated[
    Path | None, option(OUTPUT, "Write the result as JSON; - for standard output.", "--json", metavar="FILE")
]
Page = Annotated[
    Path | None,
    option(
        OUTPUT, "Write a page to look at: tree, counts, confidences, documents.", "--report", metavar="FILE"
    ),
]
Overwrite = Annotated[bool, option(OUTPUT, "Replace what is there.", "--overwrite")]
Draws = Annotated[
    int,
    option(RUNS, "How many draws of the labelled documents; the first is doc_id.txt.", min=1, metavar="N"),
]
PerLeaf = Annotated[int, option(RUNS, "Labelled documents per leaf in the other draws.", min=1, metavar="N")]
FilePerLeaf = Annotated[
    int | None,
    option(
        RUNS,
        "Labelled documents per leaf in the other draws, 5 by default; of a file, draws of so many instead of folds.",
        "--per-leaf",
        min=1,
        metavar="N",
    ),
]
Truth = Annotated[
    Path | None,
    option(
        INPUT, "Of a file of documents: a second file with the true labels, joined by id.", metavar="FILE"
    ),
]
STDOUT = "-"
"""Stands for standard output where a file is named."""


def draws_of(dataset: Path, draws: int, per_leaf: int | None, truth: Path | None = None) -> dict[str, Any]:
    """Which draws a command runs, and whether they are folds of the labels of a file.

    Examples
    --------
    >>> draws_of(Path("no/such/folder"), 2, None)
    {'draws': range(0, 2), 'per_leaf': 5, 'folds': False, 'truth': None}
    """
    alone = os.path.isfile(dataset)
    if truth is not None and (not alone or per_leaf is not None):
        raise UsageError("--truth goes with a file of documents, without --per-leaf.")
    folds = alone and per_leaf is None and truth is None
    if folds and draws < 2:
        raise UsageError("Cross-validation needs at least 2 folds: --draws 2.")
    return {
        "draws": range(1 if truth is not None else draws),
        "per_leaf": per_leaf or 5,
        "folds": folds,
        "truth": truth,
    }


def names(listed: str | None) -> list[str]:
    """Split a comma-separated list of field names.

    Examples
    --------
    >>> names("authors, tags"), names(None)
    (['authors', 'tags'], [])
    """
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def metadata_names(listed: str | None) -> list[str]:
    """Split a comma-separated list of metadata fields; the comma in `tags:list(,)` separates no fields.

    Examples
    --------
    >>> metadata_names("authors, tags:list(,), created:month")
    ['authors', 'tags:list(,)', 'created:month']
    """
    return [
        one.replace("\0", ",") for one in names(re.sub(r"(:\s*list\(\s*),(\s*\))", "\\1\0\\2", listed or ""))
    ]


def name_or_names(listed: str) -> str | tuple[str, ...]:
    """One field name, or the several of a comma-separated list.

    Examples
    --------
    >>> name_or_names("labels"), name_or_names("level1,level2")
    ('labels', ('level1', 'level2'))
    """
    found = tuple(names(listed))
    return found if len(found) > 1 else "".join(found)


def counted(number: int, thing: str = "document") -> str:
    """A number with the thing it counts.

    Examples
    --------
    >>> counted(1), counted(1200)
    ('1 document', '1,200 documents')
    """
    return f"{number:,} {thing}{'s' * (number != 1)}"


def method_arguments(
    method: str | None,
    no_hierarchy: bool,
    no_metadata: bool,
    ignore_metadata: str | None,
    settings: list[str] | None,
    decides: str | None = None,
) -> dict[str, Any]:
    """The estimator's arguments that say how to learn, checked before any work is done.

    Examples
    --------
    >>> method_arguments("paper", True, False, "year", ["beta=10", "classifier=mean-logistic"])
    {'method': Paper(classifier='mean-logistic', use_hierarchy=False, beta=10), 'ignore_metadata': ['year']}
    """
    from himecat.methods import resolve_method, with_values

    given: dict[str, Any] = {}
    if no_hierarchy:
        given["use_hierarchy"] = False
    if no_metadata:
        given["use_metadata"] = False
    for setting in settings or []:
        name, value = _setting(setting)
        given[name] = value
    found: dict[str, Any] = {"method": with_values(resolve_method(method), given)}
    if ignore_metadata:
        found["ignore_metadata"] = names(ignore_metadata)
    if decides:
        found["decides"] = names(decides)
    return found


def _setting(written: str) -> tuple[str, Any]:
    name, equals, value = written.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise UsageError(f"--set takes NAME=VALUE, e.g. --set em_rounds=3, not {written!r}.")
    plain = parse_value(value.strip())
    return name, [plain] if name == "filter_widths" and not isinstance(plain, list) else plain


def parse_value(written: str) -> Any:
    """The value that an option's text means: JSON, a list separated by commas, or the text itself.

    Examples
    --------
    >>> parse_value("0.5"), parse_value("2,3"), parse_value("kim-cnn")
    (0.5, [2, 3], 'kim-cnn')
    """
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        if "," in written:
            return [parse_value(part) for part in written.split(",")]
        return {"True": True, "False": False}.get(written, written)


def as_json(result: Any) -> str:
    """A result as indented JSON.

    Examples
    --------
    >>> as_json({})
    '{}\\n'
    """
    return plain_json(result, indent=2) + "\n"


def open_model(folder: Path, *, online: bool = False, quiet: bool = False) -> HiMeCat:
    """A fitted model, after telling what there is to know about its folder."""
    from himecat.estimator import HiMeCat

    model = HiMeCat.load(folder, online=online)
    for problem in () if quiet else model.problems_:
        tell(f"{problem.severity}: {problem}")
    return model


def write_json(target: Path, result: Any) -> None:
    """Write a result to a file, whole or not at all, or to standard output."""
    if str(target) == STDOUT:
        write(as_json(result))
        return
    from himecat.runtime.files import write_atomic

    write_atomic(target, as_json(result), what="The result")
