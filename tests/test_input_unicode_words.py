from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.input.unicode_words import LONGEST_NUMBER, LONGEST_WORD, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,;!? -- ' \\ < & _ ", []),
        ("Red, RED (red)", "red red red"),
        ("well-known state-of-the-art -minus- a--b", "well-known state-of-the-art minus a b"),
        ("a-b-c-d-e-f", "a-b-c-d e-f"),
        ("author's authors' we'll I'm they've don't can’t", "author authors we i they dont cant"),
        ("l'amour O'Brien", "l amour o brien"),
        ("C++ C++11 C# F#. notepad++ issue#12", "c++ c++ 11 c# f# notepad issue 12"),
        ("in 1999 12345 3d 4K 10-fold 555-1234 123456x", "in 1999 3d 4k 10-fold 123456x"),
        ("snake_case x_i", "snake case x i"),
        (f"{'a' * 30}{'1' * 30} end", "end"),
    ],
)
def test_words(text: str, words: str | list[str]) -> None:
    assert tokenize(text) == (words.split() if isinstance(words, str) else words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one<br/>two<BR>three</p>", "one two three"),
        ("<a href=\"http://x.org/y\" class='z'>link</a>", "link"),
        ("<!-- hidden -->shown", "shown"),
        ("if a<b and c>d then", "if a b and c d then"),
        ("salt &amp; pepper&nbsp;don&#39;t &lt;b&gt;x", "salt pepper dont x"),
        ("AT&T R&D", "at t r d"),
        ("see https://www.github.com/a/b?c=d#e now", "see github com now"),
    ],
)
def test_html_and_addresses_leave_nothing_behind(text: str, words: str) -> None:
    assert tokenize(text) == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"\textit{co-integration} and \emph{more} {\bf bold}", "co-integration and more bold"),
        (r"$\alpha_s$ and $\Lambda$CDM", "alpha s and lambda cdm"),
        (r"Schr\"odinger, Poincar\'{e}, Erd\'\i s", "schrödinger poincaré erdí s"),
        (r"he said \"okay\"", "he said okay"),
        (r"\begin{equation}x\end{equation} \cite{key99} \label{eq:1} y", "x y"),
        (r"indium $6p_{1/2}$ state of S\&P500", "indium 6p 1 2 state of s p500"),
    ],
)
def test_latex(text: str, words: str) -> None:
    assert tokenize(text) == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Café cafe\u0301 CAFÉ", "café café café"),
        ("ﬁeld ｗｉｄｅ Straße", "field wide straße"),
        ("hyphen\u00adation co\u2010op Navier\u2013Stokes", "hyphenation co-op navier stokes"),
        ("Привет мир", "привет мир"),
        ("हिन्दी में", "हिन्दी में"),
        ("한국어 문서", "한국어 문서"),
        ("中文 and カナ", "中 文 and カ ナ"),
        ("half \ud83d pair 🙂", "half pair"),
    ],
)
def test_other_scripts(text: str, words: str) -> None:
    assert tokenize(text) == words.split()


@given(st.text())
def test_words_are_stable_when_read_again(text: str) -> None:
    words = tokenize(text)
    assert tokenize(" ".join(words)) == words


@given(st.text(st.sampled_from("aé1-'_.+#\\{}<>&;\" \n"), max_size=60))
def test_words_keep_to_the_rules(text: str) -> None:
    for word in tokenize(text):
        assert word == word.lower()
        assert not set(word) & set(" \n'_.{}<>&;\"\\")
        assert any(map(str.isalpha, word)) or len(word) <= LONGEST_NUMBER
        assert word.isalpha() or len(word) <= LONGEST_WORD


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_way_for_ascii_gives_the_same_words(text: str) -> None:
    assert [*tokenize(text), "ж"] == tokenize(text + " ж")


@pytest.mark.parametrize(
    "unit",
    ["<a b=", "<a ", "&#", "\\cite{", "a-", 'x\\"', "'s", "1", "<!--", "https://", "e\u0301", "<a b='c' "],
)
def test_hostile_texts_take_no_longer_than_others(unit: str) -> None:
    start = time.perf_counter()
    tokenize(unit * (200_000 // len(unit)))
    assert time.perf_counter() - start < 2
