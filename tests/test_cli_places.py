"""No command overwrites what it reads, under whatever name; and no two results take one place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Himecat
from himecat.cli.app import app
from himecat.cli.places import check_places
from himecat.errors import UsageError


@pytest.fixture
def place(letters: Path, letters_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that commands read: documents, tree, keywords, dataset, model, predictions."""
    shutil.copytree(letters, tmp_path / "data")
    shutil.copytree(letters_model, tmp_path / "model")
    shutil.copy(letters / "corpus.jsonl", tmp_path / "docs.jsonl")
    shutil.copy(letters / "taxonomy.yaml", tmp_path / "tree.yaml")
    (tmp_path / "words.yaml").write_text("missed-bins: bin, lorry\n")
    (tmp_path / "found.jsonl").write_text('{"id": "1", "path": []}\n')
    (tmp_path / "system.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


TABLES = ("--json", "--csv", "--markdown", "--latex", "--report")
CASES = [
    *((["predict", "model", "docs.jsonl"], "-o", target) for target in ("docs.jsonl", "model/model.json")),
    *((["check", "docs.jsonl", "--taxonomy=tree.yaml", "--keywords=words.yaml"], "--json", target)
      for target in ("docs.jsonl", "tree.yaml", "words.yaml")),
    (["explain", "model", "--documents=docs.jsonl"], "--json", "docs.jsonl"),
    (["explain", "model", "missed-bins"], "--json", "model/weights.safetensors"),
    (["synthesize", "model", "missed-bins"], "--json", "model/model.json"),
    *((["score", "found.jsonl", "data"], "--json", target) for target in ("found.jsonl", "data/corpus.jsonl")),
    *((["evaluate", "data", "--taxonomy=tree.yaml", "--keywords=words.yaml"], "--json", target)
      for target in ("data/doc_id.txt", "data/label_hier.txt", "tree.yaml", "words.yaml")),
    *(([command, "data", *more], option, "data/corpus.jsonl")
      for command, more in (("compare", []), ("ablate", []), ("sweep", ["--parameter=p"])) for option in TABLES),
    (["compare", "data", "--systems=system.py"], "--csv", "system.py"),
    (["fit", "docs.jsonl", "--overwrite"], "-o", "docs.jsonl"),
    (["fit", "model/model.json", "--overwrite"], "-o", "model"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "option", "target"), CASES)
@pytest.mark.parametrize("name", ["itself", "link", "hard link", "other way"])
def test_what_a_command_reads_is_never_written_over(
    himecat: Himecat, place: Path, command: list[str], option: str, target: str, name: str
) -> None:
    output = target
    if name == "link":
        os.symlink(target, "result")
        output = "result"
    elif name == "hard link":
        if os.path.isdir(target):
            return  # a folder has no hard links
        os.link(target, "result")
        output = "result"
    elif name == "other way":
        output = f"data/../{target}"
    before = files(place)
    ended = himecat(*command, option, output)
    assert ended.code == 2
    assert ended.errors == [f"{Path(output)} is read by this command: name another file for the result."]
    assert files(place) == before


def test_figures_are_not_drawn_through_a_link_to_the_corpus(himecat: Himecat, place: Path) -> None:
    (place / "figures").mkdir()
    (place / "figures" / "systems.png").symlink_to(place / "data" / "corpus.jsonl")
    before = files(place)
    ended = himecat("compare", "data", "--figures", "figures")
    assert (ended.code, ended.errors) == (
        2,
        ["figures is read by this command: name another file for the result."],
    )
    assert files(place) == before


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        (["--json=a", "--csv=./a"], "--csv and --json both name a: name two places."),
        (["--json=a", "--markdown=linked"], "--markdown and --json both name a: name two places."),
        (["--json=-", "--csv=-"], "--csv and --json both name standard output: name two places."),
        (["--json=/dev/stdout", "--csv=-"], "--csv and --json both name standard output: name two places."),
        (
            ["--report=figures/labels.svg", "--figures=figures"],
            "--report names a picture in the folder of --figures",
        ),
    ],
)
def test_two_results_on_one_path(himecat: Himecat, place: Path, outputs: list[str], sentence: str) -> None:
    (place / "linked").symlink_to("a")
    ended = himecat("compare", "data", *outputs)
    assert ended.code == 2
    found = ended.errors[0]
    one, _, other = sentence.partition(" and ")
    # Which of the two is named first does not matter.
    assert sentence in found or (one in found and other.split()[0] in found)
    assert not (place / "a").exists()


