"""The corpus is built in one pass: the words of every text become ids, and the text is let go."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from himecat.errors import DataError, UsageError
from himecat.input.columns import ColumnReader, OpenColumns, with_extra_fields
from himecat.input.corpus import Corpus, MetadataColumn
from himecat.input.corpus_rows import CorpusRows
from himecat.input.documents import BATCH_SIZE, Fields, read_documents
from himecat.input.formats import Source, parts_of
from himecat.input.intake import Each, Intake
from himecat.input.kinds import named
from himecat.input.metadata_columns import learned_column
from himecat.input.problems import Problems
from himecat.input.ragged import Ragged
from himecat.input.sampling import Sample
from himecat.input.token_ids import FIRST_COMPILED, IdRows, WordIds
from himecat.input.tokenizer import UNICODE, LearnedTokenizer, Tokenizer, get_tokenizer
from himecat.input.vocabulary import Vocabulary, ranked
from himecat.runtime.progress import Progress

# A file of so many bytes is worth the compiled loop from its first text on.
_LARGE_FILE = 1 << 24
# More words than a document brings that no document before it has.
_MANY_NEW_WORDS = 40
# Of a sample, a word must occur once in so many documents: rarer ones take memory, and hardly say anything.
_PER_RAREST = 25_000


@dataclass(frozen=True)
class LoadedCorpus:
    """A corpus together with what reading it brought to light.

    Attributes
    ----------
    corpus : Corpus
        The usable documents.
    labels : dict
        For labelled documents only: from the row in the corpus to the labels as they were written.
    places : sequence of str
        Where each row was read, for messages.
    skipped : list of int
        Positions in the source of the documents left out.
    problems : Problems
        Everything found on the way.
    all_words : Ragged or None
        Where asked for: all words of every document, in ids of their own.
    drawn : Drawn or None
        Where the corpus is a sample: what it was drawn from.

    Examples
    --------
    >>> loaded = load_corpus([{"text": "A hen.", "labels": "bird"}, {"text": "A fox."}], Fields())
    >>> loaded.labels, loaded.place(1)
    ({0: 'bird'}, 'document 1')
    """

    corpus: Corpus
    labels: dict[int, object]
    places: Sequence[str]
    skipped: list[int]
    problems: Problems
    all_words: Ragged | None = None
    drawn: Drawn | None = None

    def place(self, row: int) -> str:
        """Where a row was read, for messages."""
        return self.places[row] if self.places else f"document {row}"


class Drawn(NamedTuple):
    """Of a sample: the larger sample that it is part of, and how many usable documents there are in all.

    The larger one is in a list, so that whoever learned from it can let it go.
    """

    texts: list[Corpus]
    n_documents: int


class Origin(NamedTuple):
    """Which document an encoded row stands for; a row that is not `usable` has no words.

    `labels` are those written in the document; its whole `record` is there where it was asked for.

    Examples
    --------
    >>> Origin("a7", "docs.jsonl line 3", True).id
    'a7'
    """

    id: str
    place: str
    usable: bool
    labels: object | None = None
    record: Mapping[str, object] | None = None


def _split_further(
    tokenizer: LearnedTokenizer, names: list[str], tokens: Ragged, max_tokens: int | None
) -> tuple[LearnedTokenizer, list[str], Ragged]:
    """Let a tokenizer learn from all words, and put the parts of each word in its place."""
    counts = tokens.totals(len(names))
    learned = tokenizer.learn(dict(zip(names, counts.tolist(), strict=True)))
    parts = IdRows()
    parts.extend([learned.split(name) for name in names])
    return learned, parts.names(), tokens.expanded(parts.finish(), max_tokens)


def load_corpus(
    source: Source,
    fields: Fields,
    *,
    min_count: int = 1,
    max_tokens: int | None = 300,
    tokenizer: str | Tokenizer = UNICODE,
    problems: Problems | None = None,
    skip_bad: bool = False,
    readers: Sequence[ColumnReader] = (),
    progress: Progress | None = None,
    threads: int | None = None,
    whole_texts: bool = False,
    sample: Sample | None = None,
    each: Each | None = None,
) -> LoadedCorpus:
    """Read a corpus in one pass, holding ids and not texts.

    Parameters
    ----------
    source : path, table or iterable
        Whatever `iter_records` reads.
    fields : Fields
        Which field plays which part.
    min_count : int
        Words seen less often in the whole corpus are dropped; a document may lose all its words.
    max_tokens : int or None
        Only this many words from the start of a document are used; None for all.
    tokenizer : str or Tokenizer
        What splits the texts into words.
    problems : Problems, optional
        Receives what is found; a new one otherwise.
    skip_bad : bool
        Leave out documents with an error and turn each error into a warning.
    readers : sequence of ColumnReader
        Compute `Corpus.columns` from the texts or from other fields.
    progress : Progress, optional
        Shows how far the readers have come.
    threads : int, optional
        With 1 nothing is done at the same time; the result is the same for any number.
    whole_texts : bool
        Also keep what the corpus drops, the words past `max_tokens` and the rare ones, in `all_words`.
    sample : Sample, optional
        Chooses documents while they are read, where the corpus is to be a sample of a large source. Its metadata values
        are then all those that at least two documents of the source have.
    each : callable, optional
        Reads the parts of the source elsewhere, for a sample.

    Raises
    ------
    DataError
        There are errors and `skip_bad` is off (after everything was read, so that all are listed), or no
        document is left.

    Examples
    --------
    >>> loaded = load_corpus(["A red hen.", "A red fox."], Fields(), min_count=2)
    >>> loaded.corpus.words.names, loaded.corpus.tokens[1].tolist()
    (('a', 'red'), [0, 1])
    """
    _check_limits(max_tokens, min_count)
    problems = Problems() if problems is None else problems
    splitter = get_tokenizer(tokenizer)
    base = splitter.base if isinstance(splitter, LearnedTokenizer) else splitter
    words = WordIds(grows=True, compile_from=0 if _is_large(source) else FIRST_COMPILED, tokenizer=base)
    metadata = {kind: IdRows() for kind in fields.metadata}
    labels: dict[int, object] = {}
    places: list[str] = []
    intake = Intake(
        source,
        with_extra_fields(fields, readers),
        problems,
        sample=sample,
        parts=parts_of(source),
        each=each,
        warn_unspaced=splitter.name == UNICODE.name,
    )
    skipped, listed = intake.skipped, intake.listed
    with OpenColumns(readers, source, problems, progress) as columns:
        rows = CorpusRows(
            words, metadata, columns, None if whole_texts else max_tokens, threads, {}, problems
        )
        with rows.tokens:
            with problems.softened(skip_bad):
                for usable in intake:
                    for row, document in enumerate(usable, start=len(places)):
                        if document.labels is not None:
                            labels[row] = document.labels
                    places += [document.place for document in usable]
                    rows.extend(usable)
            # Before the columns are computed, which may take minutes.
            if not skip_bad or problems.has_fatal:
                problems.raise_errors()
            if not places:
                found = "".join(f"\n{warning}" for warning in problems.of("warning"))
                raise DataError(f"There is no document to work with.{found}")
            computed = columns.finish()
            n_values = sum(len(one.names()) for one in metadata.values())
            if sample is not None and sample.is_whole(_MANY_NEW_WORDS * len(places), n_values):
                sample = None
            if sample is not None:
                # How many words there are is known once all texts are split.
                rows.tokens.finish()
                sample = None if sample.is_whole(len(words.names()), n_values) else sample
            # While the worker may still be splitting the last texts.
            values = {}
            for kind, one in metadata.items():
                more = None if sample is None else sample.counts.get(kind, Counter())
                values[kind] = learned_column(
                    kind, fields.kinds.get(kind), one, places, problems, listed=kind in listed, more=more
                )
            tokens = rows.tokens.finish()
    all_words = tokens if whole_texts else None
    if whole_texts:
        tokens = tokens.head(max_tokens or max(1, len(tokens.values)))
    names = words.names()
    if isinstance(splitter, LearnedTokenizer):
        splitter, names, tokens = _split_further(splitter, names, tokens, max_tokens)
    held = np.arange(len(rows.ids)) if sample is None else sample.rows(len(names), n_values)[0]
    if sample is not None:
        tokens = tokens.take(held)
        min_count = max(min_count, len(held) // _PER_RAREST)
    lengths = tokens.lengths
    vocabulary, kept = ranked(names, tokens, min_count, splitter)
    unknown = lengths - kept.lengths
    if sample is None:
        corpus = Corpus(rows.ids, vocabulary, kept, values, computed, unknown)
        return LoadedCorpus(corpus, labels, places, skipped, problems, all_words)
    values = {kind: MetadataColumn(one.vocabulary, one.values.take(held)) for kind, one in values.items()}
    computed = {name: column[held] for name, column in computed.items()}
    texts = Corpus([rows.ids[row] for row in held.tolist()], vocabulary, kept, values, computed, unknown)
    chosen = sample.rows(len(vocabulary), sum(len(one.vocabulary) for one in values.values()))[1]
    labelled = sample.labelled[chosen]
    shown = {new: labels[old] for new, old in enumerate(chosen.tolist()) if labelled[new] and old in labels}
    corpus = texts.take(np.searchsorted(held, chosen))
    places = [places[row] for row in chosen.tolist()]
    drawn = Drawn([texts], sample.n_documents)
    return LoadedCorpus(corpus, shown, places, skipped, problems, drawn=drawn)


def read_corpus(
    source: Source,
    *,
    text: str | Sequence[str] = "text",
    metadata: str | Sequence[str] | Mapping[str, str | None] = (),
    min_count: int = 1,
    max_tokens: int | None = 300,
    tokenizer: str | Tokenizer = UNICODE,
    readers: Sequence[ColumnReader] = (),
) -> Corpus:
    """Read documents from a file, a table or a list into a corpus.

    Parameters
    ----------
    source : path, table or iterable
        JSON lines, CSV, TSV (also .gz, .zst) or Parquet; a pandas, polars or pyarrow table; a list of
        mappings or texts.
    text : str or sequence of str
        The field or fields with the text.
    metadata : str, sequence of str or mapping
        The fields with metadata, as for `HiMeCat`.
    min_count : int
        Words seen less often are dropped.
    max_tokens : int or None
        Only this many words from the start of a document are used; None for all.
    tokenizer : str or Tokenizer
        What splits the texts into words: `unicode`, `ngrams`, `dictionary`, `subwords`, or one of your own.
    readers : sequence of ColumnReader
        Compute `Corpus.columns` from the texts or from other fields.

    Examples
    --------
    >>> documents = [{"text": "A red hen.", "tags": ["farm"]}, {"text": "A red fox."}]
    >>> corpus = read_corpus(documents, metadata="tags")
    >>> corpus.words.names, corpus.metadata["tags"].coverage
    (('a', 'red', 'fox', 'hen'), 0.5)
    """
    given = named((metadata,) if isinstance(metadata, str) else metadata)
    fields = Fields((text,) if isinstance(text, str) else tuple(text), given.names, kinds=given.kinds)
    loaded = load_corpus(
        source, fields, min_count=min_count, max_tokens=max_tokens, tokenizer=tokenizer, readers=readers
    )
    return loaded.corpus


# Ids that are remembered while documents are placed: the same id twice is found if the two are this near.
_REMEMBERED = 100_000


def iter_encoded(
    source: Source,
    fields: Fields,
    words: Vocabulary,
    metadata: Mapping[str, Vocabulary],
    max_tokens: int | None,
    problems: Problems,
    batch_size: int | None = 4096,
    readers: Sequence[ColumnReader] = (),
    threads: int | None = None,
    keep_records: bool = False,
) -> Iterator[tuple[list[Origin], Corpus]]:
    """Read a source in the ids of known words and metadata values, batch by batch; what is unknown is dropped.

    A document that is not usable becomes a row without words. Memory does not grow with the source, and of two
    documents with the same id the second is found if it is near; without a `batch_size` there is one batch, and
    every such document is found.

    Examples
    --------
    >>> known = read_corpus(["a red hen"]).words
    >>> batches = iter_encoded(["a hen", "a fox", "red"], Fields(), known, {}, None, Problems(), batch_size=2)
    >>> [(len(origins), batch.tokens.lengths.tolist()) for origins, batch in batches]
    [(2, [2, 1]), (1, [1])]
    """
    _check_limits(max_tokens, 1)
    if batch_size is not None and batch_size < 1:
        raise UsageError(f"batch_size must be at least 1, not {batch_size}.")
    size = BATCH_SIZE if batch_size is None else min(BATCH_SIZE, batch_size)
    remember = None if batch_size is None else _REMEMBERED
    rules = {kind: values.rule for kind, values in metadata.items() if values.rule is not None}
    documents = read_documents(
        source,
        with_extra_fields(fields, readers),
        problems,
        remember=remember,
        size=size,
        keep_records=keep_records,
    )
    with OpenColumns(readers, source, problems) as columns:
        while True:
            known = {kind: IdRows(vocabulary.index) for kind, vocabulary in metadata.items()}
            rows = CorpusRows(words.word_ids, known, columns, max_tokens, threads, rules, problems)
            origins: list[Origin] = []
            with rows.tokens:
                for batch in islice(documents, None if batch_size is None else batch_size // size):
                    origins += [
                        Origin(one.id, one.place, one.usable, one.labels, one.record) for one in batch
                    ]
                    rows.extend(batch)
                if not origins and batch_size is not None:
                    return
                tokens = rows.tokens.finish()
            values = {kind: MetadataColumn(metadata[kind], one.finish()) for kind, one in known.items()}
            kept = tokens.known()
            unknown = tokens.lengths - kept.lengths
            yield origins, Corpus(rows.ids, words, kept, values, columns.finish(), unknown)
            if batch_size is None:
                return


def _is_large(source: Source) -> bool:
    if not isinstance(source, str | os.PathLike):
        return False
    try:
        return os.path.getsize(source) >= _LARGE_FILE
    except (OSError, ValueError):
        return False  # the reader knows what to say of it


def _check_limits(max_tokens: int | None, min_count: int) -> None:
    if min_count < 1:
        raise UsageError(f"min_count must be at least 1, not {min_count}.")
    if max_tokens is not None and max_tokens < 1:
        raise UsageError(f"max_tokens must be at least 1 or None, not {max_tokens}.")
