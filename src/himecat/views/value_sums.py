"""What the values of a whole pile say: sums over all its documents, one part of the pile after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Corpus, Vocabulary
from himecat.input.intake import Each
from himecat.input.pile import Pile
from himecat.runtime.threads import one_blas_thread, prefetch
from himecat.views.matrices import FloatArray

Marks = npt.NDArray[np.uint64]


class Seen(NamedTuple):
    """What is to be summed of some documents: by type documents x values, and a row for each document.

    `marks` are their fingerprints, where someone asks for those.
    """

    products: Mapping[str, tuple[Any, FloatArray]]
    marks: Marks | None = None


class ValueSums(NamedTuple):
    """Sums over the documents of each value, and how many they are.

    `values` are those that occur at all, of `n_values`; None where there is a row for every one.
    """

    sums: FloatArray
    counts: npt.NDArray[np.float64]
    n_values: int
    values: npt.NDArray[np.int64] | None = None

    def every(self) -> ValueSums:
        """With a row for every value."""
        total = ValueSums(
            np.zeros((self.n_values, self.sums.shape[1]), np.float32), np.zeros(self.n_values), self.n_values
        )
        total.add(self)
        return total

    def add(self, other: ValueSums) -> None:
        """Add the sums of other documents to those of every value."""
        assert self.values is None
        place = slice(None) if other.values is None else other.values
        self.sums[place] += other.sums
        self.counts[place] += other.counts

    def present(self) -> ValueSums:
        """Only the values that occur, as a worker sends them."""
        if self.values is not None:
            return self
        own = np.flatnonzero(self.counts)
        return ValueSums(self.sums[own], self.counts[own], self.n_values, own)


def sums_of(carried: Any, rows: FloatArray) -> ValueSums:
    """The sums of some documents.

    Parameters
    ----------
    carried : sparse matrix
        Documents x values.
    rows : array
        One row for each document.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> found = sums_of(csr_matrix(np.array([[0, 1, 0], [0, 1, 1]], np.float32)), np.eye(2, dtype=np.float32))
    >>> found.values.tolist(), found.sums.tolist(), found.counts.tolist()
    ([1, 2], [[1.0, 1.0], [0.0, 1.0]], [2.0, 1.0])
    """
    own = np.unique(carried.indices).astype(np.int64)
    some = carried[:, own]
    sums = np.asarray(some.T.tocsr() @ rows, dtype=np.float32)
    counts = np.asarray(some.sum(axis=0), dtype=np.float64).ravel()
    return ValueSums(sums, counts, carried.shape[1], own)


class Pass(NamedTuple):
    """One pass over a pile: what workers need to know of it.

    Attributes
    ----------
    pile : Pile
        The documents.
    words, metadata
        The vocabularies that they are read in.
    see : picklable callable
        From documents to the matrices and rows whose products are summed, by type.
    """

    pile: Pile
    words: Vocabulary
    metadata: Mapping[str, Vocabulary]
    see: Callable[[Corpus], Seen]


Sums = tuple[dict[str, ValueSums], Marks]


def sum_part(given: Pass, part: Any, *, threads: int = 1) -> Sums:
    """The sums of one part of a pile, and the fingerprints of its documents; batches are added in their order."""

    def work(corpus: Corpus) -> tuple[dict[str, ValueSums], Marks]:
        seen = given.see(corpus)
        marks = np.zeros(0, np.uint64) if seen.marks is None else seen.marks
        return {kind: sums_of(*one) for kind, one in seen.products.items()}, marks

    batches = given.pile.batches(part, given.words, given.metadata, threads=threads)
    return _added(found for _, found in prefetch(batches, work, background=threads > 1))


def sum_pile(given: Pass, each: Each) -> Sums:
    """The sums of all parts, added in their order, so that they do not depend on who was done first."""
    return _added(each(sum_far_part, given, given.pile.parts))


def sum_far_part(given: Pass, part: Any) -> Sums:
    """The same in a worker: only values that occur are sent back."""
    with one_blas_thread():
        sums, marks = sum_part(given, part)
    return {kind: one.present() for kind, one in sums.items()}, marks


def _added(found: Iterable[Sums]) -> Sums:
    total: dict[str, ValueSums] = {}
    marks: list[Marks] = []
    for sums, some in found:
        marks.append(np.unique(some))
        for kind, one in sums.items():
            if kind not in total:
                total[kind] = one.every() if one.values is not None else one
            else:
                total[kind].add(one)
    return total, np.unique(np.concatenate([np.zeros(0, np.uint64), *marks]))


def here(threads: int) -> Each:
    """Each part in this process, with all threads.

    Examples
    --------
    >>> list(here(1)(lambda common, part: common + part, 1, [2, 3]))
    [3, 4]
    """

    def each(task: Callable[..., Any], common: Any, parts: Sequence[Any]) -> Iterator[Any]:
        if task is sum_far_part:
            return (sum_part(common, part, threads=threads) for part in parts)
        return (task(common, part) for part in parts)

    return each
