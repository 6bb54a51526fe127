"""The application: routes, errors, and what stands around them."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from himecat import __version__
from himecat.errors import HimecatError
from himecat.server import (
    routes_actions,
    routes_documents,
    routes_jobs,
    routes_page,
    routes_predict,
    routes_tree,
)
from himecat.server.actions import Conflict, Nothing
from himecat.server.context import Context, as_answer
from himecat.server.events import Bus
from himecat.server.guard import Guard, Rules
from himecat.server.jobs import Jobs
from himecat.server.metrics import Measured
from himecat.server.proposing import Proposals
from himecat.server.refused import Refused
from himecat.server.store import unusable
from himecat.server.workspace import Workspace

_log = logging.getLogger(__name__)
_SAID = {
    400: "The body cannot be read: send JSON.",
    404: "There is no such address.",
    405: "This address does not take that method.",
}


def make_app(workspace: Workspace, rules: Rules, **options: Any) -> Guard:
    """The application for a workspace, behind its guard; `options` are those of `Context`."""
    return Guard(make_api(workspace, **options), rules)


def make_api(workspace: Workspace, **options: Any) -> FastAPI:
    """The application without its guard."""
    bus = Bus()
    state = Context(workspace, Jobs(workspace, bus), Proposals(workspace), bus, **options)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        yield
        bus.end()
        state.jobs.close()

    app = FastAPI(
        title="himecat",
        version=__version__,
        description="Documents in a category tree: look at them, correct them, and have the model learn.",
        # Those of FastAPI come from other servers.
        docs_url=None,
        redoc_url=None,
        lifespan=living,
    )
    app.state.context = state
    app.state.page = routes_page.files_of(routes_page.PAGE)
    app.state.reference = routes_page.files_of(routes_page.REFERENCE)
    for routes in (
        routes_documents,
        routes_actions,
        routes_jobs,
        routes_tree,
        routes_predict,
        routes_page,
    ):
        app.include_router(routes.router)
    app.add_middleware(Measured, metrics=state.metrics)
    for kind in (Refused, HimecatError, LookupError, Conflict, Nothing, sqlite3.Error):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unknown)
    return app


async def _known(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, sqlite3.Error):
        error = unusable(request.app.state.context.workspace.store.path, error)
    return as_answer(error)


async def _unknown(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return as_answer(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    said = f"{place}: {first['msg']}" if place else str(first["msg"])
    return JSONResponse({"error": said.rstrip(".") + "."}, 422)


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said = _SAID.get(error.status_code) or str(error.detail)
    return JSONResponse({"error": said}, error.status_code, error.headers)
