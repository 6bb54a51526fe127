"""`himecat compare`, `ablate` and `sweep`: what they print, write and refuse."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Himecat
from himecat.cli.compare_output import Outputs
from himecat.compare.protocol.choices import Choice
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import Conditions
from himecat.errors import OutputError

OWN = """
import time
from dataclasses import dataclass
import numpy as np
from himecat.compare.systems.system import System

@dataclass(frozen=True)
class Quick(System):
    name = "quick"
    title = "Quick"
    about = "Always one leaf."
    leaf: int = 0

    def fit_predict(self, task):
        return np.full(len(task.corpus), task.taxonomy.leaves[self.leaf])

@dataclass(frozen=True)
class Endless(System):
    name = "endless"
    title = "Endless"
    about = "Never done."

    def fit_predict(self, task):
        print("endless has begun", flush=True)
        time.sleep(3600)
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


@pytest.fixture
def notes(letters: Path, tmp_path: Path) -> Path:
    """A second dataset."""
    return Path(shutil.copytree(letters, tmp_path / "notes"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Conditions, list[Choice]]]:
    """Instead of running systems, remember what was asked for; `hiersvm` fails."""
    found: list[tuple[Conditions, list[Choice]]] = []

    def run(conditions: Conditions, choices: list[Choice], *, progress: Any) -> list[Run]:
        found.append((conditions, list(choices)))
        runs = []
        for number, choice in enumerate(choices):
            title = choice.title or choice.kind.title
            for draw, seed in conditions.pairs:
                score = {"micro": 0.5 + 0.1 * number + 0.01 * draw * draw, "macro": 0.4}
                failed = {"failure": "There was no time."} if choice.name == "hiersvm" else {}
                scores: dict[str, Any] = {} if failed else {"leaf": score, "overall": score}
                name = conditions.folder.name
                run = Run(name, choice.name, title, choice.parameters, draw, seed, **scores, **failed)
                runs.append(run)
        return runs

    monkeypatch.setattr("himecat.compare.protocol.compare.run_systems", run)
    return found


