"""The page, the description of the API, health and metrics."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse, Response

from himecat.runtime.memory import resident_bytes
from himecat.server.context import Context, context
from himecat.server.refused import Refused

router = APIRouter(include_in_schema=False)
Server = Annotated[Context, Depends(context)]

PAGE, REFERENCE = Path(__file__).parent / "page", Path(__file__).parent / "reference"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
"""What the package's own files are served as; others are not served."""


def files_of(folder: Path) -> dict[str, Path]:
    """The files that can be asked for, by their names: nothing else is ever opened."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and (file.suffix in TYPES or file.name == "LICENSE"):
            found[file.relative_to(folder).as_posix()] = file
    return found


def _sent(request: Request, file: Path | None) -> Response:
    if file is None:
        raise Refused(404, "There is no such page.")
    stat = os.stat(file)
    tag = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(file.read_bytes(), media_type=TYPES.get(file.suffix, "text/plain"), headers=headers)


@router.get("/")
def page(request: Request) -> Response:
    """The page."""
    return _sent(request, request.app.state.page.get("index.html"))


@router.get("/page/{name:path}")
def page_file(request: Request, name: str) -> Response:
    """A file of the page."""
    return _sent(request, request.app.state.page.get(name))


@router.get("/docs")
def reference(request: Request) -> Response:
    """The description of the API, made from /openapi.json."""
    return _sent(request, request.app.state.reference.get("index.html"))


@router.get("/docs/{name:path}")
def reference_file(request: Request, name: str) -> Response:
    """A file of the description of the API."""
    return _sent(request, request.app.state.reference.get(name))


@router.get("/health")
def health(server: Server) -> Any:
    """Whether the server answers, and by which model."""
    return {"status": "ok", "model_version": server.workspace.view.version}


@router.get("/metrics")
def metrics(server: Server) -> PlainTextResponse:
    """Counts, as Prometheus reads them."""
    workspace = server.workspace
    gauges = {
        "himecat_documents": len(workspace.view.placed),
        "himecat_answered_documents": int(workspace.answered.sum()),
        "himecat_model_version": workspace.view.version,
        "himecat_event_streams": server.bus.listeners,
        "himecat_jobs_waiting": server.jobs.waiting,
        "himecat_resident_bytes": resident_bytes(),
    }
    return PlainTextResponse(server.metrics.text(gauges), media_type="text/plain; version=0.0.4")
