from __future__ import annotations

import gzip
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.errors import DataError, UsageError
from himecat.input import builder, ragged, vocabulary
from himecat.input.builder import LoadedCorpus, iter_encoded, load_corpus, read_corpus
from himecat.input.corpus import Corpus, Vocabulary
from himecat.input.documents import Fields
from himecat.input.problems import Problems
from himecat.input.unicode_words import tokenize

TEXTS = st.lists(st.text("abc ", min_size=1).filter(str.strip), min_size=1, max_size=12)


def words_of(corpus: Corpus, row: int) -> list[str]:
    return [corpus.words.names[word] for word in corpus.tokens[row]]


def values_of(corpus: Corpus, kind: str, row: int) -> list[str]:
    column = corpus.metadata[kind]
    return [column.vocabulary.names[value] for value in column.values[row]]


@given(TEXTS, st.integers(1, 3), st.none() | st.integers(1, 4))
def test_the_columns_hold_what_a_plain_reading_finds(
    texts: list[str], min_count: int, max_tokens: int | None
) -> None:
    corpus = read_corpus(texts, min_count=min_count, max_tokens=max_tokens)
    plain = [tokenize(text)[:max_tokens] for text in texts]
    counts = Counter(word for words in plain for word in words)
    kept = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: (-counts[w], w))
    assert list(corpus.words.names) == kept
    assert corpus.words.counts.tolist() == [counts[word] for word in kept]
    for row, words in enumerate(plain):
        assert words_of(corpus, row) == [word for word in words if counts[word] >= min_count]
    assert corpus.tokens.values.dtype == np.int32
    assert corpus.tokens.offsets.dtype == np.int64


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefghij"), rng.integers(1, 9))) + " z" for _ in range(50)]
    whole = read_corpus(texts, min_count=20)
    monkeypatch.setattr(ragged, "_BLOCK", 11)
    pieces = read_corpus(texts, min_count=20)
    assert whole.words.names == pieces.words.names
    assert whole.words.counts.tolist() == pieces.words.counts.tolist()
    assert whole.tokens.values.tolist() == pieces.tokens.values.tolist()
    assert whole.tokens.offsets.tolist() == pieces.tokens.offsets.tolist()


@given(TEXTS, st.randoms())
def test_ids_do_not_depend_on_the_order_of_documents(texts: list[str], random: Any) -> None:
    shuffled = random.sample(texts, len(texts))
    assert read_corpus(texts).words.names == read_corpus(shuffled).words.names


def test_metadata_columns() -> None:
    source = [
        {"text": "x", "tags": ["b", "a"], "brand": "q"},
        {"text": "y"},
        {"text": "z", "tags": "b"},
    ]
    corpus = read_corpus(source, metadata=["tags", "brand"], min_count=9)
    assert corpus.metadata["tags"].vocabulary.names == ("b", "a")
    assert corpus.metadata["tags"].vocabulary.counts.tolist() == [2, 1]
    assert [values_of(corpus, "tags", row) for row in range(3)] == [["b", "a"], [], ["b"]]
    assert [values_of(corpus, "brand", row) for row in range(3)] == [["q"], [], []]


def test_documents_whose_words_all_vanish_stay() -> None:
    corpus = read_corpus(["red red", "blue", "???"], min_count=2)
    assert corpus.tokens.lengths.tolist() == [2, 0, 0]
    assert list(corpus.ids) == ["0", "1", "2"]
    assert len(read_corpus(["blue"], min_count=2).words) == 0


