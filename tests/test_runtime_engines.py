"""Work in threads of this process, and what is said where Ray cannot be used."""

from __future__ import annotations

import multiprocessing
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from himecat.errors import DataError, MissingExtraError, UsageError, by_options
from himecat.runtime.engines import ProcessEngine, open_engine
from ray_nodes import added, killed_once, refused


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    first_done = threading.Event()

    def task(common: int, item: int) -> int:
        if item == 0 and workers > 1:
            assert first_done.wait(10)
        if item == 1:
            first_done.set()
        return common * item

    with open_engine("local", workers=workers) as engine:
        assert list(engine.map(task, range(20), common=2)) == [2 * item for item in range(20)]


@pytest.mark.parametrize("workers", [1, 2])
def test_items_are_taken_as_there_is_room(workers: int) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    with open_engine("local", workers=workers) as engine:
        results = engine.map(added, items(), common=0)
        assert next(results) == 1
        assert taken <= 2 * workers
        results.close()
    assert taken <= 2 * workers


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_task_arrives_as_it_is(workers: int) -> None:
    with open_engine("local", workers=workers) as engine:
        results = engine.map(refused, range(100), common=None)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(DataError, match=r"^Item 3 cannot be used\.$"):
            next(results)


def test_processes_give_results_in_order_and_are_replaced_when_they_die(tmp_path: Path) -> None:
    with ProcessEngine(2) as engine:
        assert list(engine.map(killed_once, range(12), common=str(tmp_path))) == [
            item**2 for item in range(12)
        ]
    assert (tmp_path / "killed").exists()
    assert multiprocessing.active_children() == []


def test_an_error_of_a_process_arrives_as_it_is() -> None:
    results = ProcessEngine(1).map(refused, range(100), common=None)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(DataError, match=r"^Item 3 cannot be used\.$"):
        next(results)
    assert multiprocessing.active_children() == []


def test_engines_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="There is no engine 'spark': it is one of local, ray"):
        open_engine("spark")
    with (
        by_options(),
        pytest.raises(UsageError, match=r"--address is that of a Ray cluster: .* --engine ray"),
    ):
        open_engine("local", address="auto")
    with pytest.raises(UsageError, match="threads must be"):
        open_engine("local", workers=0)


def test_without_ray_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'needs the package ray: pip install "himecat\[ray\]"'):
        open_engine("ray")


def test_ray_is_not_imported_without_need() -> None:
    code = (
        "import sys; from himecat.runtime.engines import open_engine; from himecat.cli.app import app; "
        "e = open_engine('local'); list(e.map(pow, [1], common=2)); "
        "sys.exit(any(name.split('.')[0] == 'ray' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_an_address_where_nobody_answers() -> None:
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(UsageError, match=f"No Ray cluster answers at 127.0.0.1:{port}"):
        open_engine("ray", address=f"127.0.0.1:{port}")
    for address in ("ray://127.0.0.1:1", "nowhere", "a:b"):
        with pytest.raises(UsageError, match="host:port or auto, not"):
            open_engine("ray", address=address)
