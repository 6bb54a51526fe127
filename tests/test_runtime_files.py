from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from himecat.errors import DataError, OutputError
from himecat.runtime import replacing
from himecat.runtime.files import atomic_file, atomic_folder, check_target, replaced_folder, write_atomic

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
not_as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere"
)

not_on_windows = pytest.mark.skipif(sys.platform == "win32", reason="this system has no such rights")
AS_NOBODY = """
import os, sys
from himecat.errors import HimecatError
from himecat.model_folder.files import read_model
from himecat.runtime.files import check_target, write_atomic
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
folder, file = sys.argv[1:]
for way in (check_target, lambda _: write_atomic(file, "x"), read_model):
    try:
        way(folder)
    except HimecatError as error:
        print(error)
"""


def as_nobody(place: Path, folder: str, file: str) -> subprocess.CompletedProcess[str]:
    """What is said about a place that may not be entered, also where the tests run as the superuser."""
    (place / "locked").mkdir(mode=0o000)
    code = f"import os; os.chdir({str(place)!r})" + AS_NOBODY
    return subprocess.run(
        [sys.executable, "-c", code, folder, file], capture_output=True, text=True, timeout=60, check=True
    )


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with its text; a folder left behind would show as well."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else ""
        for path in folder.rglob("*")
    }


# As much of a model as is asked before it is overwritten.
OLD, NEW = ('{\n"format": "himecat-model", "is": "%s"}' % age for age in ("old", "new"))  # noqa: UP031


def make_model(folder: Path, text: str = OLD) -> Path:
    folder.mkdir()
    (folder / "model.json").write_text(text)
    return folder


