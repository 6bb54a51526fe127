"""One self-contained HTML page about a run: the tree, the scores and the documents worth reading."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from himecat.errors import UsageError
from himecat.evaluation.metrics import Scores
from himecat.evaluation.report.documents import PlacedDocuments, ReportDocument
from himecat.evaluation.report.page import render_page
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.files import write_atomic

__all__ = ["ReportDocument", "write_report"]

_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_TIME: Mapping[str, float] = MappingProxyType({})


def write_report(
    path: str | os.PathLike[str],
    *,
    taxonomy: Taxonomy,
    documents: Sequence[ReportDocument],
    scores: Scores | None = None,
    title: str = "Categories",
    settings: Mapping[str, str] = _NOTHING,
    timings: Mapping[str, float] = _NO_TIME,
    examples: int = 8,
    top_confusions: int = 20,
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
    page = render_page(taxonomy, placed, scores, title, settings, timings, examples, top_confusions)
    write_atomic(path, page)
