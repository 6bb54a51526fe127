"""Samples of a pile too large to learn from as a whole: they are drawn while the pile is read once.

Every document has a random number, by its id. Those with the smallest numbers are the sample, whatever the order in
which they come, so that parts of a pile can be read apart and their samples put together. A smaller sample is part of a
larger one: what words mean is learned from more documents than the classifier, which takes more memory for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from himecat.input.documents import Document

Rows = npt.NDArray[np.int64]
_ALL = np.uint64(np.iinfo(np.uint64).max)


class Room(Protocol):
    """How many documents there is room for."""

    def texts(self) -> int:
        """Those that words are learned from."""

    def documents(self, n_leaves: int | None, n_words: int, n_values: int) -> int:
        """Those that the classifier is learned from, in a tree of so many leaves, where that is known."""


class Held(NamedTuple):
    """Documents of one part of a pile that may be in the sample, and what is known of the others.

    Attributes
    ----------
    documents : list of Document
        The documents.
    numbers, labelled : arrays
        Their random numbers, and which of them are labelled.
    counts : mapping of str to Counter
        How often metadata values occur in the other documents, by type.
    n_left_out : int
        How many these are.
    """

    documents: list[Document]
    numbers: npt.NDArray[np.uint64]
    labelled: npt.NDArray[np.bool_]
    counts: dict[str, Counter[str]]
    n_left_out: int


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
    ) -> None:
        self._given = (room, n_leaves, seed, shown, expected)
        self._room, self._n_leaves, self._most = room, n_leaves, room.texts()
        self._shown = None if shown is None else frozenset(shown)
        self._key = str(seed).encode()
        self._bound = (
            _ALL if expected <= 2 * self._most else np.uint64(int(_ALL) // expected * 2 * self._most)
        )
        self._next = self._accepted = self.n_left_out = 0
        self._numbers: list[npt.NDArray[np.uint64]] = []
        self._labelled: list[npt.NDArray[np.bool_]] = []
        self.counts: dict[str, Counter[str]] = {}

    def empty(self) -> Sample:
        """The same before anything was read."""
        return Sample(*self._given)

    @property
    def knows_positions(self) -> bool:
        """Whether labelled documents are known by their positions in the whole."""
        return self._shown is not None

    def held(self, batch: Sequence[Document]) -> list[Document]:
        """Those of the next documents that may be in the sample; the values of the others are counted."""
        first, self._next = self._next, self._next + len(batch)
        numbers = np.array([self._number(document.id) for document in batch], dtype=np.uint64)
        usable = np.array([document.usable for document in batch], dtype=bool)
        labelled = np.array(
            [self._is_labelled(first + row, document) for row, document in enumerate(batch)], dtype=bool
        )
        low = usable & (numbers <= self._bound)
        accepted = low | (usable & labelled)
        if not accepted.all():
            self._leave_out(
                [document for document, one in zip(batch, (usable & ~accepted).tolist(), strict=True) if one]
            )
        self._numbers.append(numbers[accepted])
        self._labelled.append(labelled[accepted])
        self._accepted += int(low.sum())
        if self._accepted > 2 * self._most:
            self._lower()
        return [document for document, one in zip(batch, accepted.tolist(), strict=True) if one]

    def _number(self, name: str) -> int:
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key)
        return int.from_bytes(digest.digest(), "little")

    def _is_labelled(self, position: int, document: Document) -> bool:
        return document.labels is not None if self._shown is None else position in self._shown

    def _leave_out(self, documents: Sequence[Document]) -> None:
        self.n_left_out += len(documents)
        for document in documents:
            for kind, values in document.metadata.items():
                self.counts.setdefault(kind, Counter()).update(values)

    def _lower(self) -> None:
        """Take as many as needed of those held so far, and fewer of those to come."""
        numbers = self.numbers
        self._bound = np.partition(numbers[numbers <= self._bound], self._most - 1)[self._most - 1]
        self._accepted = self._most

    def taken(self, documents: list[Document]) -> Held:
        """What another sample has to know of the documents that were held here, which are given again."""
        numbers, labelled = self.numbers, self.labelled
        kept = (numbers <= self._bound) | labelled
        if not kept.all():
            self._leave_out([one for one, stays in zip(documents, kept.tolist(), strict=True) if not stays])
            documents = [one for one, stays in zip(documents, kept.tolist(), strict=True) if stays]
        return Held(documents, numbers[kept], labelled[kept], self.counts, self.n_left_out)

    def add(self, other: Held) -> list[Document]:
        """Take in what was read elsewhere, and give its documents."""
        self._numbers.append(other.numbers)
        self._labelled.append(other.labelled)
        self.n_left_out += other.n_left_out
        for kind, counts in other.counts.items():
            self.counts.setdefault(kind, Counter()).update(counts)
        return other.documents

    @property
    def n_documents(self) -> int:
        """Usable documents that were read."""
        return self.n_left_out + sum(map(len, self._numbers))

    @property
    def numbers(self) -> npt.NDArray[np.uint64]:
        """The random numbers of those that were held."""
        return np.concatenate([np.zeros(0, np.uint64), *self._numbers])

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Which of them are labelled."""
        return np.concatenate([np.zeros(0, bool), *self._labelled])

    def is_whole(self, n_words: int, n_values: int) -> bool:
        """Whether there is room for all documents."""
        there = self._room.documents(self._n_leaves, n_words, n_values)
        return not self.n_left_out and self.n_documents <= min(there, self._most)

    def rows(self, n_words: int, n_values: int) -> tuple[Rows, Rows]:
        """Those that words, and those that the classifier is learned from, as positions among those held."""
        numbers, labelled = self.numbers, self.labelled
        few = min(self._most, self._room.documents(self._n_leaves, n_words, n_values))
        return chosen(numbers, labelled, self._most), chosen(numbers, labelled, few)


def chosen(numbers: npt.NDArray[np.uint64], labelled: npt.NDArray[np.bool_], most: int) -> Rows:
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
