"""What a fit says about itself: estimated accuracy, likely confusions, labels to look at again."""

from __future__ import annotations

from collections.abc import Mapping

from himecat.classifier.quality import LeafQuality, Quality
from himecat.evaluation.report.examples import snippet
from himecat.evaluation.report.markup import count, escape, heading, name, number_table, path, percent, table

# Rows of the tables of leaves and of doubtful labels.
_MOST_LEAVES, MOST_SUSPECTS = 20, 50


def quality_section(quality: Quality, texts: Mapping[str, str]) -> str:
    """The estimates with their intervals; `texts` are those of doubtful documents, by id.

    Examples
    --------
    >>> quality_section(Quality(n_labelled=3, n_held_out=0, n_looked_at=0), {})
    '<p class="empty">Too few labelled documents (3) to estimate the accuracy: at least 20 have to be held out.</p>'
    """
    if not quality.enough:
        return f'<p class="empty">{escape(quality.lines()[0])}</p>'
    return (
        f'<p class="muted">Estimated from {count(quality.n_held_out)} labelled documents that were held out in turn, '
        f"and from the confidence in {count(quality.n_looked_at)} documents. An interval holds the truth in about 9 of "
        "10 cases.</p>\n"
        f"{_levels(quality)}\n{_leaves(quality)}\n{_confusions(quality)}\n{_suspects(quality, texts)}"
    )


def _levels(quality: Quality) -> str:
    rows = [
        (str(one.level), percent(one.accuracy), f"{percent(one.low)} – {percent(one.high)}")
        for one in quality.levels
    ]
    return f"<h3>By level</h3>\n{number_table(('Level', 'Right', 'Interval'), rows)}"


def _leaves(quality: Quality) -> str:
    placed = [(one.precision, one) for one in quality.leaves if one.precision is not None]
    rows = [_leaf(one) for _, one in sorted(placed, key=lambda pair: pair[0])[:_MOST_LEAVES]]
    columns = (("Leaf", ""), ("Labelled", "n"), ("Placed", "n"), ("Right", "n"), ("Interval", "n"))
    headings = [heading(*column) for column in columns]
    return (
        "<h3>Leaves where what is placed is least often right</h3>\n"
        f"{table(headings, rows) if rows else '<p>Nothing was placed.</p>'}"
    )


def _leaf(one: LeafQuality) -> str:
    right, low, high = (percent(share or 0.0) for share in (one.precision, one.low, one.high))
    numbers = (count(one.labelled), count(one.placed), right, f"{low} – {high}")
    cells = "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f"<tr><td>{path(one.path)}</td>{cells}</tr>"


def _confusions(quality: Quality) -> str:
    rows = [
        f'<tr><td>{path(one.first)}</td><td>{path(one.second)}</td><td class="n">{one.documents:.0f}</td></tr>'
        for one in quality.confusions
    ]
    headings = [heading("Leaf"), heading("Confused with"), heading("Documents at least", "n")]
    shown = table(headings, rows, "confusions") if rows else '<p class="empty">None is expected.</p>'
    return f"<h3>Leaves that are likely confused</h3>\n{shown}"


def _suspects(quality: Quality, texts: Mapping[str, str]) -> str:
    rows = [
        f"<tr><td>{name(one.id)}</td><td>{path(one.label)} {percent(one.of_label)}</td>"
        f"<td>{path(one.suggested)} {percent(one.probability)}</td>"
        f'<td dir="auto">{escape(snippet(texts.get(one.id, ""), 160))}</td></tr>'
        for one in quality.suspects[:MOST_SUSPECTS]
    ]
    headings = [heading(title) for title in ("Document", "Its label", "The others say", "Text")]
    shown = table(headings, rows) if rows else '<p class="empty">No label contradicts the others.</p>'
    more = len(quality.suspects) - len(rows)
    left_out = f'<p class="muted">And {count(more)} more.</p>' if more else ""
    return f"<h3>Labels to look at again</h3>\n{shown}{left_out}"
