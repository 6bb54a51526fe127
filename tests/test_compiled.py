"""Machine code is kept in the user's cache folder; where it cannot be kept, the work goes on without."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numba
import pytest

from himecat.kernels.compiled import _kept_in, kernel_folder

KERNEL = """
from himecat.kernels.compiled import compiled

@compiled()
def twice(x):
    return 2 * x
"""


def run(folder: Path, cache: Path | str, *, before_call: str = "") -> list[str]:
    """Call a compiled function in a new process; give what it printed: the result, and 1 if it was compiled."""
    (folder / "kernel.py").write_text(KERNEL)
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); sys.dont_write_bytecode = True\n"
        f"import kernel\n{before_call}\n"
        "print(kernel.twice(4), sum(kernel.twice.stats.cache_misses.values()))\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    home = folder / "no-folder" / "home"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**kept, "XDG_CACHE_HOME": str(cache), "HOME": str(home), "LOCALAPPDATA": str(cache)},
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which nothing can be kept beside the program, nor in the home.

    The tests may run as root, whom permissions do not stop: files stand where folders would be needed.
    """
    (tmp_path / "__pycache__").write_text("")
    (tmp_path / "no-folder").write_text("")
    return tmp_path


@pytest.mark.skipif(sys.platform == "darwin", reason="the cache folder has no variable of its own there")
def test_code_is_kept_in_the_users_cache_folder_which_is_made(folder: Path) -> None:
    cache = folder / "new" / "cache"
    assert run(folder, cache) == ["8", "1"]
    assert list((cache / "himecat" / "kernels").rglob("*.nbc"))
    assert run(folder, cache) == ["8", "0"]


def test_without_any_folder_it_is_compiled_in_each_run(folder: Path) -> None:
    for _ in range(2):
        assert run(folder, folder / "no-folder" / "cache")[0] == "8"


@pytest.mark.skipif(sys.platform == "darwin", reason="the cache folder has no variable of its own there")
def test_a_folder_that_goes_away_is_no_error(folder: Path) -> None:
    cache = folder / "cache"
    gone = f"import shutil; shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()"
    assert run(folder, cache, before_call=gone)[0] == "8"


@pytest.mark.skipif(sys.platform == "darwin", reason="the cache folder has no variable of its own there")
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_code_is_compiled_anew(folder: Path, suffix: str) -> None:
    cache = folder / "cache"
    run(folder, cache)
    for kept in cache.rglob(f"*.{suffix}"):
        kept.write_bytes(b"\x80\x05 damaged")
    assert run(folder, cache)[0] == "8"


def test_the_folder_follows_the_systems_custom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert kernel_folder() == tmp_path / "c" / "himecat" / "kernels"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert kernel_folder() == tmp_path / ".cache" / "himecat" / "kernels"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert kernel_folder() == tmp_path / "Library" / "Caches" / "himecat" / "kernels"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert kernel_folder() == tmp_path / "local" / "himecat" / "kernels"


def test_threads_that_compile_at_once_do_not_change_each_others_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    inside, leave = threading.Event(), threading.Event()
    seen: list[str] = []

    def first() -> None:
        with _kept_in(tmp_path / "one"):
            inside.set()
            leave.wait(10)

    def second() -> None:
        with _kept_in(tmp_path / "two"):
            seen.append(numba.config.CACHE_DIR)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert seen == []
    leave.set()
    for thread in threads:
        thread.join(10)
    assert seen == [str(tmp_path / "two")]
    assert numba.config.CACHE_DIR == ""
