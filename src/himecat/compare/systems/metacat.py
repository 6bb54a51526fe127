"""MetaCat: a generative process of text and metadata, its embedding, and training documents drawn from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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

Places = npt.NDArray[np.int64]

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
        vectors = self.embed(task, network.draw, network.degrees)
        # A document's local metadata is part of what the classifier reads, and of what is synthesised.
        local = {kind: column for kind, column in task.corpus.metadata.items() if kind in self.local}
        documents = with_metadata_words(replace(task.corpus, metadata=local)).tokens
        words = np.concatenate([vectors[network.nodes(_WORD)], vectors[network.nodes(_LOCAL)]])
        labels = np.concatenate([np.zeros((1, self.dimension), np.float32), vectors[network.nodes(_CLASS)]])
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
    rows : mapping
        For classes, global values, words and local values, those of every document; numbered by kind.
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

    rows: Mapping[int, Ragged]
    sizes: tuple[int, int, int, int, int, int]

    @cached_property
    def starts(self) -> list[int]:
        """The first node of every kind."""
        found: list[int] = np.cumsum([0, *self.sizes]).tolist()
        return found

    def nodes(self, kind: int) -> slice:
        """The nodes of one kind."""
        return slice(self.starts[kind], self.starts[kind + 1])

    @cached_property
    def degrees(self) -> list[npt.NDArray[np.int64]]:
        """For each kind of node, in how many edges each takes part."""
        counted = {kind: rows.totals(self.sizes[kind]) for kind, rows in self.rows.items()}
        of_documents = self.rows[_WORD].lengths + self.rows[_LOCAL].lengths
        return [of_documents, *counted.values(), counted[_WORD]]

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """How often edges of each relation are drawn: classes, global values, words, local values, contexts.

        A document's class and each of its global values count as much as all words of an average document.
        """
        n_edges = np.array([len(rows.values) for rows in self.rows.values()])
        n_words = len(self.rows[_WORD].values)
        length = n_words / max(1, self.sizes[_DOCUMENT])
        return np.array([*(WINDOW * length * n_edges[:2]), *(WINDOW * n_edges[2:]), 2 * WINDOW * n_words])

    def draw(self, count: int, rng: np.random.Generator) -> Edges:
        """Draw edges of all relations; a few less than `count`, as a word at a border has fewer contexts."""
        total = self.weights.sum()
        if not total:
            return Edges.between(np.zeros(0, np.int32), np.zeros(0, np.int32), _DOCUMENT)
        *sizes, n_contexts = rng.multinomial(count, self.weights / total)
        parts = []
        for (kind, rows), size in zip(self.rows.items(), sizes, strict=True):
            places, documents = _draw_places(rows, size, rng)
            nodes = self.starts[kind] + rows.values[places]
            into = kind in (_CLASS, _GLOBAL)
            parts.append(
                Edges.between(nodes, documents, _DOCUMENT) if into else Edges.between(documents, nodes, kind)
            )
        parts.append(self._contexts(n_contexts, rng))
        return Edges.mixed(parts, rng)

    def _contexts(self, count: int, rng: np.random.Generator) -> Edges:
        """Pairs of words at most WINDOW apart in one document."""
        values, offsets = self.rows[_WORD].values, self.rows[_WORD].offsets
        places, documents = _draw_places(self.rows[_WORD], count, rng)
        others = places + rng.integers(1, WINDOW + 1, size=count) * rng.choice([-1, 1], size=count)
        inside = (others >= offsets[documents]) & (others < offsets[documents + 1])
        words, contexts = values[places[inside]], values[others[inside]]
        return Edges.between(self.starts[_WORD] + words, self.starts[_CONTEXT] + contexts, _CONTEXT)


def _draw_places(rows: Ragged, count: int, rng: np.random.Generator) -> tuple[Places, Places]:
    """Draw values of all rows: where they stand, and the row of each."""
    places = rng.integers(len(rows.values), size=count) if count else np.zeros(0, dtype=np.int64)
    return places, np.searchsorted(rows.offsets, places, side="right") - 1


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
    of_global, n_global = _values_of(corpus, [kind for kind in corpus.metadata if kind not in local])
    of_local, n_local = _values_of(corpus, [kind for kind in corpus.metadata if kind in local])
    n_words = len(corpus.words)
    of_class = Ragged.grouped(rows, classes, len(corpus))
    return GenerativeNetwork(
        {_CLASS: of_class, _GLOBAL: of_global, _WORD: corpus.tokens, _LOCAL: of_local},
        (len(corpus), n_classes, n_global, n_words, n_local, n_words),
    )


def _values_of(corpus: Corpus, kinds: list[str]) -> tuple[Ragged, int]:
    """The values of some metadata types in one numbering, and how many there are."""
    merged = with_metadata_words(replace(corpus, metadata={kind: corpus.metadata[kind] for kind in kinds}))
    # Values come after the words; what gets a number below 0 is left out.
    numbers = np.arange(len(merged.words), dtype=np.int32) - np.int32(len(corpus.words))
    return merged.tokens.renumbered(numbers), len(merged.words) - len(corpus.words)
