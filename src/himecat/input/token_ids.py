"""From strings to ids: the words of texts, and metadata values, while a corpus is read."""

from __future__ import annotations

import secrets
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from himecat.input.ragged import Ragged
from himecat.input.tokenizer import UNICODE, Tokenizer
from himecat.input.unicode_words import (
    LONGEST_NUMBER,
    LONGEST_WORD,
    UnicodeWords,
    character_classes,
    prepared,
)
from himecat.runtime.threads import usable_threads

FIRST_COMPILED = 1 << 21
"""So many characters are split without the compiled loop, which takes time to load."""

_CHUNK = 1 << 21
_MOST_WAITING = 2
_ALL = np.iinfo(np.int64).max

_Entry = TypeVar("_Entry", bound=np.generic)


class IdRows:
    """Rows of strings as ids: those of an index, or new ones in the order in which the strings are met.

    Parameters
    ----------
    index : mapping of str to int, optional
        The known strings; others are dropped. Without it every string gets an id.

    Examples
    --------
    >>> rows = IdRows()
    >>> rows.extend([["hen", "fox"], [], ["fox"]])
    >>> found = rows.finish()
    >>> rows.names(), found.values.tolist(), found.offsets.tolist()
    (['hen', 'fox'], [0, 1, 1], [0, 2, 2, 3])
    """

    def __init__(self, index: Mapping[str, int] | None = None) -> None:
        self._known = index
        self._new: defaultdict[str, int] = defaultdict()
        self._new.default_factory = self._new.__len__
        self._values = array("i")
        self._offsets = array("q", [0])

    def extend(self, rows: Sequence[Sequence[str]]) -> None:
        """Add the next rows."""
        if self._known is None:
            new = self._new
            self._offsets.extend([len(self._values) + end for end in accumulate(map(len, rows))])
            self._values.fromlist([new[name] for name in chain.from_iterable(rows)])
            return
        find = self._known.get
        for row in rows:
            self._values.fromlist([number for number in map(find, row) if number is not None])
            self._offsets.append(len(self._values))

    def names(self) -> list[str]:
        """The new strings, by their id."""
        return list(self._new)

    def finish(self) -> Ragged:
        """The ids of all rows."""
        return _as_ragged(self._values, self._offsets)


def _as_ragged(values: array[int], offsets: array[int]) -> Ragged:
    # An empty buffer cannot be shared.
    ids = np.frombuffer(values, dtype=np.int32) if values else np.zeros(0, np.int32)
    return Ragged(ids, np.frombuffer(offsets, dtype=np.int64))


