"""Work in the background, one job after the other; what became of it is in the store."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from himecat.errors import HimecatError
from himecat.server.actions import now
from himecat.server.events import Bus
from himecat.server.learning import Cancelled, Make, run
from himecat.server.refused import Refused
from himecat.server.workspace import Workspace

MOST_WAITING = 4
"""So many jobs may wait for their turn."""

_log = logging.getLogger(__name__)
_COLUMNS = ("id", "kind", "state", "stage", "progress", "result", "error", "at")


class TooMany(Exception):
    """The queue is full."""


class Jobs:
    """The jobs of a workspace."""

    def __init__(self, workspace: Workspace, bus: Bus) -> None:
        self._workspace, self._bus = workspace, bus
        self._lock, self._work = threading.Lock(), threading.Condition()
        self._changing = threading.Lock()
        self._queue: deque[tuple[int, Callable[[Any, Any], dict[str, Any]]]] = deque()
        self._live: dict[int, dict[str, Any]] = {}
        self._cancelled: set[int] = set()
        self._closed, self._thread = False, None
        with workspace.store.writing() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'failed', error = 'The server was ended.' "
                "WHERE state IN ('queued', 'running')"
            )

    _thread: threading.Thread | None

    @property
    def waiting(self) -> int:
        """Jobs that are not finished."""
        return len(self._live)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Change the model while no job does, nor anybody else.

        Raises
        ------
        Refused
            Somebody is at it.
        """
        if not self._changing.acquire(blocking=False):
            raise Refused(409, "The model is being changed: wait for it, or cancel the job.")
        try:
            if self._live:
                raise Refused(409, "A job is running: wait for it, or cancel it.")
            yield
        finally:
            self._changing.release()

    def start(self, kind: str, make: Make, given: Any) -> dict[str, Any]:
        """Put a job into the queue."""
        return self.queue(
            kind, lambda report, cancelled: run(self._workspace, make, given, report, cancelled)
        )

    def queue(self, kind: str, work: Callable[[Any, Any], dict[str, Any]]) -> dict[str, Any]:
        """Put any work into the queue."""
        with self._work:
            if len(self._queue) >= MOST_WAITING or self._closed:
                raise TooMany("Too many jobs are waiting: wait for one of them, or cancel it.")
            at = now()
            with self._workspace.store.writing() as connection:
                number = connection.execute(
                    "INSERT INTO jobs (kind, state, stage, progress, at) VALUES (?, 'queued', '', 0, ?)",
                    (kind, at),
                ).lastrowid
            assert number is not None
            job = dict(zip(_COLUMNS, (number, kind, "queued", "", 0.0, None, None, at), strict=True))
            self._live[number] = job
            self._queue.append((number, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="himecat jobs", daemon=True)
                self._thread.start()
            self._work.notify()
            return dict(job)

    def get(self, number: int) -> dict[str, Any]:
        """A job."""
        if (live := self._live.get(number)) is not None:
            return dict(live)
        found = self._listed("WHERE id = ?", (number,))
        if not found:
            raise LookupError(f"There is no job {number}.")
        return found[0]

    def listed(self) -> list[dict[str, Any]]:
        """The last jobs, the newest first."""
        return [
            dict(self._live.get(job["id"], job)) for job in self._listed("ORDER BY id DESC LIMIT 100", ())
        ]

    def _listed(self, which: str, given: tuple[Any, ...]) -> list[dict[str, Any]]:
        rows = self._workspace.store.reader.execute(f"SELECT {', '.join(_COLUMNS)} FROM jobs {which}", given)
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows.fetchall()]
        return [{**job, "result": json.loads(job["result"]) if job["result"] else None} for job in found]

    def cancel(self, number: int) -> dict[str, Any]:
        """Have a job end; one that is finished stays as it is."""
        job = self.get(number)
        with self._work:
            if number in self._live:
                self._cancelled.add(number)
                if self._live[number]["state"] == "queued":
                    self._queue = deque(one for one in self._queue if one[0] != number)
                    self._finish(number, "cancelled")
                    job = self.get(number)
        return job

    def close(self) -> None:
        """Cancel all jobs and wait for the one that runs."""
        with self._work:
            self._closed = True
            self._cancelled.update(self._live)
            for number, _ in self._queue:
                self._finish(number, "cancelled")
            self._queue.clear()
            self._work.notify()
        if self._thread is not None:
            self._thread.join(10)

    def _run(self) -> None:
        while True:
            with self._work:
                while not self._queue and not self._closed:
                    self._work.wait()
                if self._closed:
                    return
                number, work = self._queue.popleft()
                self._set(number, state="running")
            try:
                with self._changing:
                    result = work(
                        lambda stage, share, number=number: self._set(
                            number, stage=stage, progress=round(share, 3)
                        ),
                        lambda number=number: number in self._cancelled,
                    )
                self._finish(number, "done", result=result, progress=1.0)
                self._bus.tell("model", {"model_version": self._workspace.view.version})
                self._bus.tell("tree", {"tree_version": self._workspace.tree_version})
            except Cancelled:
                self._finish(number, "cancelled")
            except HimecatError as error:
                self._finish(number, "failed", error=str(error))
            except Exception:
                _log.exception("job %s failed", number)
                self._finish(
                    number, "failed", error="This should not have happened; the server's log says more."
                )

    def _set(self, number: int, **changes: Any) -> None:
        with self._lock:
            self._live[number].update(changes)
            told = dict(self._live[number])
        self._bus.tell("job", told)

    def _finish(self, number: int, state: str, **changes: Any) -> None:
        self._live[number].update(state=state, **changes)
        job = self._live[number]
        result = None if job["result"] is None else json.dumps(job["result"])
        with self._workspace.store.writing() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, stage = ?, progress = ?, result = ?, error = ? WHERE id = ?",
                (state, job["stage"], job["progress"], result, job["error"], number),
            )
        del self._live[number]
        self._cancelled.discard(number)
        self._bus.tell("job", job)
