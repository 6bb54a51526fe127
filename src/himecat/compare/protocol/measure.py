"""One run of one system, in this process: read the dataset, fit on a few labelled documents, score all the others."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments
from himecat.compare.protocol.run import Run, finite
from himecat.compare.protocol.sets import calibration_of_sets, scores_of_sets
from himecat.compare.protocol.worker import costs_since
from himecat.compare.systems.system import NodeArray, System, Task, checked_nodes
from himecat.errors import DataError, UsageError, spelled
from himecat.evaluation.metrics import score
from himecat.evaluation.reliability import level_calibration
from himecat.input.builder import LoadedCorpus, load_corpus
from himecat.input.corpus import Corpus, Supervision
from himecat.input.dataset import Dataset, draw, open_dataset, true_nodes
from himecat.input.documents import Document, Fields, read_documents
from himecat.input.labelled_file import open_file, read_truth
from himecat.input.labels import supervise
from himecat.input.problems import Problems
from himecat.input.set_draws import draw_sets, of_rows, true_sets
from himecat.input.taxonomy.readers import read_taxonomy
from himecat.input.tokenizer import Tokenizer
from himecat.runtime.progress import Progress, silent
from himecat.views.encoder_cache import EncoderReader
from himecat.views.text_encoder import open_encoder

RowIds = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Source:
    """A dataset folder, or a file with labelled documents, and how its documents are read.

    Attributes
    ----------
    folder : path
        The dataset folder, or the file.
    fields : Fields
        Names of the fields; without metadata, those of `meta_dict.json`.
    taxonomy : str, optional
        A file with another tree than that of the folder; of a file, instead of the tree that its labels span.
    limit : int or None
        Only this many documents: the labelled ones and a random part of the others, the same for all systems.
    tokenizer : str or Tokenizer
        What splits texts into words.
    folds, truth
        Of a file: see `himecat.input.dataset.Dataset`.

    Examples
    --------
    >>> Source("letters").limit is None
    True
    """

    folder: str | PathLike[str]
    fields: Fields | None = None
    taxonomy: str | None = None
    limit: int | None = None
    tokenizer: str | Tokenizer = "unicode"
    folds: int = 0
    truth: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether this is a file of documents, not a dataset folder."""
        return os.path.isfile(self.folder)

    def open(self, problems: Problems | None = None) -> Dataset:
        """The dataset; its tree and metadata fields are those that were asked for, notes go to `problems`."""
        if self.is_file:
            return open_file(
                self.folder,
                self.taxonomy,
                self.fields or Fields(),
                folds=self.folds,
                truth=self.truth,
                problems=problems,
            )
        if self.truth is not None:
            raise UsageError(
                f"A second file with the truth goes with a file of documents, not with {self.folder}."
            )
        dataset = open_dataset(self.folder)
        if self.taxonomy is not None:
            dataset = replace(dataset, taxonomy=read_taxonomy(self.taxonomy))
        return dataset if self.fields is None else replace(dataset, metadata=self.fields.metadata)


