"""Every block of code in the documentation is run, in order, a folder for each page; or it says why it is not."""

from __future__ import annotations

import copy
import json
import re
import shlex
import shutil
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from conftest import Himecat
from himecat import Bounds, Default
from himecat.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])

# Why a block may be left out, and how many are; one more needs a reason here.
NOT_RUN = {"installs": 4, "hours": 6, "serves": 2, "a cluster": 5}

_FENCE = re.compile(
    r"(?:^`(?P<file>[\w.-]+)`:\n\n|`(?P<end>[\w.-]+)`:\n\n)?"
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"^```(?P<kind>\S*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code as it stands on a page."""

    page: Path
    line: int
    kind: str
    code: str
    reason: str | None
    file: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("code")) + 1,
            found["kind"],
            found["code"],
            found["reason"],
            found["file"] or found["end"],
        )
        for found in _FENCE.finditer(text)
        if found["kind"] != "{toctree}"
    ]


ALL = {page: blocks(page) for page in PAGES}
WITH_BLOCKS = [page for page in PAGES if any(not block.reason for block in ALL[page])]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `himecat demo` writes, made once for all pages; copy it."""
    from himecat.cli import main

    folder = tmp_path_factory.mktemp("docs") / "demo"
    with pytest.raises(SystemExit) as end:
        main(["demo", "-q", "-o", str(folder)])
    assert end.value.code == 0
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run a page in; what the page registers and keeps is gone afterwards."""
    import himecat.input.tokenizer
    import himecat.paper.registry
    import himecat.views.base

    for module, name in (
        (himecat.input.tokenizer, "_KINDS"),
        (himecat.paper.registry, "_registered"),
        (himecat.views.base, "_registered"),
    ):
        monkeypatch.setattr(module, name, copy.copy(getattr(module, name)))
    monkeypatch.setenv("HIMECAT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def commands(code: str) -> list[list[str]]:
    lines = code.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def wording(text: str) -> list[str]:
    """The lines of an output without their numbers: the last digits differ between processors, and blanks by width."""
    lines = (" ".join(re.sub(r"\d[\d.,]*", "#", line).split()) for line in text.splitlines())
    return [line for line in lines if line]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_can_be_run_in_order(
    himecat: Himecat, demo: Path, place: Path, page: Path
) -> None:
    pytest.importorskip("pandas", reason="pages show data frames")
    pytest.importorskip("openpyxl", reason="the extra files is not installed")
    if page.name == "commands.md":
        shutil.copytree(demo, "demo")
    variables: dict[str, Any] = {"__name__": "__main__"}
    printed: list[str] = []
    for block in ALL[page]:
        if block.reason:
            continue
        if block.file is not None and block.kind != "sh":
            Path(block.file).write_text(block.code, encoding="utf-8")
        if block.kind == "sh":
            printed = []
            for program, *arguments in commands(block.code):
                assert program == "himecat", f"{block}: only himecat is run; mark what cannot be."
                if arguments == ["demo", "-o", "demo"]:
                    shutil.copytree(demo, "demo")
                    continue
                ended = himecat(*arguments)
                assert ended.code == 0, f"{block}: {' '.join(arguments)}\n{ended.err}"
                printed += wording(ended.out) + wording(ended.err)
        elif block.kind == "text":
            missing = [line for line in wording(block.code) if line != "..." and line not in printed]
            assert missing == [], f"{block} shows what the command before it does not print"
        elif block.kind == "python":
            code = compile(block.code, str(block), "exec")
            if block.file is None:
                with redirect_stdout(StringIO()) as said:
                    exec(code, variables)
                for shown in re.findall(r"^print\(.*\)  # (\[.*?\])", block.code, re.MULTILINE):
                    assert shown in said.getvalue(), str(block)
        elif block.kind == "json":
            json.loads(block.code)
        elif block.kind == "yaml":
            yaml.safe_load(block.code)
        else:
            pytest.fail(f"{block}: nobody knows how to run {block.kind or 'a block without a kind'}")


def test_what_the_readme_of_the_demo_says_can_be_run_in_it(
    himecat: Himecat, demo: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo, "demo")
    monkeypatch.chdir(place / "demo")
    lines = re.findall(r"^    (himecat .*)$", Path("README.md").read_text(encoding="utf-8"), re.MULTILINE)
    # Other tests evaluate dataset folders, which takes a process for every draw.
    assert lines.pop().startswith("himecat evaluate . ")
    assert len(lines) == 4
    for line in lines:
        ended = himecat(*shlex.split(line)[1:])
        assert ended.code == 0, ended.err
    # It is as it was, so that it can be replaced.
    assert {file.name for file in Path().iterdir()} == {file.name for file in demo.iterdir()}


def test_the_quick_start_ends_with_the_corrected_table_and_leaves_the_demo_as_it_was() -> None:
    """What the last blocks of the story are about; the blocks themselves are run above."""
    said = [
        words for block in ALL[DOCS / "quickstart.md"] if block.kind == "sh" for words in commands(block.code)
    ]
    order = [words[1] for words in said if words[0] == "himecat" and "model-e" not in words]
    assert order[:9] == [
        *("demo", "check", "fit", "predict", "predict", "review", "correct", "correct", "predict"),
    ]  # fmt: skip
    outputs = [words[words.index("-o") + 1] for words in said if "-o" in words]
    assert [output for output in outputs if output.startswith("demo/")] == []


def test_what_is_not_run_says_why() -> None:
    reasons = Counter(block.reason for found in ALL.values() for block in found if block.reason)
    assert reasons == NOT_RUN


def test_nothing_that_could_be_run_hides_from_being_run() -> None:
    """Indented blocks are formulas and drawings; the pages of the reference have examples in docstrings."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"\n\n {4,}(himecat|pip|python|make|import|from|>>>) ", text), page
        assert "```" not in text, page
    for page in DOCS.rglob("*.rst"):
        assert not re.search(r"code-block|::$", page.read_text(encoding="utf-8"), re.MULTILINE), page


def test_what_can_be_set_is_documented() -> None:
    for page, kind in (("input.md", Bounds), ("python.md", Default)):
        text = (DOCS / page).read_text(encoding="utf-8")
        assert [one.name for one in fields(kind) if f"`{one.name}`" not in text] == []


def _documented(page: Path) -> dict[str, set[str]]:
    """The options in the first column of the tables of a page, each with the commands of the second."""
    found: dict[str, set[str]] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        for option in re.findall(r"`(--?[a-z][a-z-]*)[ `]", cells[0]) if line.startswith("| `-") else ():
            found.setdefault(option, set()).update(re.findall(r"`([a-z]+)`", cells[1]))
    return found


def test_the_options_of_every_command_are_documented_and_exist() -> None:
    program: Any = typer.main.get_command(app)
    options = {
        (name, option)
        for name, command in program.commands.items()
        for param in command.params
        if param.param_type_name == "option"
        for option in (*param.opts, *param.secondary_opts)
    }
    listed = _documented(DOCS / "commands.md")
    documented = {(command, option) for option, named in listed.items() for command in named}
    assert documented - options == set()
    compared = set(_documented(DOCS / "compare.md"))
    missing = options - documented
    assert {one for one in missing if one[0] not in ("compare", "ablate", "sweep")} == set()
    assert {option for _, option in missing} - compared == set()
    assert compared <= {option for command, option in options if command in ("compare", "ablate", "sweep")}
    named = set()
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        for command, rest in re.findall(r"`himecat ([a-z]+)\b([^`]*)`", page.read_text(encoding="utf-8")):
            used = {(command, option) for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", rest)}
            strange = used - options - {(command, "--help")}
            assert (command in program.commands, strange) == (True, set()), (page, command, rest)
            named.add(command)
    assert named == set(program.commands)
