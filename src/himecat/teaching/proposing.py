"""What a fitted model proposes: new categories, and children for a leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from himecat.classifier.assigned import assigned
from himecat.classifier.fit import DefaultClassifier
from himecat.classifier.proposals import (
    Known,
    Proposal,
    distinctive_words,
    grouped,
    propose,
)
from himecat.classifier.regrouped import RegroupedClassifier
from himecat.classifier.staged import StagedClassifier
from himecat.classifier.stages import MANY_LEAVES
from himecat.errors import DataError, UsageError
from himecat.input.corpus import Corpus, Supervision
from himecat.methods import check_number
from himecat.runtime.threads import usable_threads
from himecat.teaching.tree_changes import TreeEditor
from himecat.views.matrices import FloatArray

EXAMPLES = 10
"""Documents of a proposal, the most typical ones, that become examples of a category."""
_BATCH = 4096


@dataclass(frozen=True)
class NamedProposal:
    """A proposal with the ids of its documents.

    Attributes
    ----------
    name : str
        Its first words.
    words : tuple of str
        Its most distinctive words.
    ids : tuple of str
        Its documents, the most typical ones first.
    rows : array of int
        Their rows.
    parent : tuple of str
        The path of the category below which it would stand; empty for the top level.
    score : float
        How much it looks like a missing category, from 0 to 1.
    """

    name: str
    words: tuple[str, ...]
    ids: tuple[str, ...]
    rows: Any
    parent: tuple[str, ...]
    score: float

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "name": self.name,
            "parent": list(self.parent),
            "size": len(self.ids),
            "score": round(self.score, 4),
            "words": list(self.words),
            "ids": list(self.ids),
        }

    def change(self, name: str | None = None, parent: Sequence[str] | None = None) -> dict[str, Any]:
        """The change of the tree that makes a category of it, with its most typical documents as examples."""
        return {
            "op": "add",
            "name": self.name if name is None else name,
            "parent": list(self.parent if parent is None else parent),
            "documents": list(self.ids[:EXAMPLES]),
        }


def propose_categories(model: TreeEditor, documents: Any = None, count: int = 10) -> list[NamedProposal]:
    """Groups of documents that may be categories which the tree lacks, the most likely first.

    Parameters
    ----------
    model : HiMeCat
        A fitted model that keeps its documents.
    documents : path, DataFrame, list of dicts or Corpus, optional
        The documents; by default those that are kept with the model.
    count : int
        How many proposals at most.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> texts = ["red fox den"] * 8 + ["old car wheel"] * 8 + ["blue sky rain"] * 8
    >>> labels = ["animals", *[None] * 7, "things", *[None] * 15]
    >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(texts, labels)
    >>> sorted(propose_categories(model, count=1)[0].words)
    ['blue', 'rain', 'sky']
    """
    check_number("count", count, 1, 1e6, above=False, whole=True)
    if isinstance(model.classifier_, StagedClassifier):
        raise UsageError(
            f"Categories cannot be proposed for a tree of {model.taxonomy_.n_leaves:,} leaves, only for one of up to "
            f"{MANY_LEAVES:,}: propose them for a part of it, with a model of its own."
        )
    learned = model.learned_documents("propose categories")
    corpus = learned.corpus if documents is None else model.encode(documents)
    labelled = {learned.corpus.ids[row] for row in learned.supervision.rows.tolist()}
    own = _vectors(model, learned.corpus.take(learned.supervision.rows))
    nodes = learned.supervision.nodes
    known = Known.of(model.taxonomy_, own, Supervision(np.arange(len(nodes)), nodes))
    if not len(known.leaves):
        raise DataError(
            "No leaf of the model has a labelled document: there is nothing to compare documents with."
        )
    found: list[Proposal] = propose(
        model.taxonomy_,
        _vectors(model, corpus),
        model.classifier_.leaf_probabilities(corpus, usable_threads(model.threads)),
        known,
        corpus,
        labelled=[row for row, name in enumerate(corpus.ids) if name in labelled],
        count=count,
        seed=int(model.random_state),
    )
    return [
        NamedProposal(
            one.name,
            one.words,
            tuple(corpus.ids[row] for row in one.rows.tolist()),
            one.rows,
            model.taxonomy_.path(one.parent),
            one.score,
        )
        for one in found
    ]


def propose_children(model: TreeEditor, label: Any, count: int) -> dict[str, list[str]]:
    """Children that a leaf may be split into: the documents of the model that it holds, in groups.

    Returns
    -------
    dict of str to list of str
        Names made of distinctive words, and the ids of the most typical documents.
    """
    learned = model.learned_documents("propose children")
    node = model.node_of(label)
    position = int(model.taxonomy_.leaf_position[node])
    if position < 0:
        raise UsageError(
            f"{model.taxonomy_.title(node)} has categories below it already: add others to them."
        )
    corpus = learned.corpus
    at = assigned(model.classifier_, model.taxonomy_, corpus, usable_threads(model.threads)).nodes
    rows = np.flatnonzero(at == node)
    if len(rows) < 2 * count:
        raise DataError(
            f"{model.taxonomy_.title(node)} has {len(rows):,} documents: too few for {count} groups."
        )
    some = corpus.take(rows)
    vectors = _vectors(model, some)
    centres, group_of = grouped(vectors, count, int(model.random_state))
    found: dict[str, list[str]] = {}
    for group in range(len(centres)):
        own = np.flatnonzero(group_of == group)
        own = own[np.argsort(-(vectors[own] @ centres[group]), kind="stable")]
        words = distinctive_words(some.tokens, some.words, own)
        name = " ".join(words[:3]) or f"group {group + 1}"
        if len(own):
            found.setdefault(name, []).extend(some.ids[row] for row in own[:EXAMPLES].tolist())
    return found


def _vectors(model: TreeEditor, corpus: Corpus) -> FloatArray:
    """What documents are like: their smoothed directions in all views, or in the words."""
    classifier = model.classifier_
    fitted = classifier.fitted if isinstance(classifier, RegroupedClassifier) else classifier
    parts = [np.zeros((0, 0), dtype=np.float32)] if not len(corpus) else []
    for first in range(0, len(corpus), _BATCH):
        some = corpus.between(first, first + _BATCH)
        if isinstance(fitted, DefaultClassifier | StagedClassifier):
            parts.append(fitted.views.see(some, n_batches=-(-len(corpus) // _BATCH)).smoothed)
        else:
            parts.append(classifier.directions(some))
    return np.concatenate(parts)
