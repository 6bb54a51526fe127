"""A document seen three ways: the direction of its text, that with its metadata, and its plain features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.errors import UsageError
from himecat.input.corpus import Corpus, Ragged
from himecat.runtime.sparse import is_large, product
from himecat.runtime.threads import Run, run_serial
from himecat.views.encoder_cache import COLUMN
from himecat.views.metadata import ValueTrust, learn_trust, speaking_types
from himecat.views.words import SpectralWords, learn_topics, learn_words, load_loops, occurrences

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

    def see(self, corpus: Corpus, *, batches: int = 1) -> Seen:
        """Documents that took no part in learning, or that are treated as if they had not.

        Parameters
        ----------
        batches : int
            How many times as many documents there are in all.
        """
        counts = _damped(occurrences(corpus.tokens, len(self.weights)))
        text = self._text(corpus, counts, batches)
        shared = self._shared_values(corpus)
        whole = np.zeros_like(text)
        for kind, one in self._among_shared.items():
            if one.trust > 0:
                expected = one.predict(shared[kind])
                expected *= np.float32(one.trust)
                whole += expected
        whole += text
        return Seen(text, _to_length_1(whole), self._features(counts, shared))

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

    def _text(self, corpus: Corpus, counts: Any, batches: int = 1) -> FloatArray:
        encoded = corpus.columns.get(COLUMN)
        if self.encoder_centre is not None and encoded is None:
            raise UsageError(
                "This model was fitted with an encoder: its vectors are needed for these documents."
            )
        return self._side_by_side(counts, encoded, batches)

    def _side_by_side(self, counts: Any, encoded: FloatArray | None, batches: int = 1) -> FloatArray:
        """The directions of texts with these damped counts of words, all parts together at length 1."""
        raw = _directions(counts, self.weights, self.words, batches)
        parts = [_centred(raw, self.centre)]
        if self.topics is not None and self.topic_centre is not None:
            raw = _directions(counts, self.rarity, self.topics, batches)
            parts.append(_centred(raw, self.topic_centre))
            parts[-1] *= np.float32(_TOPIC_SHARE)
        if self.encoder_centre is not None and encoded is not None:
            parts.append(_centred(encoded.copy(), self.encoder_centre))
            parts[-1] *= np.float32(_ENCODER_SHARE)
        return parts[0] if len(parts) == 1 else _to_length_1(np.hstack(parts))

    @cached_property
    def _among_shared(self) -> dict[str, ValueTrust]:
        """The trust in those values alone that several documents share: the others have nothing to say."""
        found = {}
        for kind, one in self.trust.items():
            known = one.rows >= 0
            rows = np.arange(len(one.sums), dtype=np.int64)
            found[kind] = ValueTrust(one.trust, one.likeness[known], one.counts[known], rows, one.sums)
        return found

    def _shared_values(self, corpus: Corpus) -> dict[str, Ragged]:
        """The values of every document that several documents share, in the order of their sums."""
        return {
            kind: corpus.metadata[kind].values.renumbered(one.rows.astype(np.int32))
            for kind, one in self.trust.items()
        }

    def _features(self, counts: Any, shared: Mapping[str, Ragged]) -> Any:
        parts = [_scaled(_by_column(counts, self.rarity))]
        for kind, rarity in self.value_rarity.items():
            carried = occurrences(shared[kind], len(rarity))
            carried.data[:] = 1.0
            parts.append(_scaled(_by_column(carried, rarity)))
            parts[-1].data *= np.float32(self.trust[kind].trust > 0)
        return _side_by_side(parts)


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
    run: Run = run_serial,
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
    by_rarity = _by_column(counts, rarity)

    def words_job() -> SpectralWords:
        if words is not None:
            return SpectralWords(words, np.ones(len(words), dtype=np.float32))
        speaking = speaking_types(columns, _scaled(_by_column(found_in, rarity)))
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

    spectral, _, found_topics = run([words_job, lambda: load_loops(found_in), topics_job])
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
        corpus.columns[COLUMN].mean(axis=0) if COLUMN in corpus.columns else None,
    )
    text = views._text(corpus, counts)
    trust, expected = learn_trust(columns, text, learned=learned_trust)
    value_rarity = {
        kind: inverse_frequency(one.counts[one.rows >= 0], len(corpus)) for kind, one in trust.items()
    }
    views = replace(views, trust=trust, value_rarity=value_rarity)
    expected += text
    return views, Seen(text, _to_length_1(expected), views._features(counts, views._shared_values(corpus)))


def _damped(counts: Any) -> Any:
    """Occurrences, of which ten do not say ten times as much as one."""
    return _with_entries(counts, 1.0 + np.log(counts.data))


def _directions(counts: Any, weights: FloatArray, vectors: FloatArray, batches: int = 1) -> FloatArray:
    """Unit vectors of documents, as the sum of the weighted vectors of their words."""
    weighted = _by_column(counts, weights)
    return _to_length_1(product(weighted, vectors, large=is_large(weighted, vectors.shape[1], batches)))


def _to_length_1(rows: FloatArray) -> FloatArray:
    """What `unit` gives, in the place of the rows."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1.0
    rows /= lengths[:, None]
    return rows


def _centred(rows: FloatArray, centre: FloatArray) -> FloatArray:
    """The rows seen from the centre, at length 1 and in their place; a row of zeros stays."""
    empty = ~rows.any(axis=1)
    rows -= centre
    rows[empty] = 0.0
    return _to_length_1(rows)


def _with_entries(matrix: Any, data: npt.NDArray[np.floating]) -> Any:
    """A sparse matrix with other entries in the same places."""
    found = csr_matrix((data.astype(np.float32, copy=False), matrix.indices, matrix.indptr), matrix.shape)
    found.has_canonical_format = True
    return found


def _by_column(matrix: Any, weights: FloatArray) -> Any:
    """A sparse matrix with each column times its weight."""
    return _with_entries(matrix, matrix.data * weights[matrix.indices])


def _scaled(rows: Any) -> Any:
    """Rows of a sparse matrix at length 1."""
    ones = np.ones(rows.shape[1], dtype=np.float32)
    lengths = np.sqrt(_with_entries(rows, rows.data * rows.data) @ ones)
    lengths[lengths == 0] = 1.0
    return _with_entries(rows, rows.data * np.repeat(1.0 / lengths, np.diff(rows.indptr)))


def _side_by_side(parts: Sequence[Any]) -> Any:
    """One sparse matrix from several with the same rows, without a detour over coordinates."""
    indptr = sum(part.indptr.astype(np.int64) for part in parts)
    assert isinstance(indptr, np.ndarray)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    # Where the entries of each row go: behind those of the parts before.
    start, first_column = indptr[:-1].copy(), 0
    for part in parts:
        sizes = np.diff(part.indptr)
        places = np.arange(part.nnz) + np.repeat(start - part.indptr[:-1], sizes)
        indices[places] = part.indices + first_column
        data[places] = part.data
        start += sizes
        first_column += part.shape[1]
    found = csr_matrix((data, indices, indptr), (len(indptr) - 1, first_column))
    found.has_canonical_format = True
    return found
