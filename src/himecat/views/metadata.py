"""How far each metadata type, and each value of it, can be trusted to tell what a document is about.

Documents that share a value should lie near each other if the value says anything. How near they do lie is
measured on the texts alone, so a year or an age group finds its own weight: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import diags

from himecat.input.corpus import Ragged
from himecat.runtime.solvers import nonnegative_least_squares
from himecat.views.words import occurrences

FloatArray = npt.NDArray[np.float32]

# Pairs of documents that a value's own likeness must weigh up before it counts as much as its type's.
_TYPICAL_PAIRS = 20.0
# Documents among which the usual spread of cosines is measured.
_SAMPLED = 1000
# How many standard deviations above chance the likeness of a type's documents must be for it to count at all.
_SURELY = 3.0


@dataclass(frozen=True)
class ValueTrust:
    """What the values of one metadata type say about the direction of a document.

    Attributes
    ----------
    trust : float
        Weight of the whole type, given the others.
    likeness : array
        Expected cosine of two documents that share the value.
    counts : array
        Documents that carry the value.
    rows : array
        Row of each value in `sums`, or -1 for values of a single document, which have nothing to say.
    sums : array
        Sum of the directions of the documents that carry the value.

    Examples
    --------
    >>> one = ValueTrust(1.0, np.array([0.5]), np.array([2.0]), np.array([0]), np.ones((1, 2), np.float32))
    >>> one.predict(Ragged.from_lists([[0], []])).tolist()
    [[0.33..., 0.33...], [0.0, 0.0]]
    """

    trust: float
    likeness: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    sums: FloatArray

    def predict(self, values: Ragged, own: FloatArray | None = None) -> FloatArray:
        """The direction that a document's values let expect, shorter the less they say.

        Parameters
        ----------
        values : Ragged
            Value ids of every document.
        own : array, optional
            Directions of the documents, if they are among those counted here: each is then left out of
            what its values say about it.
        """
        known = self.rows >= 0
        others = self.counts - (0.0 if own is None else 1.0)
        # Best linear prediction from `others` noisy sightings of the value's direction.
        factor = self.likeness / (1.0 + np.maximum(others - 1.0, 0.0) * self.likeness)
        explained = np.minimum(others * self.likeness * factor, 0.999)
        gain = np.where(known & (others > 0), explained / (1.0 - explained), 0.0)
        carried = occurrences(values.renumbered(self.rows.astype(np.int32)), len(self.sums))
        carried.data[:] = 1.0
        pull = carried @ diags((gain * factor)[known].astype(np.float32))
        found = np.asarray(pull @ self.sums, dtype=np.float32)
        if own is not None:
            found -= np.asarray(pull.sum(axis=1), dtype=np.float32).reshape(-1, 1) * own
        total = np.asarray(carried @ gain[known][:, None]).reshape(-1, 1)
        found /= np.maximum(total, 1e-12).astype(np.float32)
        found[total.ravel() <= 0] = 0.0
        return found


def learn_trust(
    columns: Mapping[str, tuple[Ragged, int]], directions: FloatArray, *, learned: bool = True
) -> tuple[dict[str, ValueTrust], FloatArray]:
    """Learn from the directions of all documents what their metadata say; no label is looked at.

    Parameters
    ----------
    columns : mapping of str to (Ragged, int)
        Value ids of every document and the number of values, by type.
    directions : array
        Unit vectors of the documents.
    learned : bool
        Whether the weights of the types are learned; otherwise each is 1.

    Returns
    -------
    by_type, expected
        The trust of each type, and for every document the weighted sum of what its values let expect.

    Examples
    --------
    >>> axes = np.repeat(np.eye(2, dtype=np.float32), 6, axis=0)
    >>> team, year = Ragged.from_lists([[0]] * 6 + [[1]] * 6), Ragged.from_lists([[0], [1], [2]] * 4)
    >>> by_type, _ = learn_trust({"team": (team, 2), "year": (year, 3)}, axes)
    >>> by_type["team"].trust > 0.9, by_type["year"].trust < 0.1
    (True, True)
    """
    found: dict[str, ValueTrust] = {}
    expected, speaks = [], []
    for kind, (values, n_values) in columns.items():
        carried = occurrences(values, n_values)
        carried.data[:] = 1.0
        counts = np.asarray(carried.sum(axis=0), dtype=np.float64).ravel()
        shared = np.flatnonzero(counts > 1)
        rows = np.full(n_values, -1, dtype=np.int64)
        rows[shared] = np.arange(len(shared))
        sums = np.asarray(carried[:, shared].T @ directions, dtype=np.float32)
        likeness = np.zeros(n_values)
        likeness[shared] = _likeness(sums, counts[shared])
        found[kind] = ValueTrust(1.0, likeness, counts, rows, sums)
        expected.append(found[kind].predict(values, own=directions))
        speaks.append(_says_something(sums, counts[shared], directions))
    weights = (
        _weights(expected, directions, np.array(speaks, dtype=bool)) if learned else np.ones(len(expected))
    )
    total = np.zeros_like(directions)
    for kind, weight, part in zip(found, weights.tolist(), expected, strict=True):
        one = found[kind]
        found[kind] = ValueTrust(weight, one.likeness, one.counts, one.rows, one.sums)
        total += np.float32(weight) * part
    return found, total


def _likeness(sums: FloatArray, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean cosine of two documents that share a value, drawn towards the mean of the type where pairs are few."""
    if not len(counts):
        return np.zeros(0)
    pairs = counts * (counts - 1.0)
    cosines = (sums.astype(np.float64) ** 2).sum(axis=1) - counts
    # Values with many documents tell more, but must not decide for the whole type.
    typical = float(np.average(cosines / pairs, weights=np.sqrt(counts - 1.0)))
    typical = max(typical, 1e-6)
    return np.asarray(np.clip((cosines + _TYPICAL_PAIRS * typical) / (pairs + _TYPICAL_PAIRS), 1e-6, 0.99))


