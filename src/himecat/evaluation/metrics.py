"""Scores of the assigned paths: F1 by leaf, level and category, hierarchical precision and recall, confusions.

Everything is counted on node ids, never on names: two categories may share a name. A document counts for
its category and for every category above it, on the side of the truth and on the side of the prediction;
the root counts for nobody.

Conventions where the definitions leave a choice:

- A category that no document belongs to and none was assigned to has F1 0/0. It scores 0 and stays in the
  macro average, as in scikit-learn with an explicit label set and `zero_division=0`.
- A document known only down to an inner category is judged only as far as it is known: whatever was
  assigned *below* that category is neither right nor wrong. A prediction that leaves the known path is
  wrong in all its categories.
- A walk that stopped early (at an inner category, or at the root) misses the categories it did not reach:
  they are false negatives there, and no false positives anywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, UsageError
from himecat.input.taxonomy.tree import Taxonomy

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class F1:
    """Micro and macro F1 of one set of categories.

    Examples
    --------
    >>> F1(micro=0.5, macro=0.25).macro
    0.25
    """

    micro: float
    macro: float

    def as_dict(self) -> dict[str, float]:
        """Both by name, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LevelScores:
    """The scores of all categories at one depth; level 1 lies right below the root.

    `accuracy` is the share of right ones among the `documents` whose truth reaches this level.

    Examples
    --------
    >>> LevelScores(level=1, categories=3, documents=10, accuracy=0.8, f1=F1(0.8, 0.7)).f1.micro
    0.8
    """

    level: int
    categories: int
    documents: int
    accuracy: float
    f1: F1


