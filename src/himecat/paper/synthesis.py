"""Hierarchical data augmentation (section 3.3): Algorithm 1.

At a leaf, a document vector is drawn around the label (Eq. 24) and words from its neighbourhood (Eq. 25); an inner
category takes its documents from those of its children (Eq. 29).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import IntArray, Ragged
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.vmf import sample_vmf
from himecat.runtime.threads import run_parallel

# Similarities to all words are held for this many document vectors at a time.
_CHUNK = 256


@dataclass(frozen=True)
class SyntheticDocuments:
    """Training documents made for every category.

    Attributes
    ----------
    documents : Ragged
        Word ids of the documents made for the leaves.
    members : dict
        For every node but the root, the rows of `documents` that belong to it: exactly beta each.

    Examples
    --------
    >>> made = SyntheticDocuments(Ragged.from_lists([[0, 1], [2, 2]]), {1: np.array([0]), 2: np.array([1])})
    >>> made.of(2)[0].tolist()
    [2, 2]
    """

    documents: Ragged
    members: dict[int, npt.NDArray[np.int64]]

    @classmethod
    def from_matrices(cls, made: Mapping[int, IntArray], n_nodes: int) -> SyntheticDocuments:
        """Documents of one length, a row of word ids each, by category; the other categories have none."""
        members = dict.fromkeys(range(1, n_nodes), np.zeros(0, dtype=np.int64))
        count = 0
        for node, rows in made.items():
            members[node] = np.arange(count, count + len(rows))
            count += len(rows)
        values = np.concatenate([np.zeros(0, dtype=np.int32), *(rows.reshape(-1) for rows in made.values())])
        length = len(values) // max(1, count)
        return cls(Ragged(values, np.arange(count + 1, dtype=np.int64) * length), members)

    def of(self, node: int) -> Ragged:
        """The documents of one category."""
        return self.documents.take(self.members[node])


def nearest_words(
    vectors: npt.NDArray[np.float32], words: npt.NDArray[np.float32], count: int
) -> tuple[IntArray, npt.NDArray[np.float32]]:
    """Find the `count` words nearest to each vector, nearest first, and their dot products.

    Examples
    --------
    >>> ids, cosines = nearest_words(np.eye(2, dtype=np.float32)[:1], np.eye(2, dtype=np.float32), 1)
    >>> ids.tolist(), cosines.tolist()
    ([[0]], [[1.0]])
    """
    count = min(count, len(words))
    ids = np.empty((len(vectors), count), dtype=np.int32)
    cosines = np.empty((len(vectors), count), dtype=np.float32)
    for start in range(0, len(vectors), _CHUNK):
        dots = vectors[start : start + _CHUNK] @ words.T
        top = np.argpartition(dots, len(words) - count, axis=1)[:, len(words) - count :]
        values = np.take_along_axis(dots, top, axis=1)
        # Equal cosines are ordered by word id: argpartition alone leaves their order open.
        order = np.lexsort((top, -values), axis=1)
        ids[start : start + _CHUNK] = np.take_along_axis(top, order, axis=1)
        cosines[start : start + _CHUNK] = np.take_along_axis(values, order, axis=1)
    return ids, cosines


def words_around(
    vectors: npt.NDArray[np.float32],
    words: npt.NDArray[np.float32],
    length: int,
    neighbours: int,
    rng: np.random.Generator,
) -> IntArray:
    """For each document vector, draw `length` of its nearest words: a softmax over their dot products (Eq. 25).

    Examples
    --------
    >>> space = np.eye(3, dtype=np.float32)
    >>> words_around(space[:1], space, 4, 1, np.random.default_rng(0)).tolist()
    [[0, 0, 0, 0]]
    """
    ids, cosines = nearest_words(vectors, words, neighbours)
    odds = np.exp(cosines.astype(np.float64) - cosines[:, :1])
    cumulative = np.cumsum(odds, axis=1)
    cumulative /= cumulative[:, -1:]
    uniform = rng.random((len(vectors), length))
    made = np.empty((len(vectors), length), dtype=np.int32)
    for row in range(len(vectors)):
        picks = np.searchsorted(cumulative[row], uniform[row], side="right")
        made[row] = ids[row, np.minimum(picks, ids.shape[1] - 1)]
    return made


def synthesize(
    taxonomy: Taxonomy,
    labels: npt.NDArray[np.float32],
    words: npt.NDArray[np.float32],
    *,
    beta: int = 500,
    length: int = 100,
    concentration: float = 2000.0,
    neighbours: int = 50,
    seed: int = 0,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
    top: int = 0,
) -> SyntheticDocuments:
    """Make exactly `beta` documents for every category, bottom-up.

    Parameters
    ----------
    taxonomy : Taxonomy
        The tree.
    labels, words : arrays
        Unit vectors of the tree's nodes and of the vocabulary, in one space.
    beta : int
        Documents per category; 0 makes none.
    length : int
        Words per document.
    concentration : float
        Kappa of the vMF a document vector is drawn from.
    neighbours : int
        A document's words come from its vector's nearest words, this many.
    seed, threads : int
        Each leaf has its own stream, so the result does not depend on the number of threads.
    advance : callable, optional
        Called after each leaf.
    top : int
        The node below which documents are wanted, itself included; elsewhere none are made.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> space = np.eye(5, dtype=np.float32)
    >>> made = synthesize(tree, space, space, beta=5, length=4, neighbours=2)
    >>> sorted((tree.title(node), len(rows)) for node, rows in made.members.items())
    [('a', 5), ('a/b', 5), ('a/c', 5), ('d', 5)]
    """

    def documents_of(leaf: int) -> IntArray:
        rng = np.random.default_rng([seed, leaf])
        drawn = sample_vmf(labels[leaf], concentration, beta, rng)
        made = words_around(drawn, words, length, neighbours, rng)
        if advance is not None:
            advance(1)
        return made

    length = max(1, length)
    if beta == 0 or len(words) == 0:
        return SyntheticDocuments.from_matrices({}, len(taxonomy))
    leaves = taxonomy.leaves_under(top)
    made = run_parallel([partial(documents_of, leaf) for leaf in leaves], threads)
    of_leaves = dict(zip(leaves, made, strict=True))
    found = SyntheticDocuments.from_matrices(of_leaves, len(taxonomy))
    members = found.members
    for node in reversed(taxonomy.inner):
        if node == 0 or not all(len(members[child]) for child in taxonomy.children[node]):
            continue
        rng = np.random.default_rng([seed, node])
        children = taxonomy.children[node]
        share, rest = divmod(beta, len(children))
        extra = set(rng.permutation(len(children))[:rest].tolist())
        members[node] = np.concatenate(
            [
                rng.choice(members[child], share + (position in extra), replace=False)
                for position, child in enumerate(children)
            ]
        )
    return found