def test_standard_output_that_is_an_input(place: Path) -> None:
    before = files(place)
    with open("docs.jsonl", "a") as documents:
        ended = subprocess.run(
            [sys.executable, "-m", "himecat", "predict", "model", "docs.jsonl", "-o", "-"],
            stdout=documents,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 2
    assert ended.stderr == (
        "himecat: Standard output is docs.jsonl, which this command reads: send it elsewhere.\n"
    )
    assert files(place) == before


def test_the_encoder_that_a_model_names_is_an_input(himecat: Himecat, place: Path) -> None:
    """It stands in no option: the folder of the model names it."""
    from himecat import HiMeCat

    (place / "encoder").mkdir()
    (place / "encoder" / "config.json").write_text("{}")
    model = HiMeCat.load("model")
    model.encoder = "encoder"
    model.save("other")
    ended = himecat("predict", "other", "docs.jsonl", "-o", "encoder/config.json")
    assert (ended.code, (place / "encoder" / "config.json").read_text()) == (2, "{}")
    assert ended.errors == ["encoder/config.json is read by this command: name another file for the result."]


def test_new_files_beside_the_inputs_are_welcome(place: Path) -> None:
    check_places({"--json": Path("data/found.json"), "--figures": Path(".")}, ["data", "tree.yaml"])
    check_places({"--json": Path("/dev/null"), "--csv": Path("/dev/null")}, ["data"])
    with pytest.raises(UsageError):
        check_places({"--json": Path("data/doc_id.txt")}, ["data"])


def test_every_command_that_writes_is_guarded() -> None:
    """The guard asks for the panel of an option: a path outside the panel of outputs counts as an input."""
    import typer

    written = {
        (command.name, max(param.opts, key=len))
        for command in typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
        for param in command.params
        if getattr(param, "rich_help_panel", None) == "Output"
        and param.metavar in ("FILE", "FOLDER", "MODEL")
    }
    assert {option for command, option in written if command == "compare"} == {*TABLES, "--figures"}
    assert {command for command, _ in written} == {
        "demo", "check", "fit", "predict", "review", "correct", "tree", "propose", "map", "explain", "synthesize",
        "evaluate", "score", "compare", "ablate", "sweep",
    }  # fmt: skip


def test_what_a_model_folder_names_elsewhere_is_said(himecat: Himecat, place: Path) -> None:
    from himecat import HiMeCat

    (place / "encoder").mkdir()
    (place / "encoder" / "config.json").write_text("{}")
    model = HiMeCat.load("model")
    model.encoder = place / "encoder"
    model.save("other")
    ended = himecat("explain", "other", "missed-bins")
    assert ended.code == 0
    assert (
        ended.err
        == f"note: other/: its encoder is the folder {place / 'encoder'}, which is not part of it.\n"
    )


def test_leftovers_of_a_run_that_was_killed_are_told(himecat: Himecat, place: Path) -> None:
    (place / ".himecat-0123abcd.part").write_text("half a line")
    ended = himecat("predict", "model", "docs.jsonl", "-o", "out.jsonl")
    assert ended.code == 0
    assert ended.err.startswith(
        "note: removed what an earlier run that was killed left in .: .himecat-0123abcd.part.\n"
    )
    assert not (place / ".himecat-0123abcd.part").exists()