@dataclass(frozen=True, eq=False, slots=True)
class CategoryScores:
    """One number per node, indexed by node id; entry 0 is the root's and always 0.

    `support` counts the documents that truly belong to a category, `predicted` those assigned to it (left
    out where the truth is not known that far) and `correct` those in both; each includes the documents of
    the categories below.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> score(tree, np.array([1, 1, 2]), np.array([1, 2, 2])).per_category.support.tolist()
    [0, 2, 1]
    """

    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    support: IntArray
    predicted: IntArray
    correct: IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Scores:
    """Everything `score` measures; see there for an example.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree the node ids belong to.
    n_documents : int
        Number of documents scored.
    leaf, overall : F1
        Micro and macro F1 over all leaves, and over all categories except the root.
    levels : tuple of LevelScores
        The same for each level, top-down.
    hierarchical_precision, hierarchical_recall, hierarchical_f1 : float
        Overlap of the assigned and the true ancestor sets, summed over documents. On a tree
        `hierarchical_f1` is the same number as `overall.micro`.
    path_accuracy : float
        Share of documents whose whole known path is right.
    coverage : float
        Share of documents that were assigned a leaf.
    per_category : CategoryScores
        Precision, recall, F1 and counts by node id.
    """

    taxonomy: Taxonomy
    n_documents: int
    leaf: F1
    overall: F1
    levels: tuple[LevelScores, ...]
    hierarchical_precision: float
    hierarchical_recall: float
    hierarchical_f1: float
    path_accuracy: float
    coverage: float
    per_category: CategoryScores

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, ready for `json.dumps`.

        `categories` is a list, not a mapping: the titles of two paths can read the same when names contain
        a slash.
        """
        tree, each = self.taxonomy, self.per_category
        return {
            "documents": self.n_documents,
            "leaf": self.leaf.as_dict(),
            "overall": self.overall.as_dict(),
            "hierarchical": {
                "precision": self.hierarchical_precision,
                "recall": self.hierarchical_recall,
                "f1": self.hierarchical_f1,
            },
            "path_accuracy": self.path_accuracy,
            "coverage": self.coverage,
            "levels": [
                {
                    "level": level.level,
                    "categories": level.categories,
                    "documents": level.documents,
                    "accuracy": level.accuracy,
                    **level.f1.as_dict(),
                }
                for level in self.levels
            ],
            "categories": [
                {
                    "category": tree.title(node),
                    "path": list(tree.path(node)),
                    "leaf": tree.is_leaf(node),
                    **{field.name: getattr(each, field.name)[node].item() for field in fields(each)},
                }
                for node in range(1, len(tree))
            ],
        }


class Outcome(IntEnum):
    """What became of one document.

    `RIGHT`: the whole known path was assigned. `STOPPED`: the walk ended on the right way, before the known
    category. `WRONG`: the walk left the right way.

    Examples
    --------
    >>> Outcome.RIGHT.name
    'RIGHT'
    """

    WRONG = 0
    STOPPED = 1
    RIGHT = 2


@dataclass(frozen=True, slots=True)
class Confusion:
    """Documents of one category that were assigned to another one.

    `share` is their share of all documents whose deepest known category is `truth`.

    Examples
    --------
    >>> Confusion(truth=3, predicted=4, documents=5, share=0.5).documents
    5
    """

    truth: int
    predicted: int
    documents: int
    share: float


def score(taxonomy: Taxonomy, truth: npt.ArrayLike, predicted: npt.ArrayLike) -> Scores:
    """Compare assigned with true categories.

    Parameters
    ----------
    taxonomy : Taxonomy
    truth : array of int
        For every document, the node id of its deepest known category (a leaf or an inner one).
    predicted : array of int
        For every document, the node id of its deepest assigned category; 0, the root, where nothing was.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("art", "film"), ("art", "music"), ("sport", "chess")])
    >>> film, music, chess = tree.leaves
    >>> scores = score(tree, [film, film, music, chess], [film, music, music, chess])
    >>> scores.leaf.micro, scores.overall.micro, scores.path_accuracy
    (0.75, 0.875, 0.75)
    """
    truth, predicted = _checked(taxonomy, truth, predicted)
    leaves = np.asarray(taxonomy.leaves, dtype=np.int64)
    coverage = float(np.mean(taxonomy.leaf_position[predicted] >= 0))
    outcome = outcomes(taxonomy, truth, predicted)
    judged = np.where(outcome == Outcome.RIGHT, truth, predicted)

    n_nodes = len(taxonomy)
    shared = taxonomy.meeting(truth, judged)
    support, assigned, correct = (_with_those_below(taxonomy, ends) for ends in (truth, judged, shared))

    each = CategoryScores(
        precision=_ratio(correct, assigned),
        recall=_ratio(correct, support),
        f1=_ratio(2 * correct, support + assigned),
        support=support,
        predicted=assigned,
        correct=correct,
    )
    levels = []
    depths = np.asarray(taxonomy.depths)
    for level in range(1, taxonomy.depth + 1):
        nodes = np.flatnonzero(depths == level)
        reached = int(support[nodes].sum())
        accuracy = float(correct[nodes].sum() / reached) if reached else 0.0
        levels.append(LevelScores(level, len(nodes), reached, accuracy, _f1_over(each, nodes)))
    everything = np.arange(1, n_nodes)
    overall = _f1_over(each, everything)
    return Scores(
        taxonomy=taxonomy,
        n_documents=len(truth),
        leaf=_f1_over(each, leaves),
        overall=overall,
        levels=tuple(levels),
        hierarchical_precision=float(correct.sum() / assigned.sum()) if assigned.any() else 0.0,
        hierarchical_recall=float(correct.sum() / support.sum()),
        hierarchical_f1=overall.micro,
        path_accuracy=float(np.mean(outcome == Outcome.RIGHT)),
        coverage=coverage,
        per_category=each,
    )


def outcomes(taxonomy: Taxonomy, truth: npt.ArrayLike, predicted: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """The `Outcome` of every document; arguments as in `score`.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("art", "film"), ("art", "music"), ("sport",)])
    >>> art, sport, film, music = range(1, 5)
    >>> [Outcome(o).name for o in outcomes(tree, [film, film, film], [film, art, music])]
    ['RIGHT', 'STOPPED', 'WRONG']
    """
    truth, predicted = _checked(taxonomy, truth, predicted)
    shared = taxonomy.meeting(truth, predicted)
    outcome = np.full(len(truth), Outcome.WRONG, dtype=np.int8)
    outcome[shared == predicted] = Outcome.STOPPED
    outcome[shared == truth] = Outcome.RIGHT
    return outcome


def confusions(
    taxonomy: Taxonomy, truth: npt.ArrayLike, predicted: npt.ArrayLike, top: int = 20
) -> list[Confusion]:
    """The most frequent pairs of true and wrongly assigned category, most frequent first.

    A walk that stopped early on the right way is no confusion; one that stopped early on a wrong way counts
    for the category it stopped at.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("art", "film"), ("art", "music")])
    >>> film, music = tree.leaves
    >>> confusions(tree, [film, film, music], [film, music, music])
    [Confusion(truth=2, predicted=3, documents=1, share=0.5)]
    """
    if top < 0:
        raise UsageError(f"top must be 0 or more, not {top}.")
    truth, predicted = _checked(taxonomy, truth, predicted)
    wrong = outcomes(taxonomy, truth, predicted) == Outcome.WRONG
    n_nodes = len(taxonomy)
    pairs, counts = np.unique(truth[wrong] * n_nodes + predicted[wrong], return_counts=True)
    totals = np.bincount(truth, minlength=n_nodes)
    found = []
    for position in np.argsort(-counts, kind="stable")[:top]:
        true, given = divmod(int(pairs[position]), n_nodes)
        documents = int(counts[position])
        found.append(Confusion(true, given, documents, documents / int(totals[true])))
    return found


def checked_nodes(taxonomy: Taxonomy, name: str, values: npt.ArrayLike) -> IntArray:
    """An array of node ids, or an error that names what is wrong with the argument `name`.

    Examples
    --------
    >>> checked_nodes(Taxonomy.from_paths([("a",)]), "truth", [0, 2])
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: truth[1] is 2, but the tree's node ids go from 0 to 1.
    """
    if len(taxonomy) < 2:
        raise DataError("The tree has no category below its root, so there is nothing to score.")
    ids = np.asarray(values)
    if ids.ndim != 1:
        raise UsageError(f"{name} must be a flat list of node ids, not an array of shape {ids.shape}.")
    if len(ids) and not np.issubdtype(ids.dtype, np.integer):
        raise UsageError(f"{name} must hold node ids (integers), not values of type {ids.dtype}.")
    ids = ids.astype(np.int64)
    outside = np.flatnonzero((ids < 0) | (ids >= len(taxonomy)))
    if len(outside):
        raise UsageError(
            f"{name}[{outside[0]}] is {ids[outside[0]]}, but the tree's node ids go from 0 to {len(taxonomy) - 1}."
        )
    return ids


def _checked(taxonomy: Taxonomy, truth: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    known, given = checked_nodes(taxonomy, "truth", truth), checked_nodes(taxonomy, "predicted", predicted)
    if len(known) != len(given):
        raise UsageError(f"There are {len(known)} true categories but {len(given)} predicted ones.")
    if not len(known):
        raise DataError("There is no document to score: none has a known category.")
    if not known.all():
        raise DataError(
            f"Document {int(np.argmin(known != 0))} (counted from 0) has no known category: leave documents "
            "without a label out of the scoring."
        )
    return known, given


def _with_those_below(taxonomy: Taxonomy, ends: IntArray) -> IntArray:
    """For every node but the root, how many of some nodes are it or lie below it."""
    counts = np.bincount(ends, minlength=len(taxonomy)).tolist()
    for node in range(len(taxonomy) - 1, 0, -1):
        counts[taxonomy.parents[node]] += counts[node]
    return np.array([0, *counts[1:]], dtype=np.int64)


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def _f1_over(each: CategoryScores, nodes: IntArray) -> F1:
    whole = int(each.support[nodes].sum() + each.predicted[nodes].sum())
    micro = 2 * int(each.correct[nodes].sum()) / whole if whole else 0.0
    return F1(micro=micro, macro=float(each.f1[nodes].mean()))
