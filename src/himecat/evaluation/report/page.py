"""The page as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from himecat.classifier.quality import Quality
from himecat.errors import UsageError
from himecat.evaluation.metrics import Scores
from himecat.evaluation.report.confidence import confidence_section
from himecat.evaluation.report.documents import PlacedDocuments, ReportDocument
from himecat.evaluation.report.examples import confusion_section, documents_section
from himecat.evaluation.report.markup import (
    count,
    escape,
    heading,
    number_table,
    page,
    percent,
    seconds,
    table,
)
from himecat.evaluation.report.quality import quality_section
from himecat.evaluation.report.tree import category_section, tree_section
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.files import write_atomic

EXAMPLES = 8
"""Documents in each list of a page."""


def write_report(
    path: str | os.PathLike[str],
    *,
    taxonomy: Taxonomy,
    documents: Sequence[ReportDocument],
    scores: Scores | None = None,
    title: str = "Categories",
    settings: Mapping[str, str] = MappingProxyType({}),
    timings: Mapping[str, float] = MappingProxyType({}),
    examples: int = EXAMPLES,
    top_confusions: int = 20,
    quality: Quality | None = None,
    suspect_texts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the report; the file needs no other file and no network.

    Parameters
    ----------
    path : path
        The HTML file to write; an existing one is replaced only once the new one is complete.
    taxonomy : Taxonomy
    documents : sequence of ReportDocument
        Every document that was assigned a path, whether or not its true category is known.
    scores : Scores, optional
        What `himecat.evaluation.metrics.score` measured on the documents whose category is known; None for documents
        without labels.
    title : str
    settings : mapping of str to str
        What the run was made with, shown as a table.
    timings : mapping of str to float
        Seconds by step.
    examples : int
        Number of documents shown in each list.
    top_confusions : int
        Number of confused pairs shown.
    quality : Quality, optional
        What a fit says about itself, `HiMeCat.quality_`.
    suspect_texts : mapping of str to str
        The texts of the documents whose labels are in doubt, by id.

    Raises
    ------
    UsageError
        A path is not in the tree, or the scores belong to another tree.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> tree = Taxonomy.from_paths([("science", "optics"), ("arts",)])
    >>> document = ReportDocument("d1", "Light bends in glass.", ["science", "optics"], [0.9, 0.7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "report.html"
    ...     write_report(page, taxonomy=tree, documents=[document], title="Papers")
    ...     "Light bends in glass." in page.read_text(encoding="utf-8")
    True
    """
    if scores is not None and scores.taxonomy != taxonomy:
        raise UsageError("The scores belong to another tree than the documents.")
    if examples < 0 or top_confusions < 0:
        raise UsageError("examples and top_confusions must be 0 or more.")
    placed = PlacedDocuments(taxonomy, documents)
    if scores:
        sections = [("scores", "Scores", _scores(scores))]
    else:
        sections = [("overview", "Overview", _overview(taxonomy, placed))]
    if quality is not None:
        sections.append(("quality", "Quality", quality_section(quality, suspect_texts)))
    sections.append(("tree", "Tree", tree_section(taxonomy, placed, scores)))
    if placed.known.any():
        sections.append(("confidence", "Confidence", confidence_section(taxonomy, placed)))
        sections.append(("confusions", "Confusions", confusion_section(taxonomy, placed, top_confusions)))
    sections.append(("documents", "Documents", documents_section(placed, examples)))
    sections.append(("categories", "Categories", category_section(taxonomy, placed, scores)))
    if settings or timings:
        sections.append(("settings", "Settings", _settings(settings, timings)))
    write_atomic(path, page(title, _subtitle(taxonomy, placed), sections))


def _subtitle(taxonomy: Taxonomy, placed: PlacedDocuments) -> str:
    levels = f"{taxonomy.depth} level{'' if taxonomy.depth == 1 else 's'}"
    return (
        f"{count(len(placed))} documents, {count(len(taxonomy) - 1)} categories "
        f"({count(taxonomy.n_leaves)} leaves) on {levels}"
    )


def _overview(taxonomy: Taxonomy, placed: PlacedDocuments) -> str:
    reached = float(np.mean(taxonomy.leaf_position[placed.nodes] >= 0)) if len(placed) else 0.0
    used = int((placed.assigned[1:] > 0).sum())
    median = float(np.median(placed.certainty)) if len(placed) else 0.0
    tiles = _tiles(
        [
            ("Documents", count(len(placed)), "in this report"),
            ("Categories in use", count(used), f"of {count(len(taxonomy) - 1)} have documents"),
            ("Reached a leaf", percent(reached), "of the documents (coverage)"),
            ("Median confidence", percent(median), "in the whole path"),
        ],
        "main",
    )
    return f'{tiles}<p class="muted">No scores: the true categories of these documents were not given.</p>'


def _scores(scores: Scores) -> str:
    precision, recall = scores.hierarchical_precision, scores.hierarchical_recall
    main = _tiles(
        [
            ("Leaf micro F1", f"{scores.leaf.micro:.3f}", "leaves; every document weighs the same"),
            ("Leaf macro F1", f"{scores.leaf.macro:.3f}", "leaves; every leaf weighs the same"),
            ("Overall micro F1", f"{scores.overall.micro:.3f}", "all levels; every document weighs the same"),
            ("Overall macro F1", f"{scores.overall.macro:.3f}", "all levels; every category weighs the same"),
        ],
        "main",
    )
    more = _tiles(
        [
            ("Documents scored", count(scores.n_documents), "their category is known"),
            ("Whole path right", percent(scores.path_accuracy), "of the documents scored"),
            ("Reached a leaf", percent(scores.coverage), "of the documents scored (coverage)"),
            (
                "Precision / recall",
                f"{precision:.3f} / {recall:.3f}",
                "hierarchical: all categories on the paths",
            ),
        ]
    )
    levels = number_table(
        ("Level", "Categories", "Documents", "Accuracy", "Micro F1", "Macro F1"),
        (
            [str(level.level), count(level.categories), count(level.documents)]
            + [f"{share:.3f}" for share in (level.accuracy, level.f1.micro, level.f1.macro)]
            for level in scores.levels
        ),
    )
    return f"{main}{more}<h3>By level</h3>\n{levels}"


def _tiles(entries: list[tuple[str, str, str]], css: str = "") -> str:
    tiles = "\n".join(
        f'<div class="tile"><dt>{label}</dt><dd><b>{value}</b> <small>{note}</small></dd></div>'
        for label, value, note in entries
    )
    return f'<dl class="tiles {css}">\n{tiles}\n</dl>\n'


def _settings(settings: Mapping[str, str], timings: Mapping[str, float]) -> str:
    parts = []
    if settings:
        rows = [f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in settings.items()]
        parts.append(table([heading("Setting"), heading("Value")], rows, "narrow settings"))
    if timings:
        rows = [
            f'<tr><th scope="row">{escape(step)}</th><td class="n">{seconds(duration)}</td></tr>'
            for step, duration in timings.items()
        ]
        parts.append(f"<h3>Time</h3>\n{table([heading('Step'), heading('Time', 'n')], rows, 'narrow')}")
    return "\n".join(parts)
