"""A Ray cluster of two nodes on this machine, which listens on the loopback address only, and tasks for it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import himecat
from himecat.errors import DataError, UsageError
from himecat.runtime.engines import open_engine

# `ray start` takes the machine's address where it is told 127.0.0.1, and would listen there.
_START = """
import sys
import ray._private.services as services
services.get_node_ip_address = lambda address=None: "127.0.0.1"
from ray.scripts.scripts import main
sys.exit(main())
"""


@dataclass
class Cluster:
    """Its address, what a process needs in its environment to use it, and its processes by their session."""

    address: str
    environment: dict[str, str]
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *options: str) -> None:
        """Start a node, in a session of its own."""
        command = [sys.executable, "-c", _START, "start", "--block", "--num-cpus=1", "--disable-usage-stats"]
        self.nodes.append(
            subprocess.Popen(
                [*command, "--node-ip-address=127.0.0.1", *options],
                env=os.environ | self.environment,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def processes(self) -> list[psutil.Process]:
        """Every process of the nodes: none has a session of its own."""
        sessions = {node.pid for node in self.nodes}
        found = []
        for pid in psutil.pids():
            try:
                if os.getsid(pid) in sessions:
                    found.append(psutil.Process(pid))
            except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
                continue
        return found

    def stop(self) -> None:
        """End all of them, by their ids."""
        while found := self.processes():
            for process in found:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            for node in self.nodes:
                node.wait(10)
            psutil.wait_procs(found, timeout=10)

    def wait(self, processors: int) -> None:
        """Until the nodes that have so many processors are there."""
        until = time.monotonic() + 60
        while True:
            with suppress(UsageError), open_engine("ray", address=self.address) as engine:
                if engine.workers == processors:
                    return
            assert time.monotonic() < until, "the nodes did not come up"
            time.sleep(0.1)


@contextmanager
def two_nodes(folder: Path) -> Iterator[Cluster]:
    """Two nodes with one processor each, with token authentication."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    token = folder / "token"
    token.write_text(secrets.token_hex(16))
    sources = os.pathsep.join([str(Path(himecat.__file__).parent.parent), str(Path(__file__).parent)])
    environment = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": sources,
    }
    cluster = Cluster(f"127.0.0.1:{port}", environment)
    store = "--object-store-memory=100000000"
    try:
        cluster.start(
            "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}/r", store
        )
        until = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            assert time.monotonic() < until, "the head did not come up"
            assert cluster.nodes[0].poll() is None, "the head ended"
            time.sleep(0.1)
        cluster.start(f"--address=127.0.0.1:{port}", store)
        yield cluster
    finally:
        cluster.stop()


def added(common: int, item: int) -> int:
    """A task that adds up."""
    return common + item


def where(common: float, item: int) -> tuple[int, str, bool]:
    """A task that says on which node it ran, and whether what it got can be changed."""
    import ray

    time.sleep(common)
    return item, ray.get_runtime_context().get_node_id(), os.getpid() > 0


def killed_once(marks: str, item: int) -> int:
    """A task whose worker is killed when it comes to the third item for the first time."""
    mark = Path(marks) / "killed"
    if item == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def refused(common: Any, item: int) -> int:
    """A task that finds a mistake of the user's."""
    if item == 3:
        raise DataError(f"Item {item} cannot be used.")
    return item


class LittleRoom:
    """Room for a few documents of a fit; see `himecat.input.sampling.Room`."""

    def texts(self) -> int:
        return 600

    def documents(self, n_leaves: int | None, n_words: int, n_values: int) -> int:
        return 200


@dataclass
class KilledOnce:
    """A task whose first worker is killed; `mark` says that it was."""

    task: Any
    mark: str

    def __call__(self, common: Any, item: Any) -> Any:
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.task(common, item)
