"""Rows of documents as dense and sparse matrices: counts, weights and unit lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from himecat.runtime.sparse import is_large, product

FloatArray = npt.NDArray[np.float32]


def unit(rows: npt.NDArray[np.floating]) -> FloatArray:
    """The rows scaled to length 1; a row of zeros stays.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
    [[0.6..., 0.8...], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def unit_in_place(rows: FloatArray) -> FloatArray:
    """What `unit` gives, written over the rows: documents x dimensions are large.

    Examples
    --------
    >>> rows = np.array([[3.0, 4.0]], dtype=np.float32)
    >>> unit_in_place(rows) is rows, rows.round(1).tolist()
    (True, [[0.6..., 0.8...]])
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1.0
    rows /= lengths[:, None]
    return rows


def inverse_frequency(documents: npt.NDArray[np.floating], n_documents: int) -> FloatArray:
    """Inverse document frequency (smoothed) of words or values, given in how many documents each occurs.

    Examples
    --------
    >>> inverse_frequency(np.array([1.0, 9.0]), 9).round(2).tolist()
    [2.6..., 1.0]
    """
    return np.asarray(np.log((1.0 + n_documents) / (1.0 + documents)) + 1.0, dtype=np.float32)


def with_entries(matrix: Any, data: npt.NDArray[np.floating]) -> Any:
    """A sparse matrix with other entries in the same places.

    Examples
    --------
    >>> with_entries(csr_matrix([[0, 1]]), np.array([5.0])).toarray().tolist()
    [[0.0, 5.0]]
    """
    found = csr_matrix((data.astype(np.float32, copy=False), matrix.indices, matrix.indptr), matrix.shape)
    found.has_canonical_format = True
    return found


def scale_columns(matrix: Any, weights: FloatArray) -> Any:
    """A sparse matrix with each column times its weight.

    Examples
    --------
    >>> scale_columns(csr_matrix([[1, 1]]), np.array([2.0, 3.0], dtype=np.float32)).toarray().tolist()
    [[2.0, 3.0]]
    """
    return with_entries(matrix, matrix.data * weights[matrix.indices])


def tf_idf(frequencies: Any, idf: FloatArray) -> Any:
    """The columns of a sparse matrix times their inverse document frequencies, rows scaled to length 1.

    Examples
    --------
    >>> counts = csr_matrix(np.array([[3.0, 2.0]], dtype=np.float32))
    >>> tf_idf(counts, np.array([1.0, 2.0], dtype=np.float32)).toarray().round(1).tolist()
    [[0.6..., 0.8...]]
    """
    rows = scale_columns(frequencies, idf)
    ones = np.ones(rows.shape[1], dtype=np.float32)
    lengths = np.sqrt(with_entries(rows, rows.data * rows.data) @ ones)
    lengths[lengths == 0] = 1.0
    return with_entries(rows, rows.data * np.repeat(1.0 / lengths, np.diff(rows.indptr)))


def side_by_side(parts: Sequence[Any]) -> Any:
    """What `scipy.sparse.hstack` gives, without a detour over coordinates.

    Examples
    --------
    >>> side_by_side([csr_matrix([[1.0], [2.0]]), csr_matrix([[3.0], [0.0]])]).toarray().tolist()
    [[1.0, 3.0], [2.0, 0.0]]
    """
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


def weighted_sums(counts: Any, weights: FloatArray, vectors: FloatArray, n_batches: int = 1) -> FloatArray:
    """Unit directions of documents: the weighted sums of the vectors of their terms.

    Parameters
    ----------
    n_batches : int
        How many such products there will be: with many, compiled loops are worth loading.

    Examples
    --------
    >>> counts = csr_matrix(np.array([[2.0, 0.0]], dtype=np.float32))
    >>> weighted_sums(counts, np.ones(2, np.float32), np.eye(2, dtype=np.float32)).tolist()
    [[1.0, 0.0]]
    """
    weighted = scale_columns(counts, weights)
    return unit_in_place(product(weighted, vectors, large=is_large(weighted, vectors.shape[1], n_batches)))


def check_shapes(arrays: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]]) -> None:
    """Raise a `ValueError` for the first named array whose shape is not the expected one.

    Examples
    --------
    >>> check_shapes({"centre": (np.zeros(2), (3,))})
    Traceback (most recent call last):
    ...
    ValueError: 'centre' should hold 3 numbers, not 2
    """
    for name, (found, shape) in arrays.items():
        if found.shape != shape:
            expected, actual = (" x ".join(map(str, sizes)) for sizes in (shape, found.shape))
            raise ValueError(f"'{name}' should hold {expected} numbers, not {actual}")
