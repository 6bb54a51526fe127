"""Files as streams: paths that lead nowhere, lines without end, and files that grow when unpacked."""

from __future__ import annotations

import gzip
import json
import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from himecat.errors import DataError
from himecat.input.dataset import open_dataset
from himecat.input.formats import iter_records
from himecat.input.problems import Problems
from himecat.input.streams import path_kind

MB = 1 << 20


def read(path: Path) -> tuple[list[Any], list[str]]:
    problems = Problems()
    records = [record.fields for record in iter_records(path, problems)]
    return records, [str(problem) for problem in problems]


@pytest.mark.skipif(os.name == "nt", reason="there are no such files")
def test_paths_to_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.jsonl")
    Path("loop.jsonl").symlink_to("loop.jsonl")
    Path("file").write_text("x")
    for path, found in (
        ("socket.jsonl", "this is a device or a socket"),
        ("loop.jsonl", "symbolic links"),
        ("n" * 300 + ".jsonl", "cannot be the name of a file"),
        ("n" * 5000 + ".jsonl", "cannot be the name of a file"),
        ("a\0.jsonl", r"a\\x00\.jsonl: this cannot be the name"),
        ("file/docs.jsonl", "cannot be opened"),
        ("/dev/null", "the name has no suffix"),
    ):
        with pytest.raises(DataError, match=found) as error:
            read(Path(path))
        assert len(str(error.value)) < 2000
    for name in ("n" * 300, "loop.jsonl"):
        with pytest.raises(DataError, match="cannot be the name of a file"):
            open_dataset(name)


@pytest.mark.parametrize("look", [path_kind, open_dataset, lambda path: list(iter_records(path, Problems()))])
def test_folders_that_one_may_not_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[Path], object]
) -> None:
    def refused(path: Any, **_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(DataError, match="there is no permission to enter the folder"):
        look(tmp_path / "closed" / "docs.jsonl")


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_line_that_is_too_long_is_one_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("HIMECAT_BOUNDS", "line=1MB")
    path = tmp_path / f"docs.{kind}"
    with path.open("w") as file:
        file.write("id,text\n" if kind == "csv" else "")
        for number in range(3):
            text = "word " * (12 * MB) if number == 1 else "a word"
            document = {"id": str(number), "text": text}
            file.write(f"{number},{text}\n" if kind == "csv" else json.dumps(document) + "\n")
    tracemalloc.start()
    try:
        records, problems = read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [fields and fields["id"] for fields in records] == ["0", None, "2"]
    assert len(problems) == 1
    assert f"line {2 + (kind == 'csv')}: the line is longer than it may be: the bound is 1 MB" in problems[0]
    assert peak < 30 * MB, "the line has 60 MB"


def test_lines_at_the_bound_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"text": "a" * length}) for length in (5, 38, 45, 400, 2)]
    (tmp_path / "docs.jsonl").write_text("\r\n".join(lines))
    monkeypatch.setenv("HIMECAT_BOUNDS", "line=50")
    records, problems = read(tmp_path / "docs.jsonl")
    assert [fields and len(fields["text"]) for fields in records] == [5, 38, None, None, 2]
    assert ["line 3, line 4): the line is longer" in problem for problem in problems] == [True]


def test_a_row_without_end_names_the_missing_quotation_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs.csv").write_text('id,text\n1,"a\n' + "b\n" * 100)
    monkeypatch.setenv("HIMECAT_BOUNDS", "line=50")
    assert "a quotation mark is missing in the row that reaches line" in read(tmp_path / "docs.csv")[1][0]


def test_an_array_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs.json").write_text(json.dumps([{"text": "a"}] * 50))
    monkeypatch.setenv("HIMECAT_BOUNDS", "line=10")
    (problem,) = read(tmp_path / "docs.json")[1]
    assert "the array is larger than 640 bytes: write one object per line" in problem


@pytest.mark.parametrize("content", ["[" * 100_000, f"[{'1' * 5000}]", '[{"text": "a"}, ', "[1 2]", "[] 3"])
def test_arrays_that_cannot_be_read_are_one_problem(tmp_path: Path, content: str) -> None:
    (tmp_path / "docs.json").write_text(content)
    problems = read(tmp_path / "docs.json")[1]
    assert len([one for one in problems if "broken JSON" in one or "this JSON" in one]) == 1


def pack(path: Path, parts: list[bytes]) -> Path:
    if path.suffix == ".gz":
        with gzip.open(path, "wb", compresslevel=9) as file:
            file.writelines(parts)
    else:
        with path.open("wb") as raw, zstandard.ZstdCompressor().stream_writer(raw) as file:
            for part in parts:
                file.write(part)
    return path


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_files_that_expand_are_refused(tmp_path: Path, packing: str) -> None:
    line = json.dumps({"text": "a " * (MB // 2)}).encode() + b"\n"
    path = pack(tmp_path / f"docs.jsonl.{packing}", [line] * 80)
    assert (
        "expands to more than 200 times its size; the bound is 200 (himecat.set_bounds(ratio="
        in read(path)[1][0]
    )


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_documents_that_only_repeat_are_refused(tmp_path: Path, packing: str) -> None:
    path = pack(tmp_path / f"docs.jsonl.{packing}", [b'{"text": "a"}\n' * 10_000] * 30)
    assert "there are more documents than bytes" in read(path)[1][0]


def test_a_window_that_no_compressor_asks_for_is_refused(tmp_path: Path) -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    packed = packer.compress(b'{"text": "a b"}\n' * 100) + packer.flush()
    (tmp_path / "docs.jsonl.zst").write_bytes(packed)
    assert "the compressed file is damaged" in read(tmp_path / "docs.jsonl.zst")[1][0]
