"""The metadata of a document: directions are smoothed towards what shared values predict.

Documents that share a value should be similar if the value is informative. How similar they are is measured on the
texts alone, without labels, so an uninformative type (a random year) gets the weight 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import diags

from himecat.input.corpus import Ragged
from himecat.runtime.solvers import nonnegative_least_squares
from himecat.runtime.threads import Run, run_serial
from himecat.views.base import Batch, Everyone, Group, State, View, register_view
from himecat.views.informative import Columns, is_informative, shared_values, squared_lengths
from himecat.views.matrices import (
    FloatArray,
    check_shapes,
    inverse_frequency,
    side_by_side,
    tf_idf,
)
from himecat.views.value_sums import ValueSums

# Strength of the shrinkage of a value's correlation towards that of its type, in pairs of documents.
_PRIOR_PAIRS = 20.0

_ARRAYS = ("rows", "correlation", "counts", "sums", "idf")


@dataclass(frozen=True)
class ValueStatistics:
    """What the values of one metadata type say about documents; of values that at least two documents share.

    Attributes
    ----------
    weight : float
        Weight of the type, given the others; 0 for an uninformative one.
    correlation : array
        Intraclass correlation: expected cosine of two documents that share the value.
    counts : array
        Documents that have the value.
    sums : array
        Sum of the directions of these documents.
    idf : array
        Inverse document frequency of the value.
    rows : array
        For every value of the vocabulary its row in the arrays above, or -1 for values of a single document.

    Examples
    --------
    >>> one = ValueStatistics(1.0, np.array([0.5]), np.array([2.0]), np.ones((1, 2), np.float32),
    ...                       np.ones(1, np.float32), np.array([0]))
    >>> one.predict(one.incidence(Ragged.from_lists([[0], []]))).tolist()
    [[0.33..., 0.33...], [0.0, 0.0]]
    """

    weight: float
    correlation: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    sums: FloatArray
    idf: FloatArray
    rows: npt.NDArray[np.int64]

    def incidence(self, values: Ragged) -> Any:
        """Documents x shared values as a sparse matrix."""
        return values.renumbered(self.rows.astype(np.int32)).counts(len(self.sums), binary=True)

    def predict(self, carried: Any, own: FloatArray | None = None) -> FloatArray:
        """Best linear prediction of documents' directions from their values; the shorter, the less they say.

        Parameters
        ----------
        carried : sparse matrix
            Documents x shared values.
        own : array, optional
            Directions of the documents, if they are among those summed here: the prediction is then
            leave-one-out.
        """
        others = self.counts - (0.0 if own is None else 1.0)
        factor = self.correlation / (1.0 + np.maximum(others - 1.0, 0.0) * self.correlation)
        explained = np.minimum(others * self.correlation * factor, 0.999)
        gain = np.where(others > 0, explained / (1.0 - explained), 0.0)
        pull = carried @ diags((gain * factor).astype(np.float32))
        found = np.asarray(pull @ self.sums, dtype=np.float32)
        if own is not None:
            found -= np.asarray(pull.sum(axis=1), dtype=np.float32).reshape(-1, 1) * own
        total = np.asarray(carried @ gain[:, None]).reshape(-1, 1)
        found /= np.maximum(total, 1e-12).astype(np.float32)
        found[total.ravel() <= 0] = 0.0
        return found


@register_view
@dataclass(frozen=True)
class MetadataView(View):
    """Metadata values: they shift the expected direction of their documents, and are features.

    Attributes
    ----------
    kinds : sequence of str
        The metadata types to use.
    learn_weights : bool
        Whether the weight of each type is learned; otherwise each is 1.
    types : mapping of str to ValueStatistics
        What was learned.
    decides : sequence of str
        Types whose values decide the category, as the user says.
    n_documents : int
        Documents of the pile that was summed, where it learned from a sample of one; otherwise 0.
    """

    kinds: Sequence[str] = ()
    learn_weights: bool = True
    types: Mapping[str, ValueStatistics] = field(default_factory=dict)
    decides: Sequence[str] = ()
    n_documents: int = 0

    name = "metadata"
    smooths = True

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each type."""
        return {kind: one.weight for kind, one in self.types.items()}

    def learn(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> Self:
        """Learn from the directions of the texts what the values say."""
        return self.learn_and_see(batch, seed=seed, run=run)[0]

    def learn_and_see(self, batch: Batch, *, seed: int = 0, run: Run = run_serial) -> tuple[Self, FloatArray]:
        """Learn, and predict every document from the others with its values (leave-one-out)."""
        columns = {kind: batch.corpus.metadata[kind] for kind in self.kinds}
        assert batch.directions is not None
        types, expected = learn_statistics(
            {kind: (column.values, len(column.vocabulary)) for kind, column in columns.items()},
            batch.directions,
            learn_weights=self.learn_weights,
            everyone=batch.everyone,
        )
        n_documents = 0 if batch.everyone is None else batch.everyone.n_documents
        return replace(self, types=types, n_documents=n_documents), expected

    @property
    def everyone(self) -> Everyone | None:
        """What is known of all documents of a pile; None where it learned from no pile."""
        if not self.n_documents:
            return None
        found = {}
        for kind, one in self.types.items():
            shared = np.flatnonzero(one.rows >= 0)
            found[kind] = ValueSums(one.sums, one.counts, len(one.rows), shared).every()
        return Everyone(self.n_documents, found)

    def see(self, batch: Batch) -> FloatArray:
        """What the values of each document let expect of its direction."""
        assert batch.directions is not None
        expected = np.zeros_like(batch.directions)
        carried = self._incidence(batch)
        for kind, one in self.types.items():
            if one.weight > 0:
                part = one.predict(carried[kind])
                part *= np.float32(one.weight)
                expected += part
        return expected

    @property
    def n_features(self) -> int:
        """One for each shared value."""
        return sum(len(one.sums) for one in self.types.values())

    def features(self, batch: Batch) -> Any:
        """The shared values by their inverse document frequency, rows of each type at length 1."""
        carried = self._incidence(batch)
        parts = []
        for kind, one in self.types.items():
            parts.append(tf_idf(carried[kind], one.idf))
            # The columns of an uninformative type stay, without entries that say anything.
            parts[-1].data *= np.float32(one.weight > 0)
        return side_by_side(parts) if parts else None

    @property
    def n_groups(self) -> dict[str, int]:
        """The shared values of each type."""
        return {kind: len(one.sums) for kind, one in self.types.items()}

    def groups(self, batch: Batch) -> dict[str, Group]:
        """The documents of each shared value."""
        carried = self._incidence(batch)
        return {kind: Group(carried[kind], kind in self.decides) for kind in self.types}

    def _incidence(self, batch: Batch) -> dict[str, Any]:
        def make() -> dict[str, Any]:
            return {
                kind: one.incidence(batch.corpus.metadata[kind].values) for kind, one in self.types.items()
            }

        return batch.once("metadata", make)

    def state(self) -> State:
        """The weights, and the statistics of each type."""
        arrays = {}
        for kind, one in self.types.items():
            arrays.update({f"{kind}/{name}": getattr(one, name) for name in _ARRAYS})
        settings: dict[str, Any] = {"weights": self.weights, "decides": list(self.decides)}
        return settings | ({"documents": self.n_documents} if self.n_documents else {}), arrays

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The learned view again."""
        types = {}
        for kind, weight in settings["weights"].items():
            parts = {name: arrays[f"{kind}/{name}"] for name in _ARRAYS}
            shared = (int((parts["rows"] >= 0).sum()),)
            for name in _ARRAYS[1:]:
                check_shapes({f"metadata/{kind}/{name}": (parts[name], shared + parts[name].shape[1:])})
            types[kind] = ValueStatistics(float(weight), **parts)
        # Folders of format 6 and before do not have it.
        decides, n_documents = tuple(settings.get("decides", ())), int(settings.get("documents", 0))
        return cls(kinds=tuple(types), types=types, decides=decides, n_documents=n_documents)


def learn_statistics(
    columns: Columns,
    directions: FloatArray,
    *,
    learn_weights: bool = True,
    everyone: Everyone | None = None,
) -> tuple[dict[str, ValueStatistics], FloatArray]:
    """Learn from the directions of all documents what their metadata values say; no label is used.

    Parameters
    ----------
    columns : mapping of str to (Ragged, int)
        Value ids of every document and the number of values, by type.
    directions : array
        Unit vectors of the documents.
    learn_weights : bool
        Whether the weights of the types are learned; otherwise each is 1.
    everyone : Everyone, optional
        Where the documents are a sample: sums over all of which they are one.

    Returns
    -------
    types, expected
        The statistics of each type, and the weighted sum of the leave-one-out predictions of every document.

    Examples
    --------
    >>> axes = np.repeat(np.eye(2, dtype=np.float32), 6, axis=0)
    >>> team, year = Ragged.from_lists([[0]] * 6 + [[1]] * 6), Ragged.from_lists([[0], [1], [2]] * 4)
    >>> types, _ = learn_statistics({"team": (team, 2), "year": (year, 3)}, axes)
    >>> types["team"].weight > 0.9, types["year"].weight < 0.1
    (True, True)
    """
    found: dict[str, ValueStatistics] = {}
    expected, informative = [], []
    for kind, (values, n_values) in columns.items():
        n_documents = len(directions)
        if everyone is None:
            carried, counts, shared = shared_values(values, n_values)
            sums = np.asarray(carried.T @ directions, dtype=np.float32)
        else:
            n_documents, of_values = everyone.n_documents, everyone.values[kind]
            shared = np.flatnonzero(of_values.counts > 1)
            every = len(shared) == n_values
            sums, counts = of_values.sums, of_values.counts
            sums, counts = (sums, counts) if every else (sums[shared], counts[shared])
            carried = values.counts(n_values, binary=True)[:, shared]
        rows = np.full(n_values, -1, dtype=np.int64)
        rows[shared] = np.arange(len(shared))
        idf = inverse_frequency(counts, n_documents)
        found[kind] = ValueStatistics(1.0, _correlation(sums, counts), counts, sums, idf, rows)
        expected.append(found[kind].predict(carried, own=directions))
        informative.append(is_informative(sums, counts, directions))
    weights = (
        _regression_weights(expected, directions, np.array(informative, dtype=bool))
        if learn_weights
        else np.ones(len(expected))
    )
    total = np.zeros_like(directions)
    for kind, weight, part in zip(found, weights.tolist(), expected, strict=True):
        found[kind] = replace(found[kind], weight=weight)
        total += np.float32(weight) * part
    return found, total


def _correlation(sums: FloatArray, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean cosine of two documents that share a value, shrunk towards the mean of the type."""
    if not len(counts):
        return np.zeros(0)
    pairs = counts * (counts - 1.0)
    cosines = squared_lengths(sums) - counts
    # The root keeps values with many documents from deciding for the whole type.
    mean = float(np.average(cosines / pairs, weights=np.sqrt(counts - 1.0)))
    mean = max(mean, 1e-6)
    return np.asarray(np.clip((cosines + _PRIOR_PAIRS * mean) / (pairs + _PRIOR_PAIRS), 1e-6, 0.99))


def _regression_weights(
    expected: list[FloatArray], directions: FloatArray, informative: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Non-negative least squares of the directions on the leave-one-out predictions of the informative types."""
    weights = np.zeros(len(expected))
    if informative.any():
        chosen = [part for part, one in zip(expected, informative, strict=True) if one]
        gram = np.array([[float(np.vdot(a, b)) for b in chosen] for a in chosen])
        target = np.array([float(np.vdot(a, directions)) for a in chosen])
        ridge = 1e-6 * max(float(np.trace(gram)), 1e-9)
        weights[informative] = np.minimum(
            nonnegative_least_squares(gram + ridge * np.eye(len(gram)), target), 1.0
        )
    return weights
