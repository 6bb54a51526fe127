"""What every system to compare with is given, and what it gives back."""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments
from himecat.errors import DataError, UsageError
from himecat.input.corpus import Corpus, Ragged, Supervision, Vocabulary
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import check_number, ranged
from himecat.runtime.progress import Progress, silent

NodeArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One corpus with a few labelled documents: all that a system sees.

    Attributes
    ----------
    corpus : Corpus
        All documents, read as the system's `min_count` and `max_tokens` say; with vectors of the text encoder
        where the system has `vectors = True`.
    taxonomy : Taxonomy
        The tree.
    supervision : Supervision
        The labelled documents.
    texts : sequence of str
        The text of every document with its metadata values at the end, where the system has `texts = True`.
    encoder : str or None
        Folder or name of a transformer, where the system has `vectors` or `texts`.
    seed, threads : int
        Seed of all randomness, and the number of threads.
    progress : Progress
        Where progress is shown.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> task = Task(read_corpus(["x", "y"]), tree, Supervision(np.array([0, 1]), np.array([2, 1])))
    >>> task.leaf_rows.tolist(), task.leaf_nodes.tolist()
    ([0, 1], [2, 1])
    """

    corpus: Corpus
    taxonomy: Taxonomy
    supervision: Supervision
    texts: Sequence[str] = ()
    encoder: str | None = None
    seed: int = 0
    threads: int = 1
    progress: Progress = field(default_factory=silent)

    @property
    def leaf_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the documents that are labelled with a leaf."""
        return self.supervision.rows[self._with_leaf()]

    @property
    def leaf_nodes(self) -> NodeArray:
        """Their leaves, as nodes of the tree."""
        return self.supervision.nodes[self._with_leaf()]

    def most_labelled_leaf(self) -> NodeArray:
        """For each document the leaf with the most labelled documents: for systems that have nothing to go by."""
        return np.full(len(self.corpus), np.bincount(self.leaf_nodes).argmax(), dtype=np.int64)

    def predict_flat(self, features: Any, model: Any) -> NodeArray:
        """Fit a scikit-learn classifier on the rows of the documents labelled with a leaf; predict all rows.

        Examples
        --------
        >>> from himecat import read_corpus
        >>> from sklearn.svm import LinearSVC
        >>> tree = Taxonomy.from_paths([("a",), ("b",)])
        >>> task = Task(read_corpus(["x", "y", "z"]), tree, Supervision(np.array([0, 1]), np.array([2, 1])))
        >>> task.predict_flat(np.array([[1.0], [-1.0], [2.0]]), LinearSVC()).tolist()
        [2, 1, 2]
        """
        if len(np.unique(self.leaf_nodes)) == 1:
            return self.most_labelled_leaf()
        model.fit(features[self.leaf_rows], self.leaf_nodes)
        return np.asarray(model.predict(features), dtype=np.int64)

    def likeliest_leaves(
        self, scores: npt.NDArray[Any], reachable: npt.NDArray[np.bool_] | None = None
    ) -> NodeArray:
        """For each document the leaf with the highest score, of those that have a labelled document.

        Parameters
        ----------
        scores : array of shape (documents, leaves)
            The leaves as in `taxonomy.leaves`.
        reachable : array of bool of the same shape, optional
            Which leaves a document may go to; where none of them has a labelled document, they all count.
        """
        leaves = np.array(self.taxonomy.leaves)
        allowed = np.broadcast_to(np.isin(leaves, self.leaf_nodes), scores.shape)
        if reachable is not None:
            allowed = np.where(
                (reachable & allowed).any(axis=1, keepdims=True), reachable & allowed, reachable
            )
        found: NodeArray = leaves[np.where(allowed, scores, -np.inf).argmax(axis=1)]
        return found

    def _with_leaf(self) -> npt.NDArray[np.bool_]:
        usable: npt.NDArray[np.bool_] = self.taxonomy.leaf_position[self.supervision.nodes] >= 0
        if not usable.any():
            raise DataError("No leaf has a labelled document: label about five documents of each.")
        return usable


def parameter(default: Any, *, least: float = 0, above: float | None = None, most: float = math.inf) -> Any:
    """A parameter of a system: a dataclass field with a range, which is checked when the system is made.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Bounded:
    ...     beta: int = parameter(5, least=0)
    ...     __post_init__ = check_parameters
    >>> Bounded(beta=-1)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: beta must be at least 0, not -1.
    """
    return ranged(default, least if above is None else above, most, above=above is not None)


def check_parameters(system: Any) -> None:
    """Refuse a value outside the range of its `parameter`; None stands for a default that the system chooses."""
    for one in fields(system):
        value = getattr(system, one.name)
        if value is not None and "range" in one.metadata:
            check_number(one.name, value, *one.metadata["range"])


