"""TF-IDF of words and metadata values with a flat linear support vector machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from himecat.compare.systems._checks import require_above_zero
from himecat.compare.systems._flat import predict_leaves
from himecat.compare.systems.system import NodeArray, System, Task
from himecat.input.corpus import Corpus, Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy

# What scikit-learn's TfidfVectorizer takes for a word unless told otherwise.
_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True)
class TfidfSvm(System):
    """TF-IDF of words and metadata values with a flat linear support vector machine; see `tfidf_svm`.

    Examples
    --------
    >>> TfidfSvm().c
    1.0
    """

    name = "tfidf-svm"
    title = "TF-IDF + SVM"
    about = "Words and metadata values weighed by TF-IDF, one flat linear SVM over the leaves."

    c: float = 1.0

    def __post_init__(self) -> None:
        require_above_zero(self, "c")

    def place(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        return tfidf_svm(task.corpus, task.supervision, task.taxonomy, c=self.c)


def tfidf_svm(corpus: Corpus, supervision: Supervision, taxonomy: Taxonomy, *, c: float = 1.0) -> NodeArray:
    """Place every document of a corpus on a leaf.

    Term frequencies are sublinear and each metadata value is a token of its own. Document frequencies come
    from all documents, labelled or not. Words with hyphens are taken apart, as scikit-learn does.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    supervision : Supervision
        The labelled ones; those labelled with an inner node are not used.
    taxonomy : Taxonomy
        The tree.
    c : float
        Inverse strength of the penalty.

    Returns
    -------
    array of int
        The leaf of every document, as a node of the tree.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["a late goal", "a new law", "goal after goal", "the law"])
    >>> tree = Taxonomy.from_paths([("sport",), ("politics",)])
    >>> [tree.names[leaf] for leaf in tfidf_svm(corpus, Supervision(np.array([0, 1]), np.array([1, 2])), tree)]
    ['sport', 'politics', 'sport', 'politics']
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    counts = token_counts(corpus)
    if not counts.shape[1]:
        # Not one word or value to go by, and scikit-learn refuses a matrix without columns.
        return predict_leaves(np.zeros((len(corpus), 1)), supervision, taxonomy, DummyClassifier())
    features = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    return predict_leaves(features, supervision, taxonomy, LinearSVC(C=c, random_state=0))


def token_counts(corpus: Corpus) -> Any:
    """Sparse matrix with a row per document and a column per word and metadata value: how often it occurs.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "well-known", "tags": ["x"]}, {"text": "well, well"}], metadata="tags")
    >>> token_counts(corpus).toarray().tolist()
    [[1.0, 1.0, 1.0], [2.0, 0.0, 0.0]]
    """
    from scipy.sparse import hstack

    words = corpus.tokens.counts(len(corpus.words), dtype=np.float64) @ _parts_of_words(corpus.words.names)
    values = [
        column.values.counts(len(column.vocabulary), dtype=np.float64) for column in corpus.metadata.values()
    ]
    return hstack([words, *values], format="csr")


def _parts_of_words(names: tuple[str, ...]) -> Any:
    """Matrix (words x parts): which parts a word with hyphens consists of."""
    number: dict[str, int] = {}
    parts = Ragged.from_lists(
        [[number.setdefault(part, len(number)) for part in _WORD.findall(name)] for name in names]
    )
    return parts.counts(len(number), dtype=np.float64)