class TestCompare:
    def test_what_is_printed_and_written(
        self, himecat: Himecat, letters: Path, tmp_path: Path, asked: Any
    ) -> None:
        targets = [tmp_path / f"table.{suffix}" for suffix in ("json", "md", "tex", "csv")]
        options = zip(("--json", "--markdown", "--latex", "--csv"), targets, strict=True)
        ended = himecat(
            "compare", letters, "--systems", "hiersvm,tfidf-svm,himecat", "--draws", 3, "--seeds", 2, "-q",
            *(part for option in options for part in option),
        )  # fmt: skip
        assert ended.code == 0
        assert "TF-IDF + SVM" in ended.out
        # Only one system failed: that is told, and is no failure of the command.
        assert ended.err == "HierSVM failed in 6 runs (draws 0, 1, 2): There was no time.\n"
        result, markdown, latex, table = (path.read_text() for path in targets)
        found = json.loads(result)
        assert found["conditions"] == {"draws": 3, "seeds": 2, "per_leaf": 5, "limit": None, "encoder": None}
        assert len(found["runs"]) == 18
        assert found["ours"] == "himecat"
        assert "| TF-IDF + SVM |" in markdown
        assert "| letters | 330 |" in markdown
        assert r"\begin{tabular}" in latex
        assert [row["system"] for row in csv.DictReader(table.splitlines())] == [
            "hiersvm", "tfidf-svm", "himecat",
        ]  # fmt: skip

    def test_standard_output_has_the_result_and_nothing_else(
        self, himecat: Himecat, letters: Path, asked: Any
    ) -> None:
        ended = himecat("compare", letters, "--systems", "tfidf-svm", "--json", "-", "-q")
        assert len(ended.json["runs"]) == 5

    def test_options_reach_the_runs(
        self, himecat: Himecat, letters: Path, tmp_path: Path, asked: Any
    ) -> None:
        ended = himecat(
            "compare", letters, "--systems=tfidf-svm,himecat", "--set=tfidf-svm.c=0.1", "--draws=2", "--jobs=3",
            "--set", "himecat.leaf-concentration=20", "--limit=200", "--per-leaf=4", f"--cache={tmp_path}",
            "--encoder=some/model", "-q",
        )  # fmt: skip
        assert ended.code == 0
        ((conditions, choices),) = asked
        assert conditions == Conditions(letters, 2, 1, 4, 200, "some/model", 3, tmp_path)
        assert [choice.parameters for choice in choices] == [{"c": 0.1}, {"leaf_concentration": 20.0}]

    def test_the_report_and_the_figures(
        self, himecat: Himecat, letters: Path, tmp_path: Path, asked: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from himecat.errors import DataError

        def refuse(*_: object) -> None:
            raise DataError("No word occurs often enough.")

        monkeypatch.setattr("himecat.compare.protocol.compare.label_map", refuse)
        page, figures = tmp_path / "report.html", tmp_path / "figures"
        ended = himecat(
            "compare", letters, "--systems=tfidf-svm,himecat", "--draws=2", "--ablations", "--report", page,
            "--figures", figures,
        )  # fmt: skip
        assert ended.code == 0
        assert "note: there is no map of the labels. No word occurs often enough." in ended.err
        assert "TF-IDF + SVM" in page.read_text()
        assert {file.name for file in figures.iterdir()} == {
            f"{name}.{suffix}" for name in ("systems", "ablations") for suffix in ("png", "svg")
        }

    def test_several_datasets_at_once(
        self, himecat: Himecat, letters: Path, notes: Path, tmp_path: Path, asked: Any
    ) -> None:
        page, figures, markdown = tmp_path / "report.html", tmp_path / "figures", tmp_path / "tables.md"
        ended = himecat(
            "compare", letters, notes, "--systems=tfidf-svm,himecat", "--draws=2", "--json", "-", "--report", page,
            "--figures", figures, "--markdown", markdown,
        )  # fmt: skip
        assert [one["name"] for one in ended.json["datasets"]] == ["letters", "notes"]
        assert [run["dataset"] for run in ended.json["runs"]] == ["letters"] * 4 + ["notes"] * 4
        tables = markdown.read_text()
        assert [line[:16] for line in tables.splitlines() if line.startswith("| letters |")] == [
            "| letters | 330 "
        ]
        assert tables.index("letters: F1 of all systems") < tables.index("notes: F1 of all systems")
        shown = page.read_text()
        assert "Comparison on letters, notes" in shown
        assert shown.index("letters: the tree") < shown.index("notes: the tree")
        assert {file.name for file in figures.iterdir()} == {
            f"{name}.{suffix}"
            for name in ("systems", "labels-letters", "labels-notes")
            for suffix in ("png", "svg")
        }

    def test_a_dataset_on_which_nothing_runs_leaves_the_others(
        self,
        himecat: Himecat,
        letters: Path,
        notes: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        asked: Any,
    ) -> None:
        from himecat.compare.protocol import compare
        from himecat.errors import NoResultError

        run = compare.run_systems

        def only_notes(conditions: Conditions, *rest: Any, **options: Any) -> list[Run]:
            if conditions.folder == letters:
                raise NoResultError("Not one run gave a result: there was no time.", 2)
            return run(conditions, *rest, **options)

        monkeypatch.setattr("himecat.compare.protocol.compare.run_systems", only_notes)
        ended = himecat("compare", letters, notes, "--systems=tfidf-svm", "--json", "-")
        assert {run["dataset"] for run in ended.json["runs"]} == {"notes"}
        reason = "letters is left out. Not one run gave a result: there was no time."
        assert ended.json["left_out"] == [reason]
        assert f"note: {reason}" in ended.err
        page = tmp_path / "report.html"
        quiet = himecat("compare", letters, notes, "--systems=tfidf-svm", "--report", page, "-q")
        assert reason in quiet.err
        assert reason in page.read_text()
        assert "notes: the tree" in page.read_text()
        assert "letters: the tree" not in page.read_text()
        alone = himecat("compare", letters, "--systems=tfidf-svm")
        assert alone.code != 0
        assert "there was no time" in alone.errors[-1]

    def test_wrong_datasets_are_told_before_anything_runs(
        self, himecat: Himecat, letters: Path, tmp_path: Path, asked: Any
    ) -> None:
        ended = himecat("compare", letters, tmp_path / "nowhere", "--systems=tfidf-svm")
        assert (ended.code, len(ended.errors)) == (2, 1)
        assert "nowhere: there is no such file or folder." in ended.errors[0]
        same = tmp_path / "other" / "letters"
        shutil.copytree(letters, same)
        ended = himecat("compare", letters, same, "--systems=tfidf-svm")
        assert (ended.code, len(ended.errors)) == (2, 1)
        assert "are both called letters: tables go by these names" in ended.errors[0]
        assert asked == []

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--systems", "nothing"], "There is no system 'nothing'"),
            (["--systems", "encoder-lr"], "needs an encoder: name one with --encoder"),
            (
                ["--set", "epochs=3"],
                "--set takes SYSTEM.NAME=VALUE, e.g. --set bert.epochs=3, not 'epochs=3'.",
            ),
            (["--systems", "tfidf-svm", "--set", "tfidf-svm.c=much"], "tfidf-svm.c must be a number"),
            (["--report", "no-such-folder/report.html"], "the folder no-such-folder does not exist"),
            (["--csv", "."], "it is a folder, name a file in it"),
            (["--report", "-"], "The report and the figures cannot go to standard output"),
        ],
    )
    def test_what_cannot_work_is_told_before_anything_runs(
        self, himecat: Himecat, letters: Path, asked: list[Any], options: list[str], sentence: str
    ) -> None:
        ended = himecat("compare", letters, *options)
        assert ended.code == 2
        assert sentence in ended.errors[0]
        assert asked == []

    def test_no_dataset(self, himecat: Himecat, tmp_path: Path) -> None:
        ended = himecat("compare", tmp_path / "nowhere", "--systems", "tfidf-svm")
        assert (ended.code, len(ended.errors)) == (2, 1)


