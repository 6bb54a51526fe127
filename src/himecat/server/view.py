"""One model and where it places the documents, with what the lists are sorted by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.estimator import HiMeCat
from himecat.input.taxonomy.tree import Taxonomy
from himecat.server.placing import Placements


@dataclass(frozen=True)
class View:
    """One model and where it places the documents; replaced as a whole when the model is."""

    model: HiMeCat
    digest: str
    placed: Placements
    version: int

    @property
    def tree(self) -> Taxonomy:
        """The tree of the model."""
        return self.model.taxonomy_

    @cached_property
    def confidence(self) -> npt.NDArray[np.float32]:
        """The probability of the node at which each document was placed."""
        depths = self.tree.depth_array[self.placed.nodes]
        found = self.placed.levels[np.arange(len(self.placed)), np.maximum(depths, 1) - 1]
        return np.where(depths > 0, np.nan_to_num(found), 0.0).astype(np.float32)

    @cached_property
    def dispute(self) -> npt.NDArray[np.float32]:
        """How far the first leaf is from the next one with the same parent; 2 where none is near."""
        placed, parents = self.placed, self.tree.parent_array
        first, found = placed.best[:, 0], np.full(len(placed), 2.0, dtype=np.float32)
        for other in range(placed.best.shape[1] - 1, 0, -1):
            sibling = (placed.best[:, other] > 0) & (parents[placed.best[:, other]] == parents[first])
            away = placed.best_confidence[:, 0] - placed.best_confidence[:, other]
            found = np.where(sibling, away, found)
        return found

    @cached_property
    def suspects(self) -> dict[str, tuple[str, ...]]:
        """Documents whose label contradicts the others, with what these say, by id; the most doubtful first."""
        quality = self.model.quality_
        return {} if quality is None else {one.id: one.suggested for one in quality.suspects}
