"""Work on a real Ray cluster: two nodes on this machine, with token authentication."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from himecat.errors import DataError
from himecat.runtime.engines import Engine, open_engine
from ray_nodes import Cluster, added, killed_once, refused, two_nodes, where

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A short name: sockets have paths of about a hundred characters.
    import tempfile

    from ray._private.authentication_test_utils import reset_auth_token_state

    with tempfile.TemporaryDirectory(prefix="r") as folder, two_nodes(Path(folder)) as found:
        before = {name: os.environ.get(name) for name in found.environment}
        os.environ.update(found.environment)
        try:
            reset_auth_token_state()
            found.wait(2)
            yield found
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            reset_auth_token_state()
    assert found.processes() == []


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> Iterator[Engine]:
    with open_engine("ray", address=cluster.address) as found:
        yield found


def test_the_cluster_listens_on_the_loopback_address_only(cluster: Cluster) -> None:
    listening = {
        connection.laddr.ip
        for process in cluster.processes()
        for connection in process.net_connections("tcp")
        if connection.status == "LISTEN"
    }
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_results_come_in_the_order_of_the_items_from_both_nodes(engine: Engine) -> None:
    assert engine.workers == 2
    assert list(engine.map(added, range(20), common=5)) == list(range(5, 25))
    found = list(engine.map(where, range(8), common=0.2))
    assert [item for item, *_ in found] == list(range(8))
    assert len({node for _, node, _ in found}) == 2


def test_a_task_whose_worker_is_killed_is_run_again(engine: Engine, tmp_path: Path) -> None:
    assert list(engine.map(killed_once, range(6), common=str(tmp_path))) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "killed").exists()


def test_an_error_of_a_task_arrives_as_it_is(engine: Engine) -> None:
    with pytest.raises(DataError, match=r"^Item 3 cannot be used\.$"):
        list(engine.map(refused, range(6), common=None))
