"""The hot loop of reading: from the bytes of texts to the ids of their words, on raw arrays only.

`input.unicode_words.tokenize` with a dictionary is the plain twin; the tests run both on the same texts. The words
met so far are kept in a hash table with open addressing. Slot i has two entries in `slots`: the first eight bytes
of a word, then its length and its id plus one in a half each (0 where the slot is free), so that a short word is
found without looking elsewhere. The word with id n is `letters[ends[n]:ends[n + 1]]`.
"""

from __future__ import annotations

import numpy as np

from himecat.kernels.compiled import compiled

# What a character can be: part of a word, a mark that continues one, a letter, and a letter by `str.isalpha`.
WORD, EXTENDS, LETTER, ALPHA = np.uint8(1), np.uint8(2), np.uint8(4), np.uint8(8)
IN_WORD = np.uint8(WORD | EXTENDS)

_APOSTROPHE = np.uint8(ord("'"))
_HYPHEN = np.uint8(ord("-"))
_PLUS = np.uint8(ord("+"))
_SHARP = np.uint8(ord("#"))
_SPACE = np.uint8(ord(" "))
_UNDERSCORE = np.uint8(ord("_"))
_UPPER_A, _UPPER_Z = np.uint8(ord("A")), np.uint8(ord("Z"))
_ASCII_END = np.uint8(0x80)
_LOWER_A, _LOWER_Z = np.uint8(ord("a")), np.uint8(ord("z"))
_D, _E, _L, _M = np.uint8(ord("d")), np.uint8(ord("e")), np.uint8(ord("l")), np.uint8(ord("m"))
_N, _R, _S, _T, _V = (
    np.uint8(ord("n")),
    np.uint8(ord("r")),
    np.uint8(ord("s")),
    np.uint8(ord("t")),
    np.uint8(ord("v")),
)

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BYTE, _HALF, _EIGHT_BYTES = np.uint64(8), np.uint64(32), np.uint64(64)
_LOWER_HALF = np.uint64(0x00000000FFFFFFFF)


@compiled(inline="always")
def _lowered(byte):  # type: ignore[no-untyped-def]
    return np.uint8(byte + 32) if _UPPER_A <= byte <= _UPPER_Z else byte


