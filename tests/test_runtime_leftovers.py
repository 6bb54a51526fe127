"""What killed writers leave behind, who may remove it, and folders that change places."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from himecat.errors import OutputError
from himecat.runtime import files, replacing
from himecat.runtime.exchange import exchange
from himecat.runtime.files import atomic_file, atomic_folder, check_target, replaced_folder, write_atomic
from himecat.runtime.leftovers import clean_leftovers, new_file, new_folder, recover

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this system has no such locks")

HEAD = '{\n"format": "himecat-model",\n'
WRITER = """
import os, signal, sys, time
from pathlib import Path
from himecat.runtime import files, replacing

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

head = '{\\n"format": "himecat-model",\\n'

def write(text):
    with files.atomic_folder("model", overwrite=True) as folder:
        (folder / "model.json").write_text(head + text)
        (folder / "weights.safetensors").write_text(text)
"""


def run(code: str, place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER + code], cwd=place, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def killed(code: str, place: Path) -> None:
    process = run(code, place)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def make_model(folder: Path, text: str = "old") -> Path:
    folder.mkdir()
    (folder / "model.json").write_text(HEAD + text)
    (folder / "weights.safetensors").write_text(text)
    return folder


def version(folder: Path) -> str:
    """The text that both files of a model hold."""
    (text,) = {
        (folder / "model.json").read_text().removeprefix(HEAD),
        (folder / "weights.safetensors").read_text(),
    }
    return text


def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "exchange", lambda one, other: False)


class TestCleaning:
    def test_a_killed_writer_leaves_what_the_next_one_removes(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        killed("write('old')\nwith files.atomic_folder('model', overwrite=True) as f:\n  die()", tmp_path)
        killed("with files.atomic_file('out') as f:\n  f.write('half'); f.flush(); die()", tmp_path)
        left = sorted(set(os.listdir(tmp_path)) - {"model"})
        # The second writer has removed what the first one left.
        assert len(left) == 1
        with caplog.at_level(logging.INFO, "himecat.files"):
            write_atomic(tmp_path / "out", "whole")
        assert sorted(os.listdir(tmp_path)) == ["model", "out"]
        assert version(tmp_path / "model") == "old"
        assert [record.getMessage() for record in caplog.records] == [
            f"Removed unfinished files of an earlier run from {tmp_path}: {left[0]}."
        ]

    @pytest.mark.parametrize("way", [atomic_folder, lambda path: replaced_folder(path, "It"), atomic_file])
    def test_every_writer_cleans(self, tmp_path: Path, way: Callable[[Path], object]) -> None:
        (tmp_path / ".himecat-00000000.part").mkdir()
        (tmp_path / ".himecat-00000000.part" / "weights").touch()
        with way(tmp_path / "target"):  # type: ignore[attr-defined]
            assert not (tmp_path / ".himecat-00000000.part").exists()
        assert os.listdir(tmp_path) == ["target"]

    def test_what_a_living_writer_has_is_left_alone(self, tmp_path: Path) -> None:
        code = "with files.atomic_folder('model') as f, files.atomic_file('out') as g:\n"
        process = run(code + "  print('ready', flush=True); time.sleep(60)", tmp_path)
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            with atomic_file(tmp_path / "other") as lines:
                before = sorted(os.listdir(tmp_path))
                assert len(before) == 3
                assert clean_leftovers(tmp_path) == []
                assert sorted(os.listdir(tmp_path)) == before
                lines.write("x")
        finally:
            process.kill()
            process.communicate()
        assert len(clean_leftovers(tmp_path)) == 2
        assert os.listdir(tmp_path) == ["other"]

    def test_what_is_not_ours_stays(self, tmp_path: Path) -> None:
        others = [
            "a.part",
            ".himecat-0.part",
            ".himecat-0000000g.part",
            "x.himecat-00000000.part",
            ".himecat-cache",
        ]
        for name in others:
            (tmp_path / name).write_text("mine")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "thesis").write_text("mine")
        for number, target in enumerate(("elsewhere", "a.part", "nowhere")):
            (tmp_path / f".himecat-0000000{number}.part").symlink_to(target)
        os.mkfifo(tmp_path / ".himecat-00000009.part")
        (tmp_path / ".himecat-0000000a.part").mkdir()
        (tmp_path / ".himecat-0000000a.part" / "link").symlink_to(tmp_path / "elsewhere")
        before = set(os.listdir(tmp_path))
        assert clean_leftovers(tmp_path) == [".himecat-0000000a.part"]
        assert before - set(os.listdir(tmp_path)) == {".himecat-0000000a.part"}
        assert (tmp_path / "elsewhere" / "thesis").read_text() == "mine"

    @pytest.mark.parametrize("place", ["missing", "a\0b", "n" * 300, "file", "\ud83d"])
    def test_it_never_raises(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").touch()
        assert clean_leftovers(tmp_path / place) == []
        assert not recover(tmp_path / place / "model")
        assert not recover(tmp_path / place)

    def test_systems_without_locks_remove_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("himecat.runtime.leftovers.fcntl", None)
        (tmp_path / ".himecat-00000000.part").touch()
        write_atomic(tmp_path / "out", "x")
        with atomic_folder(tmp_path / "model"):
            pass
        assert sorted(os.listdir(tmp_path)) == [".himecat-00000000.part", "model", "out"]

    def test_file_systems_without_locks_remove_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_locks(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr("fcntl.flock", no_locks)
        (tmp_path / ".himecat-00000000.part").touch()
        write_atomic(tmp_path / "out", "x")
        assert sorted(os.listdir(tmp_path)) == [".himecat-00000000.part", "out"]

    def test_cleaners_and_makers_at_once(self, tmp_path: Path) -> None:
        stop = threading.Event()

        def clean() -> None:
            while not stop.is_set():
                clean_leftovers(tmp_path)

        def make(number: int) -> None:
            for _ in range(60):
                path, descriptor = (new_file if number % 2 else new_folder)(tmp_path / "target")
                time.sleep(0)
                # Nobody takes away what is locked.
                assert path.exists()
                assert descriptor is not None
                os.close(descriptor)

        with ThreadPoolExecutor(6) as pool:
            cleaners = [pool.submit(clean) for _ in range(2)]
            for made in [pool.submit(make, number) for number in range(4)]:
                made.result()
            stop.set()
            for cleaner in cleaners:
                cleaner.result()
        clean_leftovers(tmp_path)
        assert os.listdir(tmp_path) == []


class TestExchange:
    def test_folders_change_places(self, tmp_path: Path) -> None:
        one, other = make_model(tmp_path / "one", "1"), make_model(tmp_path / "other", "2")
        if not exchange(one, other):
            pytest.skip("this file system cannot exchange")
        assert (version(one), version(other)) == ("2", "1")

    def test_what_is_missing_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            exchange(make_model(tmp_path / "one"), tmp_path / "other")

    def test_old_systems_cannot(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one, other = make_model(tmp_path / "one", "1"), make_model(tmp_path / "other", "2")
        monkeypatch.setattr(sys, "platform", "aix")
        assert not exchange(one, other)
        assert version(one) == "1"

    @pytest.mark.skipif(sys.platform != "linux", reason="the exchange of Linux")
    def test_the_old_or_the_new_model_is_there_whenever_the_writer_is_killed(self, tmp_path: Path) -> None:
        make_model(tmp_path / "model", "0")
        for wait in (0.0, 0.003, 0.011, 0.02, 0.05):
            process = run("print('ready', flush=True)\nfor n in range(10**6): write(str(n))", tmp_path)
            assert process.stdout
            process.stdout.readline()
            until = time.monotonic() + 0.05 + wait
            while time.monotonic() < until:
                # Never missing, not for an instant.
                assert (tmp_path / "model").exists()
            process.kill()
            process.communicate()
            assert version(tmp_path / "model").isdigit()
        clean_leftovers(tmp_path)
        assert os.listdir(tmp_path) == ["model"]


class TestWithoutExchange:
    BETWEEN = """
