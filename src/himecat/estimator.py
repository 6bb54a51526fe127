"""The estimator: it wires the rooms together and holds no mathematics of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments, assign
from himecat.classifier.protocol import Classifier, Fitted, Round
from himecat.errors import DataError, UsageError
from himecat.evaluation.explain import DocumentExplanation, LabelExplanation, explain_documents, explain_label
from himecat.input import validate
from himecat.input.builder import Origin, iter_encoded
from himecat.input.check_report import CheckReport
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus
from himecat.input.documents import Fields
from himecat.input.labels import labels_by_row
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import Tokenizer
from himecat.methods import (
    METHODS,
    Method,
    Paper,
    check_value,
    hyperparameters,
    resolve_method,
    with_values,
)
from himecat.runtime.progress import Progress, silent
from himecat.runtime.threads import prefetch, usable_threads
from himecat.sklearn_compat import Estimator
from himecat.views.base import View
from himecat.views.encoder import EncoderView
from himecat.views.space import JointSpace
from himecat.views.text_encoder import open_encoder

_NESTED = "method__"
# Arguments that are kept with a model as they are; those with an object of their own are kept by it.
_KEPT = (
    "metadata", "ignore_metadata", "text", "label_field", "id_field", "encoder", "min_confidence", "random_state",
    "allow_empty_leaves",
)  # fmt: skip


class HiMeCat(Estimator):
    """Place documents on the paths of a category tree from a few labelled examples per leaf.

    Parameters
    ----------
    taxonomy : path, mapping, Taxonomy, optional
        The tree: a file of `parent child child ...` lines, a nested YAML or JSON file or mapping. Without
        it, the tree is the one that the labels in the documents span.
    metadata : sequence of str
        The metadata fields of the documents.
    ignore_metadata : sequence of str
        Metadata fields to leave out of the joint space.
    keywords : mapping or path, optional
        Words that speak for a label, `{label: [words]}`, beside labelled documents or instead of them.
    encoder : str or path, optional
        A sentence encoder used as one more view of each document: a local folder, an installed package that
        carries a model, or a model's name. Needs `himecat[encoder]`.
    views : sequence of View
        Views of one's own beside words, topics, metadata and encoder; see docs/views.md.
    tokenizer : str or Tokenizer
        What splits texts into words: `unicode` for scripts with spaces, `ngrams` or `dictionary` (needs
        `himecat[dictionary]`) for those without, `subwords` for pieces of words, or an object of your own.
    text, label_field, id_field
        The other fields: one or several with text, the labels and the id.
    method : {"default", "paper"}, Default or Paper, optional
        How to learn, by name or with hyperparameters of one's own: `Default(em_rounds=3)`. In a grid search:
        `method__em_rounds`.
    preset : {"default", "paper"}, optional
        The name of a method, where `method` is not given.
    min_confidence : float
        Where the leaf is less probable than this, the path ends at the deepest node that is not.
    allow_empty_leaves : bool
        Go on when a leaf has no labelled document.
    skip_bad : bool
        Leave out documents that cannot be used, with a warning each, instead of refusing all of them.
    random_state : int
        The same number gives the same model, whatever the number of threads.
    threads : int, optional
        Threads to use; all that the process may use by default.
    verbose : bool
        Show progress.

    Attributes
    ----------
    taxonomy_ : Taxonomy
        The tree.
    space_ : JointSpace
        The vectors of labels, words, metadata values and training documents.
    classes_ : list of tuple of str
        The leaf paths, in the order of the columns of `predict_proba`.
    classifier_ : Classifier
        What places the documents.
    method_ : Default or Paper
        The method that was used, with all its hyperparameters.
    history_ : list of Round
        The course of representation learning; empty where the space is spectral.
    problems_ : Problems
        Warnings and notes found in the input.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> documents = [{"text": "the striker scored a late goal"}, {"text": "a goal in the last match"},
    ...              {"text": "parliament passed the budget law"}, {"text": "the minister defended the law"}]
    >>> labels = ["sport", None, "politics", None]
    >>> model = HiMeCat(method=Default(min_count=1), threads=1)
    >>> model.fit(documents, labels).predict(["a late goal in the match"])
    [('sport',)]
    """

    def __init__(
        self,
        taxonomy: Any = None,
        metadata: Sequence[str] = (),
        *,
        ignore_metadata: Collection[str] = (),
        keywords: Any = None,
        encoder: str | os.PathLike[str] | None = None,
        views: Sequence[View] = (),
        tokenizer: str | Tokenizer = "unicode",
        text: str | Sequence[str] = "text",
        label_field: str = "labels",
        id_field: str = "id",
        method: str | Method | None = None,
        preset: str | None = None,
        min_confidence: float = 0.0,
        allow_empty_leaves: bool = False,
        skip_bad: bool = False,
        random_state: int = 0,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.metadata = metadata
        self.ignore_metadata = ignore_metadata
        self.keywords = keywords
        self.encoder = encoder
        self.views = views
        self.tokenizer = tokenizer
        self.text = text
        self.label_field = label_field
        self.id_field = id_field
        self.method = method
        self.preset = preset
        self.min_confidence = min_confidence
        self.allow_empty_leaves = allow_empty_leaves
        self.skip_bad = skip_bad
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    taxonomy_: Taxonomy
    space_: JointSpace
    classifier_: Classifier
    classes_: list[tuple[str, ...]]
    method_: Method
    history_: list[Round]
    problems_: Problems
    keywords_: dict[str, list[str]] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; with `deep` also those of the method, as `method__beta`."""
        found = super().get_params()
        if deep:
            with suppress(UsageError):
                method = resolve_method(self.method, self.preset)
                found |= {f"method__{name}": getattr(method, name) for name in hyperparameters(method)}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor, or hyperparameters of the method (`method__beta=100`)."""
        own = {name: value for name, value in params.items() if not name.startswith(_NESTED)}
        super().set_params(**own)
        if len(own) < len(params):
            values = {name.removeprefix(_NESTED): value for name, value in params.items() if name not in own}
            self.method = with_values(resolve_method(self.method, self.preset), values)
        return self

    @classmethod
    def _unknown_argument(cls, name: str) -> str:
        for kind in METHODS.values():
            if name in hyperparameters(kind):
                return (
                    f"{name} is a hyperparameter of the method: since 0.3 write "
                    f"method={kind.__name__}({name}=...), or set_params(method__{name}=...)."
                )
        return super()._unknown_argument(name)

    # -- fitting ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn from documents, of which a few carry labels.

        Parameters
        ----------
        X : path, DataFrame, list of dicts, list of str, or Corpus
            The documents, labelled and unlabelled: the unlabelled ones teach the space too.
        y : sequence or Supervision, optional
            The label of each document (a name, an `a/b/c` path or a list of names; None where unlabelled).
            Without it the labels are read from the documents' label field.
        progress : Progress, optional
            Where progress is shown; by default on standard error if `verbose`.
        """
        method = resolve_method(self.method, self.preset)
        options = self._input_options(method)
        views = self._views()
        shown = progress or (Progress() if self.verbose else silent())
        material = validate.read_material(X, y, readers=_readers(views), progress=shown, **options)
        fitted = _fit_function(method)(
            material,
            method,
            views=views,
            ignore_metadata=tuple(self.ignore_metadata),
            seed=int(self.random_state),
            threads=usable_threads(self.threads),
            progress=shown,
        )
        keywords = None
        if material.keywords is not None:
            titles = material.taxonomy.title
            keywords = {titles(node): list(words) for node, words in material.keywords.items()}
        self._set_fitted(method, fitted, keywords, material.problems)
        return self

    def _set_fitted(
        self, method: Method, fitted: Fitted, keywords: dict[str, list[str]] | None, problems: Problems
    ) -> None:
        self.method_, self.keywords_, self.problems_ = method, keywords, problems
        self.space_, self.classifier_, self.history_ = fitted.space, fitted.classifier, list(fitted.history)
        self.taxonomy_ = fitted.space.taxonomy
        self.classes_ = [self.taxonomy_.path(leaf) for leaf in self.taxonomy_.leaves]

    def check(self, X: Any, y: Any = None) -> CheckReport:
        """Look over documents, tree and labels as `fit` would, and report everything found, without learning.

        Parameters
        ----------
        X : path, DataFrame, list of dicts, list of str, or Corpus
            The documents, or a dataset folder.
        y : sequence, optional
            The label of each document; without it those in the documents' label field.

        Examples
        --------
        >>> from himecat import Default
        >>> documents = [{"text": "a late goal", "labels": "sport"}, {"text": "the budget law", "labels": 5}]
        >>> print(*HiMeCat(method=Default(min_count=1)).check(documents).problems.of("error"))
        document 1: a label must be a name or a list of names, but the number 5 was found.
        """
        from himecat.input.check import check

        options = self._input_options(resolve_method(self.method, self.preset))
        return check(X, options.pop("taxonomy"), options.pop("fields"), labels=y, **options)

    def _input_options(self, method: Method) -> dict[str, Any]:
        """What decides, beside the input itself, whether `fit` accepts it; refuses arguments that cannot be."""
        check_value("min_confidence", self.min_confidence)
        if not isinstance(self.random_state, (int, np.integer)) or self.random_state < 0:
            raise UsageError(f"random_state must be a whole number of at least 0, not {self.random_state!r}.")
        if isinstance(method, Paper):
            from himecat.paper.fit import check_paper

            check_paper(
                method,
                keywords=self.keywords is not None,
                encoder=self.encoder is not None,
                views=len(self.views) > 0,
            )
        return {
            "taxonomy": self.taxonomy,
            "fields": self._fields(),
            "keywords": self.keywords,
            "tokenizer": self.tokenizer,
            "min_count": method.min_count,
            "max_tokens": method.max_tokens,
            "allow_empty_leaves": self.allow_empty_leaves,
            "skip_bad": self.skip_bad,
            "threads": self.threads,
        }

    def _views(self) -> list[View]:
        """The encoder, if there is one, and the views that were given."""
        if self.encoder is None:
            return list(self.views)
        return [EncoderView(open_encoder(self.encoder, threads=self.threads)), *self.views]

    def readers(self) -> list[ColumnReader]:
        """What has to be computed from documents while they are read, such as the encoder's vectors."""
        return _readers(self._views())

    def _fields(self) -> Fields:
        text = (self.text,) if isinstance(self.text, str) else tuple(self.text)
        if isinstance(self.metadata, str):
            raise UsageError(f"metadata must be a list of field names: [{self.metadata!r}].")
        if isinstance(self.ignore_metadata, str):
            raise UsageError(f"ignore_metadata must be a list of field names: [{self.ignore_metadata!r}].")
        return Fields(text, tuple(self.metadata), self.label_field, self.id_field)

    # -- using -----------------------------------------------------------------------------------------

    def encode(self, X: Any) -> Corpus:
        """Documents as the word and metadata ids of this model; what the model does not know is left out."""
        return self._encoded(X)[0]

    def _encoded(self, X: Any) -> tuple[Corpus, npt.NDArray[np.bool_]]:
        """Documents as `encode` gives them, and which of them can be used."""
        self._check_fitted()
        space = self.space_
        if isinstance(X, Corpus):
            return X.aligned(space.vocabulary, space.values), np.ones(len(X), dtype=bool)
        return validate.read_new(
            X,
            self._fields(),
            words=space.vocabulary,
            metadata=space.values,
            max_tokens=self.method_.max_tokens,
            readers=self.readers(),
            skip_bad=self.skip_bad,
            threads=self.threads,
        )

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Probability of every leaf, one row per document; columns follow `classes_`, rows sum to 1."""
        corpus = self.encode(X)
        return self.classifier_.leaf_probabilities(corpus, usable_threads(self.threads))

    def assign(self, X: Any) -> Assignments:
        """Path and per-level probabilities of every document; `min_confidence` may cut a path short.

        With `skip_bad`, the path of a document that cannot be used is empty.
        """
        return self._assign(*self._encoded(X), usable_threads(self.threads))

    def _assign(self, corpus: Corpus, usable: npt.NDArray[np.bool_], threads: int) -> Assignments:
        bound = check_value("min_confidence", self.min_confidence)
        found = self.classifier_.leaf_probabilities(corpus, threads)
        return assign(self.taxonomy_, found, bound).without(~usable)

    def predict(self, X: Any) -> list[tuple[str, ...]]:
        """The path of every document, as names from level 1 down."""
        return list(self.assign(X))

    def iter_assignments(
        self, X: Any, problems: Problems, batch_size: int = 4096
    ) -> Iterator[tuple[list[Origin], Corpus, Assignments]]:
        """Place documents batch by batch: of those already placed, memory holds only the last ids.

        With more than one thread, a batch is placed while the next one is read.

        Unless `skip_bad` is set, nothing more is placed once `problems` holds an error; the rest is still
        read, so that all errors are found.
        """
        self._check_fitted()
        threads = usable_threads(self.threads)
        batches = iter_encoded(
            X,
            self._fields(),
            self.space_.vocabulary,
            self.space_.values,
            self.method_.max_tokens,
            problems,
            batch_size,
            self.readers(),
            threads=threads,
        )
        wanted = (batch for batch in batches if self.skip_bad or not problems.has_errors)

        def place(batch: tuple[list[Origin], Corpus]) -> Assignments:
            origins, corpus = batch
            # One thread reads.
            return self._assign(corpus, np.array([one.usable for one in origins], bool), max(1, threads - 1))

        for (origins, corpus), placed in prefetch(wanted, place, background=threads > 1):
            yield origins, corpus, placed

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Vectors of documents in the joint space: the direction of their words and metadata values."""
        corpus = self.encode(X)
        return self.classifier_.directions(corpus)

    def score(self, X: Any, y: Any) -> float:
        """Leaf micro F1 of the predictions for the documents that have a label."""
        from himecat.evaluation.metrics import score

        taxonomy = self._fitted_taxonomy()
        nodes = self.assign(X).nodes
        labels = labels_by_row(y, len(nodes))
        if not labels:
            raise DataError("No document has a label to score its prediction by.")
        truth = np.array([taxonomy.find(label) for label in labels.values()], dtype=np.int64)
        return float(score(taxonomy, truth, nodes[list(labels)]).leaf.micro)

    def explain(
        self, label: str | Sequence[str] | None = None, *, documents: Any = None, top: int = 10
    ) -> LabelExplanation | list[DocumentExplanation]:
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
        taxonomy = self._fitted_taxonomy()
        node = None if label is None else taxonomy.find(label)
        if documents is None:
            if node is None:
                raise UsageError("explain needs a label, documents, or both.")
            return explain_label(self.space_, node, top)
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

        node = self._fitted_taxonomy().find(label)
        chosen = int(self.random_state) if seed is None else seed
        return example_documents(self.space_, node, self.method_, count, chosen)

    def _fitted_taxonomy(self) -> Taxonomy:
        self._check_fitted()
        return self.taxonomy_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        tags.non_deterministic = False
        tags.no_validation = True
        return tags

    # -- keeping ---------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder: `model.json` and `weights.safetensors`, whole or not at all."""
        from himecat.model_folder.model import SavedModel, save

        self._check_fitted()
        arguments = {name: getattr(self, name) for name in _KEPT} | {"keywords": self.keywords_}
        fitted = Fitted(self.space_, self.classifier_, self.history_)
        save(SavedModel(arguments, self.method_, fitted), folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model from a folder written by :meth:`save`; fitted again, it is fitted as it was."""
        from himecat.model_folder.model import load

        found = load(folder, _KEPT)
        fitted = found.fitted
        model = cls(
            taxonomy=fitted.space.taxonomy,
            method=found.method,
            views=fitted.classifier.own_views,
            **found.arguments,
        )
        model._set_fitted(found.method, fitted, model.keywords, Problems())
        return model


def _fit_function(method: Method) -> Callable[..., Fitted]:
    """What fits a method; whoever takes the default never imports the published one."""
    if method.name == Paper.name:
        from himecat.paper.fit import fit_paper

        return fit_paper
    from himecat.classifier.fit import fit_default

    return fit_default


def _readers(views: Sequence[View]) -> list[ColumnReader]:
    return [view.reader for view in views if view.reader is not None]
