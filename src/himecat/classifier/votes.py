"""Votes: documents that share a metadata value say together where each of them belongs.

A value has one leaf for most of its documents, with a probability that is its purity. What the texts of its documents
say of that leaf adds up, where directions only lean towards each other. A document never votes on itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.runtime.softmax import softmax_in_place
from himecat.views.base import Group, State
from himecat.views.matrices import FloatArray, check_shapes

VOTES = "votes:"
"""What the names of these opinions begin with; the metadata type follows."""
USUAL_VOTES, DECIDING_VOTES = 1.0, 3.0
"""Weights that stacking starts from: of any type, and of one that decides by the user's word."""

# Purity of a value before its documents are looked at, and how many documents' worth of it is kept: of any type, and
# of one that decides.
_PURITY, _KEPT = 0.9, 2.0
_DECIDING_PURITY, _DECIDING_KEPT = 0.98, 20.0
# How far the texts of a value's documents err together: as the intraclass correlation of their votes.
_CORRELATION = 0.3
# Values x leaves above which a type does not vote.
_MOST_CELLS = 20_000_000
# Documents' values x leaves that are looked at together.
_BLOCK_CELLS = 4_000_000


class _Pairs(NamedTuple):
    """Documents and their values: the leaf of the value, by the votes of the other documents that have it."""

    rows: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]
    leaves: FloatArray
    alone: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ValueVotes:
    """The votes on the values of one metadata type.

    Attributes
    ----------
    evidence : array of shape (values, leaves)
        Sums of the documents' votes, which are logarithms.
    counts : array
        How many documents voted.
    purity : array
        Probability that a document of the value is in the value's leaf.
    """

    evidence: FloatArray
    counts: FloatArray
    purity: FloatArray

    def opinion(self, carried: Any, votes: FloatArray, voted: npt.NDArray[np.bool_]) -> FloatArray:
        """Log-probabilities of the leaves, relative to uniform ones; zeros where nobody else has voted.

        Parameters
        ----------
        carried : sparse matrix
            Documents x values.
        votes : array
            The documents' own votes.
        voted : array
            Whether they are among those that were counted.
        """
        n_leaves = votes.shape[1]
        found = np.zeros_like(votes)
        for block, pairs in self.pairs_of(carried, votes, voted):
            purity = self.purity[pairs.values][:, None]
            part = pairs.leaves
            part *= purity * n_leaves
            part += 1.0 - purity
            np.log(part, out=part)
            part[pairs.alone] = 0.0
            found[block] = _summed(part, pairs.ends)
        return found

    def pairs_of(
        self, carried: Any, votes: FloatArray, voted: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[slice, _Pairs]]:
        """Documents and their values, a few documents at a time; the arguments are those of `opinion`."""
        size = max(1, _BLOCK_CELLS // votes.shape[1])
        starts = np.searchsorted(carried.indptr, np.arange(0, carried.nnz, size), side="right") - 1
        starts = np.unique([0, *starts.tolist(), carried.shape[0]])
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            some = carried[first:last]
            rows = first + np.repeat(np.arange(last - first), np.diff(some.indptr))
            own = voted[rows]
            leaves = self.evidence[some.indices]
            leaves -= votes[rows] * own[:, None]
            others = self.counts[some.indices] - own
            leaves /= (1.0 + np.maximum(others - 1.0, 0.0) * np.float32(_CORRELATION))[:, None]
            yield (
                slice(first, last),
                _Pairs(rows, some.indices, some.indptr, softmax_in_place(leaves), others < 0.5),
            )


def _summed(rows: FloatArray, ends: npt.NDArray[np.integer]) -> FloatArray:
    """Sums of consecutive rows; `ends` as in a sparse matrix."""
    ones = csr_matrix(
        (np.ones(len(rows), np.float32), np.arange(len(rows)), ends), shape=(len(ends) - 1, len(rows))
    )
    return np.asarray(ones @ rows, dtype=np.float32)


@dataclass(frozen=True)
class Votes:
    """The votes on all values.

    Attributes
    ----------
    types : mapping of str to ValueVotes
        By metadata type.
    voters : array
        Fingerprints of the documents that voted, in order.
    """

    types: Mapping[str, ValueVotes]
    voters: npt.NDArray[np.uint64]

    def opinions(
        self,
        groups: Mapping[str, Group],
        fingerprints: npt.NDArray[np.uint64],
        probabilities: FloatArray,
    ) -> Iterator[tuple[str, FloatArray]]:
        """What each type says of the documents' leaves.

        Parameters
        ----------
        groups : mapping of str to Group
            Which documents have which values.
        fingerprints : array
            By these the documents that voted are known.
        probabilities : array
            What the documents' own texts say.
        """
        places = np.minimum(np.searchsorted(self.voters, fingerprints), max(len(self.voters) - 1, 0))
        voted = self.voters[places] == fingerprints if len(self.voters) else np.zeros(len(places), bool)
        for kind, one in self.types.items():
            votes = as_votes(probabilities, groups[kind].decides)
            yield f"{VOTES}{kind}", one.opinion(groups[kind].members, votes, voted)

    def only(self, weights: Mapping[str, float]) -> Votes | None:
        """The types that count for something."""
        types = {kind: one for kind, one in self.types.items() if weights.get(f"{VOTES}{kind}", 0.0) > 0.0}
        return Votes(types, self.voters) if types else None

    def check(self, n_leaves: int, n_values: Mapping[str, int]) -> None:
        """Raise a `ValueError` where the votes do not fit the leaves or the values."""
        for kind, one in self.types.items():
            shape = (n_values[kind], n_leaves)
            expected = {"evidence": (one.evidence, shape), "counts": (one.counts, shape[:1])}
            check_shapes({**expected, "purity": (one.purity, shape[:1])})

    def state(self) -> State:
        """The types' names, and their arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {"voters": self.voters}
        for number, one in enumerate(self.types.values()):
            arrays |= {f"{number}/{name}": getattr(one, name) for name in ("evidence", "counts", "purity")}
        return {"types": list(self.types)}, arrays

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The votes again."""
        types = {
            kind: ValueVotes(*(arrays[f"{number}/{name}"] for name in ("evidence", "counts", "purity")))
            for number, kind in enumerate(settings["types"])
        }
        return cls(types, arrays["voters"])


def as_votes(probabilities: FloatArray, decides: bool) -> FloatArray:
    """The logarithms that add up: what a text says of its value's leaf, which is not always its own."""
    purity = np.float32(_DECIDING_PURITY if decides else _PURITY)
    found = probabilities * purity
    found += (1 - purity) / np.float32(probabilities.shape[1])
    return np.asarray(np.log(found, out=found), dtype=np.float32)


def learn_votes(
    groups: Mapping[str, Group], fingerprints: npt.NDArray[np.uint64], probabilities: FloatArray
) -> Votes | None:
    """Count the votes of all documents; None where no type votes.

    Parameters
    ----------
    probabilities : array
        What the documents' own texts say of their leaves, and the labels of those that have one.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> shop = {"shop": Group(csr_matrix(np.array([[1], [1], [1], [0]], np.float32)), decides=False)}
    >>> sure, unsure = [0.9, 0.1], [0.45, 0.55]
    >>> texts = np.array([sure, sure, unsure, unsure], dtype=np.float32)
    >>> marks = np.arange(4, dtype=np.uint64)
    >>> found = dict(learn_votes(shop, marks, texts).opinions(shop, marks, texts))
    >>> found["votes:shop"].round(1).tolist()[2:]
    [[0.6..., -1.5], [0.0, 0.0]]
    """
    n_leaves = probabilities.shape[1]
    types = {}
    for kind, (members, decides) in groups.items():
        if not members.nnz or members.shape[1] * n_leaves > _MOST_CELLS:
            continue
        votes = as_votes(probabilities, decides)
        evidence = np.asarray(members.T.tocsr() @ votes, dtype=np.float32)
        counts = np.asarray(members.sum(axis=0), dtype=np.float32).ravel()
        one = unweighed(evidence, counts, decides)
        inside = np.zeros(len(counts))
        for pairs, agreed in agreement(one, members, votes, decides):
            inside += np.bincount(pairs.values, weights=agreed, minlength=len(counts))
        types[kind] = with_purity(one, inside, decides)
    return Votes(types, np.unique(fingerprints)) if types else None


def unweighed(evidence: FloatArray, counts: FloatArray, decides: bool) -> ValueVotes:
    """The votes on values of whose purity nothing is known yet."""
    usual = _DECIDING_PURITY if decides else _PURITY
    return ValueVotes(evidence, counts, np.full(len(counts), usual, dtype=np.float32))


def agreement(
    one: ValueVotes, members: Any, votes: FloatArray, decides: bool
) -> Iterator[tuple[_Pairs, npt.NDArray[np.float32]]]:
    """Documents and their values, and the probability that the document is in the leaf of the value."""
    usual = _DECIDING_PURITY if decides else _PURITY
    for _, pairs in one.pairs_of(members, votes, np.ones(len(votes), dtype=bool)):
        own = np.exp(votes[pairs.rows])
        own = 1.0 - np.float32((1 - usual) / votes.shape[1]) / own
        yield pairs, np.einsum("ij,ij->i", pairs.leaves, own)


def with_purity(one: ValueVotes, inside: npt.NDArray[np.float64], decides: bool) -> ValueVotes:
    """One step of EM: how many of a value's documents are in its leaf."""
    usual, kept = (_DECIDING_PURITY, _DECIDING_KEPT) if decides else (_PURITY, _KEPT)
    purity = np.clip((inside + kept * usual) / (one.counts + kept), 0.02, 0.98).astype(np.float32)
    return replace(one, purity=purity)
