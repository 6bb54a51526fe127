"""Vectors of the nodes of a heterogeneous network by negative sampling, and a Kim-CNN on documents about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.compare.systems.system import System, Task, parameter
from himecat.input.corpus import Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.kimcnn import KimCNN
from himecat.paper.synthesis import SyntheticDocuments
from himecat.paper.topdown import fit_top_down
from himecat.runtime.threads import Stopped, stop_requested

FloatArray = npt.NDArray[np.float32]
NodeIds = npt.NDArray[np.int32]
Degrees = list[npt.NDArray[np.int64]]

# Edges per call of the kernel; Ctrl-C is handled in between.
_AT_ONCE = 200_000
# Entries of the table that negatives are drawn from: enough for every node of a large kind to have one.
_TABLE = 1 << 18
# Rows are padded to a multiple of this many floats, as the kernel wants them.
_LANE = 8
# Streams of randomness, one per purpose.
_START, _EDGES, _NEGATIVES = 1, 2, 3


@dataclass(frozen=True)
class Edges:
    """Some edges of a network: the source, the target and the kind of the target for each.

    Examples
    --------
    >>> len(Edges(np.array([0, 1], np.int32), np.array([2, 2], np.int32), np.array([1, 1], np.int8)))
    2
    """

    sources: NodeIds
    targets: NodeIds
    kinds: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.sources)

    @staticmethod
    def between(sources: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], kind: int) -> Edges:
        """Edges whose targets are all of one kind."""
        return Edges(
            sources.astype(np.int32), targets.astype(np.int32), np.full(len(sources), kind, dtype=np.int8)
        )

    @staticmethod
    def mixed(parts: list[Edges], rng: np.random.Generator) -> Edges:
        """All edges of the parts in random order.

        Examples
        --------
        >>> one = Edges.between(np.array([0]), np.array([1]), 0)
        >>> len(Edges.mixed([one, one], np.random.default_rng(0)))
        2
        """
        order = rng.permutation(sum(len(part) for part in parts))
        return Edges(
            np.concatenate([part.sources for part in parts])[order],
            np.concatenate([part.targets for part in parts])[order],
            np.concatenate([part.kinds for part in parts])[order],
        )


@dataclass(frozen=True)
class EmbeddedNetwork(System):
    """A system that embeds a network and trains Kim-CNNs on documents made from the vectors.

    Attributes
    ----------
    dimension, negatives, rate
        Of the embedding: length of the vectors, negatives per edge, first step size.
    samples : int, optional
        Edges to draw; by default 60 per word of the corpus, at least 10 and at most 150 million.
    beta, neighbours : int
        Synthetic documents per category, and words nearest to a vector that they are made of.
    real_share : float
        The labelled documents are repeated until they are this share of the synthetic ones.
    epochs : int
        Passes of a CNN over its training documents.
    """

    max_tokens = 300

    dimension: int = parameter(100, least=2)
    samples: int | None = parameter(None, least=1)
    negatives: int = parameter(5, least=1)
    rate: float = parameter(0.025, least=0)
    beta: int = parameter(500, least=0)
    neighbours: int = parameter(50, least=1)
    real_share: float = parameter(0.2, least=0)
    epochs: int = parameter(30, least=1)

    def embed(
        self, task: Task, draw: Callable[[int, np.random.Generator], Edges], degrees: Degrees
    ) -> FloatArray:
        """Unit vectors of the nodes of a network."""
        samples = self.samples or int(np.clip(60 * len(task.corpus.tokens.values), 10_000_000, 150_000_000))
        with task.progress.stage("Embedding the network", total=samples) as stage:
            return embed_network(
                draw,
                degrees,
                samples=samples,
                dimension=self.dimension,
                negatives=self.negatives,
                rate=self.rate,
                seed=own_seed(task.seed, 1),
                advance=stage.advance,
            )

    def train_and_predict(
        self,
        task: Task,
        taxonomy: Taxonomy,
        documents: Ragged,
        labelled: Supervision,
        synthetic: SyntheticDocuments,
        words: FloatArray,
    ) -> FloatArray:
        """Leaf probabilities of all documents by CNNs at the inner nodes of a tree."""
        choosing = sum(1 for node in taxonomy.inner if len(taxonomy.children[node]) > 1)
        with task.progress.stage("Training the classifiers", total=choosing * self.epochs) as stage:
            fitted = fit_top_down(
                taxonomy,
                documents.take(labelled.rows),
                labelled,
                synthetic,
                words,
                lambda: KimCNN(epochs=self.epochs),
                real_share=self.real_share,
                seed=own_seed(task.seed, 3),
                threads=task.threads,
                advance=stage.advance,
            )
        with task.progress.stage("Placing the documents", total=len(documents)) as stage:
            return fitted.leaf_probabilities(documents, words, threads=task.threads, advance=stage.advance)


def embed_network(
    draw: Callable[[int, np.random.Generator], Edges],
    degrees: Degrees,
    *,
    samples: int,
    dimension: int = 100,
    negatives: int = 5,
    rate: float = 0.025,
    seed: int = 0,
    advance: Callable[[int], None] | None = None,
) -> FloatArray:
    """Learn a vector for every node such that the ends of an edge have a large dot product.

    An edge (u, v) raises log s(u.v) + sum of log s(-u.n) over a few nodes n of the kind of v, drawn in
    proportion to degree^0.75; s is the sigmoid. Both ends of an edge have their one vector (first-order
    proximity). The step size falls linearly from `rate` to a ten-thousandth of it.

    Parameters
    ----------
    draw : callable
        Given a number and a source of randomness, draws about so many edges; `samples` are drawn in all.
    degrees : list of arrays
        For each kind of node, in how many edges each of its nodes takes part. Nodes are numbered through, kind
        after kind.

    Returns
    -------
    array of shape (nodes, dimension)
        Unit vectors.

    Examples
    --------
    >>> links = Edges.between(np.array([0, 1]), np.array([2, 3]), 1)
    >>> def draw(count, rng):
    ...     return Edges.mixed([links] * (count // 2), rng)
    >>> found = embed_network(draw, [np.ones(2, int), np.ones(2, int)], samples=20_000, dimension=8)
    >>> bool(found[0] @ found[2] > 0.5 > found[0] @ found[3])
    True
    """
    # Imported here: the compiler takes long to import.
    from himecat.kernels.network_embedding import train_edges

    starts = np.cumsum([0, *(len(part) for part in degrees)])
    # A kind without nodes is never a target, whatever its row.
    tables = np.zeros((len(degrees), _TABLE), dtype=np.int32)
    for kind, part in enumerate(degrees):
        if len(part):
            tables[kind] = starts[kind] + negatives_table(np.maximum(part, 1), _TABLE)
    vectors = start_vectors(int(starts[-1]), dimension, np.random.default_rng([seed, _START]))
    gathered = np.zeros(vectors.shape[1], dtype=np.float32)
    rounds = -(-samples // _AT_ONCE)
    for number in range(rounds):
        if stop_requested():
            raise Stopped
        count = min(_AT_ONCE, samples - number * _AT_ONCE)
        edges = draw(count, np.random.default_rng([seed, _EDGES, number]))
        rates = rate * (1.0 - (1.0 - 1e-4) * np.array([number, number + 1]) / rounds)
        state = np.random.SeedSequence([seed, _NEGATIVES, number]).generate_state(1, np.uint64)[0]
        train_edges(
            vectors, edges.sources, edges.targets, edges.kinds, tables, gathered, negatives,
            rates[0], rates[1], state,
        )  # fmt: skip
        if advance is not None:
            advance(count)
    found = vectors[:, :dimension]
    lengths = np.maximum(np.linalg.norm(found, axis=1, keepdims=True), np.float32(1e-12))
    return np.ascontiguousarray(found / lengths, dtype=np.float32)


def start_vectors(n_nodes: int, dimension: int, rng: np.random.Generator, n_rows: int = 0) -> FloatArray:
    """Small random vectors, in rows as long as the kernel wants them; rows further on are zeros.

    Examples
    --------
    >>> start_vectors(2, 3, np.random.default_rng(0), n_rows=4).shape
    (4, 8)
    """
    vectors = np.zeros((n_rows or n_nodes, -(-dimension // _LANE) * _LANE), dtype=np.float32)
    vectors[:n_nodes, :dimension] = (rng.random((n_nodes, dimension), dtype=np.float32) - 0.5) / dimension
    return vectors


def negatives_table(degrees: npt.NDArray[np.int64], size: int) -> NodeIds:
    """Nodes to draw negatives from, each as often as degree^0.75 says.

    Examples
    --------
    >>> negatives_table(np.array([1, 0, 1]), 4).tolist()
    [0, 0, 2, 2]
    """
    shares = np.cumsum(degrees.astype(np.float64) ** 0.75)
    ticks = (np.arange(size) + 0.5) / size * shares[-1]
    return np.asarray(np.searchsorted(shares, ticks), dtype=np.int32)


def own_seed(seed: int, purpose: int) -> int:
    """A seed for one step of a system, unlike that of its other steps.

    Examples
    --------
    >>> own_seed(0, 1) == own_seed(0, 2)
    False
    """
    return int(np.random.SeedSequence([seed, purpose]).generate_state(1)[0])
