"""Servers for tests: real sockets, in a thread of the test or as the command itself."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from himecat.server.app import make_app
from himecat.server.guard import Rules
from himecat.server.run import listening
from himecat.server.workspace import Workspace


class Client:
    """Asks one server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def raw(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, given)
            found = connection.getresponse()
            return found.status, {name.lower(): value for name, value in found.getheaders()}, found.read()
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        raw = None if body is None else json.dumps(body).encode()
        if raw is not None:
            headers.setdefault("content_type", "application/json")
        status, _, found = self.raw(method, f"/api/v1{path}", raw, **headers)
        return status, json.loads(found)

    def get(self, path: str) -> Any:
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def post(self, path: str, body: Any) -> Any:
        status, found = self.ask("POST", path, body)
        assert status in (200, 202), found
        return found

    def until(self, number: int, states: tuple[str, ...] = ("done", "failed", "cancelled")) -> Any:
        """A job once it is in one of the states."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            job = self.get(f"/jobs/{number}")
            if job["state"] in states:
                return job
            time.sleep(0.02)
        raise AssertionError(f"the job is still {job}")


@contextmanager
def in_thread(workspace: Workspace, token: str | None = None, **options: Any) -> Iterator[Client]:
    """A server in a thread; the workspace is closed afterwards."""
    own = listening("127.0.0.1", 0)
    port = own.getsockname()[1]
    app = make_app(workspace, Rules("127.0.0.1", port, token), **options)
    config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    try:
        yield Client(port)
    finally:
        server.should_exit = True
        thread.join(20)
        own.close()
        workspace.close()


@contextmanager
def as_command(*arguments: str | Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """`himecat serve` in a process of its own, on any free port."""
    command = [sys.executable, "-m", "himecat", "serve", *map(str, arguments), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert process.stderr is not None
    try:
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"http://[^ ]*:(\d+)/", line):
                break
        else:
            raise AssertionError(said)
        yield process, Client(int(found[1]))
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
