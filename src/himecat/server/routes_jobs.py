"""Learning: jobs in the background, and the way back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from himecat.server import learning
from himecat.server import schemas as s
from himecat.server.context import Context, context, responses
from himecat.server.jobs import TooMany
from himecat.server.refused import Refused

router = APIRouter(prefix="/api/v1", responses=responses(), tags=["learning"])
Server = Annotated[Context, Depends(context)]
Number = Annotated[int, Path(ge=0, lt=2**62)]


@router.post("/jobs", response_model=s.StartedJob, status_code=202, responses=responses(409, 429))
def start(server: Server, given: s.NewJob) -> Any:
    """Learn from all answers, in the background; the new model takes the old one's place when it is complete."""
    if server.workspace.view.model.gives_sets:
        raise Refused(
            409,
            "An answer of this page is one path, and this model gives documents several: choose documents with "
            "`himecat review`, and teach it whole sets with `himecat correct`.",
        )
    rows = learning.answer_rows(server.workspace)
    if not rows:
        raise Refused(409, "There is no answer to learn from yet.")
    return {"job": queued(server, given.kind, learning.learn_from, rows)}


def queued(server: Context, kind: str, make: learning.Make, given: Any) -> dict[str, Any]:
    """A job in the queue."""
    try:
        return server.jobs.start(kind, make, given)
    except TooMany as error:
        raise Refused(429, str(error)) from None


@router.get("/jobs", response_model=list[s.Job])
def jobs(server: Server) -> Any:
    """The last jobs, the newest first."""
    return server.jobs.listed()


@router.get("/jobs/{number}", response_model=s.Job, responses=responses(404))
def job(server: Server, number: Number) -> Any:
    """A job and how far it has come."""
    return server.jobs.get(number)


@router.delete("/jobs/{number}", response_model=s.Job, responses=responses(404))
def cancel(server: Server, number: Number) -> Any:
    """Cancel a job; the model stays as it is."""
    return server.jobs.cancel(number)


@router.post("/model/back", response_model=s.Back, responses=responses(409, 503))
def back(server: Server) -> Any:
    """Serve the model before this one again, which becomes the one before."""
    workspace = server.workspace
    if not workspace.before.is_dir():
        raise Refused(409, "There is no model to go back to.")
    with server.jobs.paused():
        learning.go_back(workspace)
    server.bus.tell("model", {"model_version": workspace.view.version})
    return {"model_version": workspace.view.version, "can_go_back": workspace.before.is_dir()}
