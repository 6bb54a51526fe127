"""Proposals for new categories: groups of documents that the labelled ones explain badly, named by their words.

All documents are grouped, more finely than the tree does. Which groups are the least explained is learned from the tree
itself: the labels of one leaf after the other are left out, and what then is told of the group that has most of its
documents is what a missing category looks like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.unexplained import Pile
from himecat.input.corpus import Corpus, Ragged, Supervision, Vocabulary
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.solvers import minimize_lbfgs, sigmoid
from himecat.runtime.threads import one_blas_thread
from himecat.views.matrices import FloatArray, unit

Rows = npt.NDArray[np.int64]
_Values = npt.NDArray[np.float64]

# Groups for each leaf, and a few more; the smallest group that is proposed.
_GROUPS_PER_LEAF, _MORE_GROUPS, _SMALLEST = 1.5, 8, 5
_KMEANS_ROUNDS, _KMEANS_SAMPLE = 15, 20_000
# References beside the labelled documents, and leaves that are left out in turn.
_REFERENCES, _LEFT_OUT = 3_000, 24
# What the signs of a group are worth where nothing can be left out, and the strength of that prior.
_SIGNS = {
    "near": 0.0, "lacking": 0.7, "nearest": 0.0, "far": 0.7, "beyond": 0.5, "cohesion": 0.3, "anchor": 0.0,
    "around": 0.0, "purity": -0.3,
}  # fmt: skip
# Labelled documents around a document.
_AROUND = 5
_PRIOR = 2.0
_FEWEST_LABELS, _FEWEST_LEAVES = 20, 4
# Words that name a proposal, and the share of it that has to have one.
_WORDS, _SHARED = 8, 0.15
# The share of a proposal that a category has to hold to be its parent.
_PARENT_SHARE = 0.5


@dataclass(frozen=True)
class Proposal:
    """A group of documents that may be a category of its own.

    Attributes
    ----------
    words : tuple of str
        Its most distinctive words, the first of which name it.
    rows : array of int
        Its documents, the most typical ones first.
    parent : int
        The node below which it would stand; 0 is the top level.
    score : float
        How much it looks like a missing category, from 0 to 1.
    """

    words: tuple[str, ...]
    rows: Rows
    parent: int
    score: float

    @property
    def name(self) -> str:
        """A name of three words.

        Examples
        --------
        >>> Proposal(("chess", "board", "engine", "play"), np.arange(3), 0, 0.9).name
        'chess board engine'
        """
        return " ".join(self.words[:3])


class Known(NamedTuple):
    """The labelled documents of a model.

    Attributes
    ----------
    directions : array
        Their directions.
    leaves : array of int
        The positions of their leaves.
    """

    directions: FloatArray
    leaves: Rows

    @classmethod
    def of(cls, taxonomy: Taxonomy, directions: FloatArray, supervision: Supervision) -> Known:
        """Those that are labelled with a leaf; the directions are those of all documents."""
        leaves = taxonomy.leaf_position[supervision.nodes]
        chosen = leaves >= 0
        return cls(directions[supervision.rows[chosen]], leaves[chosen])


@one_blas_thread()
def propose(
    taxonomy: Taxonomy,
    directions: FloatArray,
    probabilities: FloatArray,
    known: Known,
    corpus: Corpus,
    *,
    labelled: Sequence[int] = (),
    count: int = 10,
    seed: int = 0,
) -> list[Proposal]:
    """Propose categories that the tree may lack, the most likely first.

    Parameters
    ----------
    directions : array
        A unit vector for each document of the corpus.
    probabilities : array
        The probability of every leaf, one row per document.
    known : Known
        Labelled documents, in the same space; they need not be in the corpus.
    labelled : sequence of int
        Rows of documents that have a category already: they are in no proposal.
    count : int
        How many proposals at most.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["red fox"] * 20 + ["old car"] * 20 + ["blue sky"] * 20)
    >>> rng = np.random.default_rng(0)
    >>> rows = unit(np.repeat(np.eye(3), 20, axis=0) + 0.1 * rng.random((60, 3))).astype(np.float32)
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> sure = np.repeat(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], np.float32), 20, axis=0)
    >>> found = propose(tree, rows, sure, Known(rows[[0, 20]], np.array([0, 1])), corpus, labelled=[0, 20])
    >>> sorted(found[0].words)
    ['blue', 'sky']
    """
    n_groups = int(_GROUPS_PER_LEAF * taxonomy.n_leaves) + _MORE_GROUPS
    n_groups = min(n_groups, len(directions) // _SMALLEST)
    if n_groups < 2 or not len(known.leaves):
        return []
    centres, group_of = grouped(directions, n_groups, seed)
    sizes = np.bincount(group_of, minlength=len(centres))
    scores = _scores(taxonomy, directions, probabilities, known, centres, group_of, seed)
    free = np.ones(len(directions), dtype=bool)
    free[list(labelled)] = False
    everywhere = documents_with(corpus.tokens, len(corpus.words))
    found: list[Proposal] = []
    for group in np.argsort(-scores, kind="stable").tolist():
        if sizes[group] < _SMALLEST or len(found) == count:
            continue
        rows = np.flatnonzero((group_of == group) & free)
        if len(rows) < _SMALLEST:
            continue
        rows = rows[np.argsort(-(directions[rows] @ centres[group]), kind="stable")]
        words = distinctive_words(corpus.tokens, corpus.words, rows, everywhere)
        if words:
            parent = likely_parent(taxonomy, probabilities[rows])
            found.append(Proposal(words, rows, parent, float(scores[group])))
    return found


def grouped(directions: FloatArray, count: int, seed: int = 0) -> tuple[FloatArray, Rows]:
    """Spherical k-means, started from documents far apart: the centres, and the group of each document.

    Examples
    --------
    >>> centres, group_of = grouped(np.repeat(np.eye(2, dtype=np.float32), 3, axis=0), 2)
    >>> len(set(group_of[:3].tolist())), len(set(group_of.tolist()))
    (1, 2)
    """
    rng = np.random.default_rng([seed, 11])
    rows = directions
    if len(rows) > _KMEANS_SAMPLE:
        rows = directions[np.sort(rng.choice(len(rows), _KMEANS_SAMPLE, replace=False))]
    chosen = [int(rng.integers(len(rows)))]
    best = rows @ rows[chosen[0]]
    while len(chosen) < count:
        far = np.maximum(1 - best.astype(np.float64), 0) ** 2
        total = float(far.sum())
        if total < 1e-9:
            break
        chosen.append(int(rng.choice(len(rows), p=far / total)))
        best = np.maximum(best, rows @ rows[chosen[-1]])
    centres = rows[chosen].copy()
    for _ in range(_KMEANS_ROUNDS):
        nearest = (rows @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, rows)
        moved = unit(sums)
        empty = ~sums.any(axis=1)
        moved[empty] = centres[empty]
        centres = moved
    return centres, np.asarray((directions @ centres.T).argmax(axis=1), dtype=np.int64)


class _Signs:
    """What speaks for a group to be a category that the labels lack; labels of a leaf may be left out."""

    def __init__(
        self,
        n_leaves: int,
        directions: FloatArray,
        known: Known,
        centres: FloatArray,
        group_of: Rows,
        rng: np.random.Generator,
    ) -> None:
        self.known, self.centres, self.n_leaves = known, centres, n_leaves
        self.n_documents = len(directions)
        self.sizes = np.bincount(group_of, minlength=len(centres)).astype(np.float64)
        own = (directions * centres[group_of]).sum(axis=1)
        self.cohesion = np.bincount(group_of, own, minlength=len(centres)) / np.maximum(self.sizes, 1)
        self.cosines = centres @ known.directions.T
        others = np.arange(len(directions))
        if len(others) > _REFERENCES:
            others = np.sort(rng.choice(len(directions), _REFERENCES, replace=False))
        none = np.zeros((n_leaves, directions.shape[1]), np.float32), np.zeros(n_leaves, np.float32)
        self.pile = Pile(np.concatenate([known.directions, directions[others]]), known.leaves, none)
        self.references = directions[others]
        self.group_of_reference = group_of[others]
        self.counts = np.bincount(self.group_of_reference, minlength=len(centres))
        self.similar = self.references @ known.directions.T

    def _mean(self, values: npt.NDArray[np.floating]) -> _Values:
        """The mean of references' values over each group; that of all where a group has none."""
        sums = np.bincount(self.group_of_reference, values, minlength=len(self.counts))
        found = np.asarray(sums / np.maximum(self.counts, 1), dtype=np.float64)
        found[self.counts == 0] = found[self.counts > 0].mean()
        return found

    def without(self, leaf: int) -> _Values:
        """The signs of every group, standardised, where the labels of a leaf are left out; -1 for none."""
        kept = np.flatnonzero(self.known.leaves != leaf)
        leaves = np.unique(self.known.leaves[kept])
        anchors = unit(self.pile.anchors(kept, leaves)[0])
        cosines = self.centres @ anchors.T
        near = ((cosines - cosines.mean(axis=0)) / np.maximum(cosines.std(axis=0), 1e-6)).max(axis=1)
        labels = np.bincount(self.cosines[:, kept].argmax(axis=0), minlength=len(self.centres))
        expected = self.sizes * len(kept) / self.n_documents
        far, beyond = self.pile.averaged(self.pile.unexplained(kept, leaves))[len(self.known.leaves) :].T
        by_anchor = self.references @ anchors.T
        count = min(_AROUND, len(kept))
        around = np.partition(self.similar[:, kept], -count, axis=1)[:, -count:].mean(axis=1)
        at_leaf = np.zeros((len(self.centres), len(leaves)))
        np.add.at(at_leaf, (self.group_of_reference, by_anchor.argmax(axis=1)), 1.0)
        signs = {
            "near": near,
            "lacking": (expected - labels) / np.sqrt(expected + 1),
            "nearest": self.cosines[:, kept].max(axis=1),
            "far": self._mean(far),
            "beyond": self._mean(beyond),
            "cohesion": self.cohesion,
            "anchor": self._mean(by_anchor.max(axis=1)),
            "around": self._mean(around),
            "purity": at_leaf.max(axis=1) / np.maximum(self.counts, 1),
        }
        found = np.column_stack([signs[name] for name in _SIGNS])
        return np.asarray((found - found.mean(axis=0)) / np.maximum(found.std(axis=0), 1e-6))


