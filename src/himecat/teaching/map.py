"""The documents and labels of a model as a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.assigned import assigned
from himecat.classifier.assignments import Assignments
from himecat.errors import DataError
from himecat.input.corpus import Corpus
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import usable_threads
from himecat.teaching.corrector import Corrector
from himecat.views.map2d import main_directions, place_documents, place_nodes
from himecat.views.matrices import FloatArray

# Leaves that draw a document towards them.
_BEST = 4
_BATCH = 4096
# Characters of a text that are shown.
_SHOWN = 100


@dataclass(frozen=True)
class DocumentMap:
    """Documents and categories in two dimensions, within the unit disc.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    points : array of shape (documents, 2)
        Where documents lie.
    nodes : array of int
        The node of each document.
    confidence : array
        How sure that is.
    places : array of shape (nodes, 2)
        Where categories lie.
    radii : array
        How large they are.
    ids : sequence of str
        The ids of the documents.
    texts : sequence of str
        How their texts begin; empty where only words are kept.
    """

    taxonomy: Taxonomy
    points: FloatArray
    nodes: npt.NDArray[np.int64]
    confidence: FloatArray
    places: FloatArray
    radii: FloatArray
    ids: Sequence[str] = ()
    texts: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.points)


def arrange(
    taxonomy: Taxonomy,
    labels: FloatArray,
    best: npt.NDArray[np.int64],
    best_confidence: FloatArray,
    vectors: FloatArray,
    *,
    ids: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> DocumentMap:
    """A map of documents that were placed already; the same every time.

    Parameters
    ----------
    labels : array
        The vectors of the nodes, `JointSpace.labels`.
    best, best_confidence : arrays of shape (documents, n)
        The most probable leaves of each document, as :class:`himecat.Assignments` has them.
    vectors : array
        What documents are like, such as what `transform` gives; a few dimensions are enough.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> sure = np.array([[0.9], [0.8], [0.7]], dtype=np.float32)
    >>> found = arrange(tree, np.eye(3, dtype=np.float32), np.array([[1], [2], [2]]), sure, np.eye(3, dtype=np.float32))
    >>> found.points.shape, found.places.shape
    ((3, 2), (3, 2))
    """
    masses = np.bincount(best[:, 0], minlength=len(taxonomy)).astype(np.float64)
    for node in range(len(taxonomy) - 1, 0, -1):
        masses[taxonomy.parents[node]] += masses[node]
    places = place_nodes(taxonomy, labels, masses)
    points = place_documents(places, best, best_confidence, vectors)
    return DocumentMap(
        taxonomy,
        points,
        best[:, 0].astype(np.int64),
        best_confidence[:, 0].astype(np.float32),
        places.points.astype(np.float32),
        places.radii.astype(np.float32),
        ids,
        texts,
    )


def layout(model: Corrector, documents: Any = None) -> DocumentMap:
    """Documents and labels of a model in two dimensions.

    Parameters
    ----------
    model : HiMeCat
        A fitted model.
    documents : path, DataFrame, list of dicts, list of str or Corpus, optional
        The documents; by default those that are kept with the model.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> documents = ["red fox den", "red fox", "old car wheel", "old car"]
    >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents, ["animals", None, "things", None])
    >>> found = layout(model)
    >>> [found.taxonomy.title(node) for node in found.nodes], found.points.shape
    (['animals', 'animals', 'things', 'things'], (4, 2))
    """
    ids: list[str] = []
    texts: list[str] = []
    parts: list[tuple[npt.NDArray[np.int64], FloatArray, FloatArray]] = []
    axes: FloatArray | None = None

    def add(corpus: Corpus, placed: Assignments, usable: npt.NDArray[np.bool_]) -> None:
        nonlocal axes
        vectors = model.classifier_.directions(corpus)
        axes = main_directions(vectors) if axes is None else axes
        assert placed.best is not None
        assert placed.best_confidence is not None
        found = placed.best[usable], placed.best_confidence[usable], (vectors @ axes)[usable]
        parts.append(found)
        ids.extend(name for name, one in zip(corpus.ids, usable.tolist(), strict=True) if one)

    if documents is None or isinstance(documents, Corpus):
        classifier = model.classifier_
        corpus = model.kept_documents() if documents is None else model.encode(documents)
        for first in range(0, len(corpus), _BATCH):
            some = corpus.between(first, first + _BATCH)
            placed = assigned(classifier, model.taxonomy_, some, usable_threads(model.threads), best=_BEST)
            add(some, placed, np.ones(len(some), dtype=bool))
    else:
        problems = Problems()
        fields = model.fields()
        for origins, some, placed in model.iter_assignments(
            documents, problems, _BATCH, best=_BEST, keep_records=True
        ):
            usable = np.array([one.usable for one in origins], dtype=bool)
            add(some, placed, usable)
            texts += [_beginning(one.record, fields.text) for one in origins if one.usable]
        if not model.skip_bad or problems.has_fatal:
            problems.raise_errors()
    if not ids:
        raise DataError("There is no document to lay out.")
    best, confidence, vectors = (np.concatenate(part) for part in zip(*parts, strict=True))
    return arrange(model.taxonomy_, model.space_.labels, best, confidence, vectors, ids=ids, texts=texts)


def _beginning(record: Any, fields: Sequence[str]) -> str:
    values = [record.get(name) for name in fields] if record else []
    text = " ".join(" ".join(value.split()) for value in values if isinstance(value, str))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}\N{HORIZONTAL ELLIPSIS}"
