"""Vectors from random walks along meta-paths, with the classifier of WeSHClass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._graph import Graph, build_graph
from himecat.compare.systems._hin import NodeIds, negatives_table, start_vectors
from himecat.compare.systems.system import Task, parameter
from himecat.compare.systems.weshclass import OnWordVectors
from himecat.input.corpus import Corpus, Ragged
from himecat.runtime.progress import Progress, silent

# Walks per call of the kernel; Ctrl-C is handled in between.
_AT_ONCE = 2000
# Entries of the table that negatives are drawn from, visits^0.75 of them per node.
_TABLE = 1 << 20
# Streams of randomness, one per purpose.
_WALKS, _START, _PAIRS = 1, 2, 3


@dataclass(frozen=True)
class Metapath2vec(OnWordVectors):
    """Metapath2vec on the paper's graph, then the classifier of WeSHClass, whose parameters are its own as well.

    Attributes
    ----------
    walks_per_node, walk_length : int
        Walks from every node that a meta-path can start from, and nodes on each.
    window, negatives : int
        Largest distance on a walk of two nodes that are paired, and negatives per pair.
    walk_rate : float
        First step size of skip-gram on the walks; it falls linearly.

    Examples
    --------
    >>> Metapath2vec(walks_per_node=10).window
    7
    """

    name = "metapath2vec"
    title = "Metapath2vec"
    about = "Skip-gram on walks along meta-paths through labels, documents, metadata and words; WeSHClass."

    walks_per_node: int = parameter(8, least=1)
    walk_length: int = parameter(100, least=2)
    window: int = parameter(7, least=1)
    negatives: int = parameter(5, least=1)
    walk_rate: float = parameter(0.025, least=0)

    def word_vectors(self, task: Task, corpus: Corpus) -> npt.NDArray[np.float32]:
        """Skip-gram vectors of the nodes."""
        graph = build_graph(task.corpus, task.taxonomy, task.supervision)
        vectors = node_vectors(graph, self, seed=task.seed, progress=task.progress)
        return vectors[graph.word_nodes]


class Walks:
    """Random walks along the meta-paths of a graph; the same ones each time they are gone through.

    The edges of one kind join two kinds of nodes, so a walk that keeps to them follows the meta-path: labels
    for l-l, documents and their labels in turn for d-l-d, and likewise for each type of metadata and for words.
    Every step takes one of the node's edges with equal chance. Walks start from every label or document that
    has such an edge, and come in random order, so that no meta-path is learned last.

    Examples
    --------
    >>> graph = Graph(3, 1, {"word": (np.array([0, 1]), np.array([2, 2]))}, np.array([0, 1]))
    >>> walks = Walks(graph, per_node=2, length=4)
    >>> len(walks), [(some == 2).tolist() for some in walks]
    (2, [[[True, False, True, False]], [[True, False, True, False]]])
    """

    def __init__(self, graph: Graph, *, per_node: int, length: int, seed: int = 0) -> None:
        first_document = graph.n_nodes - graph.n_documents
        self.n_nodes = graph.n_nodes
        self.per_node, self.length, self.seed = per_node, length, seed
        self._paths: list[tuple[NodeIds, Ragged]] = []
        for kind in graph.edges:
            neighbours = graph.neighbours(kind)
            starts = np.flatnonzero(neighbours.lengths).astype(np.int32)
            if kind != "hierarchy":
                starts = starts[starts >= first_document]
            self._paths.append((starts, neighbours))

    def __len__(self) -> int:
        return self.per_node * sum(len(starts) for starts, _ in self._paths)

    def __iter__(self) -> Iterator[NodeIds]:
        """The walks, some at a time, a row each."""
        rng = np.random.default_rng([self.seed, _WALKS])
        for _ in range(self.per_node):
            some = np.concatenate(
                [_walk(starts, neighbours, self.length, rng) for starts, neighbours in self._paths]
            )
            some = rng.permutation(some)
            for start in range(0, len(some), _AT_ONCE):
                yield some[start : start + _AT_ONCE]

    def visits(self) -> npt.NDArray[np.int64]:
        """How often the walks come by every node.

        Examples
        --------
        >>> graph = Graph(2, 1, {"word": (np.array([0]), np.array([1]))}, np.array([0]))
        >>> Walks(graph, per_node=3, length=4).visits().tolist()
        [6, 6]
        """
        found = np.zeros(self.n_nodes, dtype=np.int64)
        for some in self:
            found += np.bincount(some.ravel(), minlength=self.n_nodes)
        return found


def pairs_on(walks: NodeIds, window: int, rng: np.random.Generator) -> tuple[NodeIds, NodeIds]:
    """Nodes of walks, each with the nodes around it.

    As in word2vec, the window of every node is drawn from 1 to `window`, so that near nodes are paired more often.

    Examples
    --------
    >>> [ends.tolist() for ends in pairs_on(np.array([[5, 6, 7]]), 1, np.random.default_rng(0))]
    [[5, 6, 6, 7], [6, 5, 7, 6]]
    """
    length = walks.shape[1]
    steps = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    around = np.arange(length)[:, None] + steps
    reach = rng.integers(1, window + 1, walks.shape)
    near = (around >= 0) & (around < length) & (np.abs(steps) <= reach[:, :, None])
    row, place, step = np.nonzero(near)
    return walks[row, place], walks[row, around[place, step]]


def node_vectors(
    graph: Graph, settings: Metapath2vec, *, seed: int = 0, progress: Progress | None = None
) -> npt.NDArray[np.float32]:
    """Learn a vector for every node by skip-gram with negative sampling on walks; zeros where none came by.

    Examples
    --------
    >>> graph = Graph(4, 1, {"word": (np.array([0, 1]), np.array([3, 3]))}, np.array([0, 1, 2]))
    >>> vectors = node_vectors(graph, Metapath2vec(dimension=8))
    >>> vectors.shape, vectors.any(axis=1).tolist()
    ((4, 8), [True, True, False, True])
    """
    # Imported here: the compiler takes long to import.
    from himecat.kernels.network_embedding import train_edges

    walks = Walks(graph, per_node=settings.walks_per_node, length=settings.walk_length, seed=seed)
    n_nodes, dimension = graph.n_nodes, settings.dimension
    visits = walks.visits()
    if not visits.any():
        return np.zeros((n_nodes, dimension), dtype=np.float32)
    # The vectors of the nodes, then their context vectors, as in skip-gram.
    vectors = start_vectors(n_nodes, dimension, np.random.default_rng([seed, _START]), 2 * n_nodes)
    table = n_nodes + negatives_table(visits, _TABLE)[None]
    room = np.zeros(vectors.shape[1], dtype=np.float32)
    rng = np.random.default_rng([seed, _PAIRS])
    done = 0
    with (progress or silent()).stage("Walking along meta-paths", total=len(walks)) as stage:
        for some in walks:
            nodes, others = pairs_on(some, settings.window, rng)
            rates = [settings.walk_rate * (1.0 - now / len(walks)) for now in (done, done + len(some))]
            train_edges(
                vectors, nodes, others + np.int32(n_nodes), np.zeros(len(nodes), dtype=np.int8), table, room,
                settings.negatives, *rates, rng.integers(2**63, dtype=np.uint64),
            )  # fmt: skip
            done += len(some)
            stage.advance(len(some))
    vectors[:n_nodes][visits == 0] = 0.0
    return np.ascontiguousarray(vectors[:n_nodes, :dimension])


def _walk(starts: NodeIds, neighbours: Ragged, length: int, rng: np.random.Generator) -> NodeIds:
    """A walk from every start, all of them a step at a time."""
    walks = np.empty((len(starts), length), dtype=np.int32)
    lengths, offsets = neighbours.lengths, neighbours.offsets
    here = starts
    for step in range(length):
        walks[:, step] = here
        # Edges are undirected, so no walk ends early.
        chosen = offsets[here] + (rng.random(len(here)) * lengths[here]).astype(np.int64)
        here = neighbours.values[chosen]
    return walks
