"""TF-IDF of words and metadata values with a flat linear support vector machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from himecat.compare.systems.system import NodeArray, System, Task, parameter
from himecat.input.corpus import Corpus, Ragged

# The default word of scikit-learn's TfidfVectorizer.
_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True)
class TfidfSvm(System):
    """TF-IDF of words and metadata values with a flat linear support vector machine.

    Term frequencies are sublinear and each metadata value is a token of its own. Document frequencies come
    from all documents, labelled or not. Words with hyphens are split, as scikit-learn does.

    Attributes
    ----------
    c : float
        Inverse regularisation strength.

    Examples
    --------
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> corpus = read_corpus(["a late goal", "a new law", "goal after goal", "the law"])
    >>> tree = Taxonomy.from_paths([("sport",), ("politics",)])
    >>> task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> [tree.names[leaf] for leaf in TfidfSvm().fit_predict(task)]
    ['sport', 'politics', 'sport', 'politics']
    """

    name = "tfidf-svm"
    title = "TF-IDF + SVM"
    about = "Words and metadata values weighed by TF-IDF, one flat linear SVM over the leaves."

    c: float = parameter(1.0, above=0)

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = token_counts(task.corpus)
        if not counts.shape[1]:
            # Not one word or value to go by, and scikit-learn refuses a matrix without columns.
            return task.most_labelled_leaf()
        return self.predict(task, TfidfTransformer(sublinear_tf=True).fit_transform(counts))

    def predict(self, task: Task, features: Any) -> NodeArray:
        """The leaf of every row of features."""
        from sklearn.svm import LinearSVC

        return task.predict_flat(features, LinearSVC(C=self.c, random_state=0))


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
    """Matrix (words x parts): the parts of each word with hyphens."""
    number: dict[str, int] = {}
    parts = Ragged.from_lists(
        [[number.setdefault(part, len(number)) for part in _WORD.findall(name)] for name in names]
    )
    return parts.counts(len(number), dtype=np.float64)
