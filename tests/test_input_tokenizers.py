"""Tokenizers as objects: scripts without spaces, subwords, and one's own; each is kept with the model."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat import Default, HiMeCat, read_corpus, register_tokenizer
from himecat.errors import ModelFolderError, UsageError
from himecat.input import tokenizer, unspaced
from himecat.input.builder import load_corpus
from himecat.input.check import check
from himecat.input.documents import Fields
from himecat.input.problems import Problems
from himecat.input.subwords import Subwords
from himecat.input.tokenizer import Tokenizer, get_tokenizer, tokenizer_from_state
from himecat.input.unicode_words import tokenize
from himecat.input.unspaced import CharacterNgrams, DictionaryWords, looks_unspaced

# Two topics, cycling and cooking; every sentence is another one.
CORPORA: dict[str, dict[str, list[str]]] = {
    "chinese": {
        "交通": [
            "市政府决定在老城区修建一条新的自行车道",
            "骑自行车上班的人越来越多，车道却不够用",
            "这条自行车道连接火车站和大学",
            "停在人行道上的自行车妨碍了行人",
            "新的自行车道下个月开放，司机要注意",
            "公交车和自行车共用一条车道很危险",
        ],
        "烹饪": [
            "把洋葱切成小块，用热油炒到金黄色",
            "汤里再加一点盐和胡椒，味道会更好",
            "先把面粉和鸡蛋混合，再慢慢加牛奶",
            "用热油炒洋葱和大蒜，然后放番茄",
            "这道汤要用小火煮两个小时",
            "烤箱预热以后，把面粉做的面包放进去",
        ],
    },
    "japanese": {
        "交通": [
            "市役所は旧市街に新しい自転車道を作ることを決めた",
            "自転車で通勤する人が増えているが自転車道が足りない",
            "この自転車道は駅と大学を結んでいる",
            "歩道に止めた自転車が歩行者の邪魔になる",
            "新しい自転車道は来月開通する予定だ",
            "バスと自転車が同じ車線を走るのは危ない",
        ],
        "料理": [
            "玉ねぎを小さく切って油で炒める",
            "スープに塩と胡椒を少し加えると美味しい",
            "小麦粉と卵を混ぜてから牛乳を加える",
            "玉ねぎとにんにくを油で炒めてトマトを入れる",
            "このスープは弱火で二時間煮込む",
            "オーブンを温めてから小麦粉の生地を焼く",
        ],
    },
    "thai": {
        "จราจร": [
            "เทศบาลตัดสินใจสร้างทางจักรยานใหม่ในย่านเมืองเก่า",
            "คนขี่จักรยานไปทำงานมากขึ้นแต่ทางจักรยานไม่พอ",
            "ทางจักรยานสายนี้เชื่อมสถานีรถไฟกับมหาวิทยาลัย",
            "จักรยานที่จอดบนทางเท้ากีดขวางคนเดิน",
            "ทางจักรยานใหม่จะเปิดใช้เดือนหน้า",
            "รถเมล์กับจักรยานใช้ช่องทางเดียวกันอันตรายมาก",
        ],
        "อาหาร": [
            "หั่นหัวหอมเป็นชิ้นเล็กแล้วผัดกับน้ำมันร้อน",
            "เติมเกลือกับพริกไทยลงในน้ำซุปอีกเล็กน้อย",
            "ผสมแป้งสาลีกับไข่แล้วค่อยเติมนม",
            "ผัดหัวหอมกับกระเทียมในน้ำมันร้อนแล้วใส่มะเขือเทศ",
            "น้ำซุปนี้ต้องต้มด้วยไฟอ่อนสองชั่วโมง",
            "อุ่นเตาอบก่อนแล้วนำแป้งสาลีที่นวดไว้เข้าอบ",
        ],
    },
}


def split(language: str, shown: int = 3) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """The documents, `shown` of each topic labelled, and the texts and topics of the others."""
    documents, texts, topics = [], [], []
    for topic, sentences in CORPORA[language].items():
        for number, text in enumerate(sentences):
            documents.append({"text": text, "labels": topic} if number < shown else {"text": text})
            if number >= shown:
                texts.append(text)
                topics.append(topic)
    return documents, texts, topics


def shared(language: str, name: str) -> float:
    """How much more likely a word of an unlabelled sentence is in the labelled ones of its own topic."""
    words = get_tokenizer(name).words
    documents, texts, topics = split(language)
    seen = {
        topic: {word for one in documents if one.get("labels") == topic for word in words(one["text"])}
        for topic in CORPORA[language]
    }
    right = 0
    for text, topic in zip(texts, topics, strict=True):
        found = {name: sum(word in known for word in words(text)) for name, known in seen.items()}
        right += found[topic] > max(count for name, count in found.items() if name != topic)
    return right / len(texts)


@pytest.mark.parametrize("language", CORPORA)
def test_ngrams_tell_topics_apart(language: str) -> None:
    assert shared(language, "ngrams") >= 5 / 6


def test_whole_sentences_of_thai_do_not() -> None:
    assert shared("thai", "unicode") == 0


@pytest.mark.parametrize("language", CORPORA)
def test_a_model_of_ngrams_places_unlabelled_documents_and_is_the_same_when_loaded(
    language: str, tmp_path: Path
) -> None:
    documents, texts, topics = split(language)
    model = HiMeCat(tokenizer="ngrams", method=Default(dimension=8, topics=0)).fit(documents)
    found = [path[0] for path in model.predict(texts, as_tuples=True)]
    assert sum(map(str.__eq__, found, topics)) >= 5
    model.save(tmp_path / "model")
    kept = json.loads((tmp_path / "model" / "model.json").read_text())["tokenizer"]
    assert kept["name"] == "ngrams"
    loaded = HiMeCat.load(tmp_path / "model")
    assert loaded.tokenizer == "ngrams"
    assert np.array_equal(loaded.predict_proba(texts), model.predict_proba(texts))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A red fox.", "a red fox"),
        ("自転車", "自転 転車"),
        ("茶", "茶"),
        ("WTO加入2019年，<b>新</b>的", "wto 加入 2019 年 新 的"),
        ("ทางจักรยาน", "ทางจั งจัก จักร กรยา รยาน"),
        ("ｶﾅ Café ２０", "カナ café 20"),
        ("ភាសាខ្មែរ", "ភាសាខ្មែ សាខ្មែរ"),
        ("น้ำ", "น้ำ"),
    ],
)
def test_words_of_mixed_scripts(text: str, words: str) -> None:
    assert CharacterNgrams().words(text) == words.split()


@given(st.text())
def test_where_no_script_without_spaces_is_used_the_words_are_those_of_the_default(text: str) -> None:
    if not unspaced._RUN.search(unicodedata.normalize("NFKC", text)):
        joined = CharacterNgrams().words(text)
        assert joined == tokenize(text) or "&" in text or "\\" in text or "<" in text


@given(st.text("aก็เ文カ 1\u0301ခ្"))
def test_ngrams_never_fail_and_never_lose_a_run(text: str) -> None:
    words = CharacterNgrams().words(text)
    assert all(words)
    assert bool(unspaced._RUN.search(text)) <= bool(words)


class TestDictionary:
    def test_each_language_goes_to_its_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        def splitter(language: str, library: str) -> Any:
            asked.append((language, library))
            return lambda run: [run[:2], run[2:]]

        monkeypatch.setattr(unspaced, "_splitter", splitter)
        words = DictionaryWords(japanese="janome").words
        assert words("the 自行车道 of") == ["the", "自行", "车道", "of"]
        assert words("自転車です") == ["自転", "車です"]
        assert words("ทางจักรยาน")[0] == "ทา"
        assert words("မြန်မာစာ") == CharacterNgrams().words("မြန်မာစာ")
        assert asked == [("chinese", "rjieba"), ("japanese", "janome"), ("thai", "pythainlp")]

    def test_a_missing_library_is_one_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("rjieba", "janome", "janome.tokenizer", "fugashi", "pythainlp", "pythainlp.tokenize"):
            monkeypatch.setitem(sys.modules, name, None)
        unspaced._splitter.cache_clear()
        for text, library in (("自行车道", "rjieba"), ("自転車です", "janome"), ("ทางจักรยาน", "pythainlp")):
            with pytest.raises(UsageError, match=rf"needs {library} for it: pip install \"himecat\[dict"):
                read_corpus([text], tokenizer="dictionary")
        unspaced._splitter.cache_clear()
        assert read_corpus(["no such text"], tokenizer="dictionary").words.names == ("no", "such", "text")

    @pytest.mark.parametrize(
        ("library", "text", "word"),
        [
            ("rjieba", "市政府决定在老城区修建一条新的自行车道", "市政府"),
            ("janome", "市役所は新しい自転車専用道路を作る", "自転車"),
            ("pythainlp", "เทศบาลตัดสินใจสร้างทางจักรยานใหม่", "จักรยาน"),
        ],
    )
    def test_words_by_dictionary(self, library: str, text: str, word: str) -> None:
        pytest.importorskip(library)
        assert word in DictionaryWords("janome" if library == "janome" else None).words(text)

    def test_the_library_for_japanese_is_kept(self) -> None:
        state = json.loads(json.dumps(DictionaryWords("janome").state()))
        assert tokenizer_from_state("dictionary", state).state() == state


class TestSubwords:
    TEXTS = (
        "Schneeball Schneemann Schneefall im Winter", "Fussball Handball und Schneeball", "der Schneemann im Garten",
        "Regenfall und Schneefall", "Handball im Winter", "Fussball im Garten",
    )  # fmt: skip

    def test_unknown_words_share_pieces_with_known_ones(self) -> None:
        corpus = read_corpus(self.TEXTS, tokenizer=Subwords(12))
        pieces = corpus.words.tokenizer.words("Schneehand")
        assert len(pieces) > 1
        assert set(pieces) & set(corpus.words.names)
        assert "".join(piece.removeprefix("##") for piece in pieces) == "schneehand"

    @pytest.mark.parametrize("max_tokens", [2, 3, None])
    def test_reading_gives_what_the_tokenizer_gives(self, max_tokens: int | None) -> None:
        corpus = read_corpus(self.TEXTS, tokenizer=Subwords(20), max_tokens=max_tokens)
        for row, text in enumerate(self.TEXTS):
            found = [corpus.words.names[word] for word in corpus.tokens[row]]
            assert found == corpus.words.tokenizer.words(text)[:max_tokens]

    def test_what_was_learned_is_kept_with_the_model(self, tmp_path: Path) -> None:
        documents = [
            {"text": text, "labels": label}
            for text, label in zip(self.TEXTS, ["snow", "ball"] * 3, strict=True)
        ]
        model = HiMeCat(tokenizer="subwords", method=Default(dimension=4, topics=0)).fit(documents)
        model.save(tmp_path / "model")
        loaded = HiMeCat.load(tmp_path / "model")
        new = ["Schneehand", "Winterball", "nothing"]
        assert np.array_equal(loaded.encode(new).tokens.values, model.encode(new).tokens.values)
        assert np.array_equal(loaded.predict_proba(new), model.predict_proba(new))
        loaded.fit(documents)
        assert np.array_equal(loaded.predict_proba(new), model.predict_proba(new))

    @given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=12), st.integers(1, 20))
    def test_pieces_put_together_are_the_word(self, words: list[str], size: int) -> None:
        learned = Subwords(size).learn({word: 1 + words.index(word) % 3 for word in words})
        again = Subwords.from_state(json.loads(json.dumps(learned.state())))
        for word in [*words, "abcabc", "é"]:
            assert "".join(piece.removeprefix("##") for piece in learned.split(word)) == word
            assert again.split(word) == learned.split(word)

    def test_a_bad_size(self) -> None:
        with pytest.raises(UsageError, match="size must be a whole number"):
            Subwords(0)


class Syllables:
    """A tokenizer of one's own, with state."""

    name = "two-letters"

    def __init__(self, size: int = 2) -> None:
        self.size = size

    def words(self, text: str) -> list[str]:
        joined = "".join(text.lower().split())
        return [joined[at : at + self.size] for at in range(0, len(joined), self.size)]

    def state(self) -> dict[str, Any]:
        return {"size": self.size}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(state["size"])


