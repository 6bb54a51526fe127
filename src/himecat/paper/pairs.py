"""The generative process (section 3.1) as pairs to learn from, in index arrays.

Parent and child labels (Eq. 3), documents with their label and metadata values (Eqs. 6 to 8), documents with their
words (Eq. 9).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from himecat.input.corpus import Corpus, IntArray, Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy


@dataclass(frozen=True)
class Relations:
    """Every pair that the joint space is learned from.

    Anchors (labels, then the values of each metadata type, then words) share one numbering, so that a pair
    is always (anchor, document); the label hierarchy is pairs of labels.

    Attributes
    ----------
    names : tuple of str
        The relations between anchors and documents: `label`, `metadata:<type>` for each type, `word`.
    pairs : tuple of Ragged
        For each relation, the anchors of every document.
    anchor_start : dict
        Where the anchors of each kind begin.
    children, parents : arrays
        The label hierarchy.

    Examples
    --------
    >>> from himecat import Taxonomy, read_corpus
    >>> from himecat.input.corpus import Supervision
    >>> corpus = read_corpus([{"text": "red fox", "by": "ann"}, {"text": "red car"}], metadata=["by"])
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> found = relate(corpus, tree, Supervision(np.array([0]), np.array([1])))
    >>> found.names, found.n_anchors, found.pairs[1].lengths.tolist()
    (('label', 'metadata:by', 'word'), 7, [1, 0])
    """

    names: tuple[str, ...]
    pairs: tuple[Ragged, ...]
    anchor_start: dict[str, int]
    n_anchors: int
    n_labels: int
    n_documents: int
    children: IntArray
    parents: IntArray


def relate(
    corpus: Corpus,
    taxonomy: Taxonomy,
    supervision: Supervision,
    *,
    hierarchy: bool = True,
    metadata: Collection[str] | None = None,
) -> Relations:
    """Lay out the pairs of the generative story.

    Parameters
    ----------
    corpus, taxonomy, supervision
        The documents, the tree and the labelled documents.
    hierarchy : bool
        Whether parent and child labels are paired (off in the No-Hierarchy ablation).
    metadata : collection of str, optional
        The metadata types to use; all of them by default, none for the No-Metadata ablation.
    """
    names, pairs, starts = ["label"], [], {"label": 0}
    labels: list[list[int]] = [[] for _ in range(len(corpus))]
    for row, node in zip(supervision.rows.tolist(), supervision.nodes.tolist(), strict=True):
        labels[row].append(node)
    pairs.append(Ragged.from_lists(labels))
    offset = len(taxonomy)
    for kind, column in corpus.metadata.items():
        if metadata is not None and kind not in metadata:
            continue
        name = f"metadata:{kind}"
        names.append(name)
        starts[name] = offset
        pairs.append(Ragged(column.values.values + np.int32(offset), column.values.offsets))
        offset += len(column.vocabulary)
    names.append("word")
    starts["word"] = offset
    pairs.append(Ragged(corpus.tokens.values + np.int32(offset), corpus.tokens.offsets))
    offset += len(corpus.words)
    nodes = np.arange(1, len(taxonomy) if hierarchy else 1, dtype=np.int32)
    return Relations(
        names=tuple(names),
        pairs=tuple(pairs),
        anchor_start=starts,
        n_anchors=offset,
        n_labels=len(taxonomy),
        n_documents=len(corpus),
        children=nodes,
        parents=np.asarray(taxonomy.parents, dtype=np.int32)[nodes],
    )
