"""A linear support vector machine at every inner node, walked from the top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from himecat.compare.systems.system import NodeArray, Task
from himecat.compare.systems.tfidf_svm import TfidfSvm


@dataclass(frozen=True)
class HierSvm(TfidfSvm):
    """A linear support vector machine at every inner node, after Dumais and Chen (2000).

    Parameters
    ----------
    c : float
        Inverse strength of the penalty.

    Examples
    --------
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> texts = ["a late goal in the match", "a set of the match", "a new tax law"]
    >>> tree = Taxonomy.from_paths([("sport", "football"), ("sport", "tennis"), ("politics",)])
    >>> nodes = np.array([tree.find(name) for name in ("football", "tennis", "politics")])
    >>> task = Task(read_corpus([*texts, "goal", "one more tax"]), tree, Supervision(np.arange(3), nodes))
    >>> [tree.names[leaf] for leaf in HierSvm().fit_predict(task)]
    ['football', 'tennis', 'politics', 'football', 'politics']
    """

    name = "hiersvm"
    title = "HierSVM"
    about = (
        "Words and metadata values weighed by TF-IDF, a linear SVM at every inner node, from the top down."
    )

    def predict(self, task: Task, features: Any) -> NodeArray:
        """The leaf of every row of features."""
        from sklearn.svm import LinearSVC

        inner = task.taxonomy.inner
        with task.progress.stage("Training an SVM at every inner node", total=len(inner)) as stage:
            return walk_down(
                features, task, lambda: LinearSVC(C=self.c, random_state=task.seed), stage.advance
            )


def walk_down(
    features: Any, task: Task, make: Callable[[], Any], advance: Callable[[], None] = lambda: None
) -> NodeArray:
    """Take every document from the root to a leaf, with a classifier of its own at every inner node.

    Only children with a labelled leaf at or below them are chosen from, so that the walk never ends where
    nothing is known.

    Parameters
    ----------
    features : matrix
        One row per document.
    task : Task
        Gives the tree and the labelled documents. Those labelled with an inner node help to choose among the
        nodes above and at it.
    make : callable
        Makes a new classifier with `fit` and `predict`, as scikit-learn has them.
    advance : callable
        Called once per inner node.

    Returns
    -------
    array of int
        The leaf of every document, as a node of the tree.

    Examples
    --------
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> labelled = Supervision(np.arange(3), np.array([tree.find(name) for name in "bcd"]))
    >>> task = Task(read_corpus(["x"] * 4), tree, labelled)
    >>> features = np.array([[0.0], [1.0], [9.0], [1.2]])
    >>> [tree.names[leaf] for leaf in walk_down(features, task, lambda: KNeighborsClassifier(1))]
    ['b', 'c', 'd', 'c']
    """
    taxonomy, labelled = task.taxonomy, task.supervision
    reachable = np.zeros(len(taxonomy), dtype=np.bool_)
    for leaf in np.unique(task.leaf_nodes).tolist():
        reachable[list(taxonomy.lineages[leaf])] = True
    found = np.zeros(features.shape[0], dtype=np.int64)
    arrived = {0: np.arange(len(found))}
    # Inner nodes come in top-down order: when it is a node's turn, all its documents have arrived.
    for node in taxonomy.inner:
        rows = arrived.pop(node, None)
        if rows is not None:
            towards = taxonomy.child_towards(node, labelled.nodes)
            usable = (towards > 0) & reachable[towards]
            known, children = labelled.rows[usable], towards[usable]
            if (children == children[0]).all():
                chosen = children[:1].repeat(len(rows))
            else:
                chosen = make().fit(features[known], children).predict(features[rows])
            for child in np.unique(chosen).tolist():
                arrived[child] = rows[chosen == child]
        advance()
    for leaf, rows in arrived.items():
        found[rows] = leaf
    return found
