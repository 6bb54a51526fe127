"""The demonstration: sample corpus, model, predictions and report in one folder."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from himecat.errors import OutputError
from himecat.estimator import HiMeCat
from himecat.files import write_whole
from himecat.metrics import Scores, score
from himecat.progress import Progress
from himecat.report import ReportDocument, write_report
from himecat.samples import METADATA, sample_documents, sample_split, sample_taxonomy, write_sample


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

    The folder gets `documents.jsonl`, `taxonomy.yaml`, `model/`, `predictions.jsonl` and `report.html`.
    """
    target = Path(folder)
    _make_room(target, overwrite)
    write_sample(target)
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
    lines = [
        json.dumps(
            {
                "id": document["id"],
                "path": list(placed.path(row)),
                "confidence": list(placed.confidences(row)),
                "leaf": bool(placed.reached_leaf[row]),
            },
            ensure_ascii=False,
        )
        for row, document in enumerate(documents)
    ]
    write_whole(target / "predictions.jsonl", "\n".join(lines) + "\n", what="The predictions")
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
        settings={name: str(value) for name, value in model.settings_.as_dict().items()},
        timings={"fit": fitted - began, "predict": done - fitted},
    )
    return scores


def _make_room(target: Path, overwrite: bool) -> None:
    """An empty folder to write to; only a folder that an earlier demo wrote is ever emptied."""
    if target.is_dir() and any(target.iterdir()):
        ours = (target / "documents.jsonl").is_file() and (target / "taxonomy.yaml").is_file()
        if not overwrite:
            raise OutputError(f"{target} exists already: choose another folder or pass --overwrite.")
        if not ours:
            raise OutputError(
                f"{target} was not written by himecat demo and is left alone: choose another folder."
            )
        shutil.rmtree(target)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder {target} cannot be made: {error.strerror or error}.") from error
