"""Listen, tell where, and serve until somebody ends it."""

from __future__ import annotations

import logging
import os
import socket
import threading
import webbrowser
from contextlib import suppress
from typing import Any

import uvicorn

from himecat.errors import OutputError, UsageError, spelled
from himecat.estimator import HiMeCat
from himecat.runtime.progress import Progress, silent
from himecat.server.app import make_app
from himecat.server.guard import Rules, is_loopback
from himecat.server.workspace import Workspace

_SECONDS_TO_END = 2


def check_address(host: str, token: str | None) -> None:
    """Refuse to listen to other machines without a token.

    Examples
    --------
    >>> check_address("0.0.0.0", None)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: 0.0.0.0 can be reached by other machines: choose a token that clients have to know
    (token=).
    """
    if not is_loopback(host) and not token:
        raise UsageError(
            f"{host} can be reached by other machines: choose a token that clients have to know "
            f"({spelled('--token', 'token=')})."
        )


def listening(host: str, port: int) -> socket.socket:
    """A socket on which clients may wait already."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host.strip("[]"), port))
        found.listen(128)
    except OSError as error:
        found.close()
        said = f"The server cannot listen on {host}, port {port}: {error.strerror or error}"
        raise OutputError(f"{said}; choose another one ({spelled('--port', 'port=')}).") from None
    return found


def serve_forever(
    folder: str | os.PathLike[str],
    documents: str | os.PathLike[str] | None = None,
    *,
    model: HiMeCat | None = None,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    skip_bad: bool = False,
    threads: int | None = None,
    browser: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """Serve a model folder until Ctrl-C."""
    check_address(host, token)
    progress = progress or silent()
    # Before any work is done: the port may be taken.
    with listening(host, port) as own:
        port = own.getsockname()[1]
        workspace = Workspace(
            folder, documents, model=model, skip_bad=skip_bad, threads=threads, progress=progress
        )
        try:
            shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
            address = f"http://{shown}:{port}/"
            logging.getLogger("himecat").addHandler(logging.StreamHandler())
            config = uvicorn.Config(
                make_app(workspace, Rules(host, port, token), **options),
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_SECONDS_TO_END,
            )
            progress.say(
                f"The page is at {address} (Ctrl-C ends the server); answers are in {workspace.store.path}."
            )
            threading.Thread(target=_warm, args=(workspace,), daemon=True).start()
            if browser and host not in ("0.0.0.0", "::"):
                opened = f"{address}?token={token}" if token else address
                threading.Thread(target=_open_browser, args=(opened,), daemon=True).start()
            try:
                uvicorn.Server(config).run(sockets=[own])
            except KeyboardInterrupt:
                progress.say("The server was ended; every answer is kept.")
        finally:
            workspace.close()


def _warm(workspace: Workspace) -> None:
    """Have compiled loops and orders ready before anybody asks."""
    with suppress(Exception):
        for sort in ("unsure", "disputed"):
            workspace.rows(sort=sort, query="a")
        workspace.document(0)


def _open_browser(address: str) -> None:
    """Open the page where there is somebody to see it."""
    has_screen = os.name == "nt" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if has_screen or os.uname().sysname == "Darwin":
        webbrowser.open(address)
