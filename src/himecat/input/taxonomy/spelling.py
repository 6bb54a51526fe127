"""Names that a misspelt one may mean, found among very many."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Longer names are told apart by their beginnings.
_LONGEST = 120
# Where there are more names, only these many are compared in full: those that have the most letters and pairs of
# letters in common.
_FEW, _COMPARED = 300, 24
_LETTERS = 64
# As difflib has it.
_CUTOFF = 0.6
# Names that are counted at a time.
_BATCH = 4096


class Spelling:
    """Knows the letters of all names, so that few of them have to be compared one by one.

    Examples
    --------
    >>> Spelling(["physics", "biology", "arts"]).close_to("phisics")
    ['physics']
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        batches = [names[first : first + _BATCH] for first in range(0, len(names), _BATCH)]
        self._counts = np.concatenate([_counted(batch) for batch in batches] or [_counted([])])
        self._lengths = np.array([min(len(name), _LONGEST) for name in names], dtype=np.int64)

    def close_to(self, name: str, most: int = 3) -> list[str]:
        """The names most like this one, the best first; none that is less than 60 percent the same."""
        name = name[:_LONGEST]
        likely = np.arange(len(self._names))
        if len(self._names) > _FEW:
            shared = np.minimum(self._counts, _counted([name]))
            # No two texts have more in common than their letters: difflib's own measure is at most this.
            bound = 2.0 * shared[:, :_LETTERS].sum(axis=1) / np.maximum(self._lengths + len(name), 1)
            likely = np.flatnonzero(bound >= _CUTOFF)
            if len(likely) > _COMPARED:
                order = bound[likely] + 2.0 * shared[likely, _LETTERS:].sum(axis=1) / (
                    self._lengths[likely] + len(name)
                )
                likely = likely[np.argsort(-order, kind="stable")[:_COMPARED]]
        beginnings: dict[str, str] = {}
        for position in likely.tolist():
            beginnings.setdefault(self._names[position][:_LONGEST], self._names[position])
        close = difflib.get_close_matches(name, beginnings, n=most, cutoff=_CUTOFF)
        return [beginnings[one] for one in close]


def _counted(names: Sequence[str]) -> npt.NDArray[np.uint8]:
    """How often each letter, and each pair of letters, is in a name; some share a column."""
    texts = [name[:_LONGEST] for name in names]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    # Half of a surrogate pair is a letter too, to a count.
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    rows = np.repeat(np.arange(len(texts)), lengths) * (2 * _LETTERS)
    inside = rows[1:] == rows[:-1]
    pairs = (31 * letters[:-1] + letters[1:])[inside] % _LETTERS
    places = np.concatenate([rows + letters % _LETTERS, rows[1:][inside] + _LETTERS + pairs])
    counts = np.bincount(places, minlength=len(texts) * 2 * _LETTERS)
    return np.minimum(counts, 255).astype(np.uint8).reshape(len(texts), 2 * _LETTERS)
