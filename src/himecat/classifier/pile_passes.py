"""Passes over a pile: what all its documents say of metadata values, where the rest is learned from a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.classifier.scorer import Scorer
from himecat.classifier.votes import Votes, agreement, as_votes, unweighed, with_purity
from himecat.input.corpus import Corpus
from himecat.input.intake import Each
from himecat.input.pile import Pile
from himecat.input.validate import Material
from himecat.views.base import Everyone
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import FloatArray
from himecat.views.value_sums import Marks, Pass, Seen, sum_pile

# What views are told of the number of batches: compiled loops are worth loading.
_MANY = 1000


@dataclass(frozen=True)
class _Directions:
    """The directions of the texts of a batch."""

    views: Views
    kinds: Sequence[str]

    def __call__(self, corpus: Corpus) -> Seen:
        texts = self.views.texts(self.views.batch(corpus, _MANY))
        columns = {kind: corpus.metadata[kind] for kind in self.kinds}
        return Seen(
            {
                kind: (column.values.counts(len(column.vocabulary), binary=True), texts)
                for kind, column in columns.items()
            }
        )


def directions_of_pile(
    pile: Pile, corpus: Corpus, kinds: Sequence[str], each: Each, views: Views
) -> Everyone:
    """The sums of the directions of every value's documents.

    Parameters
    ----------
    corpus : Corpus
        The sample, in whose ids the pile is read.
    kinds : sequence of str
        The metadata types that are used.
    each : callable
        Runs the parts of the pile.
    views : Views
        Those of the text.
    """
    sums = sum_pile(_pass(pile, corpus, kinds, _Directions(views, kinds)), each)[0] if kinds else {}
    return Everyone(pile.n_documents, sums)


def _pass(pile: Pile, corpus: Corpus, kinds: Sequence[str], see: Callable[[Corpus], Seen]) -> Pass:
    return Pass(pile, corpus.words, {kind: corpus.metadata[kind].vocabulary for kind in kinds}, see)


@dataclass(frozen=True)
class _Voting:
    """What the documents of a batch vote, the labelled ones with what they are known to be."""

    views: Views
    scorer: Scorer
    decides: Mapping[str, bool]
    labelled: Marks
    allowed: npt.NDArray[np.bool_]

    def heard(self, corpus: Corpus) -> tuple[DocumentVectors, FloatArray]:
        vectors = self.views.see(corpus, n_batches=_MANY)
        found = self.scorer.texts(vectors)
        if len(self.labelled):
            places = np.minimum(np.searchsorted(self.labelled, vectors.fingerprints), len(self.labelled) - 1)
            rows = np.flatnonzero(self.labelled[places] == vectors.fingerprints)
            kept = np.where(self.allowed[places[rows]], np.maximum(found[rows], 1e-9), 0.0)
            found[rows] = kept / kept.sum(axis=1, keepdims=True)
        return vectors, found

    def __call__(self, corpus: Corpus) -> Seen:
        vectors, found = self.heard(corpus)
        products = {
            kind: (vectors.groups[kind].members, as_votes(found, decides))
            for kind, decides in self.decides.items()
        }
        return Seen(products, vectors.fingerprints)


@dataclass(frozen=True)
class _Agreeing:
    """How far the documents of a batch agree with the votes on their values."""

    voting: _Voting
    votes: Votes

    def __call__(self, corpus: Corpus) -> Seen:
        vectors, found = self.voting.heard(corpus)
        products = {}
        for kind, one in self.votes.types.items():
            members, decides = vectors.groups[kind].members, self.voting.decides[kind]
            agreed = [part for _, part in agreement(one, members, as_votes(found, decides), decides)]
            data = np.concatenate([np.zeros(0, np.float32), *agreed]).astype(np.float32)
            weighted = csr_matrix((data, members.indices, members.indptr), members.shape)
            # Of these the sums of columns are all that is asked for.
            products[kind] = (weighted, np.zeros((len(corpus), 0), np.float32))
        return Seen(products)


def with_votes_of_pile(
    scorer: Scorer,
    views: Views,
    vectors: DocumentVectors,
    material: Material,
    each: Each,
) -> Scorer:
    """The scorer with the votes of all documents; as it is, where no type of metadata votes.

    Parameters
    ----------
    vectors : DocumentVectors
        The documents of the sample, which has all labelled ones.
    each : callable
        Runs the parts of the pile.
    """
    pile, taxonomy, supervision = material.pile, material.taxonomy, material.supervision
    if scorer.votes is None or pile is None:
        return scorer
    decides = {kind: vectors.groups[kind].decides for kind in scorer.votes.types}
    labelled, place = np.unique(vectors.fingerprints[supervision.rows], return_inverse=True)
    allowed = np.zeros((len(labelled), taxonomy.n_leaves), dtype=bool)
    for row, node in zip(place.tolist(), supervision.nodes.tolist(), strict=True):
        allowed[row, taxonomy.positions_under(node)] = True
    voting = _Voting(views, replace(scorer, votes=None), decides, labelled, allowed)
    # Groups of all types make the fingerprints, whether they vote or not.
    kinds = list(views["metadata"].types)
    sums, voters = sum_pile(_pass(pile, material.corpus, kinds, voting), each)
    types = {
        kind: unweighed(one.sums, one.counts.astype(np.float32), decides[kind]) for kind, one in sums.items()
    }
    judge = _Agreeing(voting, Votes(types, voters))
    agreeing, _ = sum_pile(_pass(pile, material.corpus, kinds, judge), each)
    types = {kind: with_purity(one, agreeing[kind].counts, decides[kind]) for kind, one in types.items()}
    return replace(scorer, votes=Votes(types, voters))