def test_ablate(himecat: Himecat, letters: Path, tmp_path: Path, asked: Any) -> None:
    target = tmp_path / "table.md"
    ended = himecat("ablate", letters, "--preset", "paper", "--draws", 2, "-q", "--markdown", target)
    assert ended.code == 0
    ((_, choices),) = asked
    assert {choice.name for choice in choices} == {"himecat-paper"}
    for title in ("HiMeCat (paper)", "No-Hierarchy", "No-Metadata", "No-senders", "No-tags"):
        assert title in ended.out
        assert f"| {title} |" in target.read_text()
    assert himecat("ablate", letters, "--preset", "papper").code == 2


def test_sweep(himecat: Himecat, letters: Path, tmp_path: Path, asked: Any) -> None:
    table, figures = tmp_path / "table.csv", tmp_path / "figures"
    ended = himecat(
        "sweep", letters, "--parameter", "p", "--draws", 1, "-q", "--csv", table, "--figures", figures
    )
    assert ended.code == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["name"] for row in rows] == ["10", "50", "100", "200", "300"]
    assert {file.name for file in figures.iterdir()} == {"sweep-dimension.png", "sweep-dimension.svg"}
    himecat("sweep", letters, "--parameter", "beta", "--values", "0,10", "-q")
    assert [choice.parameters["beta"] for choice in asked[-1][1]] == [0, 10]
    for wrong in (
        ["--parameter", "gamma"],
        ["--parameter", "p", "--values", "a"],
        ["--parameter", "p", "--values", "50,50"],
        [],
    ):
        assert himecat("sweep", letters, *wrong).code == 2


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
def test_an_interrupted_comparison_keeps_what_is_done(letters: Path, own: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "himecat", "compare", letters, "--systems", own, "--draws", "1", "--cache",
        tmp_path / "kept", "--json", tmp_path / "found.json",
    ]  # fmt: skip
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests run in the background, Ctrl-C is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        # What a system prints is no result: it goes to standard error.
        while said[-1] not in ("endless has begun\n", ""):
            said.append(process.stderr.readline())
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130
    assert out == ""
    assert said[0].startswith("[1/2] Quick, draw 0, seed 0: leaf F1 0.")
    assert err.splitlines()[-1] == "himecat: interrupted; nothing was left half-written."
    assert [file.name.partition("-")[0] for file in (tmp_path / "kept").iterdir()] == ["quick"]
    assert not (tmp_path / "found.json").exists()


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX systems")
def test_a_pipe_may_stand_where_no_file_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(os, "access", lambda *_: False)
    Outputs(json=tmp_path / "pipe").check()
    with pytest.raises(OutputError, match="nothing can be written to"):
        Outputs(json=tmp_path / "file.json").check()
