"""What all routes share: the workspace, the events, the jobs; and errors as answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import JSONResponse

from himecat.errors import HimecatError, OutputError
from himecat.server.actions import Conflict, Nothing
from himecat.server.events import Bus
from himecat.server.metrics import Metrics
from himecat.server.refused import Refused
from himecat.server.schemas import Error
from himecat.server.workspace import Workspace

if TYPE_CHECKING:
    from himecat.server.jobs import Jobs
    from himecat.server.proposing import Proposals

MOST_PREDICTIONS = 8
"""So many predictions may run at once."""


@dataclass
class Context:
    """The state of a running server."""

    workspace: Workspace
    jobs: Jobs
    proposals: Proposals
    bus: Bus = field(default_factory=Bus)
    metrics: Metrics = field(default_factory=Metrics)
    turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_PREDICTIONS))
    seconds: float = 60.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Work that only a few may do at once."""
        if not self.turns.acquire(blocking=False):
            raise Refused(429, "The server is busy: try again in a moment.")
        try:
            yield
        finally:
            self.turns.release()

    async def in_time(self, work: Callable[[], Any]) -> Any:
        """Work in a thread, in its turn, which ends with the work; who waits longer than the bound is told so."""
        import anyio

        def done() -> Any:
            with self.turn():
                return work()

        try:
            with anyio.fail_after(self.seconds):
                return await anyio.to_thread.run_sync(done, abandon_on_cancel=True)
        except TimeoutError:
            raise Refused(
                503, f"It took longer than {self.seconds:g} seconds: send fewer documents."
            ) from None


def responses(*statuses: int, **more: Any) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, as OpenAPI describes them."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": Error} for status in (400, 401, 403, 413, 415, 422, *statuses)
    }
    return found | {int(name.removeprefix("s")): value for name, value in more.items()}


def context(request: Request) -> Context:
    """The state of the server that a request came to."""
    found: Context = request.app.state.context
    return found


def as_answer(error: Exception) -> JSONResponse:
    """An error as the answer to a request."""
    more: dict[str, Any] = {}
    headers = {}
    if isinstance(error, Refused):
        status, more = error.status, error.more
        if status in (429, 503):
            headers["Retry-After"] = "1"
    elif isinstance(error, LookupError):
        status = 404
    elif isinstance(error, Conflict | Nothing):
        status = 409
    elif isinstance(error, OutputError):
        status = 503
    elif isinstance(error, HimecatError):
        status = 422 if error.exit_code == 2 else 500
    else:
        return JSONResponse({"error": "This should not have happened; the server's log says more."}, 500)
    sentence = str(error.args[0]) if isinstance(error, LookupError) and error.args else str(error)
    return JSONResponse({"error": sentence, **more}, status, headers)
