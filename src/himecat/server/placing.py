"""Documents are read once into the store and placed by the model; what is asked of all of them at once is arrays."""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.asking import choose
from himecat.errors import UsageError
from himecat.estimator import HiMeCat
from himecat.input.corpus import Corpus, Supervision
from himecat.input.dataset import DRAW_FILE
from himecat.input.documents import Document
from himecat.input.problems import Problems
from himecat.input.several import parted, resolved
from himecat.runtime.progress import Progress
from himecat.server.store import Store, StoredDocument
from himecat.teaching.map import arrange
from himecat.views.map2d import main_directions

N_BEST = 6
"""Of each document so many leaves are kept: the one it is placed at, and five others."""

UNLABELLED, NOWHERE = -1, -2
"""Stand for a node where a document has no label, and where its label says that it belongs nowhere."""

KEPT_WORDS = "kept words"
"""The source of documents that are only there as the words that the model keeps."""


@dataclass(frozen=True)
class Placements:
    """Where a model has placed all documents, by row.

    Attributes
    ----------
    nodes : array of int
        The node each document was placed at.
    levels : array of shape (documents, depth)
        The probability of its path at each level; NaN below its end.
    best, best_confidence : array of shape (documents, N_BEST)
        The most probable leaves; 0 where there are fewer.
    none : array
        The probability of belonging to no category; empty where the model does not know it.
    labels : array of int
        The node of the label that a document had before anybody answered.
    useful : array of int
        Rows in the order in which their labels would teach most; labelled documents stand at the end.
    points, places : arrays of shape (documents, 2) and (nodes, 2)
        The map: where documents and categories lie.
    """

    nodes: npt.NDArray[np.int32]
    levels: npt.NDArray[np.float32]
    best: npt.NDArray[np.int32]
    best_confidence: npt.NDArray[np.float32]
    none: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int32]
    useful: npt.NDArray[np.int32]
    points: npt.NDArray[np.float32]
    places: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.nodes)

    @classmethod
    def found(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Placements | None:
        """Placements that were kept; None where some of them are missing."""
        return cls(**arrays) if {one.name for one in fields(cls)} == set(arrays) else None

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _Seen:
    """Notes documents while they are read; its column is empty."""

    name = "himecat.server"

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self.fields = wanted
        self.documents: deque[Document] = deque()
        self._count = 0

    @contextmanager
    def open(self, source: Any, problems: Problems, progress: Progress) -> Iterator[_Seen]:
        yield self

    def extend(self, documents: Sequence[Document]) -> None:
        self.documents.extend(documents)
        self._count += len(documents)

    def finish(self) -> npt.NDArray[np.float32]:
        count, self._count = self._count, 0
        return np.zeros((count, 0), dtype=np.float32)


def fingerprint(documents: str | os.PathLike[str]) -> str:
    """What tells a file of documents from another, or from itself at another time."""
    path = os.path.realpath(documents)
    listed = [path]
    if os.path.isdir(path):
        listed += [os.path.join(at, name) for at, _, names in os.walk(path) for name in sorted(names)]
    digest = hashlib.sha256()
    for one in listed:
        found = os.stat(one)
        digest.update(f"{one}\0{found.st_size}\0{found.st_mtime_ns}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_and_place(model: HiMeCat, documents: Any, store: Store, progress: Progress) -> Placements:
    """Read a source into the store, and place its documents on the way."""
    text = model.fields().text
    seen = _Seen(text if len(text) > 1 else ("title",))
    problems, work = Problems(), _Work(model, store)
    # The labels in a dataset folder are the truth to score by: only those of the draw are known.
    is_dataset = isinstance(documents, str | os.PathLike) and os.path.exists(
        os.path.join(documents, DRAW_FILE)
    )

    def rows() -> Iterator[StoredDocument]:
        count = 0
        with progress.stage("Reading and placing documents") as stage:
            for origins, corpus, placed in model.iter_assignments(
                documents, problems, best=N_BEST, readers=[seen]
            ):
                kept = np.array([one.usable for one in origins], dtype=bool)
                found = [seen.documents.popleft() for _ in origins]
                work.add(corpus, placed, kept)
                for one, usable in zip(found, kept.tolist(), strict=True):
                    if usable:
                        label = None if is_dataset else one.labels
                        yield StoredDocument(count, one.id, _title(one, text), one.text, one.metadata, label)
                        count += 1
                stage.advance(len(origins))
        if not model.skip_bad or problems.has_fatal:
            problems.raise_errors()
        for problem in problems:
            progress.say(f"{problem.severity if problem.severity != 'error' else 'skipped'}: {problem}")

    store.fill(rows())
    return work.finish()


def read_kept(model: HiMeCat, store: Store, progress: Progress) -> Placements:
    """The same of the documents that are kept with the model: their known words, joined by blanks."""
    corpus, supervision = model.learned_from()
    labels = _paths_by_row(model, supervision)
    words = corpus.words.names
    values = {kind: column.vocabulary.names for kind, column in corpus.metadata.items()}

    def rows() -> Iterator[StoredDocument]:
        for row, name in enumerate(corpus.ids):
            text = " ".join([words[word] for word in corpus.tokens[row].tolist()])
            metadata = {
                kind: [names[value] for value in corpus.metadata[kind].values[row].tolist()]
                for kind, names in values.items()
                if len(corpus.metadata[kind].values[row])
            }
            yield StoredDocument(row, name, None, text, metadata, labels.get(row))

    store.fill(rows())
    return place(model, store, progress, corpus)


def _paths_by_row(model: HiMeCat, labelled: Supervision) -> dict[int, Any]:
    paths: dict[int, list[list[str]]] = {}
    for row, node in zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True):
        paths.setdefault(row, []).append(list(model.taxonomy_.path(node)))
    found: dict[int, Any] = {row: some[0] if len(some) == 1 else some for row, some in paths.items()}
    return found | dict.fromkeys(labelled.nowhere.tolist(), "none")


def place(model: HiMeCat, store: Store, progress: Progress, corpus: Corpus | None = None) -> Placements:
    """Place the documents of the store, as they are there or as the corpus that they come from."""
    text = model.fields().text[0]
    work = _Work(model, store)
    source: Any = corpus
    if corpus is None:
        source = ({model.id_field: one.id, text: one.text, **one.metadata} for one in store.iter_documents())
    with progress.stage("Placing all documents", total=int(store.fact("documents") or 0)) as stage:
        for origins, some, placed in model.iter_assignments(source, Problems(), best=N_BEST):
            work.add(some, placed, np.ones(len(origins), dtype=bool))
            stage.advance(len(origins))
    return work.finish()


def _title(document: Document, text: Sequence[str]) -> str | None:
    found = document.extra.get(text[0] if len(text) > 1 else "title")
    return found if isinstance(found, str) and found.strip() else None


class _Work:
    """Placements while documents are read."""

    def __init__(self, model: HiMeCat, store: Store) -> None:
        self._model, self._store = model, store
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self._directions: list[npt.NDArray[np.float16]] = []
        self._sketches: list[npt.NDArray[np.float32]] = []
        self._axes: npt.NDArray[np.float32] | None = None

    def add(self, corpus: Corpus, placed: Any, kept: npt.NDArray[np.bool_]) -> None:
        assert placed.best is not None
        none = np.zeros(0, np.float32) if placed.none is None else placed.none[kept]
        best, sure = np.zeros((len(placed), N_BEST), np.int32), np.zeros((len(placed), N_BEST), np.float32)
        width = placed.best.shape[1]
        best[:, :width], sure[:, :width] = placed.best, placed.best_confidence
        parts = {
            "nodes": placed.nodes[kept].astype(np.int32),
            "levels": placed.confidence[kept].astype(np.float32),
            "best": best[kept],
            "best_confidence": sure[kept],
            "none": none.astype(np.float32),
        }
        for name, array in parts.items():
            self._parts.setdefault(name, []).append(array)
        directions = self._model.classifier_.directions(corpus)
        if self._axes is None:
            self._axes = main_directions(directions)
        self._sketches.append((directions @ self._axes)[kept])
        self._directions.append(directions[kept].astype(np.float16))

    def finish(self) -> Placements:
        model = self._model
        depth = model.taxonomy_.depth
        empty: dict[str, npt.NDArray[Any]] = {
            "nodes": np.zeros(0, np.int32),
            "levels": np.zeros((0, depth), np.float32),
            "best": np.zeros((0, N_BEST), np.int32),
            "best_confidence": np.zeros((0, N_BEST), np.float32),
            "none": np.zeros(0, np.float32),
        }
        found = {name: np.concatenate([one, *self._parts.get(name, [])]) for name, one in empty.items()}
        labels = self._labels(len(found["nodes"]))
        useful = np.zeros(0, dtype=np.int32)
        if len(labels):
            labelled = np.flatnonzero(labels != UNLABELLED)
            # Of the probabilities only the first two are looked at.
            first = choose(
                found["best_confidence"][:, :2],
                np.concatenate(self._directions),
                labelled=labelled,
                count=len(labels),
                seed=int(model.random_state),
            )
            useful = np.concatenate([first, labelled]).astype(np.int32)
        points, places = np.zeros((0, 2), np.float32), np.zeros((len(model.taxonomy_), 2), np.float32)
        if len(labels):
            sketches = np.concatenate(self._sketches)
            best = found["best"].astype(np.int64)
            drawn = arrange(model.taxonomy_, model.space_.labels, best, found["best_confidence"], sketches)
            points, places = drawn.points.astype(np.float32), drawn.places
        return Placements(**found, labels=labels, useful=useful, points=points, places=places)

    def _labels(self, count: int) -> npt.NDArray[np.int32]:
        """The labels that documents bring along, else those that the model was fitted with."""
        model, reader = self._model, self._store.reader
        raw = {
            row: json.loads(label)
            for row, label in reader.execute("SELECT row, label FROM documents WHERE label IS NOT NULL")
        }
        found = np.full(count, UNLABELLED, dtype=np.int32)
        if not raw:
            return self._fitted_labels(found)
        given = parted(raw, model.separator_, model.taxonomy_, model.several if model.gives_sets else False)
        labelled = resolved(model.taxonomy_, given, "document {}".format, Problems(keep=1), model.separator_)
        found[labelled.rows[::-1]] = labelled.nodes[::-1]
        found[labelled.nowhere] = NOWHERE
        return found

    def _fitted_labels(self, found: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        try:
            corpus, labelled = self._model.learned_from()
        except UsageError:
            return found
        row_of = {name: row for row, name in enumerate(self._store.ids())}
        for row, node in zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True):
            if (own := row_of.get(corpus.ids[row])) is not None:
                found[own] = node
        for row in labelled.nowhere.tolist():
            if (own := row_of.get(corpus.ids[row])) is not None:
                found[own] = NOWHERE
        return found
