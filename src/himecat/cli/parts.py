"""What `himecat fit` and `himecat predict` do with many files, and where a folder of parts is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from himecat.cli import options as o
from himecat.cli.options import counted
from himecat.cli.written import written
from himecat.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from himecat.batch.placer import Placer
    from himecat.input.header import Header
    from himecat.input.reading import Reading
    from himecat.runtime.progress import Progress


Address = Annotated[
    str | None,
    o.option(
        o.RUNS,
        "The Ray cluster, HOST:PORT or auto; without it one is started on this machine.",
        metavar="ADDRESS",
    ),
]


def is_folder(output: Path) -> bool:
    """Whether the result is a folder of parts: the name ends in a slash, or is that of a folder."""
    name = written(output)
    return name.endswith(("/", "\\")) or "://" in name or output.is_dir()


def one_source(documents: Sequence[Path]) -> Path | list[Path]:
    """The documents of a single result: a path as it is, or the files of several arguments, globs and folders."""
    from himecat.batch.pieces import files_of

    found = files_of([written(path) for path in documents])
    if any("://" in path for path in found):
        raise UsageError("Documents at an address are placed into a folder of parts: -o out/.")
    if len(found) == 1:
        return Path(found[0])
    for path in found:
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder of texts, which is a source by itself: name it alone.")
        if not Path(path).is_file():
            raise DataError(f"{path}: the file is not there.")
    return [Path(path) for path in found]


def header_of(documents: Path | list[Path], types: bool, reading: Reading) -> Header:
    """The columns of one file, or of several: those of all of them, in the order in which they are met."""
    from himecat.input.header import read_header

    if isinstance(documents, Path):
        return read_header(documents, types=types, reading=reading)
    headers = [read_header(path, types=types, reading=reading) for path in documents]
    names = tuple(dict.fromkeys(name for header in headers for name in header.names))
    if all(header.schema is not None and header.schema.equals(headers[0].schema) for header in headers):
        return headers[0]
    found: dict[str, set[type]] = {name: set() for name in names}
    for header in headers:
        for name, kinds in (header.types or {name: {str} for name in header.names}).items():
            found[name] |= kinds
    return headers[0]._replace(names=names, schema=None, types=found if types else None)


def place_parts(
    placer: Placer, documents: Sequence[Path], output: Path, progress: Progress, **options: Any
) -> None:
    """Write a folder of parts, and say what became of the documents."""
    from himecat.batch.run import place_files

    folder = written(output)
    done = place_files(placer, [written(path) for path in documents], folder, progress=progress, **options)
    for problem in done.told:
        progress.say(f"{problem.severity if problem.severity != 'error' else 'skipped'}: {problem}")
    if done.hidden:
        progress.say(f"... and {done.hidden:,} more.")
    for note in done.notes:
        progress.say(f"note: {note}")
    counts = done.counts
    if counts.unknown:
        progress.say(
            f"note: the model knows no word of {counted(counts.unknown)}: what places them is their metadata, or how "
            "frequent the categories are."
        )
    stay = f", {counts.kept:,} of them by their own label" if counts.kept else ""
    left_out = f", skipped {counts.skipped:,}" if counts.skipped else ""
    before = f"; {done.before:,} parts were there before" if done.before else ""
    progress.say(
        f"Placed {counted(counts.documents)}{stay}{left_out} in {done.parts:,} parts{before}: {folder}"
    )


def source_to_fit(documents: Path, engine: str, address: str | None) -> Path | list[Path]:
    """The files of a glob or of a folder of Parquet; any other source as it is."""
    from himecat.batch.places import found_files, is_remote
    from himecat.input.folders import is_dataset

    if engine == "local" and address is not None:
        raise UsageError("--address is that of a Ray cluster: it goes with --engine ray.")
    given = written(documents)
    if is_remote(given):
        raise UsageError("Models are fitted on files of this machine, or of a folder that all nodes share.")
    found = None if is_dataset(given) else found_files(given)
    if engine == "local":
        return documents if found is None else [Path(name) for name in found]
    # Workers have folders of their own.
    return Path(os.path.abspath(given)) if found is None else [Path(os.path.abspath(name)) for name in found]
