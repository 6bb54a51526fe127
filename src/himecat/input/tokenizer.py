"""Tokenizers: from a text to its words. Chosen by name or given as an object, and kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

from himecat.errors import UsageError
from himecat.input.subwords import Subwords
from himecat.input.unicode_words import RULES, UnicodeWords
from himecat.input.unspaced import CharacterNgrams, DictionaryWords


@runtime_checkable
class Tokenizer(Protocol):
    """What splits texts into words.

    Attributes
    ----------
    name : str
        The name it is registered by.
    """

    name: str

    def words(self, text: str) -> list[str]:
        """The words of a text, in their order."""

    def state(self) -> dict[str, Any]:
        """What a model folder keeps of it, as JSON holds it."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The tokenizer that gave this state."""


@runtime_checkable
class LearnedTokenizer(Tokenizer, Protocol):
    """A tokenizer that splits the words of another one further, as it learns from all words of the documents."""

    base: Tokenizer

    def learn(self, counts: Mapping[str, int]) -> Self:
        """A tokenizer that learned from the words of `base` and how often each was seen."""

    def split(self, word: str) -> list[str]:
        """What becomes of a word of `base`."""


UNICODE = UnicodeWords()
"""The default."""

_KINDS: dict[str, type[Tokenizer]] = {
    kind.name: kind for kind in (UnicodeWords, CharacterNgrams, DictionaryWords, Subwords)
}


def register_tokenizer(kind: type[Tokenizer]) -> type[Tokenizer]:
    """Make a class of one's own known by its `name`, so that models with it can be loaded.

    Examples
    --------
    >>> @register_tokenizer
    ... class Lines:
    ...     name = "lines"
    ...     def words(self, text): return text.splitlines()
    ...     def state(self): return {}
    ...     @classmethod
    ...     def from_state(cls, state): return cls()
    >>> get_tokenizer("lines").words("a red fox\\na hen")
    ['a red fox', 'a hen']
    """
    name = getattr(kind, "name", None)
    missing = [part for part in ("words", "state", "from_state") if not callable(getattr(kind, part, None))]
    if not isinstance(name, str) or not name.strip() or missing:
        wanted = missing[0] if missing else "name"
        raise UsageError(f"A tokenizer needs name, words, state and from_state; {kind!r} has no {wanted}.")
    _KINDS[name] = kind
    return kind


def get_tokenizer(given: str | Tokenizer) -> Tokenizer:
    """The tokenizer of a name, or the object itself.

    Raises
    ------
    UsageError
        There is none of that name, or the object is no tokenizer.

    Examples
    --------
    >>> get_tokenizer("unicode").words("A red fox.")
    ['a', 'red', 'fox']
    """
    if isinstance(given, str):
        return _kind(given)()
    if isinstance(given, type) or not isinstance(given, Tokenizer):
        raise UsageError(
            f"tokenizer must be one of {', '.join(_KINDS)}, or an object with name, words, state and "
            f"from_state, not {given!r}."
        )
    return given


def tokenizer_from_state(name: str, state: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that a model folder kept.

    Raises
    ------
    UsageError
        There is none of that name, or it splits by rules that this version does not have.

    Examples
    --------
    >>> tokenizer_from_state("unicode", UNICODE.state()).name
    'unicode'
    """
    rules = state.get("rules", RULES)
    if _kind(name).__module__.startswith("himecat.") and rules != RULES:
        raise UsageError(f"This himecat does not have the tokenizer rules {rules!r}: pip install -U himecat.")
    return _kind(name).from_state(state)


def _kind(name: str) -> type[Tokenizer]:
    if name not in _KINDS:
        raise UsageError(
            f"There is no tokenizer {name!r}: take one of {', '.join(_KINDS)}, or register your own with "
            "himecat.register_tokenizer first."
        )
    return _KINDS[name]
