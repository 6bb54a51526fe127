"""Proposals for new categories from the documents that are shown, made once for each model."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

from himecat.runtime.threads import usable_threads
from himecat.server.placing import KEPT_WORDS, UNLABELLED
from himecat.server.workspace import Workspace

MOST_DOCUMENTS = 30_000
"""Groups are formed from so many documents at most: all, or some drawn at random."""

EXAMPLES = 20
"""So many documents of a proposal are told, and become its examples."""


class Proposals:
    """The proposals of a workspace; whoever asks while they are made waits for them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._lock = workspace, threading.Lock()
        self._made: tuple[int, list[dict[str, Any]]] | None = None

    def listed(self) -> list[dict[str, Any]]:
        """The proposals for the present model."""
        with self._lock:
            version = self._workspace.view.version
            if self._made is None or self._made[0] != version:
                self._made = version, self._propose()
            return self._made[1]

    def get(self, number: int) -> dict[str, Any]:
        """A proposal by its id."""
        for one in self.listed():
            if one["id"] == number:
                return one
        raise LookupError(f"There is no proposal {number}.")

    def _propose(self) -> list[dict[str, Any]]:
        try:
            found = importlib.import_module("himecat.classifier.proposals")
        except ModuleNotFoundError:
            raise LookupError("This build makes no proposals.") from None
        workspace, view = self._workspace, self._workspace.view
        model = view.model
        if model.gives_sets:
            return []
        rows = np.arange(len(view.placed))
        if len(rows) > MOST_DOCUMENTS:
            rng = np.random.default_rng(int(model.random_state))
            rows = np.sort(rng.choice(rows, MOST_DOCUMENTS, replace=False))
        kept, supervision = model.learned_from()
        if workspace.source == KEPT_WORDS:
            corpus = kept.take(rows)
        else:
            records = []
            for start in range(0, len(rows), 500):
                stored = workspace.store.documents(rows[start : start + 500].tolist())
                records += [workspace.record(one) for one in stored]
            corpus = model.encode(records)
        labelled = kept.take(supervision.rows)
        leaves = model.taxonomy_.leaf_position[supervision.nodes]
        known = found.Known(model.classifier_.directions(labelled)[leaves >= 0], leaves[leaves >= 0])
        taken = (view.placed.labels != UNLABELLED) | workspace.answered.astype(bool)
        proposals = found.propose(
            model.taxonomy_,
            model.classifier_.directions(corpus),
            model.classifier_.leaf_probabilities(corpus, usable_threads(workspace.threads)),
            known,
            corpus,
            labelled=np.flatnonzero(taken[rows]).tolist(),
            seed=int(model.random_state),
        )
        return [
            {
                "id": number,
                "name": one.name,
                "words": list(one.words),
                "size": len(one.rows),
                "rows": rows[one.rows[:EXAMPLES]].tolist(),
                "parent": list(model.taxonomy_.path(one.parent)),
                "precision": None,
            }
            for number, one in enumerate(proposals)
        ]
