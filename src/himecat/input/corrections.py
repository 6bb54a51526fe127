"""What answers and new documents change in the material of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError
from himecat.input.answers import Answers, new_documents, read_answers
from himecat.input.builder import Origin
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus, MetadataColumn, Ragged, Supervision, Vocabulary
from himecat.input.documents import Document, Fields
from himecat.input.problems import Problems
from himecat.input.separators import SLASH
from himecat.input.several import most_specific, parted, resolved
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.progress import Progress

# Two texts of one id are the same where at least this share of the words of one is in the other.
_SAME_TEXT = 0.5

Encode = Callable[[Any, Problems, Sequence[ColumnReader]], tuple[list[Origin], Corpus]]


class RawLabels:
    """Notes the labels of documents while these are read, as they are written; its column is empty.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> labels = RawLabels()
    >>> _ = read_corpus([{"text": "a hen", "labels": "bird"}, {"text": "a fox"}], readers=[labels])
    >>> labels.found
    ['bird', None]
    """

    name = "himecat.labels"
    fields: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.found: list[object] = []
        self._count = 0

    @contextmanager
    def open(self, source: Any, problems: Problems, progress: Progress) -> Iterator[RawLabels]:
        """Start on a source."""
        yield self

    def extend(self, documents: Sequence[Document]) -> None:
        """Note the labels of the next documents."""
        self.found += [document.labels for document in documents]
        self._count += len(documents)

    def finish(self) -> npt.NDArray[np.float32]:
        """A column without numbers."""
        count, self._count = self._count, 0
        return np.zeros((count, 0), dtype=np.float32)


@dataclass(frozen=True)
class Change:
    """Documents and labels as the answers leave them.

    Attributes
    ----------
    corpus : Corpus
        The documents; new ones stand at the end.
    supervision : Supervision
        The labels of before and the answers, which go before older labels of the same documents.
    rows, nodes : arrays
        The answers: the rows of their documents, and what they name; a row for each category of a document.
    n_added, n_skipped, n_replaced : int
        Documents that are new, that somebody wants skipped, and whose older label was another one.
    n_nowhere : int
        Answers that say that a document belongs to none of the categories; they are not among `rows`.
    """

    corpus: Corpus
    supervision: Supervision
    rows: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    n_added: int
    n_skipped: int
    n_replaced: int
    n_nowhere: int = 0


def plan_change(
    answers: Any,
    documents: Any,
    corpus: Corpus,
    supervision: Supervision,
    taxonomy: Taxonomy,
    fields: Fields,
    encode: Encode,
    problems: Problems,
    separator: str = SLASH,
    several: bool = False,
) -> Change:
    """Read answers and new documents, and say what they change; nothing is changed yet.

    Parameters
    ----------
    answers
        As for `read_answers`.
    documents : path, table, iterable, optional
        New documents; those that the corpus has are passed over, and labels of the others are labels.
    encode : callable
        Documents in the ids of the corpus, from a source, with what further readers note.
    problems : Problems
        Receives what is found; errors are raised.
    separator : str
        What separates the levels of a label in one string.
    several : bool
        Whether documents have several categories each: an answer is then the whole set of a document.

    Raises
    ------
    DataError
        With everything that is wrong, all at once; or there is neither an answer nor a new document.
    """
    known = {name: row for row, name in enumerate(corpus.ids)}
    given = read_answers(answers, taxonomy, fields, known, problems, separator, several)
    added: list[Corpus] = []
    labels: dict[int, tuple[int, ...]] = {}
    if documents is not None:
        raw = RawLabels()
        origins, found = encode(documents, problems, [raw])
        new = [row for row, one in enumerate(origins) if one.usable and one.id not in known]
        again = [row for row, one in enumerate(origins) if one.usable and one.id in known]
        texts = [(origins[row].place, found.ids[row], found.tokens[row]) for row in again]
        _refuse_other_texts(texts, corpus, known, problems)
        places = {row: origins[position].place for row, position in enumerate(new, start=len(corpus))}
        raws = {
            row: raw.found[position]
            for row, position in enumerate(new, start=len(corpus))
            if raw.found[position] is not None and found.ids[position] not in given.given
        }
        own = parted(raws, separator, taxonomy, several)
        labels = _by_row(resolved(taxonomy, own, places.__getitem__, problems, separator))
        added.append(found.take(new))
        known |= {found.ids[position]: row for row, position in enumerate(new, start=len(corpus))}
    _refuse_other_texts(_shown_texts(given, corpus, known, fields), corpus, known, problems)
    unknown = [answer for name, answer in given.given.items() if name not in known]
    records = new_documents(unknown, fields, problems)
    if records:
        _, found = encode(records, problems, [])
        known |= {name: row for row, name in enumerate(found.ids, start=len(known))}
        added.append(found)
    problems.raise_errors()
    if not given.given and not any(map(len, added)):
        skipped = f" but for {given.skipped:,} to skip" if given.skipped else ""
        raise DataError(f"There is no answer{skipped}: fill in the column 'answer', or name new documents.")
    labels |= {known[name]: answer.nodes for name, answer in given.given.items()}
    before = _by_row(supervision)
    answered = [known[name] for name in given.given]
    labelled = _with_labels(supervision, labels)
    pairs = [(row, node) for row in answered for node in labels[row]]
    rows, nodes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Change(
        extended(corpus, added),
        most_specific(taxonomy, labelled) if several else labelled,
        rows,
        nodes,
        sum(map(len, added)),
        given.skipped,
        sum(before.get(row, nodes) != nodes for row, nodes in labels.items()),
        sum(not labels[row] for row in answered),
    )


def _by_row(labelled: Supervision) -> dict[int, tuple[int, ...]]:
    """The nodes of every labelled document, in order; none where it belongs nowhere."""
    found: dict[int, tuple[int, ...]] = dict.fromkeys(labelled.nowhere.tolist(), ())
    for row, node in sorted(zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True)):
        found[row] = (*found.get(row, ()), node)
    return found


def _with_labels(supervision: Supervision, labels: Mapping[int, tuple[int, ...]]) -> Supervision:
    stays = ~np.isin(supervision.rows, [*labels])
    added = np.array([(row, node) for row, nodes in labels.items() for node in nodes], dtype=np.int64)
    rows, nodes = added.reshape(-1, 2).T
    rows = np.concatenate([supervision.rows[stays], rows])
    nodes = np.concatenate([supervision.nodes[stays], nodes])
    # As a fit has them, which reads labels in the order of the documents.
    order = np.argsort(rows, kind="stable")
    away = np.array([row for row, nodes in labels.items() if not nodes], dtype=np.int64)
    nowhere = np.union1d(np.setdiff1d(supervision.nowhere, rows), away)
    return replace(supervision, rows=rows[order], nodes=nodes[order], nowhere=nowhere)


def extended(corpus: Corpus, added: Sequence[Corpus]) -> Corpus:
    """A corpus with further documents at its end, which are in the ids of its vocabularies.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["a hen", "a fox"])
    >>> both = extended(corpus, [read_corpus(["a red hen"]).aligned(corpus.words, {})])
    >>> both.words.names, both.words.counts.tolist(), both.tokens[2].tolist()
    (('a', 'fox', 'hen'), [3, 1, 2], [0, 2])
    """
    parts = [corpus, *(one for one in added if len(one))]
    if len(parts) == 1:
        return corpus

    def joined(vocabulary: Vocabulary, rows: list[Ragged]) -> tuple[Vocabulary, Ragged]:
        counts = vocabulary.counts + Ragged.concatenate(rows[1:]).totals(len(vocabulary))
        return replace(vocabulary, counts=counts), Ragged.concatenate(rows)

    metadata = {
        kind: MetadataColumn(*joined(column.vocabulary, [part.metadata[kind].values for part in parts]))
        for kind, column in corpus.metadata.items()
    }
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in corpus.columns}
    ids = [name for part in parts for name in part.ids]
    counts = [part.unknown for part in parts if part.unknown is not None]
    unknown = np.concatenate(counts) if len(counts) == len(parts) else None
    return Corpus(ids, *joined(corpus.words, [part.tokens for part in parts]), metadata, columns, unknown)


def _refuse_other_texts(
    texts: Sequence[tuple[str, str, npt.NDArray[np.int32]]],
    corpus: Corpus,
    known: Mapping[str, int],
    problems: Problems,
) -> None:
    """See that texts, given by place, id and words, are those of the documents that their ids name.

    Documents without ids have their positions as ids, and those are the same in every file. Either text may be cut.
    """
    for place, name, words in texts:
        own = corpus.tokens[known[name]]
        if not len(words) or not len(own):
            continue
        if max(np.isin(words, own).mean(), np.isin(own, words).mean()) < _SAME_TEXT:
            problems.error(
                place,
                f"the text is not that of the document {name!r} of the model: give every document an id of its own.",
            )


def _shown_texts(
    answers: Answers, corpus: Corpus, known: Mapping[str, int], fields: Fields
) -> list[tuple[str, str, npt.NDArray[np.int32]]]:
    """The texts that rows carry of documents of the corpus."""
    texts = {}
    for name, answer in answers.given.items():
        values = [(answer.record.fields or {}).get(field) for field in fields.text]
        if known.get(name, len(corpus)) < len(corpus):
            texts[name] = "\n".join(value for value in values if isinstance(value, str))
    words = corpus.words.word_ids.rows(list(texts.values()), None)
    return [(answers.given[name].place, name, words[row]) for row, name in enumerate(texts)]
