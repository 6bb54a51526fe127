"""What every fitted classifier offers, whichever method made it, and what a fit gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.quality import Quality
from himecat.input.corpus import Corpus
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.base import BUILT_IN, View
from himecat.views.combined import Views
from himecat.views.matrices import unit
from himecat.views.space import JointSpace, contrast

FloatArray = npt.NDArray[np.float32]


class Classifier(Protocol):
    """Places documents, given in the ids of the model's vocabularies, at the leaves of the tree.

    `name` is what the model folder records; `state` and `from_state` carry the classifier through it. Word
    vectors are those of the space: the folder keeps them once.
    """

    name: ClassVar[str]

    @property
    def own_views(self) -> tuple[View, ...]:
        """The views that were given beside those of the package."""
        ...

    @property
    def learned_views(self) -> Mapping[str, View]:
        """Views by name that a fit with other labels would learn once more just so."""
        ...

    @property
    def word_weights(self) -> FloatArray | None:
        """How much each word counts; None where all count the same."""
        ...

    @property
    def unused_metadata(self) -> Collection[str]:
        """Metadata types that say nothing about the categories: their learned weight is 0."""
        ...

    @property
    def quality(self) -> Quality | None:
        """How good the fit probably is; None where it is not known."""
        ...

    def leaf_probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        ...

    def all_probabilities(self, corpus: Corpus, threads: int = 1) -> tuple[FloatArray, FloatArray | None]:
        """The same, and the probability of belonging to none of them; None where the model does not know it."""
        ...

    def directions(self, corpus: Corpus) -> FloatArray:
        """Unit vectors of documents in the joint space; zeros where nothing in a document is known."""
        ...

    def evidence(self, corpus: Corpus, row: int, node: int) -> list[tuple[str, str, int, float]]:
        """What the views of one's own say for a node against its siblings: view, name, count and weight."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The settings (JSON) and arrays that `from_state` rebuilds the classifier from."""
        ...

    @classmethod
    def from_state(
        cls, space: JointSpace, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted classifier.

        Raises
        ------
        ValueError
            The parts do not fit each other, or the space.
        """
        ...


class SeeingClassifier:
    """What classifiers share that see documents by `views`."""

    views: Views

    @property
    def own_views(self) -> tuple[View, ...]:
        """The views that were given beside those of the package."""
        return tuple(view for view in self.views.views if view.name not in BUILT_IN)

    def evidence_by(
        self, leaves: FloatArray, taxonomy: Taxonomy, corpus: Corpus, row: int, node: int
    ) -> list[tuple[str, str, int, float]]:
        """What the views of one's own say for a node against its siblings, by the directions of the leaves."""
        found = []
        for view in self.own_views:
            if view.name in self.views.centres:
                own = unit(leaves[:, self.views.part(view.name)])
                family = taxonomy.children[taxonomy.parents[node]]
                direction = contrast(unit(taxonomy.sums_under(own, family)), family.index(node))
                found += [(view.name, *one) for one in view.explain(corpus, row, direction)]
        return found

    @property
    def learned_views(self) -> dict[str, View]:
        """The views of words and topics, which took the longest to learn, and one that knows a whole pile."""
        kept = ("words", "topics")
        return {
            view.name: view for view in self.views.views if view.name in kept or view.everyone is not None
        }

    @property
    def word_weights(self) -> FloatArray | None:
        """How much each word counts."""
        found: FloatArray = self.views["words"].weights
        return found

    @property
    def unused_metadata(self) -> tuple[str, ...]:
        """Metadata types whose learned weight is 0."""
        return tuple(kind for kind, weight in self.views["metadata"].weights.items() if weight == 0)


@dataclass(frozen=True)
class Round:
    """What one round of representation learning did: pairs drawn, and the mean objective of each relation.

    Examples
    --------
    >>> Round(pairs=100, objective={"word": -0.1}, seconds=0.5).objective["word"]
    -0.1
    """

    pairs: int
    objective: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class Fitted:
    """What a fit gives: the space, what places documents, and the course of a sampled space.

    Examples
    --------
    >>> [part for part in Fitted.__annotations__]
    ['space', 'classifier', 'history']
    """

    space: JointSpace
    classifier: Classifier
    history: Sequence[Round] = ()