LOAD = """
import json, sys
from himecat import HiMeCat
from test_input_tokenizers import Syllables
from himecat import register_tokenizer
register_tokenizer(Syllables)
model = HiMeCat.load(sys.argv[1])
print(json.dumps([model.tokenizer.size, model.predict_proba(["mimimo", "bababo"]).tolist()]))
"""


def test_a_tokenizer_of_ones_own_is_found_again_in_another_process(tmp_path: Path) -> None:
    register_tokenizer(Syllables)
    documents = [
        {"text": "baba boba babo", "labels": "b"}, {"text": "mimi momi mimo", "labels": "m"},
        {"text": "babo boba"}, {"text": "mimo momi"},
    ]  # fmt: skip
    model = HiMeCat(
        tokenizer=Syllables(4), method=Default(dimension=2, topics=0), keywords={"b": "bababobo"}
    ).fit(documents)
    assert model.keywords_ == {"b": ["baba", "bobo"]}
    assert set(model.space_.vocabulary.names) == {"baba", "boba", "babo", "mimi", "momi", "mimo"} & set(
        model.space_.vocabulary.names
    )
    model.save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "model")],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    size, found = json.loads(done.stdout)
    assert size == 4
    assert np.array_equal(np.array(found, np.float32), model.predict_proba(["mimimo", "bababo"]))


