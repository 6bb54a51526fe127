"""What speaks for a label: of the label itself, and in one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from himecat.classifier.assignments import Assignments
from himecat.classifier.protocol import Classifier
from himecat.errors import UsageError
from himecat.input.corpus import Corpus
from himecat.runtime.notebook import html_table, kept_rows
from himecat.views.space import JointSpace, Neighbour, contrast


@dataclass(frozen=True)
class LabelExplanation:
    """The words, metadata values and labels nearest to a label.

    Examples
    --------
    >>> LabelExplanation(("arts",), [Neighbour("word", "paint", 0.5)], {}, []).as_dict()["words"]
    [{'name': 'paint', 'cosine': 0.5}]
    """

    path: tuple[str, ...]
    words: list[Neighbour]
    metadata: dict[str, list[Neighbour]]
    labels: list[Neighbour]

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""

        def plain(found: Sequence[Neighbour]) -> list[dict[str, Any]]:
            return [{"name": one.name, "cosine": round(one.cosine, 6)} for one in found]

        return {
            "path": list(self.path),
            "words": plain(self.words),
            "metadata": {kind: plain(found) for kind, found in self.metadata.items()},
            "labels": plain(self.labels),
        }

    def _repr_html_(self) -> str:
        found = [("word", one) for one in self.words]
        found += [(kind, one) for kind, near in self.metadata.items() for one in near]
        found += [("label", one) for one in self.labels]
        rows = [(kind, one.name, float(one.cosine)) for kind, one in found]
        shown = [rows[row] for row in kept_rows(len(rows))]
        return html_table(["kind", "name", "cosine"], shown, len(rows), "/".join(self.path))


@dataclass(frozen=True)
class Evidence:
    """A word or metadata value of a document and how much more it speaks for the label than for its siblings.

    Examples
    --------
    >>> Evidence("word", "paint", 2, 0.31).count
    2
    """

    kind: str
    name: str
    count: int
    weight: float


@dataclass(frozen=True)
class DocumentExplanation:
    """Why a document was placed where it was: its path, confidence, and the evidence in it.

    Where it was asked for, the evidence is that for another `label`.

    Examples
    --------
    >>> DocumentExplanation(("arts",), (0.8,), [Evidence("word", "paint", 2, 0.31)]).as_dict()["path"]
    ['arts']
    """

    path: tuple[str, ...]
    confidence: tuple[float, ...]
    evidence: list[Evidence]
    label: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "path": list(self.path),
            "confidence": list(self.confidence),
            **({} if self.label is None else {"label": list(self.label)}),
            "evidence": [
                {"kind": e.kind, "name": e.name, "count": e.count, "weight": round(e.weight, 6)}
                for e in self.evidence
            ],
        }

    def _repr_html_(self) -> str:
        return Explanations([self])._repr_html_()


class Explanations(list[DocumentExplanation]):
    """The explanations of several documents: a list that a notebook shows as a table.

    Examples
    --------
    >>> Explanations([DocumentExplanation(("arts",), (0.8,), [Evidence("word", "paint", 2, 0.31)])])._repr_html_()
    '<table>...<td>arts</td><td>0.800</td><td>paint 0.31</td>...'
    """

    def _repr_html_(self) -> str:
        rows = []
        for one in self[: len(kept_rows(len(self)))]:
            evidence = ", ".join(f"{e.name} {e.weight:.2f}" for e in one.evidence)
            if one.label is not None:
                evidence = f"for {'/'.join(one.label)}: {evidence}"
            rows.append(("/".join(one.path), *one.confidence[-1:], *[""] * (not one.confidence), evidence))
        return html_table(["path", "confidence", "evidence"], rows, len(self))


def explain_label(
    space: JointSpace, node: int, count: int = 10, classifier: Classifier | None = None
) -> LabelExplanation:
    """List what lies nearest to a label in the joint space; no metadata that the classifier does not use.

    Examples
    --------
    >>> from himecat import Taxonomy
    >>> from himecat.input.corpus import Vocabulary
    >>> axes = np.eye(3, dtype=np.float32)
    >>> space = JointSpace(Taxonomy.from_paths([("a",), ("b",)]), axes, axes, axes[:0], {},
    ...                    Vocabulary(("x", "y", "z"), np.ones(3, int)), {})
    >>> explain_label(space, 1, 1).words
    [Neighbour(kind='word', name='y', cosine=1.0)]
    """
    if count < 1:
        raise UsageError(f"top must be at least 1, not {count}.")
    vector = space.labels[node]
    others = {space.taxonomy.title(0), space.taxonomy.title(node)}
    return LabelExplanation(
        path=space.taxonomy.path(node),
        words=space.nearest(vector, "word", count),
        metadata={
            kind: space.nearest(vector, f"metadata:{kind}", count) for kind in _used(space, classifier)
        },
        labels=[one for one in space.nearest(vector, "label", count + 2) if one.name not in others][:count],
    )


def _used(space: JointSpace, classifier: Classifier | None) -> list[str]:
    unused = () if classifier is None else classifier.unused_metadata
    return [kind for kind in space.metadata if kind not in unused]


def explain_row(
    space: JointSpace,
    corpus: Corpus,
    row: int,
    node: int,
    count: int = 10,
    classifier: Classifier | None = None,
) -> list[Evidence]:
    """Rank the words and metadata values of a document by how much they favour `node` over its siblings.

    The weight of a word is its cosine with the label less the mean cosine with the label's siblings, times
    1 + ln(number of times it occurs), so that a common word does not win by being everywhere. The classifier gives
    the weights of its words, and what views of one's own add. At the root there is nothing to explain.

    Examples
    --------
    >>> from himecat import Taxonomy, read_corpus
    >>> corpus = read_corpus([{"text": "x x y"}])
    >>> axes = np.eye(3, dtype=np.float32)
    >>> space = JointSpace(Taxonomy.from_paths([("a",), ("b",)]), axes, axes[1:], axes[:0], {}, corpus.words, {})
    >>> explain_row(space, corpus, 0, 1)
    [Evidence(kind='word', name='x', count=2, weight=1.69...)]
    """
    if node == 0:
        return []
    family = space.taxonomy.children[space.taxonomy.parents[node]]
    direction = contrast(space.labels[list(family)], family.index(node))
    weights = None if classifier is None else classifier.word_weights
    found: list[Evidence] = []
    if classifier is not None:
        found.extend(Evidence(*one) for one in classifier.evidence(corpus, row, node))
    sources = [("word", corpus.tokens[row], space.words, space.vocabulary.names)]
    for kind in _used(space, classifier):
        if kind in corpus.metadata:
            values = corpus.metadata[kind].values[row]
            sources.append((f"metadata:{kind}", values, space.metadata[kind], space.values[kind].names))
    for kind, ids, vectors, names in sources:
        distinct, counts = np.unique(ids, return_counts=True)
        scores = (vectors[distinct] @ direction) * (1.0 + np.log(counts))
        if weights is not None and kind == "word":
            scores = scores * weights[distinct] / max(float(weights.mean()), 1e-12)
        found.extend(
            Evidence(kind, names[i], int(n), float(w))
            for i, n, w in zip(distinct.tolist(), counts, scores, strict=True)
        )
    found.sort(key=lambda e: (-e.weight, e.kind, e.name))
    return [e for e in found[:count] if e.weight > 0]


def explain_documents(
    space: JointSpace,
    corpus: Corpus,
    placed: Assignments,
    node: int | None = None,
    count: int = 10,
    classifier: Classifier | None = None,
) -> Explanations:
    """What in each document speaks for `node`, or for where it was placed; see `explain_row`.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> documents = [{"text": "red fox", "labels": "animals"}, {"text": "old car", "labels": "things"}]
    >>> model = HiMeCat(method=Default(min_count=1)).fit(documents)
    >>> corpus = model.encode(["a fox"])
    >>> explain_documents(model.space_, corpus, model.assign(corpus))[0].path
    ('animals',)
    """
    return Explanations(
        DocumentExplanation(
            placed.path(row),
            placed.confidences(row),
            explain_row(
                space, corpus, row, int(placed.nodes[row]) if node is None else node, count, classifier
            ),
            None if node is None else space.taxonomy.path(node),
        )
        for row in range(len(corpus))
    )
