"""From raw input to what a fit learns from: documents, tree, labels and keywords, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, UsageError
from himecat.input.builder import encode_documents, load_corpus
from himecat.input.columns import ColumnReader, OpenColumns, with_extra_fields
from himecat.input.corpus import Corpus, Supervision, Vocabulary
from himecat.input.documents import Document, Fields, is_missing, read_documents
from himecat.input.keywords import keyword_labels, known_keywords, read_keywords
from himecat.input.labels import label_names, leaves_without_labels, supervise
from himecat.input.problems import Problems
from himecat.input.taxonomy.readers import infer_taxonomy, read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import UNICODE, Tokenizer, get_tokenizer
from himecat.runtime.progress import Progress


@dataclass(frozen=True)
class Material:
    """Everything a fit learns from.

    Examples
    --------
    >>> from himecat import Taxonomy, read_corpus
    >>> few = Supervision(np.array([0]), np.array([1]))
    >>> Material(read_corpus(["a fox"]), Taxonomy.from_paths([("x",), ("y",)]), few, Problems()).mean_length
    2
    """

    corpus: Corpus
    taxonomy: Taxonomy
    supervision: Supervision
    problems: Problems
    keywords: Mapping[int, tuple[str, ...]] | None = None

    @property
    def mean_length(self) -> int:
        """Known words of an average document, at least 1."""
        return max(1, round(float(self.corpus.tokens.lengths.mean())))


def read_material(
    X: Any,
    y: Any,
    *,
    taxonomy: Any,
    fields: Fields,
    keywords: Any = None,
    tokenizer: str | Tokenizer = UNICODE,
    readers: Sequence[ColumnReader] = (),
    min_count: int,
    max_tokens: int,
    allow_empty_leaves: bool,
    skip_bad: bool,
    progress: Progress,
    threads: int | None = None,
) -> Material:
    """Read documents, tree and labels; every problem found is said, and errors stop here."""
    problems = Problems()
    # Before the documents: the tree is small, and a fault in it should not wait for them.
    given_tree = None if taxonomy is None else read_taxonomy(taxonomy, problems)
    labels: Mapping[int, object] = {}
    if isinstance(X, Corpus):
        corpus = _with_columns_of(X, readers)
        read_with, wanted = corpus.words.tokenizer.name, get_tokenizer(tokenizer).name
        if read_with != wanted:
            raise UsageError(
                f"The Corpus was read with the tokenizer {read_with!r}: say tokenizer={read_with!r}, not {wanted!r}."
            )
        place_of: Callable[[int], str] = _place_in_memory
    else:
        loaded = load_corpus(
            X,
            fields,
            min_count=min_count,
            max_tokens=max_tokens,
            tokenizer=tokenizer,
            problems=problems,
            skip_bad=skip_bad,
            readers=readers,
            progress=progress,
            threads=threads,
        )
        corpus, labels = loaded.corpus, loaded.labels

        def place_of(row: int) -> str:
            return loaded.places[row]

        if isinstance(y, Supervision) and loaded.skipped:
            raise UsageError(
                f"A Supervision counts rows, and {len(loaded.skipped)} documents were left out: pass the labels "
                "as a list, or a Corpus."
            )
        if y is not None and not isinstance(y, Supervision):
            y = _without_skipped(y, len(corpus), loaded.skipped)
    if isinstance(y, Supervision):
        if given_tree is None:
            raise UsageError("A Supervision names nodes of a tree: pass the taxonomy too.")
        tree, supervision = given_tree, y
        _check_supervision(supervision, len(corpus), tree)
    else:
        if y is not None:
            labels = labels_by_row(y, len(corpus))
        if not labels and not keywords:
            raise DataError(
                f"No document carries labels in the field {fields.labels!r}: label about five documents of "
                "each category."
            )
        tree = given_tree or _spanned_tree(labels, keywords, place_of, problems)
        supervision = supervise(tree, labels, place_of, problems)
        problems.raise_errors()
    words: dict[int, tuple[str, ...]] | None = None
    if keywords is not None:
        words = read_keywords(keywords, tree, problems, corpus.words.tokenizer)
        problems.raise_errors()
        known = known_keywords(words, corpus.words, tree, problems)
        supervision = replace(supervision, keywords={node: words[node] for node in known})
    if tree.n_leaves < 2:
        raise DataError(f"The tree has {tree.n_leaves} leaf: with fewer than 2 there is nothing to choose.")
    _check_leaves(tree, supervision, allow_empty_leaves, problems)
    if len(corpus.words) == 0:
        raise DataError(
            f"No word occurs {min_count} times or more in the {len(corpus)} documents: add documents, or lower "
            f"min_count (--set min_count={max(1, min_count // 2)})."
        )
    _check_labelled_words(corpus, supervision, problems)
    if not corpus.metadata:
        problems.note("", "No metadata fields were named: text alone is used.")
    for problem in problems:
        progress.say(f"{problem.severity}: {problem}")
    if problems.hidden("warning"):
        progress.say(f"warning: ... and {problems.hidden('warning')} more.")
    return Material(corpus, tree, supervision, problems, words)


def read_new(
    X: Any,
    fields: Fields,
    *,
    words: Vocabulary,
    metadata: Mapping[str, Vocabulary],
    max_tokens: int,
    readers: Sequence[ColumnReader] = (),
    skip_bad: bool,
    threads: int | None = None,
) -> tuple[Corpus, npt.NDArray[np.bool_]]:
    """Documents that come after fit, in the ids of its vocabularies, and which of them can be used."""
    problems = Problems()
    usable: list[bool] = []

    def batches() -> Iterator[list[Document]]:
        for batch in read_documents(X, with_extra_fields(fields, readers), problems):
            usable.extend(document.usable for document in batch)
            yield batch

    with OpenColumns(readers, X, problems) as columns:
        corpus = encode_documents(batches(), words, metadata, max_tokens, columns, threads=threads)
    if not skip_bad or problems.has_fatal:
        problems.raise_errors()
    return corpus, np.array(usable, dtype=bool)


def _spanned_tree(
    labels: Mapping[int, object], keywords: Any, place_of: Callable[[int], str], problems: Problems
) -> Taxonomy:
    """The tree that the labels and the labels of keywords span; what is no label at all is told with its place."""
    for row, label in labels.items():
        try:
            label_names(label)
        except DataError as error:
            problems.error(place_of(row), str(error))
    problems.raise_errors()
    also = [] if keywords is None else keyword_labels(keywords)
    return infer_taxonomy([*labels.values(), *also])


def _with_columns_of(corpus: Corpus, readers: Sequence[ColumnReader]) -> Corpus:
    """A ready corpus with exactly the columns that the readers would give."""
    for reader in readers:
        if reader.name not in corpus.columns:
            raise UsageError(
                f"The Corpus was read without the column {reader.name!r}: pass the documents themselves, or do "
                f"without the {reader.name}."
            )
    return replace(corpus, columns={reader.name: corpus.columns[reader.name] for reader in readers})


def _place_in_memory(row: int) -> str:
    return f"document {row}"


def _as_list(y: Any) -> list[object]:
    """Labels of any container that has one for each document, as Python's own values."""
    if hasattr(y, "columns"):
        raise UsageError("The labels are a table: pass one of its columns, with a label for each document.")
    # Columns of polars and pyarrow give values of their own kinds one by one.
    for method in ("to_pylist", "to_list"):
        if hasattr(y, method):
            return list(getattr(y, method)())
    return list(y)


