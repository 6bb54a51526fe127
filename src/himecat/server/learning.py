"""Learning from answers in a process of its own; the new model takes the place of the old one when it is complete."""

from __future__ import annotations

import copy
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from himecat.errors import DataError, HimecatError, OutputError
from himecat.estimator import HiMeCat
from himecat.input.answer_nodes import ReviewColumns
from himecat.input.labels import NOWHERE
from himecat.runtime.leftovers import clean_leftovers
from himecat.runtime.progress import ReportedProgress, silent
from himecat.runtime.replacing import replace_folder
from himecat.server import placing
from himecat.server.folders import digest, new_folder
from himecat.server.placing import KEPT_WORDS, Placements
from himecat.server.store import Store, StoredDocument
from himecat.server.view import View
from himecat.server.workspace import Workspace
from himecat.teaching.tree_plan import TreePlan

_MOST_MOVES = 200
# Where in the whole a stage begins, and how much of it it is.
_STAGES = {
    "Learning the space": (0.05, 0.15),
    "Placing the documents": (0.2, 0.5),
    "Placing all documents": (0.7, 0.28),
}

Make = Callable[[HiMeCat, Any, ReportedProgress], dict[str, Any]]
Report = Callable[[str, float], None]


class Cancelled(Exception):
    """Somebody wants the work to end."""


def answer_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """The answers as `HiMeCat.correct` takes them, with the documents where these are known."""
    model = workspace.view.model
    column, found = ReviewColumns.beside(model.fields()).answer, list[dict[str, Any]]()
    texts = workspace.source != KEPT_WORDS
    said = {
        name: path
        for name, path in workspace.log.answers().items()
        # The category may be gone from the tree.
        if path is None or workspace.node(path)
    }
    rows = [workspace.row_of[name] for name in said if name in workspace.row_of] if texts else []
    stored: dict[str, StoredDocument] = {}
    for start in range(0, len(rows), 500):
        stored |= {one.id: one for one in workspace.store.documents(rows[start : start + 500])}
    for name, path in said.items():
        row = workspace.record(stored[name]) if name in stored else {model.id_field: name}
        found.append({**row, column: NOWHERE if path is None else list(path)})
    return found


def learn_from(model: HiMeCat, rows: Sequence[dict[str, Any]], progress: ReportedProgress) -> dict[str, Any]:
    """Fit a model again with answers; the same as `himecat correct`."""
    known, text = set(model.learned_from().corpus.ids), model.fields().text[0]
    usable = [row for row in rows if text in row or row[model.id_field] in known]
    if not usable:
        raise DataError("There is no answer to learn from yet.")
    found = model.correct(usable, progress=progress)
    return {"said": found.said, "accuracy": [list(pair) for pair in found.accuracy], "answers": len(usable)}


def change_tree(model: HiMeCat, given: Any, progress: ReportedProgress) -> dict[str, Any]:
    """Change the tree of a model; the same as `himecat tree`."""
    changes, documents = given
    plan = model.change_tree(changes, documents or None, progress=progress)
    return {"said": " ".join(plan.said), "accuracy": [], "answers": 0}


def change_names(workspace: Workspace, plan: TreePlan) -> None:
    """Serve the model with a tree of the same shape and other names: documents are where they were."""
    new, model = new_folder(workspace.folder), copy.copy(workspace.view.model)
    model.change_tree(plan)
    try:
        model.save(new, overwrite=True)
        kept = [workspace.view.digest]
        workspace.store.save_arrays(digest(new), workspace.view.placed.arrays(), kept)
        adopt(workspace, new, model)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _child(
    make: Make, given: Any, folder: str, new: str, store: str, threads: int | None, connection: Connection
) -> None:
    """Make a model from the one in a folder, write it beside, and place the documents of the store with it."""
    # Ctrl-C is for the server, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def report(title: str, share: float) -> None:
        start, part = _STAGES.get(title, (0.0, 0.05))
        connection.send(("stage", title, start + part * share))

    try:
        progress = ReportedProgress(report)
        report("Reading the model", 0.0)
        model = HiMeCat.load(folder)
        model.set_params(threads=threads)
        result = make(model, given, progress)
        model.save(new, overwrite=True)
        connection.send(("stage", "Writing the model", 0.7))
        place_with(HiMeCat.load(new), store, digest(new), [digest(folder)], threads, progress)
        connection.send(("done", result))
    except HimecatError as error:
        connection.send(("failed", str(error)))
    except MemoryError:
        connection.send(("failed", "There is not enough memory to learn from so many documents."))
    except (BrokenPipeError, EOFError):
        sys.exit(1)  # the server is gone
    except Exception as error:
        connection.send(("failed", f"This should not have happened: {type(error).__name__}: {error}."))


