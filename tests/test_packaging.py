"""What is around the package: its version, its wheel, how it is cited."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import himecat

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_stands_in_the_package_alone_and_the_rest_follows() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == himecat.__version__
    # What is not released yet says so behind its number.
    heading = re.search(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading is not None
    assert heading[1] == himecat.__version__


def test_the_paper_is_cited_as_it_was_printed() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "message", "authors"} <= set(citation)
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])
    paper = citation["preferred-citation"]
    names = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
    assert names == ["Yu Zhang", "Xiusi Chen", "Yu Meng", "Jiawei Han"]
    assert PROJECT["urls"]["Paper"] == f"https://doi.org/{paper['doi']}"
    source = ROOT.parent / "shared" / "paper" / "himecat.tex"
    if source.exists():
        text = re.sub(r"\s+", " ", source.read_text(encoding="utf-8").replace("\\\\", " "))
        assert f"\\title{{{paper['title']}}}" in text
        assert f"\\acmDOI{{{paper['doi']}}}" in text


def test_classifiers_name_the_pythons_of_the_workflow_and_its_tests_exist() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    for file in re.findall(r"tests/\w+\.py", text):
        assert (ROOT / file).exists(), file
    workflow = yaml.safe_load(text)
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    for job in ("core", "extras"):
        assert workflow["jobs"][job]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_a_wheel_holds_the_package_with_its_data_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77", reason="this setuptools cannot build the wheel")
    # A copy, because building writes beside the sources.
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("src", "scripts"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"himecat-{himecat.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src"
    assert held == {
        file.relative_to(package).as_posix()
        for file in (package / "himecat").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {
        "himecat/sample/letters.jsonl.gz",
        "himecat/evaluation/report/page.html",
        "himecat/py.typed",
    } <= held
