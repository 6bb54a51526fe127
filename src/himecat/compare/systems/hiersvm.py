"""A linear support vector machine at every inner node, walked from the top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.compare.systems.system import NodeArray, System, Task, parameter
from himecat.compare.systems.tfidf_svm import token_counts
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy


@dataclass(frozen=True)
class HierSvm(System):
    """A linear support vector machine at every inner node, after Dumais and Chen (2000).

    Parameters
    ----------
    c : float
        Inverse strength of the penalty.

    Examples
    --------
    >>> from himecat import read_corpus
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

    c: float = parameter(1.0, above=0)

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.svm import LinearSVC

        counts = token_counts(task.corpus)
        if not counts.shape[1]:
            # Not one word or value to go by, and scikit-learn refuses a matrix without columns.
            return np.full(len(task.corpus), np.bincount(task.leaf_nodes).argmax(), dtype=np.int64)
        features = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
        inner = task.taxonomy.inner
        with task.progress.stage("Training an SVM at every inner node", total=len(inner)) as stage:
            return walk_down(
                features,
                task,
                lambda: LinearSVC(C=self.c, random_state=task.seed),
                advance=stage.advance,
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
    >>> from himecat import read_corpus
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> labelled = Supervision(np.arange(3), np.array([tree.find(name) for name in "bcd"]))
    >>> task = Task(read_corpus(["x"] * 4), tree, labelled)
    >>> features = np.array([[0.0], [1.0], [9.0], [1.2]])
    >>> [tree.names[leaf] for leaf in walk_down(features, task, lambda: KNeighborsClassifier(1))]
    ['b', 'c', 'd', 'c']
    """
    taxonomy = task.taxonomy
    reachable = np.zeros(len(taxonomy), dtype=np.bool_)
    for leaf in np.unique(task.leaf_nodes).tolist():
        reachable[list(taxonomy.lineages[leaf])] = True
    found = np.zeros(features.shape[0], dtype=np.int64)
    arrived = {0: np.arange(len(found))}
    # Inner nodes come in top-down order: when it is a node's turn, all its documents have arrived.
    for node in taxonomy.inner:
        rows = arrived.pop(node, None)
        if rows is not None:
            known, child_of_known = labelled_below(taxonomy, node, task.supervision, reachable)
            if (child_of_known == child_of_known[0]).all():
                chosen = np.full(len(rows), child_of_known[0])
            else:
                chosen = make().fit(features[known], child_of_known).predict(features[rows])
            for child in np.unique(chosen).tolist():
                arrived[child] = rows[chosen == child]
        advance()
    for leaf, rows in arrived.items():
        found[rows] = leaf
    return found


def labelled_below(
    taxonomy: Taxonomy, node: int, supervision: Supervision, allowed: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], NodeArray]:
    """Rows of the documents labelled below a node, and the child of that node that each belongs to.

    Parameters
    ----------
    allowed : array of bool
        For every node of the tree, whether it counts as a child here.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> labelled = Supervision(np.array([5, 7, 9]), np.array([tree.find(name) for name in "bcd"]))
    >>> rows, children = labelled_below(tree, tree.find("a"), labelled, np.ones(len(tree), dtype=np.bool_))
    >>> rows.tolist(), [tree.names[child] for child in children]
    ([5, 7], ['b', 'c'])
    """
    level = taxonomy.depths[node]
    lines = [taxonomy.lineages[known] for known in supervision.nodes.tolist()]
    at_level = np.array([line[level] if len(line) > level else 0 for line in lines], dtype=np.int64)
    below = np.isin(at_level, taxonomy.children[node]) & allowed[at_level]
    return supervision.rows[below], at_level[below]
