"""MetaCat: a generative process of text and metadata, its embedding, and training documents drawn from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._hin import Edges, EmbeddedNetwork, own_seed
from himecat.compare.systems.system import NodeArray, Task, parameter, with_metadata_words
from himecat.errors import UsageError
from himecat.input.corpus import Corpus, Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.synthesis import synthesize

# Words at most this far apart are contexts of each other.
WINDOW = 5

# Kinds of nodes, in the order of their numbers.
_DOCUMENT, _CLASS, _GLOBAL, _WORD, _LOCAL, _CONTEXT = range(6)


@dataclass(frozen=True)
class MetaCat(EmbeddedNetwork):
    """MetaCat (Zhang et al., SIGIR 2020), flat over the leaves.

    Attributes
    ----------
    local : tuple of str
        Metadata types that describe what is in a document and so are generated from it, as words are. All
        other types (authors, products) generate the document.
    concentration : float
        Kappa of the vectors of synthetic documents; for the others see `EmbeddedNetwork`.

    Examples
    --------
    >>> MetaCat().beta, MetaCat(local=("venue",)).local
    (100, ('venue',))
    >>> MetaCat(epochs=0)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: epochs must be at least 1, not 0.
    """

    name = "metacat"
    title = "MetaCat"
    about = (
        "Flat: embeds a generative process of metadata and text, and trains a CNN on documents drawn from it."
    )
    min_count = 10

    beta: int = parameter(100, least=0)
    real_share: float = parameter(0.55, least=0)
    local: tuple[str, ...] = ("tags", "hashtags", "keywords")
    concentration: float = parameter(120.0, least=1e-3)

    def __post_init__(self) -> None:
        if isinstance(self.local, str):
            raise UsageError(f"local must be a list of metadata types, not the text {self.local!r}.")
        super().__post_init__()

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document; its ancestors follow from the tree."""
        rows, leaves = task.leaf_rows, task.leaf_nodes
        classes, class_of = np.unique(leaves, return_inverse=True)
        flat = Taxonomy.from_paths([(str(leaf),) for leaf in classes.tolist()])
        if len(classes) == 1:
            return task.most_labelled_leaf()
        network = generative_network(task.corpus, rows, class_of, len(classes), local=self.local)
        vectors = self.embed(task, network, "Embedding the generative process")
        # A document's local metadata is part of what the classifier reads, and of what is synthesised.
        local = {kind: column for kind, column in task.corpus.metadata.items() if kind in self.local}
        documents = with_metadata_words(replace(task.corpus, metadata=local)).tokens
        words = np.concatenate([vectors[network.nodes("word")], vectors[network.nodes("local")]])
        labels = np.concatenate([np.zeros((1, self.dimension), np.float32), vectors[network.nodes("class")]])
        with task.progress.stage("Synthesising documents", total=len(classes)) as stage:
            synthetic = synthesize(
                flat,
                labels,
                words,
                beta=self.beta,
                length=round(len(documents.values) / max(1, len(documents))),
                concentration=self.concentration,
                neighbours=self.neighbours,
                seed=own_seed(task.seed, 2),
                threads=task.threads,
                advance=stage.advance,
            )
        labelled = Supervision(rows, class_of.astype(np.int64) + 1)
        found = self.train_and_predict(task, flat, documents, labelled, synthetic, words)
        return np.asarray(classes[found.argmax(axis=1)], dtype=np.int64)