replacing.exchange = lambda one, other: False
rename, done = os.rename, []
def one_rename(old, new):
    rename(old, new)
    if "model" in str(old): die()
os.rename = one_rename
"""

    @pytest.fixture
    def between(self, tmp_path: Path) -> Path:
        """A folder whose model was being replaced when the power failed."""
        make_model(tmp_path / "model")
        make_model(tmp_path / "other")
        killed(self.BETWEEN + "write('new')", tmp_path)
        assert not (tmp_path / "model").exists()
        return tmp_path

    def test_the_old_model_is_never_cleaned_away(self, between: Path) -> None:
        clean_leftovers(between)
        write_atomic(between / "out", "x")
        with atomic_folder(between / "another"):
            pass
        assert recover(between / "model")
        assert version(between / "model") == "old"
        assert sorted(os.listdir(between)) == ["another", "model", "other", "out"]

    def test_writers_find_the_old_model(self, between: Path) -> None:
        with pytest.raises(OutputError, match="exists already"):
            check_target(between / "model")
        assert version(between / "model") == "old"

    def test_another_target_does_not_take_it(self, between: Path) -> None:
        assert not recover(between / "model2")
        assert not recover(between / "other")
        assert recover(between / "model")

    def test_a_copy_that_is_no_longer_needed_goes(self, between: Path) -> None:
        make_model(between / "model", "newer")
        assert len(clean_leftovers(between)) == 2
        assert sorted(os.listdir(between)) == ["model", "other"]
        assert version(between / "model") == "newer"

    def test_a_living_writer_keeps_it(self, tmp_path: Path) -> None:
        make_model(tmp_path / "model")
        code = self.BETWEEN.replace("die()", "print('ready', flush=True); time.sleep(60)")
        process = run(code + "write('new')", tmp_path)
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            assert not recover(tmp_path / "model")
        finally:
            process.kill()
            process.communicate()
        assert recover(tmp_path / "model")
        assert version(tmp_path / "model") == "old"

    def test_a_model_is_replaced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without_exchange(monkeypatch)
        make_model(tmp_path / "model")
        with atomic_folder(tmp_path / "model", overwrite=True) as unfinished:
            (unfinished / "model.json").write_text(HEAD + "new")
            (unfinished / "weights.safetensors").write_text("new")
        assert version(tmp_path / "model") == "new"
        assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("by_renames", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_of_writers_at_once_the_last_one_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_renames: bool, there: bool
) -> None:
    if by_renames:
        without_exchange(monkeypatch)
    if there:
        make_model(tmp_path / "model")
    start = threading.Barrier(4)

    def write(number: int) -> None:
        start.wait(10)
        for turn in range(25):
            with replaced_folder(tmp_path / "model", "The model") as unfinished:
                (unfinished / "model.json").write_text(f"{HEAD}{number}-{turn}")
                (unfinished / "weights.safetensors").write_text(f"{number}-{turn}")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(write, number) for number in range(4)]:
            done.result()
    assert version(tmp_path / "model").endswith("-24")
    assert os.listdir(tmp_path) == ["model"]


def test_without_overwrite_the_first_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Both have looked before either has moved in.
    monkeypatch.setattr(files, "check_target", lambda *_: None)
    with pytest.raises(OutputError, match="exists already"), atomic_folder(tmp_path / "model"):
        make_model(tmp_path / "model", "of another run")
    assert version(tmp_path / "model") == "of another run"
    assert os.listdir(tmp_path) == ["model"]
