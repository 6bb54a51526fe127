"""The demonstration: sample corpus, model, predictions and report in one folder."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from himecat.cli.place import prediction_lines
from himecat.errors import MissingExtraError, OutputError
from himecat.estimator import HiMeCat
from himecat.evaluation.metrics import Scores, score
from himecat.evaluation.report import ReportDocument, write_report
from himecat.input.header import Header
from himecat.input.problems import Problems
from himecat.output.cells import Cells
from himecat.output.tables import open_table
from himecat.runtime.files import MODEL_FILES, replaced_folder, write_atomic
from himecat.runtime.progress import Progress
from himecat.sample import (
    METADATA,
    sample_documents,
    sample_files,
    sample_split,
    sample_taxonomy,
    write_sample,
)

A_LEAF = "missed-bins"
"""A leaf of the sample corpus whose name stands nowhere else in its tree."""

# What a demo folder holds beside the files of the sample corpus; the last has the digests of all others.
_SUMS = "SHA256SUMS"
_RESULTS = ("letters.csv", "letters.xlsx", "model", "predictions.jsonl", "report.html", _SUMS)
_README = """
What `himecat demo` adds:

| file | what it holds |
|---|---|
| `letters.csv` | the letters of `documents.jsonl` as a table, and `letters.xlsx` where `himecat[files]` is installed |
| `model/` | what `himecat fit` has learned from them |
| `predictions.jsonl` | where `himecat predict` places them |
| `report.html` | how good that is, by the true labels |
| `SHA256SUMS` | by which `himecat demo --overwrite` knows that nobody has changed the folder |
"""


def run_demo(
    folder: str | os.PathLike[str],
    arguments: Mapping[str, Any],
    *,
    seed: int = 0,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress,
) -> Scores:
    """Fit on the sample corpus, score the unlabelled documents and write everything to a folder.

    The folder gets the files of the sample corpus, the letters as a spreadsheet, `model/`, `predictions.jsonl` and
    `report.html`, and appears when all of them are there.
    """
    target = Path(folder)
    _check_target(target, overwrite)
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
    with replaced_folder(target, "The demo") as unfinished:
        try:
            return _fill(unfinished, arguments, seed, threads, progress)
        except OutputError as error:
            raise OutputError(str(error).replace(str(unfinished), str(target))) from error


def _fill(
    target: Path, arguments: Mapping[str, Any], seed: int, threads: int | None, progress: Progress
) -> Scores:
    write_sample(target)
    write_atomic(target / "README.md", _corpus_files()["README.md"], what="The demo")
    taxonomy = sample_taxonomy()
    documents = sample_documents()
    labels = sample_split(documents)
    began = time.perf_counter()
    model = HiMeCat(taxonomy, list(METADATA), random_state=seed, threads=threads, **arguments)
    model.fit(documents, labels, progress=progress)
    fitted = time.perf_counter()
    placed = model.assign(documents)
    done = time.perf_counter()
    model.save(target / "model")
    truth = np.array([taxonomy.find(document["labels"]) for document in documents])
    test = np.array([label is None for label in labels])
    scores = score(taxonomy, truth[test], placed.nodes[test])
    # As `himecat predict` places the documents of the folder, which show only those labels.
    shown = [{**one, "labels": label} for one, label in zip(documents, labels, strict=True)]
    _write_tables(target, shown)
    lines: list[str] = []
    for origins, _, kept in model.iter_assignments(shown, Problems(), keep_labels=True):
        lines += prediction_lines((origin.id for origin in origins), kept, {})
    write_atomic(target / "predictions.jsonl", "".join(lines), what="The predictions")
    write_report(
        target / "report.html",
        taxonomy=taxonomy,
        documents=[
            ReportDocument(
                id=documents[row]["id"],
                text=documents[row]["text"],
                path=placed.path(row),
                confidence=placed.confidences(row),
                true_path=tuple(documents[row]["labels"]),
                metadata={kind: documents[row].get(kind, []) for kind in METADATA},
            )
            for row in np.flatnonzero(test).tolist()
        ],
        scores=scores,
        title="himecat on its sample corpus",
        settings={name: str(value) for name, value in model.method_.as_dict().items()},
        timings={"fit": fitted - began, "predict": done - fitted},
    )
    sums = "".join(f"{_digest(target / name)}  {name}\n" for name in _files(target))
    write_atomic(target / _SUMS, sums, what="The demo")
    return scores


def _write_tables(target: Path, letters: Sequence[Mapping[str, Any]]) -> None:
    """The letters as people keep them: a CSV file, and a workbook where it can be written."""
    for name in ("letters.csv", "letters.xlsx"):
        with (
            suppress(MissingExtraError),
            open_table(target / name, Header((*letters[0],)), [], Cells()) as table,
        ):
            for letter in letters:
                table.write(letter, [])


def _corpus_files() -> dict[str, str]:
    files = sample_files()
    return files | {"README.md": files["README.md"] + _README}


def _files(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _check_target(target: Path, overwrite: bool) -> None:
    """Only what an earlier demo wrote, and nobody has changed since, is ever replaced."""
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file: choose another folder.")
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not overwrite:
        raise OutputError(f"{target} exists already: choose another folder or pass --overwrite.")
    corpus = _corpus_files()
    for found in sorted(target.iterdir()):
        inside = sorted(one.name for one in found.iterdir()) if found.is_dir() else []
        strange = found.name not in _RESULTS and found.name not in corpus
        if strange or (inside and (found.name != "model" or not {*inside} <= {*MODEL_FILES})):
            name = found.name if strange else f"{found.name}/{inside[0]}"
            raise OutputError(
                f"{target} holds {name}, which himecat demo did not write, and is left alone: choose another folder."
            )
    sums = _sums(target)
    # The folder of somebody else may have sums too, but not the sample corpus.
    digests = sums | {name: hashlib.sha256(text.encode()).hexdigest() for name, text in corpus.items()}
    for name in sorted({*digests, *_files(target)} - {_SUMS}):
        file = target / name
        if file.is_symlink() or not file.is_file() or _digest(file) != digests.get(name):
            raise OutputError(
                f"{target} is left alone, because {name} is not what himecat demo wrote: choose another folder."
            )


def _sums(target: Path) -> dict[str, str]:
    """The digests that a demo has noted; none where there are none."""
    try:
        lines = (target / _SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}
