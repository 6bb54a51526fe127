"""What a check found: the summary and the problems, as plain values or printed for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from himecat.input.problems import Problem, Problems, Severity
from himecat.input.taxonomy.readers import render_tree
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.terminal import text

if TYPE_CHECKING:
    from rich.console import Console

_DRAWN_LEAVES = 12


@dataclass(frozen=True)
class MetadataSummary:
    """How far the values of one metadata field reach.

    Attributes
    ----------
    name : str
        The field.
    coverage, sharing : float
        Share of documents with a value, and of documents that have one in common with another document.
    distinct, repeated : int
        Number of values, and of those that occur in two or more documents.
    commonest : tuple of str and int, or None
        The value of most documents, and their number.

    Examples
    --------
    >>> MetadataSummary("tags", 0.9, 0.8, distinct=40, repeated=25, commonest=("new", 30)).repeated
    25
    """

    name: str
    coverage: float
    sharing: float
    distinct: int
    repeated: int
    commonest: tuple[str, int] | None


@dataclass(frozen=True)
class CheckReport:
    """What `check` found; `problems` holds the errors, warnings and notes.

    `words` and `tokens` count what is used of the documents, `vocabulary` the words that occur `min_count`
    times or more; `labels_per_leaf` has every leaf's path and the number of documents labelled with it,
    `labelled_at_inner` is the number of those labelled with an inner category. `keywords_per_label` has the
    path of every category with keywords that can be used and their number; None where no keywords were given.

    Examples
    --------
    >>> from himecat.input.check import check
    >>> report = check([{"text": "a red fox", "labels": "a"}, {"text": "two cats sit", "labels": "b"}])
    >>> report.documents, report.labels_per_leaf, report.problems.has_errors
    (2, (('a', 1), ('b', 1)), False)
    """

    problems: Problems
    documents: int = 0
    labelled: int = 0
    labelled_at_inner: int = 0
    words: int = 0
    min_count: int = 1
    vocabulary: int = 0
    tokens: int = 0
    words_per_document: tuple[float, int] = (0.0, 0)
    metadata: tuple[MetadataSummary, ...] = ()
    taxonomy: Taxonomy | None = None
    labels_per_leaf: tuple[tuple[str, int], ...] = ()
    keywords_per_label: tuple[tuple[str, int], ...] | None = None

    @property
    def leaves_without_labels(self) -> list[str]:
        """The paths of the leaves that no document is labelled with."""
        return [path for path, count in self.labels_per_leaf if not count]

    @property
    def label_range(self) -> tuple[int, float, int]:
        """The fewest labelled documents of a leaf, their median and the most."""
        counts = [count for _, count in self.labels_per_leaf] or [0]
        return min(counts), float(np.median(counts)), max(counts)

    def raise_errors(self) -> None:
        """Raise one `DataError` that lists every error found; do nothing when there is none."""
        self.problems.raise_errors(always=True)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, ready for JSON."""
        fewest, median, most = self.label_range
        tree = self.taxonomy
        return {
            "documents": self.documents,
            "labelled": self.labelled,
            "words": self.words,
            "min_count": self.min_count,
            "vocabulary": self.vocabulary,
            "tokens": self.tokens,
            "words_per_document": dict(zip(("median", "max"), self.words_per_document, strict=True)),
            "metadata": [asdict(summary) for summary in self.metadata],
            "tree": tree and {"depth": tree.depth, "leaves": tree.n_leaves, "categories": len(tree) - 1},
            "labels": {
                "per_leaf": {"min": fewest, "median": median, "max": most},
                "leaves": [{"leaf": path, "documents": count} for path, count in self.labels_per_leaf],
                "leaves_without": self.leaves_without_labels,
                "at_inner_categories": self.labelled_at_inner,
            },
            "keywords": None
            if self.keywords_per_label is None
            else [{"label": path, "words": count} for path, count in self.keywords_per_label],
            "counts": dict(self.problems.counts),
            "problems": [_plain(problem) for problem in self.problems],
        }


