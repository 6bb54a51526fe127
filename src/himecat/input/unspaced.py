"""Tokenizers for scripts without spaces: Chinese, Japanese, Thai, Lao, Khmer and Burmese."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Self

from himecat.errors import UsageError
from himecat.input.unicode_words import RULES, UnicodeWords, cleaned, marks, tokenize

_EAST_ASIAN = "\u3005\u3006\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_THAI = "\u0e01-\u0e7f"
_SOUTHEAST_ASIAN = f"{_THAI}\u0e80-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"
_RUN = re.compile(f"([{_EAST_ASIAN}]+|[{_SOUTHEAST_ASIAN}]+)")
_IS_EAST_ASIAN = re.compile(f"[{_EAST_ASIAN}]").match
_IS_THAI = re.compile(f"[{_THAI}]").match
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]").search
_LETTERS = re.compile(r"[^\W\d_]")

# A word of Chinese or Japanese has about two characters, one of the others about three syllables.
_EAST_ASIAN_SIZE, _SYLLABLES = 2, 3
_UNSPACED_FROM = 0.3
_SHORTEST_SAMPLE = 100


@cache
def _syllables() -> Callable[[str], list[str]]:
    """A letter with the vowel before it, and the signs and joined letters behind it."""
    behind = f"[{marks()}\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3]"
    return re.compile(f"[\u0e40-\u0e44\u0ec0-\u0ec4]?.(?:[\u17d2\u1039].|{behind})*").findall


def character_ngrams(run: str) -> list[str]:
    """Overlapping pieces of a run without spaces: pairs of East Asian characters, else three syllables.

    Examples
    --------
    >>> character_ngrams("自転車道"), character_ngrams("茶")
    (['自転', '転車', '車道'], ['茶'])
    """
    parts, size = (list(run), _EAST_ASIAN_SIZE) if _IS_EAST_ASIAN(run) else (_syllables()(run), _SYLLABLES)
    return ["".join(parts[at : at + size]) for at in range(max(1, len(parts) - size + 1))]


class CharacterNgrams(UnicodeWords):
    """Runs of a script without spaces as overlapping character n-grams; spaced words as by `unicode`.

    Examples
    --------
    >>> CharacterNgrams().words("The 自転車 of ทางจักรยาน")
    ['the', '自転', '転車', 'of', 'ทางจั', 'งจัก', 'จักร', 'กรยา', 'รยาน']
    """

    name = "ngrams"

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        return _with_runs_split(text, lambda run, whole: character_ngrams(run))


class DictionaryWords:
    """Words found by dictionary: Chinese by rjieba, Japanese by fugashi or Janome, Thai by PyThaiNLP.

    The libraries come with `himecat[dictionary]` and are imported when the first such text is met. Lao, Khmer
    and Burmese have none: they become character n-grams.

    Parameters
    ----------
    japanese : str, optional
        `fugashi` or `janome`; by default fugashi where it is installed with a dictionary, else the slower Janome.
    """

    name = "dictionary"

    def __init__(self, japanese: str | None = None) -> None:
        self.japanese = japanese

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        return _with_runs_split(text, self._split)

    def _split(self, run: str, text: str) -> list[str]:
        if _IS_THAI(run):
            return _splitter("thai", "pythainlp")(run)
        if not _IS_EAST_ASIAN(run):
            return character_ngrams(run)
        # Chinese has no kana, and Japanese of any length has some.
        if not _KANA(text):
            return _splitter("chinese", "rjieba")(run)
        if self.japanese is None:
            self.japanese = _installed_japanese()
        return _splitter("japanese", self.japanese)(run)

    def state(self) -> dict[str, Any]:
        """The rules' version, and the library for Japanese if one was used."""
        return {"rules": RULES, "japanese": self.japanese}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """A tokenizer with the same library for Japanese."""
        return cls(state.get("japanese"))


def _with_runs_split(text: str, split: Callable[[str, str], list[str]]) -> list[str]:
    if text.isascii():
        return tokenize(text)
    # The compatibility form takes the vowel AM of Thai and Lao apart, which dictionaries do not.
    text = cleaned(text).replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    words: list[str] = []
    # Every second part is a run of one script without spaces.
    for number, part in enumerate(_RUN.split(text)):
        words += split(part, text) if number % 2 else tokenize(part)
    return words


def _installed_japanese() -> str:
    try:
        _splitter("japanese", "fugashi")
    except UsageError:
        return "janome"
    return "fugashi"


@cache
def _splitter(language: str, library: str) -> Callable[[str], list[str]]:
    try:
        if library == "fugashi":
            tagger = importlib.import_module("fugashi").Tagger("-Owakati")
            return lambda run: tagger.parse(run).split()
        if library == "janome":
            janome = importlib.import_module("janome.tokenizer").Tokenizer(wakati=True)
            return lambda run: list(janome.tokenize(run, wakati=True))
        if library == "rjieba":
            return importlib.import_module("rjieba").cut  # type: ignore[no-any-return]
        segment = importlib.import_module("pythainlp.tokenize").word_tokenize
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"The documents have {language.capitalize()} text, and the tokenizer 'dictionary' needs {library} for "
            "it: pip install \"himecat[dictionary]\", or take the tokenizer 'ngrams'."
        ) from error
    return lambda run: segment(run, keep_whitespace=False)


def looks_unspaced(texts: Iterable[str]) -> bool:
    """Whether a good part of the letters belong to scripts without spaces.

    Examples
    --------
    >>> looks_unspaced(["市政府决定修建自行车道。" * 20]), looks_unspaced(["The city builds a lane. " * 20])
    (True, False)
    """
    letters = unspaced = 0
    for text in texts:
        letters += len(text) if text.isascii() else len(_LETTERS.findall(text))
        unspaced += 0 if text.isascii() else sum(map(len, _RUN.findall(text)))
    return letters >= _SHORTEST_SAMPLE and unspaced > _UNSPACED_FROM * letters
