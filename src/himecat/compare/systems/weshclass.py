"""WeSHClass: keywords, pseudo documents, a network per inner node, self-training and blocking."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._language_model import learn_language
from himecat.compare.systems._topics import keywords_of_leaves, topic_of
from himecat.compare.systems._wesh_ensemble import WeSHClassSettings, pretrain
from himecat.compare.systems._wesh_selftraining import self_train
from himecat.compare.systems.system import NodeArray, System, Task, parameter, with_metadata_words
from himecat.errors import UsageError
from himecat.input.corpus import Corpus, Ragged
from himecat.paper.synthesis import SyntheticDocuments
from himecat.runtime.threads import run_parallel

FloatArray = npt.NDArray[np.float32]
Keywords = Mapping[int, npt.NDArray[np.int64]]

# Vectors whose nearest word is looked for together: their products with all words take much memory.
_AT_ONCE = 256


@dataclass(frozen=True)
class OnWordVectors(WeSHClassSettings, System):
    """A system that learns vectors of words and metadata values; the rest is the classifier of WeSHClass.

    Attributes
    ----------
    dimension : int
        Length of the vectors; for the others see `WeSHClassSettings`.
    """

    min_count = 5
    max_tokens = 300
    requires: ClassVar[tuple[str, ...]] = ("torch",)

    dimension: int = parameter(100, least=1)

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        corpus = with_metadata_words(task.corpus)
        return weshclass_on(task, corpus, self.word_vectors(task, corpus), self)

    @abstractmethod
    def word_vectors(self, task: Task, corpus: Corpus) -> FloatArray:
        """A vector for each word of a corpus in which metadata values are words; zeros where it has none."""


@dataclass(frozen=True)
class WeSHClass(OnWordVectors):
    """Skip-gram word vectors, then the classifier of `weshclass_on`, whose parameters are its own as well.

    Attributes
    ----------
    window, passes : int
        Of the skip-gram vectors: words of context on either side, passes over the corpus.

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
    requires = ("gensim", "torch")

    window: int = parameter(5, least=1)
    passes: int = parameter(5, least=1)

    def word_vectors(self, task: Task, corpus: Corpus) -> FloatArray:
        """Skip-gram vectors."""
        with task.progress.stage("Training word vectors"):
            return skip_gram(corpus, self.min_count, self.dimension, self.window, self.passes, task.seed)


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


def weshclass_on(task: Task, corpus: Corpus, words: FloatArray, settings: WeSHClassSettings) -> NodeArray:
    """Place every document on a leaf with WeSHClass, given vectors of the words.

    Parameters
    ----------
    task : Task
        Gives the tree, the labelled documents, the seed and the threads.
    corpus : Corpus
        The documents, metadata values as words among the others; the rest of it is not read.
    words : array of shape (words, p)
        A vector for every word of `corpus`, of any length; a word without one has zeros and is not read.
    settings : WeSHClassSettings
        The parameters.

    Returns
    -------
    array of int
        The leaf of every document, as a node of the tree.

    Examples
    --------
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> corpus = read_corpus(["goal match", "law vote", "match goal goal", "vote law vote"])
    >>> tree = Taxonomy.from_paths([("sport",), ("politics",)])
    >>> task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> vectors = np.array([[9, 1] if word in ("goal", "match") else [1, 9] for word in corpus.words.names])
    >>> few = WeSHClassSettings(beta=100, language_tokens=2000)
    >>> [tree.names[leaf] for leaf in weshclass_on(task, corpus, vectors, few)]
    ['sport', 'politics', 'sport', 'politics']
    """
    if words.ndim != 2 or len(words) != len(corpus.words):
        raise UsageError(f"There are {len(corpus.words)} words, but vectors of the shape {words.shape}.")
    documents, vectors, names = _known_words(corpus, words)
    if task.taxonomy.n_leaves == 1 or not len(vectors):
        return task.most_labelled_leaf()
    keywords = keywords_of_leaves(documents, names, task.leaf_rows, task.leaf_nodes, settings.keywords)
    made = make_pseudo_documents(task, documents, vectors, keywords, settings)
    ensemble = pretrain(task, documents, vectors, made, settings)
    stops = self_train(task, ensemble, documents, settings)
    found = ensemble.probabilities(documents, np.arange(len(documents)), task.threads)
    # Below the node that a document was blocked at, or below the root.
    reachable = task.taxonomy.leaf_membership[stops]
    return task.likeliest_leaves(found[:, list(task.taxonomy.leaves)], reachable)


