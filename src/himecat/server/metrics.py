"""Counts of what the server did, as Prometheus reads them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping

from himecat.server.guard import App, Message, Receive, Scope, Send

_BOUNDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 60.0)


class Metrics:
    """Requests by route and status, and how long they took.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.count("/api/v1/tree", "GET", 200, 0.004)
    >>> print(metrics.text({"himecat_documents": 7}).splitlines()[1])
    himecat_requests_total{method="GET",route="/api/v1/tree",status="200"} 1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._seconds: dict[str, list[float]] = defaultdict(lambda: [0.0] * (len(_BOUNDS) + 2))

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request more."""
        with self._lock:
            self._requests[route, method, status] += 1
            found = self._seconds[route]
            for place, bound in enumerate(_BOUNDS):
                found[place] += seconds <= bound
            found[-2] += 1
            found[-1] += seconds

    def text(self, gauges: Mapping[str, float]) -> str:
        """All metrics in Prometheus's text format."""
        lines = ["# TYPE himecat_requests_total counter"]
        with self._lock:
            for (route, method, status), times in sorted(self._requests.items()):
                lines.append(
                    f'himecat_requests_total{{method="{method}",route="{route}",status="{status}"}} {times}'
                )
            lines.append("# TYPE himecat_request_seconds histogram")
            for route, found in sorted(self._seconds.items()):
                for bound, number in zip((*_BOUNDS, "+Inf"), found[:-1], strict=True):
                    lines.append(
                        f'himecat_request_seconds_bucket{{route="{route}",le="{bound}"}} {number:.0f}'
                    )
                lines.append(f'himecat_request_seconds_count{{route="{route}"}} {found[-2]:.0f}')
                lines.append(f'himecat_request_seconds_sum{{route="{route}"}} {found[-1]:.6f}')
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


class Measured:
    """Counts what passes to an application; routes by their pattern, so that their number is bounded."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        from time import perf_counter

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
            self._metrics.count(route, method, status, perf_counter() - began)
