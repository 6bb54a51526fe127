"""The words of a text in a script with spaces: plain, lower-case and fast to get.

`tokenize` splits one text with regular expressions. For many texts the compiled loop of `kernels.word_ids` does
the same on bytes; `prepared` and `character_classes` give it what it needs.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

RULES = "words-1"
"""Stored with a model, so that a model keeps the words it was trained on when the rules below change."""

LONGEST_WORD = 40
"""Longer runs are hashes, base64 or missing spaces; they would only fill the vocabulary."""

LONGEST_NUMBER = 4
"""Years and small numbers say something about a topic; longer numbers hardly ever come twice."""

_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,24}\d{0,2});")
_TAG_NAMES = (
    "a|abbr|b|big|blockquote|br|center|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|small|span|strong|sub|sup"
    "|table|tbody|td|th|thead|tr|tt|u|ul"
)
# Attributes must look like attributes: in a formula such as "a<b and c>d" nothing may be lost.
_TAG = re.compile(
    rf"<!--[^<>]*-->|</?(?:{_TAG_NAMES})\s*/?>"
    r"|<[a-z][a-z0-9]*(?:\s+[a-z:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))+\s*/?>"
)
_URL = re.compile(r"(?:https?|ftp)://(?:www\.)?([^\s/?#]*)\S*")
# The look-behinds come second so that the search can jump to the literal first character.
# Accents only inside a word: at its start \" is more often an escaped quotation mark than an accent.
_LATEX_ACCENT = re.compile(r"\\(?<=[a-z]\\)([\"'`^~])\s?(?:\{\\?([a-z])\}|\\?([a-z]))")
_ACCENTS = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303"}
_LATEX_MARKUP = re.compile(
    r"\\(?:begin|end|label|cite[a-z]*|(?:eq|page|auto)?ref|url|href)\s?\{[^{}]*\}"
    r"|\\(?:(?:text|math)[a-z]*|emph|em|it|bf|rm|sf|tt|sc|cal|left|right|bigg?[lr]?|displaystyle|footnote)(?![a-z])"
)
_CONTRACTION = re.compile(r"'(?<=\w')(?:s|re|ll|ve|m|d)(?!\w)")
# Chinese and Japanese are written without spaces: each character stands for itself.
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LETTER = re.compile(r"[^\W\d_]").search
_ascii_words = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++){0,3}+").findall


@cache
def marks() -> str:
    """The vowel signs and accents that continue a word in any script."""
    return "".join(chr(code) for code in range(0x300, 0x1C00) if unicodedata.category(chr(code))[0] == "M")


@cache
def _unicode_words() -> Callable[[str], list[str]]:
    """Compile the pattern for any script; `\\w` alone would cut words at the vowel signs of many scripts."""
    run = rf"\w[\w{marks()}]*+"
    return re.compile(rf"[a-z](?:\+\+|#(?!\w))|{run}(?:-{run}){{0,3}}+").findall


def _accented(match: re.Match[str]) -> str:
    return (match[2] or match[3]) + _ACCENTS[match[1]]


def _without_markup(text: str) -> str:
    """Drop what HTML and LaTeX leave behind; every step runs only where its first character occurs."""
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text).lower()
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "://" in text:
        text = _URL.sub(r" \1 ", text)
    if "\\" in text:
        text = _LATEX_MARKUP.sub(" ", _LATEX_ACCENT.sub(_accented, text))
        if not text.isascii():
            text = _composed(text)
    return text


def _composed(text: str) -> str:
    """Put letters and the accents behind them together, which leaves little for `_normalised` to do."""
    for accent in _ACCENTS.values():
        if accent in text:
            *pieces, end = text.split(accent)
            text = "".join([piece[:-1] + _letter(piece[-1:] + accent) for piece in pieces]) + end
    return text


@cache
def _letter(parts: str) -> str:
    return unicodedata.normalize("NFC", parts)


def _normalised(text: str) -> str:
    """One spelling for what looks the same: composed accents, ligatures, wide letters, typographic signs."""
    composed = unicodedata.normalize("NFKC", text)
    text = composed.lower()
    if text != composed:
        text = unicodedata.normalize("NFKC", text)
    return text.replace("\u2019", "'").replace("\u2010", "-").replace("\u00ad", "")


def _with_ideographs_apart(text: str) -> str:
    return _IDEOGRAPH.sub(r" \g<0> ", text)


def cleaned(text: str) -> str:
    """A text in lower case, without markup and in one spelling.

    Examples
    --------
    >>> cleaned("<b>\uff26\uff4f\uff58</b> & Hen")
    ' fox  & hen'
    """
    text = _without_markup(text.lower())
    return text if text.isascii() else _normalised(text)


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words.

    A word is a run of letters and digits of any script. Hyphens inside a word stay (`well-known`), at most
    three. Of an English contraction the ending goes (`author's` gives `author`, `we'll` gives `we`) and
    `don't` gives `dont`; any other apostrophe separates. `c++` and `c#` are words. Without a letter only
    short numbers are words. HTML tags and entities, the paths of web addresses and LaTeX's formatting
    commands are dropped; its symbols (`\\alpha`) are words, and its accents (`G\\"odel`) become letters.

    Examples
    --------
    >>> tokenize("The author's well-known C++ code (2019) doesn't handle 1234567 of <b>Poincar\\\\'e</b>.")
    ['the', 'author', 'well-known', 'c++', 'code', '2019', 'doesnt', 'handle', 'of', 'poincaré']
    """
    text = _without_markup(text.lower())
    plain = text.isascii()
    if not plain:
        text = _with_ideographs_apart(_normalised(text))
    if "'" in text:
        text = _CONTRACTION.sub("", text.replace("n't", "nt"))
    if "_" in text:
        text = text.replace("_", " ")
    find = _ascii_words if plain and "#" not in text and "++" not in text else _unicode_words()
    return [
        word
        for word in find(text)
        if len(word) <= LONGEST_NUMBER or word.isalpha() or (_LETTER(word) and len(word) <= LONGEST_WORD)
    ]


