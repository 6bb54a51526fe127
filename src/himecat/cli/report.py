"""The page of `himecat fit --report` and `himecat predict --report`.

Text is not kept while documents are read: the file is read again, once for the labels and once for the few texts that
are shown, so that memory holds no more than a line about each document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from himecat.errors import OutputError, UsageError

if TYPE_CHECKING:
    from himecat.classifier.assignments import Assignments
    from himecat.estimator import HiMeCat
    from himecat.evaluation.report import ReportDocument
    from himecat.input.documents import Document
    from himecat.runtime.progress import Progress


class Placed:
    """Where the documents of a file were placed, gathered batch by batch."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._parts: list[Assignments] = []

    def add(self, ids: Sequence[str], placed: Assignments) -> None:
        """Take the next batch."""
        self.ids += ids
        self._parts.append(placed)

    def documents(self, labels: dict[int, int]) -> list[ReportDocument]:
        """Every document, without its text; `labels` are true nodes by row."""
        from himecat.evaluation.report import ReportDocument

        found: list[ReportDocument] = []
        paths: dict[int, tuple[str, ...]] = {}
        for part in self._parts:
            for row, node in enumerate(part.nodes.tolist()):
                path = paths.setdefault(node, part.path(row))
                # What a document's own label says is no prediction to score.
                kept = part.labelled is not None and bool(part.labelled[row])
                known = None if kept else labels.get(len(found))
                true_path = None if known is None else part.taxonomy.path(known)
                found.append(ReportDocument(self.ids[len(found)], "", path, part.confidences(row), true_path))
        return found


def check_report(report: Path | None, documents: Path) -> None:
    """Refuse what would fail in the end, before any work is done: a place that is none, documents read only once."""
    if report is None:
        return
    if report.is_dir() or not report.absolute().parent.is_dir():
        raise OutputError(f"{report} cannot be written: name a file in a folder that exists.")
    if documents.exists() and not documents.is_file() and not documents.is_dir():
        raise UsageError(f"--report reads the documents more than once, and {documents} is no file.")


def place_all(model: HiMeCat, documents: Path) -> Placed:
    """Place the documents that a model was fitted on."""
    from himecat.input.problems import Problems

    found = Placed()
    for origins, _, placed in model.iter_assignments(documents, Problems()):
        found.add([origin.id for origin in origins], placed)
    return found


def write_page(
    target: Path,
    model: HiMeCat,
    documents: Path,
    placed: Placed,
    *,
    fitted: bool,
    progress: Progress,
) -> None:
    """Write the page.

    Parameters
    ----------
    fitted : bool
        Whether these are the documents of the fit: then their labels were seen, and the estimate of the fit stands
        in the place of scores.
    """
    from himecat.evaluation.metrics import score
    from himecat.evaluation.report import write_report
    from himecat.evaluation.report.documents import PlacedDocuments
    from himecat.evaluation.report.examples import documents_to_read
    from himecat.evaluation.report.page import EXAMPLES
    from himecat.evaluation.report.quality import MOST_SUSPECTS

    taxonomy = model.taxonomy_
    labels: dict[int, int] = {}
    if model.gives_sets:
        progress.say("note: the report shows the surest path of each document, and no scores.")
    elif not fitted:
        labels, strange = _true_nodes(model, documents)
        if strange:
            progress.say(
                f"note: the report leaves out the labels of {strange:,} documents: they are not in the tree."
            )
    shown = placed.documents(labels)
    stands = PlacedDocuments(taxonomy, shown)
    wanted = {row for group in documents_to_read(stands, EXAMPLES) for row in group.tolist()}
    quality = model.quality_ if fitted else None
    doubtful = {one.id for one in quality.suspects[:MOST_SUSPECTS]} if quality is not None else set()
    texts: dict[str, str] = {}
    for row, document in enumerate(_read(model, documents)):
        if row in wanted:
            shown[row] = replace(shown[row], text=document.text, metadata=document.metadata)
        if document.id in doubtful:
            texts[document.id] = document.text
    known = stands.known
    write_report(
        target,
        taxonomy=taxonomy,
        documents=shown,
        scores=score(taxonomy, stands.truths[known], stands.nodes[known]) if known.any() else None,
        title=documents.name,
        settings={name: str(value) for name, value in model.method_.as_dict().items()},
        quality=quality,
        suspect_texts=texts,
    )
    progress.say(f"The report is in {target}.")


def _read(model: HiMeCat, documents: Path) -> Iterator[Document]:
    from himecat.input.documents import read_documents
    from himecat.input.problems import Problems

    for batch in read_documents(documents, model.fields(), Problems()):
        yield from batch


def _true_nodes(model: HiMeCat, documents: Path) -> tuple[dict[int, int], int]:
    """The nodes of the labels that documents carry, by row, and how many carry one that is not in the tree."""
    from himecat.input.labels import supervise
    from himecat.input.problems import Problems
    from himecat.input.separators import path_of

    labels = {row: one.labels for row, one in enumerate(_read(model, documents)) if one.labels is not None}
    paths = {row: path_of(label, model.separator_) for row, label in labels.items()}
    found = supervise(model.taxonomy_, paths, str, Problems())
    nodes = dict(zip(found.rows.tolist(), found.nodes.tolist(), strict=True))
    return nodes, len(labels) - len(nodes)
