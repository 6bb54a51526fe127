"""A mixture of von Mises-Fisher distributions, one per leaf, seeded by what is known of each leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.label_prior import balance
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.softmax import softmax_in_place
from himecat.views.matrices import unit

FloatArray = npt.NDArray[np.float32]

# All documents placed at a leaf together weigh as much in its direction as this many labelled ones.
_PLACED_WEIGHT = 4.0
# Mass of a uniform prior when the label prior is learned, as a share of the documents' own.
_UNIFORM_SHARE = 0.3
ENOUGH = 25_000
"""Documents without a label from which it is seen how frequent leaves are."""
# Within-leaf whitening: its exponent (1: all of it), how far the covariance is drawn to a multiple of the identity, the
# exponent that sharpens the posterior it is taken from, and how much more concentrated leaves are afterwards.
_WHITENING, _COVARIANCE_SHRINKAGE, _SHARPENED, _TIGHTER = 0.5, 0.5, 2.0, 1.5


@dataclass(frozen=True)
class Anchors:
    """What is known of each leaf: directions that belong to it, and how many documents they count as.

    Attributes
    ----------
    sums : array of shape (leaves, dimension)
        Sum of the directions of the labelled documents, of the leaf's name and of its keywords.
    mass : array of shape (leaves,)
        How many documents these count as.
    rows : array
        Rows of the labelled documents.
    allowed : array of shape (labelled, leaves)
        The leaves each labelled document may belong to: one, or those below the inner node it is known at.
    """

    sums: FloatArray
    mass: FloatArray
    rows: npt.NDArray[np.int64]
    allowed: npt.NDArray[np.bool_]

    @property
    def certain(self) -> npt.NDArray[np.int64]:
        """Rows of the documents whose leaf is known."""
        return np.asarray(self.rows[self.allowed.sum(axis=1) == 1])

    def unlabelled(self, n_documents: int) -> npt.NDArray[np.int64]:
        """Rows of documents without a label: enough of them to see how frequent leaves are."""
        rows = np.setdiff1d(np.arange(n_documents), self.rows)
        # Drawn, as a file may be sorted by what it is about; always the same ones, for all threads.
        return rows if len(rows) <= ENOUGH else np.random.default_rng(0).choice(rows, ENOUGH, replace=False)

    def clamp(self, posterior: FloatArray) -> None:
        """Set the posterior of the labelled documents to zero at the leaves they cannot belong to."""
        if len(self.rows):
            kept = np.where(self.allowed, np.maximum(posterior[self.rows], 1e-9), 0.0)
            posterior[self.rows] = kept / kept.sum(axis=1, keepdims=True)


def gather_anchors(
    taxonomy: Taxonomy,
    supervision: Supervision,
    directions: FloatArray,
    seeds: FloatArray,
    seed_mass: FloatArray,
) -> Anchors:
    """Collect what is known of each leaf.

    Parameters
    ----------
    seeds, seed_mass : arrays
        Summed directions of the leaves' names and keywords, and how many documents they count as.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.array([0]), np.array([1]))
    >>> found = gather_anchors(tree, few, np.eye(2, dtype=np.float32), np.zeros((2, 2), np.float32),
    ...                        np.zeros(2, np.float32))
    >>> found.mass.tolist(), found.allowed.tolist()
    ([1.0, 0.0], [[True, False]])
    """
    sums, mass = seeds.copy(), seed_mass.astype(np.float32).copy()
    rows = np.unique(supervision.rows)
    allowed = np.zeros((len(rows), taxonomy.n_leaves), dtype=bool)
    place = {row: position for position, row in enumerate(rows.tolist())}
    for row, node in zip(supervision.rows.tolist(), supervision.nodes.tolist(), strict=True):
        allowed[place[row], taxonomy.positions_under(node)] = True
        leaf = int(taxonomy.leaf_position[node])
        # A document without known words says nothing of its leaf.
        if leaf >= 0 and directions[row].any():
            sums[leaf] += directions[row]
            mass[leaf] += 1.0
    return Anchors(sums, mass, rows.astype(np.int64), allowed)


class Whitened(NamedTuple):
    """The mixture in a space in which documents of one leaf scatter alike in all directions.

    Attributes
    ----------
    whitener : array of shape (dimension, dimension)
        What directions are multiplied by; they are then scaled to length 1.
    directions : array of shape (leaves, dimension)
        Mean directions of the leaves in that space.
    """

    whitener: FloatArray
    directions: FloatArray

    def scores(self, rows: FloatArray, concentration: float) -> FloatArray:
        """Log-densities of directions at the leaves, but for a constant."""
        found = np.asarray(unit(rows @ self.whitener) @ self.directions.T, dtype=np.float32)
        found *= np.float32(_TIGHTER * concentration)
        return found


def whiten(
    taxonomy: Taxonomy,
    supervision: Supervision,
    rows: FloatArray,
    seeds: tuple[FloatArray, FloatArray],
    posterior: FloatArray,
    *,
    sibling_mass: float = 0.0,
) -> Whitened:
    """Linear discriminant analysis on the posterior of a mixture, and its leaves placed once more.

    Directions in which documents of one leaf differ say little about leaves; they are shortened.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> rows = unit(np.array([[1, 0.1, 5], [1, 0.3, -5], [0.1, 1, 5], [0.3, 1, -5]]))
    >>> few = Supervision(np.array([0, 2]), np.array([1, 2]))
    >>> none = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
    >>> posterior = np.repeat(np.eye(2, dtype=np.float32), 2, axis=0)
    >>> found = whiten(tree, few, rows, none, posterior)
    >>> found.scores(rows, 30.0).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    sharp = posterior**_SHARPENED
    sharp /= sharp.sum(axis=1, keepdims=True)
    mass = sharp.sum(axis=0)
    means = (sharp.T @ rows) / np.maximum(mass, 1e-6)[:, None]
    del sharp
    within = ((rows.T @ rows).astype(np.float64) - (means.T * mass) @ means) / max(len(rows), 1)
    size = len(within)
    scatter = max(float(np.trace(within)) / size, 1e-12)
    within = (1 - _COVARIANCE_SHRINKAGE) * within + _COVARIANCE_SHRINKAGE * scatter * np.eye(size)
    values, vectors = np.linalg.eigh(within)
    scaled = vectors * np.maximum(values, 1e-3 * scatter) ** (-_WHITENING / 2)
    whitener = np.asarray(scaled @ vectors.T, dtype=np.float32)
    moved = unit(rows @ whitener)
    sums, seed_mass = seeds
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
    anchors = gather_anchors(taxonomy, supervision, moved, unit(sums @ whitener) * lengths, seed_mass)
    return Whitened(
        whitener,
        _placed(anchors, moved, _anchor_means(taxonomy, anchors, sibling_mass), posterior),
    )