def test_labels_ids_and_places(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n\n{"id": "b", "text": "y", "labels": ["p", "q"]}\n')
    loaded = load_corpus(path, Fields())
    assert loaded.labels == {1: ["p", "q"]}
    assert loaded.corpus.ids == ["a", "b"]
    assert list(loaded.places) == [f"{path} line 1", f"{path} line 3"]
    assert loaded.skipped == []


BAD = [{"text": "x"}, {"text": ""}, {"text": "y", "labels": "p"}, {"text": 5}, {"text": "z"}]


def test_all_errors_are_listed_before_giving_up() -> None:
    with pytest.raises(DataError) as caught:
        load_corpus(BAD, Fields())
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["document 1", "document 3"]


def test_skipping_bad_documents_turns_errors_into_warnings() -> None:
    problems = Problems(keep=1)
    loaded = load_corpus(BAD, Fields(), skip_bad=True, problems=problems)
    assert loaded.problems is problems
    assert loaded.skipped == [1, 3]
    assert loaded.corpus.ids == ["0", "2", "4"]
    assert loaded.labels == {1: "p"}
    assert loaded.places[1] == "document 2"
    assert problems.counts == {"error": 0, "warning": 2, "note": 0}
    assert str(problems.of("warning")[0]) == "document 1: the text is empty."


@pytest.mark.parametrize("skip_bad", [True, False])
def test_nothing_left_is_an_error(tmp_path: Path, skip_bad: bool) -> None:
    with pytest.raises(DataError, match="no document"):
        load_corpus([], Fields(), skip_bad=skip_bad)
    path = tmp_path / "docs.jsonl"
    path.write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        load_corpus(path, Fields(), skip_bad=skip_bad)


@pytest.mark.parametrize("limits", [{"min_count": 0}, {"max_tokens": 0}, {"max_tokens": -1}])
def test_limits_that_cannot_work_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must be at least 1"):
        load_corpus(["x"], Fields(), **limits)  # type: ignore[arg-type]


def trained() -> LoadedCorpus:
    source = [{"text": "a red hen", "tags": ["farm", "bird"]}, {"text": "a red fox", "tags": "wild"}]
    return load_corpus(source, Fields(metadata=("tags",)))


NEW = [
    {"text": "Fox, unknown hen", "tags": ["wild", "new", "bird"]},
    {"text": ""},
    {"text": "nothing known"},
    {"text": "red a red", "tags": []},
]


def encoded(source: Any, fields: Fields, words: Vocabulary, *known: Any) -> Corpus:
    """All documents in one batch."""
    ((_, corpus),) = iter_encoded(source, fields, words, *known, Problems(), batch_size=None)
    return corpus


def test_encoding_keeps_the_known_and_drops_the_unknown() -> None:
    known = trained().corpus
    vocabularies = {"tags": known.metadata["tags"].vocabulary}
    fields = Fields(metadata=("tags",))
    corpus = encoded(NEW, fields, known.words, vocabularies, 2)
    assert corpus.words is known.words
    assert [words_of(corpus, row) for row in range(4)] == [["fox"], [], [], ["red", "a"]]
    assert [values_of(corpus, "tags", row) for row in range(4)] == [["wild", "bird"], [], [], []]


def test_encoding_the_training_documents_gives_the_training_rows() -> None:
    texts = ["a red hen", "a red fox", "hen hen"]
    known = read_corpus(texts, min_count=2)
    again = encoded(texts, Fields(), known.words, {}, 300)
    assert again.tokens.values.tolist() == known.tokens.values.tolist()
    assert again.tokens.offsets.tolist() == known.tokens.offsets.tolist()


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 100])
def test_batches_together_give_every_document_in_order(batch_size: int) -> None:
    known = trained().corpus
    vocabularies = {"tags": known.metadata["tags"].vocabulary}
    problems = Problems()
    fields = Fields(metadata=("tags",))
    batches = list(iter_encoded(NEW, fields, known.words, vocabularies, None, problems, batch_size))
    assert [len(corpus) for _, corpus in batches] == [len(origins) for origins, _ in batches]
    assert max(len(corpus) for _, corpus in batches) <= batch_size
    origins = [origin for part, _ in batches for origin in part]
    assert [(o.id, o.place, o.usable) for o in origins] == [
        (str(i), f"document {i}", i != 1) for i in range(4)
    ]
    assert [id_ for _, corpus in batches for id_ in corpus.ids] == ["0", "1", "2", "3"]
    rows = [words_of(corpus, row) for _, corpus in batches for row in range(len(corpus))]
    assert rows == [["fox", "hen"], [], [], ["red", "a", "red"]]
    assert problems.counts["error"] == 1


def test_no_documents_give_no_batch() -> None:
    assert list(iter_encoded([], Fields(), trained().corpus.words, {}, None, Problems())) == []
    with pytest.raises(UsageError, match="batch_size"):
        next(iter_encoded(["x"], Fields(), trained().corpus.words, {}, None, Problems(), batch_size=0))


def test_encoding_in_batches_needs_no_more_memory_for_more_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "_REMEMBERED", 50)
    words = trained().corpus.words

    def peak(documents: int) -> int:
        source = ({"text": "a red hen " * 100} for _ in range(documents))
        tracemalloc.start()
        try:
            for _ in iter_encoded(source, Fields(), words, {}, 300, Problems(), batch_size=10):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(20)
    assert peak(400) < peak(100) + 20_000


@pytest.mark.real
@pytest.mark.parametrize(("name", "documents"), [("packages", 1968), ("reviews", 8618)])
def test_real_corpora_load_without_a_problem(
    shared_data: Callable[[str], Path], name: str, documents: int
) -> None:
    folder = shared_data(name)
    kinds = tuple(json.loads((folder / "meta_dict.json").read_text())["metadata"])
    loaded = load_corpus(folder / "corpus.jsonl.gz", Fields(metadata=kinds), min_count=5)
    corpus = loaded.corpus
    assert len(corpus) == len(loaded.labels) == documents
    assert list(loaded.problems) == []
    assert corpus.words.counts.min() >= 5
    assert np.bincount(corpus.tokens.values).tolist() == corpus.words.counts.tolist()
    assert 0.5 < corpus.metadata[kinds[1]].coverage < 1
    assert corpus.tokens.lengths.max() <= 300


def test_a_file_that_is_cut_short_is_an_error_even_where_bad_documents_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl.gz"
    lines = "".join(json.dumps({"text": f"document number {n} " * 20}) + "\n" for n in range(500))
    whole = gzip.compress(lines.encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut short"):
        load_corpus(path, Fields(), skip_bad=True)


def test_a_plain_text_is_the_text_whatever_the_fields_are_called() -> None:
    assert load_corpus(["a hen"], Fields(text=("title", "body"))).corpus.words.names == ("a", "hen")


def test_renumbering_is_the_same_compiled_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{number}" for number in rng.zipf(1.4, size)) for size in rng.integers(0, 9, 300)]
    texts = [text or "w1" for text in texts]
    plain = builder.load_corpus(texts, builder.Fields(), min_count=2).corpus
    monkeypatch.setattr(vocabulary, "_COMPILED_FROM", 0)
    compiled = builder.load_corpus(texts, builder.Fields(), min_count=2).corpus
    assert compiled.words.names == plain.words.names
    assert compiled.tokens.values.tolist() == plain.tokens.values.tolist()
    assert compiled.tokens.offsets.tolist() == plain.tokens.offsets.tolist()
    assert (np.diff(plain.words.counts) <= 0).all()