@compiled()
def _decoded(text, at):  # type: ignore[no-untyped-def]
    """The code of the UTF-8 character at `at`, and how many bytes it has."""
    first = np.int64(text[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (np.int64(text[at + 1]) & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6 | (
            np.int64(text[at + 2]) & 0x3F
        ), 3
    return (
        (first & 0x07) << 18
        | (np.int64(text[at + 1]) & 0x3F) << 12
        | (np.int64(text[at + 2]) & 0x3F) << 6
        | (np.int64(text[at + 3]) & 0x3F)
    ), 4


@compiled()
def _class_at(text, at, start, end, classes):  # type: ignore[no-untyped-def]
    """The class of the character that the byte `at` belongs to; 0 outside the text."""
    if at < start or at >= end:
        return np.uint8(0)
    while np.int64(text[at]) & 0xC0 == 0x80:
        at -= 1
    code, _ = _decoded(text, at)
    return classes[code]


@compiled()
def _contraction_length(text, at, start, end, classes):  # type: ignore[no-untyped-def]
    """How many bytes go with the apostrophe at `at`; 0 where it stays and separates."""
    if at + 1 >= end:
        return 0
    next_1 = _lowered(text[at + 1])
    if next_1 == _T and at > start and _lowered(text[at - 1]) == _N:
        return 1
    length = 0
    if next_1 in (_S, _M, _D):
        length = 2
    elif at + 2 < end:
        next_2 = _lowered(text[at + 2])
        if (next_1 in (_R, _V) and next_2 == _E) or (next_1 == _L and next_2 == _L):
            length = 3
    if length == 0 or not _class_at(text, at - 1, start, end, classes) & WORD:
        return 0
    return 0 if _class_at(text, at + length, start, end, classes) & WORD else length


@compiled()
def _clean(text, start, end, classes, cleaned):  # type: ignore[no-untyped-def]
    """Copy a text in lower case, without the ends of contractions and with spaces for underscores.

    Returns the length of the copy.
    """
    length = 0
    at = start
    while at < end:
        byte = text[at]
        if byte == _APOSTROPHE:
            gone = _contraction_length(text, at, start, end, classes)
            if gone:
                at += gone
                continue
        elif byte == _UNDERSCORE:
            byte = _SPACE
        cleaned[length] = _lowered(byte)
        length += 1
        at += 1
    return length


@compiled(inline="always")
def _mixed(state):  # type: ignore[no-untyped-def]
    state *= _MULTIPLIER
    return state ^ (state >> _HALF)


@compiled()
def _keys(text, at, end, seed):  # type: ignore[no-untyped-def]
    """The first eight bytes of a word as one number, and its hash."""
    head = np.uint64(0)
    eight = np.uint64(0)
    shift = np.uint64(0)
    state = seed
    for k in range(at, end):
        eight |= np.uint64(text[k]) << shift
        shift += _BYTE
        if shift == _EIGHT_BYTES:
            head = eight if k - at == 7 else head
            state = _mixed(state ^ eight)
            eight = np.uint64(0)
            shift = np.uint64(0)
    return (eight if end - at < 8 else head), _mixed(state ^ eight)


@compiled()
def _scan(text, end, classes, max_tokens, longest_number, longest_word, seed, spans, heads, hashes):  # type: ignore[no-untyped-def]
    """Find the words of a cleaned text: where each starts and ends, its first eight bytes and its hash."""
    n_tokens = 0
    at = 0
    while at < end and n_tokens < max_tokens:
        byte = text[at]
        start = at
        if byte < _ASCII_END:
            kind = classes[byte]
            width = 1
        else:
            code, width = _decoded(text, at)
            kind = classes[code]
        if not kind & WORD:
            at += width
            continue
        after = text[at + 1]
        if (
            (after == _PLUS and text[at + 2] == _PLUS)
            or (after == _SHARP and not _class_at(text, at + 2, 0, end, classes) & WORD)
        ) and _LOWER_A <= byte <= _LOWER_Z:
            # c++ and c# are words.
            at += 3 if after == _PLUS else 2
            heads[n_tokens], hashes[n_tokens] = _keys(text, start, at, seed)
        else:
            seen = np.uint8(0)
            common = ALPHA
            characters = 0
            hyphens = 0
            # What `_keys` does, while the bytes are at hand.
            head = np.uint64(0)
            eight = np.uint64(0)
            shift = np.uint64(0)
            state = seed
            while True:
                byte = text[at]
                width = 1
                if byte < _ASCII_END:
                    kind = classes[byte]
                else:
                    code, width = _decoded(text, at)
                    kind = classes[code]
                if not kind & IN_WORD:
                    if byte != _HYPHEN or hyphens == 3:
                        break
                    if not _class_at(text, at + 1, 0, end, classes) & WORD:
                        break
                    hyphens += 1
                seen |= kind
                common &= kind
                characters += 1
                for _ in range(width):
                    eight |= np.uint64(text[at]) << shift
                    shift += _BYTE
                    at += 1
                    if shift == _EIGHT_BYTES:
                        head = eight if at - start == 8 else head
                        state = _mixed(state ^ eight)
                        eight = np.uint64(0)
                        shift = np.uint64(0)
            lettered = seen & LETTER != 0 and characters <= longest_word
            if characters > longest_number and common == 0 and not lettered:
                continue
            heads[n_tokens] = eight if at - start < 8 else head
            hashes[n_tokens] = _mixed(state ^ eight)
        spans[n_tokens, 0] = start
        spans[n_tokens, 1] = at
        n_tokens += 1
    return n_tokens


@compiled()
def assign_ids(  # type: ignore[no-untyped-def]
    text, starts, classes, max_tokens, longest_number, longest_word, seed, slots, letters, ends, n_words,
    grows, first_row, n_values, values, row_ends,
):  # fmt: skip
    """Give the ids of the words of the texts `text[starts[i]:starts[i + 1]]`, from row `first_row` on.

    With `grows`, new words are added to the table; otherwise they have the id -1. `values` and `row_ends` receive
    the ids. Returns the row that comes next, the number of words and of values: a row before the last one means that
    the table has no room left.
    """
    n_rows = starts.shape[0] - 1
    longest = 0
    for row in range(first_row, n_rows):
        longest = max(longest, starts[row + 1] - starts[row])
    most = min(longest // 2 + 1, max_tokens)
    spans = np.empty((most, 2), np.int64)
    heads = np.empty(most, np.uint64)
    hashes = np.empty(most, np.uint64)
    # Zeros follow the text, and are no part of a word: looking one character ahead needs no check.
    cleaned = np.zeros(longest + 4, np.uint8)
    mask = np.uint64(slots.shape[0] // 2 - 1)
    one, two = np.uint64(1), np.uint64(2)
    for row in range(first_row, n_rows):
        before = n_values
        end = _clean(text, starts[row], starts[row + 1], classes, cleaned)
        for k in range(4):
            cleaned[end + k] = np.uint8(0)
        n_tokens = _scan(
            cleaned, end, classes, max_tokens, longest_number, longest_word, seed, spans, heads, hashes
        )
        # A loop of its own, so that the processor overlaps the lookups of several words.
        for token in range(n_tokens):
            start = spans[token, 0]
            size = spans[token, 1] - start
            head = heads[token]
            tag = np.uint64(size) << _HALF
            slot = hashes[token] & mask
            word_id = np.int64(-1)
            while True:
                found = slots[two * slot + one]
                if found == 0:
                    break
                if slots[two * slot] == head and found >> _HALF == np.uint64(size):
                    word_id = np.int64(found & _LOWER_HALF) - 1
                    if size <= 8:
                        break
                    first = ends[word_id]
                    same = True
                    for k in range(8, size):
                        same &= letters[first + k] == cleaned[start + k]
                    if same:
                        break
                    word_id = np.int64(-1)
                slot = (slot + one) & mask
            if word_id < 0:
                if not grows:
                    values[n_values] = -1
                    n_values += 1
                    continue
                first = ends[n_words]
                full = (n_words + 1) * 3 > slots.shape[0]
                if full or first + size > letters.shape[0] or n_words + 2 > ends.shape[0]:
                    return row, n_words, before
                for k in range(size):
                    letters[first + k] = cleaned[start + k]
                ends[n_words + 1] = first + size
                word_id = n_words
                n_words += 1
                slots[two * slot] = head
                slots[two * slot + one] = tag | np.uint64(n_words)
            values[n_values] = word_id
            n_values += 1
        row_ends[row] = n_values
    return n_rows, n_words, n_values


@compiled()
def fill_table(slots, letters, ends, n_words, seed):  # type: ignore[no-untyped-def]
    """Fill an empty hash table with the words there are."""
    mask = slots.shape[0] // 2 - 1
    for word_id in range(n_words):
        size = ends[word_id + 1] - ends[word_id]
        head, state = _keys(letters, ends[word_id], ends[word_id + 1], seed)
        slot = np.int64(state & np.uint64(mask))
        while slots[2 * slot + 1] != 0:
            slot = (slot + 1) & mask
        slots[2 * slot] = head
        slots[2 * slot + 1] = np.uint64(size) << _HALF | np.uint64(word_id + 1)


@compiled()
def renumber(values, ends, renumbered, offsets):  # type: ignore[no-untyped-def]
    """Renumber rows of values in place, dropping what maps to -1; returns how many values stay."""
    written = 0
    offsets[0] = 0
    for row in range(ends.shape[0] - 1):
        for k in range(ends[row], ends[row + 1]):
            number = renumbered[values[k]]
            if number >= 0:
                values[written] = number
                written += 1
        offsets[row + 1] = written
    return written