def _scores(
    taxonomy: Taxonomy,
    directions: FloatArray,
    probabilities: FloatArray,
    known: Known,
    centres: FloatArray,
    group_of: Rows,
    seed: int,
) -> _Values:
    """How much each group looks like a missing category."""
    rng = np.random.default_rng([seed, 12])
    signs = _Signs(taxonomy.n_leaves, directions, known, centres, group_of, rng)
    mass = np.zeros((len(centres), taxonomy.n_leaves))
    for group in range(len(centres)):
        mass[group] = probabilities[group_of == group].sum(axis=0)
    present = np.unique(known.leaves)
    weights, offset = np.array(list(_SIGNS.values())), -3.0
    if len(known.leaves) >= _FEWEST_LABELS and len(present) >= _FEWEST_LEAVES:
        left_out = np.sort(rng.permutation(present)[:_LEFT_OUT])
        rows = [signs.without(int(leaf)) for leaf in left_out]
        # The group that is most like a leaf.
        overlap = mass / (signs.sizes[:, None] + mass.sum(axis=0))
        targets = [np.arange(len(centres)) == int(overlap[:, leaf].argmax()) for leaf in left_out]
        weights, offset = _learned(np.concatenate(rows), np.concatenate(targets).astype(np.float64))
    return np.asarray(sigmoid(signs.without(-1) @ weights + offset))