class TestFile:
    @pytest.mark.parametrize(("content", "expected"), [("é\n", b"\xc3\xa9\n"), (b"\xff\x00", b"\xff\x00")])
    def test_text_and_bytes_replace_the_old_file(
        self, tmp_path: Path, content: str | bytes, expected: bytes
    ) -> None:
        target = tmp_path / "out"
        for _ in range(2):
            write_atomic(target, content)
        assert target.read_bytes() == expected
        assert list(tmp_path.iterdir()) == [target]

    def test_a_stream_appears_at_the_end_of_the_block(self, tmp_path: Path) -> None:
        target = tmp_path / "out.jsonl"
        with atomic_file(target) as lines:
            lines.writelines(f"é{number}\n" for number in range(20_000))
            assert not target.exists()
        assert target.read_bytes().decode().split("\n")[-2] == "é19999"
        assert list(tmp_path.iterdir()) == [target]

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("line 3 is broken."), FULL])
    @pytest.mark.parametrize("length", [1, 100_000])
    def test_a_failing_block_keeps_the_old_file_and_its_own_error(
        self, tmp_path: Path, error: BaseException, length: int
    ) -> None:
        (tmp_path / "out").write_text("old")
        with pytest.raises(type(error)) as caught, atomic_file(tmp_path / "out") as lines:  # noqa: PT012
            lines.write("x" * length)
            raise error
        # An error of reading the input, say, has nothing to do with the file that is written.
        assert caught.value is error
        assert contents(tmp_path) == {"out": "old"}

    @pytest.mark.parametrize("broken", ["fsync", "replace"])
    def test_a_full_disk_is_one_sentence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
    ) -> None:
        monkeypatch.setattr(os, broken, failing(FULL))
        target = tmp_path / "out"
        with pytest.raises(OutputError) as caught, atomic_file(target, "The predictions") as lines:
            lines.write("x")
        expected = f"The predictions cannot be written to {target}: No space left on device."
        assert str(caught.value) == expected
        assert contents(tmp_path) == {}

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("", r"it is a folder, name a file in it\.$"),
            ("missing/out", r"the folder .*missing does not exist\.$"),
            ("file/out", r"Not a directory\.$"),
            ("n" * 300, r"File name too long\.$"),
            ("a\0b/out", r"a\\0b/out: no file can have such a name\.$"),
            ("a\ud83d", r"no file can have such a name\.$"),
        ],
    )
    def test_hopeless_places_are_told_before_the_block(self, tmp_path: Path, name: str, said: str) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(OutputError, match=said), atomic_file(tmp_path / name):
            pytest.fail("the block must not start")
        with pytest.raises(OutputError, match=said):
            write_atomic(tmp_path / name, "x")
        assert contents(tmp_path) == {"file": ""}

    @not_as_root
    def test_no_permission(self, tmp_path: Path) -> None:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(OutputError, match="Permission denied"):
            write_atomic(tmp_path / "locked" / "out", "x")

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real" / "out")
        for text in ("first", "second"):
            write_atomic(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert contents(tmp_path / "real") == {"out": "second"}

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_written_to_and_not_replaced(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        received: list[str] = []
        reader = threading.Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
        reader.start()
        with atomic_file(pipe) as lines:
            lines.write("through")
        reader.join(5)
        assert received == ["through"]
        assert pipe.is_fifo()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_devices_are_written_to_and_not_replaced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "replace", failing(AssertionError("a device was about to be replaced")))
        write_atomic("/dev/null", "x")
        with pytest.raises(OutputError, match="to /dev/full: No space left on device"):
            write_atomic("/dev/full", "x")
        with pytest.raises(OutputError, match="No space left"), atomic_file("/dev/full") as lines:  # noqa: PT012
            for _ in range(100):
                lines.write("x" * 1000)

    @pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
    def test_standard_output_in_a_file_keeps_what_stands_there(self, tmp_path: Path) -> None:
        code = "from himecat.runtime.files import write_atomic; write_atomic('/dev/stdout', 'new')"
        with open(tmp_path / "out", "w") as out:
            out.write("old, ")
            out.flush()
            subprocess.run([sys.executable, "-c", code], stdout=out, check=True, timeout=60)
        assert contents(tmp_path) == {"out": "old, new"}


class TestFolder:
    def test_appears_whole(self, tmp_path: Path) -> None:
        target = tmp_path / "model"
        with atomic_folder(target) as unfinished:
            assert unfinished.parent == tmp_path
            (unfinished / "a").write_text("1")
            (unfinished / "sub").mkdir()
            (unfinished / "sub" / "b").write_text("2")
            assert not target.exists()
        assert contents(tmp_path) == {"model": "", "model/a": "1", "model/sub": "", "model/sub/b": "2"}

    def test_every_file_is_on_the_disk_before_the_folder_appears(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: set[tuple[int, bool]] = set()

        def note(descriptor: int) -> None:
            synced.add((os.fstat(descriptor).st_ino, (tmp_path / "model").exists()))

        monkeypatch.setattr(os, "fsync", note)
        with atomic_folder(tmp_path / "model") as unfinished:
            for name in ("a", "b"):
                (unfinished / name).write_text(name)
        for path in (tmp_path / "model", *(tmp_path / "model").iterdir()):
            assert (path.stat().st_ino, False) in synced

    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("no.")])
    def test_a_failing_block_leaves_what_was_there(
        self, tmp_path: Path, error: BaseException, overwrite: bool
    ) -> None:
        if overwrite:
            make_model(tmp_path / "model")
        before = contents(tmp_path)
        with pytest.raises(type(error)), atomic_folder(tmp_path / "model", overwrite=overwrite) as unfinished:  # noqa: PT012
            (unfinished / "model.json").write_text("half")
            raise error
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize("broken", ["fsync", "block"])
    def test_a_full_disk_is_one_sentence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, overwrite: bool
    ) -> None:
        target = tmp_path / "model"
        if overwrite:
            make_model(target)
        before = contents(tmp_path)
        monkeypatch.setattr(os, "fsync", failing(FULL) if broken == "fsync" else lambda _: None)
        with pytest.raises(OutputError) as caught, atomic_folder(target, overwrite=overwrite) as unfinished:  # noqa: PT012
            (unfinished / "model.json").write_text("half")
            if broken == "block":
                raise FULL
        assert str(caught.value) == f"The model cannot be written to {target}/: No space left on device."
        assert contents(tmp_path) == before

    def test_an_existing_folder_is_told_before_the_block(self, tmp_path: Path) -> None:
        target = make_model(tmp_path / "model")
        with pytest.raises(OutputError) as caught, atomic_folder(target):
            pytest.fail("the block must not start")
        assert str(caught.value) == (f"{target}/ exists already: choose another name or pass overwrite=True.")
        assert contents(target) == {"model.json": OLD}

    def test_a_folder_that_appeared_during_the_work_stays(self, tmp_path: Path) -> None:
        with pytest.raises(OutputError, match="exists already"), atomic_folder(tmp_path / "model"):
            make_model(tmp_path / "model", "of another run")
        assert contents(tmp_path) == {"model": "", "model/model.json": "of another run"}

    @pytest.mark.parametrize("empty", [False, True])
    def test_overwriting_a_model_or_an_empty_folder(self, tmp_path: Path, empty: bool) -> None:
        target = tmp_path / "model"
        if empty:
            target.mkdir()
        else:
            (make_model(target) / "weights.safetensors").write_text("old")
        with atomic_folder(target, overwrite=True) as unfinished:
            (unfinished / "model.json").write_text(NEW)
            assert contents(target) == ({} if empty else {"model.json": OLD, "weights.safetensors": "old"})
        assert contents(tmp_path) == {"model": "", "model/model.json": NEW}

    def test_what_somebody_put_beside_a_model_is_not_lost(self, tmp_path: Path) -> None:
        (make_model(tmp_path / "model") / "notes.txt").write_text("mine")
        with (
            pytest.raises(OutputError, match=r"it holds notes\.txt beside the model: take it out"),
            atomic_folder(tmp_path / "model", overwrite=True),
        ):
            pass
        assert contents(tmp_path / "model") == {"model.json": OLD, "notes.txt": "mine"}

    @pytest.mark.parametrize("error", [OSError(errno.EBUSY, "Device or resource busy"), KeyboardInterrupt()])
    def test_the_old_folder_comes_back_where_the_new_one_cannot_move_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        monkeypatch.setattr(replacing, "exchange", lambda one, other: False)
        target = make_model(tmp_path / "model")
        rename = os.rename
        calls = []

        def second_fails(old: str, new: str) -> None:
            calls.append(new)
            if len(calls) == 2:
                raise error
            rename(old, new)

        monkeypatch.setattr(os, "rename", second_fails)
        with (
            pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt),
            atomic_folder(target, overwrite=True) as unfinished,
        ):
            (unfinished / "model.json").write_text(NEW)
        assert len(calls) == 3
        assert contents(tmp_path) == {"model": "", "model/model.json": OLD}

    def test_what_is_not_a_model_is_never_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / "thesis").mkdir()
        (tmp_path / "thesis" / "chapter").write_text("years of work")
        (tmp_path / "file").write_text("kept")
        with pytest.raises(OutputError, match="thesis/ is not overwritten, because it is not a"):
            check_target(tmp_path / "thesis", overwrite=True)
        for overwrite in (False, True):
            with pytest.raises(OutputError, match="file is a file, and a folder is to be written"):
                check_target(tmp_path / "file", overwrite)
        assert contents(tmp_path)["thesis/chapter"] == "years of work"

    def test_hopeless_places(self, tmp_path: Path) -> None:
        with pytest.raises(OutputError, match=r"^The space .*/a/b/: the folder .*/a does not exist\.$"):
            check_target(tmp_path / "a" / "b", False, "The space")
        with pytest.raises(OutputError, match=r"File name too long\.$"):
            check_target(tmp_path / ("n" * 300))
        check_target(tmp_path / "fine")
        assert contents(tmp_path) == {}

    @pytest.mark.parametrize("name", ["a\0b", "a\ud83d", "file/model", "n" * 300, "gone/model"])
    def test_no_place_ends_in_a_traceback(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "file").touch()
        for way in (check_target, lambda path: atomic_folder(path).__enter__()):
            with pytest.raises(OutputError, match=r"^The model cannot be written to .*\.$"):
                way(tmp_path / name)
        assert contents(tmp_path) == {"file": ""}

    @not_on_windows
    def test_a_folder_that_may_not_be_entered(self, tmp_path: Path) -> None:
        run = as_nobody(tmp_path, "locked/model", "locked/out")
        assert run.stdout.splitlines() == [
            "The model cannot be written to locked/model/: Permission denied.",
            "The report cannot be written to locked/out: Permission denied.",
            "locked/model cannot be read (Permission denied).",
        ]

    def test_a_vanished_place(self, tmp_path: Path) -> None:
        (tmp_path / "place").mkdir()
        with (
            pytest.raises(OutputError, match=r"place does not exist\.$"),
            atomic_folder(tmp_path / "place" / "model"),
        ):
            shutil.rmtree(tmp_path / "place")
        (tmp_path / "place").mkdir()
        with (
            pytest.raises(OutputError, match=r"No such file"),
            replaced_folder(tmp_path / "place" / "model", "It"),
        ):
            shutil.rmtree(tmp_path / "place")
        (tmp_path / "place").mkdir()
        with pytest.raises(OutputError, match=r"No such file"), atomic_file(tmp_path / "place" / "out"):
            shutil.rmtree(tmp_path / "place")
        assert contents(tmp_path) == {}

    @pytest.mark.parametrize(
        ("head", "ours"),
        [
            ('{\n"format": "himecat-model",\n"version": 9', True),
            ('{"format": "himecat-model", "weights": cut', True),
            ('{"format": "layers-model", "author": "himecat-model"}', False),
            ('{"name": {"format": "himecat-model"}}', False),
            ('["format", "himecat-model"]', False),
            ("", False),
            ("\0" * 300, False),
        ],
    )
    def test_the_model_of_another_program_is_never_overwritten(
        self, tmp_path: Path, head: str, ours: bool
    ) -> None:
        target = make_model(tmp_path / "model", head)
        (target / "weights.safetensors").write_text("any")
        if ours:
            check_target(target, overwrite=True)
            return
        with pytest.raises(OutputError, match=r"not a himecat model \(its model.json is of another kind\)"):
            check_target(target, overwrite=True)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_links_pipes_and_folders_are_not_a_model(self, tmp_path: Path) -> None:
        real = make_model(tmp_path / "real")
        for number, make in enumerate(
            (
                lambda path: path.symlink_to(real / "model.json"),
                os.mkfifo,
                os.mkdir,
            )
        ):
            for name, said in (
                ("model.json", "it holds no model.json"),
                ("weights.safetensors", "is not a file"),
            ):
                target = tmp_path / f"{number}-{name}"
                if name == "model.json":
                    target.mkdir()
                else:
                    make_model(target)
                make(target / name)
                with pytest.raises(OutputError, match=said):
                    check_target(target, overwrite=True)
                assert (target / name).exists()

    @not_as_root
    def test_no_permission(self, tmp_path: Path) -> None:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(OutputError, match=r"no permission to write in the folder .*locked\.$"):
            check_target(tmp_path / "locked" / "model")

    def test_a_link_to_a_model_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "big").mkdir()
        real = make_model(tmp_path / "big" / "model-1")
        link = tmp_path / "model"
        link.symlink_to(real)
        with atomic_folder(link, overwrite=True) as unfinished:
            assert unfinished.parent == real.parent
            (unfinished / "model.json").write_text(NEW)
        assert link.is_symlink()
        assert contents(real) == {"model.json": NEW}
        assert list(real.parent.iterdir()) == [real]

    @pytest.mark.parametrize("name", [".", "../model", "../model/"])
    def test_names_relative_to_the_folder_itself(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.chdir(make_model(tmp_path / "model"))
        with atomic_folder(name, overwrite=True) as unfinished:
            (unfinished / "model.json").write_text(NEW)
        monkeypatch.chdir(tmp_path)
        assert contents(tmp_path) == {"model": "", "model/model.json": NEW}


LIMITED = """
import resource, signal, sys
from himecat.errors import OutputError
from himecat.runtime import files
from himecat.runtime.files import atomic_file, atomic_folder, write_atomic

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

def in_one_go():
    write_atomic("out", "x" * 50_000)

def line_by_line():
    with atomic_file("out") as lines:
        for _ in range(500):
            lines.write("x" * 100)

def folder():
    with atomic_folder("model") as unfinished:
        (unfinished / "weights").write_bytes(bytes(50_000))

for way in (in_one_go, line_by_line, folder):
    try:
        way()
    except OutputError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit on file sizes")
def test_a_file_system_that_takes_no_more(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.stdout.splitlines() == [
        "The report cannot be written to out: File too large.",
        "The file cannot be written to out: File too large.",
        "The model cannot be written to model/: File too large.",
    ]
    assert (run.returncode, run.stderr) == (0, "")
    assert contents(tmp_path) == {}


def test_ctrl_c_while_the_old_folder_is_removed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_model(tmp_path / "model")
    real, calls = shutil.rmtree, []

    def interrupted(*arguments: object, **options: object) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(*arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("himecat.runtime.files.shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "model", overwrite=True) as unfinished:
        (unfinished / "model.json").write_text("new")
    assert contents(tmp_path) == {"model": "", "model/model.json": "new"}


def test_a_loop_of_links_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match="symbolic links"):
        write_atomic(tmp_path / "loop", "text")
    with pytest.raises(OutputError, match="symbolic links"):
        check_target(tmp_path / "loop", overwrite=True)
    assert os.readlink(tmp_path / "loop") == "loop"
