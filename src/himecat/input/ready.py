"""Checks of what comes as a ready `Corpus` or `Supervision`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from himecat.errors import UsageError
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import Tokenizer, get_tokenizer


def check_supervision(supervision: Supervision, n_rows: int, tree: Taxonomy) -> None:
    """Refuse labels of documents or nodes that there are not.

    Examples
    --------
    >>> import numpy as np
    >>> few = Supervision(np.array([5]), np.array([1]))
    >>> check_supervision(few, 3, Taxonomy.from_paths([("a",), ("b",)]))
    Traceback (most recent call last):
    himecat.errors.UsageError: The Supervision names the document 5, but they go from 0 to 2.
    """
    rows, nodes = supervision.rows, supervision.nodes
    if len(rows) != len(nodes):
        raise UsageError(f"The Supervision names {len(rows)} documents but {len(nodes)} nodes.")
    for given, first, end, what in (
        (rows, 0, n_rows, "document"),
        (supervision.nowhere, 0, n_rows, "document"),
        (nodes, 1, len(tree), "node"),
    ):
        outside = given[(given < first) | (given >= end)]
        if len(outside):
            raise UsageError(
                f"The Supervision names the {what} {outside[0]}, but they go from {first} to {end - 1}."
            )


def check_tokenizer(corpus: Corpus, tokenizer: str | Tokenizer) -> None:
    """Refuse a corpus that was read with another tokenizer than is asked for.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> check_tokenizer(read_corpus(["red fox"]), "unicode")
    """
    read_with, wanted = corpus.words.tokenizer.name, get_tokenizer(tokenizer).name
    if read_with != wanted:
        raise UsageError(
            f"The Corpus was read with the tokenizer {read_with!r}: say tokenizer={read_with!r}, not {wanted!r}."
        )


def with_columns_of(corpus: Corpus, readers: Sequence[ColumnReader]) -> Corpus:
    """A ready corpus with exactly the columns that the readers would give.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> dict(with_columns_of(read_corpus(["red fox"]), []).columns)
    {}
    """
    for reader in readers:
        if reader.name not in corpus.columns:
            raise UsageError(
                f"The Corpus was read without the column {reader.name!r}: pass the documents themselves, or do "
                f"without the {reader.name}."
            )
    return replace(corpus, columns={reader.name: corpus.columns[reader.name] for reader in readers})
