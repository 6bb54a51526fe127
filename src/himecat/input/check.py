"""Checking documents, tree and labels before any training: a summary, and every problem with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from himecat.input.builder import LoadedCorpus
from himecat.input.check_report import CheckReport, MetadataSummary, render
from himecat.input.corpus import Corpus, MetadataColumn, Ragged
from himecat.input.documents import Fields, is_missing, missing_field
from himecat.input.folders import opened
from himecat.input.formats import Source, iter_records
from himecat.input.problems import Problems, quoted, shortened
from himecat.input.taxonomy.readers import TaxonomySource
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.validate import Validated, validate
from himecat.input.values import number_name, value_name

__all__ = ["CheckReport", "MetadataSummary", "check", "render"]

_FEWEST_WORDS = 3
_COMMON_SHARE = 0.5
_PEEKED_RECORDS = 1000
_LONGEST_VALUE = 60


def check(
    source: Source | Corpus,
    taxonomy: TaxonomySource | None = None,
    fields: Fields | None = None,
    *,
    labels: Any = None,
    min_count: int = 1,
    max_tokens: int = 300,
    **options: Any,
) -> CheckReport:
    """Check what a fit would learn from; bad input raises nothing, everything found is in the report.

    Without errors in the report, a fit with the same options accepts the input.

    Parameters
    ----------
    source : path, table or iterable
        The documents, or a dataset folder: every document then needs its true label, and draw 0 of the folder
        says which of them count as labelled.
    taxonomy : path, mapping or Taxonomy, optional
        The tree; without one it is the dataset folder's, or made of the labels in the documents.
    fields : Fields, optional
        Which field plays which part; the metadata fields are by default those the dataset folder names.
    labels : sequence, optional
        The label of each document, instead of those in the documents.
    min_count, max_tokens : int
        How often a word must occur to be used, and how many words of a document are used.
    **options
        `keywords`, `tokenizer`, `skip_bad` and `allow_empty_leaves`, as for `validate`.

    Examples
    --------
    >>> documents = [{"text": "a red fox", "labels": "animals"}, {"text": "an old oak", "labels": "plant"}]
    >>> report = check(documents, {"animals": None, "plants": None}, allow_empty_leaves=True)
    >>> [str(problem) for problem in report.problems.of("error")]
    ["document 1: unknown label 'plant'; did you mean 'plants'?"]
    """
    problems = Problems(stops=False)
    fields = fields or Fields()
    given = None
    with problems.recorded():
        given = opened(source, taxonomy, fields, problems)
    if given is None or problems.has_errors:
        return CheckReport(problems)
    source, fields, place = given.source, given.fields, given.place
    found = validate(
        source,
        labels,
        taxonomy=given.taxonomy,
        fields=fields,
        problems=problems,
        min_count=min_count,
        max_tokens=max_tokens,
        whole_texts=True,
        draw=given.draw if labels is None else None,
        **options,
    )
    if found.loaded is None:
        return CheckReport(problems)
    report = _check_texts(CheckReport(problems, min_count=min_count), found.loaded, max_tokens, place)
    report = _check_metadata(report, found.loaded, place)
    if not fields.metadata and (others := _other_fields(source, found.fields)):
        problems.note(place, f"these fields could serve as metadata: {shortened(others)}.")
    return _check_labels(report, found, place)


def _check_texts(report: CheckReport, loaded: LoadedCorpus, max_tokens: int, place: str) -> CheckReport:
    corpus, problems = loaded.corpus, report.problems
    words = loaded.all_words or corpus.tokens
    used = words.head(max_tokens)
    short = np.flatnonzero(corpus.tokens.lengths < _FEWEST_WORDS)
    if len(short):
        problems.warning(
            loaded.place(int(short[0])),
            f"{_documents(len(short))} with fewer than {_FEWEST_WORDS} known words, this one first.",
        )
    repeats = _repeated_texts(words)
    if repeats:
        here, earlier = (loaded.place(row) for row in repeats[0])
        first = f"this one first, like {' '.join(earlier.rsplit(' ', 2)[-2:])}"
        problems.warning(here, f"{_documents(len(repeats))} with the same words as an earlier one, {first}.")
    longer = int(np.sum(words.lengths > max_tokens))
    if longer:
        problems.note(place, f"{_documents(longer)} with more than {max_tokens} words: the rest is not used.")
    return replace(
        report,
        documents=len(corpus),
        words=len(np.unique(used.values)),
        vocabulary=len(corpus.words),
        tokens=len(used.values),
        words_per_document=(float(np.median(words.lengths)), int(words.lengths.max())),
    )


def _repeated_texts(words: Ragged) -> list[tuple[int, int]]:
    """Rows with the same words in the same order as an earlier row, and that row."""
    first_with: dict[bytes, int] = {}
    repeats = []
    for row in range(len(words)):
        if len(words[row]):
            earlier = first_with.setdefault(blake2b(words[row].tobytes(), digest_size=16).digest(), row)
            if earlier != row:
                repeats.append((row, earlier))
    return repeats


def _check_metadata(report: CheckReport, loaded: LoadedCorpus, place: str) -> CheckReport:
    problems = report.problems
    # A field that is in no document at all was reported when the documents were read.
    told = {found.message.partition(";")[0] for found in (*problems.of("warning"), *problems.of("error"))}
    summaries = tuple(_summary(name, column) for name, column in loaded.corpus.metadata.items())
    for summary in summaries:
        name = quoted(summary.name)
        if summary.commonest is None:
            if missing_field(summary.name) not in told:
                problems.warning(place, f"no document has a value in {name}; leave the field out.")
        elif not summary.repeated:
            problems.warning(place, f"every value of {name} occurs once, so it connects no documents.")
        else:
            value, times = summary.commonest
            if times > _COMMON_SHARE * len(loaded.corpus):
                share = f"{times / len(loaded.corpus):.0%}"
                problems.warning(
                    place, f"the value {quoted(value)} of {name} is in {share} of documents and says little."
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


def _other_fields(source: Source | Corpus, fields: Fields) -> list[str]:
    """Fields of short strings, numbers or dates, or lists of them, that have no part yet."""
    if isinstance(source, (Iterator, Corpus)):
        return []
    found: dict[str, list[object]] = {}
    for record in islice(iter_records(source, Problems(), reading=fields.reading), _PEEKED_RECORDS):
        for name, value in (record.fields or {}).items():
            values = value if isinstance(value, list) else [value]
            found.setdefault(name, []).extend(part for part in values if not is_missing(part))
    taken = {*fields.text, *fields.label_fields, fields.id}
    return [name for name, values in found.items() if name not in taken and _could_connect(values)]


def _could_connect(values: Sequence[object]) -> bool:
    names = [value if isinstance(value, str) else value_name(value) for value in values]
    if not all(name is not None and len(name) <= _LONGEST_VALUE for name in names):
        return False
    # Whole numbers of which none comes back are ids, or numbers of rows.
    return len(set(names)) < len(names) or any(number_name(value) is None for value in values)


def _check_labels(report: CheckReport, found: Validated, place: str) -> CheckReport:
    report, tree, labelled = replace(report, taxonomy=found.taxonomy), found.taxonomy, found.supervision
    if tree is None or labelled is None:
        return report
    problems = report.problems
    counts = np.bincount(labelled.nodes, minlength=len(tree)).tolist()
    single = [leaf for leaf in tree.leaves if counts[leaf] == 1]
    if single:
        problems.warning(place, f"leaves with only one labelled document: {_named(tree, single)}.")
    inner = [] if found.several else [node for node in tree.inner if counts[node]]
    at_inner = sum(counts[node] for node in inner)
    if inner:
        stopping = f"{_documents(at_inner)} labelled with an inner category"
        problems.note(place, f"{stopping}, which counts for the leaves below it: {_named(tree, inner)}.")
    known = None
    if found.keywords is not None and found.loaded is not None:
        index = found.loaded.corpus.words.index
        known = tuple(
            (tree.title(node), sum(word in index for word in words))
            for node, words in labelled.keywords.items()
        )
    return replace(
        report,
        labelled=len(np.unique(labelled.rows)),
        labelled_at_inner=at_inner,
        labels_per_leaf=tuple((tree.title(leaf), counts[leaf]) for leaf in tree.leaves),
        keywords_per_label=known,
    )


def _named(tree: Taxonomy, nodes: Sequence[int]) -> str:
    return shortened([tree.title(node) for node in nodes])


def _documents(number: int) -> str:
    return f"{number:,} document{'s' * (number != 1)}"
