"""Documents for a person to look at: the ones that teach most, with suggestions and what speaks for the first."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.protocol import Classifier
from himecat.classifier.set_assignments import SetAssignments
from himecat.classifier.several import SeveralClassifier
from himecat.errors import UsageError
from himecat.evaluation.explain import explain_row
from himecat.evaluation.review_workbook import open_openpyxl, workbook
from himecat.input.answer_nodes import N_SUGGESTIONS, ReviewColumns
from himecat.input.answers import cut, label_for
from himecat.input.corpus import Corpus
from himecat.input.documents import VALUE_SEPARATOR, Document, Fields, read_documents
from himecat.input.problems import Problems
from himecat.input.separators import SLASH
from himecat.input.several import PATHS
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.files import write_atomic
from himecat.runtime.terminal import harmless_cell, plain_json
from himecat.views.space import JointSpace

FORMATS = (".xlsx", ".csv", ".jsonl")
"""What a review can be written as, by the ending of its name."""

_REASONS = 6
_WIDTHS = {"id": 14, "text": 70, "metadata": 20, "suggestion": 32, "confidence": 11, "why": 40, "answer": 36}

Rows = npt.NDArray[np.int64]


class Suggestion(NamedTuple):
    """The paths of a suggestion, and the probability of each; several only where documents have several.

    Examples
    --------
    >>> Suggestion([3, 5], [0.8, 0.4]).nodes
    [3, 5]
    """

    nodes: list[int]
    confidences: list[float]


def leaf_suggestions(
    taxonomy: Taxonomy, probabilities: npt.NDArray[np.float32]
) -> Iterator[list[Suggestion]]:
    """The most probable leaves of each document.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> list(leaf_suggestions(tree, np.array([[0.25, 0.75]], dtype=np.float32)))
    [[Suggestion(nodes=[2], confidences=[0.75]), Suggestion(nodes=[1], confidences=[0.25])]]
    """
    for row in probabilities:
        best = np.argsort(-row, kind="stable")[:N_SUGGESTIONS].tolist()
        yield [Suggestion([taxonomy.leaves[one]], [round(float(row[one]), 4)]) for one in best]


def set_suggestions(placed: SetAssignments) -> Iterator[list[Suggestion]]:
    """The set of each document, and the most probable categories beside it, which `placed` has as its `best`.

    Examples
    --------
    >>> from himecat.classifier.set_assignments import assign_sets
    >>> tree, sure = Taxonomy.from_paths([("a",), ("b",), ("c",)]), np.array([[0.75, 0.25, 0.5]], dtype=np.float32)
    >>> found = next(set_suggestions(assign_sets(tree, np.array([1, 2, 3]), sure, 0.5, best=3)))
    >>> [one.nodes for one in found]
    [[1, 3], [2]]
    """
    assert placed.best is not None
    for row, (best, sure) in enumerate(zip(placed.best, placed.rounded_best, strict=True)):
        whole = Suggestion(placed.nodes_of(row), [round(one, 4) for one in placed.path_confidences(row)])
        others = zip(best[1:].tolist(), sure[1:].tolist(), strict=True)
        yield [whole, *(Suggestion([node], [round(one, 4)]) for node, one in others if node)]


def review_rows(
    source: Any,
    fields: Fields,
    corpus: Corpus,
    suggestions: Iterable[Sequence[Suggestion]],
    space: JointSpace,
    classifier: Classifier,
) -> list[dict[str, Any]]:
    """One row per document to review, in the order of the corpus.

    Parameters
    ----------
    source : path, table or iterable
        Where the documents are read once more, for their texts.
    corpus, suggestions
        The documents to review, and what is suggested for each.
    """
    shown = _documents(source, fields, set(corpus.ids))
    columns = ReviewColumns.beside(fields)
    path, sets = space.taxonomy.path, isinstance(classifier, SeveralClassifier)
    found = []
    for row, (name, suggested) in enumerate(zip(corpus.ids, suggestions, strict=True)):
        document = shown[name]
        texts = {field: text for field in fields.text if isinstance(text := document.extra.get(field), str)}
        # A plain text has no field.
        texts = texts or {fields.text[0]: document.text}
        line: dict[str, Any] = {fields.id: name}
        line |= {field: cut(texts.get(field, "")) for field in fields.text}
        line |= {kind: list(document.metadata.get(kind, ())) for kind in fields.metadata}
        for number, (nodes, sure) in enumerate(suggested):
            paths = [list(path(node)) for node in nodes]
            line[columns.suggestions[number]] = paths if sets else paths[0]
            line[columns.confidences[number]] = sure if sets else sure[0]
        line[columns.why] = _why(space, corpus, row, suggested[0].nodes[0], classifier)
        line[columns.answer] = ""
        found.append(line)
    return found


def _documents(source: Any, fields: Fields, wanted: set[str]) -> dict[str, Document]:
    found: dict[str, Document] = {}
    for batch in read_documents(source, replace(fields, extra=fields.text), Problems()):
        found.update({one.id: one for one in batch if one.usable and one.id in wanted})
        if len(found) == len(wanted):
            break
    return found


def _why(space: JointSpace, corpus: Corpus, row: int, node: int, classifier: Classifier) -> str:
    by_kind: dict[str, list[str]] = {}
    for one in explain_row(space, corpus, row, node, _REASONS, classifier):
        by_kind.setdefault(one.kind.removeprefix("metadata:"), []).append(one.name)
    words = by_kind.pop("word", [])
    listed = [", ".join(words)] if words else []
    return "; ".join([*listed, *(f"{kind}: {', '.join(names)}" for kind, names in by_kind.items())])


def check_format(path: str | os.PathLike[str]) -> str:
    """The ending of a review's name, or what is wrong with it.

    Examples
    --------
    >>> check_format("review.pdf")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: review.pdf: a review is written to a file that ends in .xlsx, .csv or .jsonl.
    """
    ending = os.path.splitext(os.fsdecode(path))[1].lower()
    if ending not in FORMATS:
        raise UsageError(
            f"{os.fsdecode(path)}: a review is written to a file that ends in .xlsx, .csv or .jsonl."
        )
    if ending == ".xlsx":
        # Better now than after all documents are placed.
        open_openpyxl("Writing .xlsx files (.csv needs nothing more)")
    return ending


def write_review(
    path: str | os.PathLike[str],
    rows: Sequence[Mapping[str, Any]],
    taxonomy: Taxonomy,
    fields: Fields,
    separator: str = SLASH,
) -> None:
    """Write rows of `review_rows` to a workbook, a CSV file or JSON lines, by the ending of the name.

    In tables `separator` stands between the levels of a category, and `;` between several.
    """
    ending = check_format(path)
    content: str | bytes
    if ending == ".jsonl":
        content = "".join(f"{plain_json(row)}\n" for row in rows)
    else:
        content = _spreadsheet(rows, taxonomy, fields, separator, as_workbook=ending == ".xlsx")
    write_atomic(path, content, what="The review")


def _spreadsheet(
    rows: Sequence[Mapping[str, Any]],
    taxonomy: Taxonomy,
    fields: Fields,
    separator: str,
    *,
    as_workbook: bool,
) -> str | bytes:
    columns = ReviewColumns.beside(fields)
    widths = {fields.id: _WIDTHS["id"]}
    widths |= dict.fromkeys(fields.text, _WIDTHS["text"]) | dict.fromkeys(
        fields.metadata, _WIDTHS["metadata"]
    )
    for suggestion, confidence in zip(columns.suggestions, columns.confidences, strict=True):
        widths |= {suggestion: _WIDTHS["suggestion"], confidence: _WIDTHS["confidence"]}
    widths |= {columns.why: _WIDTHS["why"], columns.answer: _WIDTHS["answer"]}
    # Depth first: what is below a category follows it.
    order = np.lexsort((taxonomy.depth_array, taxonomy.first_leaves)).tolist()
    written = {taxonomy.path(node): label_for(taxonomy, node, separator) for node in order if node}

    def cell(name: str, value: Any) -> Any:
        if name in columns.suggestions:
            paths = value if isinstance(value[0], list) else [value]
            return PATHS.join(written[tuple(path)] for path in paths)
        if name in columns.confidences and isinstance(value, list):
            return value[0] if len(value) == 1 else PATHS.join(map(str, value))
        return VALUE_SEPARATOR.join(value) if isinstance(value, list) else value

    plain = [{name: cell(name, value) for name, value in row.items()} for row in rows]
    if as_workbook:
        return workbook(plain, widths, choices=list(written.values()), choose_in=columns.answer)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(map(harmless_cell, widths))
    table.writerows([harmless_cell(row.get(name, "")) for name in widths] for row in plain)
    # With the mark by which spreadsheet programs know UTF-8.
    return "\ufeff" + stream.getvalue()
