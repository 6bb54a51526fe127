"""Lists of integer lists in two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]

_BLOCK = 1 << 22


@dataclass(frozen=True)
class Ragged:
    """A list of integer lists in two arrays: row i is `values[offsets[i]:offsets[i + 1]]`.

    Examples
    --------
    >>> rows = Ragged.from_lists([[1, 2], [], [3]])
    >>> len(rows), rows[0].tolist(), rows.lengths.tolist()
    (3, [1, 2], [2, 0, 1])
    >>> rows
    <Ragged: 3 values in 3 rows>
    """

    values: IntArray
    offsets: OffsetArray

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        """Pack a list of integer lists."""
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in lists], out=offsets[1:])
        values = np.fromiter((v for row in lists for v in row), dtype=np.int32, count=int(offsets[-1]))
        return cls(values, offsets)

    @classmethod
    def grouped(cls, rows: npt.NDArray[np.integer], values: npt.NDArray[np.integer], n_rows: int) -> Ragged:
        """Values by the row that each belongs to; those of one row stay in their order.

        Examples
        --------
        >>> Ragged.grouped(np.array([1, 0, 1]), np.array([5, 6, 7]), 2)[1].tolist()
        [5, 7]
        """
        offsets = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=n_rows), out=offsets[1:])
        return cls(values[np.argsort(rows, kind="stable")].astype(np.int32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<Ragged: {len(self.values):,} values in {len(self):,} rows>"

    def __getitem__(self, row: int) -> IntArray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> OffsetArray:
        """Number of values in every row."""
        return np.diff(self.offsets)

    @property
    def row_of_value(self) -> IntArray:
        """For every value, the row it stands in."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)

    def totals(self, n_values: int) -> npt.NDArray[np.int64]:
        """How often each of the values 0, 1, ... occurs in all rows together.

        Examples
        --------
        >>> Ragged.from_lists([[0, 2], [2]]).totals(4).tolist()
        [1, 0, 2, 0]
        """
        totals = np.zeros(n_values, dtype=np.int64)
        # In blocks, because bincount makes a copy twice the size of its input.
        for start in range(0, len(self.values), _BLOCK):
            totals += np.bincount(self.values[start : start + _BLOCK], minlength=n_values)
        return totals

    def take(self, rows: npt.ArrayLike) -> Ragged:
        """The given rows, in the given order."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        starts = np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Ragged(self.values[starts + np.arange(int(offsets[-1]))], offsets)

    def between(self, start: int, end: int) -> Ragged:
        """Rows that stand together, without a copy of their values."""
        bounds = self.offsets[start : end + 1]
        return Ragged(self.values[bounds[0] : bounds[-1]], bounds - bounds[0])

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        """All rows of all parts, in order."""
        if not parts:
            return Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))
        lengths = np.concatenate([part.lengths for part in parts])
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Ragged(np.concatenate([part.values for part in parts]).astype(np.int32), offsets)

    def renumbered(self, new_ids: npt.NDArray[np.int32]) -> Ragged:
        """Replace every value v by `new_ids[v]`, and drop those whose new id is negative."""
        values = new_ids[self.values]
        kept = values >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(values[kept].astype(np.int32), before[self.offsets].astype(np.int64))

    def known(self) -> Ragged:
        """The rows without negative values.

        Examples
        --------
        >>> Ragged.from_lists([[3, -1], [-1]]).known().lengths.tolist()
        [1, 0]
        """
        kept = self.values >= 0
        if kept.all():
            return self
        before = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(self.values[kept], before[self.offsets].astype(np.int64))

    def expanded(self, parts: Ragged, longest: int | None = None) -> Ragged:
        """Replace every value v by the row v of `parts`; of a row, only the first `longest` values stay.

        Examples
        --------
        >>> rows = Ragged.from_lists([[0, 1], [1]]).expanded(Ragged.from_lists([[5], [6, 7]]), longest=2)
        >>> rows[0].tolist(), rows[1].tolist()
        ([5, 6], [6, 7])
        """
        whole = parts.take(self.values)
        rows = Ragged(whole.values, whole.offsets[self.offsets])
        return rows if longest is None else rows.head(longest)

    def distinct(self) -> Ragged:
        """Every value of a row once, where it stands first.

        Examples
        --------
        >>> Ragged.from_lists([[3, 1, 3], [3]]).distinct().values.tolist()
        [3, 1, 3]
        """
        keys = self.row_of_value.astype(np.int64) * (int(self.values.max(initial=0)) + 1) + self.values
        first = np.sort(np.unique(keys, return_index=True)[1])
        before = np.searchsorted(first, self.offsets)
        return Ragged(self.values[first], before.astype(np.int64))

    def head(self, longest: int) -> Ragged:
        """The first `longest` values of every row, as a copy.

        Examples
        --------
        >>> Ragged.from_lists([[5, 6, 7], [8]]).head(2).values.tolist()
        [5, 6, 8]
        """
        lengths = self.lengths
        position = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], lengths)
        offsets = np.zeros_like(self.offsets)
        np.cumsum(np.minimum(lengths, longest), out=offsets[1:])
        return Ragged(self.values[position < longest], offsets)

    def counts(
        self,
        n_columns: int,
        *,
        binary: bool = False,
        weights: npt.NDArray[np.float32] | None = None,
        dtype: npt.DTypeLike = np.float32,
    ) -> Any:
        """How often each value occurs in each row, as a sparse matrix; `binary`: 1 where it occurs.

        With `weights`, one for every value, these are added up instead.

        Examples
        --------
        >>> Ragged.from_lists([[1, 1], []]).counts(2).toarray().tolist()
        [[0.0, 2.0], [0.0, 0.0]]
        """
        from scipy.sparse import csr_matrix

        counted: npt.NDArray[Any] = np.ones(len(self.values), dtype=dtype) if weights is None else weights
        # A copy: adding up duplicates reorders the indices, and these are the rows' own.
        found = csr_matrix((counted, self.values, self.offsets), shape=(len(self), n_columns), copy=True)
        found.sum_duplicates()
        if binary:
            found.data[:] = 1.0
        return found

    def sums_of(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """For every row, the sum of the vectors that its values name.

        Examples
        --------
        >>> Ragged.from_lists([[0, 0], []]).sums_of(np.eye(2, dtype=np.float32)).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
        """
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.values), dtype=np.float32)
        picks = csr_matrix((ones, self.values, self.offsets), shape=(len(self), len(vectors)))
        return np.asarray(picks @ vectors, dtype=np.float32)
