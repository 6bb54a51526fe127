"""What people say of documents: actions, their undoing, and answers as files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from himecat.server import schemas as s
from himecat.server.actions import ACCEPT, UNDO, Conflict, Nothing
from himecat.server.context import Context, context, responses
from himecat.server.effects import done, told
from himecat.server.events import MOST_LISTENERS
from himecat.server.refused import Refused

router = APIRouter(prefix="/api/v1", responses=responses(), tags=["actions"])
Server = Annotated[Context, Depends(context)]
_SAMPLE = 5


@router.post(
    "/actions", response_model=s.Done, responses=responses(404, 503, s409={"model": s.ConflictError})
)
def act(server: Server, given: s.NewAction) -> Any:
    """Say something of documents; it is on the disk before this answers.

    Where the last action on a document is not the `expected` one, nothing is done, and the others' answers come back.
    With `seen`, such documents and those that others have answered since that action stay, and are named in `left`.
    """
    workspace = server.workspace
    try:
        if given.kind == UNDO:
            action = workspace.log.undo(given.client)
        else:
            if not given.rows:
                raise Refused(422, "Name the rows of the documents.")
            paths = workspace.paths_for(given.kind, given.rows, given.path)
            path = None if given.path is None else tuple(given.path)
            expected = _expected(server, given)
            if given.seen is not None:
                some, left = workspace.log.act_on_free(
                    given.client, given.kind, paths, given.seen, expected, path
                )
                return done(server, some, left)
            action = workspace.log.act(given.client, given.kind, paths, expected, path)
    except Nothing as nothing:
        raise Refused(409, str(nothing)) from None
    except Conflict as conflict:
        rows = {workspace.row_of[name]: name for name in conflict.documents if name in workspace.row_of}
        answers = {str(row): workspace.answer(name) for row, name in rows.items()}
        first = next(iter(rows), None)
        answer = None if first is None else answers[str(first)]
        raise Refused(409, str(conflict), row=first, answer=answer, answers=answers) from None
    return done(server, action)


def _expected(server: Context, given: s.NewAction) -> dict[str, int | None]:
    ids, found = server.workspace.ids, {}
    for row, action in (given.expected or {}).items():
        if not row.isdecimal() or int(row) >= len(ids):
            raise Refused(404, f"There is no document {row}.")
        found[ids[int(row)]] = action
    return found


@router.post("/actions/accept-category", response_model=s.Accepted, responses=responses(404, 409, 503))
def accept_category(server: Server, given: s.AcceptCategory) -> Any:
    """Accept all documents of a category that the model is sure of; with `preview`, only say which."""
    workspace = server.workspace
    if given.model_version not in (None, workspace.view.version):
        raise Refused(409, "The model has changed since the preview: look at it again.")
    rows = workspace.sure_rows(given.node, given.min_confidence)
    mean = float(workspace.view.confidence[rows].mean()) if len(rows) else None
    sample = rows[:: max(1, len(rows) // _SAMPLE)][:_SAMPLE].tolist()
    found = {"count": len(rows), "mean_confidence": mean, "sample": workspace.listed(sample), "actions": []}
    found["model_version"] = workspace.view.version
    if not given.preview and len(rows):
        # Who is answered between these lines stays as that says.
        paths = workspace.paths_for(ACCEPT, rows.tolist(), None)
        action, left = workspace.log.act_on_free(given.client, ACCEPT, paths, 0, dict.fromkeys(paths))
        found["actions"] = done(server, action, left)["actions"]
        found["count"] = len(rows) - len(left)
    return found


@router.get("/actions", response_model=list[s.LoggedAction])
def actions(server: Server, since: Annotated[int, Query(ge=0, lt=2**62)] = 0) -> Any:
    """The actions after one, the oldest first, 1,000 at most."""
    return [told(server, one) for one in server.workspace.log.since(since)]


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **responses(429)},
)
async def events(server: Server) -> StreamingResponse:
    """What happens from now on, as server-sent events: `action`, `job`, `model`, `tree`."""
    if server.bus.listeners >= MOST_LISTENERS:
        raise Refused(429, "Too many pages are open.")
    return StreamingResponse(
        server.bus.stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


Format = Literal["jsonl", "csv", "xlsx", "label-studio"]


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "application/x-ndjson": {},
                "text/csv": {},
                "application/json": {},
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {},
            }
        },
        **responses(),
    },
)
def export(server: Server, format: Format = "jsonl", what: Literal["answers", "all"] = "answers") -> Any:
    """Answers, or all documents, in a form that `himecat correct` reads."""
    from himecat.server.transfer import TYPES, exported

    name = f"{server.workspace.folder.name}-{what}.{TYPES[format][0]}"
    quoted = "".join(one if one.isascii() and (one.isalnum() or one in ".-_") else "_" for one in name)
    return StreamingResponse(
        exported(server.workspace, format, what),
        media_type=TYPES[format][1],
        headers={"Content-Disposition": f'attachment; filename="{quoted}"'},
    )


@router.post(
    "/import",
    response_model=s.Imported,
    responses=responses(409, 429, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_(
    server: Server,
    request: Request,
    format: Format = "jsonl",
    client: Annotated[str, Query(min_length=1, max_length=100)] = "import",
    replace: Annotated[bool, Query(description="Replace answers that differ.")] = False,
) -> Any:
    """Answers from a file in the body, as `himecat correct` reads them; undone as one."""
    from himecat.server.transfer import imported

    body = await request.body()
    return await server.in_time(lambda: imported(server, body, format, client, replace))
