"""Whether documents that share a metadata value are similar; no label is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Ragged
from himecat.views.matrices import FloatArray

# Documents among which the spread of cosines is measured.
_SAMPLED = 1000
# A type is informative if the documents of its values are more similar than chance, by so many standard deviations.
_SIGNIFICANT = 3.0

Columns = Mapping[str, tuple[Ragged, int]]


def shared_values(
    values: Ragged, n_values: int
) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Documents x values that at least two documents have, the number of these documents, and the values."""
    carried = values.counts(n_values, binary=True)
    counts = np.asarray(carried.sum(axis=0), dtype=np.float64).ravel()
    shared = np.flatnonzero(counts > 1)
    return carried[:, shared], counts[shared], shared


def informative_types(columns: Columns, features: Any) -> list[str]:
    """The metadata types whose values are shared by documents with similar words.

    Asked of TF-IDF features, before word vectors are learned: the vectors of a type that served as context would
    agree with it.

    Parameters
    ----------
    columns : mapping of str to (Ragged, int)
        Value ids of every document and the number of values, by type.
    features : sparse matrix
        The words of the documents, rows at length 1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> words = csr_matrix(np.repeat(np.eye(2), 6, axis=0))
    >>> team, year = Ragged.from_lists([[0]] * 6 + [[1]] * 6), Ragged.from_lists([[0], [1], [2]] * 4)
    >>> informative_types({"team": (team, 2), "year": (year, 3)}, words)
    ['team']
    """
    n = features.shape[0]
    if n < 3:
        return list(columns)
    mean = (float(np.square(np.asarray(features.sum(axis=0), dtype=np.float64)).sum()) - n) / (n * (n - 1.0))
    sample = features[:: -(-n // _SAMPLED)]
    cosines = (sample @ sample.T).tocsr()
    cosines.setdiag(0.0)
    size = sample.shape[0]
    spread = float(cosines.multiply(cosines).sum()) / (size * (size - 1.0))
    found = []
    for kind, (values, n_values) in columns.items():
        carried, counts, _ = shared_values(values, n_values)
        sums = carried.T.tocsr() @ features
        squares = np.asarray(sums.multiply(sums).sum(axis=1), dtype=np.float64).ravel()
        if _exceeds_chance(squares, counts, mean, spread):
            found.append(kind)
    return found


def is_informative(sums: FloatArray, counts: npt.NDArray[np.float64], directions: FloatArray) -> bool:
    """Whether documents that share a value are more similar than chance."""
    if not len(counts) or len(directions) < 3:
        return bool(len(counts))
    n = len(directions)
    mean = (float(np.square(directions.sum(axis=0, dtype=np.float64)).sum()) - n) / (n * (n - 1.0))
    # Directions fill fewer dimensions than they have, so the spread of cosines is measured.
    spread = float(np.square(directions.T @ directions / np.float32(n)).sum())
    return _exceeds_chance(squared_lengths(sums), counts, mean, spread)


def squared_lengths(sums: FloatArray) -> npt.NDArray[np.float64]:
    """Squared lengths of the rows, a few at a time: there may be very many."""
    starts = range(0, len(sums), 8192)
    parts = [np.square(sums[start : start + 8192].astype(np.float64)).sum(axis=1) for start in starts]
    return np.concatenate([np.zeros(0), *parts])


def _exceeds_chance(
    squares: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], mean: float, spread: float
) -> bool:
    """Whether pairs that share a value have larger cosines than any pairs, by three standard deviations.

    Parameters
    ----------
    squares : array
        Squared length of the sum of each value's documents.
    mean, spread : float
        Mean cosine, and mean squared cosine, of any two documents.
    """
    if not len(counts):
        return False
    excess = float(((squares - counts) / (counts - 1.0) - counts * mean).sum())
    # Both orders of every pair were counted.
    deviation = np.sqrt(2.0 * spread * float((counts / (counts - 1.0)).sum()))
    return bool(excess > _SIGNIFICANT * deviation)
