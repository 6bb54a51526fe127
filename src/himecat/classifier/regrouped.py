"""A fitted classifier whose leaves were moved or merged since: the probabilities of leaves are added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.fit import DefaultClassifier
from himecat.classifier.nowhere import Nowhere
from himecat.classifier.quality import Path, Quality
from himecat.input.corpus import Corpus
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.base import State, View
from himecat.views.matrices import FloatArray, unit
from himecat.views.space import JointSpace


@dataclass(frozen=True)
class RegroupedClassifier:
    """A default classifier seen through changes of the tree that keep every leaf a leaf.

    Calibration follows the tree of the fit, so that no probability of a leaf changes when it is moved.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree of now.
    fitted : DefaultClassifier
        The classifier, with the tree that it was fitted on.
    nodes : tuple of int
        For each node of that tree the node of now.
    """

    name: ClassVar[str] = "regrouped"

    taxonomy: Taxonomy
    fitted: DefaultClassifier
    nodes: tuple[int, ...]

    @property
    def own_views(self) -> tuple[View, ...]:
        """The views that were given beside those of the package."""
        return self.fitted.own_views

    @property
    def learned_views(self) -> dict[str, View]:
        """The views of words and topics, which took the longest to learn."""
        return self.fitted.learned_views

    @property
    def word_weights(self) -> FloatArray | None:
        """How much each word counts."""
        return self.fitted.word_weights

    @property
    def unused_metadata(self) -> tuple[str, ...]:
        """Metadata types whose learned weight is 0."""
        return self.fitted.unused_metadata

    @property
    def nowhere(self) -> Nowhere | None:
        """What is known of documents that belong to no category."""
        return self.fitted.nowhere

    @cached_property
    def quality(self) -> Quality | None:
        """What the fit said about itself, but for what the changes have made another question."""
        found = self.fitted.quality
        return None if found is None else requalified(found, self.fitted.taxonomy, self.taxonomy, self.nodes)

    def leaf_probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        return self._grouped(self.fitted.leaf_probabilities(corpus, threads))

    def all_probabilities(self, corpus: Corpus, threads: int = 1) -> tuple[FloatArray, FloatArray | None]:
        """The same, and the probability of belonging to none of them; None where the model does not know it."""
        found, none = self.fitted.all_probabilities(corpus, threads)
        return self._grouped(found), none

    def _grouped(self, found: FloatArray) -> FloatArray:
        return grouped(found, leaf_positions(self.fitted.taxonomy, self.taxonomy, self.nodes), self.taxonomy)

    def directions(self, corpus: Corpus) -> FloatArray:
        """Unit vectors of documents among those of words and labels: the words' part of their directions."""
        return self.fitted.directions(corpus)

    def evidence(self, corpus: Corpus, row: int, node: int) -> list[tuple[str, str, int, float]]:
        """What the views of one's own say for a node against its siblings: view, name, count and weight."""
        scorer = self.fitted.scorer
        scorer = replace(scorer, directions=self._grouped(scorer.directions.T).T)
        return replace(self.fitted, taxonomy=self.taxonomy, scorer=scorer).evidence(corpus, row, node)

    def state(self) -> State:
        """The state of the fitted classifier, its tree, and what became of the nodes."""
        settings, arrays = self.fitted.state()
        before = self.fitted.taxonomy
        tree = {"names": list(before.names), "parents": list(before.parents)}
        return {"fitted": settings, "taxonomy": tree, "nodes": list(self.nodes)}, arrays

    @classmethod
    def from_state(
        cls, space: JointSpace, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild the classifier."""
        before = Taxonomy(settings["taxonomy"]["names"], settings["taxonomy"]["parents"])
        nodes = tuple(settings["nodes"])
        if len(nodes) != len(before) or not only_regroups(before, space.taxonomy, nodes):
            raise ValueError("the nodes of the classifier do not fit the tree")
        fitted = DefaultClassifier.from_state(replace(space, taxonomy=before), settings["fitted"], arrays)
        return cls(space.taxonomy, fitted, nodes)


def only_regroups(before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> bool:
    """Whether every leaf has become a leaf, and every leaf of now has been one.

    Examples
    --------
    >>> before = Taxonomy.from_paths([("a",), ("b",), ("c",)])
    >>> only_regroups(before, Taxonomy.from_paths([("a",), ("b",)]), (0, 1, 2, 2))
    True
    >>> only_regroups(before, Taxonomy.from_paths([("a",), ("b",)]), (0, 1, 2, -1))
    False
    """
    became = {nodes[leaf] for leaf in before.leaves}
    return became == set(now.leaves)


def leaf_positions(before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> npt.NDArray[np.int64]:
    """For each leaf of before its position among those of now; -1 where it is none.

    Examples
    --------
    >>> before, now = Taxonomy.from_paths([("a",), ("b",)]), Taxonomy.from_paths([("b",), ("c", "a")])
    >>> leaf_positions(before, now, (0, 3, 1)).tolist()
    [1, 0]
    """
    became = np.array([nodes[leaf] for leaf in before.leaves], dtype=np.int64)
    return np.where(became > 0, now.leaf_position[became], -1)


def grouped(columns: FloatArray, positions: npt.NDArray[np.int64], now: Taxonomy) -> FloatArray:
    """The sums of columns that have become one leaf, in the order of the leaves of now.

    Examples
    --------
    >>> now = Taxonomy.from_paths([("a",), ("b",)])
    >>> grouped(np.array([[1.0, 2.0, 4.0]], dtype=np.float32), np.array([1, 0, 1]), now).tolist()
    [[2.0, 5.0]]
    """
    found = np.zeros((len(columns), now.n_leaves), dtype=np.float32)
    for column, position in enumerate(positions.tolist()):
        if position >= 0:
            found[:, position] += columns[:, column]
    return found


def requalified(found: Quality, before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> Quality:
    """An estimate of quality in the paths of now.

    Accuracy by level is left out where categories were moved or merged, as is the precision of merged leaves.

    Examples
    --------
    >>> before, now = Taxonomy.from_paths([("a",), ("b",)]), Taxonomy.from_paths([("a",), ("c",)])
    >>> from himecat.classifier.quality import Confusion
    >>> few = Quality(8, 0, 0, confusions=(Confusion(("a",), ("b",), 2.0),))
    >>> requalified(few, before, now, (0, 1, 2)).confusions[0].second
    ('c',)
    """

    def path(names: Path) -> Path:
        at = before.walk(names)
        return () if at is None or nodes[at] < 0 else now.path(nodes[at])

    same_shape = tuple(nodes) == tuple(range(len(now))) and before.parents == now.parents
    leaves: dict[Path, Any] = {}
    for leaf in found.leaves:
        at = path(leaf.path)
        known = leaves.get(at)
        if known is None:
            leaves[at] = replace(leaf, path=at)
        else:
            more = {"labelled": known.labelled + leaf.labelled, "placed": known.placed + leaf.placed}
            leaves[at] = replace(known, **more, precision=None, low=None, high=None)
    leaves.pop((), None)
    confusions = [replace(one, first=path(one.first), second=path(one.second)) for one in found.confusions]
    suspects = [replace(one, label=path(one.label), suggested=path(one.suggested)) for one in found.suspects]
    return replace(
        found,
        levels=found.levels if same_shape else (),
        leaves=tuple(leaves.values()),
        confusions=tuple(one for one in confusions if one.first and one.second and one.first != one.second),
        suspects=tuple(one for one in suspects if one.label and one.suggested and one.label != one.suggested),
    )


def regrouped_labels(labels: FloatArray, before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> FloatArray:
    """The vectors of the nodes of now: a node with the leaves that it had keeps its own, others are sums of leaves.

    Examples
    --------
    >>> before, now = Taxonomy.from_paths([("a",), ("b",)]), Taxonomy.from_paths([("b",), ("a",)])
    >>> regrouped_labels(np.eye(3, dtype=np.float32), before, now, (0, 2, 1))[2].tolist()
    [0.0, 1.0, 0.0]
    """
    positions = leaf_positions(before, now, nodes)
    leaves = unit(grouped(labels[list(before.leaves)].T, positions, now).T)
    found = unit(now.sums_under(leaves, list(now)))
    for old, node in enumerate(nodes):
        if node >= 0:
            own = [position for position in positions[before.positions_under(old)].tolist() if position >= 0]
            if sorted(own) == now.positions_under(node).tolist():
                found[node] = labels[old]
    return found
