"""Checking documents, tree and labels before any training: a summary, and every problem with its place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, UsageError
from himecat.input.builder import LoadedCorpus, load_corpus
from himecat.input.check_report import CheckReport, MetadataSummary, render
from himecat.input.corpus import Corpus, MetadataColumn, Supervision, Vocabulary
from himecat.input.dataset import DRAW_FILE, METADATA_FILE, Dataset, draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.keywords import KeywordSource, keyword_labels, known_keywords, read_keywords
from himecat.input.labels import leaves_without_labels, supervise
from himecat.input.problems import Problems
from himecat.input.records import Source, iter_records
from himecat.input.taxonomy.readers import TaxonomySource, infer_taxonomy, read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import UNICODE, Tokenizer

__all__ = ["CheckReport", "MetadataSummary", "check", "render"]

_FEWEST_WORDS = 3
_PER_LEAF = 5
_COMMON_SHARE = 0.5
_PEEKED_RECORDS = 1000
_LONGEST_VALUE = 60
_NAMED_NODES = 10


class _Findings(Problems):
    """Keeps errors for the report where reading the documents would stop at them."""

    def raise_errors(self) -> None:
        """Do nothing."""

    def take(self, error: DataError) -> None:
        """Record an error that was raised; each of its lines is a finding."""
        for line in str(error).splitlines():
            self.error("", line)


def check(
    source: Source,
    taxonomy: TaxonomySource | None = None,
    fields: Fields | None = None,
    *,
    min_count: int = 1,
    max_tokens: int | None = 300,
    tokenizer: str | Tokenizer = UNICODE,
    skip_bad: bool = False,
    allow_empty_leaves: bool = True,
    keywords: KeywordSource | None = None,
) -> CheckReport:
    """Check documents, tree and labels; bad input raises nothing, everything found is in the report.

    Parameters
    ----------
    source : path, table or iterable
        The documents, or a dataset folder: every document then needs its true label, and draw 0 of the folder
        says which of them count as labelled.
    taxonomy : path, mapping or Taxonomy, optional
        The tree; without one it is the dataset folder's, or made of the labels in the documents.
    fields : Fields, optional
        Which field plays which part; the metadata fields are by default those the dataset folder names.
    min_count, max_tokens : int
        How often a word must occur to be used, and how many words of a document are used.
    tokenizer : str or Tokenizer
        What splits the texts into words.
    skip_bad : bool
        Leave out documents that cannot be used; what is wrong with them becomes a warning.
    allow_empty_leaves : bool
        Whether leaves without a labelled document get a warning or are an error, as they are for `fit`.
    keywords : mapping or path, optional
        Words that stand for categories; a leaf that has some needs no labelled document.

    Examples
    --------
    >>> documents = [{"text": "a red fox", "labels": "animals"}, {"text": "an old oak", "labels": "plant"}]
    >>> report = check(documents, {"animals": None, "plants": None})
    >>> [str(problem) for problem in report.problems.of("error")]
    ["document 1: unknown label 'plant'; did you mean 'plants'?"]
    """
    problems = _Findings()
    fields = fields or Fields()
    place = os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else ""
    dataset: Dataset | None = None
    if place and os.path.isdir(place):
        try:
            dataset = open_dataset(place, problems)
            fields = _with_metadata(fields, dataset)
        except DataError as error:
            problems.take(error)
            return CheckReport(problems)
        source, place = dataset.documents, str(dataset.documents)
    try:
        # All words are read, to tell how long the documents are.
        loaded = load_corpus(
            source, fields, max_tokens=None, tokenizer=tokenizer, problems=problems, skip_bad=skip_bad
        )
    except DataError as error:
        # Where errors are among the findings, they say why nothing is left; further lines repeat warnings.
        if not problems.has_errors:
            problems.error("", str(error).split("\n", 1)[0])
        return CheckReport(problems)
    report = _check_texts(CheckReport(problems, min_count=min_count), loaded, max_tokens, place)
    report = _check_metadata(report, loaded, place)
    if not fields.metadata:
        others = _other_fields(source, fields)
        could = f"; these fields could serve as metadata: {', '.join(others)}" if others else ""
        problems.note(place, f"no metadata fields were named: text alone will be used{could}.")
    try:
        tree = _tree(taxonomy, dataset, loaded, keywords, problems)
        labelled = _labelled(tree, dataset, loaded, place, problems, required=keywords is None)
    except DataError as error:
        problems.take(error)
        return report
    if keywords is not None:
        words = read_keywords(keywords, tree, problems, loaded.corpus.words.tokenizer)
        report, words = _check_keywords(report, tree, words, loaded.corpus, max_tokens)
        if labelled is not None:
            labelled = replace(labelled, keywords=words)
            if not words and not len(labelled):
                problems.error(
                    place, "no document is labelled, and no keyword can be used; give one or the other."
                )
                return replace(report, taxonomy=tree)
    return _check_labels(report, tree, labelled, place, allow_empty_leaves)


def _with_metadata(fields: Fields, dataset: Dataset) -> Fields:
    try:
        return replace(fields, metadata=fields.metadata or dataset.metadata)
    except UsageError as error:
        raise DataError(f"{dataset.folder / METADATA_FILE}: {error}") from None


def _check_texts(
    report: CheckReport, loaded: LoadedCorpus, max_tokens: int | None, place: str
) -> CheckReport:
    corpus, problems = loaded.corpus, report.problems
    lengths = corpus.tokens.lengths
    used = np.minimum(lengths, max_tokens) if max_tokens else lengths
    is_used = _is_used(corpus, max_tokens)
    counts = np.bincount(corpus.tokens.values[is_used], minlength=len(corpus.words))
    is_known = is_used & (counts[corpus.tokens.values] >= report.min_count)
    if not problems.has_errors and not np.any(counts >= report.min_count):
        problems.error(
            place, f"no word occurs {report.min_count} times or more; add documents, or lower min_count."
        )
    known = np.diff(np.concatenate(([0], np.cumsum(is_known)))[corpus.tokens.offsets])
    short = np.flatnonzero(known < _FEWEST_WORDS)
    if len(short):
        problems.warning(
            loaded.places[int(short[0])],
            f"{_documents(len(short))} with fewer than {_FEWEST_WORDS} known words, this one first.",
        )
    repeats = _repeated_texts(loaded)
    if repeats:
        here, earlier = (loaded.places[row] for row in repeats[0])
        first = f"this one first, like {' '.join(earlier.rsplit(' ', 2)[-2:])}"
        problems.warning(here, f"{_documents(len(repeats))} with the same words as an earlier one, {first}.")
    longer = int(np.sum(lengths > used))
    if longer:
        problems.note(place, f"{_documents(longer)} with more than {max_tokens} words: the rest is not used.")
    return replace(
        report,
        documents=len(corpus),
        words=int(np.sum(counts > 0)),
        vocabulary=int(np.sum(counts >= report.min_count)),
        tokens=int(used.sum()),
        words_per_document=(float(np.median(lengths)), int(lengths.max())),
    )


def _is_used(corpus: Corpus, max_tokens: int | None) -> npt.NDArray[np.bool_]:
    """For every word of every document, whether it is among the first `max_tokens`."""
    lengths, starts = corpus.tokens.lengths, corpus.tokens.offsets[:-1]
    position = np.arange(len(corpus.tokens.values)) - np.repeat(starts, lengths)
    return position < (max_tokens or np.inf)


def _repeated_texts(loaded: LoadedCorpus) -> list[tuple[int, int]]:
    """Rows with the same words in the same order as an earlier row, and that row."""
    first_with: dict[bytes, int] = {}
    repeats = []
    tokens = loaded.corpus.tokens
    for row in range(len(tokens)):
        if len(tokens[row]):
            earlier = first_with.setdefault(blake2b(tokens[row].tobytes(), digest_size=16).digest(), row)
            if earlier != row:
                repeats.append((row, earlier))
    return repeats


def _check_metadata(report: CheckReport, loaded: LoadedCorpus, place: str) -> CheckReport:
    problems = report.problems
    summaries = tuple(_summary(name, column) for name, column in loaded.corpus.metadata.items())
    for summary in summaries:
        name = repr(summary.name)
        if summary.commonest is None:
            # A field that is in no document at all was reported when the documents were read.
            if not any(f"metadata field {name}" in found.message for found in problems.of("warning")):
                problems.warning(place, f"no document has a value in {name}; leave the field out.")
        elif not summary.repeated:
            problems.warning(place, f"every value of {name} occurs once, so it connects no documents.")
        else:
            value, times = summary.commonest
            if times > _COMMON_SHARE * len(loaded.corpus):
                share = f"{times / len(loaded.corpus):.0%}"
                problems.warning(
                    place, f"the value {value!r} of {name} is in {share} of documents and says little."
                )
    return replace(report, metadata=summaries)


def _summary(name: str, column: MetadataColumn) -> MetadataSummary:
    # A document has each value once at most, so that counts are numbers of documents.
    counts = column.vocabulary.counts
    sharing = np.zeros(len(column.values), dtype=np.bool_)
    sharing[column.values.row_of_value[counts[column.values.values] > 1]] = True
    most = int(np.argmax(counts)) if len(counts) else -1
    return MetadataSummary(
        name,
        coverage=column.coverage,
        sharing=float(sharing.mean()),
        distinct=len(counts),
        repeated=int(np.sum(counts > 1)),
        commonest=(column.vocabulary.names[most], int(counts[most])) if len(counts) else None,
    )


def _other_fields(source: Source, fields: Fields) -> list[str]:
    """Fields of short strings, or lists of them, that have no part yet."""
    if isinstance(source, Iterator):
        return []
    suitable: dict[str, bool] = {}
    for record in islice(iter_records(source, Problems()), _PEEKED_RECORDS):
        for name, value in (record.fields or {}).items():
            values = value if isinstance(value, list) else [value]
            short = all(isinstance(part, str) and len(part) <= _LONGEST_VALUE for part in values)
            suitable[name] = suitable.get(name, True) and short
    taken = {*fields.text, fields.labels, fields.id}
    return [name for name, suits in suitable.items() if suits and name not in taken]


def _tree(
    taxonomy: TaxonomySource | None,
    dataset: Dataset | None,
    loaded: LoadedCorpus,
    keywords: KeywordSource | None,
    problems: Problems,
) -> Taxonomy:
    if taxonomy is not None:
        return read_taxonomy(taxonomy, problems)
    if dataset is not None:
        return dataset.taxonomy
    named = [] if keywords is None else keyword_labels(keywords)
    return infer_taxonomy([*loaded.labels.values(), *named], skip_bad=True)


def _labelled(
    tree: Taxonomy,
    dataset: Dataset | None,
    loaded: LoadedCorpus,
    place: str,
    problems: Problems,
    *,
    required: bool,
) -> Supervision | None:
    """The documents a model would be shown; None where errors leave that open."""
    if not loaded.labels and required:
        problems.error(place, "no document is labelled; label a few documents for each leaf.")
        return None
    if dataset is None:
        return supervise(tree, loaded.labels, loaded.places.__getitem__, problems)
    dataset = replace(dataset, taxonomy=tree)
    truth = true_nodes(dataset, loaded, problems)
    if problems.has_errors:
        return None
    documents_at = np.bincount(truth, minlength=len(tree))
    few = [leaf for leaf in tree.leaves if documents_at[leaf] <= _PER_LEAF]
    if few:
        problems.warning(
            place, f"leaves with too few documents to draw {_PER_LEAF} and test: {_named(tree, few)}."
        )
    if dataset.first_draw is None:
        problems.note(
            str(dataset.folder), f"there is no {DRAW_FILE}: draw 0 is a random one, like the others."
        )
    return draw(dataset, truth, 0)


def _check_keywords(
    report: CheckReport,
    tree: Taxonomy,
    words: Mapping[int, tuple[str, ...]],
    corpus: Corpus,
    max_tokens: int | None,
) -> tuple[CheckReport, dict[int, tuple[str, ...]]]:
    """The report, and of the words those of nodes that have any of use."""
    used = corpus.tokens.values[_is_used(corpus, max_tokens)]
    counts = np.bincount(used, minlength=len(corpus.words))
    often = np.flatnonzero(counts >= report.min_count)
    vocabulary = Vocabulary(tuple(corpus.words.names[word] for word in often.tolist()), counts[often])
    known = known_keywords(words, vocabulary, tree, report.problems)
    found = tuple((tree.title(node), len(ids)) for node, ids in known.items())
    return replace(report, keywords_per_label=found), {node: words[node] for node in known}


def _check_labels(
    report: CheckReport, tree: Taxonomy, labelled: Supervision | None, place: str, allow_empty_leaves: bool
) -> CheckReport:
    if labelled is None:
        return replace(report, taxonomy=tree)
    problems = report.problems
    counts = np.bincount(labelled.nodes, minlength=len(tree)).tolist()
    without = leaves_without_labels(tree, labelled)
    if without:
        missing = (
            "a labelled document" if report.keywords_per_label is None else "labelled documents or keywords"
        )
        found = f"leaves without {missing}: {_named(tree, without)}"
        if allow_empty_leaves:
            problems.warning(place, f"{found}.")
        else:
            problems.error(place, f"{found}; label some, or allow it (--allow-empty-leaves).")
    single = [leaf for leaf in tree.leaves if counts[leaf] == 1]
    if single:
        problems.warning(place, f"leaves with only one labelled document: {_named(tree, single)}.")
    inner = [node for node in tree.inner if counts[node]]
    at_inner = sum(counts[node] for node in inner)
    if inner:
        stopping = f"{_documents(at_inner)} labelled with an inner category"
        problems.note(place, f"{stopping}, which counts for the leaves below it: {_named(tree, inner)}.")
    return replace(
        report,
        labelled=len(labelled),
        labelled_at_inner=at_inner,
        taxonomy=tree,
        labels_per_leaf=tuple((tree.title(leaf), counts[leaf]) for leaf in tree.leaves),
    )


def _named(tree: Taxonomy, nodes: Sequence[int]) -> str:
    titles = ", ".join(tree.title(node) for node in nodes[:_NAMED_NODES])
    more = len(nodes) - _NAMED_NODES
    return f"{titles} and {more} more" if more > 0 else titles


def _documents(number: int) -> str:
    return f"{number:,} document{'s' * (number != 1)}"