class WordIds:
    """The id of every word: of those given or, where it `grows`, of those met so far in their order.

    With the tokenizer `unicode`, the first texts are split with regular expressions: only a larger pile is worth
    the time that it takes to load, and for the first time to compile, the faster loop. The ids are the same
    either way. Other tokenizers split every text themselves.

    Parameters
    ----------
    names : iterable of str
        Words that have the ids 0, 1, 2 and so on.
    grows : bool
        Whether a word without an id gets the next one.
    compile_from : int
        How many characters are split with regular expressions first.
    tokenizer : Tokenizer
        Splits the texts.

    Examples
    --------
    >>> ids = WordIds(["hen"], grows=True)
    >>> rows = ids.rows(["A red hen.", "A fox."])
    >>> rows[0].tolist(), rows[1].tolist(), ids.names()
    ([1, 2, 0], [1, 3], ['hen', 'a', 'red', 'fox'])
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        grows: bool = False,
        compile_from: int = FIRST_COMPILED,
        tokenizer: Tokenizer = UNICODE,
    ) -> None:
        self._grows = grows
        self._index = {name: number for number, name in enumerate(names)}
        self._table: _HashTable | None = None
        self._tokenizer = tokenizer
        # Not for a subclass, whose words may be others.
        self._can_compile = type(tokenizer) is UnicodeWords
        self._characters_left = compile_from

    def rows(self, texts: Sequence[str], max_tokens: int | None = None) -> Ragged:
        """The ids of the words of each text, at most `max_tokens` of it; words without an id are dropped."""
        return self.marked_rows(texts, max_tokens).known()

    def marked_rows(self, texts: Sequence[str], max_tokens: int | None = None) -> Ragged:
        """The same with -1 for a word without an id."""
        if self._characters_left > 0 or not self._can_compile:
            self._characters_left -= sum(map(len, texts))
            return self._split_rows(texts, max_tokens)
        if self._table is None:
            self._table = _HashTable(list(self._index), self._grows)
            if self._grows:
                self._index.clear()
        return self._table.rows(PackedTexts.of(texts), max_tokens)

    def names(self) -> list[str]:
        """All words, by their id."""
        return list(self._index) if self._table is None else self._table.names()

    def _split_rows(self, texts: Sequence[str], max_tokens: int | None) -> Ragged:
        index = self._index
        values, offsets = array("i"), array("q", [0])
        for text in texts:
            words = self._tokenizer.words(text)[:max_tokens]
            if self._grows:
                values.extend([index.setdefault(word, len(index)) for word in words])
            else:
                values.extend([index.get(word, -1) for word in words])
            offsets.append(len(values))
        return _as_ragged(values, offsets)


class PackedTexts(NamedTuple):
    """Texts in one array of bytes, as the compiled loop `kernels.word_ids` takes them.

    Examples
    --------
    >>> PackedTexts.of(["A hen", "a <b>fox</b>"]).letters.tobytes()
    b'A hena  fox '
    """

    letters: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    classes: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Sequence[str]) -> PackedTexts:
        """Take the markup out of texts and concatenate them."""
        parts = [prepared(text).encode("utf-8", "surrogatepass") for text in texts]
        joined = b"".join(parts)
        starts = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        classes = character_classes(128) if joined.isascii() else character_classes()
        return cls(np.frombuffer(joined, dtype=np.uint8), starts, classes)


class _HashTable:
    """The words met so far, as the compiled loop looks them up; see `kernels.word_ids`."""

    def __init__(self, names: Sequence[str], grows: bool) -> None:
        words = [name.encode("utf-8", "surrogatepass") for name in names]
        self._grows = grows
        self._n_words = len(words)
        # A secret seed against hash flooding; the ids do not depend on it.
        self._seed = np.uint64(secrets.randbits(64))
        blob = b"".join(words)
        self._letters: npt.NDArray[np.uint8] = np.zeros(len(blob) + (1 << 12), dtype=np.uint8)
        self._letters[: len(blob)] = np.frombuffer(blob, dtype=np.uint8)
        self._ends: npt.NDArray[np.int64] = np.zeros(1 + len(words), dtype=np.int64)
        np.cumsum([len(word) for word in words], out=self._ends[1:])
        self._slots = np.zeros(0, dtype=np.uint64)
        self._make_room()

    def _make_room(self) -> None:
        """Double the room for words where the table grows; at least half the slots stay free."""
        from himecat.kernels.word_ids import fill_table

        spare = 2 * self._n_words + 1024 if self._grows else self._n_words
        self._ends = _enlarged(self._ends, spare + 1)
        if self._grows:
            self._letters = _enlarged(self._letters, 2 * len(self._letters))
        self._slots = np.zeros(2 << (spare * 3 // 2 + 2).bit_length(), dtype=np.uint64)
        fill_table(self._slots, self._letters, self._ends, self._n_words, self._seed)

    def rows(self, texts: PackedTexts, max_tokens: int | None) -> Ragged:
        """The ids of the words of each text."""
        from himecat.kernels.word_ids import assign_ids

        starts, n_rows = texts.starts, len(texts.starts) - 1
        # Between two words there is at least one more byte.
        most = np.minimum(np.diff(starts) // 2 + 1, max_tokens or _ALL)
        values = np.empty(int(most.sum()), dtype=np.int32)
        offsets = np.zeros(n_rows + 1, dtype=np.int64)
        row = n_values = 0
        while True:
            row, self._n_words, n_values = assign_ids(
                texts.letters, starts, texts.classes, max_tokens or _ALL,
                LONGEST_NUMBER, LONGEST_WORD, self._seed, self._slots, self._letters, self._ends, self._n_words,
                self._grows, row, n_values, values, offsets[1:],
            )  # fmt: skip
            if row == n_rows:
                return Ragged(values[:n_values], offsets)
            self._make_room()

    def names(self) -> list[str]:
        """All words, by their id."""
        ends = self._ends[: self._n_words + 1].tolist()
        letters = self._letters[: ends[-1]].tobytes()
        return [letters[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]


def _enlarged(old: npt.NDArray[_Entry], size: int) -> npt.NDArray[_Entry]:
    new = np.zeros(max(size, len(old)), dtype=old.dtype)
    new[: len(old)] = old
    return new


class TokenRows:
    """Texts as rows of word ids; a worker thread does the splitting while the next texts are read.

    Parameters
    ----------
    ids : WordIds
        The ids of the words.
    max_tokens : int or None
        Only this many words from the start of a text are used; None for all.
    threads : int, optional
        With 1 there is no worker.

    Examples
    --------
    >>> with TokenRows(WordIds(grows=True), max_tokens=2) as rows:
    ...     rows.extend(["A red hen.", "A fox."])
    ...     found = rows.finish()
    >>> found[0].tolist(), found[1].tolist()
    ([0, 1], [0, 2])
    """

    def __init__(self, ids: WordIds, max_tokens: int | None, threads: int | None = None) -> None:
        self._ids = ids
        self._max_tokens = max_tokens
        self._texts: list[str] = []
        self._size = 0
        self._values = array("i")
        self._offsets = array("q", [0])
        self._has_worker = usable_threads(threads) > 1
        self._worker: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[Ragged]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)

    def extend(self, texts: Iterable[str]) -> None:
        """Add the next texts."""
        for text in texts:
            self._texts.append(text)
            self._size += len(text) + 64
            if self._size >= _CHUNK:
                self._submit()

    def _submit(self) -> None:
        texts, self._texts, self._size = self._texts, [], 0
        if not self._has_worker:
            self._append(self._ids.marked_rows(texts, self._max_tokens))
            return
        # One worker, so that ids are given in the order of the texts.
        self._worker = self._worker or ThreadPoolExecutor(1)
        self._waiting.append(self._worker.submit(self._ids.marked_rows, texts, self._max_tokens))
        while len(self._waiting) > _MOST_WAITING:
            self._append(self._waiting.popleft().result())

    def _append(self, rows: Ragged) -> None:
        self._offsets.frombytes((rows.offsets[1:] + len(self._values)).tobytes())
        self._values.frombytes(rows.values.tobytes())

    def finish(self) -> Ragged:
        """The ids of all texts; -1 for words without one."""
        # A handful of texts is not worth a thread.
        self._has_worker &= self._worker is not None
        if self._texts:
            self._submit()
        while self._waiting:
            self._append(self._waiting.popleft().result())
        return _as_ragged(self._values, self._offsets)
