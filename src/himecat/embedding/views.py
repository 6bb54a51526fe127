"""A document seen three ways: the direction of its text, that with its metadata, and its plain features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack

from himecat.corpus.columns import Corpus
from himecat.embedding.spectral import SpectralWords, learn_topics, learn_words, occurrences
from himecat.embedding.trust import ValueTrust, learn_trust, speaking_types
from himecat.errors import UsageError
from himecat.products import Run, is_large, one_by_one, product

FloatArray = npt.NDArray[np.float32]

# Lengths of the topics' and of the encoder's part of a direction; that of the words' part is 1.
_TOPIC_SHARE = 0.5
_ENCODER_SHARE = 2.0


def unit(rows: npt.NDArray[np.floating]) -> FloatArray:
    """The rows scaled to length 1; a row of zeros stays.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
    [[0.6..., 0.8...], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def inverse_frequency(documents: npt.NDArray[np.floating], n_documents: int) -> FloatArray:
    """Weight of a word or value by the number of documents that have it: the rarer, the more it says.

    Examples
    --------
    >>> inverse_frequency(np.array([1.0, 9.0]), 9).round(2).tolist()
    [2.6..., 1.0]
    """
    return np.asarray(np.log((1.0 + n_documents) / (1.0 + documents)) + 1.0, dtype=np.float32)


@dataclass(frozen=True)
class Seen:
    """Documents in the three views; rows are documents.

    Attributes
    ----------
    text : array
        Unit directions of the texts; with an encoder, side by side with the encoder's.
    whole : array
        The same, drawn towards what the metadata let expect.
    features : sparse matrix
        Weighted words and metadata values.
    """

    text: FloatArray
    whole: FloatArray
    features: Any


@dataclass(frozen=True)
class DocumentViews:
    """What was learned about words and metadata values, ready for any document in the same vocabularies.

    Attributes
    ----------
    words : array
        Unit vectors of the words.
    weights : array
        How much a word pulls at the direction of its document.
    rarity : array
        Weight of a word as a plain feature.
    centre : array
        Mean direction of the texts, which says nothing about any one of them.
    trust : mapping of str to ValueTrust
        What the metadata values say, by type.
    value_rarity : mapping of str to array
        Weights of the values that several documents share as plain features, in the order of their sums.
    topics : array, optional
        How much each word belongs to each topic, where topics stand beside the words.
    topic_centre : array, optional
        Mean of the texts' directions in the topics.
    encoder_centre : array, optional
        Mean of the encoder's vectors, where there is an encoder.
    """

    words: FloatArray
    weights: FloatArray
    rarity: FloatArray
    centre: FloatArray
    trust: Mapping[str, ValueTrust]
    value_rarity: Mapping[str, FloatArray]
    topics: FloatArray | None = None
    topic_centre: FloatArray | None = None
    encoder_centre: FloatArray | None = None

    @property
    def dimension(self) -> int:
        """Length of a direction, all parts side by side."""
        further = (self.topic_centre, self.encoder_centre)
        return int(self.words.shape[1]) + sum(len(part) for part in further if part is not None)

    def see(self, corpus: Corpus) -> Seen:
        """Documents that took no part in learning, or that are treated as if they had not."""
        counts = _damped(occurrences(corpus.tokens, len(self.weights)))
        text = self._text(corpus, counts)
        expected = np.zeros_like(text)
        for kind, one in self.trust.items():
            if one.trust > 0:
                expected += np.float32(one.trust) * one.predict(corpus.metadata[kind].values)
        return Seen(text, unit(text + expected), self._features(corpus, counts))

    def direction_of_words(
        self,
        ids: npt.NDArray[np.integer],
        weights: FloatArray | None = None,
        encoded: FloatArray | None = None,
    ) -> FloatArray:
        """The direction of a text that consists of these words; zeros where there is none.

        Parameters
        ----------
        weights : array, optional
            How much each word counts.
        encoded : array, optional
            The encoder's vector for the same text; without it the encoder's part is zero.
        """
        if not len(ids) and encoded is None:
            return np.zeros(self.dimension, dtype=np.float32)
        counts = csr_matrix(
            (
                np.ones(len(ids), dtype=np.float32) if weights is None else weights,
                (np.zeros(len(ids), dtype=np.int64), ids),
            ),
            shape=(1, len(self.weights)),
        )
        rows = None
        if self.encoder_centre is not None:
            rows = np.zeros((1, len(self.encoder_centre)), np.float32) if encoded is None else encoded[None]
        return np.asarray(self._side_by_side(counts, rows)[0])

    def _text(self, corpus: Corpus, counts: Any) -> FloatArray:
        if self.encoder_centre is not None and corpus.encoded is None:
            raise UsageError(
                "This model was fitted with an encoder: its vectors are needed for these documents."
            )
        return self._side_by_side(counts, corpus.encoded)

    def _side_by_side(self, counts: Any, encoded: FloatArray | None) -> FloatArray:
        """The directions of texts with these damped counts of words, all parts together at length 1."""
        parts = [_centred(_directions(counts, self.weights, self.words), self.centre)]
        if self.topics is not None and self.topic_centre is not None:
            raw = _directions(counts, self.rarity, self.topics)
            parts.append(np.float32(_TOPIC_SHARE) * _centred(raw, self.topic_centre))
        if self.encoder_centre is not None and encoded is not None:
            parts.append(np.float32(_ENCODER_SHARE) * _centred(encoded, self.encoder_centre))
        return parts[0] if len(parts) == 1 else unit(np.hstack(parts))

    def _features(self, corpus: Corpus, counts: Any) -> Any:
        parts = [_scaled(counts @ diags(self.rarity))]
        for kind, rarity in self.value_rarity.items():
            rows = self.trust[kind].rows.astype(np.int32)
            carried = occurrences(corpus.metadata[kind].values.renumbered(rows), len(rarity))
            carried.data[:] = 1.0
            parts.append(_scaled(carried @ diags(rarity)) * np.float32(self.trust[kind].trust > 0))
        return hstack(parts).tocsr().astype(np.float32)


def learn_views(
    corpus: Corpus,
    kinds: list[str],
    *,
    dimension: int,
    contexts: int,
    weigh_words: bool,
    learned_trust: bool,
    seed: int,
    topics: int = 0,
    words: FloatArray | None = None,
    run: Run = one_by_one,
) -> tuple[DocumentViews, Seen]:
    """Learn the views of a corpus without looking at a label.

    Parameters
    ----------
    kinds : list of str
        Metadata types to use.
    weigh_words : bool
        Whether words count by how much they say; otherwise all count the same.
    topics : int
        How many topics stand beside the words' directions; none where 0.
    words : array, optional
        Unit vectors learned elsewhere; otherwise they are taken from the spectrum.
    run : callable
        Runs jobs that do not depend on each other, and returns their results in order.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "red fox", "by": "ann"}, {"text": "red fox den", "by": "ann"},
    ...                       {"text": "old car", "by": "bob"}, {"text": "old car wheel", "by": "bob"}],
    ...                      metadata=["by"])
    >>> views, seen = learn_views(corpus, ["by"], dimension=3, contexts=10, weigh_words=True,
    ...                           learned_trust=True, seed=0)
    >>> seen.text.shape, bool(seen.whole[0] @ seen.whole[1] > seen.whole[0] @ seen.whole[2])
    ((4, 3), True)
    """
    columns = {kind: (corpus.metadata[kind].values, len(corpus.metadata[kind].vocabulary)) for kind in kinds}
    found_in = occurrences(corpus.tokens, len(corpus.words))
    rarity = inverse_frequency(np.diff(found_in.tocsc().indptr).astype(np.float64), len(corpus))
    counts = _damped(found_in)
    by_rarity = counts @ diags(rarity)

    def words_job() -> SpectralWords:
        if words is not None:
            return SpectralWords(words, np.ones(len(words), dtype=np.float32))
        speaking = speaking_types(columns, _scaled(found_in @ diags(rarity)))
        return learn_words(
            corpus.tokens,
            len(corpus.words),
            [columns[kind] for kind in speaking],
            dimension=dimension,
            contexts=contexts,
            seed=seed,
            run=run,
        )

    def topics_job() -> FloatArray | None:
        return learn_topics(_scaled(by_rarity), topics, seed=seed, run=run) if topics else None

    spectral, found_topics = run([words_job, topics_job])
    weights = spectral.weights * rarity if weigh_words else np.ones_like(rarity)
    centre = _directions(counts, weights, spectral.vectors).mean(axis=0)
    views = DocumentViews(
        spectral.vectors,
        weights,
        rarity,
        centre,
        {},
        {},
        found_topics,
        None if found_topics is None else _directions(counts, rarity, found_topics).mean(axis=0),
        None if corpus.encoded is None else corpus.encoded.mean(axis=0),
    )
    text = views._text(corpus, counts)
    trust, expected = learn_trust(columns, text, learned=learned_trust)
    value_rarity = {
        kind: inverse_frequency(one.counts[one.rows >= 0], len(corpus)) for kind, one in trust.items()
    }
    views = replace(views, trust=trust, value_rarity=value_rarity)
    return views, Seen(text, unit(text + expected), views._features(corpus, counts))


def _damped(counts: Any) -> Any:
    """Occurrences, of which ten do not say ten times as much as one."""
    found = counts.copy()
    found.data = 1.0 + np.log(found.data)
    return found


def _directions(counts: Any, weights: FloatArray, vectors: FloatArray) -> FloatArray:
    """Unit vectors of documents, as the sum of the weighted vectors of their words."""
    weighted = (counts @ diags(weights)).tocsr().astype(np.float32, copy=False)
    return unit(product(weighted, vectors, large=is_large(weighted, vectors.shape[1])))


def _centred(rows: FloatArray, centre: FloatArray) -> FloatArray:
    there = (rows != 0).any(axis=1)
    return unit(np.where(there[:, None], rows - centre, 0.0))


def _scaled(rows: Any) -> Any:
    """Rows of a sparse matrix at length 1."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return diags((1.0 / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)) @ csr_matrix(rows)
