"""Numbers for words: texts go in, rows of word numbers come out, and no word is made a Python string."""

from __future__ import annotations

import secrets
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

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
Rows = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]


class WordNumbers:
    """The number of every word: of those given or, where it `grows`, of those met so far in their order.

    With the tokenizer `unicode`, the first texts are split with regular expressions: only a larger pile is worth
    the time that it takes to load, and for the first time to compile, the faster loop. The numbers are the same
    either way. Other tokenizers split every text themselves.

    Parameters
    ----------
    names : iterable of str
        Words that have the numbers 0, 1, 2 and so on.
    grows : bool
        Whether a word without a number gets the next one; otherwise it is dropped.
    compile_from : int
        How many characters are split with regular expressions first.
    tokenizer : Tokenizer
        Splits the texts.

    Examples
    --------
    >>> numbers = WordNumbers(["hen"], grows=True)
    >>> values, ends = numbers.rows(["A red hen.", "A fox."])
    >>> values.tolist(), ends.tolist(), numbers.names()
    ([1, 2, 0, 1, 3], [3, 5], ['hen', 'a', 'red', 'fox'])
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
        self._plain = {name: number for number, name in enumerate(names)}
        self._table: _Table | None = None
        self._tokenizer = tokenizer
        # Not for a subclass, whose words may be others.
        self._can_compile = type(tokenizer) is UnicodeWords
        self._characters_left = compile_from

    def rows(self, texts: Sequence[str], max_tokens: int | None = None) -> Rows:
        """The numbers of the words of all texts, one after the other, and where each text's numbers end."""
        return self.rows_of(self.portion(texts), max_tokens)

    def portion(self, texts: Sequence[str]) -> Portion:
        """Texts on their way through `rows_of`; says which way they go, in the order they are given."""
        by_pattern = self._characters_left > 0 or not self._can_compile
        if self._characters_left > 0:
            self._characters_left -= sum(map(len, texts))
        return Portion(texts, by_pattern)

    def rows_of(self, portion: Portion, max_tokens: int | None) -> Rows:
        """What `rows` gives; where words are added, portions must come in the order they were made."""
        packed = portion.pack()
        if packed is None:
            return self._plain_rows(self._plain, portion.texts, max_tokens)
        if self._table is None:
            self._table = _Table(list(self._plain), self._grows)
            if self._grows:
                self._plain.clear()
        return self._table.rows(packed, max_tokens)

    def names(self) -> list[str]:
        """All words, by their number."""
        return list(self._plain) if self._table is None else self._table.names()

    def _plain_rows(self, known: dict[str, int], texts: Sequence[str], max_tokens: int | None) -> Rows:
        values = array("i")
        ends = array("q")
        for text in texts:
            words = self._tokenizer.words(text)[:max_tokens]
            if self._grows:
                values.extend([known.setdefault(word, len(known)) for word in words])
            else:
                values.extend([number for word in words if (number := known.get(word)) is not None])
            ends.append(len(values))
        return np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64)


class Portion:
    """Some texts, before or after they are packed for the compiled loop.

    Examples
    --------
    >>> Portion(["A hen"], by_pattern=False).pack().starts.tolist()
    [0, 5]
    """

    def __init__(self, texts: Sequence[str], by_pattern: bool) -> None:
        self.texts = texts
        self._by_pattern = by_pattern
        self._packed: PackedTexts | None = None

    def pack(self) -> PackedTexts | None:
        """Do what needs the interpreter, if it is not done yet; None where a pattern splits the texts."""
        if self._packed is None and not self._by_pattern:
            self._packed = PackedTexts.of(self.texts)
            self.texts = ()
        return self._packed


class PackedTexts(NamedTuple):
    """Texts in one array of bytes, with what the compiled loop needs to know of them; see `_kernels`.

    Examples
    --------
    >>> PackedTexts.of(["A hen", "a <b>fox</b>"]).letters.tobytes()
    b'A hena  fox '
    """

    letters: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    as_words: npt.NDArray[np.bool_]
    classes: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Sequence[str]) -> PackedTexts:
        """Take the markup out of texts and put them one behind the other."""
        ready = [prepared(text) for text in texts]
        parts = [text.encode("utf-8", "surrogatepass") for text, _ in ready]
        joined = b"".join(parts)
        starts = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        as_words = np.array([is_words for _, is_words in ready], dtype=np.bool_)
        classes = character_classes(128) if joined.isascii() else character_classes()
        return cls(np.frombuffer(joined, dtype=np.uint8), starts, as_words, classes)


