"""Tables of word vectors, as model2vec and sentence-transformers save them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from himecat.errors import UsageError
from himecat.views.text_encoder import open_encoder
from tiny_onnx import TABLE, WORDS, unit, write_onnx, write_tokenizer

pytest.importorskip("tokenizers")
STATIC = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}]


def write_static(
    folder: Path, tensors: dict[str, Any] | None = None, modules: Any = None, **config: Any
) -> Path:
    place = folder / (modules[0]["path"] if modules else "")
    write_tokenizer(place)
    save_file({"embeddings": TABLE} if tensors is None else tensors, place / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    if modules:
        (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def mean(words: str, table: Any = TABLE) -> Any:
    return unit(table[[WORDS.index(word) for word in words.split()]].astype(np.float32).mean(axis=0))


def test_a_text_is_the_mean_of_its_words_without_unknown_ones(tmp_path: Path) -> None:
    found = open_encoder(write_static(tmp_path)).encode(["the red cow hen", "cow", "", "fox"])
    assert np.allclose(found, [mean("the red hen"), np.zeros(6), np.zeros(6), mean("fox")], atol=1e-6)


def test_sentence_transformers_counts_unknown_words(tmp_path: Path) -> None:
    nested = [{**STATIC[0], "path": "0_StaticEmbedding"}, {"path": "1_Normalize", "type": "a.Normalize"}]
    for folder, modules in ((tmp_path / "flat", STATIC), (tmp_path / "nested", nested)):
        found = open_encoder(write_static(folder, {"embedding.weight": TABLE}, modules)).encode(["red cow"])
        assert np.allclose(found, mean("red [UNK]"), atol=1e-6)
    assert open_encoder(write_static(tmp_path / "bare", {"embedding.weight": TABLE})).encode(["fox"]).any()


def test_tokens_may_share_rows_and_be_weighted(tmp_path: Path) -> None:
    mapping = np.array([0, 1, 2, 3, 1, 1, 2, 3, 0])
    weights = np.linspace(0.5, 2, len(WORDS))
    folder = write_static(tmp_path, {"embeddings": TABLE[:4], "mapping": mapping, "weights": weights})
    table = TABLE[:4][mapping] * weights[:, None]
    assert np.allclose(open_encoder(folder).encode(["the red hen"]), mean("the red hen", table), atol=1e-6)


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8])
def test_tables_of_other_numbers_are_read(tmp_path: Path, kind: Any) -> None:
    table = (TABLE * 40).astype(kind)
    found = open_encoder(write_static(tmp_path, {"embeddings": table})).encode(["the red hen"])
    assert np.allclose(found, mean("the red hen", table), atol=1e-6)


def test_long_texts_are_cut_as_model2vec_does(tmp_path: Path) -> None:
    encoder = open_encoder(write_static(tmp_path, max_length=3))
    assert np.allclose(encoder.encode(["red hen fox night the the"]), mean("red hen fox"), atol=1e-6)
    # Words beyond the characters that so many tokens usually have are not looked at.
    assert not open_encoder(tmp_path).encode([f"{'cow ' * 9}fox"]).any()


def test_threads_do_not_matter(tmp_path: Path) -> None:
    folder, texts = write_static(tmp_path), ["red hen", "cow", "fox night", "the the red"]
    one = open_encoder(folder, threads=1).encode(texts)
    assert np.array_equal(open_encoder(folder, threads=3).encode(texts), one)


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"embeddings": TABLE[:5]}, "has 5 vectors, too few"),
        ({"embeddings": TABLE[0]}, "do not fit together"),
        ({"embeddings": TABLE, "weights": np.ones(3)}, "do not fit together"),
        ({"embeddings": TABLE, "mapping": np.full(9, 99)}, "do not fit together"),
        ({"embeddings": TABLE, "mapping": np.full(9, -1)}, "do not fit together"),
        ({"embeddings": TABLE, "mapping": np.full(9, 0.5)}, "do not fit together"),
        ({"embeddings": TABLE * np.nan}, "not finite"),
        ({"other": TABLE}, "no table of vectors"),
    ],
)
def test_tables_that_cannot_be_right_are_told(tmp_path: Path, tensors: dict[str, Any], said: str) -> None:
    folder = write_static(tmp_path, tensors, STATIC)
    with pytest.raises(UsageError, match=said):
        open_encoder(folder, threads=2).encode(["night", "the fox"])


def test_a_damaged_table_is_told(tmp_path: Path) -> None:
    folder = write_static(tmp_path, modules=STATIC)
    whole = (folder / "model.safetensors").read_bytes()
    for content in (b"", whole[:20], whole[:-3], b"\xff" * 99):
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(UsageError, match="cannot be loaded from"):
            open_encoder(folder).encode(["fox"])


def test_tokenizers_alone_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_static(tmp_path, modules=STATIC)
    program = (
        "import sys; from himecat.views.text_encoder import open_encoder;"
        "print(open_encoder(sys.argv[1]).encode(['the fox']).shape,"
        "{'torch', 'transformers', 'sentence_transformers', 'onnxruntime'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False
    )
    assert ended.stdout == "(1, 6) set()\n", ended.stderr
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match=r'^This encoder needs tokenizers: pip install "himecat\[onnx\]"\.$'):
        open_encoder(folder).check_installed()


def test_it_is_what_sentence_transformers_gives(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    folder = write_static(tmp_path, {"embedding.weight": TABLE}, STATIC)
    texts = ["the red hen", "fox cow night"]
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)
    assert np.allclose(open_encoder(folder).encode(texts), theirs, atol=1e-6)


def test_a_static_folder_with_an_onnx_model_beside_it_is_static(tmp_path: Path) -> None:
    write_onnx(write_static(tmp_path), name="onnx/model.onnx")
    assert np.allclose(open_encoder(tmp_path).encode(["fox"]), mean("fox"), atol=1e-6)
