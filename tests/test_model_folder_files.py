from __future__ import annotations

import errno
import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import himecat
from himecat.errors import ModelFolderError, OutputError
from himecat.model_folder import files
from himecat.model_folder.files import (
    DIGEST_SINCE,
    HEADER_KEYS,
    VERSION,
    read_model,
    require_keys,
    write_model,
)
from himecat.runtime.files import MODEL_FORMAT

Array = np.ndarray[Any, Any]
DTYPES = ("float32", "int32", "int64", "float64", "bool", "uint8", ">f4", ">i8")

DOCUMENT = {"parameters": {"dimension": 3, "rate": 0.1, "preset": None}, "words": ["fox", "café", "東京"]}
ARRAYS: dict[str, Array] = {
    "vectors": np.arange(12, dtype=np.float32).reshape(4, 3),
    "offsets": np.array([0, 2], np.int64),
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", DOCUMENT, ARRAYS)
    return tmp_path / "model"


def round_trip(arrays: dict[str, Array], document: dict[str, Any] | None = None) -> tuple[Any, Any]:
    with TemporaryDirectory() as place:
        write_model(f"{place}/model", document or {}, arrays)
        return read_model(f"{place}/model")


def assert_same(found: Array, expected: Array) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert found.dtype.isnative
    # Bytes, so that signed zeros and NaNs count too.
    assert found.tobytes() == expected.astype(found.dtype).tobytes()
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert found.flags.aligned


class TestRoundTrip:
    def test_document_and_arrays(self, model: Path) -> None:
        document, arrays = read_model(model)
        assert {key: document[key] for key in DOCUMENT} == DOCUMENT
        assert arrays.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert_same(arrays[name], array)

    @pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
    def test_layouts_that_safetensors_would_mix_up(self, dtype: type[np.generic]) -> None:
        rows = np.arange(24).astype(dtype).reshape(4, 6)
        layouts: dict[str, Array] = {
            "Fortran": np.asfortranarray(rows),
            "turned": rows.T,
            "every second": rows[::2, 1::2],
            "backwards": rows[::-1],
            "no rows": rows[:0],
            "no columns": rows[:, :0],
            "one number": rows[0, 0:1].reshape(()),
        }
        _, arrays = round_trip(layouts)
        for name, array in layouts.items():
            assert_same(arrays[name], array)

    @settings(max_examples=60, deadline=None)
    @given(
        npst.arrays(
            st.sampled_from([np.dtype(name) for name in DTYPES]),
            npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        ),
        st.sampled_from(["as it is", "Fortran", "every second", "backwards", "turned", "repeated"]),
    )
    def test_arrays_of_every_layout_come_back_bit_by_bit(self, array: Array, layout: str) -> None:
        if layout == "Fortran":
            array = np.asfortranarray(array) if array.ndim else array
        elif layout == "every second" and array.ndim:
            array = array[::2]
        elif layout == "backwards" and array.ndim:
            array = array[..., ::-1]
        elif layout == "turned":
            array = array.T
        elif layout == "repeated":
            array = np.broadcast_to(array, (3, *array.shape))
        _, arrays = round_trip({"a": array, "b": np.ones(1, np.float32)})
        assert_same(arrays["a"], array)

    @settings(max_examples=40, deadline=None)
    @given(
        st.dictionaries(
            st.text().filter(lambda key: key not in HEADER_KEYS),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(st.characters(codec="utf-8")),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
                max_leaves=8,
            ),
            max_size=4,
        )
    )
    def test_documents_come_back_as_they_were(self, document: dict[str, Any]) -> None:
        found, arrays = round_trip({}, document)
        assert {key: value for key, value in found.items() if key not in HEADER_KEYS} == document
        assert list(found) == [*HEADER_KEYS, *document]
        assert arrays == {}

    def test_half_a_surrogate_pair_comes_back(self) -> None:
        words = ["\ud83d", "a\udc00b", "\\ud83d", "😀"]
        assert round_trip({}, {"words": words})[0]["words"] == words

    def test_the_same_model_has_the_same_bytes(self, model: Path, tmp_path: Path) -> None:
        write_model(tmp_path / "again", DOCUMENT, dict(reversed(ARRAYS.items())))
        for file in model.iterdir():
            assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