def _learned(rows: _Values, targets: _Values) -> tuple[_Values, float]:
    """The weights of a logistic regression, drawn towards what the signs are worth elsewhere."""
    prior = np.array([*_SIGNS.values(), 0.0])
    strength = np.array([_PRIOR] * len(_SIGNS) + [1e-3])

    def loss(point: _Values) -> tuple[float, _Values]:
        logits = rows @ point[:-1] + point[-1]
        off = sigmoid(logits) - targets
        away = point - prior
        total = (np.logaddexp(0, logits) - targets * logits).sum() + (strength * away**2).sum() / 2
        return float(total), np.append(rows.T @ off, off.sum()) + strength * away

    found = minimize_lbfgs(loss, prior, tolerance=1e-6)
    return found[:-1], float(found[-1])


def distinctive_words(
    tokens: Ragged,
    vocabulary: Vocabulary,
    rows: Rows,
    everywhere: _Values | None = None,
    count: int = _WORDS,
) -> tuple[str, ...]:
    """The words that most tell some documents from the others, by how many of both have them.

    `everywhere` is what `documents_with` gives for all documents.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["a red fox", "a fox", "a car", "a blue car"])
    >>> distinctive_words(corpus.tokens, corpus.words, np.array([0, 1]), count=1)
    ('fox',)
    """
    n_words, n_documents = len(vocabulary), len(tokens)
    own = tokens.take(rows)
    having = documents_with(own, n_words)
    everywhere = documents_with(tokens, n_words) if everywhere is None else everywhere
    inside = (having + 0.5) / (len(rows) + 1)
    outside = (everywhere - having + 0.5) / (n_documents - len(rows) + 1)
    # How much of a group has a word, times how much rarer it is elsewhere.
    weight = np.where(inside > outside, inside * np.log(inside / outside), 0.0)
    weight[having < max(2, _SHARED * len(rows))] = 0.0
    order = np.argsort(-weight, kind="stable")[:count]
    return tuple(vocabulary.names[word] for word in order.tolist() if weight[word] > 0)


def documents_with(tokens: Ragged, n_words: int) -> _Values:
    """How many documents have each word.

    Examples
    --------
    >>> documents_with(Ragged.from_lists([[0, 0, 1], [1]]), 3).tolist()
    [1.0, 2.0, 0.0]
    """
    pairs = np.unique(tokens.row_of_value.astype(np.int64) * n_words + tokens.values)
    return np.bincount(pairs % max(n_words, 1), minlength=n_words).astype(np.float64)


def likely_parent(taxonomy: Taxonomy, probabilities: FloatArray) -> int:
    """The deepest inner category that holds most of some documents' probability.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> tree.title(likely_parent(tree, np.array([[0.1, 0.5, 0.4]])))
    'a'
    """
    mean = np.asarray(probabilities).mean(axis=0)
    node = 0
    while True:
        inner = [child for child in taxonomy.children[node] if taxonomy.children[child]]
        shares = [float(mean[taxonomy.positions_under(child)].sum()) for child in inner]
        if not inner or max(shares) < _PARENT_SHARE:
            return node
        node = inner[int(np.argmax(shares))]
