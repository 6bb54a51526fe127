"""A whole job: files to parts, on the engine that was asked for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from himecat.batch.parts import Job, begin, held, place_piece
from himecat.batch.pieces import Piece, cut, files_of
from himecat.batch.placer import Counts, Outcome, Placer, digest_text
from himecat.batch.places import fetched, whole
from himecat.errors import ModelFolderError
from himecat.input.problems import Problem
from himecat.input.reading import Reading
from himecat.runtime.engines import LocalEngine, ProcessEngine, open_engine
from himecat.runtime.progress import Progress, silent
from himecat.runtime.ray_engine import RayEngine
from himecat.runtime.threads import usable_threads

# Problems of all pieces that are told.
_TOLD = 50


@dataclass
class Done:
    """What a job has done: parts that were written now and before, documents of those written now, what was noticed.

    Examples
    --------
    >>> Done().parts
    0
    """

    parts: int = 0
    before: int = 0
    counts: Counts = field(default_factory=Counts)
    told: list[Problem] = field(default_factory=list)
    hidden: int = 0
    notes: list[str] = field(default_factory=list)


def place_files(
    placer: Placer,
    documents: Sequence[str],
    folder: str,
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    sheet: str | None = None,
    delimiter: str | None = None,
    progress: Progress | None = None,
) -> Done:
    """Place the documents of files, and write a Parquet part for each piece of them into a folder.

    A job that was stopped goes on where it was: parts that are there are not made again. The parts are the same bytes
    whatever the engine and the number of workers.

    Parameters
    ----------
    placer : Placer
        What places the documents.
    documents : sequence of str
        Files, globs, folders of Parquet files, addresses of fsspec.
    folder : str
        Where the parts go: a new folder, or the one of the same job.
    engine, address, workers
        As for `himecat.runtime.engines.open_engine`.
    sheet, delimiter : str, optional
        As for `HiMeCat`.
    progress : Progress, optional
        Shows how far it has come.

    Examples
    --------
    >>> import os, tempfile
    >>> from himecat import Default, HiMeCat
    >>> texts = [{"text": "a late goal", "labels": "sport"}, {"text": "a new law", "labels": "politics"}]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     HiMeCat(method=Default(min_count=1), threads=1).fit(texts).save(f"{place}/model")
    ...     with open(f"{place}/new.jsonl", "w") as file:
    ...         _ = file.write('{"text": "a goal"}')
    ...     done = place_files(Placer(f"{place}/model"), [f"{place}/new.jsonl"], f"{place}/out", workers=1)
    ...     done.counts.documents, sorted(os.listdir(f"{place}/out"))
    (1, ['_himecat.json', 'part-00000.parquet'])
    """
    progress = silent() if progress is None else progress
    with fetched(placer.model) as here:
        digest = digest_text(here)
    if not digest:
        raise ModelFolderError(f"{placer.model} is not a model folder: name one that `himecat fit` wrote.")
    # Workers may be in other folders.
    placer = replace(placer, digest=digest, model=whole(placer.model))
    with held(folder):
        files = [whole(path) for path in files_of(documents, without=folder)]
        found = cut(files, Reading.given(sheet, delimiter))
        job = Job(placer, whole(folder), found.names, sheet, delimiter)
        left = begin(job, found)
        done = Done(before=len(found.pieces) - len(left))
        if found.differ:
            done.notes.append("the files have different columns, so the parts have, too.")
        title = f"Placing {len(left):,} of {len(found.pieces):,} pieces"
        if left:
            with (
                progress.stage(title, total=len(left)) as stage,
                closing(_outcomes(job, left, engine, address, workers)) as outcomes,
            ):
                for outcome in outcomes:
                    done.parts += 1
                    done.counts += outcome.counts
                    for problem in outcome.problems:
                        if len(done.told) < _TOLD:
                            done.told.append(problem)
                        else:
                            done.hidden += 1
                    stage.advance(note=f"{done.counts.documents:,} documents")
    return done


def _outcomes(
    job: Job, pieces: Sequence[Piece], engine: str, address: str | None, workers: int | None
) -> Generator[Outcome, None, None]:
    if engine == "local" and address is None:
        count = min(usable_threads(workers), len(pieces))
        with LocalEngine(1) if count == 1 else ProcessEngine(count) as local:
            yield from local.map(place_piece, pieces, common=job)
        return
    with open_engine(engine, address, workers) as opened:
        if not isinstance(opened, RayEngine):
            yield from opened.map(place_piece, pieces, common=job)
            return
        yield from opened.map_data(place_piece, pieces, common=job)
