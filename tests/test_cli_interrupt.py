"""Ctrl-C and `kill` end a command within seconds, with one line, and nothing half-written stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")

INTERRUPTED = "himecat: interrupted; nothing was left half-written."
# Learning would take an hour.
ENDLESS = (
    "--method=paper",
    "--set=min_count=2",
    "--set=samples=100000000000",
    "--set=classifier=mean-logistic",
    "--threads=2",
)
LEARNING = "Learning the joint space ..."

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a command in a process group of its own, as a terminal does."""
    running: list[subprocess.Popen[str]] = []

    def command(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "himecat", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Where the tests run in the background, Ctrl-C is ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        running.append(process)
        return process

    yield command
    for process in running:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        if not _gone(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def wait_for_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stderr is not None
    for read in process.stderr:
        if read.strip() == line:
            # A moment for the work behind the line to begin.
            time.sleep(0.3)
            return
    pytest.fail(f"the command ended without saying {line!r}")


def _gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def ends(process: subprocess.Popen[str], code: int) -> list[str]:
    """The command ends soon, with all its processes; gives what it still said on standard error."""
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert process.returncode == code, err
    assert out == ""
    assert "Traceback" not in err
    wait_for(lambda: _gone(process.pid), seconds=10)
    return err.splitlines()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_fit(start: Start, letters: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    documents, tree = letters / "documents.jsonl", letters / "taxonomy.yaml"
    process = start("fit", documents, "--taxonomy", tree, "-o", tmp_path / "model", *ENDLESS)
    wait_for_line(process, LEARNING)
    process.send_signal(sent)
    *progress, last = ends(process, code)
    assert last == INTERRUPTED
    assert not any(line.startswith("himecat:") for line in progress)
    assert list(tmp_path.iterdir()) == []


def test_predict(start: Start, letters: Path, letters_model: Path, tmp_path: Path) -> None:
    # A pipe that stays open: the command waits for more documents.
    documents = tmp_path / "documents.jsonl"
    os.mkfifo(documents)
    process = start("predict", letters_model, documents, "-o", tmp_path / "out.jsonl")
    # Also opened for reading: otherwise this waits for as long as the command does not open it.
    with open(os.open(documents, os.O_RDWR), "w") as pipe:
        pipe.write((letters / "documents.jsonl").read_text()[:10_000])
        pipe.flush()
        wait_for(lambda: any(file.suffix == ".part" for file in tmp_path.iterdir()))
        process.send_signal(signal.SIGINT)
        assert ends(process, 130) == [INTERRUPTED]
    assert list(tmp_path.iterdir()) == [documents]


@pytest.mark.parametrize("everyone", [False, True], ids=["parent", "group"])
def test_evaluate(start: Start, letters: Path, tmp_path: Path, everyone: bool) -> None:
    process = start("evaluate", letters, "--draws", 2, "--json", tmp_path / "scores.json", *ENDLESS)
    wait_for_line(process, LEARNING)
    if everyone:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    assert ends(process, 130)[-1] == INTERRUPTED
    assert list(tmp_path.iterdir()) == []


def test_a_draw_ends_with_the_process_that_waits_for_it(start: Start, letters: Path) -> None:
    process = start("evaluate", letters, *ENDLESS)
    wait_for_line(process, LEARNING)
    process.kill()
    process.wait()
    wait_for(lambda: _gone(process.pid), seconds=10)
