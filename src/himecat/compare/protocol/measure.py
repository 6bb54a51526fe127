"""One run of one system, in this process: read the dataset, show a few labels, score all the others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.compare.protocol.processes import costs_since
from himecat.compare.protocol.results import Run
from himecat.compare.systems.system import NodeArray, System, Task
from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import score
from himecat.input.builder import load_corpus
from himecat.input.corpus import Corpus, Supervision
from himecat.input.dataset import Dataset, draw, open_dataset, true_nodes
from himecat.input.documents import Document, Fields, read_documents
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.progress import Progress, silent
from himecat.views.encoder_cache import EncoderReader
from himecat.views.text_encoder import open_encoder


@dataclass(frozen=True)
class Draw:
    """What one run sees of a dataset.

    Attributes
    ----------
    number, per_leaf : int
        Which draw of the labelled documents, and how many per leaf where `doc_id.txt` does not say.
    limit : int or None
        Only this many documents: the labelled ones and a random part of the others, the same for all systems.

    Examples
    --------
    >>> Draw(0).limit is None
    True
    """

    number: int
    per_leaf: int = 5
    limit: int | None = None


@dataclass(frozen=True)
class Reading:
    """A dataset as one system reads it, with the truth that the system is not shown.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> few = Supervision(np.array([1]), np.array([2]))
    >>> Reading(read_corpus(["x", "y", "z"]), np.array([1, 2, 2]), few, ()).test.tolist()
    [0, 2]
    """

    corpus: Corpus
    truth: NodeArray
    labelled: Supervision
    texts: Sequence[str]

    @property
    def test(self) -> npt.NDArray[np.int64]:
        """Rows of the documents that are scored: those that are not labelled."""
        return np.setdiff1d(np.arange(len(self.truth)), self.labelled.rows)


def measure(
    folder: str | PathLike[str],
    system: System,
    drawn: Draw,
    *,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    encoder: str | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Run:
    """Run a system on one draw and score the documents that are not labelled.

    The costs are those of this process: reading, learning and placing. Vectors of an encoder that are kept
    already cost next to nothing.

    Parameters
    ----------
    folder : path
        A dataset folder.
    system : System
        What places the documents.
    drawn : Draw
        Which documents it sees, and which of them with labels.
    seed, threads : int
        Given to the system.
    parameters : mapping, optional
        What the record says of the system's parameters.
    encoder : str, optional
        A text encoder, for systems with `vectors` or `texts`.
    progress : Progress, optional
        Told how far the work has come.

    Raises
    ------
    DataError
        The dataset cannot be used.
    UsageError
        The system needs an encoder and there is none, or gave something else than a leaf per document.

    Examples
    --------
    >>> import tempfile
    >>> from himecat.compare.systems.tfidf_svm import TfidfSvm
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run = measure(write_sample(f"{place}/letters", 330), TfidfSvm(), Draw(0))
    >>> run.dataset, run.system, run.leaf["micro"] > 0.1
    ('letters', 'tfidf-svm', True)
    """
    began = time.perf_counter()
    shown = progress or silent()
    if system.vectors and encoder is None:
        raise UsageError(f"The system {system.name!r} needs an encoder: name one with --encoder.")
    dataset = open_dataset(folder)
    reads = system.vectors or system.texts
    read = read_draw(dataset, system, drawn, encoder=encoder, threads=threads, progress=shown)
    test = read.test
    if not len(test):
        raise DataError(
            f"{dataset.documents}: draw {drawn.number} labels every document, so none is left to score."
        )
    # From here on the system sees the labels of the drawn documents and no others.
    found = system.place(
        Task(
            read.corpus,
            dataset.taxonomy,
            read.labelled,
            texts=read.texts,
            encoder=encoder if reads else None,
            seed=seed,
            threads=threads,
            progress=shown,
        )
    )
    nodes = _checked(system, found, dataset.taxonomy, len(read.corpus))
    scores = score(dataset.taxonomy, read.truth[test], nodes[test])
    costs = costs_since(began)
    return Run(
        dataset=dataset.name,
        system=system.name,
        title=system.title,
        parameters=dict(parameters or {}),
        draw=drawn.number,
        seed=seed,
        leaf=scores.leaf.as_dict(),
        overall=scores.overall.as_dict(),
        seconds=round(costs.seconds, 3),
        cpu_seconds=round(costs.cpu_seconds, 3),
        peak_rss_mb=round(costs.peak_rss_mb, 1),
    )


def read_draw(
    dataset: Dataset,
    system: System,
    drawn: Draw,
    *,
    encoder: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Reading:
    """Read a dataset as a system asks for it: its words, and texts and vectors where it wants them.

    With a limit, the documents beyond it might as well not be there: their words are not counted either.
    """
    fields = Fields(metadata=dataset.metadata)
    source: Any = dataset.documents
    if drawn.limit is not None:
        truth, labelled, rows = _chosen(dataset, fields, drawn)
        kept = _documents(dataset, fields, rows)
        source = [_record(document) for document in kept]
    # Kept beside the dataset's file also where only a part of it is read.
    readers = (
        [EncoderReader(open_encoder(encoder, threads=threads), beside=dataset.documents)]
        if system.vectors and encoder is not None
        else []
    )
    loaded = load_corpus(
        source,
        fields,
        min_count=system.min_count,
        max_tokens=system.max_tokens,
        readers=readers,
        progress=progress,
    )
    if drawn.limit is None:
        truth = true_nodes(dataset, loaded)
        labelled = draw(dataset, truth, drawn.number, drawn.per_leaf)
        kept = _documents(dataset, fields) if system.texts else []
    return Reading(loaded.corpus, truth, labelled, [_full_text(d) for d in kept] if system.texts else ())


def _chosen(
    dataset: Dataset, fields: Fields, drawn: Draw
) -> tuple[NodeArray, Supervision, npt.NDArray[np.int64]]:
    """Truth and labels of the documents within the limit, and their rows in the dataset."""
    truth = true_nodes(dataset, load_corpus(dataset.documents, fields, max_tokens=1))
    labelled = draw(dataset, truth, drawn.number, drawn.per_leaf)
    others = np.setdiff1d(np.arange(len(truth)), labelled.rows)
    size = (drawn.limit or 0) - len(labelled)
    if size < 1:
        raise UsageError(
            f"--limit {drawn.limit} leaves no document to score: draw {drawn.number} labels {len(labelled)}."
        )
    # The order does not depend on the limit: a larger one only adds documents.
    part = np.random.default_rng(drawn.number).permutation(others)[:size]
    rows = np.union1d(labelled.rows, part)
    return truth[rows], replace(labelled, rows=np.searchsorted(rows, labelled.rows)), rows


def _documents(dataset: Dataset, fields: Fields, rows: npt.NDArray[np.int64] | None = None) -> list[Document]:
    wanted = None if rows is None else set(rows.tolist())
    every = enumerate(chain.from_iterable(read_documents(dataset.documents, fields, Problems())))
    return [document for row, document in every if wanted is None or row in wanted]


def _record(document: Document) -> dict[str, Any]:
    return {**document.metadata, "id": document.id, "text": document.text, "labels": document.labels}


def _full_text(document: Document) -> str:
    values = [value for kind in document.metadata.values() for value in kind]
    return " ".join([document.text, *values])


def _checked(system: System, found: Any, taxonomy: Taxonomy, n_documents: int) -> NodeArray:
    nodes = np.asarray(found)
    if nodes.shape != (n_documents,):
        shape = " x ".join(map(str, nodes.shape)) or "a single value"
        raise UsageError(
            f"The system {system.name!r} should give one leaf for each of {n_documents} documents, and gave {shape}."
        )
    if not np.issubdtype(nodes.dtype, np.integer):
        raise UsageError(
            f"The system {system.name!r} should give nodes of the tree as whole numbers, not {nodes.dtype}."
        )
    leaves = np.asarray(taxonomy.leaves)
    strange = np.flatnonzero(~np.isin(nodes, leaves))
    if len(strange):
        node = int(nodes[strange[0]])
        known = f", {taxonomy.title(node) if node else 'the root'}," if 0 <= node < len(taxonomy) else ""
        raise UsageError(
            f"The system {system.name!r} put document {strange[0]} on node {node}{known} which is not a leaf of "
            "the tree."
        )
    return nodes.astype(np.int64)