def test_a_model_whose_tokenizer_is_not_registered_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [{"text": "a hen a hen", "labels": "x"}, {"text": "a fox a fox", "labels": "y"}]
    HiMeCat(tokenizer=Syllables(), method=Default(dimension=2, topics=0)).fit(documents).save(
        tmp_path / "model"
    )
    monkeypatch.delitem(tokenizer._KINDS, Syllables.name, raising=False)
    with pytest.raises(ModelFolderError, match=r"no tokenizer 'two-letters'.*register_tokenizer"):
        HiMeCat.load(tmp_path / "model")


def test_rules_of_a_later_version_are_refused() -> None:
    with pytest.raises(UsageError, match="rules 'words-9': pip install -U himecat"):
        tokenizer_from_state("unicode", {"rules": "words-9"})


def test_names_and_objects() -> None:
    for name in ("unicode", "ngrams", "dictionary", "subwords"):
        assert get_tokenizer(name).name == name
    given_object = CharacterNgrams()
    assert get_tokenizer(given_object) is given_object
    assert isinstance(given_object, Tokenizer)
    with pytest.raises(UsageError, match="no tokenizer 'chinese': take one of unicode"):
        get_tokenizer("chinese")
    for wrong in (3, CharacterNgrams, object()):
        with pytest.raises(UsageError, match="tokenizer must be one of unicode"):
            get_tokenizer(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="has no words"):
        register_tokenizer(type("Nothing", (), {"name": "nothing"}))


