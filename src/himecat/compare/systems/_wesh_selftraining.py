"""Self-training of the ensemble on documents without labels, level by level, and blocking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._wesh_ensemble import BATCH, Ensemble, WeSHClassSettings
from himecat.compare.systems.system import Task
from himecat.input.corpus import Ragged
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.threads import one_blas_thread

FloatArray = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


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


def normalised_entropy(taxonomy: Taxonomy, found: FloatArray, node: int) -> npt.NDArray[np.float64]:
    """Entropy of every document's probabilities over the children of a node: 0 for one child, 1 for all alike.

    Parameters
    ----------
    found : array of shape (documents, nodes)
        Probabilities of the nodes.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> normalised_entropy(tree, np.array([[1, 0.5, 0.5], [1, 1, 0]], dtype=np.float32), 0).tolist()
    [1.0, 0.0]
    """
    children = list(taxonomy.children[node])
    if len(children) < 2:
        return np.zeros(len(found))
    share = found[:, children].astype(np.float64)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    entropy = np.abs((share * np.log(np.maximum(share, 1e-300))).sum(axis=1))
    return np.asarray(entropy / np.log(len(children)), dtype=np.float64)


def blocked(taxonomy: Taxonomy, found: FloatArray, classes: list[int], level: int, gamma: float) -> Rows:
    """Where each document is blocked: an inner node, or 0 for a document that is not.

    The choice among the siblings of its best class must not be too even. Nothing is blocked at the root.

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
        if taxonomy.depths[parent] == level:
            here = np.flatnonzero(parents == parent)
            stops[here[normalised_entropy(taxonomy, found[here], parent) > gamma]] = parent
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
        title = f"Self-training on level {level + 1}"
        active = order[stops[order] == 0]
        with task.progress.stage(title, total=settings.rounds) as stage:
            training = _LevelTraining(task, ensemble, documents, active, level, settings)
            for _ in range(settings.rounds if ensemble.local and len(active) else 0):
                if not training.round():
                    break
                stage.advance()
            if settings.block and len(active):
                stops[active] = training.stops(training.probabilities())
        for classifier in ensemble.local.values():
            classifier.reset_momentum()
    return stops


class _LevelTraining:
    """The rounds of one level, on the documents that came so far."""

    def __init__(
        self,
        task: Task,
        ensemble: Ensemble,
        documents: Ragged,
        rows: Rows,
        level: int,
        settings: WeSHClassSettings,
    ) -> None:
        self._task, self._ensemble, self._documents = task, ensemble, documents
        self._rows, self._level, self._settings = rows, level, settings
        self._classes = ensemble.classes_at(level)
        leaf_of = dict(zip(task.leaf_rows.tolist(), task.leaf_nodes.tolist(), strict=True))
        # Position among the classes of what a document is known to be; -1 where it is not known.
        above = {node: position for position, node in enumerate(self._classes)}
        self._known = np.array(
            [self._class_of(leaf_of[row], above) if row in leaf_of else -1 for row in rows.tolist()],
            dtype=np.int64,
        )
        self._labels: Rows | None = None
        self._next = 0

    def _class_of(self, leaf: int, position: dict[int, int]) -> int:
        return next(position[node] for node in self._task.taxonomy.lineages[leaf] if node in position)

    def probabilities(self) -> FloatArray:
        """Probabilities of the nodes down to the classes of the level."""
        return self._ensemble.probabilities(self._documents, self._rows, self._task.threads, self._level)

    def stops(self, found: FloatArray) -> Rows:
        """Where the documents are blocked; one with a label never is."""
        taxonomy, gamma = self._task.taxonomy, self._settings.gamma
        stops = blocked(taxonomy, found, self._classes, self._level, gamma)
        stops[self._known >= 0] = 0
        return stops

    def round(self) -> bool:
        """Classify, and train unless hardly a label changed; say whether that was done."""
        settings = self._settings
        found = self.probabilities()
        labels = found[:, self._classes].argmax(axis=1)
        stays = np.zeros(len(labels), dtype=np.bool_)
        if settings.block:
            stays = self.stops(found) > 0
            labels[stays] = -1
        last, self._labels = self._labels, labels
        if last is not None and np.mean(last != labels) < settings.delta / 100:
            return False
        free = np.flatnonzero(~stays)
        targets = sharpened(found[free][:, self._classes])
        labelled = np.flatnonzero(self._known[free] >= 0)
        targets[labelled] = np.eye(len(self._classes), dtype=np.float32)[self._known[free[labelled]]]
        for _ in range(settings.round_steps if len(free) else 0):
            self._next = 0 if self._next >= len(free) else self._next
            batch = np.arange(self._next, min(self._next + BATCH, len(free)))
            self._next += BATCH
            self._ensemble.learn(
                self._documents,
                self._rows[free[batch]],
                targets[batch],
                self._level,
                settings.self_rate,
                settings.momentum,
            )
        return True
