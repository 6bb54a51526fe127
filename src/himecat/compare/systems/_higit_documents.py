"""Keyword enrichment and topic-based pseudo documents of HiGitClass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._topics import topic_of
from himecat.input.corpus import IntArray
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.synthesis import SyntheticDocuments, nearest_words, words_around
from himecat.runtime.threads import run_parallel

FloatArray = npt.NDArray[np.float32]
WordIds = npt.NDArray[np.int64]

# The most words of a class: few classes that are far apart would otherwise take up the vocabulary.
_MOST_WORDS = 200


def disjoint(keywords: Mapping[int, WordIds]) -> dict[int, WordIds]:
    """Leave a word that several leaves claim to the one where it stands highest; ties go to the first leaf.

    Examples
    --------
    >>> found = disjoint({4: np.array([7, 8]), 5: np.array([8, 9])})
    >>> {leaf: words.tolist() for leaf, words in found.items()}
    {4: [7], 5: [8, 9]}
    """
    owner: dict[int, tuple[int, int]] = {}
    for leaf, words in keywords.items():
        for place, word in enumerate(words.tolist()):
            owner[word] = min(owner.get(word, (place, leaf)), (place, leaf))
    return {
        leaf: np.array([word for word in words.tolist() if owner[word][1] == leaf], dtype=np.int64)
        for leaf, words in keywords.items()
    }


def enrich(groups: Sequence[WordIds], vectors: FloatArray) -> list[WordIds]:
    """Add to each class the words nearest to its keywords, as many as can be before two classes meet.

    All classes grow to the same number of words; one that has more keywords than that keeps them. Growth ends
    before the first word that two classes would share.

    Parameters
    ----------
    groups : sequence of arrays
        The keywords of each class; a class without any stays without.
    vectors : array
        Unit vectors of all words.

    Examples
    --------
    >>> angles = np.radians([0, 5, 45, 85, 90])
    >>> vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    >>> [words.tolist() for words in enrich([np.array([0]), np.array([4])], vectors)]
    [[0, 1], [4, 3]]
    """
    sizes = [len(group) for group in groups]
    grown = [group.tolist() for group in groups]
    growing = [number for number, size in enumerate(sizes) if size]
    taken = {word for group in grown for word in group}
    if len(taken) < sum(sizes) or not growing:
        return list(groups)
    most = min(_MOST_WORDS, len(vectors))
    middles = np.stack([vectors[groups[number]].mean(axis=0) for number in growing])
    nearest, _ = nearest_words(middles, vectors, most)
    waiting = {}
    for number, row in zip(growing, nearest, strict=True):
        own = set(grown[number])
        waiting[number] = [word for word in row.tolist() if word not in own]
    for size in range(min(sizes[number] for number in growing) + 1, most + 1):
        added = [
            (number, waiting[number][len(grown[number]) - sizes[number]])
            for number in growing
            if len(grown[number]) < size and len(grown[number]) - sizes[number] < len(waiting[number])
        ]
        new = {word for _, word in added}
        if len(new) < len(added) or new & taken:
            break
        for number, word in added:
            grown[number].append(word)
        taken |= new
    return [np.array(words, dtype=np.int64) for words in grown]


def write_documents(
    topics: FloatArray,
    words: FloatArray,
    background: npt.NDArray[np.float64],
    length: int,
    neighbours: int,
    alpha: float,
    rng: np.random.Generator,
) -> IntArray:
    """Write a document for each topic vector.

    A word is drawn from the background with probability alpha, otherwise from the topic's nearest words in
    proportion to the exponential of the dot product.

    Parameters
    ----------
    background : array
        How often each word occurs; it may have more words than have vectors in `words`.

    Examples
    --------
    >>> made = write_documents(np.eye(3, dtype="f4")[:1], np.eye(3, dtype="f4"), np.array([0.0, 0.0, 1.0]),
    ...     length=50, neighbours=1, alpha=0.5, rng=np.random.default_rng(0))
    >>> np.unique(made).tolist()
    [0, 2]
    """
    made = words_around(topics, words, length, neighbours, rng)
    common = np.cumsum(background)
    everyday = np.searchsorted(common, rng.random(made.shape) * common[-1], side="right")
    return np.where(rng.random(made.shape) < alpha, everyday.astype(np.int32), made)


def pseudo_documents(
    taxonomy: Taxonomy,
    keywords: Mapping[int, WordIds],
    words: FloatArray,
    background: npt.NDArray[np.float64],
    *,
    beta: int,
    length: int,
    neighbours: int,
    alpha: float,
    seed: int,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
) -> SyntheticDocuments:
    """Write `beta` documents for every category that has keywords below it; others get none.

    At each inner node, the keywords of the leaves below it are enriched together. The topic of a child is a
    mixture of von Mises-Fisher distributions with a component for each of its own children, or one if it is
    a leaf.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> made = pseudo_documents(tree, {3: np.array([0]), 4: np.array([1])}, np.eye(4, dtype="f4"), np.ones(4),
    ...     beta=3, length=5, neighbours=2, alpha=0.2, seed=0)
    >>> {tree.title(node): len(rows) for node, rows in made.members.items()}
    {'a': 3, 'b': 0, 'a/x': 3, 'a/y': 3}
    """

    def written_at(node: int) -> dict[int, IntArray]:
        leaves = [leaf for leaf in taxonomy.leaves_under(node) if len(keywords.get(leaf, ()))]
        of_leaf = dict(zip(leaves, enrich([keywords[leaf] for leaf in leaves], words), strict=True))
        made = {}
        for child in taxonomy.children[node]:
            topic = topic_of(taxonomy, child, of_leaf, words)
            if topic is not None:
                rng = np.random.default_rng([seed, child])
                drawn = topic.draw(beta, rng)
                made[child] = write_documents(drawn, words, background, length, neighbours, alpha, rng)
            if advance is not None:
                advance(1)
        return made

    length = max(1, length)
    made: dict[int, IntArray] = {}
    inner = taxonomy.inner if beta and len(words) else ()
    for part in run_parallel([partial(written_at, node) for node in inner], threads):
        made |= part
    return SyntheticDocuments.from_matrices(made, len(taxonomy))