def test_a_corpus_read_with_another_tokenizer_is_refused() -> None:
    corpus = read_corpus(["a hen", "a fox"], tokenizer="ngrams")
    with pytest.raises(UsageError, match="read with the tokenizer 'ngrams': say tokenizer='ngrams'"):
        HiMeCat({"x": None, "y": None}).fit(corpus, ["x", "y"])
    with pytest.raises(UsageError, match="the model with 'unicode': read the documents with that one"):
        corpus.aligned(read_corpus(["a hen"]).words, {})


@pytest.mark.parametrize("language", CORPORA)
def test_check_and_fit_say_that_documents_look_unspaced(language: str) -> None:
    documents, _, _ = split(language)
    said = "look like a script without spaces: take a tokenizer"
    assert said in str(list(check(documents * 2).problems))
    assert said not in str(list(check(documents * 2, tokenizer="ngrams").problems))
    problems = Problems()
    load_corpus(documents * 2, Fields(), problems=problems)
    assert said in str(list(problems))


def test_the_command_line_takes_a_name(himecat: Any, tmp_path: Path) -> None:
    documents, texts, topics = split("thai")
    corpus = tmp_path / "docs.jsonl"
    corpus.write_text("".join(json.dumps(one) + "\n" for one in documents))
    assert himecat("check", corpus).code == 2
    assert "without spaces" in himecat("check", corpus).out
    assert himecat("check", corpus, "--tokenizer", "ngrams").code == 0
    model = tmp_path / "model"
    assert himecat("fit", corpus, "-o", model, "-q").code == 2
    assert himecat("fit", corpus, "--tokenizer", "ngrams", "-o", model, "-q").code == 0
    found = [path[0] for path in HiMeCat.load(model).predict(texts, as_tuples=True)]
    assert sum(map(str.__eq__, found, topics)) >= 5
    ended = himecat("fit", corpus, "--tokenizer", "thai", "-o", tmp_path / "other")
    assert ended.code == 2
    assert "no tokenizer 'thai': take one of" in ended.err


def test_an_object_is_copied_with_its_estimator() -> None:
    from sklearn.base import clone

    copied = clone(HiMeCat(tokenizer=Syllables(4)))
    assert isinstance(copied.tokenizer, Syllables)
    assert copied.tokenizer.size == 4


def test_looks_unspaced() -> None:
    assert all(
        looks_unspaced([text for texts in topics.values() for text in texts] * 2)
        for topics in CORPORA.values()
    )
    assert not looks_unspaced(["The fox hunts hens at night. 東京"] * 20)
    assert not looks_unspaced(["東京"])
    assert not looks_unspaced(["한국어는 띄어쓰기를 한다"] * 20)