class _Table:
    """The hash table of the compiled loop; see `_kernels`."""

    def __init__(self, names: Sequence[str], grows: bool) -> None:
        words = [name.encode("utf-8", "surrogatepass") for name in names]
        self._grows = grows
        self._n_words = len(words)
        # Which place a word gets depends on this and its number does not, so nobody can prepare a text whose
        # words all want the same place.
        self._seed = np.uint64(secrets.randbits(64))
        blob = b"".join(words)
        self._letters: npt.NDArray[np.uint8] = np.zeros(len(blob) + (1 << 12), dtype=np.uint8)
        self._letters[: len(blob)] = np.frombuffer(blob, dtype=np.uint8)
        self._ends: npt.NDArray[np.int64] = np.zeros(1 + len(words), dtype=np.int64)
        np.cumsum([len(word) for word in words], out=self._ends[1:])
        self._slots = np.zeros(0, dtype=np.uint64)
        self._make_room()

    def _make_room(self) -> None:
        """Twice the room for words and their letters where the table grows; at least half the places are free."""
        from himecat.kernels.word_ids import place_words

        spare = 2 * self._n_words + 1024 if self._grows else self._n_words
        self._ends = _enlarged(self._ends, spare + 1)
        if self._grows:
            self._letters = _enlarged(self._letters, 2 * len(self._letters))
        self._slots = np.zeros(2 << (spare * 3 // 2 + 2).bit_length(), dtype=np.uint64)
        place_words(self._slots, self._letters, self._ends, self._n_words, self._seed)

    def rows(self, texts: PackedTexts, max_tokens: int | None) -> Rows:
        """The numbers of the words of all texts, and where each text's numbers end."""
        from himecat.kernels.word_ids import number_words

        starts, n_rows = texts.starts, len(texts.as_words)
        # Between two words there is at least one more byte.
        most = np.minimum(np.diff(starts) // 2 + 1, max_tokens or _ALL)
        values = np.empty(int(most.sum()), dtype=np.int32)
        ends = np.empty(n_rows, dtype=np.int64)
        row = n_values = 0
        while True:
            row, self._n_words, n_values = number_words(
                texts.letters, starts, texts.as_words, texts.classes, max_tokens or _ALL,
                LONGEST_NUMBER, LONGEST_WORD, self._seed, self._slots, self._letters, self._ends, self._n_words,
                self._grows, row, n_values, values, ends,
            )  # fmt: skip
            if row == n_rows:
                return values[:n_values], ends
            self._make_room()

    def names(self) -> list[str]:
        """All words, by their number."""
        ends = self._ends[: self._n_words + 1].tolist()
        letters = self._letters[: ends[-1]].tobytes()
        return [letters[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]


def _enlarged(old: npt.NDArray[_Entry], size: int) -> npt.NDArray[_Entry]:
    new = np.zeros(max(size, len(old)), dtype=old.dtype)
    new[: len(old)] = old
    return new


class WordRows:
    """Texts, added one at a time, as rows of word numbers; a thread of its own does the splitting.

    Parameters
    ----------
    numbers : WordNumbers
        The numbers of the words.
    max_tokens : int or None
        Only this many words from the start of a text are used; None for all.
    threads : int, optional
        With 1 the splitting is done in between; with more it goes on while the next texts are being read.

    Examples
    --------
    >>> with WordRows(WordNumbers(grows=True), max_tokens=2) as rows:
    ...     for text in ("A red hen.", "A fox."):
    ...         rows.append(text)
    ...     values, ends = rows.finish()
    >>> values.tolist(), ends.tolist()
    ([0, 1, 0, 2], [0, 2, 4])
    """

    def __init__(self, numbers: WordNumbers, max_tokens: int | None, threads: int | None = None) -> None:
        self._numbers = numbers
        self._max_tokens = max_tokens
        self._texts: list[str] = []
        self._size = 0
        self._values = array("i")
        self._ends = array("q", [0])
        self._beside = usable_threads(threads) > 1
        self._worker: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[Rows]] = deque()

    def __enter__(self) -> Self:
        """Start without any text."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the thread."""
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)

    def append(self, text: str) -> None:
        """Add the next text."""
        self._texts.append(text)
        self._size += len(text) + 64
        if self._size >= _CHUNK:
            self._pass_on()

    def extend(self, texts: Sequence[str]) -> None:
        """Add many texts."""
        size = sum(map(len, texts)) + 64 * len(texts)
        if size > _CHUNK:
            for text in texts:
                self.append(text)
            return
        self._texts += texts
        self._size += size
        if self._size >= _CHUNK:
            self._pass_on()

    def _pass_on(self) -> None:
        portion = self._numbers.portion(self._texts)
        self._texts, self._size = [], 0
        if not self._beside:
            self._take(self._numbers.rows_of(portion, self._max_tokens))
            return
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1)
        # Either thread can do the packing: this one does it unless the other has nothing to do.
        if self._waiting and not self._waiting[-1].done():
            portion.pack()
        # One worker, so that the texts are numbered in their order.
        self._waiting.append(self._worker.submit(self._numbers.rows_of, portion, self._max_tokens))
        while len(self._waiting) > _MOST_WAITING:
            self._take(self._waiting.popleft().result())

    def _take(self, rows: Rows) -> None:
        values, ends = rows
        before = len(self._values)
        self._values.frombytes(values.tobytes())
        self._ends.frombytes((ends + before).tobytes())

    def finish(self) -> Rows:
        """The numbers of all words, and where each text's numbers start; the last entry is where they end."""
        if self._worker is not None:
            self._pass_on()
            while self._waiting:
                self._take(self._waiting.popleft().result())
        elif self._texts:
            # A handful of texts is not worth a thread.
            self._take(self._numbers.rows(self._texts, self._max_tokens))
            self._texts = []
        values = np.frombuffer(self._values, dtype=np.int32) if self._values else np.zeros(0, np.int32)
        return values, np.frombuffer(self._ends, dtype=np.int64)
