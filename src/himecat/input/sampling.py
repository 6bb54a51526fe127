"""Samples of a pile too large to learn from as a whole: they are drawn while the pile is read once.

Every document has a random number, by its position. Those with the smallest numbers are the sample, whatever the order
in which they come, so that parts of a pile can be read apart and their samples put together. A smaller sample is part
of a larger one: what words mean is learned from more documents than the classifier, which takes more memory for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from himecat.input.documents import Document

Numbers = npt.NDArray[np.int64]
_ALL = np.uint64(np.iinfo(np.uint64).max)
# The part of a pile that a document is in stands above its position there.
_PART_BITS = 40


def random_numbers(positions: Numbers, seed: int) -> npt.NDArray[np.uint64]:
    """A number for each position, by splitmix64.

    Examples
    --------
    >>> found = random_numbers(np.arange(4), seed=0)
    >>> len(set(found.tolist())), bool((found == random_numbers(np.arange(4), seed=0)).all())
    (4, True)
    """
    step, first, second = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
    found = (positions.astype(np.uint64) + np.uint64(seed & 0xFFFFFF) * np.uint64(step)) * np.uint64(step)
    for shift, factor in ((30, first), (27, second)):
        found ^= found >> np.uint64(shift)
        found *= np.uint64(factor)
    return found ^ (found >> np.uint64(31))


class Room(Protocol):
    """How many documents there is room for."""

    def texts(self) -> int:
        """Those that words are learned from."""

    def documents(self, n_leaves: int | None, n_words: int, n_values: int) -> int:
        """Those that the classifier is learned from, in a tree of so many leaves, where that is known."""


class Sample:
    """The documents that take part: those that are labelled, and at most so many of all.

    Parameters
    ----------
    room : Room
        How many; fewer than twice as many are held at once where `expected` is about right.
    n_leaves : int, optional
        Leaves of the tree, where it is known.
    seed : int
        Decides which.
    shown : collection of int, optional
        Positions of the labelled documents, where not every document with a label is one.
    expected : int
        About how many documents there are; 0 where nobody knows.
    part : int
        The number of the part of the pile that is read.

    Examples
    --------
    >>> class Two:
    ...     texts = lambda self: 3
    ...     documents = lambda self, *sizes: 2
    >>> sample = Sample(Two())
    >>> documents = [Document("", str(row), "a fox", {}, None, True) for row in range(1000)]
    >>> held = sample.held(documents)
    >>> wide, narrow = sample.rows(n_words=2, n_values=0)
    >>> sample.n_documents, len(wide), len(narrow), bool(np.isin(narrow, wide).all())
    (1000, 3, 2, True)
    """

    def __init__(
        self,
        room: Room,
        n_leaves: int | None = None,
        seed: int = 0,
        shown: Collection[int] | None = None,
        expected: int = 0,
        part: int = 0,
    ) -> None:
        self._room, self._n_leaves, most = room, n_leaves, room.texts()
        self._most, self._shown = most, None if shown is None else frozenset(shown)
        self._seed, self._part = seed, part << _PART_BITS
        self._bound = _ALL if expected <= 2 * most else np.uint64(int(_ALL) // expected * 2 * most)
        self._accepted = 0
        self._next = self.n_left_out = 0
        self._held: list[npt.NDArray[np.uint64]] = []
        self._labelled: list[npt.NDArray[np.bool_]] = []
        self.counts: dict[str, Counter[str]] = {}

    def held(self, batch: Sequence[Document]) -> list[Document]:
        """Those of the next documents that may be in the sample; the values of the others are counted."""
        positions = np.arange(self._next, self._next + len(batch))
        self._next += len(batch)
        numbers = random_numbers(self._part + positions, self._seed)
        usable = np.array([document.usable for document in batch], dtype=bool)
        labelled = usable & np.array(
            [self._is_labelled(*one) for one in zip(positions.tolist(), batch, strict=True)]
        )
        low = usable & (numbers <= self._bound)
        accepted = low | labelled
        if not accepted.all():
            self._count(
                [one for one, left_out in zip(batch, (usable & ~accepted).tolist(), strict=True) if left_out]
            )
        self._held.append(numbers[accepted])
        self._labelled.append(labelled[accepted])
        self._accepted += int(low.sum())
        if self._accepted > 2 * self._most:
            self._lower()
        return [document for document, one in zip(batch, accepted.tolist(), strict=True) if one]

    def _is_labelled(self, position: int, document: Document) -> bool:
        return document.labels is not None if self._shown is None else position in self._shown

    def _count(self, documents: Sequence[Document]) -> None:
        self.n_left_out += len(documents)
        for document in documents:
            for kind, values in document.metadata.items():
                self.counts.setdefault(kind, Counter()).update(values)

    def _lower(self) -> None:
        """Take as many as needed of those held so far, and fewer of those to come."""
        numbers = np.concatenate(self._held)
        self._bound = np.partition(numbers[numbers <= self._bound], self._most - 1)[self._most - 1]
        self._accepted = self._most

    @property
    def n_documents(self) -> int:
        """Usable documents that were read."""
        return self.n_left_out + sum(map(len, self._held))

    @property
    def numbers(self) -> npt.NDArray[np.uint64]:
        """Their random numbers."""
        return np.concatenate([np.zeros(0, np.uint64), *self._held])

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Which of them are labelled."""
        return np.concatenate([np.zeros(0, bool), *self._labelled])

    def is_whole(self, n_words: int, n_values: int) -> bool:
        """Whether there is room for all documents."""
        there = self._room.documents(self._n_leaves, n_words, n_values)
        return not self.n_left_out and self.n_documents <= min(there, self._most)

    def rows(self, n_words: int, n_values: int) -> tuple[Numbers, Numbers]:
        """Those that words, and those that the classifier is learned from, as positions among those held."""
        numbers, labelled = self.numbers, self.labelled
        few = min(self._most, self._room.documents(self._n_leaves, n_words, n_values))
        return chosen(numbers, labelled, self._most), chosen(numbers, labelled, few)


def chosen(numbers: npt.NDArray[np.uint64], labelled: npt.NDArray[np.bool_], most: int) -> Numbers:
    """The labelled documents and those with the smallest numbers.

    Examples
    --------
    >>> chosen(np.array([5, 1, 9], dtype=np.uint64), np.array([False, False, True]), 1).tolist()
    [1, 2]
    """
    if len(numbers) <= most:
        return np.arange(len(numbers))
    bound = np.partition(numbers, most - 1)[most - 1]
    return np.flatnonzero((numbers <= bound) | labelled)