def render(report: CheckReport, console: Console, *, errors: bool = True) -> None:
    """Print a report for people: what there is first, every problem after it.

    Parameters
    ----------
    report : CheckReport
        The report.
    console : Console
        Where it is printed.
    errors : bool
        Whether the errors are printed too.

    Examples
    --------
    >>> from himecat.input.check import check
    >>> from himecat.runtime.terminal import console
    >>> report = check([{"text": "a red fox", "labels": "a"}, {"text": "two cats sit", "labels": "b"}])
    >>> render(report, console(width=80))
    documents           2, of which 2 labelled
    ...
    """
    from rich.table import Table

    if report.documents:
        facts = Table.grid(padding=(0, 3))
        for name, fact in _facts(report):
            facts.add_row(text(name, "bold"), text(fact))
        console.print(facts)
    if report.metadata:
        table = Table("metadata", box=None, padding=(0, 3, 0, 0))
        for heading in ("coverage", "values", "in 2+ documents", "documents connected"):
            table.add_column(heading, justify="right")
        for kind in report.metadata:
            shares = f"{kind.coverage:.1%}", f"{kind.sharing:.1%}"
            table.add_row(text(kind.name), shares[0], f"{kind.distinct:,}", f"{kind.repeated:,}", shares[1])
        console.print()
        console.print(table)
    if report.taxonomy and 0 < len(report.labels_per_leaf) <= _DRAWN_LEAVES:
        counts = {
            leaf: f"({count})"
            for leaf, (_, count) in zip(report.taxonomy.leaves, report.labels_per_leaf, strict=True)
        }
        drawn = render_tree(report.taxonomy, lambda node: counts.get(node, ""))
        console.print()
        console.print(text("labelled documents", "bold"))
        console.print(text(drawn))
    _render_problems(report.problems, console, errors)


def _facts(report: CheckReport) -> Iterator[tuple[str, str]]:
    yield "documents", f"{report.documents:,}, of which {report.labelled:,} labelled"
    yield "words", f"{report.tokens:,} in all, {report.words:,} different"
    if report.min_count > 1:
        yield "vocabulary", f"{report.vocabulary:,} words that occur {report.min_count} times or more"
    median, most = report.words_per_document
    yield "words per document", f"median {median:,.0f}, at most {most:,}"
    if tree := report.taxonomy:
        levels = f"{tree.depth} level{'s' * (tree.depth != 1)}"
        yield "tree", f"{len(tree) - 1:,} categories on {levels}, {tree.n_leaves:,} of them leaves"
    if report.labels_per_leaf:
        fewest, middle, most = report.label_range
        spread = f"{fewest} each" if fewest == most else f"{fewest} to {most}, median {middle:g}"
        yield "labels per leaf", spread
    if report.keywords_per_label is not None:
        words = sum(count for _, count in report.keywords_per_label)
        of = f" of {len(report.taxonomy) - 1:,} labels" if report.taxonomy else " labels"
        yield "keywords", f"{words:,} for {len(report.keywords_per_label):,}{of}"


def _render_problems(problems: Problems, console: Console, errors: bool) -> None:
    from rich.table import Table

    looks: tuple[tuple[Severity, str], ...] = (("note", "cyan"), ("warning", "yellow"), ("error", "red"))
    for severity, colour in looks:
        number = problems.counts[severity]
        if not number or (severity == "error" and not errors):
            continue
        console.print()
        console.print(text(f"{number:,} {severity}{'s' * (number != 1)}", f"bold {colour}"))
        listed = Table.grid(padding=(0, 1))
        for problem in problems.of(severity):
            listed.add_row(text("-", colour), text(str(problem)))
        console.print(listed)
        if problems.hidden(severity):
            console.print(text(f"  ... and {problems.hidden(severity):,} more", colour))
    if not problems.has_errors:
        console.print()
        console.print(text("no errors", "bold green"))


def _plain(problem: Problem) -> dict[str, object]:
    found: dict[str, object] = {
        "severity": problem.severity,
        "place": problem.place,
        "message": problem.message,
    }
    if problem.count > 1:
        found |= {"count": problem.count, "more_places": list(problem.more_places)}
    return found
