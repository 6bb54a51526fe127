"""The corpus as columns of integers: text is read once and only ids are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from himecat.input.tokenizer import UNICODE, Tokenizer

if TYPE_CHECKING:
    from himecat.input.vocabulary import WordNumbers

IntArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """A list of integer lists in two arrays: row i is `values[offsets[i]:offsets[i + 1]]`.

    Examples
    --------
    >>> rows = Ragged.from_lists([[1, 2], [], [3]])
    >>> len(rows), rows[0].tolist(), rows.lengths.tolist()
    (3, [1, 2], [2, 0, 1])
    """

    values: IntArray
    offsets: OffsetArray

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        """Pack a list of integer lists."""
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in lists], out=offsets[1:])
        values = np.fromiter((v for row in lists for v in row), dtype=np.int32, count=int(offsets[-1]))
        return cls(values, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> IntArray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> OffsetArray:
        """Number of values in every row."""
        return np.diff(self.offsets)

    @property
    def row_of_value(self) -> IntArray:
        """For every value, the row it stands in."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)

    def take(self, rows: npt.ArrayLike) -> Ragged:
        """The given rows, in the given order."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        starts = np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Ragged(self.values[starts + np.arange(int(offsets[-1]))], offsets)

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        """All rows of all parts, in order."""
        if not parts:
            return Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))
        lengths = np.concatenate([part.lengths for part in parts])
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Ragged(np.concatenate([part.values for part in parts]).astype(np.int32), offsets)

    def renumbered(self, new_ids: npt.NDArray[np.int32]) -> Ragged:
        """Replace every value v by `new_ids[v]`, and drop those whose new id is negative."""
        values = new_ids[self.values]
        kept = values >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(values[kept].astype(np.int32), before[self.offsets].astype(np.int64))

    def expanded(self, parts: Ragged, longest: int | None = None) -> Ragged:
        """Replace every value v by the row v of `parts`; of a row, only the first `longest` values stay.

        Examples
        --------
        >>> rows = Ragged.from_lists([[0, 1], [1]]).expanded(Ragged.from_lists([[5], [6, 7]]), longest=2)
        >>> rows[0].tolist(), rows[1].tolist()
        ([5, 6], [6, 7])
        """
        whole = parts.take(self.values)
        rows = Ragged(whole.values, whole.offsets[self.offsets])
        return rows if longest is None else rows.head(longest)

    def head(self, longest: int) -> Ragged:
        """The first `longest` values of every row, as a copy.

        Examples
        --------
        >>> Ragged.from_lists([[5, 6, 7], [8]]).head(2).values.tolist()
        [5, 6, 8]
        """
        lengths = self.lengths
        position = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], lengths)
        offsets = np.zeros_like(self.offsets)
        np.cumsum(np.minimum(lengths, longest), out=offsets[1:])
        return Ragged(self.values[position < longest], offsets)

    def sums_of(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """For every row, the sum of the vectors that its values name.

        Examples
        --------
        >>> Ragged.from_lists([[0, 0], []]).sums_of(np.eye(2, dtype=np.float32)).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
        """
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.values), dtype=np.float32)
        picks = csr_matrix((ones, self.values, self.offsets), shape=(len(self), len(vectors)))
        return np.asarray(picks @ vectors, dtype=np.float32)


@dataclass(frozen=True)
class Vocabulary:
    """Distinct strings with the number of times each was seen; ids are positions.

    `tokenizer` is what finds the words of a text, where the strings are words.

    Examples
    --------
    >>> words = Vocabulary(("cat", "dog"), np.array([3, 1]))
    >>> words.index["dog"]
    1
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    tokenizer: Tokenizer = UNICODE

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """From a name to its id."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def numbers(self) -> WordNumbers:
        """From the words of texts to their ids."""
        from himecat.input.vocabulary import WordNumbers

        return WordNumbers(self.names, tokenizer=self.tokenizer)

    def ids_in(self, other: Vocabulary) -> npt.NDArray[np.int32]:
        """For every name here, its id in another vocabulary, or -1."""
        return np.array([other.index.get(name, -1) for name in self.names], dtype=np.int32)


@dataclass(frozen=True)
class MetadataColumn:
    """The values of one metadata type, per document.

    Examples
    --------
    >>> column = MetadataColumn(Vocabulary(("ann",), np.array([2])), Ragged.from_lists([[0], [0], []]))
    >>> column.coverage
    0.6666666666666666
    """

    vocabulary: Vocabulary
    values: Ragged

    @property
    def coverage(self) -> float:
        """Share of documents that carry at least one value."""
        return float(np.mean(self.values.lengths > 0)) if len(self.values) else 0.0


@dataclass(frozen=True)
class Corpus:
    """Documents as columns: ids, word ids, metadata value ids and what column readers computed, by name.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "a red cat", "tags": ["pet"]}, {"text": "a red fox"}],
    ...                      metadata=["tags"], min_count=2)
    >>> len(corpus), corpus.words.names, corpus.tokens[0].tolist()
    (2, ('a', 'red'), [0, 1])
    """

    ids: Sequence[str]
    words: Vocabulary
    tokens: Ragged
    metadata: Mapping[str, MetadataColumn] = field(default_factory=dict)
    columns: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: npt.ArrayLike) -> Corpus:
        """The given documents, in the given order, with the same ids for words and metadata values."""
        chosen = np.asarray(rows, dtype=np.int64)
        return Corpus(
            ids=[self.ids[row] for row in chosen.tolist()],
            words=self.words,
            tokens=self.tokens.take(chosen),
            metadata={
                kind: MetadataColumn(column.vocabulary, column.values.take(chosen))
                for kind, column in self.metadata.items()
            },
            columns={name: rows[chosen] for name, rows in self.columns.items()},
        )

    def between(self, start: int, end: int) -> Corpus:
        """Documents that stand together, without a copy of their words.

        Examples
        --------
        >>> from himecat import read_corpus
        >>> read_corpus(["a fox", "a hen", "an owl"]).between(1, 3).ids
        ['1', '2']
        """

        def cut(rows: Ragged) -> Ragged:
            bounds = rows.offsets[start : end + 1]
            return Ragged(rows.values[bounds[0] : bounds[-1]], bounds - bounds[0])

        return Corpus(
            self.ids[start:end],
            self.words,
            cut(self.tokens),
            {kind: MetadataColumn(one.vocabulary, cut(one.values)) for kind, one in self.metadata.items()},
            {name: rows[start:end] for name, rows in self.columns.items()},
        )

    def aligned(self, words: Vocabulary, metadata: Mapping[str, Vocabulary]) -> Corpus:
        """The same documents in the ids of other vocabularies; what those do not have is dropped.

        Examples
        --------
        >>> from himecat import read_corpus
        >>> corpus = read_corpus(["a red cat"])
        >>> corpus.aligned(Vocabulary(("cat",), np.array([1])), {}).tokens[0].tolist()
        [0]
        """

        def moved(rows: Ragged, old: Vocabulary, new: Vocabulary) -> Ragged:
            return rows if old is new else rows.renumbered(old.ids_in(new))

        empty = Ragged(np.zeros(0, dtype=np.int32), np.zeros(len(self) + 1, dtype=np.int64))
        values_of = {}
        for kind, values in metadata.items():
            own = self.metadata.get(kind)
            values_of[kind] = MetadataColumn(
                values, moved(own.values, own.vocabulary, values) if own else empty
            )
        return Corpus(self.ids, words, moved(self.tokens, self.words, words), values_of, self.columns)


@dataclass(frozen=True)
class Supervision:
    """The labelled documents: for each, its row in the corpus and the deepest node it is known to belong to.

    A document may stop at an inner node; it then teaches that level and those above. `keywords` has the words
    that stand for a node; those of an inner node speak for everything below it.

    Examples
    --------
    >>> labelled = Supervision(np.array([4, 7]), np.array([2, 2]))
    >>> len(labelled)
    2
    """

    rows: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    keywords: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)
