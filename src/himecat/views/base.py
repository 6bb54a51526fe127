"""What a view of documents is, and the views that are known by name.

A view sees documents in one way: by their words, their topics, their metadata values, an encoder's vectors, or
anything else that can be written as one row of numbers per document. docs/views.md shows how to write one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.errors import UsageError
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus
from himecat.runtime.threads import Run, run_serial
from himecat.views.first_words import Weights, weights_of_all
from himecat.views.matrices import FloatArray, inverse_frequency, with_entries
from himecat.views.value_sums import ValueSums

State = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]
Made = TypeVar("Made")


class Everyone(NamedTuple):
    """All documents of a pile: how many they are, and by type the sums of the directions of each value's documents."""

    n_documents: int
    values: Mapping[str, ValueSums]


class Batch:
    """Documents to be seen; what several views need of them is computed once.

    Attributes
    ----------
    corpus : Corpus
        The documents, in the ids of the model's own vocabularies.
    n_batches : int
        How many batches of this size there are in all.
    first_words : tuple of float
        How often each of the first words of a text counts, window by window.
    directions : array, optional
        Unit directions of the documents, known to views that smooth them.
    everyone : Everyone, optional
        What is known of all documents, where these are a sample of a pile.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> Batch(read_corpus(["red red fox"])).counts.toarray().tolist()
    [[2.0, 1.0]]
    """

    def __init__(
        self, corpus: Corpus, n_batches: int = 1, *, first_words: Weights = (), lean: bool = False
    ) -> None:
        """Remember the documents; nothing is computed yet. A lean batch computes matrices again, and keeps none."""
        self._lean = lean
        self.corpus = corpus
        self.n_batches = n_batches
        self.first_words = first_words
        self.directions: FloatArray | None = None
        self.everyone: Everyone | None = None
        self._made: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def counts(self) -> Any:
        """Documents x words as a sparse matrix of counts."""

        def make() -> Any:
            tokens = self.corpus.tokens
            weights = weights_of_all(tokens, self.first_words) if self.first_words else None
            return tokens.counts(len(self.corpus.words), weights=weights)

        return self.once("counts", make)

    @property
    def frequencies(self) -> Any:
        """The same as sublinear term frequencies, 1 + log(count)."""

        def make() -> Any:
            counts = self.counts
            return with_entries(counts, 1.0 + np.log(counts.data))

        return self.once("frequencies", make)

    @cached_property
    def idf(self) -> FloatArray:
        """Inverse document frequency of every word in these documents."""
        documents = np.bincount(self.counts.indices, minlength=len(self.corpus.words))
        return inverse_frequency(documents.astype(np.float64), len(self))

    def once(self, key: str, make: Callable[[], Made]) -> Made:
        """What `make` returns; made the first time that something is asked for under this key."""
        if self._lean:
            return make()
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
        return found


class Phrase(NamedTuple):
    """The words of a category's name, or its keywords: ids of the known ones, their weights, and the text."""

    ids: npt.NDArray[np.int64]
    weights: FloatArray
    text: str


def phrase_counts(phrases: Sequence[Phrase], n_words: int) -> Any:
    """Names and keywords x words as a sparse matrix of the words' weights.

    Examples
    --------
    >>> one = Phrase(np.array([1]), np.array([0.5], dtype=np.float32), "fox")
    >>> phrase_counts([one], 3).toarray().tolist()
    [[0.0, 0.5, 0.0]]
    """
    weights = np.concatenate([np.zeros(0, np.float32), *(phrase.weights for phrase in phrases)])
    ids = np.concatenate([np.zeros(0, np.int64), *(phrase.ids for phrase in phrases)])
    starts = np.cumsum([0, *(len(phrase.ids) for phrase in phrases)])
    return csr_matrix((weights, ids, starts), shape=(len(phrases), n_words))


class Group(NamedTuple):
    """Documents x values that they share as a sparse matrix; whether a value decides the category."""

    members: Any
    decides: bool = False


