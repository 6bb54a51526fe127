"""Naive Bayes over the paths of the tree, path-cost-sensitive, with EM on the unlabelled documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.compare.systems.system import NodeArray, System, Task, parameter, with_metadata_words
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy

FloatArray = npt.NDArray[np.float64]

# At most so many documents at a time: the table of documents by paths stays small for any corpus.
_BATCH = 8192


@dataclass(frozen=True)
class Pcem(System):
    """Path-cost-sensitive naive Bayes with EM on unlabelled documents, after Xiao, Liu and Song (2019).

    Parameters
    ----------
    level_weight : float
        How much a level of the tree weighs in a path's score, in terms of the level above it.
    smoothing : float
        Count that every word of every path has beforehand, and every path.
    rounds : int
        At most so many rounds of EM; none leaves the classifier of the labelled documents (PCNB).
    tolerance : float
        EM ends when the log-likelihood rises by less than this share of itself.
    score_unlabelled : bool
        Spread the unlabelled documents over related paths too, as is always done with the labelled ones.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> texts = ["late goal match", "tax law", "goal keeper", "law court", "keeper", "court"]
    >>> tree = Taxonomy.from_paths([("sport",), ("politics",)])
    >>> task = Task(read_corpus(texts), tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> [tree.names[leaf] for leaf in Pcem().fit_predict(task)[:4]]
    ['sport', 'politics', 'sport', 'politics']
    """

    name = "pcem"
    title = "PCEM"
    about = "Naive Bayes over paths of the tree, with EM on the unlabelled documents."

    level_weight: float = parameter(1.0, above=0)
    smoothing: float = parameter(1.0, above=0)
    rounds: int = parameter(50, least=0)
    tolerance: float = parameter(1e-3, least=0)
    score_unlabelled: bool = False

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        labelled = task.supervision
        # A leaf without labels would have a flat distribution and attract whatever fits no other.
        leaves = np.unique(task.leaf_nodes)
        known = path_scores(task.taxonomy, labelled.nodes, leaves, self.level_weight)
        counts = word_counts(task.corpus, labelled)
        # A label with no score for any path leaves its document unlabelled.
        scored = known.any(axis=1)
        rows, known = labelled.rows[scored], known[scored]
        unlabelled = counts[np.setdiff1d(np.arange(len(task.corpus)), rows)]
        between = path_scores(task.taxonomy, leaves, leaves, self.level_weight)
        with task.progress.stage("Rounds of EM over the paths") as stage:
            paths = learn_paths(
                counts[rows],
                known,
                unlabelled,
                spread=between if self.score_unlabelled else None,
                smoothing=self.smoothing,
                rounds=self.rounds,
                tolerance=self.tolerance,
                advance=stage.advance,
            )
        best = [paths.log_joint(batch).argmax(axis=1) for batch in _batches(counts)]
        return np.asarray(leaves[np.concatenate(best)], dtype=np.int64)


def path_scores(
    taxonomy: Taxonomy, nodes: npt.NDArray[np.int64], leaves: npt.NDArray[np.int64], level_weight: float = 1.0
) -> FloatArray:
    """Score of each label for the path to each leaf: the summed weight of the levels they share.

    A leaf above the deepest level is repeated on all levels below it, so that its own path scores as high as
    that of a deep leaf.

    Parameters
    ----------
    nodes : array of int
        The label of every labelled document.
    leaves : array of int
        The leaves that the paths lead to.
    level_weight : float
        The first level weighs 1, and each further one this many times the one above it.

    Returns
    -------
    array
        One row per label, one column per leaf.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> nodes = np.array([tree.find(name) for name in ("b", "d", "a")])
    >>> [tree.names[leaf] for leaf in tree.leaves]
    ['d', 'b', 'c']
    >>> path_scores(tree, nodes, np.array(tree.leaves)).tolist()
    [[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    weights = level_weight ** np.arange(taxonomy.depth, dtype=np.float64)
    summed = np.concatenate([[0.0], np.cumsum(weights)])
    under = taxonomy.leaf_membership[:, taxonomy.leaf_position[leaves]]
    different, which = np.unique(nodes, return_inverse=True)
    scores = np.zeros((len(different), len(leaves)))
    for row, node in enumerate(different.tolist()):
        shared = under[list(taxonomy.lineages[node])].sum(axis=0)
        scores[row] = summed[shared]
        if taxonomy.is_leaf(node):
            scores[row, leaves == node] = summed[-1]
    return scores[which.reshape(-1)]


def word_counts(corpus: Corpus, supervision: Supervision) -> Any:
    """Sparse matrix (documents x words and metadata values), with those that occur in labelled documents only.

    English stop words and numbers are left out, metadata values never are.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "the red fox", "tags": ["it"]}, {"text": "red red hen"}], metadata="tags")
    >>> word_counts(corpus, Supervision(np.array([0]), np.array([1]))).toarray().tolist()
    [[1.0, 1.0, 1.0], [2.0, 0.0, 0.0]]
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    merged = with_metadata_words(corpus)
    useful = np.ones(len(merged.words), dtype=np.bool_)
    useful[: len(corpus.words)] = [
        name not in ENGLISH_STOP_WORDS and not name.isnumeric() for name in corpus.words.names
    ]
    counts = merged.tokens.counts(len(merged.words), dtype=np.float64)
    seen = np.asarray(counts[supervision.rows].sum(axis=0)).reshape(-1) > 0
    return counts[:, np.flatnonzero(seen & useful)]


@dataclass(frozen=True)
class PathModel:
    """How likely each path is, and each word on it: natural logarithms.

    Examples
    --------
    >>> model = PathModel.from_counts(np.array([1.0, 3.0]), np.array([[1.0, 0.0], [0.0, 2.0]]), smoothing=1.0)
    >>> np.exp(model.path).round(3).tolist(), np.exp(model.word).round(3).tolist()
    ([0.333, 0.667], [[0.667, 0.25], [0.333, 0.75]])
    """

    path: FloatArray
    word: FloatArray

    @classmethod
    def from_counts(cls, paths: FloatArray, words: FloatArray, smoothing: float) -> PathModel:
        """The model of a count per path, and one per word (columns) and path (rows)."""
        path = (paths + smoothing) / (paths.sum() + smoothing * len(paths))
        total = words.sum(axis=1, keepdims=True) + smoothing * words.shape[1]
        return cls(np.log(path), np.ascontiguousarray(np.log((words + smoothing) / total).T))

    def log_joint(self, counts: Any) -> FloatArray:
        """Log probability of every document (rows) together with every path (columns)."""
        return np.asarray(counts @ self.word + self.path)


def learn_paths(
    labelled: Any,
    scores: FloatArray,
    unlabelled: Any,
    *,
    spread: FloatArray | None = None,
    smoothing: float = 1.0,
    rounds: int = 50,
    tolerance: float = 1e-3,
    advance: Callable[[], None] = lambda: None,
) -> PathModel:
    """Fit naive Bayes over paths to labelled documents, then to all documents by EM.

    Parameters
    ----------
    labelled, unlabelled : sparse matrix
        Word counts, one row per document.
    scores : array
        How much each labelled document (rows) counts for each path (columns); see `path_scores`.
    spread : array or None
        How much a document of one path counts for each path; None: for its own alone, once.
    smoothing, rounds, tolerance
        As for `Pcem`.
    advance : callable
        Called after every round.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> labelled, unlabelled = csr_matrix(np.eye(2, 3)), csr_matrix([[3.0, 0.0, 3.0], [0.0, 3.0, 0.0]])
    >>> alone = learn_paths(labelled, np.eye(2), unlabelled, rounds=0)
    >>> both = learn_paths(labelled, np.eye(2), unlabelled, rounds=5)
    >>> third_word = csr_matrix([[0.0, 0.0, 1.0]])
    >>> [np.ptp(model.log_joint(third_word)).round(2).item() for model in (alone, both)]
    [0.0, 1.03]
    """
    known_paths, known_words = scores.sum(axis=0), (labelled.T @ scores).T
    # Labelled documents enter the likelihood with the paths that their labels score highest.
    own = np.where(scores == scores.max(axis=1, keepdims=True), 0.0, -np.inf)
    model = PathModel.from_counts(known_paths, known_words, smoothing)
    before = -np.inf
    for _ in range(rounds):
        likelihood = float(_log_sum(model.log_joint(labelled) + own).sum())
        paths, words = known_paths.copy(), known_words.copy()
        for batch in _batches(unlabelled):
            joint = model.log_joint(batch)
            sums = _log_sum(joint)
            likelihood += float(sums.sum())
            posterior = np.exp(joint - sums[:, np.newaxis])
            counted = posterior if spread is None else posterior @ spread
            paths += counted.sum(axis=0)
            words += (batch.T @ counted).T
        if likelihood - before < tolerance * abs(before):
            break
        before = likelihood
        model = PathModel.from_counts(paths, words, smoothing)
        advance()
    return model


def _log_sum(logarithms: FloatArray) -> FloatArray:
    highest = logarithms.max(axis=1, keepdims=True)
    summed = np.log(np.exp(logarithms - highest).sum(axis=1)) + highest[:, 0]
    return np.asarray(summed, dtype=np.float64)


def _batches(counts: Any) -> Iterator[Any]:
    for start in range(0, counts.shape[0], _BATCH):
        yield counts[start : start + _BATCH]