class TestWriting:
    def test_people_can_read_the_top(self, model: Path) -> None:
        weights = (model / "weights.safetensors").read_bytes()
        lines = (model / "model.json").read_text(encoding="utf-8").split("\n")
        assert lines[:4] == ["{", f'"format": "{MODEL_FORMAT}",', f'"version": {VERSION},', lines[3]]
        assert lines[3] == f'"himecat": "{himecat.__version__}",'
        assert json.loads(lines[4].removeprefix('"weights": ').removesuffix(",")) == {
            "file": "weights.safetensors",
            "bytes": len(weights),
            "sha256": hashlib.sha256(weights).hexdigest(),
        }
        zeros = "\n".join([*lines[:5], f'"digest": "{64 * "0"}",', *lines[6:]])
        assert lines[5] == f'"digest": "{hashlib.sha256(zeros.encode()).hexdigest()}",'
        assert lines[7] == '"words": ["fox", "café", "東京"]'

    @pytest.mark.parametrize(
        ("document", "arrays", "error"),
        [
            ({"rate": float("nan")}, {}, ValueError),
            ({"version": 3}, {}, ValueError),
            ({}, {"a": np.array(["text"])}, TypeError),
            ({}, {"a": np.array([None])}, TypeError),
            ({}, {"__metadata__": np.zeros(1)}, ValueError),
        ],
    )
    def test_what_cannot_be_read_again_is_not_written(
        self, tmp_path: Path, document: dict[str, Any], arrays: dict[str, Array], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            write_model(tmp_path / "model", document, arrays)
        assert list(tmp_path.iterdir()) == []

    def test_an_older_model_is_replaced_only_on_request(self, model: Path) -> None:
        with pytest.raises(OutputError, match="exists already"):
            write_model(model, {"words": []}, {})
        assert read_model(model)[0]["words"] == DOCUMENT["words"]
        write_model(model, {"words": []}, {}, overwrite=True)
        assert read_model(model)[0]["words"] == []
        assert list(model.parent.iterdir()) == [model]

    def test_a_full_disk_leaves_the_older_model(self, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="No space left on device"):
            write_model(model, {"words": []}, {}, overwrite=True)
        assert read_model(model)[0]["words"] == DOCUMENT["words"]
        assert list(model.parent.iterdir()) == [model]


def said_about(folder: Path) -> str:
    with pytest.raises(ModelFolderError) as caught:
        read_model(folder)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(folder), "MODEL")


