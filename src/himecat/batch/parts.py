"""One part of the result for each piece of the input, and the list by which a job that was stopped goes on."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from himecat.batch.pieces import Input, Piece, parquet
from himecat.batch.placer import Outcome, Placer
from himecat.batch.places import filesystem, is_remote, join, put, stamp
from himecat.errors import DataError, OutputError
from himecat.input.header import read_header
from himecat.input.reading import Reading
from himecat.input.streams import BrokenFile, check_count, check_expansion
from himecat.input.tables import arrow_bytes, check_names
from himecat.output.cells import Cells
from himecat.output.tables import open_table
from himecat.runtime.files import atomic_bytes, write_atomic
from himecat.runtime.leftovers import clean_leftovers

LIST = "_himecat.json"
"""What a folder of parts has beside them: which model, which input. Other programs leave out such names."""

_FORMAT = 1
_WHAT = "The predictions"
_GROUP_ROWS = 16_384


@dataclass(frozen=True)
class Job:
    """What all parts have in common.

    Examples
    --------
    >>> Job(Placer("model"), "out", ("id", "text")).folder
    'out'
    """

    placer: Placer
    folder: str
    names: tuple[str, ...]
    sheet: str | None = None
    delimiter: str | None = None


def begin(job: Job, found: Input) -> list[Piece]:
    """Make the folder, or go on in it: the pieces whose part is missing.

    Raises
    ------
    OutputError
        The folder holds something else, or the parts of another job.
    """
    wanted = _listed(job, found)
    known = _known(job.folder)
    if known is None:
        if _entries(job.folder):
            raise OutputError(
                f"{job.folder} holds other files, and nothing that says where they come from: name a new folder."
            )
        _write_list(job.folder, wanted)
        return list(found.pieces)
    for name, what in (
        ("format", "by another version"),
        ("model", "by another model"),
        ("pieces", "from other files, or from files that have changed"),
        ("options", "with other options"),
    ):
        if known.get(name) != wanted[name]:
            raise OutputError(
                f"The parts in {job.folder} were made {what}: name a new folder, or delete this one."
            )
    there = set(_entries(job.folder))
    return [piece for piece in found.pieces if piece.part not in there]


def _listed(job: Job, found: Input) -> dict[str, Any]:
    options = asdict(job.placer) | {"names": found.names, "sheet": job.sheet, "delimiter": job.delimiter}
    model = options.pop("digest")
    # Where the model lies does not matter, nor whether an encoder may be fetched.
    for name in ("model", "online"):
        options.pop(name)
    pieces = [asdict(piece) for piece in found.pieces]
    listed = {"format": _FORMAT, "model": model, "options": options, "pieces": pieces}
    # As it will be read again.
    return dict(json.loads(json.dumps(listed)))


def _known(folder: str) -> dict[str, Any] | None:
    path = join(folder, LIST)
    try:
        if is_remote(folder):
            files, inner = filesystem(path)
            raw = files.cat_file(inner) if files.exists(inner) else None
        else:
            raw = Path(path).read_bytes() if os.path.lexists(path) else None
        found = None if raw is None else json.loads(raw)
    except (OSError, ValueError):
        raise OutputError(f"{path} cannot be read: name a new folder, or delete this one.") from None
    if found is not None and not isinstance(found, dict):
        raise OutputError(f"{path} is not a list of himecat's: name a new folder.")
    return found


def _entries(folder: str) -> list[str]:
    if is_remote(folder):
        files, inner = filesystem(folder)
        if not files.exists(inner):
            return []
        return [str(name).rstrip("/").rpartition("/")[2] for name in files.ls(inner, detail=False)]
    try:
        os.makedirs(folder, exist_ok=True)
        clean_leftovers(folder)
        return os.listdir(folder)
    except OSError as error:
        raise OutputError(f"{_WHAT} cannot be written to {folder}: {error.strerror or error}.") from None


def _write_list(folder: str, listed: dict[str, Any]) -> None:
    written, path = json.dumps(listed, indent=1) + "\n", join(folder, LIST)
    if not is_remote(folder):
        write_atomic(path, written, what=_WHAT)
        return
    with tempfile.TemporaryDirectory() as here:
        file = os.path.join(here, LIST)
        Path(file).write_text(written, encoding="utf-8")
        put(file, path)


@contextmanager
def held(folder: str) -> Iterator[None]:
    """Keep other processes of this machine out of a folder of parts.

    Examples
    --------
    >>> with held("s3://bucket/out"):
    ...     pass
    """
    if is_remote(folder):
        yield
        return
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    new = not os.path.isdir(folder)
    _entries(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"Another process writes to {folder}: wait for it, or name a new folder."
            ) from None
        except OSError:
            # Some network file systems have no locks.
            pass
        yield
    finally:
        os.close(descriptor)
        # Of workers that were ended.
        clean_leftovers(folder)
        if new:
            # Only if nothing came into it.
            with suppress(OSError):
                os.rmdir(folder)


def place_piece(job: Job, piece: Piece) -> Outcome:
    """Place the documents of a piece, and write its part; the task of an engine.

    Raises
    ------
    DataError
        Documents cannot be used, and are not to be skipped; or the file has changed or is damaged.
    """
    if stamp(piece.path) != piece.stamp:
        raise DataError(
            f"{piece.path} has changed since the job began: begin anew, with another folder for the result."
        )
    if not is_remote(job.folder):
        return _write(job, piece, join(job.folder, piece.part))
    with tempfile.TemporaryDirectory(prefix="himecat-") as here:
        file = os.path.join(here, piece.part)
        outcome = _write(job, piece, file)
        put(file, join(job.folder, piece.part))
    return outcome


def _write(job: Job, piece: Piece, path: str) -> Outcome:
    outcome = Outcome()
    write = _write_groups if piece.is_parquet else _write_rows
    with suppress(_Refused):
        write(job, piece, path, outcome)
    if not job.placer.skip_bad or outcome.problems.has_fatal:
        outcome.problems.raise_errors()
    return outcome


class _Refused(Exception):
    """Leaves the part unwritten; the problems say why."""


def _check(job: Job, outcome: Outcome) -> None:
    problems = outcome.problems
    if problems.has_fatal or (problems.has_errors and not job.placer.skip_bad):
        raise _Refused


def _write_groups(job: Job, piece: Piece, path: str, outcome: Outcome) -> None:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    placer, added = job.placer, job.placer.names(job.names)
    with parquet(piece.path) as file:
        try:
            check_names(piece.path, file.schema_arrow.names)
            check_count(file.metadata.num_rows, piece.stamp.size)
            groups, expanded = list(range(piece.first, piece.last)), 0

            def batches() -> Iterator[Any]:
                nonlocal expanded
                for batch in file.iter_batches(row_groups=groups):
                    expanded += sum(arrow_bytes(column) for column in batch.columns)
                    check_expansion(expanded, piece.stamp.size)
                    yield batch

            schema = placer.schema(file.schema_arrow, added)
            with atomic_bytes(path, _WHAT) as stream:
                writer, waiting = ParquetWriter(stream, schema), []
                try:
                    start = f"{piece.path} row "
                    for batch in placer.placed(batches(), added, outcome, start, piece.first_row):
                        waiting.append(batch)
                        if sum(one.num_rows for one in waiting) >= _GROUP_ROWS:
                            writer.write_table(pyarrow.Table.from_batches(waiting, schema))
                            waiting = []
                    _check(job, outcome)
                    if waiting:
                        writer.write_table(pyarrow.Table.from_batches(waiting, schema))
                    writer.close()
                finally:
                    # After a failure it would write its end to a file that is gone.
                    writer.is_open = False
        except BrokenFile as broken:
            raise DataError(f"{piece.path}: {broken}") from None


def _write_rows(job: Job, piece: Piece, path: str, outcome: Outcome) -> None:
    placer, model = job.placer, job.placer.loaded()
    reading = Reading.given(job.sheet, job.delimiter)
    model.set_params(sheet=job.sheet, delimiter=job.delimiter)
    header = read_header(piece.path, types=True, reading=reading)
    added = placer.names((*job.names, *header.names))
    cells = Cells(model.joint, model.fields().label_fields)
    with open_table(path, header, added.added, cells) as table:
        for origins, corpus, placed in model.iter_assignments(
            piece.path,
            outcome.problems,
            best=placer.top + 1,
            keep_labels=not placer.ignore_labels,
            keep_records=True,
        ):
            rows = added.rows(placed, [origin.id for origin in origins])
            for origin, row in zip(origins, rows, strict=True):
                table.write(origin.record, row)
            outcome.add(origins, corpus, placed)
        _check(job, outcome)
