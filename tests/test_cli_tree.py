"""`himecat tree`, `propose` and `map` as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import Himecat
from himecat import HiMeCat


@pytest.fixture
def folder(letters_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(letters_model, tmp_path / "model"))


def test_a_dry_run_says_what_happens_and_changes_nothing(himecat: Himecat, folder: Path) -> None:
    before = (folder / "model.json").read_bytes()
    ended = himecat("tree", folder, "rename", "waste", "rubbish", "--dry-run")
    assert ended.code == 0
    assert "waste is called rubbish now" in ended.out
    assert "documents stay with it" in ended.out
    assert (folder / "model.json").read_bytes() == before


def test_old_labels_are_read_through_the_changes(
    himecat: Himecat, folder: Path, letters: Path, tmp_path: Path
) -> None:
    predictions = tmp_path / "before.jsonl"
    assert himecat("predict", folder, letters, "-o", predictions, "--ignore-labels", "-q").code == 0
    model = HiMeCat.load(folder)
    first, *_, last = model.taxonomy_.children[0]
    name = model.taxonomy_.names[first]
    assert himecat("tree", folder, "rename", name, "renamed", "-q").code == 0
    assert himecat("tree", folder, "move", "renamed", model.taxonomy_.names[last], "-q").code == 0
    shown = himecat("tree", folder)
    assert f"{name} is called renamed now" in shown.out
    # Documents with labels of before keep them.
    found = himecat("predict", folder, letters, "-o", tmp_path / "after.jsonl")
    assert "no categories of the model" not in found.err
    paths = [json.loads(line)["path"] for line in (tmp_path / "after.jsonl").read_text().splitlines()]
    assert any(path[:2] == [model.taxonomy_.names[last], "renamed"] for path in paths)
    assert not any(path[0] == name for path in paths)
    # So are predictions of before.
    scored = himecat("score", predictions, letters, "--taxonomy", folder)
    assert scored.code == 0, scored.err


def test_another_folder_leaves_the_model_alone(himecat: Himecat, folder: Path, tmp_path: Path) -> None:
    before = (folder / "model.json").read_bytes()
    assert himecat("tree", folder, "rename", "waste", "rubbish", "-o", tmp_path / "new", "-q").code == 0
    assert (folder / "model.json").read_bytes() == before
    assert HiMeCat.load(tmp_path / "new").node_of("rubbish") == HiMeCat.load(folder).node_of("waste")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["rename", "waste"], "Write: himecat tree MODEL rename CATEGORY NAME"),
        (["grow", "waste"], "no change 'grow'"),
        (["rename", "wast", "x"], "did you mean 'waste'"),
        (["delete", "waste", "--examples", "a"], "--examples goes with add"),
        (["split", "waste"], "--groups N"),
        (["split", "waste", "--child", "a"], "NAME=A,B"),
        (["add", "x", "--examples", "nobody"], "no document 'nobody'"),
        (["add", "x", "--proposal", "file"], "FILE:N"),
    ],
)
def test_mistakes_are_one_sentence(himecat: Himecat, folder: Path, given: list[str], said: str) -> None:
    ended = himecat("tree", folder, *given)
    assert ended.code == 2
    assert said in ended.err


def test_a_proposal_becomes_a_category(himecat: Himecat, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "proposals.jsonl"
    ended = himecat("propose", folder, "-n", "3", "-o", file)
    assert ended.code == 0, ended.err
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert 1 <= len(lines) <= 3
    assert all(one["size"] == len(one["ids"]) >= 5 and one["words"] for one in lines)
    again = tmp_path / "again.jsonl"
    assert himecat("propose", folder, "-n", "3", "-o", again).code == 0
    assert again.read_bytes() == file.read_bytes()
    added = himecat("tree", folder, "add", "proposed", "--proposal", f"{file}:1", "-q")
    assert added.code == 0, added.err
    assert HiMeCat.load(folder).node_of("proposed") > 0


def test_maps_are_the_same_every_time_and_fetch_nothing(
    himecat: Himecat, folder: Path, letters: Path, tmp_path: Path
) -> None:
    for name in ("one.html", "two.html"):
        assert himecat("map", folder, letters, "-o", tmp_path / name, "-q").code == 0
    page = (tmp_path / "one.html").read_text()
    assert page == (tmp_path / "two.html").read_text()
    assert "http://" not in page
    assert "https://" not in page
    assert himecat("map", folder, "-o", tmp_path / "map.svg", "-q").code == 0
    assert (tmp_path / "map.svg").read_text().startswith("<?xml")
    ended = himecat("map", folder, "-o", tmp_path / "map.pdf")
    assert ended.code == 2
    assert ".html, .png or .svg" in ended.err