def edited(model: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change `model.json` as a program would that knows of the digest."""
    document = json.loads((model / "model.json").read_text())
    document["digest"] = 64 * "0"
    change(document)
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
    text = "{\n" + lines + "\n}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    (model / "model.json").write_text(text.replace(64 * "0", digest, 1))
    return model


AGAIN = "copy the whole folder again, or fit the model anew."


class TestBadFolders:
    def test_no_folder(self, model: Path, tmp_path: Path) -> None:
        assert said_about(tmp_path / "no") == "MODEL: there is no such model folder."
        assert said_about(model / "model.json") == (
            "MODEL is a file: name the model folder, which holds model.json."
        )
        assert said_about(model / "model.json" / "deeper") == "MODEL: there is no such model folder."
        assert said_about(tmp_path / ("n" * 300)) == "MODEL cannot be read (File name too long)."

    def test_no_model(self, model: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        said = "MODEL/ is not a himecat model: "
        assert said_about(tmp_path / "empty") == said + "there is no model.json in it."
        for foreign in ("[]", '"text"', "{}", '{"format": "layers-model", "version": 1}', "3"):
            (model / "model.json").write_text(foreign)
            assert said_about(model) == said + "its model.json is of another kind."

    def test_a_model_file_cut_anywhere(self, model: Path) -> None:
        whole = (model / "model.json").read_bytes()
        for length in range(0, len(whole) - 2, 3):
            (model / "model.json").write_bytes(whole[:length])
            said = said_about(model)
            # A cut behind an inner closing bracket looks like broken JSON.
            assert said.startswith(
                (
                    f"MODEL/model.json is damaged (cut short after {length} bytes)",
                    "MODEL/model.json is damaged (broken",
                )
            )
            assert said.endswith(AGAIN)

    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (b"", "cut short after 0 bytes"),
            (b'{"format": "caf\xe9"}', "invalid UTF-8 at byte 16"),
            (b'{\n"format" 3}', "broken JSON at line 2, column 10"),
            (b'{"a": ' + b"[" * 100_000 + b"}", "this JSON cannot be read"),
            (b'{"a": ' + b"9" * 10_000 + b"}", "this JSON cannot be read"),
        ],
    )
    def test_a_broken_model_file(self, model: Path, content: bytes, found: str) -> None:
        (model / "model.json").write_bytes(content)
        assert said_about(model) == f"MODEL/model.json is damaged ({found}): {AGAIN}"

    def test_a_folder_where_a_file_should_be(self, model: Path) -> None:
        for name in ("weights.safetensors", "model.json"):
            (model / name).unlink()
            (model / name).mkdir()
            assert said_about(model) == f"MODEL/{name} cannot be read (Is a directory)."

    def test_a_newer_model(self, model: Path) -> None:
        # Whatever else has changed in that version.
        edited(model, lambda document: (document.update(version=VERSION + 1), document.pop("weights")))
        assert said_about(model) == (
            f"MODEL/ was written by a newer himecat (format {VERSION + 1}); this one reads up to {VERSION}: "
            "pip install -U himecat."
        )

    @pytest.mark.parametrize("version", [0, -1, "1", 1.0, True, None])
    def test_an_impossible_version(self, model: Path, version: object) -> None:
        edited(model, lambda document: document.update(version=version))
        assert said_about(model) == (
            f"MODEL/model.json is damaged (the format version is {version!r}): {AGAIN}"
        )

    @pytest.mark.parametrize("key", HEADER_KEYS[1:-1])
    def test_a_missing_key(self, model: Path, key: str) -> None:
        edited(model, lambda document: document.pop(key))
        assert said_about(model) == f"MODEL/model.json is damaged ({key!r} is missing): {AGAIN}"

    def test_missing_keys_of_the_document(self) -> None:
        require_keys(DOCUMENT, ["words", "parameters"], "m")
        with pytest.raises(ModelFolderError, match=r"^m/model.json is damaged \('tree', 'b' are missing\)"):
            require_keys(DOCUMENT, ["tree", "words", "b"], "m")

    @pytest.mark.parametrize(
        "change",
        [{"file": "../weights.safetensors"}, {"bytes": None}, {"bytes": "4"}, {"sha256": 3}, {"file": None}],
    )
    def test_weights_that_are_not_described(self, model: Path, change: dict[str, object]) -> None:
        edited(model, lambda document: document["weights"].update(change))
        assert "('weights' does not describe a file)" in said_about(model)
        edited(model, lambda document: document.update(weights=[]))
        assert "('weights' does not describe a file)" in said_about(model)

    def test_missing_and_cut_weights(self, model: Path) -> None:
        weights = model / "weights.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[:-1])
        found = f"cut short, {len(whole) - 1} of {len(whole)} bytes"
        assert said_about(model) == f"MODEL/weights.safetensors is damaged ({found}): {AGAIN}"
        weights.unlink()
        assert said_about(model) == (
            "MODEL/ is not complete: there is no weights.safetensors in it; copy the whole folder again."
        )

    def test_any_changed_byte_is_found(self, model: Path) -> None:
        weights = model / "weights.safetensors"
        whole = weights.read_bytes()
        said = f"MODEL/weights.safetensors is damaged (changed since it was written): {AGAIN}"
        for position in range(0, len(whole), 7):
            changed = bytearray(whole)
            changed[position] ^= 1
            weights.write_bytes(changed)
            assert said_about(model) == said
        weights.write_bytes(whole + b"\0")
        assert said_about(model) == said

    @pytest.mark.parametrize("content", [b"", b"no arrays at all", b"\x08" + b"\0" * 7 + b'{"a":{}}'])
    def test_weights_that_are_no_arrays(self, model: Path, content: bytes) -> None:
        (model / "weights.safetensors").write_bytes(content)
        described = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        edited(model, lambda document: document["weights"].update(described))
        assert "(its contents are no arrays)" in said_about(model)

    @pytest.mark.parametrize("version", range(1, VERSION + 1))
    def test_a_changed_model_file_is_found_whatever_its_version_says(self, model: Path, version: int) -> None:
        whole = (model / "model.json").read_text()
        said = f"MODEL/model.json is damaged (changed since it was written): {AGAIN}"
        older = whole.replace(f'"version": {VERSION}', f'"version": {version}')
        (model / "model.json").write_text(older.replace("fox", "cat"))
        assert said_about(model) == said
        (model / "model.json").write_text(older)
        if version < VERSION:
            assert said_about(model) == said

    @pytest.mark.parametrize("version", [4, VERSION])
    def test_a_digest_that_cannot_be_found(self, model: Path, version: int) -> None:
        document = json.loads((model / "model.json").read_text()) | {"version": version}
        for indent in (None, 1):
            (model / "model.json").write_text(json.dumps(document, indent=indent))
            assert said_about(model) == f"MODEL/model.json is damaged (its digest is missing): {AGAIN}"
        document.pop("digest")
        (model / "model.json").write_text(json.dumps(document))
        if version >= DIGEST_SINCE:
            assert said_about(model) == f"MODEL/model.json is damaged (its digest is missing): {AGAIN}"
        else:
            read_model(model)

    @pytest.mark.parametrize(
        ("written", "found"),
        [
            ("NaN", "it holds the number NaN, which is not finite"),
            ("-Infinity", "it holds the number -Infinity, which is not finite"),
            ("1e999", "it holds the number 1e999, which is not finite"),
            ('{"a": 1, "a": 2}', "a key is there twice"),
            ("9" * 5_000, "this JSON cannot be read"),
            ("[" * 5_000 + "]" * 5_000, "this JSON cannot be read"),
        ],
    )
    def test_what_we_never_write(self, model: Path, written: str, found: str) -> None:
        edited(model, lambda document: document.update(rate="HERE"))
        lines = (model / "model.json").read_text().replace('"HERE"', written).split("\n")
        text = "\n".join(line for line in lines if not line.startswith('"digest"'))
        (model / "model.json").write_text(text.replace(f'"version": {VERSION}', '"version": 4'))
        assert said_about(model) == f"MODEL/model.json is damaged ({found}): {AGAIN}"

    def test_a_version_of_thousands_of_digits(self, model: Path) -> None:
        edited(model, lambda document: document.update(version=10**4_000))
        assert len(said_about(model)) < 200

    @pytest.mark.parametrize("name", ["a\0b", "\ud83d"])
    def test_names_that_no_file_can_have(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ModelFolderError, match="there is no such model folder"):
            read_model(tmp_path / name)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    @pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
    def test_a_pipe_is_not_waited_for(self, model: Path, name: str) -> None:
        (model / name).unlink()
        os.mkfifo(model / name)
        assert said_about(model) == f"MODEL/{name} cannot be read (it is not a file)."

    @pytest.mark.parametrize("claim", [[2**40], [2**31, 2**31], [2**62, 4], [10**18]])
    def test_huge_claims_of_the_weights_take_no_memory(self, model: Path, claim: list[int]) -> None:
        n_bytes = 4 * int(np.prod(claim, dtype=object))
        entry = {"dtype": "F32", "shape": claim, "data_offsets": [0, n_bytes]}
        header = json.dumps({"a": entry}).encode()
        for length in (len(header), 2**40, 2**63):
            content = length.to_bytes(8, "little") + header + bytes(64)
            (model / "weights.safetensors").write_bytes(content)
            described = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            edited(model, lambda document, described=described: document["weights"].update(described))
            tracemalloc.start()
            assert "(its contents are no arrays)" in said_about(model)
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
            tracemalloc.stop()

    def test_a_size_that_does_not_fit_is_told_before_reading(self, model: Path) -> None:
        edited(model, lambda document: document["weights"].update(bytes=2**60))
        assert f"of {2**60:,} bytes)" in said_about(model)
        edited(model, lambda document: document["weights"].update(bytes=-1))
        assert "(changed since it was written)" in said_about(model)

    def test_a_model_that_is_replaced_while_it_is_read(
        self, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replaced: list[int] = []
        arrays = files.read_arrays

        def replace_first(path: Path, weights: dict[str, Any]) -> dict[str, Array]:
            if not replaced:
                replaced.append(1)
                write_model(model, {"words": ["new"]}, {"vectors": np.zeros(3)}, overwrite=True)
            return arrays(path, weights)

        monkeypatch.setattr(files, "read_arrays", replace_first)
        document, found = read_model(model)
        assert document["words"] == ["new"]
        assert found["vectors"].tolist() == [0, 0, 0]

    def test_a_model_whose_replacement_was_interrupted_is_found(
        self, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        aside = tmp_path / f".himecat-00000000-{hashlib.sha256(b'model').hexdigest()[:16]}.old"
        model.rename(aside)
        (tmp_path / "link").symlink_to("model")
        assert read_model(tmp_path / "link")[0]["words"] == DOCUMENT["words"]
        assert not aside.exists()


def test_weights_are_the_bytes_that_safetensors_writes(tmp_path: Path) -> None:
    from safetensors.numpy import save

    rng = np.random.default_rng(0)
    kinds = ["bool", "u1", "i1", "i2", "u2", "f2", "i4", "u4", "f4", "f8", "i8", "u8", "f4"]
    arrays = {
        f"{place}-{kind}": (rng.random((3, place)) * 99).astype(kind) for place, kind in enumerate(kinds)
    }
    arrays |= {
        'é"\\': np.zeros((0, 4)),
        "scalar": np.ones(()),
        "columns": np.asfortranarray(rng.random((4, 5))),
    }
    write_model(tmp_path / "model", {}, arrays | {"other": np.arange(3, dtype=">i4")})
    plain = {name: np.ascontiguousarray(one).reshape(one.shape) for name, one in arrays.items()}
    expected = save(plain | {"other": np.arange(3, dtype="i4")})
    assert (tmp_path / "model" / "weights.safetensors").read_bytes() == expected