class View(Protocol):
    """One way to see documents; a class of one's own inherits from it, and needs at least `name` and `see`.

    Attributes
    ----------
    name : str
        Under this name the view is registered, and found again when a model is loaded.
    weight : float
        Length of this view's part of a document's direction; that of the words' part is 1.
    smooths : bool
        Whether its rows are added to the directions of the documents, instead of standing beside the other
        parts. Such a view learns after the others, and finds the directions in the batch.
    apart : bool
        Whether its features get a classifier of their own, instead of standing beside those of the other views.
    first_words : tuple of float or None
        How often each of the first words of a text counts, for all views; None where that is to be learned.
    """

    name: ClassVar[str]
    weight: float = 1.0
    smooths: ClassVar[bool] = False
    apart: ClassVar[bool] = False
    first_words: Weights | None = ()

    @property
    def n_features(self) -> int:
        """How many columns `features` has."""
        return 0

    @property
    def everyone(self) -> Everyone | None:
        """What it knows of all documents of a pile; None where it learned from all documents at once."""
        return None

    @property
    def reader(self) -> ColumnReader | None:
        """What computes a column of the corpus for this view while documents are read."""
        return None

    def learn(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> Self:
        """Learn from all documents, labelled or not, and return the view that did.

        Parameters
        ----------
        run : callable
            Runs jobs that do not depend on each other, and returns their results in order.
        """
        return self

    def learn_and_see(
        self, batch: Batch, *, seed: int = 0, run: Run = run_serial
    ) -> tuple[Self, FloatArray | None]:
        """As `learn` and then `see`, of a view that smooths: it may leave each document out of its own rows."""
        learned = self.learn(batch, seed=seed, run=run)
        return learned, learned.see(batch)

    def see(self, batch: Batch) -> FloatArray | None:
        """One row per document, zeros where nothing is known; None for a view that has only features.

        The rows are centred at their mean and scaled to length 1 afterwards.
        """
        ...

    def features(self, batch: Batch) -> Any:
        """A sparse matrix (CSR, float32) of features for the linear classifier; None for none."""
        return None

    @property
    def n_groups(self) -> dict[str, int]:
        """How many columns each matrix of `groups` has."""
        return {}

    def groups(self, batch: Batch) -> dict[str, Group]:
        """Which documents belong together, by name: the members of a group vote on the category of each."""
        return {}

    def see_phrases(self, phrases: Sequence[Phrase]) -> FloatArray | None:
        """Rows for the names and keywords of categories, like those of documents; None if they have none."""
        return None

    def explain(self, corpus: Corpus, row: int, direction: FloatArray) -> list[tuple[str, int, float]]:
        """Which parts of a document agree with a direction in this view: name, count and weight of each.

        The direction is that of a label less the mean of its siblings.
        """
        return []

    def state(self) -> State:
        """What a model folder keeps of this view: values for JSON, and arrays by name."""
        return {}, {}

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The view again from what `state` gave."""
        return cls()


BUILT_IN = ("words", "topics", "ngrams", "metadata", "encoder")
_registered: dict[str, type[View]] = {}

Kind = TypeVar("Kind", bound=type[View])


def register_view(kind: Kind) -> Kind:
    """Make a class of views known by its name, so that models that have one can be loaded; a decorator.

    Examples
    --------
    >>> @register_view
    ... class Lengths(View):
    ...     name = "lengths"
    ...     def see(self, batch):
    ...         return np.stack([batch.corpus.tokens.lengths, np.ones(len(batch))], axis=1)
    >>> view_class("lengths") is Lengths
    True
    """
    _registered[kind.name] = kind
    return kind


def view_class(name: str) -> type[View]:
    """The class of views that is registered under a name.

    Examples
    --------
    >>> view_class("smells")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: There is no view 'smells': register its class with himecat.register_view first.
    """
    if name in BUILT_IN:
        # The module of a built-in view registers it.
        importlib.import_module(f"himecat.views.{name}")
    if name not in _registered:
        raise UsageError(f"There is no view {name!r}: register its class with himecat.register_view first.")
    return _registered[name]


def readers_of(views: Sequence[View]) -> list[ColumnReader]:
    """What computes columns for these views while documents are read.

    Examples
    --------
    >>> readers_of([])
    []
    """
    return [view.reader for view in views if view.reader is not None]
