"""A file of documents, some of which carry labels, in the place of a dataset folder."""

from __future__ import annotations

from itertools import chain
from os import PathLike, fspath
from pathlib import Path

from himecat.errors import DataError
from himecat.input.dataset import Dataset
from himecat.input.documents import Fields, is_missing, read_documents
from himecat.input.formats import iter_records
from himecat.input.label_studio import label_in
from himecat.input.labels import readable_labels
from himecat.input.prepare import prepare
from himecat.input.problems import Problems
from himecat.input.separators import SLASH, split_labels
from himecat.input.several import parted
from himecat.input.taxonomy.readers import infer_taxonomy, read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy


def open_file(
    documents: str | PathLike[str],
    taxonomy: str | PathLike[str] | None,
    fields: Fields,
    *,
    folds: int = 0,
    truth: str | PathLike[str] | None = None,
    problems: Problems | None = None,
) -> Dataset:
    """Open a file of documents, some of which carry labels.

    Parameters
    ----------
    documents : path
        The file.
    taxonomy : path, optional
        The tree; without it, the tree that the labels span.
    fields : Fields
        Which field plays which part.
    folds, truth
        See `Dataset`.
    problems : Problems, optional
        Receives notes on how the file is read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "docs.jsonl")
    ...     _ = file.write_text('{"text": "x", "labels": "a"}\\n{"text": "y", "labels": "b"}\\n{"text": "z"}\\n')
    ...     dataset = open_file(file, None, Fields(), folds=2)
    >>> dataset.name, dataset.taxonomy.n_leaves, dataset.is_file
    ('docs', 2, True)
    """
    path = Path(documents)
    problems = Problems() if problems is None else problems
    fields = prepare(path, fields, True, problems, reading=True).fields
    problems.raise_errors()
    tree = _spanned(path, fields, truth) if taxonomy is None else read_taxonomy(taxonomy)
    second = None if truth is None else Path(truth)
    return Dataset(path, path, tree, fields.metadata, None, folds, second, fields)


def _spanned(documents: Path, fields: Fields, truth: str | PathLike[str] | None) -> Taxonomy:
    """The tree that the labels of a file span, and those of the file with the truth."""
    problems = Problems()
    read = chain.from_iterable(read_documents(documents, fields, problems))
    found = [(one.place, one.labels) for one in read if one.labels is not None]
    problems.raise_errors()
    if not found:
        raise DataError(f"{documents}: no document carries labels in the field {fields.labels!r}.")
    if truth is not None:
        found += [(f"{fspath(truth)}, {name}", label) for name, label in read_truth(truth, fields).items()]
    given = parted({row: label for row, (_, label) in enumerate(found)}, fields.reading.separator)
    labels, separator = split_labels(given.labels, fields.reading.separator, None)
    readable = readable_labels(labels, lambda number: found[given.row(number)][0], problems)
    problems.raise_errors()
    return infer_taxonomy(readable.values(), slashed=separator.text == SLASH)


def read_truth(file: str | PathLike[str], fields: Fields) -> dict[str, object]:
    """The labels in a file by the ids of their documents; other fields may be missing.

    Examples
    --------
    >>> read_truth("no-such-file.csv", Fields())
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-file.csv: ...
    """
    problems = Problems()
    found: dict[str, object] = {}
    for record in iter_records(file, problems, reading=fields.reading):
        if record.fields is None:
            continue
        name = record.fields.get(fields.id)
        try:
            label = label_in(record, fields.label_fields)
        except DataError as error:
            problems.error(record.place, str(error))
            continue
        if name is None or is_missing(name):
            problems.error(record.place, f"there is no id in the field {fields.id!r} to join by.")
        elif str(name) in found:
            problems.error(record.place, f"the id {str(name)!r} stands in the file twice.")
        elif not is_missing(label):
            found[str(name)] = label
    problems.raise_errors()
    if not found:
        raise DataError(f"{fspath(file)}: no document has labels in the field {fields.labels!r}.")
    return found
