"""Machine code is cached in the user's cache folder and never older than its sources; without a cache, work goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import pytest

import himecat
from himecat.kernels import compiled as cache

KERNEL = """
from himecat.kernels.compiled import compiled

@compiled()
def twice(x):
    return 2 * x
"""

# Eight times 1 / sqrt(4), by a function of another file that is compiled into this one.
KERNEL_WITH_HELPER = """
import numpy as np
from himecat.kernels.compiled import compiled
from himecat.kernels.simd import reciprocal_sqrt, broadcast, sum_lanes

@compiled()
def roots(x):
    return sum_lanes(reciprocal_sqrt(broadcast(np.float32(x))))
"""

on_mac = pytest.mark.skipif(
    sys.platform == "darwin", reason="the cache folder has no variable of its own there"
)


def run_python(program: str, cache: Path | str, home: Path, **extra: str) -> tuple[list[str], str]:
    """What a program prints in a new process, and what it logs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    places = {"XDG_CACHE_HOME": str(cache), "LOCALAPPDATA": str(cache), "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**kept, **places, **extra},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def run(
    folder: Path, cache: Path | str, *, before_call: str = "", level: str = "WARNING", **extra: str
) -> tuple[list[str], str]:
    """Call a compiled function: the result, the number of compilations, and what was logged."""
    (folder / "kernel.py").write_text(KERNEL)
    program = (
        f"import logging; logging.basicConfig(level='WARNING')\n"
        f"logging.getLogger('himecat').setLevel({level!r})\n"
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        # As if the package itself were installed where nothing can be written.
        f"from himecat.kernels import compiled\nfrom pathlib import Path\n"
        f"compiled._HERE = Path({str(folder / 'no-folder')!r})\n"
        f"import kernel\n{before_call}\n"
        "print(kernel.twice(4), sum(kernel.twice.stats.cache_misses.values()))\n"
    )
    return run_python(program, cache, folder / "no-folder" / "home", **extra)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which nothing can be cached beside the program, nor in the home.

    The tests may run as root, whom permissions do not stop: files stand where folders would be needed.
    """
    (tmp_path / "__pycache__").write_text("")
    (tmp_path / "no-folder").write_text("")
    return tmp_path


@on_mac
def test_code_is_cached_in_the_users_cache_folder_which_is_made(folder: Path) -> None:
    place = folder / "new" / "cache"
    assert run(folder, place) == (["8", "1"], "")
    assert list((place / "himecat" / "kernels").rglob("*.nbc"))
    assert run(folder, place) == (["8", "0"], "")


def test_a_folder_of_numbas_variable_goes_first(folder: Path) -> None:
    named = folder / "named"
    for compilations in ("1", "0"):
        found = run(folder, folder / "no-folder" / "cache", NUMBA_CACHE_DIR=str(named))
        assert found == (["8", compilations], "")
    assert list((named / "himecat" / "kernels").rglob("*.nbc"))


def test_without_any_folder_it_is_compiled_in_each_run_and_said_once(folder: Path) -> None:
    for _ in range(2):
        (result, _), log = run(folder, folder / "no-folder" / "cache")
        assert result == "8"
        assert log == (
            "WARNING:himecat.kernels.compiled:Compiled code cannot be cached, so every run compiles: "
            "no cache folder can be written.\n"
        )


@on_mac
def test_a_folder_that_goes_away_is_no_error_but_in_the_log(folder: Path) -> None:
    place = folder / "cache"
    gone = f"import shutil; shutil.rmtree({str(place)!r}); open({str(place)!r}, 'w').close()"
    (result, _), log = run(folder, place, before_call=gone)
    assert result == "8"
    assert log.startswith("WARNING:himecat.kernels.compiled:Compiled code cannot be cached, so the next run")


@on_mac
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_code_is_compiled_anew_and_the_log_says_so(folder: Path, suffix: str) -> None:
    place = folder / "cache"
    run(folder, place)
    for kept in place.rglob(f"*.{suffix}"):
        kept.write_bytes(b"\x80\x05 damaged")
    (result, _), log = run(folder, place, level="INFO")
    assert result == "8"
    assert "The cached code of twice cannot be used and is compiled anew" in log


@on_mac
def test_a_changed_helper_never_meets_an_old_kernel(tmp_path: Path) -> None:
    package = tmp_path / "himecat"
    shutil.copytree(Path(himecat.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "roots.py").write_text(KERNEL_WITH_HELPER)
    program = (
        "from himecat.kernels.roots import roots\n"
        "print(roots(4.0), sum(roots.stats.cache_misses.values()), sum(roots.stats.cache_hits.values()))"
    )

    def found() -> list[str]:
        printed, log = run_python(program, tmp_path / "cache", tmp_path, PYTHONPATH=str(tmp_path))
        assert not log
        return printed

    assert found() == ["4.0", "1", "0"]
    assert found() == ["4.0", "0", "1"]
    helper = package / "kernels" / "simd.py"
    source = helper.read_text()
    changed = source.replace("builder.fdiv(_constant([1.0]", "builder.fdiv(_constant([3.0]")
    assert changed != source
    helper.write_text(changed)
    assert found() == ["12.0", "1", "0"]
    # The old sources find their own code again.
    helper.write_text(source)
    assert found() == ["4.0", "0", "1"]


def test_code_that_nobody_used_for_long_is_removed(tmp_path: Path) -> None:
    current, recent, unused, foreign = (
        tmp_path / name for name in ("2.0-0123456789abcdef", "1.9-" + "0" * 16, "1.8-" + "1" * 16, "other")
    )
    for path in (current, recent, unused, foreign):
        path.mkdir()
        (path / "code.nbc").write_text("")
        age = 10 if path == recent else 40
        os.utime(path, (time.time() - age * 24 * 3600,) * 2)
    cache._mark_used(current)
    assert {path.name for path in tmp_path.iterdir()} == {current.name, recent.name, foreign.name}
    # It counts as used from now on.
    assert time.time() - current.stat().st_mtime < 3600


def test_old_code_that_cannot_be_removed_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="himecat"):
        cache._mark_used(tmp_path / "no-such-folder")
    assert "Old compiled code cannot be removed" in caplog.text


def test_the_folder_follows_the_systems_custom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert cache.user_cache() == tmp_path / "c" / "himecat"
    assert cache.cache_folders()[0].parent == tmp_path / "c" / "himecat" / "kernels"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache.user_cache() == tmp_path / ".cache" / "himecat"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.user_cache() == tmp_path / "Library" / "Caches" / "himecat"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.user_cache() == tmp_path / "local" / "himecat"


def test_threads_that_compile_at_once_do_not_change_each_others_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    inside, leave = threading.Event(), threading.Event()
    seen: list[str] = []

    def first() -> None:
        with cache._numba_cache_in(tmp_path / "one"):
            inside.set()
            leave.wait(10)

    def second() -> None:
        with cache._numba_cache_in(tmp_path / "two"):
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


@on_mac
def test_cached_code_gives_the_same_bytes_as_code_just_compiled(tmp_path: Path) -> None:
    """A kernel that calls another one may meet two copies of it, which are not compiled alike."""
    program = (
        "import numpy as np\n"
        "from himecat.kernels.poincare import move_edges\n"
        "rng = np.random.default_rng(0)\n"
        "points, edges = rng.uniform(-0.01, 0.01, (500, 20)), rng.integers(500, size=(2, 5000))\n"
        "nobody = np.zeros(501, dtype=np.int64)\n"
        "move_edges(points, *edges, np.arange(5000), nobody, nobody, 10, 0.1, 1.0, np.uint64(1))\n"
        "print(hash(points.tobytes()), sum(move_edges.stats.cache_hits.values()))"
    )
    (first, compiled), (second, cached) = (
        run_python(program, tmp_path / "cache", tmp_path, PYTHONHASHSEED="0")[0] for _ in range(2)
    )
    assert (compiled, cached) == ("0", "1")
    assert first == second
