"""The corpus as columns of integers: text is read once and only ids are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError, spelled
from himecat.input.ragged import IntArray as IntArray
from himecat.input.ragged import OffsetArray as OffsetArray
from himecat.input.ragged import Ragged as Ragged
from himecat.input.vocabulary import Vocabulary as Vocabulary
from himecat.input.vocabulary import ranked

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class MetadataColumn:
    """The values of one metadata type, per document.

    Examples
    --------
    >>> column = MetadataColumn(Vocabulary(("ann",), np.array([2])), Ragged.from_lists([[0], [0], []]))
    >>> column.coverage
    0.6666666666666666
    >>> column
    <MetadataColumn: values of 3 documents, 1 distinct>
    """

    vocabulary: Vocabulary
    values: Ragged

    def __repr__(self) -> str:
        return (
            f"<MetadataColumn: values of {len(self.values):,} documents, {len(self.vocabulary):,} distinct>"
        )

    @property
    def coverage(self) -> float:
        """Share of documents that carry at least one value."""
        return float(np.mean(self.values.lengths > 0)) if len(self.values) else 0.0


@dataclass(frozen=True)
class Corpus:
    """Documents as columns: ids, word ids, metadata value ids and what column readers computed, by name.

    `unknown` says how many words of each document the vocabulary does not have; None where nobody counted.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "a red cat", "tags": ["pet"]}, {"text": "a red fox"}],
    ...                      metadata=["tags"], min_count=2)
    >>> len(corpus), corpus.words.names, corpus.tokens[0].tolist()
    (2, ('a', 'red'), [0, 1])
    >>> corpus
    <Corpus: 2 documents, 2 words, metadata tags>
    """

    ids: Sequence[str]
    words: Vocabulary
    tokens: Ragged
    metadata: Mapping[str, MetadataColumn] = field(default_factory=dict)
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    unknown: OffsetArray | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        # Of a corpus people see this in errors and notebooks: all ids and words would be megabytes.
        named = (("metadata", self.metadata), ("columns", self.columns))
        more = "".join(f", {kind} {', '.join(columns)}" for kind, columns in named if columns)
        return f"<Corpus: {len(self):,} documents, {len(self.words):,} words{more}>"

    def take(self, rows: npt.ArrayLike) -> Corpus:
        """The given documents, in the given order, with the same ids for words and metadata values."""
        chosen = np.asarray(rows, dtype=np.int64)
        ids = [self.ids[row] for row in chosen.tolist()]
        return self._with_rows(ids, lambda ragged: ragged.take(chosen), chosen)

    def between(self, start: int, end: int) -> Corpus:
        """Documents that stand together, without a copy of their words.

        Examples
        --------
        >>> from himecat import read_corpus
        >>> read_corpus(["a fox", "a hen", "an owl"]).between(1, 3).ids
        ['1', '2']
        """
        ids = self.ids[start:end]
        return self._with_rows(ids, lambda ragged: ragged.between(start, end), slice(start, end))

    def _with_rows(
        self,
        ids: Sequence[str],
        of: Callable[[Ragged], Ragged],
        rows: slice | npt.NDArray[np.int64],
    ) -> Corpus:
        metadata = {
            kind: MetadataColumn(column.vocabulary, of(column.values))
            for kind, column in self.metadata.items()
        }
        columns = {name: column[rows] for name, column in self.columns.items()}
        unknown = None if self.unknown is None else self.unknown[rows]
        return Corpus(ids, self.words, of(self.tokens), metadata, columns, unknown)

    def _unknown_beside(self, tokens: Ragged) -> OffsetArray | None:
        """The unknown words, once some of those known are dropped."""
        return None if self.unknown is None else self.unknown + self.tokens.lengths - tokens.lengths

    def recounted(self, min_count: int = 1) -> Corpus:
        """The same documents with the vocabularies that reading them alone gives.

        Examples
        --------
        >>> from himecat import read_corpus
        >>> read_corpus(["a fox", "a hen", "a red hen"]).take([1, 2]).recounted(2).words.names
        ('a', 'hen')
        """

        def of(vocabulary: Vocabulary, rows: Ragged, least: int) -> tuple[Vocabulary, Ragged]:
            own = Ragged(rows.values.copy(), rows.offsets)
            return ranked(list(vocabulary.names), own, least, vocabulary.tokenizer, vocabulary.rule)

        metadata = {
            kind: MetadataColumn(*of(column.vocabulary, column.values, 1))
            for kind, column in self.metadata.items()
        }
        words, tokens = of(self.words, self.tokens, min_count)
        return Corpus(self.ids, words, tokens, metadata, self.columns, self._unknown_beside(tokens))

    def aligned(self, words: Vocabulary, metadata: Mapping[str, Vocabulary]) -> Corpus:
        """The same documents in the ids of other vocabularies; what those do not have is dropped.

        Examples
        --------
        >>> from himecat import read_corpus
        >>> corpus = read_corpus(["a red cat"])
        >>> corpus.aligned(Vocabulary(("cat",), np.array([1])), {}).tokens[0].tolist()
        [0]

        Raises
        ------
        UsageError
            The words of the vocabulary come from another tokenizer.
        """
        if self.words.tokenizer.name != words.tokenizer.name:
            raise UsageError(
                f"The Corpus was read with the tokenizer {self.words.tokenizer.name!r}, and the model with "
                f"{words.tokenizer.name!r}: read the documents with that one."
            )

        def moved(rows: Ragged, old: Vocabulary, new: Vocabulary) -> Ragged:
            return rows if old is new else rows.renumbered(old.ids_in(new))

        empty = Ragged(np.zeros(0, dtype=np.int32), np.zeros(len(self) + 1, dtype=np.int64))
        values_of = {}
        for kind, values in metadata.items():
            own = self.metadata.get(kind)
            values_of[kind] = MetadataColumn(
                values, moved(own.values, own.vocabulary, values) if own else empty
            )
        tokens = moved(self.tokens, self.words, words)
        return Corpus(self.ids, words, tokens, values_of, self.columns, self._unknown_beside(tokens))


@dataclass(frozen=True)
class Supervision:
    """The labelled documents: for each, its row in the corpus and the deepest node it is known to belong to.

    A document may stop at an inner node; it then teaches that level and those above. `keywords` has the words
    that stand for a node; those of an inner node speak for everything below it. `nowhere` are the rows of documents
    labelled `none`: they belong to no category.

    Examples
    --------
    >>> labelled = Supervision(np.array([4, 7]), np.array([2, 2]))
    >>> len(labelled)
    2
    """

    rows: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    keywords: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    nowhere: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)


def used_metadata(kinds: Iterable[str], ignored: Collection[str]) -> list[str]:
    """The metadata types without those to ignore.

    Examples
    --------
    >>> used_metadata(["authors", "year"], ["year"])
    ['authors']
    """
    given = list(kinds)
    refuse_unknown_metadata(given, ignored, spelled("--ignore-metadata", "ignore_metadata"))
    return [kind for kind in given if kind not in ignored]


def refuse_unknown_metadata(given: Collection[str], named: Collection[str], option: str) -> None:
    """Say which metadata field an option names that is not read.

    Examples
    --------
    >>> refuse_unknown_metadata(["authors"], ["year"], "--decides")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: --decides names 'year', which is not among the metadata fields.
    """
    for kind in named:
        if kind not in given:
            raise UsageError(f"{option} names {kind!r}, which is not among the metadata fields.")
