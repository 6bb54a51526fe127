"""For programs: place documents, explain them, and list the categories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from himecat.input.problems import Problems
from himecat.output.columns import PlacedColumns
from himecat.server import schemas as s
from himecat.server.context import Context, context, responses
from himecat.server.reasons import reasons

router = APIRouter(prefix="/api/v1", responses=responses(), tags=["programs"])
Server = Annotated[Context, Depends(context)]


@router.post("/predict", response_model=s.Predictions, responses=responses(429, 503))
async def predict(server: Server, given: s.NewDocuments) -> Any:
    """Place documents: for each an object with the columns that `himecat predict` writes to a table."""
    return await server.in_time(lambda: _predicted(server, given))


def _predicted(server: Context, given: s.NewDocuments) -> dict[str, Any]:
    view, problems = server.workspace.view, Problems()
    model = view.model
    columns = PlacedColumns(
        model.taxonomy_,
        [],
        sets=model.gives_sets,
        separator=model.joint,
        top=given.top,
        none=model.knows_nowhere,
    )
    names = [column.name for column in columns.added]
    found = list[dict[str, Any]]()
    for origins, _, placed in model.iter_assignments(given.documents, problems, best=given.top + 1):
        ids = [origin.id for origin in origins]
        rows = columns.rows(placed, ids)
        found += [
            {"id": name, **dict(zip(names, row, strict=True))} for name, row in zip(ids, rows, strict=True)
        ]
    problems.raise_errors()
    return {"model_version": view.version, "predictions": found}


@router.post("/explain", response_model=s.Explained, responses=responses(404, 429, 503))
async def explain(server: Server, given: s.ToExplain) -> Any:
    """Where a document is placed, and what in it speaks for that, or for another category."""
    return await server.in_time(lambda: _explained(server, given))


def _explained(server: Context, given: s.ToExplain) -> dict[str, Any]:
    view = server.workspace.view
    model, problems = view.model, Problems()
    found = list(model.iter_assignments([given.document], problems))
    problems.raise_errors()
    ((_, corpus, placed),) = found
    node = server.workspace.required_node(given.path) if given.path else int(placed.nodes[0])
    # The text as the model reads it: its fields one after the other.
    texts = (given.document.get(name) for name in model.fields().text)
    text = "\n".join(one for one in texts if isinstance(one, str) and one.strip())
    return {
        "path": list(placed.path(0)),
        "confidence": list(placed.confidences(0)),
        "none": None if placed.rounded_none is None else float(placed.rounded_none[0]),
        "why": reasons(model, corpus, node, text),
    }


@router.get("/labels", response_model=s.Labels)
def labels(server: Server) -> Any:
    """The paths that documents can get."""
    return {"labels": [list(path) for path in server.workspace.view.model.paths_]}
