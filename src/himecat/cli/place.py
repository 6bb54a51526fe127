"""`himecat predict`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from himecat.cli import options as o
from himecat.cli.options import counted, names
from himecat.cli.parts import Address, header_of, is_folder, one_source, place_parts
from himecat.cli.places import check_places
from himecat.cli.report import Placed, check_report, write_page
from himecat.cli.written import place, written
from himecat.errors import UsageError
from himecat.runtime.terminal import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from himecat.classifier.assignments import Assignments
    from himecat.estimator import HiMeCat
    from himecat.input.builder import Origin

    Write = Callable[[Sequence[Origin], Assignments], None]

# Other leaves that are told in a table, where nobody says how many.
_TOP_OF_TABLES = 2


def predict(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Model folder written by `himecat fit`.", parser=place),
    ],
    documents: Annotated[
        list[Path],
        typer.Argument(
            metavar="DOCS...",
            help="JSONL, CSV, Excel or Parquet files (.gz and .zst too) or globs of them, folders of Parquet, or a "
            "folder of texts.",
            parser=place,
        ),
    ],
    *,
    text: Annotated[
        str | None, o.option(o.INPUT, "Text fields, if not named as in fit.", metavar="A,B")
    ] = None,
    labels: Annotated[
        str | None, o.option(o.INPUT, "Field with the labels, if not as in fit.", "--labels", metavar="NAME")
    ] = None,
    id_field: Annotated[
        str | None, o.option(o.INPUT, "Field with the id, if not as in fit.", "--id", metavar="NAME")
    ] = None,
    ignore_labels: Annotated[
        bool,
        o.option(o.INPUT, "Place documents that carry a label by the model, too.", "--ignore-labels"),
    ] = False,
    separator: Annotated[
        str | None,
        o.option(
            o.INPUT,
            "What separates levels in the labels of DOCS and in the paths of a table, if not as in fit.",
            metavar="TEXT",
        ),
    ] = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    online: o.Online = False,
    min_confidence: o.MinConfidence = None,
    threads: o.Threads = None,
    output: Annotated[
        Path,
        o.option(
            o.OUTPUT,
            "File to write: .xlsx, .csv, .tsv or .parquet for a table with the documents' own columns, .ls.json for "
            "tasks of Label Studio, otherwise one JSON line per document; - for standard output. A folder (out/) "
            "gets Parquet parts, and a run that was stopped goes on there.",
            "--output",
            "-o",
            metavar="OUT",
            parser=place,
        ),
    ],
    engine: Annotated[
        str,
        o.option(
            o.RUNS, "Where a folder of parts is made: local, in processes here, or ray.", metavar="NAME"
        ),
    ] = "local",
    address: Address = None,
    top: Annotated[
        int | None,
        o.option(
            o.OUTPUT,
            "How many other leaves to tell of each document: 2 in a table, else 0.",
            "--top",
            min=0,
            max=100,
            metavar="K",
        ),
    ] = None,
    report: o.Page = None,
    quiet: o.Quiet = False,
) -> None:
    """Place documents on the paths of the tree, in order: a table, or one JSON line each.

    A model of several categories per document gives a set of paths with a probability each, the surest first.
    A document that carries a label stays there, unless --ignore-labels. With --skip-bad a document that cannot be
    used gets an empty path.

    Example: `himecat predict model papers.csv -o sorted.xlsx`
    """
    import numpy as np

    from himecat.batch.placer import Placer
    from himecat.input.problems import Problems
    from himecat.output.label_studio import is_tasks
    from himecat.output.tables import is_table
    from himecat.runtime.progress import Progress

    progress = Progress(quiet=quiet)
    if is_folder(output):
        if report is not None or id_field is not None:
            raise UsageError(
                f"{'--report' if report else '--id'} goes with a file of predictions, not with a folder."
            )
        place_parts(
            Placer(
                written(model),
                top=_TOP_OF_TABLES if top is None else top,
                text=None if text is None else tuple(names(text)),
                label_field=None if labels is None else _one_or_more(labels),
                separator=separator,
                min_confidence=min_confidence,
                ignore_labels=ignore_labels,
                skip_bad=skip_bad,
                online=online,
            ),
            documents,
            output,
            progress,
            engine=engine,
            address=address,
            workers=threads,
            sheet=sheet,
            delimiter=delimiter,
        )
        return
    if engine != "local" or address is not None:
        option = "--address" if engine == "local" else f"--engine {engine}"
        raise UsageError(f"{option} writes a folder of parts: -o out/.")
    source = one_source(documents)
    first = source if isinstance(source, Path) else source[0]
    if report is not None and source is not first:
        raise UsageError("--report goes with one file of documents.")
    check_report(report, first)
    fitted = o.open_model(model, online=online, quiet=quiet)
    # The folder of a model may name another one.
    outputs = {"--output": output} if report is None else {"--output": output, "--report": report}
    check_places(outputs, [] if fitted.encoder is None else [os.fspath(fitted.encoder)])
    changes: dict[str, Any] = {
        "threads": threads,
        "skip_bad": skip_bad,
        "sheet": sheet,
        "delimiter": delimiter,
    }
    named = None if labels is None else o.name_or_names(labels)
    given = {"id_field": id_field, "label_field": named, "min_confidence": min_confidence}
    changes |= {name: value for name, value in given.items() if value is not None}
    if text is not None:
        changes["text"] = names(text)
    fitted.set_params(**changes)
    if separator is not None:
        fitted.set_separator(separator)
    problems = Problems()
    count = skipped = unknown = kept = 0
    gathered = Placed()
    notes: list[str] = []
    table, tasks = is_table(output), is_tasks(output)
    if top is None:
        top = _TOP_OF_TABLES if table else 0
    if table:
        opened = _open_table(fitted, source, output, top, ignore_labels, notes)
    elif tasks:
        opened = _open_tasks(fitted, model, output, top, notes)
    else:
        opened = _open_lines(output, top, min_confidence is not None)
    guess = table or min_confidence is not None
    with opened as write:
        for origins, corpus, placed in fitted.iter_assignments(
            source,
            problems,
            best=top + 1 if top or guess else 0,
            keep_labels=not ignore_labels,
            keep_records=table or tasks,
        ):
            write(origins, placed)
            if report is not None:
                gathered.add([origin.id for origin in origins], placed)
            usable = np.array([origin.usable for origin in origins])
            count += int(usable.sum())
            skipped += int((~usable).sum())
            unknown += int((usable & (corpus.tokens.lengths == 0)).sum())
            kept += 0 if placed.labelled is None else int(placed.labelled.sum())
        if not skip_bad or problems.has_fatal:
            problems.raise_errors()
    for problem in problems:
        progress.say(f"{problem.severity if problem.severity != 'error' else 'skipped'}: {problem}")
    if problems.hidden("error"):
        progress.say(f"skipped: ... and {problems.hidden('error')} more.")
    if unknown:
        progress.say(
            f"note: the model knows no word of {counted(unknown)}: what places them is their metadata, or how "
            "frequent the categories are."
        )
    for note in notes:
        progress.say(f"note: {note}")
    if report is not None:
        write_page(report, fitted, first, gathered, fitted=False, progress=progress)
    where = "" if str(output) == o.STDOUT else f"; the paths are in {output}"
    left_out = f", skipped {skipped:,}" if skipped else ""
    stay = f", {kept:,} of them by their own label" if kept else ""
    progress.say(f"Placed {counted(count)}{stay}{left_out}{where}.")


def _one_or_more(written: str) -> str | tuple[str, ...]:
    found = o.name_or_names(written)
    return found if isinstance(found, str) else tuple(found)


@contextmanager
def _open_lines(output: Path, top: int, guess: bool) -> Iterator[Write]:
    import sys
    from contextlib import nullcontext

    from himecat.runtime.files import atomic_file

    ends: dict[int, tuple[str, str, int]] = {}
    to_stdout = str(output) == o.STDOUT
    with nullcontext(sys.stdout) if to_stdout else atomic_file(output, what="The predictions") as stream:

        def write(origins: Sequence[Origin], placed: Assignments) -> None:
            ids = (origin.id for origin in origins)
            stream.writelines(prediction_lines(ids, placed, ends, top=top, guess=guess))

        yield write


@contextmanager
def _open_table(
    fitted: HiMeCat,
    documents: Path | list[Path],
    output: Path,
    top: int,
    ignore_labels: bool,
    notes: list[str],
) -> Iterator[Write]:
    from himecat.output.cells import Cells
    from himecat.output.columns import PlacedColumns
    from himecat.output.tables import open_table

    header = header_of(documents, output.suffix.lower() == ".parquet", fitted.fields().reading)
    columns = PlacedColumns(
        fitted.taxonomy_,
        header.names,
        sets=fitted.gives_sets,
        separator=fitted.joint,
        top=top,
        guess=fitted.min_confidence > 0 and not fitted.gives_sets,
        labelled=not ignore_labels and {*header.names}.issuperset(fitted.fields().label_fields),
        none=fitted.knows_nowhere,
    )
    cells = Cells(fitted.joint, fitted.fields().label_fields)
    with open_table(output, header, columns.added, cells) as table:

        def write(origins: Sequence[Origin], placed: Assignments) -> None:
            rows = columns.rows(placed, [origin.id for origin in origins])
            for origin, row in zip(origins, rows, strict=True):
                table.write(origin.record, row)

        yield write
    notes += cells.notes()


@contextmanager
def _open_tasks(fitted: HiMeCat, model: Path, output: Path, top: int, notes: list[str]) -> Iterator[Write]:
    from himecat.input.label_studio import DEFAULT_LABELS
    from himecat.model_folder.files import digest_of
    from himecat.output.label_studio import open_tasks

    fields = fitted.fields()
    control = DEFAULT_LABELS if fields.levels else fields.label_fields[0]
    digest = digest_of(model)
    known = digest.decode() if digest.isalnum() else digest.hex()
    with open_tasks(
        output,
        control=control,
        text_field=fields.text[0],
        id_field=fields.id,
        version=f"{model.resolve().name} {known[:8]}",
        top=top,
    ) as tasks:
        yield tasks.write
    notes.append(
        f'Label Studio shows them in a project whose interface has <Taxonomy name="{control}" '
        f'toName="{fields.text[0]}">.'
    )


def prediction_lines(
    ids: Iterable[str],
    placed: Assignments,
    ends: dict[int, tuple[str, str, int]],
    *,
    top: int = 0,
    guess: bool = False,
) -> Iterator[str]:
    """One line per document; what stands before and after its confidences is kept in `ends`, by the node."""
    from himecat.classifier.set_assignments import SetAssignments
    from himecat.output.columns import not_a_number

    if isinstance(placed, SetAssignments):
        for row, name in enumerate(ids):
            chances = list(placed.path_confidences(row))
            if any(chance != chance for chance in chances):
                raise not_a_number(name)
            line = f'"paths": {plain_json([list(path) for path in placed.paths(row)])}, "confidences": {chances!r}'
            yield f'{{"id": {plain_json(name)}, {line}{"".join(_further(placed, row, top, False))}}}\n'
        return
    nodes, confidences = placed.nodes.tolist(), placed.rounded.tolist()
    nowhere = None if placed.rounded_none is None else placed.rounded_none.tolist()
    more = top or guess or placed.labelled is not None
    for row, (name, node) in enumerate(zip(ids, nodes, strict=True)):
        if node not in ends:
            leaf = plain_json(placed.taxonomy.is_leaf(node))
            path = plain_json(list(placed.path(row)))
            ends[node] = (
                f', "path": {path}, "confidence": [',
                f'], "leaf": {leaf}',
                placed.taxonomy.depths[node],
            )
        before, after, depth = ends[node]
        sure = ", ".join(map(repr, confidences[row][:depth]))
        # Of numbers only nan and inf have that letter, and JSON has neither.
        if "n" in sure:
            raise not_a_number(name)
        none = "" if nowhere is None else f', "none": {nowhere[row]!r}'
        if "nan" in none:
            raise not_a_number(name)
        further = "".join(_further(placed, row, top, guess)) if more else ""
        yield f'{{"id": {plain_json(name)}{before}{sure}{after}{none}{further}}}\n'


def _further(placed: Assignments, row: int, top: int, guess: bool) -> Iterator[str]:
    """What is told of a document only where it was asked for, or where it kept its label."""
    from himecat.output.columns import cut_short

    leaves = [] if placed.best is None else placed.best[row].tolist()
    told = [
        [list(placed.taxonomy.path(leaf)), float(sure)]
        for leaf, sure in zip(leaves, placed.rounded_best[row].tolist(), strict=True)
        if leaf
    ]
    if guess and cut_short(placed, row):
        yield f', "guess": {plain_json(told[0][0])}, "guess_confidence": {told[0][1]!r}'
    if top:
        yield f', "alternatives": {plain_json(told[1 : top + 1])}'
    if placed.labelled is not None and placed.labelled[row]:
        yield ', "labelled": true'
