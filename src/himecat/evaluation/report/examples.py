"""Documents worth reading, and the categories most often mixed up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from himecat.evaluation.metrics import Outcome, confusions
from himecat.evaluation.report.documents import PlacedDocuments, ReportDocument
from himecat.evaluation.report.markup import bar, count, escape, heading, name, path, percent, table
from himecat.input.taxonomy.tree import Taxonomy

SNIPPET_LENGTH = 280
VALUES_SHOWN = 8


def documents_to_read(placed: PlacedDocuments, examples: int) -> list[npt.NDArray[np.int64]]:
    """Positions of the documents of highest and lowest confidence, and of the most confident mistakes.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> documents = [ReportDocument(str(sure), "text", ["a"], [sure], ["b"]) for sure in (0.5, 0.9, 0.7)]
    >>> [group.tolist() for group in documents_to_read(PlacedDocuments(tree, documents), 1)]
    [[1], [0], [1]]
    """
    order = placed.by_confidence()
    highest = order[: min(examples, -(-len(order) // 2))]
    return [highest, order[len(highest) :][::-1][:examples], order[placed.wrong[order]][:examples]]


def documents_section(placed: PlacedDocuments, examples: int) -> str:
    """The documents of highest and lowest confidence, and the most confident mistakes where the truth is known."""
    highest, lowest, mistakes = documents_to_read(placed, examples)
    parts = [
        _group("Most confident", "The documents of highest confidence.", placed, highest),
        _group("Least confident", "The first places to look for doubtful documents.", placed, lowest),
    ]
    if placed.known.any():
        text = "Sure but wrong: look here for ambiguous categories, or for labels that are wrong themselves."
        parts.append(_group("Most confident mistakes", text, placed, mistakes))
    return "\n".join(parts)


def _group(title: str, text: str, placed: PlacedDocuments, positions: npt.NDArray[np.int64]) -> str:
    cards = [_card(placed.documents[i], int(placed.outcome[i])) for i in positions.tolist()]
    body = "\n".join(cards) if cards else '<p class="empty">There is no such document.</p>'
    return f'<h3>{title}</h3>\n<p class="muted">{text}</p>\n<div class="cards">\n{body}\n</div>'


def _card(document: ReportDocument, outcome: int) -> str:
    steps = "".join(
        f'<li>{name(step)} <span class="level">{bar(value)}{percent(value)}</span></li>'
        for step, value in zip(document.path, document.confidence, strict=True)
    )
    assigned = f'<ol class="steps">{steps}</ol>' if steps else '<p class="steps none">nothing assigned</p>'
    truth = ""
    if document.true_path and list(document.true_path) != list(document.path):
        truth = f'<p class="truth"><b>Truly</b> {path(document.true_path)}</p>'
    return (
        f'<article class="doc"><header>{_verdict(document, outcome)}'
        f'<span class="id">{name(document.id)}</span></header>{assigned}{truth}'
        f'<p class="snippet" dir="auto">{escape(snippet(document.text))}</p>{_metadata(document)}</article>'
    )


def _verdict(document: ReportDocument, outcome: int) -> str:
    if outcome == Outcome.RIGHT:
        return '<span class="verdict right">✓ right</span>'
    if outcome == Outcome.WRONG:
        return '<span class="verdict wrong">✗ wrong</span>'
    if outcome == Outcome.STOPPED:
        return f'<span class="verdict stopped">◐ {"right so far" if document.path else "stopped"}</span>'
    return ""


def snippet(text: str, length: int = SNIPPET_LENGTH) -> str:
    """The beginning of a text on one line, cut between words where that is possible.

    Examples
    --------
    >>> snippet("Light  bends in glass.", 12)
    'Light bends …'
    """
    # Only the beginning is looked at, with room for whitespace that shrinks: texts can be long.
    beginning = text.lstrip()[: 4 * length]
    line = " ".join(beginning.split())
    if len(line) <= length:
        return line if len(beginning) < 4 * length else f"{line} …"
    whole_words = line[: length + 1].rsplit(" ", 1)[0]
    return f"{whole_words if length // 2 <= len(whole_words) <= length else line[:length]} …"


def _metadata(document: ReportDocument) -> str:
    entries = []
    for kind, given in document.metadata.items():
        values: Sequence[str] = [given] if isinstance(given, str) else list(given)
        if not values:
            continue
        shown = ", ".join(name(value) for value in values[:VALUES_SHOWN])
        if len(values) > VALUES_SHOWN:
            shown += f" and {count(len(values) - VALUES_SHOWN)} more"
        entries.append(f"<div><dt>{name(kind)}</dt> <dd>{shown}</dd></div>")
    return f'<dl class="meta">{"".join(entries)}</dl>' if entries else ""


def confusion_section(taxonomy: Taxonomy, placed: PlacedDocuments, top: int) -> str:
    """The most frequent pairs of true and wrongly assigned category."""
    known = placed.known
    found = confusions(taxonomy, placed.truths[known], placed.nodes[known], top)
    if not found:
        return '<p class="empty">No document with a known category was put in a wrong one.</p>'
    rows = []
    for pair in found:
        true, given = taxonomy.lineages[pair.truth], taxonomy.lineages[pair.predicted]
        shared = sum(a == b for a, b in zip(true, given, strict=False))
        rows.append(
            f"<tr><td>{path(taxonomy.path(pair.truth), shared)}</td>"
            f"<td>{path(taxonomy.path(pair.predicted), shared)}</td>"
            f'<td class="n">{count(pair.documents)}</td>'
            f'<td class="share">{bar(pair.share, "bad")}{percent(pair.share)}</td></tr>'
        )
    wrong = int(placed.wrong.sum())
    listed = sum(pair.documents for pair in found)
    text = (
        f"{count(wrong)} of {count(int(known.sum()))} documents with a known category are in a wrong one; "
        f"the pairs below are {count(listed)} of them. The share is of the true category's documents."
    )
    columns = (("True", ""), ("Assigned instead", ""), ("Documents", "n"), ("Share", "share"))
    headings = [heading(*column) for column in columns]
    return f'<p class="muted">{text}</p>\n' + table(headings, rows, "confusions")
