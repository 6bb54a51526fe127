"""The documents of a report, and where they stand in the tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.evaluation.metrics import Outcome, outcomes
from himecat.input.taxonomy.tree import Taxonomy


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """One document as a report shows it.

    Parameters
    ----------
    id : str
    text : str
        The whole text or its beginning; the report shows a snippet.
    path : sequence of str
        The assigned names, top-down; empty where nothing was assigned.
    confidence : sequence of float
        How sure the model is of the path down to each level; as long as `path`.
    true_path : sequence of str or None
        The true names as far as they are known; None where they are not.
    metadata : mapping of str to str or sequence of str
        Metadata values by type.

    Examples
    --------
    >>> ReportDocument("d1", "Light bends in glass.", ["science", "optics"], [0.9, 0.7]).certainty
    0.7
    """

    id: str
    text: str
    path: Sequence[str]
    confidence: Sequence[float]
    true_path: Sequence[str] | None = None
    metadata: Mapping[str, str | Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what could not be shown."""
        if len(self.confidence) != len(self.path):
            raise UsageError(
                f"Document {self.id!r} has {len(self.path)} levels in its path but {len(self.confidence)} "
                "confidences: give one per level."
            )
        if not all(math.isfinite(value) for value in self.confidence):
            raise UsageError(f"Document {self.id!r} has a confidence that is not a number.")

    @property
    def certainty(self) -> float:
        """Confidence in the whole assigned path; 0 where nothing was assigned."""
        return float(self.confidence[-1]) if self.confidence else 0.0


class PlacedDocuments:
    """The documents with their node ids and what follows from them, as arrays.

    Attributes
    ----------
    nodes, truths : array of int
        Deepest assigned and deepest known node of every document; 0 where there is none.
    known, wrong : array of bool
        Which documents have a known category, and which of those are in a wrong one.
    certainty : array of float
        Confidence in the whole assigned path.
    confidence : array of float, documents x levels
        Confidence at each level of the assigned path, NaN below its end.
    outcome : array of int
        `himecat.evaluation.metrics.Outcome` of every document, -1 where the truth is not known.
    assigned : array of int
        For every node, the number of documents assigned to it or below it.
    mean_confidence : array of float
        For every node, the mean confidence of those documents at its level; 0 where there are none.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c")])
    >>> placed = PlacedDocuments(tree, [ReportDocument("d1", "text", ["a", "c"], [0.9, 0.6], ["a", "b"])])
    >>> placed.assigned.tolist(), placed.outcome.tolist()
    ([1, 1, 0, 1], [0])
    """

    def __init__(self, taxonomy: Taxonomy, documents: Sequence[ReportDocument]) -> None:
        """Find every document's place; a path that is not in the tree is a `UsageError`."""
        self.documents = documents
        self.confidence: npt.NDArray[np.float64] = np.full((len(documents), taxonomy.depth), np.nan)
        nodes, truths = [], []
        for row, document in enumerate(documents):
            self.confidence[row, : len(document.confidence)] = document.confidence
            nodes.append(_node_at(taxonomy, document.id, document.path))
            truths.append(_node_at(taxonomy, document.id, document.true_path or ()))
        self.nodes: npt.NDArray[np.int64] = np.array(nodes, dtype=np.int64)
        self.truths: npt.NDArray[np.int64] = np.array(truths, dtype=np.int64)
        self.known: npt.NDArray[np.bool_] = self.truths > 0
        self.certainty = np.array([document.certainty for document in documents], dtype=np.float64)
        paths = taxonomy.lineage_rows(self.nodes)
        passed, sure = paths[paths > 0], self.confidence[paths > 0]
        self.assigned: npt.NDArray[np.int64] = np.bincount(passed, minlength=len(taxonomy))
        self.mean_confidence = np.bincount(passed, sure, len(taxonomy)) / np.maximum(self.assigned, 1)
        self.assigned[0] = len(documents)
        self.outcome: npt.NDArray[np.int8] = np.full(len(documents), -1, dtype=np.int8)
        if self.known.any():
            self.outcome[self.known] = outcomes(taxonomy, self.truths[self.known], self.nodes[self.known])
        self.wrong: npt.NDArray[np.bool_] = self.outcome == Outcome.WRONG

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.documents)

    def by_confidence(self) -> npt.NDArray[np.int64]:
        """Positions of the documents by falling confidence in their path; equals keep their order."""
        return np.argsort(-self.certainty, kind="stable")


def _node_at(taxonomy: Taxonomy, document: str, path: Sequence[str]) -> int:
    node = taxonomy.walk(path)
    if node is None:
        raise UsageError(f"Document {document!r}: the path {'/'.join(path)!r} is not in the tree.")
    return node
