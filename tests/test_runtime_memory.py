from __future__ import annotations

import resource
from pathlib import Path

import pytest

from himecat.errors import DataError
from himecat.runtime import memory
from himecat.runtime.bounds import VARIABLE
from himecat.runtime.memory import available_memory, refuse_beyond_memory

GIGABYTE = 1 << 30


def written(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    infinite = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (infinite, infinite))


MEMINFO = {"proc/meminfo": "MemTotal:  16777216 kB\nMemFree:  99 kB\nMemAvailable:   8388608 kB\n"}


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize(
    ("files", "gigabytes"),
    [
        ({}, 8),
        ({"sys/fs/cgroup/memory.max": f"{3 * GIGABYTE}\n", "sys/fs/cgroup/memory.current": str(GIGABYTE)}, 2),
        ({"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5"}, 8),
        (
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(4 * GIGABYTE),
                "sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIGABYTE),
            },
            3,
        ),
        (
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "5",
            },
            8,
        ),
        ({"sys/fs/cgroup/memory.max": "5", "sys/fs/cgroup/memory.current": "9"}, 0),
        ({"sys/fs/cgroup/memory.max": "nonsense", "sys/fs/cgroup/memory.current": ""}, 8),
    ],
)
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], gigabytes: int) -> None:
    assert available_memory(written(tmp_path, MEMINFO | files)) == gigabytes * GIGABYTE


@pytest.mark.usefixtures("unlimited")
def test_other_systems_say_how_much_there_is_in_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_memory(tmp_path) == 4_096_000
    monkeypatch.delattr(memory.os, "sysconf")
    assert available_memory(tmp_path) is None


def test_a_limit_of_the_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (5 * GIGABYTE, resource.RLIM_INFINITY))
    pages = GIGABYTE // resource.getpagesize()
    root = written(tmp_path, MEMINFO | {"proc/self/statm": f"{pages} 5 5 5 0 5 0\n"})
    assert available_memory(root) == 4 * GIGABYTE


def test_the_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 20 * GIGABYTE)
    refuse_beyond_memory(20 * GIGABYTE, "this needs")
    with pytest.raises(DataError) as caught:
        refuse_beyond_memory(48 * GIGABYTE, "20,000 documents x 300,000 leaves need")
    assert str(caught.value) == (
        "20,000 documents x 300,000 leaves need about 48.0 GB of memory, and 20.0 GB are there: take fewer documents "
        "or a smaller tree, or try it all the same (himecat.set_bounds(memory='49152MB'))."
    )
    monkeypatch.setenv(VARIABLE, "memory=1GB")
    with pytest.raises(
        DataError, match=r"the bound is 1.0 GB \(himecat.set_bounds\(memory='2048MB'\) raises it"
    ):
        refuse_beyond_memory(2 * GIGABYTE, "this needs")
    # A bound of one's own is believed, whatever there is.
    monkeypatch.setenv(VARIABLE, "memory=99GB")
    refuse_beyond_memory(48 * GIGABYTE, "this needs")
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    monkeypatch.setenv(VARIABLE, "memory=0")
    refuse_beyond_memory(48 * GIGABYTE, "this needs")
