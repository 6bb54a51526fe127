"""Rows of strings, such as the metadata of documents, kept as numbers while a corpus is read."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Ragged, Vocabulary


class GrowingRows:
    """Rows of strings, kept as the numbers of the distinct strings.

    Examples
    --------
    >>> rows = GrowingRows()
    >>> rows.append(["hen", "fox"])
    >>> rows.extend([[], ["fox"]])
    >>> names, values, ends = rows.finish()
    >>> names, values.tolist(), ends.tolist()
    (['hen', 'fox'], [0, 1, 1], [0, 2, 2, 3])
    """

    def __init__(self) -> None:
        """Start without any row."""
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._values = array("i")
        self._ends = array("q", [0])

    def append(self, row: Iterable[str]) -> None:
        """Add the next row."""
        numbers = self._numbers
        self._values.fromlist([numbers[name] for name in row])
        self._ends.append(len(self._values))

    def extend(self, rows: Sequence[Sequence[str]]) -> None:
        """Add many rows."""
        numbers = self._numbers
        self._ends.extend([len(self._values) + end for end in accumulate(map(len, rows))])
        self._values.fromlist([numbers[name] for name in chain.from_iterable(rows)])

    def finish(self) -> tuple[list[str], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The distinct strings, the numbers of all rows, and where each row starts; then nothing is left."""
        values = np.frombuffer(self._values, dtype=np.int32) if self._values else np.zeros(0, np.int32)
        names = list(self._numbers)
        self._numbers.clear()
        return names, values, np.array(self._ends, dtype=np.int64)


class KnownRows:
    """Rows of strings, kept as their ids in a vocabulary; what that does not have is dropped.

    Examples
    --------
    >>> rows = KnownRows(Vocabulary(("hen", "fox"), np.array([2, 1])))
    >>> rows.append(["owl", "fox"])
    >>> rows.finish()[0].tolist()
    [1]
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Start without any row."""
        self._find = vocabulary.index.get
        self._values = array("i")
        self._ends = array("q", [0])

    def append(self, row: Iterable[str]) -> None:
        """Add the next row."""
        self._values.fromlist([number for number in map(self._find, row) if number is not None])
        self._ends.append(len(self._values))

    def finish(self) -> Ragged:
        """All rows."""
        return Ragged(np.array(self._values, dtype=np.int32), np.array(self._ends, dtype=np.int64))
