"""What has happened, told to every page that is open: server-sent events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

MOST_LISTENERS = 64
"""So many pages may listen at once."""

_MOST_WAITING = 1_000
_SECONDS_BETWEEN = 15.0


class Bus:
    """Carries events from any thread to the streams that are open.

    Examples
    --------
    >>> Bus().listeners
    0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[asyncio.Queue[str | None], asyncio.AbstractEventLoop] = {}

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return len(self._queues)

    def tell(self, event: str, data: Any) -> None:
        """Send an event to all; a stream that does not keep up is closed, and its page asks again."""
        message = f"event: {event}\ndata: {json.dumps(data)}\n\n"
        with self._lock:
            listening = list(self._queues.items())
        for queue, loop in listening:
            try:
                loop.call_soon_threadsafe(_put, queue, message)
            except RuntimeError:  # the loop is closed
                self._queues.pop(queue, None)

    def end(self) -> None:
        """Close all streams."""
        with self._lock:
            listening = list(self._queues.items())
        for queue, loop in listening:
            loop.call_soon_threadsafe(_put, queue, None)

    async def stream(self) -> AsyncIterator[str]:
        """The events from now on; a comment in between keeps the connection open."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(_MOST_WAITING)
        with self._lock:
            self._queues[queue] = asyncio.get_running_loop()
        try:
            yield "retry: 1000\n\n"
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), _SECONDS_BETWEEN)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if message is None:
                    return
                yield message
        finally:
            with self._lock:
                self._queues.pop(queue, None)


def _put(queue: asyncio.Queue[str | None], message: str | None) -> None:
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        message = None
    queue.put_nowait(message)
