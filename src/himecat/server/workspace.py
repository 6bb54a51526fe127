"""A model, its documents and what people say of them: what the page asks, as plain functions without HTTP."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, UsageError, spelled
from himecat.estimator import HiMeCat
from himecat.input.corpus import Corpus
from himecat.runtime.progress import Progress, silent
from himecat.server import placing
from himecat.server.actions import NONE, SKIP, ActionLog, Said, as_plain
from himecat.server.folders import digest, folder_before, recover
from himecat.server.placing import KEPT_WORDS, NOWHERE, UNLABELLED, Placements
from himecat.server.store import Store, StoredDocument, store_path, unusable
from himecat.server.view import View

IntArray = npt.NDArray[np.int64]

EXCERPT = 300
"""Characters of a text that a list shows."""

ROOT = 0
_NOT_PLACED = -1


class Workspace:
    """A model folder that is being looked at and corrected.

    Parameters
    ----------
    folder : path
        The model folder.
    documents : path, optional
        The documents to show. Without them those of the last time, or else those kept with the model.
    skip_bad : bool
        Leave out documents that cannot be used.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        documents: str | os.PathLike[str] | None = None,
        *,
        model: HiMeCat | None = None,
        skip_bad: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.threads, self.skip_bad = threads, skip_bad
        self._corpus: Corpus | None = None
        self._counts_lock = threading.Lock()
        self.store = Store(store_path(self.folder))
        try:
            recover(self.folder, self.store)
            model = model or HiMeCat.load(self.folder)
            model.set_params(threads=threads, skip_bad=skip_bad)
            self.log = ActionLog(self.store)
            found = digest(self.folder)
            placed = self._opened(model, found, documents, progress or silent())
            self.ids = self.store.ids()
            self.row_of = {name: row for row, name in enumerate(self.ids)}
            self.show(View(model, found, placed, int(self.store.fact("model_version") or 1)))
        except BaseException as error:
            self.store.close()
            if isinstance(error, sqlite3.Error):
                raise unusable(self.store.path, error) from None
            raise

    def _opened(self, model: HiMeCat, known_as: str, documents: Any, progress: Progress) -> Placements:
        """The placements of the documents to show; only what is not in the store yet is read and placed."""
        store = self.store
        known = store.fact("documents") is not None
        source = KEPT_WORDS if documents is None else placing.fingerprint(_existing(documents))
        before = store.fact("source")
        if known and (documents is None or before == source):
            if (ready := Placements.found(store.load_arrays(known_as))) is not None:
                return ready
            corpus = model.learned_from().corpus if before == KEPT_WORDS else None
            placed = placing.place(model, store, progress, corpus)
        elif documents is None:
            placed = placing.read_kept(model, store, progress)
        else:
            placed = placing.read_and_place(model, documents, store, progress)
        store.set_facts({"source": source if documents is not None or not known else before})
        store.save_arrays(known_as, placed.arrays(), [])
        return placed

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    # -- the model in use ------------------------------------------------------------------------------

    def show(self, view: View) -> None:
        """Take the place of the model of before."""
        nodes = np.where(view.placed.labels != UNLABELLED, view.placed.labels, view.placed.nodes)
        effective = nodes.astype(np.int64)
        effective[effective == NOWHERE] = _NOT_PLACED
        answered = np.zeros(len(effective), dtype=np.int8)
        with self._counts_lock:
            self._corpus = None
            self.view, self._own = view, effective.copy()
            self.effective, self.answered = effective, answered
            for name, said in list(self.log.said.items()):
                if (row := self.row_of.get(name)) is not None:
                    self._apply(row, said)

    def _apply(self, row: int, said: Said | None) -> None:
        self.answered[row] = said is not None
        self.effective[row] = self._own[row]
        if said is None or said.kind == SKIP:
            return
        node = None if said.path is None else self.node(said.path)
        if said.path is None:
            self.effective[row] = _NOT_PLACED
        elif node is not None:
            self.effective[row] = node

    def refresh(self, names: Sequence[str]) -> list[int]:
        """Have what was said of documents count; their rows."""
        with self._counts_lock:
            rows = [self.row_of[name] for name in names if name in self.row_of]
            for row in rows:
                self._apply(row, self.log.said.get(self.ids[row]))
        return rows

    def node(self, path: Sequence[str]) -> int | None:
        """The node of a path, as it stands in the tree or stood in an earlier one; None for no such category."""
        tree = self.view.tree
        node = tree.walk(list(path)) if path else None
        if node is None and path and tree.earlier is not None:
            try:
                return tree.find(list(path))
            except DataError:
                return None
        return node

    @property
    def tree_version(self) -> int:
        """Changes whenever the tree does."""
        return int(self.store.fact("tree_version") or 1)

    def required_node(self, path: Sequence[str]) -> int:
        """The node of a path, or the sentence that there is none."""
        node = self.node(path)
        if not node:
            raise LookupError(f"There is no category {'/'.join(path)!r}.")
        return node

    @property
    def source(self) -> str:
        """Whether there are documents, or only the words that the model keeps of them."""
        return KEPT_WORDS if self.store.fact("source") == KEPT_WORDS else "documents"

    @property
    def before(self) -> Path:
        """Where the model before this one is kept."""
        return folder_before(self.folder)

    # -- documents -------------------------------------------------------------------------------------

    def rows(
        self,
        *,
        node: int | None = None,
        value: str | None = None,
        query: str | None = None,
        sort: str = "order",
        state: str = "all",
    ) -> IntArray:
        """Rows of the documents that a list shows, in its order."""
        view = self.view
        wanted = np.ones(len(view.placed), dtype=bool)
        if node is not None:
            wanted &= self._under(node)
        if state != "all":
            wanted &= self.answered.astype(bool) == (state == "done")
        if value is not None:
            kind, colon, name = value.partition(":")
            if not colon:
                raise UsageError("A metadata value is written as type:name.")
            wanted &= self._mask(self.store.rows_with(kind, name))
        if query is not None and query.strip():
            wanted &= self._mask(self.store.search(query))
        order = self._order(sort)
        return np.asarray(order[wanted[order]], dtype=np.int64)

    def _mask(self, rows: IntArray) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(self.view.placed), dtype=bool)
        found[rows[rows < len(found)]] = True
        return found

    def _under(self, node: int) -> npt.NDArray[np.bool_]:
        tree = self.view.tree
        if not 0 <= node < len(tree):
            raise LookupError(f"There is no category {node}.")
        if node == ROOT:
            return np.ones(len(self.effective), dtype=bool)
        below = np.zeros(len(tree) + 1, dtype=bool)
        below[node] = True
        for child in range(node + 1, len(tree)):
            below[child] = below[tree.parents[child]]
        # The last place stands for documents that are at no node.
        below[-1] = False
        return np.asarray(below[self.effective])

    def _order(self, sort: str) -> IntArray:
        view = self.view
        placed = view.placed
        if sort == "useful":
            return placed.useful.astype(np.int64)
        if sort == "suspect":
            rows = [self.row_of[name] for name in view.suspects if name in self.row_of]
            return np.array(rows, dtype=np.int64)
        if sort == "unsure" or (sort == "none" and not len(placed.none)):
            return np.argsort(view.confidence, kind="stable")
        if sort == "none":
            return np.argsort(-placed.none, kind="stable")
        if sort == "disputed":
            return np.argsort(view.dispute, kind="stable")
        return np.arange(len(placed), dtype=np.int64)

    def listed(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Documents as a list shows them."""
        return [self._plain(one, short=True) for one in self.store.documents(rows)]

    def _plain(self, one: StoredDocument, *, short: bool) -> dict[str, Any]:
        view, row = self.view, one.row
        tree, placed = view.tree, view.placed
        node, label = int(placed.nodes[row]), int(placed.labels[row])
        text = one.text
        if short and one.title and text.startswith(one.title):
            text = text[len(one.title) :].lstrip()
        suspect = view.suspects.get(one.id)
        known = None if label == UNLABELLED else [] if label == NOWHERE else list(tree.path(label))
        levels = placed.levels[row, : tree.depths[node]]
        return {
            "row": row,
            "id": one.id,
            "title": one.title,
            "text": text[:EXCERPT] if short else text,
            "metadata": one.metadata,
            "path": list(tree.path(node)),
            "node": node,
            "confidence": _round(view.confidence[row]),
            "levels": [_round(level) for level in levels],
            "none": _round(placed.none[row]) if len(placed.none) else None,
            "answer": self.answer(one.id),
            "label": known,
            "suspect": None if suspect is None else list(suspect),
        }

    def answer(self, name: str) -> dict[str, Any] | None:
        """What was last said of a document, with the path as the tree has it now."""
        said = self.log.said.get(name)
        if said is not None and said.path and (node := self.node(said.path)):
            said = said._replace(path=self.view.tree.path(node))
        return as_plain(said)

    def document(self, row: int, path: Sequence[str] | None = None) -> dict[str, Any]:
        """A document with its whole text, what else it may be, and why it is where it is."""
        from himecat.server.reasons import reasons

        if not 0 <= row < len(self.view.placed):
            raise LookupError(f"There is no document {row}.")
        (stored,) = self.store.documents([row])
        view, node = self.view, int(self.view.placed.nodes[row])
        if path:
            node = self.required_node(path)
        leaves, sure = view.placed.best[row].tolist(), view.placed.best_confidence[row].tolist()
        others = [
            {"path": list(view.tree.path(leaf)), "confidence": _round(chance)}
            for leaf, chance in zip(leaves[1:], sure[1:], strict=True)
            if leaf
        ]
        why = reasons(view.model, self._encoded(stored), node, stored.text)
        return {**self._plain(stored, short=False), "alternatives": others, "why": why}

    def _encoded(self, stored: StoredDocument) -> Corpus:
        """A document in the ids of the model's words and values."""
        model = self.view.model
        if self.source == KEPT_WORDS:
            if self._corpus is None:
                self._corpus = model.learned_from().corpus
            return self._corpus.take([stored.row])
        return model.encode([self.record(stored)])

    def record(self, stored: StoredDocument) -> dict[str, Any]:
        """A document as the reader of the model takes it."""
        model = self.view.model
        return {model.id_field: stored.id, model.fields().text[0]: stored.text, **stored.metadata}

    # -- what people say -------------------------------------------------------------------------------

    def paths_for(self, kind: str, rows: Sequence[int], path: Sequence[str] | None) -> Mapping[str, Any]:
        """What an action says of each document, by id."""
        count = len(self.ids)
        if wrong := [row for row in rows if not 0 <= row < count]:
            raise LookupError(f"There is no document {wrong[0]}.")
        names = [self.ids[row] for row in rows]
        if kind in (NONE, SKIP):
            return dict.fromkeys(names)
        if path:
            node = self.required_node(path)
            return dict.fromkeys(names, tuple(self.view.tree.path(node)))
        if kind != "accept":
            raise UsageError("A move needs the path to move to.")
        tree, nodes = self.view.tree, self.view.placed.nodes
        return {name: tuple(tree.path(int(nodes[row]))) for name, row in zip(names, rows, strict=True)}

    def sure_rows(self, node: int, min_confidence: float) -> IntArray:
        """Documents below a category that nobody has answered, and that the model is sure of."""
        view = self.view
        wanted = self._under(node) & (self.answered == 0) & (view.confidence >= min_confidence)
        wanted &= (view.placed.labels == UNLABELLED) & (view.placed.nodes > 0)
        if len(view.placed.none):
            # The confidence is that of the case that a document belongs anywhere.
            wanted &= view.placed.none <= 0.5
        return np.flatnonzero(wanted)


def _existing(documents: str | os.PathLike[str]) -> str:
    if not os.path.exists(documents):
        raise DataError(
            f"{os.fspath(documents)}: there is no such file or folder ({spelled('--documents', 'documents')})."
        )
    return os.fspath(documents)


def _round(chance: Any) -> float:
    return round(float(chance), 6)
