"""The distinct words of a corpus, or the distinct values of one metadata type, and their ids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.input.problems import shortened
from himecat.input.ragged import Ragged
from himecat.input.rules import Rule
from himecat.input.token_ids import WordIds
from himecat.input.tokenizer import UNICODE, Tokenizer

# With this many the compiled loop has been loaded to find them, or is worth it.
_COMPILED_FROM = 1 << 20


@dataclass(frozen=True)
class Vocabulary:
    """Distinct strings with the number of times each was seen; ids are positions.

    `tokenizer` is what finds the words of a text, where the strings are words; `rule` what makes values of what a
    metadata field holds, where they are not taken as they are.

    Examples
    --------
    >>> words = Vocabulary(("cat", "dog"), np.array([3, 1]))
    >>> words.index["dog"]
    1
    >>> words
    <Vocabulary of 2: cat, dog>
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    tokenizer: Tokenizer = UNICODE
    rule: Rule | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self):,}: {shortened(self.names, 3)}>"

    @cached_property
    def index(self) -> dict[str, int]:
        """From a name to its id."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def word_ids(self) -> WordIds:
        """From the words of texts to their ids."""
        return WordIds(self.names, tokenizer=self.tokenizer)

    def ids_in(self, other: Vocabulary) -> npt.NDArray[np.int32]:
        """For every name here, its id in another vocabulary, or -1."""
        return np.array([other.index.get(name, -1) for name in self.names], dtype=np.int32)


def ranked(
    names: list[str],
    rows: Ragged,
    min_count: int = 1,
    tokenizer: Tokenizer = UNICODE,
    rule: Rule | None = None,
    totals: npt.NDArray[np.int64] | None = None,
) -> tuple[Vocabulary, Ragged]:
    """Drop rare strings; give the others ids by falling count, then by name. The rows may be changed in place.

    `totals` are the counts, where the rows are not all.

    Examples
    --------
    >>> vocabulary, rows = ranked(["fox", "hen", "a"], Ragged.from_lists([[2, 0], [2, 1], [1]]), min_count=2)
    >>> vocabulary.names, rows[1].tolist()
    (('a', 'hen'), [0, 1])
    """
    counts = rows.totals(len(names)) if totals is None else totals
    by_name = sorted(np.flatnonzero(counts >= min_count).tolist(), key=names.__getitem__)
    kept = np.array(by_name, dtype=np.int64)
    kept = kept[np.argsort(-counts[kept], kind="stable")]
    new_ids = np.full(len(names), -1, dtype=np.int32)
    new_ids[kept] = np.arange(len(kept), dtype=np.int32)
    vocabulary = Vocabulary(tuple([names[number] for number in kept.tolist()]), counts[kept], tokenizer, rule)
    return vocabulary, _renumbered(rows, new_ids)


def _renumbered(rows: Ragged, new_ids: npt.NDArray[np.int32]) -> Ragged:
    """What `Ragged.renumbered` gives; of many values no second copy is made."""
    if len(rows.values) < _COMPILED_FROM:
        return rows.renumbered(new_ids)
    from himecat.kernels.word_ids import renumber

    offsets = np.zeros_like(rows.offsets)
    return Ragged(rows.values[: renumber(rows.values, rows.offsets, new_ids, offsets)], offsets)