def speaking_types(columns: Mapping[str, tuple[Ragged, int]], features: Any) -> list[str]:
    """The metadata types whose values bring documents with like words together.

    Asked of the plain words, before any vector is learned: a type that served as context would speak for itself.

    Parameters
    ----------
    columns : mapping of str to (Ragged, int)
        Value ids of every document and the number of values, by type.
    features : sparse matrix
        The words of the documents, rows at length 1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> words = csr_matrix(np.repeat(np.eye(2), 6, axis=0))
    >>> team, year = Ragged.from_lists([[0]] * 6 + [[1]] * 6), Ragged.from_lists([[0], [1], [2]] * 4)
    >>> speaking_types({"team": (team, 2), "year": (year, 3)}, words)
    ['team']
    """
    n = features.shape[0]
    if n < 3:
        return list(columns)
    anyway = (float(np.square(np.asarray(features.sum(axis=0), dtype=np.float64)).sum()) - n) / (
        n * (n - 1.0)
    )
    sample = features[:: -(-n // _SAMPLED)]
    near = (sample @ sample.T).tocsr()
    near.setdiag(0.0)
    size = sample.shape[0]
    spread = float(near.multiply(near).sum()) / (size * (size - 1.0))
    found = []
    for kind, (values, n_values) in columns.items():
        carried = occurrences(values, n_values)
        carried.data[:] = 1.0
        counts = np.asarray(carried.sum(axis=0), dtype=np.float64).ravel()
        shared = np.flatnonzero(counts > 1)
        sums = carried[:, shared].T.tocsr() @ features
        lengths = np.asarray(sums.multiply(sums).sum(axis=1), dtype=np.float64).ravel()
        if _beyond_chance(lengths, counts[shared], anyway, spread):
            found.append(kind)
    return found


def _says_something(sums: FloatArray, counts: npt.NDArray[np.float64], directions: FloatArray) -> bool:
    """Whether documents that share a value are nearer to each other than chance alone would have it."""
    if not len(counts) or len(directions) < 3:
        return bool(len(counts))
    n = len(directions)
    anyway = (float(np.square(directions.sum(axis=0, dtype=np.float64)).sum()) - n) / (n * (n - 1.0))
    # Directions crowd into fewer dimensions than they have, so how far cosines spread is measured.
    spread = float(np.square(directions.T @ directions / np.float32(n)).sum())
    lengths = np.square(sums.astype(np.float64)).sum(axis=1)
    return _beyond_chance(lengths, counts, anyway, spread)


def _beyond_chance(
    lengths: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], anyway: float, spread: float
) -> bool:
    """Whether pairs that share a value have larger cosines than others; `spread` is the mean square of those."""
    if not len(counts):
        return False
    excess = float(((lengths - counts) / (counts - 1.0) - counts * anyway).sum())
    # Of every pair of documents both orders were counted.
    by_chance = np.sqrt(2.0 * spread * float((counts / (counts - 1.0)).sum()))
    return bool(excess > _SURELY * by_chance)


def _weights(
    expected: list[FloatArray], directions: FloatArray, speaks: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Least squares: how the types together predict the direction of a document they have not seen."""
    weights = np.zeros(len(expected))
    if speaks.any():
        chosen = [part for part, one in zip(expected, speaks, strict=True) if one]
        gram = np.array([[float(np.vdot(a, b)) for b in chosen] for a in chosen])
        target = np.array([float(np.vdot(a, directions)) for a in chosen])
        ridge = 1e-6 * max(float(np.trace(gram)), 1e-9)
        weights[speaks] = np.minimum(nonnegative_least_squares(gram + ridge * np.eye(len(gram)), target), 1.0)
    return weights