def place_with(
    model: HiMeCat, path: str, known: str, keep: Sequence[str], threads: int | None, progress: Any
) -> Placements:
    """Place the documents of a store by a model, and keep that in it."""
    store = Store(path, alone=False)
    try:
        model.set_params(threads=threads)
        corpus = model.learned_from().corpus if store.fact("source") == KEPT_WORDS else None
        if corpus is not None and len(corpus) != int(store.fact("documents") or 0):
            corpus = corpus.between(0, int(store.fact("documents") or 0))
        placed = placing.place(model, store, progress, corpus)
        store.save_arrays(known, placed.arrays(), keep)
        return placed
    finally:
        store.close()


def run(
    workspace: Workspace, make: Make, given: Any, report: Report, cancelled: Callable[[], bool]
) -> dict[str, Any]:
    """Make a new model in a process of its own, and have it take the place of the one that is served.

    Raises
    ------
    Cancelled
        Somebody wanted the work to end; the old model is served.
    """
    new, before = new_folder(workspace.folder), workspace.view
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = (
        make,
        given,
        str(workspace.folder),
        str(new),
        str(workspace.store.path),
        workspace.threads,
        theirs,
    )
    process = context.Process(target=_child, args=arguments, daemon=True)
    process.start()
    theirs.close()
    try:
        result = _followed(ours, process, report, cancelled)
        if digest(workspace.folder) != before.digest:
            raise OutputError(
                "The model folder has been replaced by another program in the meantime, and stays as it is."
            )
        if cancelled():
            raise Cancelled
        adopt(workspace, new)
    finally:
        ours.close()
        if process.is_alive():
            process.kill()
        process.join()
        shutil.rmtree(new, ignore_errors=True)
        clean_leftovers(workspace.folder.parent)
    return {**moves(before, workspace.view), **result}


def _followed(
    connection: Connection, process: Any, report: Report, cancelled: Callable[[], bool]
) -> dict[str, Any]:
    while True:
        if cancelled():
            raise Cancelled
        if not connection.poll(0.1):
            if not process.is_alive() and not connection.poll():
                raise HimecatError("The process that learned was ended.")
            continue
        try:
            kind, *told = connection.recv()
        except EOFError:
            raise HimecatError("The process that learned was ended.") from None
        if kind == "stage":
            report(*told)
        elif kind == "failed":
            raise DataError(told[0])
        else:
            found: dict[str, Any] = told[0]
            return found


def adopt(workspace: Workspace, new: Path, model: HiMeCat | None = None) -> None:
    """Serve the model in a folder, read already or not, instead of the present one, which is kept for one step back."""
    found = digest(new)
    workspace.store.set_facts({"replacing": found})
    replace_folder(new, workspace.folder, workspace.before)
    _reopen(workspace, found, model)


def go_back(workspace: Workspace) -> None:
    """Serve the model before the present one, which becomes the one before."""
    if not workspace.before.is_dir():
        raise DataError("There is no model to go back to.")
    found = digest(workspace.before)
    workspace.store.set_facts({"replacing": found})
    new = new_folder(workspace.folder)
    os.rename(workspace.before, new)
    replace_folder(new, workspace.folder, workspace.before)
    _reopen(workspace, found)


def _reopen(workspace: Workspace, found: str, model: HiMeCat | None = None) -> None:
    model = model or HiMeCat.load(workspace.folder)
    model.set_params(threads=workspace.threads, skip_bad=workspace.skip_bad)
    placed = Placements.found(workspace.store.load_arrays(found))
    if placed is None:
        path, before = str(workspace.store.path), [workspace.view.digest]
        placed = place_with(model, path, found, before, workspace.threads, silent())
    version, tree = workspace.view.version + 1, workspace.tree_version
    if model.taxonomy_ != workspace.view.tree:
        tree += 1
    workspace.store.set_facts({"replacing": None, "model_version": str(version), "tree_version": str(tree)})
    workspace.show(View(model, found, placed, version))


def moves(before: View, after: View) -> dict[str, Any]:
    """From where to where documents have moved, the most frequent pairs first."""
    elsewhere = np.flatnonzero(_titles(before) != _titles(after))
    pairs = np.stack([before.placed.nodes[elsewhere], after.placed.nodes[elsewhere]])
    distinct, counts = np.unique(pairs, axis=1, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_MOVES]
    listed = [
        {
            "from": list(before.tree.path(int(distinct[0, place]))),
            "to": list(after.tree.path(int(distinct[1, place]))),
            "count": int(counts[place]),
        }
        for place in order
    ]
    return {"moved": len(elsewhere), "moves": listed}


def _titles(view: View) -> Any:
    """Where documents are, by the path: numbers of nodes are those of one tree."""
    return np.array([view.tree.title(node) for node in range(len(view.tree))], dtype=object)[
        view.placed.nodes
    ]
