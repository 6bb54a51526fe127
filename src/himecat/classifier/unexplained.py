"""Which documents of a fit its labelled ones explain badly: seen from their neighbourhoods, and by a mixture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from himecat.runtime.softmax import softmax_in_place
from himecat.views.matrices import unit

FloatArray = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]
Seeds = tuple[FloatArray, FloatArray]
"""Summed directions of the leaves' names and keywords, and how many documents they count as."""

# Neighbours whose values are averaged.
_NEIGHBOURS = 20
# A reference as similar as this is the document itself.
_ITSELF = 1 - 1e-4
# From so many similarities on, loading compiled code pays.
_COMPILED_FROM = 1 << 18
# How many labelled documents' worth of what a leaf's own documents reach comes from all leaves.
_SHARED = 3.0
# How much of what a leaf's own documents reach is expected of a document.
_EXPECTED = 0.5
# Components for what no leaf explains: one for so many leaves. Rounds of EM, and their concentration.
_LEAVES_PER_COMPONENT, _ROUNDS, _CONCENTRATION = 8, 6, 30.0
# All references at a leaf together weigh as much as this many labelled documents.
_PLACED_WEIGHT = 4.0


class Pile:
    """The references, of which the first are labelled, and what their neighbourhoods say.

    Parameters
    ----------
    references : array
        Smoothed directions of documents of a fit, the labelled ones first.
    leaves : array
        Positions of the leaves of the labelled ones.
    seeds : tuple of array
        What names and keywords say of each leaf.

    Examples
    --------
    >>> rows = unit(np.array([[1, 0.1, 0], [0.1, 1, 0]] + [[1, 0, 0]] * 9 + [[0, 1, 0]] * 9 + [[0, 0.2, 1]] * 9))
    >>> pile = Pile(rows, np.array([0, 1]), (np.zeros((2, 3), np.float32), np.zeros(2, np.float32)))
    >>> far, beyond = pile.unexplained(np.arange(2), np.arange(2)).T
    >>> bool(far[-1] > far[2]), bool(beyond[-1] > beyond[2])
    (True, True)
    """

    def __init__(self, references: FloatArray, leaves: Positions, seeds: Seeds) -> None:
        self.references, self.leaves = references, leaves
        self.near, self.similar = neighbours(references, references)
        self._seeds = seeds
        self.local = unit(self.averaged(references) * self.near.shape[1] + references)
        self._wide = unit(self.averaged(self.local) * self.near.shape[1] + self.local)

    def averaged(self, values: FloatArray) -> FloatArray:
        """The mean over the neighbours of each reference."""
        total = np.zeros_like(values)
        for column in self.near.T:
            total += values[column]
        return np.asarray(total / self.near.shape[1], dtype=np.float32)

    def anchors(self, labelled: Positions, kept: Positions) -> tuple[FloatArray, FloatArray, Positions]:
        """Sums and masses of what is known of the leaves that are kept, and the leaf of each labelled document."""
        place = np.full(len(self._seeds[1]), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        sums, mass = self._seeds[0][kept].copy(), self._seeds[1][kept].astype(np.float32)
        own = place[self.leaves[labelled]]
        np.add.at(sums, own, self.references[labelled])
        np.add.at(mass, own, 1.0)
        return sums, mass, own

    def unexplained(self, labelled: Positions, kept: Positions) -> FloatArray:
        """How badly the labelled documents of the leaves that are kept explain each reference: two measures."""
        sums, mass, own = self.anchors(labelled, kept)
        directions = unit(sums)
        reached = (unit(sums[own] - self.references[labelled]) * self.references[labelled]).sum(axis=1)
        counts = np.bincount(own, minlength=len(kept))
        expected = np.bincount(own, reached, minlength=len(kept)) + _SHARED * float(reached.mean())
        cosines = self.local @ directions.T
        mean, deviation = cosines.mean(axis=0), np.maximum(cosines.std(axis=0), 1e-6)
        off = (_EXPECTED * (expected / (counts + _SHARED) - mean) + mean).astype(np.float32)
        far = -((cosines - off) / deviation)[:, mass > 0].max(axis=1)
        beyond = self._beyond(directions[mass > 0], (sums, mass), own, labelled, self.averaged(far))
        return np.stack([far, beyond], axis=1)

    def sizes(self) -> FloatArray:
        """For each labelled document, how many references it stands for: those placed at its leaf."""
        sums, mass, _ = self.anchors(np.arange(len(self.leaves)), np.arange(len(self._seeds[1])))
        known = np.flatnonzero(mass > 0)
        self.placed = known[(self.local @ unit(sums[known]).T).argmax(axis=1)]
        of_leaf = np.bincount(self.placed, minlength=len(mass)) / np.maximum(
            np.bincount(self.leaves, minlength=len(mass)), 1
        )
        return np.asarray(of_leaf[self.leaves] + 1.0, dtype=np.float32)

    def _beyond(
        self,
        directions: FloatArray,
        anchors: tuple[FloatArray, FloatArray],
        own: Positions,
        labelled: Positions,
        far: FloatArray,
    ) -> FloatArray:
        """The log-odds of components that no label stands for, started where the leaves explain least."""
        sums, mass = (part[anchors[1] > 0] for part in anchors)
        n_leaves = len(sums)
        share = (mass / (mass + _PLACED_WEIGHT))[:, None]
        means = sums / mass[:, None]
        count = min(max(2, n_leaves // _LEAVES_PER_COMPONENT), len(far))
        rank, taken = _standard(far, far), np.zeros(len(far), dtype=np.float32)
        starts = []
        for _ in range(count):
            start = self._wide[int((rank - taken).argmax())]
            starts.append(start)
            # The next one is somewhere else.
            taken = np.maximum(taken, 6 * np.maximum(self._wide @ start - 0.3, 0.0))
        free, log_prior = np.stack(starts), np.zeros(n_leaves + count, dtype=np.float32)
        for turn in range(_ROUNDS + 1):
            scores = self.references @ np.concatenate([directions, free]).T
            scores *= np.float32(_CONCENTRATION)
            scores += log_prior
            if turn == _ROUNDS:
                break
            posterior = softmax_in_place(scores)
            posterior[labelled] = 0.0
            found = posterior.sum(axis=0)
            placed = (posterior.T @ self.references) / np.maximum(found, 1e-6)[:, None]
            directions = unit(share * means + (1 - share) * placed[:n_leaves])
            free = unit(placed[n_leaves:])
            smoothed = found + 0.3 * max(float(found.sum()), 1e-6) / len(found)
            log_prior = np.log(smoothed / smoothed.sum()).astype(np.float32)
        return _log_sum(scores[:, n_leaves:]) - _log_sum(scores[:, :n_leaves])

    def likeness(self, taught: Positions) -> FloatArray:
        """How much nearer each reference is to documents labelled `none` than to any leaf."""
        cosines = self.local @ self.local[taught].T
        # Not to itself.
        cosines[taught, np.arange(len(taught))] = -1.0 if len(taught) > 1 else 0.0
        sums, mass, _ = self.anchors(np.arange(len(self.leaves)), np.arange(len(self._seeds[1])))
        return np.asarray(cosines.max(axis=1) - (self.local @ unit(sums[mass > 0]).T).max(axis=1))


def neighbours(rows: FloatArray, references: FloatArray) -> tuple[Positions, FloatArray]:
    """The nearest references of each row but itself, nearest first, and how similar they are.

    Examples
    --------
    >>> near, similar = neighbours(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0], [0.6, 0.8]]))
    >>> near.tolist(), similar.round(2).tolist()
    ([[2, 0]], [[0.6..., 0.0]])
    """
    count = min(_NEIGHBOURS, max(1, len(references) - 1))
    near = np.zeros((len(rows), count), dtype=np.int64)
    similar = np.zeros((len(rows), count), dtype=np.float32)
    for first in range(0, len(rows), 1024):
        some = slice(first, first + 1024)
        cosines = np.asarray(rows[some] @ references.T, dtype=np.float32)
        if cosines.size >= _COMPILED_FROM:
            from himecat.kernels.nearest import largest_below

            largest_below(cosines, np.float32(_ITSELF), near[some], similar[some])
            continue
        cosines[cosines > _ITSELF] = -1.0
        near[some] = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        similar[some] = np.take_along_axis(cosines, near[some], axis=1)
    return near, similar


def _standard(values: FloatArray, by: FloatArray) -> FloatArray:
    return np.asarray((values - by.mean()) / max(float(by.std()), 1e-6), dtype=np.float32)


def _log_sum(scores: FloatArray) -> FloatArray:
    most = scores.max(axis=1)
    return np.asarray(most + np.log(np.exp(scores - most[:, None]).sum(axis=1)), dtype=np.float32)
