"""What the flat systems share: they choose among the leaves and know nothing of the tree above them."""

from __future__ import annotations

from typing import Any

import numpy as np

from himecat.compare.systems.system import NodeArray
from himecat.errors import DataError, UsageError
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy


def predict_leaves(features: Any, supervision: Supervision, taxonomy: Taxonomy, model: Any) -> NodeArray:
    """Fit a scikit-learn classifier on the rows of the documents labelled with a leaf, and apply it to all rows.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> labelled = Supervision(np.array([0, 1]), np.array([2, 1]))
    >>> predict_leaves(np.array([[1.0], [-1.0], [2.0]]), labelled, tree, LinearSVC()).tolist()
    [2, 1, 2]
    """
    count = features.shape[0]
    if len(supervision) and int(supervision.rows.max()) >= count:
        raise UsageError(
            f"Document {int(supervision.rows.max())} is labelled, but there are features for {count} documents only."
        )
    # A document labelled with an inner node names no class of a flat system.
    usable = taxonomy.leaf_position[supervision.nodes] >= 0
    rows, leaves = supervision.rows[usable], supervision.nodes[usable]
    seen = np.unique(leaves)
    if not len(seen):
        raise DataError("No leaf has a labelled document: label about five documents of each.")
    if len(seen) == 1:
        return np.full(count, seen[0], dtype=np.int64)
    return np.asarray(model.fit(features[rows], leaves).predict(features), dtype=np.int64)