def _without_skipped(y: Any, n_rows: int, skipped: Sequence[int]) -> list[object]:
    given = _as_list(y)
    if len(given) != n_rows + len(skipped):
        raise UsageError(f"There are {n_rows + len(skipped)} documents but {len(given)} labels.")
    left_out = set(skipped)
    return [label for position, label in enumerate(given) if position not in left_out]


def labels_by_row(y: Any, n_rows: int) -> dict[int, Any]:
    """The labels of the documents that have one, by their row.

    Examples
    --------
    >>> labels_by_row(["arts", None, float("nan"), [], ["arts", "opera"]], 5)
    {0: 'arts', 4: ['arts', 'opera']}
    """
    given = _as_list(y)
    if len(given) != n_rows:
        raise UsageError(f"There are {n_rows} documents but {len(given)} labels.")

    return {row: label for row, label in enumerate(given) if not is_missing(label)}


def _check_supervision(supervision: Supervision, n_rows: int, tree: Taxonomy) -> None:
    rows, nodes = supervision.rows, supervision.nodes
    if len(rows) != len(nodes):
        raise UsageError(f"The Supervision names {len(rows)} documents but {len(nodes)} nodes.")
    for found, first, end, what in ((rows, 0, n_rows, "document"), (nodes, 1, len(tree), "node")):
        outside = found[(found < first) | (found >= end)]
        if len(outside):
            raise UsageError(
                f"The Supervision names the {what} {outside[0]}, but they go from {first} to {end - 1}."
            )


def _check_leaves(
    tree: Taxonomy, supervision: Supervision, allow_empty_leaves: bool, problems: Problems
) -> None:
    without = leaves_without_labels(tree, supervision)
    if not without:
        return
    names = ", ".join(tree.title(leaf) for leaf in without[:10]) + (", ..." if len(without) > 10 else "")
    count = f"{len(without)} of {tree.n_leaves} leaves have" if len(without) > 1 else "One leaf has"
    if len(without) == tree.n_leaves:
        raise DataError(
            "No leaf has a labelled document or a keyword that documents use: label about five documents of each."
        )
    if not allow_empty_leaves:
        raise DataError(
            f"{count} no labelled document: {names}. Label some, or allow it (allow_empty_leaves=True, "
            "--allow-empty-leaves)."
        )
    problems.warning("", f"{count} no labelled document and will rarely be chosen: {names}.")


def _check_labelled_words(corpus: Corpus, supervision: Supervision, problems: Problems) -> None:
    """Words are what a labelled document teaches with."""
    silent = int((corpus.tokens.lengths[supervision.rows] == 0).sum())
    if silent == len(supervision) and not supervision.keywords:
        raise DataError(
            "No labelled document has a word that occurs often enough: label others, or lower min_count "
            "(--set min_count=1)."
        )
    if silent:
        count = "One labelled document has" if silent == 1 else f"{silent} labelled documents have"
        problems.warning("", f"{count} no word that occurs often enough to learn from.")
