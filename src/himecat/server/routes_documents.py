"""What the page looks at: the model, the tree, documents and metadata values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query

from himecat.server import schemas as s
from himecat.server import summary
from himecat.server.context import Context, context, responses

router = APIRouter(prefix="/api/v1", responses=responses(), tags=["documents"])
Server = Annotated[Context, Depends(context)]
MOST_LISTED = 200
"""So many documents may a list have at once."""


@router.get("/model", response_model=s.About)
def about(server: Server) -> Any:
    """The model that is served."""
    return summary.about(server.workspace)


@router.get("/tree", response_model=s.Tree)
def tree(server: Server) -> Any:
    """All categories, with counts, mean confidence and estimated accuracy."""
    return summary.tree_of(server.workspace)


@router.get("/documents", response_model=s.Documents, responses=responses(404))
def documents(
    server: Server,
    node: Annotated[int | None, Query(ge=0, lt=2**31, description="At or below this category.")] = None,
    value: Annotated[
        str | None,
        Query(max_length=2_000, pattern="^[^:]+:", description="With this metadata value, type:name."),
    ] = None,
    query: Annotated[str | None, Query(max_length=1_000, description="With these words.")] = None,
    sort: Literal["order", "useful", "unsure", "disputed", "suspect", "none"] = "order",
    state: Literal["all", "open", "done"] = "all",
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=0, le=MOST_LISTED)] = 50,
) -> Any:
    """Documents, filtered and sorted."""
    rows = server.workspace.rows(node=node, value=value, query=query, sort=sort, state=state)
    some = rows[offset : offset + limit].tolist()
    return {"total": len(rows), "offset": offset, "rows": server.workspace.listed(some)}


@router.get("/documents/{row}", response_model=s.WholeDocument, responses=responses(404))
def document(
    server: Server,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    path: Annotated[
        list[str] | None, Query(max_length=64, description="Explain this category instead.")
    ] = None,
) -> Any:
    """A document with its whole text, other categories it may belong to, and why it is where it is."""
    return server.workspace.document(row, path)


@router.get("/values", response_model=list[s.Value])
def values(
    server: Server,
    type: Annotated[str, Query(max_length=1_000, description="The metadata type.")],
    query: Annotated[str, Query(max_length=1_000)] = "",
) -> Any:
    """The most frequent values of a metadata type with a text in them."""
    return [{"value": value, "count": count} for value, count in server.workspace.store.values(type, query)]
