"""Dataset folders in the paper's layout: every document carries its true path, and few are shown to a model.

A folder holds the documents (`corpus.jsonl`, also `.gz` or `.zst`, `corpus.parquet`, or one JSON-lines file
named `*.json`), the tree (`label_hier.txt`), the metadata fields' names (`meta_dict.json`) and, where it
comes with one, a draw of labelled documents (`doc_id.txt`).

A file of one's own can stand in the place of a folder (`himecat.input.labelled_file`): of its documents only some carry
labels, and these are shown to a model or held back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, UsageError
from himecat.input.builder import LoadedCorpus
from himecat.input.corpus import Supervision
from himecat.input.fields import Fields
from himecat.input.formats import iter_records
from himecat.input.labels import supervise
from himecat.input.problems import Problems, half_character, quoted, shortened
from himecat.input.separators import split_labels
from himecat.input.small_files import parse_json, read_text
from himecat.input.streams import path_kind, shown
from himecat.input.taxonomy.readers import read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy

DOCUMENT_FILES = ("corpus.jsonl", "corpus.jsonl.gz", "corpus.jsonl.zst", "corpus.parquet")
TREE_FILE = "label_hier.txt"
METADATA_FILE = "meta_dict.json"
DRAW_FILE = "doc_id.txt"

# Digits of the number of a document; no machine holds more documents.
_LONGEST_NUMBER = 18
# Documents that tell whether they have several paths.
_PEEKED = 20

NodeArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """A dataset folder, its small files read and checked; the documents are read by `load_corpus`.

    Attributes
    ----------
    folder, documents : Path
        The folder, and the file in it that holds the documents.
    taxonomy : Taxonomy
        The tree of `label_hier.txt`.
    metadata : tuple of str
        The metadata fields that `meta_dict.json` names.
    first_draw : dict from str to list of int, or None
        The rows of the labelled documents per leaf, as `doc_id.txt` names it; None without that file.
    folds : int
        Draws are folds: draw s holds back the s-th of so many parts of the labelled documents and shows the others.
        0 for draws of a few documents per leaf.
    truth : Path or None
        A file with the true labels, by id: then the documents show the labels that they carry.
    fields : Fields or None
        Of a file: which field plays which part.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> Dataset(Path("d"), Path("d/corpus.jsonl"), tree, ("tags",), None).metadata
    ('tags',)
    """

    folder: Path
    documents: Path
    taxonomy: Taxonomy
    metadata: tuple[str, ...]
    first_draw: Mapping[str, list[int]] | None
    folds: int = 0
    truth: Path | None = None
    fields: Fields | None = None

    @property
    def name(self) -> str:
        """What tables call it: the name of its folder, or of its file."""
        if self.is_file:
            return self.documents.name.split(".")[0] or self.documents.name
        # A folder given as "." has no name of its own.
        return self.folder.resolve().name

    @property
    def is_file(self) -> bool:
        """Whether it is a file of documents, some of which carry labels, and no dataset folder."""
        return self.folder == self.documents

    def paths_of(self, labels: Mapping[int, object]) -> Mapping[int, object]:
        """The labels of a file with their levels apart; those of a folder are lists, or paths with slashes."""
        if self.fields is None:
            return labels
        separator = self.fields.reading.separator
        return split_labels(labels, separator, self.taxonomy.nodes_by_name)[0]


def open_dataset(folder: str | PathLike[str], problems: Problems | None = None) -> Dataset:
    """Open a dataset folder.

    Parameters
    ----------
    folder : path
        The folder.
    problems : Problems, optional
        Takes notes about the tree; errors are raised.

    Raises
    ------
    DataError
        A file is missing or malformed.

    Examples
    --------
    >>> open_dataset("no/such/folder")
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no/such/folder: there is no such file or folder.
    """
    path = Path(folder)
    if (at := path_kind(path)) != "folder":
        kind = "there is no such file or folder" if at == "nothing" else "this is a file, not a folder"
        raise DataError(f"{shown(path)}: {kind}.")
    documents = _documents_file(path)
    if path_kind(path / TREE_FILE) == "nothing":
        raise DataError(
            f"{shown(path)}: {TREE_FILE} is missing; it holds the tree in `parent child child ...` lines."
        )
    taxonomy = read_taxonomy(path / TREE_FILE, problems)
    metadata = _metadata_fields(path / METADATA_FILE)
    draw_file = path / DRAW_FILE
    first_draw = None
    if path_kind(draw_file) != "nothing":
        first_draw = _labelled_rows(draw_file, taxonomy, cache(lambda: _has_sets(documents)))
    return Dataset(path, documents, taxonomy, metadata, first_draw)


def _documents_file(folder: Path) -> Path:
    found = [folder / name for name in DOCUMENT_FILES if path_kind(folder / name) != "nothing"]
    if not found:
        found = sorted(file for file in folder.glob("*.json") if file.name != METADATA_FILE)
    if not found:
        raise DataError(f"{shown(folder)}: the documents are missing; put them into {DOCUMENT_FILES[0]}.")
    if len(found) > 1:
        names = shortened([file.name for file in found])
        raise DataError(
            f"{shown(folder)}: {len(found)} files could hold the documents ({names}); keep one of them."
        )
    return found[0]


def _metadata_fields(file: Path) -> tuple[str, ...]:
    wanted = (
        'it should be {"metadata": [names of the metadata fields]}, with an empty list where there are none'
    )
    if path_kind(file) == "nothing":
        raise DataError(f"{shown(file.parent)}: {METADATA_FILE} is missing; {wanted}.")
    try:
        content = parse_json(read_text(file), shown(file))
    except DataError as error:
        raise DataError(f"{str(error).removesuffix('.')}; {wanted}.") from None
    fields = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(fields, list) or not all(isinstance(name, str) and name for name in fields):
        raise DataError(f"{shown(file)}: the names of the metadata fields were not found; {wanted}.")
    if half := half_character(fields):
        raise DataError(f"{shown(file)}: a name holds {half}, half of a character: repair it.")
    return tuple(dict.fromkeys(fields))


def _has_sets(documents: Path) -> bool:
    """Whether documents have lists of paths, so that inner categories and documents listed twice are no errors."""
    values = (
        value
        for record in islice(iter_records(documents, Problems()), _PEEKED)
        for value in (record.fields or {}).values()
    )
    return any(isinstance(value, list) and any(isinstance(part, list) for part in value) for value in values)


def _labelled_rows(file: Path, taxonomy: Taxonomy, sets: Callable[[], bool]) -> dict[str, list[int]]:
    """The rows per leaf from lines of a leaf and numbers; every error of the file is reported at once."""
    found = Problems(noun="lines")
    rows_of: dict[str, list[int]] = {}
    leaf_of_row: dict[int, str] = {}
    lines_of: dict[int, int] = {}
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{shown(file)} line {number}"
        # A leaf whose name has blanks is closed by a tab.
        name, _, rest = line.strip().partition("\t") if "\t" in line.strip() else line.strip().partition(" ")
        name = name.strip()
        try:
            node = taxonomy.find(name)
        except DataError as error:
            found.error(place, str(error))
            continue
        if not taxonomy.is_leaf(node) and not sets():
            found.error(place, f"{quoted(name)} is not a leaf; name one of the leaves below it.")
            continue
        if node in lines_of:
            found.error(place, f"{quoted(name)} has a line already (line {lines_of[node]}); keep one.")
            continue
        lines_of[node] = number
        rows_of[name] = []
        for text in rest.split():
            # str.isdigit also accepts superscripts and other scripts' digits, which are no row numbers.
            if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
                found.error(place, f"{quoted(text)} is not a document number (0, 1, 2, ...).")
            elif (row := int(text)) in leaf_of_row and not sets():
                found.error(place, f"document {row} is listed already, for {quoted(leaf_of_row[row])}.")
            else:
                leaf_of_row[row] = name
                rows_of[name].append(row)
    if not lines_of and not found.has_errors:
        found.error(shown(file), "the file is empty; write `leaf<TAB>document numbers` lines, or remove it.")
    found.raise_errors()
    return rows_of


def true_nodes(dataset: Dataset, loaded: LoadedCorpus, problems: Problems | None = None) -> NodeArray:
    """The node every document truly belongs to, by row; -1 where a file of one's own does not say.

    Parameters
    ----------
    dataset : Dataset
        The folder.
    loaded : LoadedCorpus
        Its documents.
    problems : Problems, optional
        Receives what is found instead of having it raised; a document with an error then has node -1.

    Raises
    ------
    DataError
        A document has no labels, or labels that do not fit the tree, or was left out when the documents were
        read; all such documents are named.

    Examples
    --------
    >>> from himecat.input.builder import load_corpus
    >>> from himecat.input.documents import Fields
    >>> dataset = Dataset(Path("d"), Path("d/c.json"), Taxonomy.from_paths([("a",), ("b",)]), (), None)
    >>> loaded = load_corpus([{"text": "red fox", "labels": ["b"]}, {"text": "cat", "labels": "a"}], Fields())
    >>> true_nodes(dataset, loaded).tolist()
    [2, 1]
    """
    found = Problems() if problems is None else problems
    if loaded.skipped and not found.has_errors:
        found.error(
            str(dataset.documents),
            f"documents that cannot be used: {len(loaded.skipped)}; draws count them, so repair them.",
        )
    labelled = supervise(dataset.taxonomy, dataset.paths_of(loaded.labels), loaded.places.__getitem__, found)
    truth = np.full(len(loaded.corpus), -1, dtype=np.int64)
    truth[labelled.rows] = labelled.nodes
    for row in () if dataset.is_file else range(len(truth)):
        if row not in loaded.labels:
            found.error(loaded.places[row], "the document has no labels; a dataset needs them for every one.")
    if problems is None:
        found.raise_errors()
    return truth


def draw(dataset: Dataset, truth: NodeArray, number: int, per_leaf: int = 5) -> Supervision:
    """One draw of the labelled documents.

    Draw 0 is the one `doc_id.txt` lists, as it stands. Every other draw s (and draw 0 without the file) takes
    one `random.Random(s)` through the leaves in the order of their names and samples `per_leaf` documents of
    each. A leaf with few documents gives fewer, so that one is left to test with; a leaf's only document is
    labelled all the same, because a leaf without examples could never be predicted at all.

    Parameters
    ----------
    dataset : Dataset
        The folder.
    truth : array of int
        The true node of every document, as `true_nodes` gives it.
    number : int
        Which draw.
    per_leaf : int
        Documents per leaf, for the draws that are not listed in a file.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> dataset = Dataset(Path("d"), Path("d/c.json"), tree, (), {"a": [2], "b": [1]})
    >>> labelled = draw(dataset, np.array([1, 2, 1, 2]), 0)
    >>> labelled.rows.tolist(), labelled.nodes.tolist()
    ([1, 2], [2, 1])
    """
    if number < 0:
        raise UsageError(f"A draw has a number from 0 on, not {number}.")
    if per_leaf < 1:
        raise UsageError(f"A draw needs at least 1 document per leaf, not {per_leaf}.")
    if dataset.folds:
        return _without_fold(dataset, truth, number)
    if number == 0 and dataset.first_draw is not None:
        return _listed_draw(dataset, dataset.first_draw, truth)
    taxonomy = dataset.taxonomy
    rows_of = {taxonomy.path(leaf): np.flatnonzero(truth == leaf).tolist() for leaf in taxonomy.leaves}
    chosen = random_rows(rows_of, per_leaf, number)
    return _supervision({row: taxonomy.find(path) for path, rows in chosen.items() for row in rows})


def _without_fold(dataset: Dataset, truth: NodeArray, number: int) -> Supervision:
    """All labelled documents but those of one fold; a category's only document is in none."""
    rng = random.Random(0)
    labelled = np.flatnonzero(truth > 0)
    fold_of = np.full(len(truth), -1, dtype=np.int64)
    for node in np.unique(truth[labelled]).tolist():
        rows = labelled[truth[labelled] == node].tolist()
        if len(rows) > 1:
            first = rng.randrange(dataset.folds)
            for place, row in enumerate(rng.sample(rows, len(rows))):
                fold_of[row] = (first + place) % dataset.folds
    held = int((fold_of >= 0).sum())
    if held < dataset.folds:
        raise DataError(
            f"{dataset.documents}: {held} labelled documents can be held back, which are too few for {dataset.folds} "
            "folds; label more of them."
        )
    rows = labelled[fold_of[labelled] != number]
    return Supervision(rows, truth[rows])