@dataclass(frozen=True)
class Reading:
    """A dataset as one system reads it, with the true nodes, which the system does not see.

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
    sets: Supervision | None = None

    @property
    def test(self) -> RowIds:
        """Rows of the documents that are scored: those whose truth is known and not shown."""
        return np.setdiff1d(np.flatnonzero(self.truth >= 0), self.labelled.rows)


def measure(
    source: Source,
    system: System,
    number: int = 0,
    *,
    per_leaf: int = 5,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    encoder: str | None = None,
    holdout: float = 0.0,
    threads: int = 1,
    progress: Progress | None = None,
) -> Run:
    """Run a system on one draw and score the documents that are not labelled.

    The costs are those of this process: reading, fitting and predicting. Cached vectors of an encoder cost next
    to nothing. What a holdout adds comes last and is not in the costs.

    Parameters
    ----------
    source : Source
        The dataset.
    system : System
        What predicts.
    number, per_leaf : int
        Which draw of the labelled documents, and how many per leaf where `doc_id.txt` does not list them.
    seed, threads : int
        Given to the system.
    parameters : mapping, optional
        The system's parameters as the record names them.
    encoder : str, optional
        A text encoder, for systems with `vectors` or `texts`.
    holdout : float
        Share of the unlabelled documents for a second fit without them; see `Run.held_out`. 0 for no second fit.
    progress : Progress, optional
        Where progress is shown.

    Raises
    ------
    DataError
        The dataset cannot be used.
    UsageError
        The system needs an encoder and there is none, or did not give a leaf for every document.

    Examples
    --------
    >>> import tempfile
    >>> from himecat.compare.systems.tfidf_svm import TfidfSvm
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run = measure(Source(write_sample(f"{place}/letters", 330)), TfidfSvm())
    >>> run.dataset, run.system, run.leaf["micro"] > 0.1
    ('letters', 'tfidf-svm', True)
    """
    began = time.perf_counter()
    shown = progress or silent()
    if system.vectors and encoder is None:
        raise UsageError(
            f"The system {system.name!r} needs an encoder: name one with {spelled('--encoder', 'encoder=')}."
        )
    dataset = source.open()
    read = read_draw(source, dataset, system, number, per_leaf, encoder, threads, shown)
    test, taxonomy = read.test, dataset.taxonomy
    if holdout and read.sets is not None:
        raise UsageError(
            f"{spelled('--holdout', 'holdout=')} is not measured where documents have several paths: leave it out."
        )
    if not len(test):
        raise DataError(
            f"{dataset.documents}: draw {number} labels every document, so none is left to score."
        )
    name, n_labelled = "Fold" if source.folds else "Draw", len(np.unique(read.labelled.rows))
    shown.say(f"{name} {number}: {n_labelled:,} labelled documents, {len(test):,} to score")
    # From here on the system sees the labels of the drawn documents and no others.
    task = Task(
        read.corpus,
        taxonomy,
        read.labelled,
        texts=read.texts,
        encoder=encoder if system.vectors or system.texts else None,
        seed=seed,
        threads=threads,
        progress=shown,
    )
    found = system.fit_predict(task)
    nodes = checked_nodes(system, found, taxonomy, len(read.corpus))
    sets = None if read.sets is None else scores_of_sets(taxonomy, of_rows(read.sets, test), found)
    scores = sets or score(taxonomy, read.truth[test], nodes[test])
    costs = costs_since(began)
    run = Run(
        dataset=dataset.name,
        system=system.name,
        title=system.title,
        parameters=dict(parameters or {}),
        draw=number,
        seed=seed,
        leaf=scores.leaf.as_dict(),
        overall=scores.overall.as_dict(),
        seconds=round(costs.seconds, 3),
        cpu_seconds=round(costs.cpu_seconds, 3),
        peak_rss_mb=round(costs.peak_rss_mb, 1),
        sets=None if sets is None else sets.as_dict(),
    )
    if read.sets is not None:
        return replace(run, calibration=calibration_of_sets(of_rows(read.sets, test), found))
    if isinstance(found, Assignments):
        tested = Assignments(taxonomy, found.nodes[test], found.confidence[test])
        run = replace(run, calibration=finite(level_calibration(taxonomy, read.truth[test], tested)))
    if not holdout:
        return run
    size = max(1, round(holdout * len(test)))
    out = test[np.sort(np.random.default_rng(number).choice(len(test), size, replace=False))]
    shown.say(f"Once more without {len(out):,} of the documents to score")
    later = _predict_new(system, task, out)
    return replace(
        run,
        held_out=score(taxonomy, read.truth[out], later.nodes).leaf.as_dict(),
        had_them=score(taxonomy, read.truth[out], nodes[out]).leaf.as_dict(),
    )


def _predict_new(system: System, task: Task, out: RowIds) -> Assignments:
    """What a model fitted without some documents predicts for them.

    Words and metadata values that only they bring are left out too: a model that knew them would not be meeting
    new documents.
    """
    fit = getattr(system, "fit", None)
    if fit is None:
        raise UsageError(f"The system {system.name!r} predicts only the documents that it is fitted on.")
    rows = np.setdiff1d(np.arange(len(task.corpus)), out)
    rest = task.corpus.take(rows).recounted(system.min_count)
    labelled = replace(task.supervision, rows=np.searchsorted(rows, task.supervision.rows))
    model = fit(replace(task, corpus=rest, supervision=labelled))
    found: Assignments = model.assign(task.corpus.take(out))
    return found


def read_draw(
    source: Source,
    dataset: Dataset,
    system: System,
    number: int,
    per_leaf: int = 5,
    encoder: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Reading:
    """Read a dataset as a system asks for it: its words, and texts and vectors where it wants them.

    With a limit, the documents beyond it are not read: their words are not counted either.
    """
    fields = dataset.fields or source.fields or Fields(metadata=dataset.metadata)
    documents: Any = dataset.documents
    if source.limit is not None:
        truth, labelled, sets, rows = _limited(source.limit, dataset, fields, number, per_leaf)
        listed: set[str] = set()
        read = _documents(dataset.documents, fields, rows, listed)
        documents = [_record(document, fields, listed) for document in read]
    readers = []
    if system.vectors and encoder is not None:
        # Cached beside the dataset's file also where only a part of it is read.
        readers = [EncoderReader(open_encoder(encoder, threads=threads), beside=dataset.documents)]
    loaded = load_corpus(
        documents,
        fields,
        min_count=system.min_count,
        max_tokens=system.max_tokens,
        tokenizer=source.tokenizer,
        readers=readers,
        progress=progress,
    )
    # They are the same for all draws.
    for problem in () if number else loaded.problems.of("warning"):
        (progress or silent()).say(f"warning: {problem}")
    if source.limit is None:
        truth, labelled, sets = _shown_and_true(dataset, loaded, fields, number, per_leaf)
        read = _documents(dataset.documents, fields) if system.texts else []
    texts = [_full_text(one) for one in read] if system.texts else ()
    return Reading(loaded.corpus, truth, labelled, texts, sets)


def _shown_and_true(
    dataset: Dataset, loaded: LoadedCorpus, fields: Fields, number: int, per_leaf: int
) -> tuple[NodeArray, Supervision, Supervision | None]:
    """The true nodes, the labels that a system is shown, and the true sets where documents have several paths."""
    if (sets := true_sets(dataset, loaded)) is not None:
        truth = np.full(len(loaded.corpus), -1, dtype=np.int64)
        truth[sets.rows] = sets.nodes
        return truth, draw_sets(dataset, sets, number, per_leaf), sets
    carried = true_nodes(dataset, loaded)
    if dataset.truth is None:
        return carried, draw(dataset, carried, number, per_leaf), None
    rows = np.flatnonzero(carried >= 0)
    row_of = {name: row for row, name in enumerate(loaded.corpus.ids)}
    given = read_truth(dataset.truth, fields)
    by_row = {row_of[name]: label for name, label in given.items() if name in row_of}
    if not by_row:
        raise DataError(f"{dataset.truth}: none of its ids is that of a document of {dataset.documents}.")
    problems = Problems()
    known = supervise(
        dataset.taxonomy,
        dataset.paths_of(by_row),
        lambda row: f"{dataset.truth}, {loaded.corpus.ids[row]}",
        problems,
    )
    problems.raise_errors()
    truth = np.full(len(carried), -1, dtype=np.int64)
    truth[known.rows] = known.nodes
    return truth, Supervision(rows, carried[rows]), None


def _limited(
    limit: int, dataset: Dataset, fields: Fields, number: int, per_leaf: int
) -> tuple[NodeArray, Supervision, Supervision | None, RowIds]:
    """True nodes and labels of the documents within the limit, and their rows in the dataset."""
    loaded = load_corpus(dataset.documents, fields, max_tokens=1)
    truth, labelled, sets = _shown_and_true(dataset, loaded, fields, number, per_leaf)
    others = np.setdiff1d(np.arange(len(truth)), labelled.rows)
    size = limit - (len(truth) - len(others))
    if size < 1:
        raise UsageError(
            f"{spelled(f'--limit {limit}', f'limit={limit}')} leaves no document to score: draw {number} labels "
            f"{len(labelled)}."
        )
    # The order does not depend on the limit: a larger one only adds documents.
    part = np.random.default_rng(number).permutation(others)[:size]
    rows = np.union1d(labelled.rows, part)
    labelled = replace(labelled, rows=np.searchsorted(rows, labelled.rows))
    sets = None if sets is None else of_rows(sets, rows, renumber=True)
    return truth[rows], labelled, sets, rows


def _documents(
    file: Path, fields: Fields, rows: RowIds | None = None, listed: set[str] | None = None
) -> list[Document]:
    wanted = None if rows is None else set(rows.tolist())
    every = enumerate(chain.from_iterable(read_documents(file, fields, Problems(), listed=listed)))
    return [document for row, document in every if wanted is None or row in wanted]


def _record(document: Document, fields: Fields, listed: set[str]) -> dict[str, Any]:
    # What was no list must not become one, whose values would be taken as they are.
    metadata = {
        name: values if name in listed or len(values) > 1 else values[0]
        for name, values in document.metadata.items()
    }
    return {**metadata, fields.id: document.id, fields.text[0]: document.text}


def _full_text(document: Document) -> str:
    values = [value for kind in document.metadata.values() for value in kind]
    return " ".join([document.text, *values])
