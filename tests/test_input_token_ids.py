from __future__ import annotations

import pickle
import unicodedata
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.input import token_ids
from himecat.input.token_ids import TokenRows, WordIds
from himecat.input.unicode_words import UnicodeWords, _normalised, character_classes, tokenize

AWKWARD = (
    "",
    " .,;!? -- ' \\ < & _ ",
    "well-known state-of-the-art -minus- a--b a-b-c-d-e-f a-b-c-d-e++ a-",
    "author's authors' we'll I'm they've don't can’t DON'T Author'S-house c's++ x's's x'm's' n't 'tis n'tn't",
    "a_'s _'s s'_ x'd_ x'd1 x'd-y x're x'rex x'll_ x'ves",
    "C++ C++11 C# F#. notepad++ issue#12 c#-x c#é é# é++ c+ c+",
    "in 1999 12345 3d 4K 10-fold 555-1234 123456x 1-2 1-2-3 ٣٤٥٦٧ ½ ² x² 12²",
    f"{'a' * 30}{'1' * 30} {'a' * 300} {'é' * 41} {'1' * 41} {'ab' * 4} {'abcd' * 2}9",
    r"Schr\"odinger, Poincar\'{e}, Erd\'\i s \textit{co-integration} \cite{key99} $\alpha_s$",
    "one<br/>two &amp; &#65;&#66;c x&#65;y &#65;# a&#65;++ &#39;s &#x4e2d; https://www.github.com/a/b?c=d#e",
    "Café cafe\u0301 ﬁeld ｗｉｄｅ Straße İstanbul \u212aelvin hyphen\u00adation co\u2010op Navier\u2013Stokes",
    "Привет мир-труд हिन्दी में 한국어 中文 and カナ 𝔘𝔫𝔦 𐐀𐐨 half \ud83d pair 🙂 \u0301x x\u0301 e\u0301\u0301-\u0301",
    "nul\0byte tab\tvt\x0bnbsp\xa0zwj\u200dend é's 文's don\u2019t é'dé",
)


def plain(texts: Sequence[str], max_tokens: int | None = None) -> list[list[str]]:
    return [tokenize(text)[:max_tokens] for text in texts]


def compiled(
    texts: Sequence[str], max_tokens: int | None = None, names: Sequence[str] | None = None
) -> list[list[str]]:
    ids = WordIds(names or (), grows=names is None, compile_from=0)
    rows = ids.rows(texts, max_tokens)
    words = ids.names()
    assert len(set(words)) == len(words)
    return [[words[number] for number in row] for row in rows]


@pytest.mark.parametrize("text", AWKWARD)
def test_the_compiled_loop_gives_the_same_words(text: str) -> None:
    assert compiled([text]) == plain([text])


@pytest.mark.parametrize("max_tokens", [1, 2, 7, None])
def test_rows_stay_apart_and_are_cut_alike(max_tokens: int | None) -> None:
    assert compiled(AWKWARD, max_tokens) == plain(AWKWARD, max_tokens)


@given(
    st.lists(st.text(st.sampled_from("abnstrelvmdé1-'_.+#\\{}<>&;\" \n文\u0301AZ"), max_size=40), max_size=5)
)
def test_any_signs(texts: list[str]) -> None:
    assert compiled(texts) == plain(texts)


@given(st.lists(st.text(), max_size=4), st.integers(1, 5))
def test_any_text(texts: list[str], max_tokens: int) -> None:
    assert compiled(texts, max_tokens) == plain(texts, max_tokens)


def test_no_character_becomes_an_ascii_capital() -> None:
    """The compiled loop lowers ASCII letters; `tokenize` would leave those that appear so late as they are."""
    for code in range(0x80, 0x110000):
        ready = _normalised(chr(code).lower())
        assert ready.lower() == ready or not any("A" <= character <= "Z" for character in ready)


def test_classes_are_what_python_says() -> None:
    classes = character_classes()
    assert character_classes(128).tolist() == classes[:128].tolist()
    for code in [*range(0x3000), *range(0xD7F0, 0xE010), 0x1D518, 0x10FFFF]:
        character = chr(code)
        assert bool(classes[code] & 1) == (character.isalnum() or character == "_")
        assert bool(classes[code] & 8) == character.isalpha()
        mark = 0x300 <= code < 0x1C00 and unicodedata.category(character)[0] == "M"
        assert bool(classes[code] & 2) == mark


def test_words_without_a_number_are_dropped_after_the_text_was_cut() -> None:
    texts = ["a red hen and a fox", "unknown", ""]
    for compile_from in (0, 1000):
        ids = WordIds(["fox", "a", "longer-than-eight"], compile_from=compile_from)
        assert [row.tolist() for row in ids.rows(texts, 5)] == [[1, 1], [], []]
        assert ids.rows(["Longer-than-eight longer-than-eighty"])[0].tolist() == [2]
        assert ids.names() == ["fox", "a", "longer-than-eight"]


def test_ids_go_on_when_the_compiled_loop_takes_over_and_the_table_grows() -> None:
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"word-number-{number}" for number in rng.zipf(1.2, 300) % 20_000) + " ä" * (row % 2)
        for row in range(60)
    ]
    known: dict[str, int] = {}
    expected = [[known.setdefault(word, len(known)) for word in row] for row in plain(texts)]
    ids = WordIds(grows=True, compile_from=20_000)
    found = []
    for text in texts:
        found.append(ids.rows([text])[0].tolist())
    assert found == expected
    assert ids.names() == list(known)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_the_same_for_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_ids, "_CHUNK", 500)
    texts = list(AWKWARD) * 7
    known: dict[str, int] = {}
    expected = [[known.setdefault(word, len(known)) for word in row] for row in plain(texts, 6)]
    with TokenRows(WordIds(grows=True, compile_from=900), 6, threads) as rows:
        for text in texts:
            rows.extend([text])
        found = rows.finish()
    assert [row.tolist() for row in found] == expected


def test_a_failure_in_the_thread_is_told_and_the_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_ids, "_CHUNK", 1)

    class Failing(UnicodeWords):
        def words(self, text: str) -> list[str]:
            raise MemoryError

    with TokenRows(WordIds(grows=True, tokenizer=Failing()), None, 2) as rows:
        rows.extend(["a"])
        with pytest.raises(MemoryError):
            rows.finish()
    assert rows._worker is not None
    assert rows._worker._shutdown


def test_ids_can_be_sent_to_another_process() -> None:
    for compile_from in (0, 1000):
        ids = WordIds(["a", "fox"], compile_from=compile_from)
        ids.rows(["a fox"])
        assert pickle.loads(pickle.dumps(ids)).rows(["fox"])[0].tolist() == [1]
