"""Proposals for new categories from the documents that are shown, made once for each model."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from himecat.server.placing import KEPT_WORDS, UNLABELLED
from himecat.server.workspace import Workspace
from himecat.teaching.proposing import propose_categories

MOST_DOCUMENTS = 30_000
"""Groups are formed from so many documents at most: all, or some drawn at random."""

SHOWN = 20
"""So many documents of a proposal are told."""


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
        workspace, view = self._workspace, self._workspace.view
        if view.model.gives_sets:
            return []
        open_rows = np.flatnonzero((view.placed.labels == UNLABELLED) & (workspace.answered == 0))
        if len(open_rows) > MOST_DOCUMENTS:
            rng = np.random.default_rng(int(view.model.random_state))
            open_rows = np.sort(rng.choice(open_rows, MOST_DOCUMENTS, replace=False))
        if workspace.source == KEPT_WORDS:
            documents: Any = view.model.learned_from().corpus.take(open_rows)
        else:
            documents = []
            for start in range(0, len(open_rows), 500):
                stored = workspace.store.documents(open_rows[start : start + 500].tolist())
                documents += [workspace.record(one) for one in stored]
        return [
            {
                "id": number,
                "name": one.name,
                "words": list(one.words),
                "size": len(one.ids),
                "rows": [workspace.row_of[name] for name in one.ids[:SHOWN]],
                "parent": list(one.parent),
                "precision": None,
                "change": one.change(),
            }
            for number, one in enumerate(propose_categories(view.model, documents))
        ]
