"""The corpus that a model folder keeps: all of it comes back, damage is found, and a prediction never reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Default, HiMeCat, Supervision, read_corpus
from himecat.errors import ModelFolderError, UsageError
from himecat.input.columns import ComputedColumn
from himecat.model_folder.files import CORPUS_KEY
from himecat.model_folder.kept import LearnedFrom, packed, unpacked
from himecat.runtime.files import CORPUS_FILE
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.views.matrices import unit_in_place

DOCUMENTS = sample_documents(330)
SMALL = Default(dimension=16, topics=0, calibrate=False, learn_prior=False)


@pytest.fixture(scope="module")
def model() -> HiMeCat:
    found = HiMeCat(sample_taxonomy(), list(METADATA), method=SMALL, threads=1)
    return found.fit(DOCUMENTS, sample_split(DOCUMENTS))


@pytest.fixture
def folder(model: HiMeCat, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def same(one: LearnedFrom, other: LearnedFrom) -> None:
    assert list(one.corpus.ids) == list(other.corpus.ids)
    pairs = [(one.corpus.tokens, other.corpus.tokens)]
    assert one.corpus.metadata.keys() == other.corpus.metadata.keys()
    pairs += [
        (one.corpus.metadata[kind].values, other.corpus.metadata[kind].values) for kind in one.corpus.metadata
    ]
    for a, b in pairs:
        for x, y in ((a.values, b.values), (a.offsets, b.offsets)):
            assert x.dtype == y.dtype
            assert np.array_equal(x, y)
    assert one.corpus.columns.keys() == other.corpus.columns.keys()
    for name, column in one.corpus.columns.items():
        assert column.tobytes() == other.corpus.columns[name].tobytes()
    assert np.array_equal(one.supervision.rows, other.supervision.rows)
    assert np.array_equal(one.supervision.nodes, other.supervision.nodes)


def test_documents_and_labels_come_back(model: HiMeCat, folder: Path) -> None:
    same(HiMeCat.load(folder)._kept(), model._kept())


def test_ids_of_any_characters_and_columns_of_one_s_own() -> None:
    ids = ["", "ä\n\0", "\ud800", "日本", "=1"]
    numbers = ComputedColumn("own", lambda documents: np.linspace(0, 1, 3 * len(documents)).reshape(-1, 3))
    corpus = read_corpus(["a hen", "a fox", "b", "c", "d"], readers=[numbers])
    corpus = type(corpus)(ids, corpus.words, corpus.tokens, {}, corpus.columns)
    before = LearnedFrom(corpus, Supervision(np.array([4, 2]), np.array([1, 2])))
    arrays = packed(before, [])
    assert arrays["columns/own"].dtype == np.float32
    same(unpacked(arrays, corpus.words, {}, 3), before)


def test_unit_vectors_of_half_precision_are_kept_in_half_precision() -> None:
    random = np.random.default_rng(0).normal(size=(50, 384)).astype(np.float32)
    # As the encoder's cache gives them.
    rows = unit_in_place(unit_in_place(random).astype(np.float16).astype(np.float32))
    rows[3] = 0.0
    corpus = read_corpus([f"hen {number}" for number in range(50)])
    corpus = type(corpus)(corpus.ids, corpus.words, corpus.tokens, {}, {"encoder": rows})
    before = LearnedFrom(corpus, Supervision(np.array([0]), np.array([1])))
    arrays = packed(before, [])
    assert arrays["columns/encoder"].dtype == np.float16
    same(unpacked(arrays, corpus.words, {}, 2), before)


def test_the_same_fit_gives_the_same_bytes(model: HiMeCat, folder: Path, tmp_path: Path) -> None:
    HiMeCat.load(folder).save(tmp_path / "again")
    for file in folder.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_without_it(model: HiMeCat, folder: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "bare", corpus=False)
    assert sorted(file.name for file in (tmp_path / "bare").iterdir()) == [
        "model.json",
        "weights.safetensors",
    ]
    assert CORPUS_KEY not in json.loads((tmp_path / "bare" / "model.json").read_text())
    bare = HiMeCat.load(tmp_path / "bare")
    assert bare.predict(DOCUMENTS[:20]).tolist() == model.predict(DOCUMENTS[:20]).tolist()
    with pytest.raises(UsageError, match="does not keep the documents"):
        bare.correct({DOCUMENTS[0]["id"]: DOCUMENTS[0]["labels"]})


def test_a_prediction_does_not_read_it(model: HiMeCat, folder: Path) -> None:
    (folder / CORPUS_FILE).unlink()
    loaded = HiMeCat.load(folder)
    assert loaded.predict(DOCUMENTS[:20]).tolist() == model.predict(DOCUMENTS[:20]).tolist()
    with pytest.raises(ModelFolderError, match=r"there is no corpus\.safetensors in it"):
        loaded.correct({DOCUMENTS[0]["id"]: DOCUMENTS[0]["labels"]})


@pytest.mark.parametrize("place", [0, 9, 500, -1])
def test_every_flipped_bit_is_refused_where_it_is_read(model: HiMeCat, folder: Path, place: int) -> None:
    raw = bytearray((folder / CORPUS_FILE).read_bytes())
    raw[place] ^= 4
    (folder / CORPUS_FILE).write_bytes(raw)
    loaded = HiMeCat.load(folder)
    assert loaded.predict(DOCUMENTS[:5]).tolist() == model.predict(DOCUMENTS[:5]).tolist()
    for use in (
        lambda: loaded.correct({DOCUMENTS[0]["id"]: DOCUMENTS[0]["labels"]}),
        lambda: loaded.save(folder.parent / "other"),
    ):
        with pytest.raises(ModelFolderError, match=r"corpus.safetensors is damaged \(changed since"):
            use()
    assert not (folder.parent / "other").exists()
    loaded.save(folder.parent / "other", corpus=False)


def broken(arrays: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return {**arrays, name: value} if value is not None else {k: v for k, v in arrays.items() if k != name}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokens", np.array([9, 9, 9, 9, 9], np.uint8)),
        ("tokens", np.array([0.0])),
        ("tokens", None),
        ("tokens/lengths", np.array([1, 1], np.uint8)),
        ("ids/lengths", np.array([2], np.uint8)),
        ("labels/rows", np.array([2], np.uint8)),
        ("labels/nodes", np.array([3], np.uint8)),
        ("labels/nodes", np.array([1, 1], np.uint8)),
    ],
)
def test_parts_that_do_not_fit(name: str, value: Any) -> None:
    corpus = read_corpus(["a red fox", "a hen"])
    arrays = packed(LearnedFrom(corpus, Supervision(np.array([1]), np.array([2]))), [])
    with pytest.raises((ValueError, LookupError)):
        unpacked(broken(arrays, name, value), corpus.words, {}, 3)


def test_a_folder_with_a_corpus_is_replaced(model: HiMeCat, folder: Path) -> None:
    model.save(folder, corpus=False, overwrite=True)
    assert not (folder / CORPUS_FILE).exists()
    model.save(folder, overwrite=True)
    shutil.rmtree(folder)
