"""The classifier of WeSHClass on word vectors of any origin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._wesh_ensemble import pretrain
from himecat.compare.systems._wesh_pseudo import make_pseudo_documents
from himecat.compare.systems._wesh_selftraining import self_train
from himecat.compare.systems._wesh_settings import WeSHClassSettings
from himecat.compare.systems._wesh_topics import keywords_of_leaves
from himecat.compare.systems.system import NodeArray, Task
from himecat.errors import UsageError
from himecat.input.corpus import Corpus, Ragged

__all__ = ["WeSHClassSettings", "weshclass_on"]

FloatArray = npt.NDArray[np.float32]


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
    rows, nodes = task.leaf_rows, task.leaf_nodes
    documents, vectors, names = _known_words(corpus, words)
    if task.taxonomy.n_leaves == 1 or not len(vectors):
        return np.full(len(corpus), np.bincount(nodes).argmax(), dtype=np.int64)
    keywords = keywords_of_leaves(documents, names, rows, nodes, settings.keywords)
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
