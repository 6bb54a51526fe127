"""What a fitted model does with documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.assigned import assigned
from himecat.classifier.assignments import Assignments, rows_at_once
from himecat.classifier.protocol import Classifier, Round
from himecat.classifier.quality import Quality
from himecat.classifier.set_assignments import SetAssignments
from himecat.classifier.several import SeveralClassifier
from himecat.classifier.staged import StagedClassifier
from himecat.errors import DataError, UsageError
from himecat.evaluation.explain import Explanations, LabelExplanation, explain_documents, explain_label
from himecat.input.builder import Origin
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus, Supervision
from himecat.input.labels import labels_by_row
from himecat.input.problems import Problems
from himecat.input.separators import FLAT, SLASH, checked, joint_of, path_of
from himecat.input.several import parted, resolved
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import check_value
from himecat.runtime.threads import prefetch, usable_threads
from himecat.views.document_reader import DocumentReader, usable_rows


class Predictor(DocumentReader):
    """An estimator once it is fitted; :class:`himecat.HiMeCat` says what its parameters and attributes are."""

    separator_: str
    min_confidence: float
    several: bool | None
    random_state: int
    taxonomy_: Taxonomy
    classifier_: Classifier
    classes_: npt.NDArray[np.object_]
    paths_: list[tuple[str, ...]]
    history_: list[Round]
    problems_: Problems
    quality_: Quality | None
    keywords_: dict[str, list[str]] | None
    separator: str | None

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Probability of every leaf, one row per document; columns follow `classes_`, rows sum to 1.

        Of a model with several places per document: of every category, each by itself.
        """
        corpus = self.encode(X)
        return self.classifier_.leaf_probabilities(corpus, usable_threads(self.threads))

    def assign(self, X: Any) -> Assignments:
        """Path and per-level probabilities of every document; `min_confidence` may cut a path short.

        With `skip_bad`, the path of a document that cannot be used is empty. With several places per document it is a
        :class:`SetAssignments`.
        """
        return self._assign(*self._encoded(X), usable_threads(self.threads))

    def _assign(
        self,
        corpus: Corpus,
        usable: npt.NDArray[np.bool_],
        threads: int,
        best: int = 0,
        known: Supervision | None = None,
    ) -> Assignments:
        bound = check_value("min_confidence", self.min_confidence)
        found = assigned(self.classifier_, self.taxonomy_, corpus, threads, bound, best=best, known=known)
        return found.without(~usable)

    @property
    def knows_nowhere(self) -> bool:
        """Whether documents get a probability of belonging to none of the categories."""
        return getattr(self.classifier_, "nowhere", None) is not None

    def predict(self, X: Any, as_tuples: bool = False) -> npt.NDArray[np.object_] | list[tuple[str, ...]]:
        """The path of every document as one string, `a/b/c`: an array as scikit-learn's metrics take it.

        With several places per document it is a tuple of such strings, the surest first. Labels in the documents are
        never looked at. Where names hold a `/` and two paths would read the same, it is
        `\\/` inside their names.

        Parameters
        ----------
        X : path, DataFrame, list of dicts, list of str, or Corpus
            The documents.
        as_tuples : bool
            Give a list of tuples of names instead; with several places per document, tuples of such tuples.
        """
        placed = self.assign(X)
        if isinstance(placed, SetAssignments) and not as_tuples:
            found = np.empty(len(placed), dtype=object)
            found[:] = [tuple(self._spelled(placed.nodes_of(row))) for row in range(len(placed))]
            return found
        return list(placed) if as_tuples else self._spelled(placed.nodes.tolist())

    def set_separator(self, separator: str) -> None:
        """Take what separates levels in the labels of new documents and in paths as one string, if not as in the fit.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> model = HiMeCat(method=Default(min_count=1)).fit(["a goal", "a law"], ["news/sport", "news/politics"])
        >>> model.set_separator(">")
        >>> model.predict(["a goal"]).tolist()
        ['news > sport']
        """
        self._check_fitted()
        found = checked(separator)
        self.separator_ = SLASH if found in (None, FLAT) else found

    @property
    def gives_sets(self) -> bool:
        """Whether documents get several paths."""
        return isinstance(self.classifier_, SeveralClassifier)

    @property
    def joint(self) -> str:
        """What stands between the names of a path in one string, as in the labels of the fit."""
        return joint_of(self.separator_)

    def _spelled(self, nodes: Sequence[int]) -> npt.NDArray[np.object_]:
        known = {node: self.taxonomy_.spelled(node, self.joint) for node in set(nodes)}
        found = np.empty(len(nodes), dtype=object)
        found[:] = [known[node] for node in nodes]
        return found

    def predict_frame(self, X: Any, *, top: int = 2, ignore_labels: bool = False) -> Any:
        """The documents as a table, with columns that say where each was placed.

        The columns are those of a table that `himecat predict` writes: `path`, `level1`, ..., `confidence`,
        `none`, `alternative1`, `alternative1_confidence`, ...; with `min_confidence` also `guess`. A name that is
        taken gets `himecat_` before it.

        Parameters
        ----------
        X : DataFrame, pyarrow table, Hugging Face dataset, list of dicts, list of str or path
            The documents. What comes back is of the same type, a pandas frame with the same index; for a list or a
            file a pandas frame, or a list of dicts where pandas is not installed.
        top : int
            How many other leaves are told of each document.
        ignore_labels : bool
            Place documents that carry a label by the model, too; otherwise they stay where their label puts them, and
            a column `labelled` says so.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> documents = [{"text": "a late goal", "labels": "sport"}, {"text": "a new law", "labels": "politics"}]
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
        >>> model.predict_frame(documents, top=0)["path"].tolist()
        ['sport', 'politics']
        """
        from himecat.output.frames import placed_frame

        return placed_frame(self, X, top=top, ignore_labels=ignore_labels)

    def iter_assignments(
        self,
        X: Any,
        problems: Problems,
        batch_size: int = 4096,
        *,
        best: int = 0,
        keep_labels: bool = False,
        keep_records: bool = False,
        readers: Sequence[ColumnReader] = (),
    ) -> Iterator[tuple[list[Origin], Corpus, Assignments]]:
        """Place documents batch by batch: of those already placed, memory holds only the last ids.

        With more than one thread, a batch is placed while the next one is read.

        Unless `skip_bad` is set, nothing more is placed once `problems` holds an error; the rest is still
        read, so that all errors are found.

        Parameters
        ----------
        X : path, DataFrame, list of dicts, list of str, or Corpus
            The documents.
        problems : Problems
            Receives what is found; `himecat.input.problems.Problems()` is an empty one.
        batch_size : int
            Most documents in a batch.
        best : int
            How many of the most probable leaves the assignments tell of each document.
        keep_labels : bool
            Whether a document that carries a label stays where that puts it; by default no label is looked at.
        keep_records : bool
            Whether each origin has all fields of its document.
        readers : sequence of ColumnReader
            What else looks at the documents while they are read.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> from himecat.input.problems import Problems
        >>> documents = [{"text": "a late goal", "labels": "sport"}, {"text": "a new law", "labels": "politics"}]
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
        >>> problems = Problems()
        >>> for origins, _, placed in model.iter_assignments(["a goal"], problems):
        ...     print(origins[0].id, placed.path(0), problems.has_errors)
        0 ('sport',) False
        """
        self._check_fitted()
        threads = usable_threads(self.threads)
        if isinstance(self.classifier_, StagedClassifier):
            # Documents go down the stages together.
            batch_size = max(batch_size, self.classifier_.together)
        else:
            # Documents x leaves of a batch are held twice: 128 MB each at most.
            batch_size = rows_at_once(self.taxonomy_.n_leaves, batch_size, values=1 << 25)
        if isinstance(X, Corpus):
            batches = _parts(X.aligned(self.space_.vocabulary, self.space_.values), batch_size)
        else:
            batches = self._read_new(X, problems, batch_size, readers, keep_records)
        wanted = (batch for batch in batches if self.skip_bad or not problems.has_errors)
        strange = Problems(keep=1)

        def place(batch: tuple[list[Origin], Corpus]) -> Assignments:
            origins, corpus = batch
            known = self._known(origins, strange) if keep_labels else None
            # One thread reads.
            return self._assign(corpus, usable_rows(origins), max(1, threads - 1), best, known)

        for (origins, corpus), placed in prefetch(wanted, place, background=threads > 1):
            yield origins, corpus, placed
        if count := strange.counts["error"]:
            documents = "1 document" if count == 1 else f"{count:,} documents"
            problems.warning(
                "",
                f"the labels of {documents} are no categories of the model, which places them itself; "
                f"the first: {strange.items[0]}",
            )

    def _known(self, origins: Sequence[Origin], strange: Problems) -> Supervision:
        """The documents whose own label says where they belong."""
        labels = {row: one.labels for row, one in enumerate(origins) if one.labels is not None}
        tree, joint = self.taxonomy_, self.separator_
        given = parted(labels, joint, tree, self.several if self.gives_sets else False)
        return resolved(tree, given, lambda row: origins[row].place, strange, joint)

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Vectors of documents in the joint space: the direction of their words and metadata values."""
        corpus = self.encode(X)
        return self.classifier_.directions(corpus)

    def score(self, X: Any, y: Any) -> float:
        """Leaf micro F1 of the predictions for the documents that have a label; with several places, of the sets."""
        from himecat.evaluation.metrics import score
        from himecat.evaluation.set_metrics import score_sets

        taxonomy = self._fitted_taxonomy()
        placed = self.assign(X)
        labels = labels_by_row(y, len(placed))
        if not labels:
            raise DataError("No document has a label to score its prediction by.")
        if isinstance(placed, SetAssignments):
            given = parted(labels, self.separator_, taxonomy, self.several)
            sets = resolved(taxonomy, given, "document {}".format, separator=self.separator_)
            return float(score_sets(taxonomy, sets, placed.as_pairs()).categories.micro)
        truth = np.array([self.node_of(label) for label in labels.values()], dtype=np.int64)
        return float(score(taxonomy, truth, placed.nodes[list(labels)]).leaf.micro)

    def explain(
        self, label: str | Sequence[str] | None = None, *, documents: Any = None, top: int = 10
    ) -> LabelExplanation | Explanations:
        """Say what lies nearest to a label, or what in each document speaks for where it was placed.

        Parameters
        ----------
        label : str or sequence of str, optional
            A label: its nearest words, metadata values and labels are returned. Together with `documents`:
            explain the documents for this label instead of the predicted one.
        documents : path, DataFrame, list of dicts or list of str, optional
            Documents to explain.
        top : int
            How many of each.
        """
        self._check_fitted()
        node = None if label is None else self.node_of(label)
        if documents is None:
            if node is None:
                raise UsageError("explain needs a label, documents, or both.")
            return explain_label(self.space_, node, top, self.classifier_)
        corpus, usable = self._encoded(documents)
        placed = self._assign(corpus, usable, usable_threads(self.threads))
        return explain_documents(self.space_, corpus, placed, node, top, self.classifier_)

    def synthesize(
        self, label: str | Sequence[str], count: int = 5, seed: int | None = None
    ) -> list[list[str]]:
        """Make documents of 40 words for a category from its place in the space, and return their words.

        `fit` makes such documents for flat classifiers at inner nodes; the default classifier needs none.
        """
        from himecat.paper.fit import example_documents

        node = self.node_of(label)
        chosen = int(self.random_state) if seed is None else seed
        return example_documents(self.space_, node, self.method_, count, chosen)

    def node_of(self, label: Any) -> int:
        """The node of a label, as labels were written in the fit, or as a path with slashes."""
        tree = self._fitted_taxonomy()
        try:
            return tree.find(label)
        except DataError:
            if (path := path_of(label, self.separator_)) == label:
                raise
            return tree.find(path)  # type: ignore[arg-type]

    def _fitted_taxonomy(self) -> Taxonomy:
        self._check_fitted()
        return self.taxonomy_


def _parts(corpus: Corpus, size: int) -> Iterator[tuple[list[Origin], Corpus]]:
    for start in range(0, len(corpus), size):
        part = corpus.between(start, min(start + size, len(corpus)))
        yield [Origin(name, f"document {name}", True) for name in part.ids], part
