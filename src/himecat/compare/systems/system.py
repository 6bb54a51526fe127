"""What every system to compare with is given, and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError
from himecat.input.corpus import Corpus, Ragged, Supervision, Vocabulary
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.progress import Progress, silent

NodeArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One corpus with a few labelled documents; a system sees this and nothing else.

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
        Where randomness starts from, and how many threads may work.
    progress : Progress
        Told how far the work has come.

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


class System(ABC):
    """A way to place documents on the leaves of a tree, with its parameters as attributes.

    A subclass is a frozen dataclass: its fields are the parameters, which tell a cached result from another.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    title : str
        What tables call it.
    about : str
        One sentence for people who choose among systems.
    min_count, max_tokens : int, int or None
        How the documents are read: words seen less often and text further on are left out.
    texts, vectors : bool
        Whether it reads the texts as they are, and the vectors of a text encoder.
    loads_encoder : bool
        Whether it cannot do without an encoder that it loads itself, to train it further.
    requires : tuple of str
        Modules that it imports and the small install does not bring.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Commonest(System):
    ...     name = "commonest"
    ...     title = "Commonest leaf"
    ...     about = "Puts every document on the leaf with most labelled documents."
    ...
    ...     def place(self, task: Task) -> NodeArray:
    ...         return np.full(len(task.corpus), np.bincount(task.leaf_nodes).argmax())
    >>> from himecat import read_corpus
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.array([0, 1, 2]), np.array([2, 1, 2]))
    >>> Commonest().place(Task(read_corpus(["x", "y", "z", "v"]), tree, few)).tolist()
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

    @abstractmethod
    def place(self, task: Task) -> NodeArray:
        """The leaf of every document of the task, as a node of its tree."""


def with_metadata_words(corpus: Corpus) -> Corpus:
    """The corpus with each metadata value as one more word at the end of its documents, and no other metadata.

    This is how systems that know text only are told of metadata in the paper.

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
    row_of = np.concatenate(rows)
    order = np.argsort(row_of, kind="stable")
    offsets = np.zeros(len(corpus) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row_of, minlength=len(corpus)), out=offsets[1:])
    tokens = Ragged(np.concatenate(values)[order].astype(np.int32), offsets)
    words = Vocabulary(tuple(names), np.concatenate(counts).astype(np.int64), corpus.words.tokenizer)
    return Corpus(corpus.ids, words, tokens, {}, corpus.columns)
