"""The page as a whole."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from string import Template

import numpy as np

from himecat.evaluation.metrics import Scores
from himecat.evaluation.report.confidence import confidence_section
from himecat.evaluation.report.documents import PlacedDocuments
from himecat.evaluation.report.examples import confusion_section, documents_section
from himecat.evaluation.report.markup import count, escape, percent, seconds, table
from himecat.evaluation.report.script import SCRIPT
from himecat.evaluation.report.tree import category_section, tree_section
from himecat.input.taxonomy.tree import Taxonomy


def render_page(
    taxonomy: Taxonomy,
    placed: PlacedDocuments,
    scores: Scores | None,
    title: str,
    settings: Mapping[str, str],
    timings: Mapping[str, float],
    examples: int,
    top_confusions: int,
) -> str:
    """The whole report as one HTML text."""
    if scores:
        sections = [("scores", "Scores", _scores(scores))]
    else:
        sections = [("overview", "Overview", _overview(taxonomy, placed))]
    sections.append(("tree", "Tree", tree_section(taxonomy, placed, scores)))
    if placed.known.any():
        sections.append(("confidence", "Confidence", confidence_section(taxonomy, placed)))
        sections.append(("confusions", "Confusions", confusion_section(taxonomy, placed, top_confusions)))
    sections.append(("documents", "Documents", documents_section(placed, examples)))
    sections.append(("categories", "Categories", category_section(taxonomy, placed, scores)))
    if settings or timings:
        sections.append(("settings", "Settings", _settings(settings, timings)))
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    package = files("himecat.evaluation.report")
    return Template(package.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(title),
        subtitle=_subtitle(taxonomy, placed),
        style=package.joinpath("style.css").read_text("utf-8"),
        script=SCRIPT,
        script_hash=f"sha256-{digest}",
        links="\n".join(f'<a href="#{key}">{heading}</a>' for key, heading, _ in sections),
        sections="\n\n".join(
            f'<section id="{key}"><h2>{heading}</h2>\n{body}\n</section>' for key, heading, body in sections
        ),
    )


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
    headings = ("Level", "Categories", "Documents", "Accuracy", "Micro F1", "Macro F1")
    rows = []
    for level in scores.levels:
        counts = [str(level.level), count(level.categories), count(level.documents)]
        shares = [f"{share:.3f}" for share in (level.accuracy, level.f1.micro, level.f1.macro)]
        rows.append("<tr>" + "".join(f'<td class="n">{cell}</td>' for cell in counts + shares) + "</tr>")
    heads = [f'<th scope="col" class="n">{heading}</th>' for heading in headings]
    return f"{main}{more}<h3>By level</h3>\n{table(heads, rows, 'narrow')}"


def _tiles(entries: list[tuple[str, str, str]], css: str = "") -> str:
    tiles = "\n".join(
        f'<div class="tile"><dt>{label}</dt><dd><b>{value}</b> <small>{note}</small></dd></div>'
        for label, value, note in entries
    )
    return f'<dl class="tiles {css}">\n{tiles}\n</dl>\n'


def _settings(settings: Mapping[str, str], timings: Mapping[str, float]) -> str:
    rows = [f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in settings.items()]
    parts = []
    if rows:
        parts.append(
            table(['<th scope="col">Setting</th>', '<th scope="col">Value</th>'], rows, "narrow settings")
        )
    if timings:
        spent = [
            f'<tr><th scope="row">{escape(step)}</th><td class="n">{seconds(duration)}</td></tr>'
            for step, duration in timings.items()
        ]
        parts.append(
            "<h3>Time</h3>\n"
            + table(['<th scope="col">Step</th>', '<th scope="col" class="n">Time</th>'], spent, "narrow")
        )
    return "\n".join(parts)
