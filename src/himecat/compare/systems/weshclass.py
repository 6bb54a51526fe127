"""WeSHClass: keywords, pseudo documents, a network per inner node, self-training and blocking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._weshclass import WeSHClassSettings, weshclass_on
from himecat.compare.systems.system import NodeArray, System, Task, with_metadata_words
from himecat.input.corpus import Corpus


@dataclass(frozen=True)
class WeSHClass(WeSHClassSettings, System):
    """Skip-gram word vectors, then the classifier of `weshclass_on`, whose parameters are its own as well.

    Attributes
    ----------
    dimension, window, passes : int
        Of the skip-gram vectors: their length, words of context on either side, passes over the corpus.

    Examples
    --------
    >>> system = WeSHClass(beta=100)
    >>> system.dimension, system.beta
    (100, 100)
    """

    name = "weshclass"
    title = "WeSHClass"
    about = (
        "Pseudo documents from keywords and an LSTM, a CNN per inner node, self-training on all documents."
    )
    min_count = 5
    max_tokens = 300
    requires = ("gensim", "torch")

    dimension: int = 100
    window: int = 5
    passes: int = 5

    def place(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        corpus = with_metadata_words(task.corpus)
        with task.progress.stage("Training word vectors"):
            words = skip_gram(corpus, self.min_count, self.dimension, self.window, self.passes, task.seed)
        return weshclass_on(task, corpus, words, self)


def skip_gram(
    corpus: Corpus, min_count: int, dimension: int, window: int, passes: int, seed: int
) -> npt.NDArray[np.float32]:
    """Learn skip-gram vectors of the words of a corpus; a word seen less than `min_count` times has zeros.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> skip_gram(read_corpus(["red fox", "red hen"]), 2, 4, 5, 1, 0).any(axis=1).tolist()
    [True, False, False]
    """
    from gensim.models import Word2Vec

    names = [str(word) for word in range(len(corpus.words))]
    texts = [[names[word] for word in corpus.tokens[row].tolist()] for row in range(len(corpus))]
    vectors = np.zeros((len(names), dimension), dtype=np.float32)
    counts = np.bincount(corpus.tokens.values, minlength=len(names))
    if counts.max(initial=0) < min_count:
        return vectors
    # One worker: with several, the result depends on which is faster.
    model = Word2Vec(
        texts,
        vector_size=dimension,
        window=window,
        min_count=min_count,
        sg=1,
        epochs=passes,
        workers=1,
        seed=seed + 1,
    )
    for word in np.flatnonzero(counts >= min_count).tolist():
        vectors[word] = model.wv[names[word]]
    return vectors
