"""Folders as input: datasets in the paper's layout, and folders of text files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from himecat.errors import DataError, UsageError
from himecat.input.builder import LoadedCorpus
from himecat.input.corpus import Supervision
from himecat.input.dataset import (
    DOCUMENT_FILES,
    DRAW_FILE,
    METADATA_FILE,
    TREE_FILE,
    Dataset,
    draw,
    open_dataset,
    true_nodes,
)
from himecat.input.documents import Fields
from himecat.input.problems import Problems, shortened
from himecat.input.set_draws import draw_sets, true_sets
from himecat.input.streams import shown
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.text_folders import holds_texts

_PER_LEAF = 5

Draw = Callable[[Taxonomy, LoadedCorpus, Problems], Supervision | None]


class Opened(NamedTuple):
    """What a fit or a check reads, once it is known what kind of source was given.

    Examples
    --------
    >>> opened(["a fox"], None, Fields(), Problems()).source
    ['a fox']
    """

    source: Any
    taxonomy: Any
    fields: Fields
    draw: Draw | None = None
    place: str = ""
    shown: Collection[int] | None = None


def opened(source: Any, taxonomy: Any, fields: Fields, problems: Problems) -> Opened:
    """Look at what was given: a dataset folder brings its documents, tree, metadata fields and labelled documents.

    Raises
    ------
    DataError
        A folder is neither a dataset nor one of text files.

    Examples
    --------
    >>> opened("docs.csv", None, Fields(), Problems()).place
    'docs.csv'
    """
    if not isinstance(source, str | os.PathLike):
        return Opened(source, taxonomy, fields)
    place = shown(source)
    if not os.path.isdir(source) or (not is_dataset(source) and holds_texts(source)):
        return Opened(source, taxonomy, fields, place=place)
    dataset = open_dataset(source, problems)
    try:
        fields = replace(fields, metadata=fields.metadata or dataset.metadata)
    except UsageError as error:
        raise DataError(f"{dataset.folder / METADATA_FILE}: {error}") from None
    place = shown(dataset.documents)
    tree = dataset.taxonomy if taxonomy is None else taxonomy
    listed = dataset.first_draw
    shown_rows = None if listed is None else {row for rows in listed.values() for row in rows}
    return Opened(dataset.documents, tree, fields, _first_draw(dataset, place), place, shown_rows)


def documents_of(source: Any) -> Any:
    """The file with the documents of a dataset folder; any other source as it is.

    Examples
    --------
    >>> documents_of(["a fox"])
    ['a fox']
    """
    if isinstance(source, str | os.PathLike) and os.path.isdir(source) and is_dataset(source):
        return open_dataset(source).documents
    return source


def is_dataset(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder has a file that makes it a dataset.

    Examples
    --------
    >>> is_dataset("no such folder")
    False
    """
    names = (TREE_FILE, METADATA_FILE, *DOCUMENT_FILES)
    return any(os.path.exists(os.path.join(folder, name)) for name in names)


def _first_draw(dataset: Dataset, place: str) -> Draw:
    """What `himecat evaluate` does with a dataset folder: all true labels are read, and draw 0 is taken."""

    def labelled(tree: Taxonomy, loaded: LoadedCorpus, problems: Problems) -> Supervision | None:
        own = replace(dataset, taxonomy=tree)
        sets = true_sets(own, loaded, problems)
        if sets is not None:
            return None if problems.has_errors else draw_sets(own, sets, 0)
        truth = true_nodes(own, loaded, problems)
        if problems.has_errors:
            return None
        documents_at = np.bincount(truth, minlength=len(tree))
        few = [leaf for leaf in tree.leaves if documents_at[leaf] <= _PER_LEAF]
        if few:
            problems.warning(
                place,
                f"leaves with too few documents to draw {_PER_LEAF} and test: "
                f"{shortened([tree.title(leaf) for leaf in few])}.",
            )
        if own.first_draw is None:
            problems.note(
                str(own.folder), f"there is no {DRAW_FILE}: draw 0 is a random one, like the others."
            )
        return draw(own, truth, 0)

    return labelled