@dataclass(frozen=True)
class GenerativeNetwork:
    """Edges along the arrows: class -> document <- global value, document -> word, document -> local value.

    A word also generates the words around it; as such a context, a word is a node of its own.

    Attributes
    ----------
    words : Ragged
        The words of every document.
    of_global, of_local : Ragged
        Its global and its local metadata values; each of the two has one numbering for all types.
    classes : Ragged
        The classes of every document: at most one.
    sizes : tuple of int
        How many nodes of each kind there are: documents, classes, global values, words, local values, contexts.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "red fox", "by": "ann", "tags": ["x", "y"]}], metadata=["by", "tags"])
    >>> network = generative_network(corpus, np.array([0]), np.array([0]), 1, local=("tags",))
    >>> network.sizes
    (1, 1, 1, 2, 2, 2)
    """

    words: Ragged
    of_global: Ragged
    of_local: Ragged
    classes: Ragged
    sizes: tuple[int, int, int, int, int, int]

    @cached_property
    def starts(self) -> list[int]:
        """The first node of every kind."""
        found: list[int] = np.cumsum([0, *self.sizes]).tolist()
        return found

    def nodes(self, kind: str) -> slice:
        """The nodes of `class`, `word` or `local` kind."""
        number = {"class": _CLASS, "word": _WORD, "local": _LOCAL}[kind]
        return slice(self.starts[number], self.starts[number + 1])

    @cached_property
    def degrees(self) -> list[npt.NDArray[np.int64]]:
        """For each kind of node, in how many edges each takes part."""

        def counted(rows: Ragged, kind: int) -> npt.NDArray[np.int64]:
            return np.bincount(rows.values, minlength=self.sizes[kind])

        words = counted(self.words, _WORD)
        return [
            self.words.lengths + self.of_local.lengths,
            counted(self.classes, _CLASS),
            counted(self.of_global, _GLOBAL),
            words,
            counted(self.of_local, _LOCAL),
            words,
        ]

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """How often edges of each relation are drawn: classes, global values, words, local values, contexts.

        A document's class and each of its global values count as much as all words of an average document.
        """
        length = len(self.words.values) / max(1, len(self.words))
        return np.array(
            [
                WINDOW * length * len(self.classes.values),
                WINDOW * length * len(self.of_global.values),
                WINDOW * len(self.words.values),
                WINDOW * len(self.of_local.values),
                2 * WINDOW * len(self.words.values),
            ]
        )

    def draw(self, count: int, rng: np.random.Generator) -> Edges:
        """Draw edges of all relations; a few less than `count`, as a word at a border has fewer contexts."""
        total = self.weights.sum()
        if not total:
            return Edges.between(np.zeros(0, np.int32), np.zeros(0, np.int32), _DOCUMENT)
        by_class, by_global, n_words, n_local, n_contexts = rng.multinomial(count, self.weights / total)
        parts = [
            self._into_documents(self.classes, _CLASS, by_class, rng),
            self._into_documents(self.of_global, _GLOBAL, by_global, rng),
            self._from_documents(self.words, _WORD, n_words, rng),
            self._from_documents(self.of_local, _LOCAL, n_local, rng),
            self._contexts(n_contexts, rng),
        ]
        return Edges.mixed(parts, rng)

    def _into_documents(self, rows: Ragged, kind: int, count: int, rng: np.random.Generator) -> Edges:
        values, documents = self._picked(rows, count, rng)
        return Edges.between(self.starts[kind] + values, documents, _DOCUMENT)

    def _from_documents(self, rows: Ragged, kind: int, count: int, rng: np.random.Generator) -> Edges:
        values, documents = self._picked(rows, count, rng)
        return Edges.between(documents, self.starts[kind] + values, kind)

    def _picked(
        self, rows: Ragged, count: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        places = rng.integers(len(rows.values), size=count) if count else np.zeros(0, dtype=np.int64)
        return rows.values[places], np.searchsorted(rows.offsets, places, side="right") - 1

    def _contexts(self, count: int, rng: np.random.Generator) -> Edges:
        """Pairs of words at most WINDOW apart in one document."""
        values, offsets = self.words.values, self.words.offsets
        places = rng.integers(len(values), size=count) if count else np.zeros(0, dtype=np.int64)
        documents = np.searchsorted(offsets, places, side="right") - 1
        steps = rng.integers(1, WINDOW + 1, size=count) * rng.choice([-1, 1], size=count)
        others = places + steps
        inside = (others >= offsets[documents]) & (others < offsets[documents + 1])
        return Edges.between(
            self.starts[_WORD] + values[places[inside]],
            self.starts[_CONTEXT] + values[others[inside]],
            _CONTEXT,
        )


def generative_network(
    corpus: Corpus,
    rows: npt.NDArray[np.int64],
    classes: npt.NDArray[np.int64],
    n_classes: int,
    *,
    local: Collection[str],
) -> GenerativeNetwork:
    """The generative process of a corpus as a network.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    rows, classes : arrays
        The labelled documents and the class of each.
    n_classes : int
        Number of classes.
    local : collection of str
        The metadata types that a document generates, like its words; all others generate the document.
    """
    of_class: list[list[int]] = [[] for _ in range(len(corpus))]
    for row, number in zip(rows.tolist(), classes.tolist(), strict=True):
        of_class[row] = [number]
    of_global, n_global = _values_of(corpus, [kind for kind in corpus.metadata if kind not in local])
    of_local, n_local = _values_of(corpus, [kind for kind in corpus.metadata if kind in local])
    n_words = len(corpus.words)
    return GenerativeNetwork(
        corpus.tokens,
        of_global,
        of_local,
        Ragged.from_lists(of_class),
        (len(corpus), n_classes, n_global, n_words, n_local, n_words),
    )


def _values_of(corpus: Corpus, kinds: list[str]) -> tuple[Ragged, int]:
    """The values of some metadata types in one numbering, and how many there are."""
    numbered, documents, count = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 0
    for kind in kinds:
        column = corpus.metadata[kind]
        numbered.append(column.values.values + np.int32(count))
        documents.append(column.values.row_of_value)
        count += len(column.vocabulary)
    rows = np.concatenate(documents)
    offsets = np.zeros(len(corpus) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(corpus)), out=offsets[1:])
    return Ragged(np.concatenate(numbered)[np.argsort(rows, kind="stable")], offsets), count
