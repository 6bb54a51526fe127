"""Documents with only those features and metadata values that the documents of a stage have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from himecat.views.base import Group
from himecat.views.combined import DocumentVectors, Views

Columns = npt.NDArray[np.int32]
_FEATURES, _APART, _GROUPS = "features", "apart", "groups/"


class Sizes(NamedTuple):
    """How many columns documents have, as `Views` say it of all of them."""

    dimension: int
    n_features: int
    n_apart: int
    n_groups: Mapping[str, int]


@dataclass(frozen=True)
class Narrowed:
    """Which columns are kept of the features, of those that stand apart, and of the groups of each metadata type.

    Examples
    --------
    >>> rows = csr_matrix(np.array([[0, 2, 0, 1], [0, 3, 0, 0]], np.float32))
    >>> few = np.zeros((2, 1), np.float32)
    >>> vectors = DocumentVectors(few, few, rows)
    >>> Narrowed.to(vectors).of(vectors).features.toarray().tolist()
    [[2.0, 1.0], [3.0, 0.0]]
    """

    features: Columns
    apart: Columns | None = None
    groups: Mapping[str, Columns] = field(default_factory=dict)

    @classmethod
    def to(cls, vectors: DocumentVectors) -> Self:
        """The columns in which these documents have an entry."""
        return cls(
            _used(vectors.features),
            None if vectors.apart is None else _used(vectors.apart),
            {kind: _used(one.members) for kind, one in vectors.groups.items()},
        )

    def of(self, vectors: DocumentVectors) -> DocumentVectors:
        """The documents with these columns alone."""
        return replace(
            vectors,
            features=_picked(vectors.features, self.features),
            apart=None if self.apart is None else _picked(vectors.apart, self.apart),
            groups={
                kind: Group(_picked(vectors.groups[kind].members, columns), vectors.groups[kind].decides)
                for kind, columns in self.groups.items()
            },
        )

    @classmethod
    def not_at_all(cls, vectors: DocumentVectors) -> Self:
        """All columns."""

        def columns(rows: Any) -> Columns:
            return np.arange(rows.shape[1], dtype=np.int32)

        return cls(
            columns(vectors.features),
            None if vectors.apart is None else columns(vectors.apart),
            {kind: columns(one.members) for kind, one in vectors.groups.items()},
        )

    def sizes(self, dimension: int) -> Sizes:
        """How many columns are kept."""
        apart = 0 if self.apart is None else len(self.apart)
        groups = {kind: len(columns) for kind, columns in self.groups.items()}
        return Sizes(dimension, len(self.features), apart, groups)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a model folder keeps; groups by their number."""
        found = {_FEATURES: self.features}
        if self.apart is not None:
            found[_APART] = self.apart
        return found | {f"{_GROUPS}{place}": part for place, part in enumerate(self.groups.values())}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], kinds: Sequence[str], views: Views) -> Self:
        """The same again; raises a ValueError where a column is not one of the views'."""
        groups = {kind: arrays[f"{_GROUPS}{place}"] for place, kind in enumerate(kinds)}
        found = cls(arrays[_FEATURES], arrays.get(_APART), groups)
        limits = {_FEATURES: (found.features, views.n_features)}
        if found.apart is not None:
            limits[_APART] = (found.apart, views.n_apart)
        limits |= {kind: (part, views.n_groups[kind]) for kind, part in groups.items()}
        for name, (part, most) in limits.items():
            if part.ndim != 1 or part.dtype.kind != "i" or (np.diff(part) <= 0).any():
                raise ValueError(f"the columns of {name!r} are not in order")
            if len(part) and not 0 <= part[0] <= part[-1] < most:
                raise ValueError(f"the columns of {name!r} are not those of the views")
        return found


def _used(rows: Any) -> Columns:
    return np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1])).astype(np.int32)


def _picked(rows: Any, columns: Columns) -> Any:
    """Some columns of a sparse matrix, in their order."""
    if len(columns) == rows.shape[1]:
        return rows
    places = np.searchsorted(columns, rows.indices).astype(np.int32)
    kept = np.zeros(len(places), dtype=bool)
    inside = places < len(columns)
    kept[inside] = columns[places[inside]] == rows.indices[inside]
    ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return csr_matrix((rows.data[kept], places[kept], ends), shape=(rows.shape[0], len(columns)))


def joined(parts: Sequence[DocumentVectors]) -> DocumentVectors:
    """Documents one after the other.

    Examples
    --------
    >>> few = np.zeros((1, 1), np.float32)
    >>> one = DocumentVectors(few, few, csr_matrix(few))
    >>> len(joined([one, one]))
    2
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return DocumentVectors(
        np.concatenate([part.text for part in parts]),
        np.concatenate([part.smoothed for part in parts]),
        vstack([part.features for part in parts], format="csr"),
        None if first.apart is None else vstack([part.apart for part in parts], format="csr"),
        {
            kind: Group(vstack([part.groups[kind].members for part in parts], format="csr"), group.decides)
            for kind, group in first.groups.items()
        },
        np.concatenate([part.fingerprints for part in parts]),
    )