def _known_words(corpus: Corpus, words: FloatArray) -> tuple[Ragged, FloatArray, list[str]]:
    """The documents in the words that have a vector and occur, those words' unit vectors and names."""
    norms = np.linalg.norm(words.astype(np.float64), axis=1)
    seen = np.bincount(corpus.tokens.values, minlength=len(words)) > 0
    known = np.flatnonzero((norms > 0) & np.isfinite(norms) & seen)
    new_ids = np.full(len(words), -1, dtype=np.int32)
    new_ids[known] = np.arange(len(known))
    vectors = (words[known] / norms[known, None]).astype(np.float32)
    return corpus.tokens.renumbered(new_ids), vectors, [corpus.words.names[word] for word in known.tolist()]


def make_pseudo_documents(
    task: Task,
    documents: Ragged,
    vectors: npt.NDArray[np.float32],
    keywords: Keywords,
    settings: WeSHClassSettings,
) -> SyntheticDocuments:
    """Write `beta` documents for every category that has keywords and a sibling.

    A document begins with the word nearest to a vector drawn from the category's topic; the language model continues
    it. After `sentence` words it begins again with the same word. Documents are as long as the
    corpus's are on average, but at most `length` words.

    Examples
    --------
    >>> from himecat import Supervision, Taxonomy, read_corpus
    >>> corpus = read_corpus(["goal match", "law vote"])
    >>> task = Task(corpus, Taxonomy.from_paths([("a",), ("b",)]), Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> few = WeSHClassSettings(beta=3, language_tokens=0)
    >>> words = np.eye(4, dtype=np.float32)
    >>> made = make_pseudo_documents(task, corpus.tokens, words, {1: np.array([0]), 2: np.array([2])}, few)
    >>> [(len(made.of(node)), int(made.of(node)[0][0])) for node in (1, 2)]
    [(3, 0), (3, 2)]
    """
    taxonomy = task.taxonomy
    choices = [node for node in taxonomy if node and len(taxonomy.children[taxonomy.parents[node]]) > 1]
    found = {node: topic_of(taxonomy, node, keywords, vectors) for node in choices}
    topics = {node: topic for node, topic in found.items() if topic is not None}
    lengths = documents.lengths[documents.lengths > 0]
    length = int(np.clip(round(lengths.mean()), 1, settings.length))
    sentences = math.ceil(length / settings.sentence)
    sentence = math.ceil(length / sentences)
    with task.progress.stage("Training the language model", total=settings.language_tokens) as stage:
        # A worker of its own keeps PyTorch on one thread: sums are then always taken in the same order. It
        # does so only if PyTorch is there when it starts.
        import torch  # noqa: F401

        learn = partial(
            learn_language,
            documents,
            vectors,
            common_words=settings.common_words,
            tokens=settings.language_tokens,
            sentence=settings.sentence,
            seed=task.seed,
            advance=stage.advance,
        )
        [language] = run_parallel([learn], 1)
    with task.progress.stage("Writing pseudo documents", total=len(topics)) as stage:

        def documents_of(node: int) -> npt.NDArray[np.int32]:
            rng = np.random.default_rng([task.seed, node])
            drawn = topics[node].draw(settings.beta, rng)
            starts = nearest_word(drawn, vectors)
            texts = language.texts_from(np.repeat(starts, sentences), sentence, int(rng.integers(2**31)))
            stage.advance()
            return texts.reshape(settings.beta, sentences * sentence)[:, :length]

        made = run_parallel([partial(documents_of, node) for node in topics], task.threads)
    return SyntheticDocuments.from_matrices(dict(zip(topics, made, strict=True)), len(taxonomy))


def nearest_word(drawn: npt.NDArray[np.float32], vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The word with the largest dot product with each vector; the first of equal ones.

    Examples
    --------
    >>> nearest_word(np.array([[2, 1], [0, 1]]), np.eye(2)).tolist()
    [0, 1]
    """
    starts = range(0, len(drawn), _AT_ONCE)
    empty = np.zeros(0, dtype=np.int64)
    return np.concatenate([empty, *((drawn[at : at + _AT_ONCE] @ vectors.T).argmax(axis=1) for at in starts)])