class System(ABC):
    """A classifier of documents into the leaves of a tree, with its parameters as attributes.

    A subclass is a frozen dataclass: its fields are the parameters, which are part of a cached result's key.

    Attributes
    ----------
    name : str
        Its name on the command line.
    title : str
        Its name in tables.
    about : str
        One sentence for people who choose among systems.
    min_count, max_tokens : int, int or None
        How the documents are read: rarer words and text further on are left out.
    texts, vectors : bool
        Whether it reads the raw texts, and the vectors of a text encoder.
    loads_encoder : bool
        Whether it needs an encoder that it loads itself, to fine-tune it.
    requires : tuple of str
        Modules that it imports and that the core install lacks.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class MostFrequent(System):
    ...     name = "most-frequent"
    ...     title = "Most frequent leaf"
    ...     about = "Predicts the leaf with the most labelled documents."
    ...
    ...     def fit_predict(self, task: Task) -> NodeArray:
    ...         return np.full(len(task.corpus), np.bincount(task.leaf_nodes).argmax())
    >>> from himecat import read_corpus
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.array([0, 1, 2]), np.array([2, 1, 2]))
    >>> MostFrequent().fit_predict(Task(read_corpus(["x", "y", "z", "v"]), tree, few)).tolist()
    [2, 2, 2, 2]
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    min_count: ClassVar[int] = 1
    max_tokens: ClassVar[int | None] = None
    texts: ClassVar[bool] = False
    vectors: ClassVar[bool] = False
    loads_encoder: ClassVar[bool] = False
    requires: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Files written for version 0.2 call the method `place`.
        if "place" in vars(cls) and "fit_predict" not in vars(cls):
            cls.fit_predict = vars(cls)["place"]  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        check_parameters(self)

    @abstractmethod
    def fit_predict(self, task: Task) -> NodeArray | Assignments:
        """The leaf of every document of the task, as a node of its tree; with probabilities where it has them."""

    @classmethod
    def with_parameters(cls, given: Mapping[str, Any]) -> Self:
        """A system with parameters that a user wrote, each converted to the type of its default.

        Examples
        --------
        >>> from himecat.compare.systems.tfidf_svm import TfidfSvm
        >>> TfidfSvm.with_parameters({"c": 2})
        TfidfSvm(c=2.0)
        """
        return cls(**{name: _converted(cls, name, value) for name, value in given.items()})

    def changed_parameters(self) -> dict[str, Any]:
        """The parameters that differ from their defaults, as plain JSON values."""
        values = {one.name: (_plain(getattr(self, one.name)), _plain(_default(one))) for one in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, (value, default) in values.items() if value != default}


# Types of parameters whose default is None, by their annotation.
_OPTIONAL: dict[str, type] = {"int | None": int, "float | None": float, "str | None": str}
_NAMES_OF_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


def unknown_parameter(system: str, name: str, known: Sequence[str]) -> UsageError:
    """The error for a parameter that a system does not have.

    Examples
    --------
    >>> unknown_parameter("bert", "epoch", ["epochs"])
    UsageError("The system 'bert' has no parameter 'epoch'; did you mean 'epochs'?")
    """
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return UsageError(f"The system {system!r} has no parameter {name!r}; did you mean {close[0]!r}?")
    listed = f"known are {', '.join(known)}" if known else "it has none"
    return UsageError(f"The system {system!r} has no parameter {name!r}; {listed}.")


def _default(one: Any) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _converted(kind: type[System], name: str, value: Any) -> Any:
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if name not in known:
        raise unknown_parameter(kind.name, name, tuple(known))
    default = known[name].default
    if isinstance(default, tuple):
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    expected = _OPTIONAL.get(str(known[name].type)) if default is None else type(default)
    if default is MISSING or expected is None or (default is None and value is None):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if expected is float:
            if not math.isfinite(value):
                raise UsageError(f"{kind.name}.{name} must be a finite number, not {value!r}.")
            return float(value)
        if expected is int and isinstance(value, float) and value.is_integer():
            # People write 1e7.
            return int(value)
    if type(value) is not expected:
        wanted = _NAMES_OF_TYPES.get(expected, f"like {default!r}")
        raise UsageError(f"{kind.name}.{name} must be {wanted}, not {value!r}.")
    return value


def with_metadata_words(corpus: Corpus) -> Corpus:
    """The corpus with each metadata value as one more word at the end of its documents, and no other metadata.

    The paper gives metadata to text-only systems in this way.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "red fox", "tags": ["x"]}, {"text": "fox"}], metadata="tags")
    >>> merged = with_metadata_words(corpus)
    >>> [[merged.words.names[word] for word in merged.tokens[row]] for row in range(2)]
    [['red', 'fox', 'tags:x'], ['fox']]
    """
    names, counts = list(corpus.words.names), [corpus.words.counts]
    values, rows = [corpus.tokens.values], [corpus.tokens.row_of_value]
    for kind, column in corpus.metadata.items():
        values.append(column.values.values + np.int32(len(names)))
        rows.append(column.values.row_of_value)
        # A colon never stands in a word, so no value can be taken for one.
        names += [f"{kind}:{name}" for name in column.vocabulary.names]
        counts.append(column.vocabulary.counts)
    tokens = Ragged.grouped(np.concatenate(rows), np.concatenate(values), len(corpus))
    words = Vocabulary(tuple(names), np.concatenate(counts).astype(np.int64), corpus.words.tokenizer)
    return Corpus(corpus.ids, words, tokens, {}, corpus.columns)


def checked_nodes(system: System, found: Any, taxonomy: Taxonomy, n_documents: int) -> NodeArray:
    """The nodes that a system gave; without probabilities every one has to be a leaf.

    Raises
    ------
    UsageError
        There is not one leaf for every document.

    Examples
    --------
    >>> class First(System):
    ...     name = "first"
    ...     def fit_predict(self, task):
    ...         return [1] * len(task.corpus)
    >>> checked_nodes(First(), [1, 1], Taxonomy.from_paths([("a",), ("b",)]), 2).tolist()
    [1, 1]
    """
    if isinstance(found, Assignments):
        return found.nodes
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
    wrong = np.flatnonzero(~np.isin(nodes, np.asarray(taxonomy.leaves)))
    if len(wrong):
        node = int(nodes[wrong[0]])
        known = f", {taxonomy.title(node) if node else 'the root'}," if 0 <= node < len(taxonomy) else ""
        raise UsageError(
            f"The system {system.name!r} put document {wrong[0]} on node {node}{known} which is not a leaf of "
            "the tree."
        )
    return nodes.astype(np.int64)