def _placed(anchors: Anchors, rows: FloatArray, means: FloatArray, posterior: FloatArray) -> FloatArray:
    """Directions of the leaves: of what is known of them, and of the documents that are probably there."""
    share = np.maximum(anchors.mass, 1.0)
    share = (share / (share + _PLACED_WEIGHT)).astype(np.float32)[:, None]
    # Documents whose leaf is known already count among the anchors.
    certain = anchors.certain
    known = posterior[certain]
    posterior[certain] = 0.0
    mass = posterior.sum(axis=0)
    mean = (posterior.T @ rows) / np.maximum(mass, 1e-9)[:, None]
    posterior[certain] = known
    return unit(share * means + (1 - share) * mean)


class Mixture(NamedTuple):
    """Mean directions and log-prior of the leaves, and posterior and scores of the documents."""

    directions: FloatArray
    log_prior: FloatArray
    posterior: FloatArray
    scores: FloatArray


def fit_mixture(
    taxonomy: Taxonomy,
    anchors: Anchors,
    directions: FloatArray,
    *,
    concentration: float,
    rounds: int,
    learn_prior: bool,
    sibling_mass: float = 0.0,
    log_prior: FloatArray | None = None,
    evenness: float = 0.0,
) -> Mixture:
    """Fit by expectation-maximisation; with no rounds the anchors alone decide.

    Parameters
    ----------
    sibling_mass : float
        How many documents' worth of a leaf's direction come from the leaves below its parent.
    log_prior : array, optional
        Logarithms of the label prior at the start; without it, all leaves are equally probable.
    evenness : float
        How far the documents are dealt to the leaves as the prior says, from 0 to 1.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> rows = unit(np.array([[1, 0.1], [1, 0.3], [0.1, 1], [0.3, 1]]))
    >>> few = Supervision(np.array([0, 2]), np.array([1, 2]))
    >>> held = gather_anchors(tree, few, rows, np.zeros((2, 2), np.float32), np.zeros(2, np.float32))
    >>> found = fit_mixture(tree, held, rows, concentration=30, rounds=5, learn_prior=True)
    >>> found.posterior.argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    means = _anchor_means(taxonomy, anchors, sibling_mass)
    n_leaves = len(means)
    leaf_directions = unit(means)
    log_prior = np.zeros(n_leaves, dtype=np.float32) if log_prior is None else log_prior
    for turn in range(rounds + 1):
        scores = np.asarray(directions @ leaf_directions.T, dtype=np.float32)
        scores *= np.float32(concentration)
        scores += log_prior
        if evenness:
            scores += np.float32(evenness) * balance(scores[anchors.unlabelled(len(scores))], log_prior)
        posterior = softmax_in_place(scores.copy() if turn == rounds else scores)
        anchors.clamp(posterior)
        if turn == rounds:
            break
        leaf_directions = _placed(anchors, directions, means, posterior)
        if learn_prior:
            mass = posterior.sum(axis=0) - posterior[anchors.certain].sum(axis=0)
            smoothed = mass + _UNIFORM_SHARE * max(float(mass.sum()), 1e-9) / n_leaves
            log_prior = np.log(smoothed / smoothed.sum()).astype(np.float32)
    return Mixture(leaf_directions, log_prior, posterior, scores)


def _anchor_means(taxonomy: Taxonomy, anchors: Anchors, sibling_mass: float) -> FloatArray:
    """The mean anchor of each leaf; a leaf without any gets that of its nearest relatives."""
    sums: npt.NDArray[np.floating] = anchors.sums
    mass: npt.NDArray[np.floating] = anchors.mass
    if sibling_mass > 0:
        parents, of_leaf = np.unique(taxonomy.parent_array[list(taxonomy.leaves)], return_inverse=True)
        below, below_mass = (
            taxonomy.sums_under(known, parents.tolist()) for known in (anchors.sums, anchors.mass)
        )
        # All leaves lie below the root, so there is nothing to pool there.
        below[parents == 0], below_mass[parents == 0] = 0.0, 0.0
        pooled = (below / np.maximum(below_mass, 1.0)[:, None])[of_leaf]
        shared = sibling_mass * (below_mass > 0)[of_leaf] * (mass > 0)
        sums, mass = sums + shared[:, None] * pooled, mass + shared
    means = sums / np.maximum(mass, 1.0)[:, None]
    for node, positions in _left_to_relatives(taxonomy, anchors.mass > 0).items():
        near = taxonomy.positions_under(node)
        near = near[anchors.mass[near] > 0]
        means[positions] = anchors.sums[near].sum(axis=0) / anchors.mass[near].sum()
    return np.asarray(means, dtype=np.float32)


def _left_to_relatives(taxonomy: Taxonomy, known: npt.NDArray[np.bool_]) -> dict[int, list[int]]:
    """The leaves of which nothing is known, by the nearest node above them that a known leaf is below."""
    above = np.zeros(len(taxonomy), dtype=bool)
    for leaf in np.array(taxonomy.leaves)[known].tolist():
        # What is above a node that is marked is marked too.
        while leaf >= 0 and not above[leaf]:
            above[leaf] = True
            leaf = taxonomy.parents[leaf]
    found: dict[int, list[int]] = {}
    for position in np.flatnonzero(~known).tolist() if above[0] else ():
        node = taxonomy.leaves[position]
        while not above[node]:
            node = taxonomy.parents[node]
        found.setdefault(node, []).append(position)
    return found
