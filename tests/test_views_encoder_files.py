"""Which model a folder, a file or a package holds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from himecat.errors import UsageError
from himecat.views import encoder_files
from himecat.views.encoder_files import find_encoder
from himecat.views.text_encoder import open_encoder
from tiny_onnx import TABLE, lookup, write_onnx

pytest.importorskip("tokenizers")


@pytest.mark.parametrize(
    "name",
    ["model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model_O2.onnx"],
)
def test_the_model_of_a_folder_is_found(tmp_path: Path, name: str) -> None:
    found = find_encoder(str(write_onnx(tmp_path, name=name)))
    assert found is not None
    assert (found.kind, found.model, found.folder) == ("onnx", tmp_path / name, tmp_path)


def test_of_several_models_one_is_named(tmp_path: Path) -> None:
    for name in ("onnx/a.onnx", "onnx/b.onnx"):
        write_onnx(tmp_path, name=name)
    with pytest.raises(
        UsageError, match=r"holds 2 ONNX models .* name one of the files, such as .*a\.onnx\.$"
    ):
        open_encoder(tmp_path)
    one, other = (open_encoder(tmp_path / "onnx" / name) for name in ("a.onnx", "b.onnx"))
    assert one.fingerprint != other.fingerprint
    write_onnx(tmp_path, name="model.onnx")
    assert open_encoder(str(tmp_path)).fingerprint not in (one.fingerprint, other.fingerprint)


def test_with_weights_of_both_pytorch_comes_first_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_onnx(tmp_path, name="onnx/model.onnx", config={"model_type": "bert"})
    (tmp_path / "model.safetensors").write_bytes(b"")
    kinds, fingerprints = [], set()
    for installed in (True, False):
        monkeypatch.setattr(encoder_files, "is_installed", lambda *_, installed=installed: installed)
        found = find_encoder(str(tmp_path))
        assert found is not None
        kinds.append(found.kind)
        fingerprints.add(found.fingerprint)
    assert kinds == ["sentence-transformers", "onnx"]
    assert len(fingerprints) == 2
    # The file itself is always run as it is.
    monkeypatch.undo()
    assert not open_encoder(tmp_path / "onnx" / "model.onnx").trainable


def test_the_fingerprint_follows_what_is_read(tmp_path: Path) -> None:
    folder = write_onnx(tmp_path / "a", **{"1_Pooling__config": {"pooling_mode": "mean"}})
    seen = {open_encoder(folder).fingerprint}
    copy = shutil.copytree(folder, tmp_path / "b")
    (copy / "README.md").write_text("notes")
    seen.add(open_encoder(copy).fingerprint)
    assert len(seen) == 1
    (copy / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    seen.add(open_encoder(copy).fingerprint)
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text().replace("night", "day"))
    seen.add(open_encoder(copy).fingerprint)
    (copy / "model.onnx").write_bytes(lookup(TABLE * 2))
    seen.add(open_encoder(copy).fingerprint)
    assert len(seen) == 4


def package(place: Path, name: str, inside: str = "") -> Path:
    folder = write_onnx(place / name / inside)
    (place / name / "__init__.py").write_text("raise RuntimeError('imported')")
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place with packages that carry models."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setattr(encoder_files, "_package_places", lambda: [place])
    return place


@pytest.mark.parametrize("inside", ["", "model"])
def test_a_package_with_an_onnx_model_is_found_without_running_it(site: Path, inside: str) -> None:
    folder = package(site, "made_up_onnx", inside)
    assert open_encoder("made-up-onnx").fingerprint == open_encoder(folder).fingerprint


def test_a_model_without_a_tokenizer_takes_that_of_the_only_other_package(site: Path) -> None:
    pytest.importorskip("onnxruntime")
    (package(site, "no_tokenizer") / "tokenizer.json").unlink()
    with pytest.raises(
        UsageError, match=r"There is no tokenizer\.json beside .*, and no installed package has one"
    ):
        open_encoder("no-tokenizer")
    folder = package(site, "with_one", "model")
    assert np.array_equal(open_encoder("no-tokenizer").encode(["fox"]), open_encoder(folder).encode(["fox"]))
    # Of two that are the same, either will do.
    other = package(site, "another", "model")
    open_encoder("no-tokenizer")
    (other / "tokenizer.json").write_text((other / "tokenizer.json").read_text().replace("night", "day"))
    with pytest.raises(UsageError, match="2 installed packages have different ones"):
        open_encoder("no-tokenizer")


@pytest.mark.parametrize("rows", [5, 30])
def test_a_tokenizer_of_another_size_is_not_borrowed(site: Path, rows: int) -> None:
    pytest.importorskip("onnxruntime")
    folder = package(site, "no_tokenizer")
    (folder / "tokenizer.json").unlink()
    (folder / "model.onnx").write_bytes(lookup(np.resize(TABLE, (rows, 6))))
    package(site, "with_one", "model")
    encoder = open_encoder("no-tokenizer")
    for _ in range(2):
        with pytest.raises(UsageError, match=r"that of another package .* does not fit"):
            encoder.encode(["fox"])


def test_blocked_modules_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy.blocked", None)
    assert not encoder_files.is_installed("numpy.blocked")
