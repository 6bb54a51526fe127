"""The harness sees what it looks for: a judge that cannot find a fault would call everything sound."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faults import material as m
from faults.case import Scene, attack
from faults.judge import judge_end, judge_files, judge_output, snapshot
from faults.runner import Ended, Pool, Run

pytestmark = pytest.mark.faults

SOUND = Ended(0, None, b"done\n", b"", 0.1, 0.1, 100, "", False, 0, False, "", "")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"code": 1}, "exit code 1"),
        ({"code": None, "signal": 11}, "signal 11"),
        ({"code": None, "signal": 9, "killed": "time"}, "more than 60 s"),
        ({"code": None, "signal": 9, "killed": "memory"}, "more than 4096 MB"),
        ({"code": 2}, "without a sentence"),
        ({"left": True}, "left a process"),
        ({"err": b"Traceback (most recent call last):\n"}, "Traceback"),
        ({"err": b"himecat: this should not have happened: KeyError\n"}, "should not have happened"),
        ({"err": b"x.py:3: RuntimeWarning: overflow\n"}, "RuntimeWarning"),
        ({"out": b"red \x1b[31m\n"}, "control character"),
        ({"out": "c1 \x85\n".encode()}, "control character"),
        ({"err": b"\xff\n"}, "not UTF-8"),
        ({"err": b"himecat: " + b"x" * 3_000}, "a message of 3,009 characters"),
    ],
)
def test_a_bad_end_is_seen(changes: dict[str, object], found: str) -> None:
    assert judge_end(SOUND) == []
    assert any(found in one for one in judge_end(replace(SOUND, **changes)))


def test_changed_files_are_seen(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a")
    (tmp_path / "link").symlink_to("in")
    before = snapshot(tmp_path)
    assert judge_files(before, snapshot(tmp_path)) == []
    (tmp_path / "out").write_text("b")
    assert judge_files(before, snapshot(tmp_path), ["out"], done=True) == []
    assert judge_files(before, snapshot(tmp_path), ["out"]) == ["out was left behind"]
    (tmp_path / "out").rename(tmp_path / ".himecat-1.part")
    assert judge_files(before, snapshot(tmp_path), ["out"], killed=True) == []
    assert len(judge_files(before, snapshot(tmp_path), ["out"], done=True)) == 1
    (tmp_path / "link").unlink()
    (tmp_path / "in").write_text("c")
    wrong = judge_files(before, snapshot(tmp_path), ["out"], done=True)
    assert {"in has changed", "link is lost"} <= set(wrong)


@pytest.mark.parametrize("content", ['{"id": "1"', '{"id": NaN}', "", "{}\n", "x\n"])
def test_half_a_result_is_seen(tmp_path: Path, content: str) -> None:
    (tmp_path / "out").write_text(content)
    assert judge_output(tmp_path / "out", "json" if "\n" not in content else "lines")


@pytest.mark.parametrize(
    ("name", "kind", "content", "found"),
    [
        ("t.csv", "table", "id,path,x\n1,'=a,-0.5\n", ""),
        ("t.csv", "table", "id,path,x\n1,=a,0.5\n", "begins a formula"),
        ("t.csv", "table", "id,path,x\n1,+a,0.5\n", "begins a formula"),
        ("t.tsv", "table", "id\tpath\tx\n1\ta\n", "no table"),
        ("t.xlsx", "table", "PK", "cannot be read"),
        ("p.html", "page", "<html>a</html>\n", ""),
        ("p.html", "page", "<html>a", "does not end"),
        ("p.html", "page", "<html><script>alert(1)</script></html>", "is markup"),
        ("r.jsonl", "review", '{"id": "1"}\n', "no question"),
    ],
)
def test_bad_tables_and_pages_are_seen(
    tmp_path: Path, name: str, kind: str, content: str, found: str
) -> None:
    (tmp_path / name).write_text(content)
    wrong = judge_output(tmp_path / name, kind)
    assert found in wrong[0] if found else wrong == []


@pytest.mark.parametrize("value", ["=1+1", "plain"])
def test_a_formula_in_a_workbook_is_seen(tmp_path: Path, value: str) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["id", value])
    book.save(tmp_path / "t.xlsx")
    assert bool(judge_output(tmp_path / "t.xlsx", "table")) == (value != "plain")


def test_the_same_number_is_the_same_attack(pool: Pool) -> None:
    def files(number: int) -> object:
        scene = Scene(pool, "inputs", 5, number)
        try:
            from faults.inputs import attack as bad_input

            bad_input(scene)
            return [scene.verdict.command, {k: v for k, v in snapshot(scene.folder).items() if k != "model"}]
        finally:
            scene.close(keep=False)

    assert files(3) == files(3)
    assert files(3) != files(4)


class TestShim:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        m.write_sound(tmp_path)
        return tmp_path

    def run(self, pool: Pool, place: Path, at: int, action: str, value: int = 0) -> Ended:
        shim = {"below": str(place), "at": at, "action": action, "value": value}
        return pool.command(place, [*m.fit_arguments(), "--overwrite"], shim=shim)

    def test_it_counts_and_strikes(self, pool: Pool, place: Path) -> None:
        assert pool._all[0].threads == 1, "a process with threads cannot be forked safely"
        counted = self.run(pool, place, 0, "count")
        assert counted.code == 0
        assert not counted.fired
        again = self.run(pool, place, 1, "kill")
        assert (again.signal, again.call) == (signal.SIGKILL, "mkdir")
        failed = self.run(pool, place, 2, "fail", 28)
        assert failed.code == 2
        assert "No space left on device" in failed.sentences[0]
        assert self.run(pool, place, 1, "send", signal.SIGINT).code == 130
        assert self.run(pool, place, 10_000, "kill").code == 0

    def test_limits_of_time_and_memory(self, pool: Pool, place: Path) -> None:
        slow = [
            "fit",
            "docs.jsonl",
            "--taxonomy=tree.yaml",
            "-o",
            "m",
            "--method=paper",
            "--set=min_count=2",
            "--threads=1",
        ]
        (ended,) = pool.run(place, Run([*slow, "--set=samples=100000000000"]), seconds=1)
        assert (ended.killed, ended.signal) == ("time", signal.SIGKILL)
        (ended,) = pool.run(place, Run([*slow, "--set=samples=100000000000"]), megabytes=20)
        assert ended.killed == "memory"


TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
DOCUMENT = st.fixed_dictionaries(
    {}, optional={"id": VALUES, "text": TEXTS | VALUES, "tags": VALUES, "labels": VALUES}
)


@settings(
    max_examples=40, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    odd=st.lists(DOCUMENT | VALUES, max_size=4),
    skip=st.booleans(),
    name=st.sampled_from(["check", "predict"]),
)
def test_any_document(pool: Pool, odd: list[object], skip: bool, name: str) -> None:
    """Hypothesis finds the smallest document that upsets a command."""
    from faults.inputs import models

    scene = Scene(pool, "any", 0, 0)
    try:
        (scene.folder / "docs.jsonl").write_bytes(
            m.json_lines(m.sound()) + "".join(json.dumps(one) + "\n" for one in odd).encode()
        )
        (scene.folder / "tree.yaml").write_text(m.TREE_YAML)
        more = ["--skip-bad"] if skip else []
        if name == "check":
            run, outputs = Run(["check", "docs.jsonl", "--taxonomy=tree.yaml", "--metadata=tags", *more]), {}
        else:
            model = str(models(pool)["model"])
            run = Run(["predict", model, "docs.jsonl", "-q", "--threads=1", "-o", "out", *more])
            outputs = {"out": "lines"}
        scene.judged(run, outputs)
    finally:
        scene.close(keep=False)
    assert scene.verdict.wrong == []


def test_a_failure_can_be_told(survives: Callable[[str, range], None], pool: Pool) -> None:
    verdict = attack(pool, "models", 0, 1)
    verdict.wrong.append("exit code 1")
    assert "models:0:1" in str(verdict)
    assert "exit code 1" in str(verdict)
