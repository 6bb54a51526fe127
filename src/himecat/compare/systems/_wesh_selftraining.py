"""Self-training of the ensemble on documents without labels, level by level, and blocking."""

from __future__ import annotations

import numpy as np

from himecat.compare.systems._wesh_ensemble import Ensemble, FloatArray, Rows, WeSHClassSettings
from himecat.compare.systems.system import Task
from himecat.input.corpus import Ragged
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.kimcnn import Batches, Descent
from himecat.runtime.progress import Stage
from himecat.runtime.threads import one_blas_thread

_BATCH = 256
# Documents with less of their target below a node are left out of its training.
_LEAST_MASS = 1e-3


def sharpened(found: FloatArray) -> FloatArray:
    """Targets from probabilities: their squares, each class divided by its total, and rows made to sum to 1.

    Confident predictions gain weight, and large classes do not absorb the small ones.

    Examples
    --------
    >>> sharpened(np.array([[0.8, 0.2], [0.5, 0.5]], dtype=np.float32)).astype(float).round(2).tolist()
    [[0.9, 0.1], [0.35, 0.65]]
    """
    weights = found.astype(np.float64) ** 2 / np.maximum(found.sum(axis=0, dtype=np.float64), 1e-12)
    totals = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(weights / totals, dtype=np.float32)


def blocked(taxonomy: Taxonomy, found: FloatArray, classes: list[int], level: int, gamma: float) -> Rows:
    """Where each document is blocked: an inner node, or 0 for a document that is not.

    The normalised entropy over the siblings of its best class (1 where all are alike) must not be above `gamma`.
    Nothing is blocked at the root.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> found = np.array([[1, 0.9, 0.1, 0.46, 0.44], [1, 0.9, 0.1, 0.89, 0.01]], dtype=np.float32)
    >>> blocked(tree, found, [2, 3, 4], 1, gamma=0.9).tolist()
    [1, 0]
    """
    stops = np.zeros(len(found), dtype=np.int64)
    if level == 0:
        return stops
    parents = np.array(taxonomy.parents)[np.array(classes)[found[:, classes].argmax(axis=1)]]
    for parent in np.unique(parents).tolist():
        # Leaves further up were decided on in an earlier level.
        children = list(taxonomy.children[parent])
        if taxonomy.depths[parent] == level and len(children) > 1:
            here = np.flatnonzero(parents == parent)
            share = found[here][:, children].astype(np.float64)
            share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
            entropy = np.abs((share * np.log(np.maximum(share, 1e-300))).sum(axis=1))
            stops[here[entropy / np.log(len(children)) > gamma]] = parent
    return stops


# Matrix products on several threads would add up in another order than on one.
@one_blas_thread()
def self_train(task: Task, ensemble: Ensemble, documents: Ragged, settings: WeSHClassSettings) -> Rows:
    """Train the ensemble on its own confident predictions, from the first level down.

    In every round the documents are classified, the targets of the level made from the result, and some batches
    trained on; labelled documents keep their label as target. Documents that are blocked are left out, and those
    blocked at the end of a level stay out of deeper ones.

    Returns
    -------
    array of int
        For every document the inner node where it was blocked, or 0.

    Examples
    --------
    >>> from himecat import Supervision, read_corpus
    >>> corpus = read_corpus(["goal", "law"])
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> self_train(task, Ensemble(tree, np.eye(2, dtype="f4")), corpus.tokens, WeSHClassSettings()).tolist()
    [0, 0]
    """
    stops = np.zeros(len(documents), dtype=np.int64)
    order = np.random.default_rng([task.seed, 2]).permutation(np.flatnonzero(documents.lengths > 0))
    for level in range(task.taxonomy.depth):
        rows = order[stops[order] == 0]
        with task.progress.stage(f"Self-training on level {level + 1}", total=settings.rounds) as stage:
            if len(rows):
                stops[rows] = _train_level(task, ensemble, documents, rows, level, settings, stage)
    return stops


def _train_level(
    task: Task,
    ensemble: Ensemble,
    documents: Ragged,
    rows: Rows,
    level: int,
    settings: WeSHClassSettings,
    stage: Stage,
) -> Rows:
    """The rounds of one level on some documents; where each of them is blocked afterwards."""
    taxonomy, classes = task.taxonomy, ensemble.classes_at(level)
    # Position among the classes of what a document is known to be; -1 where it is not known.
    class_of_leaf = taxonomy.leaf_membership[classes].argmax(axis=0)
    known = np.full(len(documents), -1, dtype=np.int64)
    known[task.leaf_rows] = class_of_leaf[taxonomy.leaf_position[task.leaf_nodes]]
    known = known[rows]

    def classify() -> tuple[FloatArray, Rows]:
        found = ensemble.probabilities(documents, rows, task.threads, level)
        stops = np.zeros(len(rows), dtype=np.int64)
        if settings.block:
            stops = np.where(known < 0, blocked(taxonomy, found, classes, level, settings.gamma), 0)
        return found[:, classes], stops

    last: Rows | None = None
    start = 0
    if ensemble.local:
        descent = LevelDescent(ensemble, documents, level, settings.self_rate, settings.momentum)
    for _ in range(settings.rounds if ensemble.local else 0):
        found, stops = classify()
        labels = np.where(stops > 0, -1, found.argmax(axis=1))
        if last is not None and np.mean(last != labels) < settings.delta / 100:
            break
        last = labels
        free = np.flatnonzero(stops == 0)
        targets = sharpened(found[free])
        labelled = known[free] >= 0
        targets[labelled] = np.eye(len(classes), dtype=np.float32)[known[free[labelled]]]
        for _ in range(settings.round_steps if len(free) else 0):
            start = 0 if start >= len(free) else start
            batch = slice(start, start + _BATCH)
            descent.step(rows[free[batch]], targets[batch])
            start += _BATCH
        stage.advance()
    return classify()[1]


class LevelDescent:
    """Gradient descent of all local classifiers above the classes of a level, together.

    The Kullback-Leibler divergence from the targets to products of choices is a sum over the inner nodes: each
    has its own divergence, weighed by the part of the target that lies below it.
    """

    def __init__(
        self, ensemble: Ensemble, documents: Ragged, level: int, rate: float, momentum: float
    ) -> None:
        self._taxonomy, self._classes = ensemble.taxonomy, ensemble.classes_at(level)
        self._local = {
            node: Descent(classifier.network, rate, momentum)
            for node, classifier in ensemble.local.items()
            if ensemble.taxonomy.depths[node] <= level
        }
        # All networks have filters of the same shape, so that one of them can stand for all.
        network = next(iter(ensemble.local.values())).network
        self._batch_of = Batches(documents, ensemble.vectors, network, _BATCH)

    def step(self, rows: Rows, targets: FloatArray) -> None:
        """Take one step towards targets over the classes."""
        mass = np.zeros((len(rows), len(self._taxonomy)), dtype=np.float32)
        mass[:, self._classes] = targets
        for node in range(len(self._taxonomy) - 1, 0, -1):
            mass[:, self._taxonomy.parents[node]] += mass[:, node]
        for node, descent in self._local.items():
            relevant = np.flatnonzero(mass[:, node] > _LEAST_MASS)
            if len(relevant):
                wanted = mass[relevant][:, list(self._taxonomy.children[node])]
                descent.step(self._batch_of(rows[relevant]), wanted, of=len(rows))
