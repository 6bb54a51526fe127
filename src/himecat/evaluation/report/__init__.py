"""One self-contained HTML page about a run: the tree, the scores and the documents worth reading."""

from himecat.evaluation.report.documents import ReportDocument
from himecat.evaluation.report.page import write_report

__all__ = ["ReportDocument", "write_report"]
