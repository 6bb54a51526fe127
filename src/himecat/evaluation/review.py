"""Documents for a person to look at: the ones that teach most, with suggestions and what speaks for the first."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.protocol import Classifier
from himecat.errors import UsageError
from himecat.evaluation.explain import explain_row
from himecat.evaluation.review_workbook import open_openpyxl, workbook
from himecat.input.answers import N_SUGGESTIONS, ReviewColumns, cut, label_for
from himecat.input.corpus import Corpus
from himecat.input.documents import VALUE_SEPARATOR, Document, Fields, read_documents
from himecat.input.problems import Problems
from himecat.input.separators import SLASH
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.files import write_atomic
from himecat.runtime.terminal import harmless_cell, plain_json
from himecat.views.space import JointSpace

FORMATS = (".xlsx", ".csv", ".jsonl")
"""What a review can be written as, by the ending of its name."""

_REASONS = 6
_WIDTHS = {"id": 14, "text": 70, "metadata": 20, "suggestion": 32, "confidence": 11, "why": 40, "answer": 36}

Rows = npt.NDArray[np.int64]


def review_rows(
    source: Any,
    fields: Fields,
    corpus: Corpus,
    probabilities: npt.NDArray[np.float32],
    space: JointSpace,
    classifier: Classifier,
) -> list[dict[str, Any]]:
    """One row per document to review, in the order of the corpus.

    Parameters
    ----------
    source : path, table or iterable
        Where the documents are read once more, for their texts.
    corpus, probabilities
        The documents to review, and the probabilities of the leaves.
    """
    shown = _documents(source, fields, set(corpus.ids))
    columns = ReviewColumns.beside(fields)
    best = np.argsort(-probabilities, axis=1, kind="stable")[:, :N_SUGGESTIONS]
    taxonomy = space.taxonomy
    found = []
    for row, name in enumerate(corpus.ids):
        document = shown[name]
        texts = {field: text for field in fields.text if isinstance(text := document.extra.get(field), str)}
        # A plain text has no field.
        texts = texts or {fields.text[0]: document.text}
        line: dict[str, Any] = {fields.id: name}
        line |= {field: cut(texts.get(field, "")) for field in fields.text}
        line |= {kind: list(document.metadata.get(kind, ())) for kind in fields.metadata}
        leaves = [taxonomy.leaves[position] for position in best[row].tolist()]
        for number, leaf in enumerate(leaves):
            line[columns.suggestions[number]] = list(taxonomy.path(leaf))
            line[columns.confidences[number]] = round(float(probabilities[row, best[row, number]]), 4)
        line[columns.why] = _why(space, corpus, row, leaves[0], classifier)
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

    In tables `separator` stands between the levels of a category.
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
            return written[tuple(value)]
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
