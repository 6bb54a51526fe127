"""Vectors from a hyperbolic space, with the classifier of WeSHClass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._graph import Graph, build_graph
from himecat.compare.systems.system import Task, parameter
from himecat.compare.systems.weshclass import OnWordVectors
from himecat.input.corpus import Corpus
from himecat.runtime.progress import Progress, silent

FloatArray = npt.NDArray[np.float64]

# Points start this close to the origin, in every coordinate, as published.
_START = 1e-3
# In the first passes steps are this many times smaller, so that points find their directions before they spread.
_SLOWER = 10.0
# Edges per call of the kernel; Ctrl-C is seen between calls.
_AT_ONCE = 100_000


@dataclass(frozen=True)
class Poincare(OnWordVectors):
    """The paper's graph in the Poincaré ball, then the classifier of WeSHClass, whose parameters are its own too.

    Attributes
    ----------
    passes, burn_in : int
        Passes over the edges, and how many of them, the first ones, take smaller steps.
    negatives : int
        Negatives per edge: nodes without an edge to its source, drawn by how many edges they have.
    edge_rate : float
        Step size for an edge.
    penalty : float
        Weight of the squared length of an edge's target in the loss.
    most_steps : int
        There are fewer passes where all of them would take more steps than this; one at least.

    Examples
    --------
    >>> Poincare(passes=20).negatives
    10
    """

    name = "poincare"
    title = "Poincaré"
    about = "Labels, documents, metadata and words embedded in a hyperbolic space; WeSHClass."

    passes: int = parameter(50, least=1)
    burn_in: int = parameter(10, least=0)
    negatives: int = parameter(10, least=1)
    edge_rate: float = parameter(0.1, least=0)
    penalty: float = parameter(1.0, least=0)
    most_steps: int = parameter(40_000_000, least=1)

    def word_vectors(self, task: Task, corpus: Corpus) -> npt.NDArray[np.float32]:
        """Points of the nodes in the ball.

        The classifier reads directions only, and the logarithmic map at the origin would not change them.
        """
        graph = build_graph(task.corpus, task.taxonomy, task.supervision)
        points = points_of_nodes(graph, self, seed=task.seed, progress=task.progress)
        return points[graph.word_nodes].astype(np.float32)


def points_of_nodes(
    graph: Graph, settings: Poincare, *, seed: int = 0, progress: Progress | None = None
) -> FloatArray:
    """Learn a point of the unit ball for every node: near to those that it has an edge with, far from others.

    A node without an edge stays at the origin: nothing is known of it.

    Examples
    --------
    >>> graph = Graph(4, 2, {"word": (np.array([0, 1]), np.array([2, 3]))}, np.array([0, 1]))
    >>> points = points_of_nodes(graph, Poincare(dimension=4))
    >>> bool(np.linalg.norm(points[0] - points[2]) < np.linalg.norm(points[0] - points[3]) < 2)
    True
    """
    from himecat.kernels.poincare import move_edges

    rng = np.random.default_rng(seed)
    points = rng.uniform(-_START, _START, (graph.n_nodes, settings.dimension))
    sources, targets = graph.distinct_edges()
    linked = graph.linked()
    passes = max(1, min(settings.passes, settings.most_steps // max(1, len(sources))))
    # Where there are fewer passes, fewer of them are slow.
    slow_ones = settings.burn_in * passes // settings.passes
    with (progress or silent()).stage("Embedding the graph", total=passes * len(sources)) as stage:
        for number in range(passes):
            order = rng.permutation(len(sources))
            rate = settings.edge_rate / (_SLOWER if number < slow_ones else 1.0)
            loss = 0.0
            for start in range(0, len(order), _AT_ONCE):
                some = order[start : start + _AT_ONCE]
                kernel_seed = rng.integers(2**63, dtype=np.uint64)
                loss += move_edges(
                    points, sources, targets, some, linked.values, linked.offsets, settings.negatives, rate,
                    settings.penalty, kernel_seed,
                )  # fmt: skip
                stage.advance(len(some))
            if len(order):
                stage.advance(0, note=f"loss {loss / len(order):.3f}")
    points[linked.lengths == 0] = 0.0
    return points
