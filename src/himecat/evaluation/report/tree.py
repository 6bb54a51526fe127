"""The category tree and the table of categories."""

from __future__ import annotations

from himecat.evaluation.metrics import Scores
from himecat.evaluation.report.documents import PlacedDocuments
from himecat.evaluation.report.markup import bar, count, escape, heading, name, path, percent, table
from himecat.input.taxonomy.tree import Taxonomy

# Larger trees start with only their first level unfolded.
UNFOLDED_UP_TO = 60


def tree_section(taxonomy: Taxonomy, placed: PlacedDocuments, scores: Scores | None) -> str:
    """The tree as a nested list that folds, with the numbers of each category."""
    unfold = len(taxonomy) - 1 <= UNFOLDED_UP_TO
    nodes = [""] * len(taxonomy)
    # Children have higher ids than their parent, so their HTML is ready when the parent needs it.
    for node in range(len(taxonomy) - 1, 0, -1):
        cells = _cells(taxonomy, placed, scores, node)
        if taxonomy.is_leaf(node):
            nodes[node] = f'<li><div class="row">{cells}</div></li>'
        else:
            below = "\n".join(nodes[child] for child in taxonomy.children[node])
            state = " open" if unfold else ""
            nodes[node] = (
                f'<li><details{state}><summary><span class="row">{cells}</span></summary>\n'
                f"<ul>\n{below}\n</ul></details></li>"
            )
    top = "\n".join(nodes[child] for child in taxonomy.children[0])
    labels = _LABELS if scores else _LABELS_UNSCORED
    heads = "".join(f'<span class="{css}">{label}</span>' for css, label in labels)
    width = "scored" if scores else "unscored"
    return (
        '<p class="tools" data-tree-tools hidden><button type="button" data-open="1">Unfold all</button> '
        '<button type="button" data-open="">Fold all</button></p>\n'
        f'<div class="tree {width}"><div class="row head" aria-hidden="true">{heads}</div>\n'
        f"<ul>\n{top}\n</ul></div>{_unassigned(placed)}"
    )


_LABELS = [
    ("name", "Category"),
    ("n", "Assigned"),
    ("f1", "F1"),
    ("n", "Precision"),
    ("n", "Recall"),
    ("n", "Support"),
]
_LABELS_UNSCORED = [("name", "Category"), ("n", "Assigned"), ("f1", "Share"), ("n", "Confidence")]


def _unassigned(placed: PlacedDocuments) -> str:
    documents = int((placed.nodes == 0).sum())
    if not documents:
        return ""
    return f'\n<p class="muted">Not assigned to any category: {count(documents)} of {count(len(placed))}.</p>'


def _cells(taxonomy: Taxonomy, placed: PlacedDocuments, scores: Scores | None, node: int) -> str:
    assigned = int(placed.assigned[node])
    stay = assigned - sum(int(placed.assigned[child]) for child in taxonomy.children[node])
    note = ""
    if stay and not taxonomy.is_leaf(node):
        note = f' <small class="muted">{count(stay)} {"stays" if stay == 1 else "stay"} here</small>'
    cells = f'<span class="name">{name(taxonomy.names[node])}{note}</span>'
    cells += _cell("assigned", count(assigned))
    if scores is None:
        share = assigned / max(1, len(placed))
        confidence = percent(float(placed.mean_confidence[node])) if assigned else "–"
        return f'{cells}<span class="f1">{bar(share)}{percent(share)}</span>{_cell("confidence", confidence)}'
    numbers = _category_scores(scores, node)
    precision, recall, f1 = ("–" if value is None else f"{value:.2f}" for value in numbers)
    cells += f'<span class="f1" data-label="F1">{bar(numbers[2] or 0.0)}{f1}</span>'
    cells += _cell("precision", precision) + _cell("recall", recall)
    return cells + _cell("support", count(int(scores.per_category.support[node])))


def _cell(label: str, text: str) -> str:
    return f'<span class="n" data-label="{label}">{text}</span>'


def _category_scores(scores: Scores, node: int) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1 of a category; None where there is nothing to divide by."""
    each = scores.per_category
    support, predicted = each.support[node], each.predicted[node]
    return (
        float(each.precision[node]) if predicted else None,
        float(each.recall[node]) if support else None,
        float(each.f1[node]) if support or predicted else None,
    )


def category_section(taxonomy: Taxonomy, placed: PlacedDocuments, scores: Scores | None) -> str:
    """One row per category, in the order of the tree; sortable where scripts run."""
    headings = [heading("Category"), heading("Kind")]
    numeric = ["Level", "Assigned", "Confidence"]
    if scores:
        numeric += ["Support", "Correct", "Precision", "Recall", "F1"]
    headings += [heading(label, "n") for label in numeric]
    rows = []
    for node in _depth_first(taxonomy):
        kind = "leaf" if taxonomy.is_leaf(node) else "inner"
        title = escape(taxonomy.title(node))
        assigned = int(placed.assigned[node])
        level = taxonomy.depths[node]
        cells = f'<th scope="row" data-value="{title}">{path(taxonomy.path(node), level - 1)}</th>'
        cells += f'<td class="kind" data-value="{kind}">{kind}</td>'
        cells += _number(level, str(level))
        cells += _number(assigned, count(assigned))
        mean = float(placed.mean_confidence[node])
        cells += _number(mean, percent(mean)) if assigned else _NO_NUMBER
        if scores:
            for number in (scores.per_category.support, scores.per_category.correct):
                cells += _number(int(number[node]), count(int(number[node])))
            for value in _category_scores(scores, node):
                cells += _NO_NUMBER if value is None else _number(value, f"{value:.3f}")
        rows.append(f"<tr>{cells}</tr>")
    hint = "Click a heading to sort by it, again to turn the order round."
    return f'<p class="tools" data-sort-hint hidden>{hint}</p>\n' + table(
        headings, rows, "categories", "data-sortable"
    )


_NO_NUMBER = '<td class="n" data-value="">–</td>'


def _number(value: float, text: str) -> str:
    return f'<td class="n" data-value="{value:.6g}">{text}</td>'


def _depth_first(taxonomy: Taxonomy) -> list[int]:
    order: list[int] = []
    waiting = list(reversed(taxonomy.children[0]))
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(reversed(taxonomy.children[node]))
    return order
