"""Small files of names: whatever they hold, reading ends soon and in one sentence."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from himecat.errors import DataError
from himecat.input.small_files import parse_json, parse_names, read_text

LETTERS = "abcdefghij"
ALIASES = "a: &a {" + ",".join(f"x{n}: " for n in range(10)) + "}\n"
MERGES = ALIASES + "".join(
    f"{here}: &{here} {{<<: [{','.join([f'*{before}'] * 10)}]}}\n" for before, here in pairwise(LETTERS)
)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("t.json", "[" * 100_000, "nested too deeply"),
        ("t.json", f'{{"a": {"1" * 5000}}}', "a number has too many digits"),
        ("t.json", '{"a\\ud800": null}', r"\\ud800, half of a character"),
        ("t.json", '{"a": ["b", "\\ud800"]}', r"\\ud800, half of a character"),
        ("t.yaml", '"a\\ud800":\n', r"\\ud800, half of a character"),
        ("t.yaml", "[" * 100_000, "nested too deeply"),
        ("t.yaml", "- " * 100_000, "nested too deeply"),
        ("t.yaml", "a:\nb: !!int abc\n", "line 2: .*the tag '!!int' has no meaning here"),
        ("t.yaml", "a: !!float x", "the tag '!!float'"),
        ("t.yaml", "a: !!timestamp x", "the tag '!!timestamp'"),
        ("t.yaml", "a: !!binary x", "the tag '!!binary'"),
        ("t.yaml", "!!set {a, b}", "the tag '!!set'"),
        ("t.yaml", "!!omap [a: 1]", "the tag '!!omap'"),
        ("t.yaml", "!!python/object/apply:os.system [x]", "the tag '!!python/object/apply:os.system'"),
        ("t.yaml", "a: !!bool [x]", "write it in quotes"),
        ("t.yaml", "a: {<<: x}", "only mappings can be merged"),
        ("t.yaml", MERGES, "merge keys (.*) multiply the names"),
        ("t.yaml", "a: b\n" * 300_000, "YAML is slow to read.*set_bounds.line="),
        ("t.yaml", f"{'a' * 900}:\n" * 2, "stands twice"),
    ],
)
def test_what_cannot_be_names(name: str, content: str, found: str) -> None:
    before = time.process_time()
    with pytest.raises(DataError, match=found) as error:
        parse_names(content, Path(name))
    assert len(str(error.value)) < 500
    assert time.process_time() - before < 5


def test_mappings_that_name_themselves_end() -> None:
    assert parse_names("a: &a {<<: *a, x: , y: }\n", Path("t.yaml")) == {"a": {"x": None, "y": None}}
    recursive = parse_names("&a [*a]", Path("t.yaml"))
    assert isinstance(recursive, list)
    assert recursive[0] is recursive


def test_merged_names_may_be_overridden_as_in_yaml() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2}\nc: {<<: [*a, *b], y: 3}\n"
    assert parse_names(text, Path("t.yaml")) == {
        "a": {"x": "1", "y": "1"},
        "b": {"x": "2"},
        "c": {"x": "1", "y": "3"},
    }


def test_json_files_name_the_place() -> None:
    with pytest.raises(DataError, match=r"^meta\.json line 2: broken JSON"):
        parse_json("{\n", "meta.json")


@pytest.mark.skipif(os.name == "nt", reason="there are no such files")
def test_files_that_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_text(tmp_path / "pipe") == ""
    (tmp_path / "loop").symlink_to("loop")
    for path, found in (
        (Path("/dev/zero"), "too large for names; the bound is 16 MB"),
        (tmp_path / "loop", "cannot be read"),
        (tmp_path / ("n" * 300), "cannot be read"),
        (tmp_path / "a\0b", "cannot be read"),
        (tmp_path / "pipe" / "x", "there is no such file"),
    ):
        with pytest.raises(DataError, match=found):
            read_text(path)


def test_the_bound_can_be_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[" + " " * 100 + "]")
    monkeypatch.setenv("HIMECAT_BOUNDS", "line=50")
    with pytest.raises(DataError, match="the bound is 50 bytes"):
        read_text(tmp_path / "t.json")
    monkeypatch.setenv("HIMECAT_BOUNDS", "line=500")
    assert parse_names(read_text(tmp_path / "t.json"), tmp_path / "t.json") == []