def prepared(text: str) -> str:
    """A text without markup and in one spelling, as the compiled loop takes it.

    That leaves to the loop: lower case in ASCII, contractions, underscores, and finding the words.

    Examples
    --------
    >>> prepared("The author's <b>Poincar\\\\'e</b>"), prepared("Fox_A, B.")
    ("the author's  poincaré ", 'Fox_A, B.')
    """
    marked = "\\" in text or "&" in text or "<" in text or "://" in text
    if not marked and text.isascii():
        return text
    ready = _without_markup(text.lower())
    return ready if ready.isascii() else _with_ideographs_apart(_normalised(ready))


@cache
def character_classes(end: int = sys.maxunicode + 1) -> npt.NDArray[np.uint8]:
    """For every character below the code `end`, the bits that the compiled loop knows it by.

    Examples
    --------
    >>> classes = character_classes(128)
    >>> int(classes[ord("a")]), int(classes[ord("7")]), int(classes[ord("-")])
    (13, 1, 0)
    """
    from himecat.kernels.word_ids import ALPHA, EXTENDS, LETTER, WORD

    codes = np.arange(end, dtype="<u4")
    characters = codes.tobytes().decode("utf-32-le", "surrogatepass")
    classes = np.zeros(end, dtype=np.uint8)
    for bit, pattern in ((WORD, r"\w+"), (EXTENDS, f"[{marks()}]+"), (LETTER, r"[^\W\d_]+")):
        for run in re.finditer(pattern, characters):
            classes[run.start() : run.end()] |= bit
    words = np.flatnonzero(classes & WORD)
    classes[words[[characters[code].isalpha() for code in words.tolist()]]] |= ALPHA
    return classes


class UnicodeWords:
    """Words of letters and digits of any script, as `tokenize` gives them; many texts are split by a compiled loop.

    Examples
    --------
    >>> UnicodeWords().words("A red fox.")
    ['a', 'red', 'fox']
    """

    name = "unicode"

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        return tokenize(text)

    def state(self) -> dict[str, Any]:
        """The rules' version."""
        return {"rules": RULES}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The same tokenizer."""
        return cls()
