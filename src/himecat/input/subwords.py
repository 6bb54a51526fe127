"""Subwords: pieces of words learned from the documents, so that rare and compound words share their parts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, Self

from himecat.errors import UsageError
from himecat.input.unicode_words import RULES, UnicodeWords

_CONTINUES = "##"
_MOST_WORDS = 30_000
_FEWEST_PAIRS = 2


class Subwords:
    """Words of `unicode`, those that are rare split into pieces by byte-pair encoding.

    A frequent word stays whole. A piece that continues a word starts with `##`.

    Parameters
    ----------
    size : int
        How many pairs of pieces are merged at most: the more, the more words stay whole.

    Examples
    --------
    >>> learned = Subwords().learn({"snowball": 2, "snowman": 2, "foot": 3})
    >>> learned.words("Snowball, footman!")
    ['snowball', 'foot', '##man']
    """

    name = "subwords"
    base = UnicodeWords()

    def __init__(self, size: int = 16_000) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise UsageError(f"size must be a whole number of at least 1, not {size!r}.")
        self.size = size
        self._ranks: dict[tuple[str, str], int] | None = None
        self._known: dict[str, list[str]] = {}

    def learn(self, counts: Mapping[str, int]) -> Self:
        """A tokenizer with the pieces of these words, given with the number of times each was seen."""
        learned = type(self)(self.size)
        learned._ranks = {pair: rank for rank, pair in enumerate(_merges(counts, self.size))}  # noqa: SLF001
        return learned

    def split(self, word: str) -> list[str]:
        """The pieces of a word; the word itself where nothing was learned yet."""
        if self._ranks is None:
            return [word]
        pieces = self._known.get(word)
        if pieces is None:
            pieces = self._known[word] = self._merged(_characters(word), self._ranks)
        return pieces

    @staticmethod
    def _merged(pieces: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
        while len(pieces) > 1:
            pair = min(pairwise(pieces), key=lambda pair: ranks.get(pair, len(ranks)))
            if pair not in ranks:
                break
            pieces = _joined(pieces, pair)
        return pieces

    def words(self, text: str) -> list[str]:
        """The pieces of the words of a text."""
        return [piece for word in self.base.words(text) for piece in self.split(word)]

    def state(self) -> dict[str, Any]:
        """The merged pairs, in their order."""
        return {"rules": RULES, "size": self.size, "merges": [" ".join(pair) for pair in self._ranks or ()]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """A tokenizer with pairs that were learned before."""
        made = cls(state["size"])
        made._ranks = {
            (left, right): rank for rank, (left, right) in enumerate(map(str.split, state["merges"]))
        }
        return made


def _characters(word: str) -> list[str]:
    return [word[0], *(_CONTINUES + letter for letter in word[1:])]


def _joined(pieces: Sequence[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    at = 0
    while at < len(pieces):
        if tuple(pieces[at : at + 2]) == pair:
            merged.append(pair[0] + pair[1].removeprefix(_CONTINUES))
            at += 2
        else:
            merged.append(pieces[at])
            at += 1
    return merged


def _merges(counts: Mapping[str, int], size: int) -> list[tuple[str, str]]:
    """The most frequent pairs, one after the other, each counted after those before it are merged."""
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_WORDS]
    pieces = [_characters(word) for word, _ in frequent]
    times: Counter[tuple[str, str]] = Counter()
    words_with: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for number, (parts, (_, count)) in enumerate(zip(pieces, frequent, strict=True)):
        for pair in pairwise(parts):
            times[pair] += count
            words_with[pair].add(number)
    # The heap keeps outdated counts too; an entry counts only while it agrees with `times`.
    heap = [(-count, pair) for pair, count in times.items()]
    heapify(heap)
    merges: list[tuple[str, str]] = []
    while heap and len(merges) < size:
        negative, pair = heappop(heap)
        if -negative != times[pair]:
            continue
        if -negative < _FEWEST_PAIRS:
            break
        merges.append(pair)
        changed: set[tuple[str, str]] = set()
        for number in words_with.pop(pair):
            count = frequent[number][1]
            before, after = pieces[number], _joined(pieces[number], pair)
            for sign, parts in ((-1, before), (1, after)):
                for other in pairwise(parts):
                    times[other] += sign * count
                    changed.add(other)
                    if sign > 0:
                        words_with[other].add(number)
            pieces[number] = after
        for other in changed:
            if times[other] > 0:
                heappush(heap, (-times[other], other))
    return merges
