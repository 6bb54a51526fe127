"""The size of a dataset, its tree and its metadata: Table 1 of the paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from himecat.input.builder import LoadedCorpus
    from himecat.input.dataset import Dataset


@dataclass(frozen=True)
class MetadataStatistics:
    """One metadata type of a dataset.

    Attributes
    ----------
    name : str
        The field.
    values : int
        Number of distinct values.
    coverage : float
        Share of the documents that carry at least one.

    Examples
    --------
    >>> MetadataStatistics("authors", 1200, 0.98).values
    1200
    """

    name: str
    values: int
    coverage: float


@dataclass(frozen=True)
class DatasetStatistics:
    """The size of a dataset, of its tree and of its metadata.

    Attributes
    ----------
    name : str
        The folder's name.
    documents : int
        Number of documents.
    labelled : int or None
        How many of them the folder's own draw labels; None where it comes with none.
    nodes, leaves, depth : int
        Categories of the tree without its root, how many of them are leaves, and levels below the root.
    words_per_document : float
        Mean number of words of a document, as far as they were read: `max_tokens` and `min_count` of
        `load_corpus` shorten it.
    vocabulary : int
        Number of distinct words.
    metadata : tuple of MetadataStatistics
        One for each type.

    Examples
    --------
    >>> authors = MetadataStatistics("authors", 3, 0.5)
    >>> DatasetStatistics("letters", 10, 4, 3, 2, 2, 12.5, 80, (authors,)).as_dict()["metadata"]
    [{'name': 'authors', 'values': 3, 'coverage': 0.5}]
    """

    name: str
    documents: int
    labelled: int | None
    nodes: int
    leaves: int
    depth: int
    words_per_document: float
    vocabulary: int
    metadata: tuple[MetadataStatistics, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, loaded: LoadedCorpus) -> DatasetStatistics:
        """Count what a dataset holds.

        Examples
        --------
        >>> import tempfile
        >>> from himecat.input.builder import load_corpus
        >>> from himecat.input.dataset import open_dataset
        >>> from himecat.input.documents import Fields
        >>> from himecat.sample import write_sample
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_sample(folder, n_documents=200)
        ...     dataset = open_dataset(folder)
        ...     loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata))
        >>> DatasetStatistics.of(dataset, loaded).documents
        200
        """
        corpus, tree = loaded.corpus, dataset.taxonomy
        drawn = dataset.first_draw
        return cls(
            name=dataset.name,
            documents=len(corpus),
            labelled=None if drawn is None else sum(len(rows) for rows in drawn.values()),
            nodes=len(tree) - 1,
            leaves=tree.n_leaves,
            depth=tree.depth,
            words_per_document=float(np.mean(corpus.tokens.lengths)) if len(corpus) else 0.0,
            vocabulary=len(corpus.words),
            metadata=tuple(
                MetadataStatistics(kind, len(column.vocabulary), column.coverage)
                for kind, column in corpus.metadata.items()
            ),
        )

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {**asdict(self), "metadata": [asdict(kind) for kind in self.metadata]}
