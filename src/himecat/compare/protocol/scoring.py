"""Scoring a file of predictions against a dataset folder, or a file with the true labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import Scores, score
from himecat.evaluation.set_metrics import SetScores, score_sets
from himecat.input.builder import load_corpus
from himecat.input.corpus import Supervision
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.formats import iter_records
from himecat.input.labelled_file import read_truth
from himecat.input.labels import is_nowhere
from himecat.input.prepare import prepare
from himecat.input.problems import Problems, quoted
from himecat.input.separators import split_labels
from himecat.input.set_draws import draw_sets, of_rows, true_sets
from himecat.input.several import parted, resolved
from himecat.input.streams import path_kind, shown
from himecat.input.taxonomy.readers import read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy, label_names


def read_predictions(
    predictions: str | os.PathLike[str], taxonomy: Taxonomy
) -> tuple[dict[str, int], set[str]]:
    """The node that each document id was assigned, 0 where nothing was; and the ids that only kept their label."""
    problems = Problems()
    found: dict[str, int] = {}
    labelled: set[str] = set()
    for record in iter_records(predictions, problems, {"id", "path", "labelled"}):
        if record.fields is None:
            continue
        name, path = record.fields.get("id"), record.fields.get("path")
        named = isinstance(name, str | int) and not isinstance(name, bool)
        if not named or not isinstance(path, list) or not all(isinstance(part, str) for part in path):
            problems.error(record.place, "a prediction needs an 'id' and a 'path' (a list of names).")
            continue
        node = _node(taxonomy, path)
        if node is None:
            problems.error(record.place, f"the path {quoted('/'.join(path))} is not in the tree.")
            continue
        if str(name) in found:
            problems.error(record.place, f"the id {quoted(name)} was predicted before.")
        found[str(name)] = node
        if record.fields.get("labelled") is True:
            labelled.add(str(name))
    problems.raise_errors()
    return found, labelled


def _node(taxonomy: Taxonomy, path: list[str]) -> int | None:
    """The node of a path, also of one of before the tree was changed; None where there is none."""
    found = taxonomy.walk(path)
    if found is None and taxonomy.earlier is not None:
        try:
            return taxonomy.find(path)
        except DataError:
            return None
    return found


def read_sets(predictions: str | os.PathLike[str], taxonomy: Taxonomy) -> dict[str, list[int]]:
    """The nodes that each document id was given; of those that only kept their labels there are none."""
    problems = Problems()
    found: dict[str, list[int]] = {}
    for record in iter_records(predictions, problems, {"id", "path", "paths", "labelled"}):
        if record.fields is None or record.fields.get("labelled") is True:
            continue
        name, paths = record.fields.get("id"), record.fields.get("paths")
        if paths is None and isinstance(record.fields.get("path"), list):
            paths = [record.fields["path"]]
        if not isinstance(name, str | int) or not isinstance(paths, list):
            problems.error(record.place, "a prediction needs an 'id' and 'paths' (a list of lists of names).")
            continue
        nodes = [_node(taxonomy, path) if isinstance(path, list) else None for path in paths]
        if None in nodes:
            problems.error(record.place, f"the path {quoted(paths[nodes.index(None)])} is not in the tree.")
        found[str(name)] = [node for node in nodes if node]
    problems.raise_errors()
    return found


def _score_sets(
    tree: Taxonomy, truth: Supervision, names: Sequence[str], predictions: str | os.PathLike[str]
) -> tuple[SetScores, int, int]:
    """Scores of sets of paths; `names` are the ids of the rows of the truth."""
    given = read_sets(predictions, tree)
    rows = np.unique(truth.rows)
    present = np.array([row for row in rows.tolist() if names[row] in given], dtype=np.int64)
    if not len(present):
        raise DataError(
            f"{shown(predictions)} has no prediction to score: himecat predict --ignore-labels places all."
        )
    pairs = [(row, node) for row in present.tolist() for node in given[names[row]]]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    scores = score_sets(tree, of_rows(truth, present), Supervision(*found))
    return scores, len(rows) - len(present), 0


def score_predictions(
    predictions: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    without_draw: int | None = None,
    per_leaf: int = 5,
    fields: Fields | None = None,
    taxonomy: str | os.PathLike[str] | Taxonomy | None = None,
) -> tuple[Scores | SetScores, int, int]:
    """Score a file of predictions; also returns how many documents of the dataset have none, or kept their label.

    What a document's own label says is no prediction, and is left out.

    Parameters
    ----------
    predictions : path
        JSON lines with `id` and `path`.
    folder : path
        The dataset folder with the true labels, or a file with ids and labels.
    without_draw : int, optional
        Leave out the documents labelled in this draw.
    per_leaf : int
        Labelled documents per leaf of that draw.
    fields : Fields, optional
        The dataset's fields with text, labels and id.
    taxonomy : path or Taxonomy, optional
        The tree, of a file; without it, the one that predictions and labels span.
    """
    if path_kind(folder) == "file":
        if without_draw is not None:
            raise UsageError(f"Draws are those of a dataset folder, and {os.fspath(folder)} is a file.")
        return _score_by_file(predictions, folder, fields or Fields(), taxonomy)
    dataset = open_dataset(folder)
    if taxonomy is not None:
        dataset = replace(dataset, taxonomy=read_taxonomy(taxonomy))
    loaded = load_corpus(dataset.documents, fields or Fields(), max_tokens=1)
    if (sets := true_sets(dataset, loaded)) is not None:
        if without_draw is not None:
            seen = draw_sets(dataset, sets, without_draw, per_leaf).rows
            sets = of_rows(sets, np.setdiff1d(sets.rows, seen))
        return _score_sets(dataset.taxonomy, sets, loaded.corpus.ids, predictions)
    truth = true_nodes(dataset, loaded)
    assigned, labelled = read_predictions(predictions, dataset.taxonomy)
    known = set(loaded.corpus.ids)
    # A document that could not be read has a place instead of an id, and an empty path.
    strange = [name for name, node in assigned.items() if node and name not in known]
    if strange:
        raise DataError(
            f"{shown(predictions)}: the id {quoted(strange[0])} is not in {shown(dataset.documents)}."
        )
    wanted = np.ones(len(truth), dtype=np.bool_)
    if without_draw is not None:
        wanted[draw(dataset, truth, without_draw, per_leaf).rows] = False
    present = np.array([name in assigned for name in loaded.corpus.ids], dtype=np.bool_)
    kept = np.array([name in labelled for name in loaded.corpus.ids], dtype=np.bool_)
    rows = np.flatnonzero(wanted & present & ~kept)
    if not len(rows):
        why = (
            ": all documents kept their own labels; himecat predict --ignore-labels places them"
            if labelled
            else ""
        )
        raise DataError(f"{shown(predictions)} has no prediction to score{why}.")
    nodes = np.array([assigned[loaded.corpus.ids[row]] for row in rows.tolist()], dtype=np.int64)
    return (
        score(dataset.taxonomy, truth[rows], nodes),
        int((wanted & ~present).sum()),
        int((wanted & kept).sum()),
    )


def _score_by_file(
    predictions: str | os.PathLike[str],
    file: str | os.PathLike[str],
    fields: Fields,
    taxonomy: str | os.PathLike[str] | Taxonomy | None,
) -> tuple[Scores | SetScores, int, int]:
    problems = Problems()
    fields = prepare(file, fields, True, problems).fields
    problems.raise_errors()
    written = read_truth(file, fields)
    names, separator = list(written), fields.reading.separator
    known_tree = None if taxonomy is None else read_taxonomy(taxonomy)
    known_names = None if known_tree is None else known_tree.nodes_by_name
    given = parted(dict(enumerate(written.values())), separator, known_tree)
    labels, _ = split_labels(given.labels, separator, known_names)
    tree = known_tree or _spanned(predictions, labels)
    found = resolved(
        tree, replace(given, labels=labels), lambda row: f"{shown(file)}, {quoted(names[row])}", problems
    )
    problems.raise_errors()
    if given.rows is not None:
        return _score_sets(tree, found, names, predictions)
    assigned, kept = read_predictions(predictions, tree)
    known = [(names[row], node) for row, node in zip(found.rows.tolist(), found.nodes.tolist(), strict=True)]
    rows = [(node, assigned[name]) for name, node in known if name in assigned and name not in kept]
    if not rows:
        raise DataError(
            f"{shown(predictions)} has no prediction to score: none of its ids has a label in {shown(file)}, or all "
            "documents kept their own labels (himecat predict --ignore-labels places them)."
        )
    truth, nodes = np.array(rows, dtype=np.int64).T
    missing = sum(name not in assigned for name, _ in known)
    return score(tree, truth, nodes), missing, sum(name in kept for name, _ in known)


def _spanned(predictions: str | os.PathLike[str], labels: Mapping[int, object]) -> Taxonomy:
    """The tree of the predicted paths, and of the true labels that are not in it."""
    records = (record.fields for record in iter_records(predictions, Problems()) if record.fields is not None)
    found = chain.from_iterable(
        paths if isinstance(paths := one.get("paths"), list) else [one.get("path")] for one in records
    )
    paths = [*dict.fromkeys(tuple(map(str, path)) for path in found if isinstance(path, list) and path)]
    if not paths:
        raise DataError(f"{shown(predictions)} has no prediction with a path.")
    tree = Taxonomy.from_paths(paths)
    for label in labels.values():
        if is_nowhere(label):
            continue
        try:
            tree.find(label_names(label))
        except DataError:
            paths.append(tuple(label_names(label)))
    return Taxonomy.from_paths(dict.fromkeys(paths))
