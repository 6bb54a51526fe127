"""Scores of sets of paths, where documents belong to several categories.

Sets are compared as they are: a category above another of the same set counts by itself. The root counts for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError
from himecat.evaluation.metrics import F1
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SetScores:
    """What `score_sets` measures.

    Attributes
    ----------
    n_documents : int
        Number of documents scored.
    categories : F1
        Micro F1 over all pairs of document and category, macro F1 over the categories that are a label or were given.
    leaf : F1
        The same over the leaves; in the macro average all of them count, as with single paths.
    with_ancestors : F1
        The same over all categories, each document counting for those above its own too.
    example_f1, example_f1_with_ancestors : float
        Mean F1 of the documents' sets.
    true_size, given_size : float
        Mean number of paths of a document, in truth and given.

    Examples
    --------
    >>> SetScores(1, F1(0.5, 0.5), F1(0.5, 0.5), F1(0.6, 0.6), 0.5, 0.6, 2.0, 1.0).categories.micro
    0.5
    """

    n_documents: int
    categories: F1
    leaf: F1
    with_ancestors: F1
    example_f1: float
    example_f1_with_ancestors: float
    true_size: float
    given_size: float

    @property
    def overall(self) -> F1:
        """What the same measure is called where documents have one path."""
        return self.with_ancestors

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for `json.dumps`."""
        return {
            "documents": self.n_documents,
            "categories": self.categories.as_dict(),
            "leaf": self.leaf.as_dict(),
            "with_ancestors": self.with_ancestors.as_dict(),
            "example_f1": self.example_f1,
            "example_f1_with_ancestors": self.example_f1_with_ancestors,
            "paths_per_document": {"true": self.true_size, "given": self.given_size},
        }


def score_sets(taxonomy: Taxonomy, truth: Supervision, given: Supervision) -> SetScores:
    """Score the sets that documents were given, of all documents that have a label in `truth`.

    Parameters
    ----------
    truth, given : Supervision
        A row for each category of each document.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    >>> a, d, b, c = 1, 2, 3, 4
    >>> truth, given = Supervision(np.array([0, 0]), np.array([b, d])), Supervision(np.array([0]), np.array([c]))
    >>> found = score_sets(tree, truth, given)
    >>> found.categories.micro, found.with_ancestors.micro, found.example_f1
    (0.0, 0.4, 0.0)
    """
    rows = np.unique(truth.rows)
    if not len(rows):
        raise DataError("No document has a label to score its prediction by.")
    known = np.isin(given.rows, rows)
    own = np.unique(np.stack([np.searchsorted(rows, truth.rows), truth.nodes]), axis=1)
    found = np.unique(np.stack([np.searchsorted(rows, given.rows[known]), given.nodes[known]]), axis=1)
    exact = _counts(taxonomy, own, found, len(rows))
    above = _counts(taxonomy, _with_ancestors(taxonomy, own), _with_ancestors(taxonomy, found), len(rows))
    used = np.flatnonzero(exact.support + exact.given)
    return SetScores(
        len(rows),
        exact.f1(used),
        exact.f1(np.asarray(taxonomy.leaves)),
        above.f1(np.arange(1, len(taxonomy))),
        exact.by_example,
        above.by_example,
        own.shape[1] / len(rows),
        found.shape[1] / len(rows),
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """Documents of each category in truth, given and both, and the mean F1 of documents."""

    support: IntArray
    given: IntArray
    right: IntArray
    by_example: float

    def f1(self, nodes: npt.NDArray[np.integer]) -> F1:
        """Micro and macro F1 over some categories."""
        right, total = self.right[nodes], (self.support + self.given)[nodes]
        each = 2 * right / np.maximum(total, 1)
        return F1(float(2 * right.sum() / max(1, total.sum())), float(each.mean()) if len(each) else 0.0)


def _counts(taxonomy: Taxonomy, truth: IntArray, given: IntArray, n_documents: int) -> _Counts:
    size = len(taxonomy)
    both = np.intersect1d(truth[0] * size + truth[1], given[0] * size + given[1])
    right = np.bincount(both // size, minlength=n_documents)
    total = np.bincount(truth[0], minlength=n_documents) + np.bincount(given[0], minlength=n_documents)
    return _Counts(
        np.bincount(truth[1], minlength=size),
        np.bincount(given[1], minlength=size),
        np.bincount(both % size, minlength=size),
        float((2 * right / np.maximum(total, 1)).mean()),
    )


def _with_ancestors(taxonomy: Taxonomy, pairs: IntArray) -> IntArray:
    lineages = taxonomy.lineage_rows(pairs[1])
    rows = np.repeat(pairs[0], lineages.shape[1])
    nodes = lineages.ravel()
    return np.unique(np.stack([rows[nodes > 0], nodes[nodes > 0]]), axis=1)
