"""However a source is cut into batches, and whatever its format, the same corpus comes out of it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from himecat.errors import DataError
from himecat.input import builder, documents, token_ids
from himecat.input import unicode_words as tokenizer
from himecat.input.builder import load_corpus
from himecat.input.columns import ColumnReader, ComputedColumn
from himecat.input.documents import Fields, read_documents
from himecat.input.problems import Problems
from himecat.input.token_ids import TokenRows, WordIds
from himecat.views.encoder_cache import EncoderReader
from himecat.views.text_encoder import TextEncoder

FIELDS = Fields(metadata=("tags", "people"))
PLAIN = [
    {"id": f"d{n}", "text": f"The {n}th red fox, again.", "tags": ["wild", f"t{n % 3}"], "people": [f"p{n}"]}
    for n in range(40)
]

AWKWARD: dict[str, str] = {
    "blank line": "",
    "line of spaces": " \t",
    "broken": '{"text": "a",',
    "no object": "[1, 2]",
    "a string": '"text"',
    "NaN": '{"id": "x", "text": "a", "tags": NaN}',
    "null everywhere": '{"id": null, "text": null, "tags": null, "people": null, "labels": null}',
    "null tags": '{"id": "x", "text": "a", "tags": null}',
    "empty object": "{}",
    "id number": '{"id": 17, "text": "a"}',
    "id that is a position": '{"id": "3", "text": "a"}',
    "id float": '{"id": 4.0, "text": "a"}',
    "id large": '{"id": 18446744073709551616, "text": "a"}',
    "id true": '{"id": true, "text": "a"}',
    "id list": '{"id": ["x"], "text": "a"}',
    "id blank": '{"id": " ", "text": "a"}',
    "id with spaces": '{"id": " d1 ", "text": "a"}',
    "id missing": '{"text": "a"}',
    "id twice at once": '{"id": "d19", "text": "a"}',
    "id twice, far apart": '{"id": "d0", "text": "a"}',
    "id later": '{"id": "d39", "text": "a"}',
    "id half surrogate": '{"id": "x\\ud83d", "text": "a"}',
    "text empty": '{"id": "x", "text": ""}',
    "text blank": '{"id": "x", "text": " \\u00a0\\n"}',
    "text missing": '{"id": "x", "title": "a"}',
    "text number": '{"id": "x", "text": 5}',
    "text list": '{"id": "x", "text": ["a"]}',
    "text half surrogate": '{"id": "x", "text": "a \\udc00 b"}',
    "text bad UTF-8": '{"id": "x", "text": "caf\udce9"}',
    "unicode": '{"id": "é", "text": "Škoda 漢字 \\ud83d\\ude00 G\\\\\\"odel", "tags": ["né", " né "]}',
    "tags string": '{"id": "x", "text": "a", "tags": "wild|farm"}',
    "tags blank string": '{"id": "x", "text": "a", "tags": " "}',
    "tags number": '{"id": "x", "text": "a", "tags": 3}',
    "tags float": '{"id": "x", "text": "a", "tags": 3.5}',
    "tags object": '{"id": "x", "text": "a", "tags": {"b": 1}}',
    "tags with blanks": '{"id": "x", "text": "a", "tags": ["", "b", " "]}',
    "tags with null": '{"id": "x", "text": "a", "tags": [null, "b"]}',
    "tags twice": '{"id": "x", "text": "a", "tags": ["c", "b", " c", "b"]}',
    "tags nested": '{"id": "x", "text": "a", "tags": [["b"]]}',
    "tags of numbers": '{"id": "x", "text": "a", "tags": ["b", 1]}',
    "tags half surrogate": '{"id": "x", "text": "a", "tags": ["\\ud800"]}',
    "tags empty": '{"id": "x", "text": "a", "tags": []}',
    "label string": '{"id": "x", "text": "a", "labels": "fox"}',
    "label list": '{"id": "x", "text": "a", "labels": ["fox", "hen"]}',
    "label empty": '{"id": "x", "text": "a", "labels": []}',
    "label blank": '{"id": "x", "text": "a", "labels": " "}',
    "label number": '{"id": "x", "text": "a", "labels": 0}',
    "label float": '{"id": "x", "text": "a", "labels": 2.5}',
    "label large": '{"id": "x", "text": "a", "labels": 18446744073709551616}',
    "label nested": '{"id": "x", "text": "a", "labels": [["fox"], null]}',
    "another field": '{"id": "x", "text": "a", "year": 1.5, "note": null}',
}


def outcome(
    source: Any, fields: Fields, skip_bad: bool, readers: Sequence[ColumnReader] = ()
) -> tuple[object, ...]:
    """All that reading a source brings to light, ready to be compared."""
    problems = Problems()
    try:
        loaded = load_corpus(source, fields, problems=problems, skip_bad=skip_bad, readers=readers)
    except DataError as error:
        return str(error), list(problems), problems.counts
    corpus = loaded.corpus
    columns = {
        kind: (
            column.vocabulary.names,
            column.vocabulary.counts.tolist(),
            column.values.values.tobytes(),
            column.values.offsets.tobytes(),
        )
        for kind, column in corpus.metadata.items()
    }
    return (
        list(corpus.ids),
        corpus.words.names,
        corpus.words.counts.tolist(),
        corpus.tokens.values.tobytes(),
        corpus.tokens.offsets.tobytes(),
        columns,
        list(loaded.labels.items()),
        list(loaded.places),
        loaded.skipped,
        list(problems),
        problems.counts,
        {name: column.tobytes() for name, column in corpus.columns.items()},
    )


def check_batches(source: Any, fields: Fields = FIELDS, readers: Sequence[ColumnReader] = ()) -> None:
    """Read a source in large batches and one document at a time."""
    for skip_bad in (True, False):
        together = outcome(source, fields, skip_bad, readers)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(documents, "_BATCH_CHARACTERS", 1)
            assert outcome(source, fields, skip_bad, readers) == together


def lines_of(documents: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(document, ensure_ascii=False) for document in documents]


def written(path: Path, lines: list[str]) -> Path:
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("place", [0, 20, 40], ids=["first", "middle", "last"])
def test_an_awkward_record_among_plain_ones(tmp_path: Path, kind: str, place: int) -> None:
    lines = lines_of(PLAIN)
    path = written(tmp_path / "docs.jsonl", [*lines[:place], AWKWARD[kind], *lines[place:]])
    check_batches(path)


def test_all_awkward_records_in_one_file(tmp_path: Path) -> None:
    plain = lines_of(PLAIN)
    lines = [line for pair in zip(plain, AWKWARD.values(), strict=False) for line in pair]
    check_batches(written(tmp_path / "docs.jsonl", lines))
    check_batches(written(tmp_path / "docs.jsonl", ["\ufeff" + plain[0], *lines[1:], ""]))


@pytest.mark.parametrize(
    "change",
    [
        lambda n: {"id": None},
        lambda n: {"id": n},
        lambda n: {"id": n + 3 if n > 20 else None},
        lambda n: {"id": None if n > 20 else n + 3},
        lambda n: {"id": n if n % 2 else f"d{n}"},
        lambda n: {"tags": None},
        lambda n: {"tags": None, "people": None},
        lambda n: {"tags": ["late"] if n > 20 else None},
        lambda n: {"tags": f"t{n}"},
        lambda n: {"labels": [["fox"], "hen", [], "", None][n % 5]},
        lambda n: {"text": "\u00e9t\u00e9 " * n + "x"},
        lambda n: {"text": " " if n % 3 else "x"},
    ],
    ids=[
        "no ids", "numbers", "ids come late", "ids end", "ids and numbers", "a field nowhere", "two fields nowhere",
        "a field late", "one string", "labels", "unicode", "blank texts",
    ],
)  # fmt: skip
def test_a_whole_file_with_a_peculiarity(tmp_path: Path, change: Callable[[int], dict[str, Any]]) -> None:
    documents = [{**document, **change(n)} for n, document in enumerate(PLAIN)]
    present = [{name: value for name, value in one.items() if value is not None} for one in documents]
    check_batches(written(tmp_path / "docs.jsonl", lines_of(documents)))
    check_batches(written(tmp_path / "docs.jsonl", lines_of(present)))


def test_several_text_fields(tmp_path: Path) -> None:
    titles = ["A title", "", " ", None, "Été"]
    documents = [{**document, "title": titles[n % 5]} for n, document in enumerate(PLAIN)]
    fields = Fields(text=("title", "text"), metadata=("tags",))
    path = written(tmp_path / "docs.jsonl", lines_of(documents))
    check_batches(path, fields)
    documents[30].update(title="", text=" ")
    check_batches(written(path, lines_of(documents)), fields)


@pytest.mark.parametrize("end", [-1, -30, -300])
def test_a_file_that_is_cut_short(tmp_path: Path, end: int) -> None:
    documents = [{**one, "text": f"{n * 7919 % 10007} fox {n * 31}"} for n, one in enumerate(PLAIN)]
    path = written(tmp_path / "docs.jsonl.gz", lines_of(documents))
    path.write_bytes(path.read_bytes()[:end])
    check_batches(path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"\x1f\x8b"])
def test_a_file_without_documents(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(content)
    check_batches(path)


PARQUET_COLUMNS: dict[str, list[Any]] = {
    "plain": [],
    "id": [None, "", " ", "d3", "d39", "é"],
    "text": [None, "", " ", "été 漢字"],
    "tags": [None, [], [""], [None, "x"], ["x", "x", " x"], ["é"]],
    "labels": [None, [], ["fox"], ["fox", "hen"]],
}


@pytest.mark.parametrize("column", PARQUET_COLUMNS)
def test_parquet(tmp_path: Path, column: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    path = tmp_path / "docs.parquet"
    for value in PARQUET_COLUMNS[column] or [None]:
        documents = [dict(document) for document in PLAIN]
        if column != "plain":
            documents[0].setdefault(column, [])
            documents[20][column] = value
        write_table(pyarrow.Table.from_pylist(documents), path)
        check_batches(path)


@pytest.mark.parametrize(
    "columns",
    [
        {"id": list(range(40))},
        {"id": [float(n) for n in range(40)]},
        {"id": [n if n % 3 else None for n in range(40)]},
        {"tags": ["wild"] * 40},
        {"tags": [["x", None]] * 40},
        {"tags": [[n] for n in range(40)]},
        {"tags": [None] * 40},
        {"labels": [float("nan"), *range(39)]},
        {"labels": ["fox", None] * 20},
        {"text": list(range(40))},
        {"note": [{"a": 1}] * 40},
    ],
    ids=lambda columns: f"{next(iter(columns))} {next(iter(columns.values()))[0]}",
)
def test_parquet_columns_of_other_types(tmp_path: Path, columns: dict[str, list[Any]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    path = tmp_path / "docs.parquet"
    table = pyarrow.Table.from_pylist(PLAIN).to_pydict()
    write_table(pyarrow.table({**table, **columns}), path)
    check_batches(path)
    write_table(pyarrow.table({**table, **columns}).slice(0, 0), path)
    check_batches(path)


class _Lengths(TextEncoder):
    def check_installed(self) -> None:
        pass

    def encode(self, texts: Any) -> npt.NDArray[np.float32]:
        return np.array([[len(text), 1 + text.count("e")] for text in texts], dtype=np.float32).reshape(-1, 2)


def test_an_encoder_sees_every_text(tmp_path: Path) -> None:
    lines = lines_of(PLAIN)
    path = written(tmp_path / "docs.jsonl", [*lines[:7], AWKWARD["text empty"], *lines[7:]])
    check_batches(path, FIELDS, [EncoderReader(_Lengths("lengths", None, "0123abcd"))])
    extra = ComputedColumn(
        "people", lambda rows: [[str(one.extra["people"]).count("p")] for one in rows], ("people",)
    )
    check_batches(path, FIELDS, [extra])


VALUES = st.sampled_from(
    [
        "d1",
        "x",
        "",
        " ",
        "é",
        3,
        2.0,
        None,
        True,
        [],
        ["b"],
        ["b", " b"],
        ["", "c"],
        [None],
        [["b"]],
        {"a": "b"},
    ]
)
RECORDS = st.dictionaries(st.sampled_from(["id", "text", "tags", "people", "labels"]), VALUES)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PLAIN) | RECORDS, max_size=12))
def test_any_records(tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]) -> None:
    path = written(tmp_path_factory.mktemp("any") / "docs.jsonl", lines_of(records))
    check_batches(path)
    found = Problems(), Problems()
    from_list, from_file = (
        [
            document._replace(place="")
            for batch in read_documents(source, FIELDS, problems)
            for document in batch
        ]
        for source, problems in zip((records, path), found, strict=True)
    )
    assert [one for one in from_list if one.usable] == [one for one in from_file if one.usable]
    # Lines are counted from 1, documents of a list from 0; and an empty list has no name to complain about.
    said = [
        [re.sub(r"[^ ]*docs.jsonl line [0-9]+|document [0-9]+", "here", one.message) for one in some]
        for some in found
    ]
    assert said[0] == [
        message for message in said[1] if message != "the file is empty: it holds no document."
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_texts_that_come_together_have_the_same_words(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(token_ids, "_CHUNK", 500)
    texts = [f"word{n % 7} and other{n} " * (n % 5 + 1) for n in range(60)]
    found = []
    for step in (1, 3, 60):
        with TokenRows(WordIds(grows=True, compile_from=900), 6, threads) as rows:
            for start in range(0, 60, step):
                rows.extend(texts[start : start + step])
            found.append([row.tolist() for row in rows.finish()])
    assert found[0] == found[1] == found[2]


def test_a_large_file_goes_through_the_compiled_loop_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "docs.jsonl", lines_of(PLAIN))
    small = outcome(path, FIELDS, False)
    monkeypatch.setattr(builder, "_LARGE_FILE", 1)
    monkeypatch.setattr(WordIds, "_split_rows", None)
    assert outcome(path, FIELDS, False) == small
    assert (
        outcome(tmp_path / "none.jsonl", FIELDS, False)[0]
        == f"{tmp_path / 'none.jsonl'}: there is no such file."
    )


@given(st.text("aeoqz \\\"'`^~{}é\u0301\u0308\u0323\u212b\ufb01漢"))
def test_accents_put_together_early_change_no_word(text: str) -> None:
    early = tokenizer.prepared(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "_composed", lambda text: text)
        assert tokenizer.prepared(text) == early