def random_rows(
    rows_of: Mapping[tuple[str, ...], list[int]], per_leaf: int, seed: int
) -> dict[tuple[str, ...], list[int]]:
    """A few of the rows of every path: the rule of all draws that no file lists.

    Examples
    --------
    >>> random_rows({("a",): [0, 2, 3], ("b",): [1]}, 2, seed=0)
    {('a',): [2, 3], ('b',): [1]}
    """
    rng = random.Random(seed)
    return {
        path: rng.sample(rows, min(per_leaf, max(len(rows) - 1, 1), len(rows)))
        for path, rows in sorted(rows_of.items(), key=lambda item: (item[0][-1], item[0]))
    }


def _listed_draw(dataset: Dataset, first_draw: Mapping[str, list[int]], truth: NodeArray) -> Supervision:
    problems = Problems()
    place = str(dataset.folder / DRAW_FILE)
    taxonomy = dataset.taxonomy
    node_of: dict[int, int] = {}
    for name, rows in first_draw.items():
        leaf = taxonomy.find(name)
        for row in rows:
            if row >= len(truth):
                problems.error(
                    place,
                    f"document {row} of {quoted(name)} does not exist: the last one is {len(truth) - 1}.",
                )
            elif truth[row] != leaf:
                problems.error(
                    place,
                    f"document {row} is listed for {taxonomy.title(leaf)}, "
                    f"but its own label is {taxonomy.title(int(truth[row]))}.",
                )
            else:
                node_of[row] = leaf
    problems.raise_errors()
    return _supervision(node_of)


def _supervision(node_of: Mapping[int, int]) -> Supervision:
    rows = sorted(node_of)
    return Supervision(
        np.array(rows, dtype=np.int64), np.array([node_of[row] for row in rows], dtype=np.int64)
    )
