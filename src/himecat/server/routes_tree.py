"""The tree and what documents form on their own: changes of categories, the map, proposals."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path
from fastapi.responses import Response

from himecat.server import learning
from himecat.server import schemas_tree as s
from himecat.server.context import Context, context, responses
from himecat.server.placing import KEPT_WORDS
from himecat.server.routes_jobs import queued
from himecat.teaching.tree_changes import same_shape

router = APIRouter(prefix="/api/v1", responses=responses(), tags=["tree"])
Server = Annotated[Context, Depends(context)]


@router.post("/tree/changes", response_model=s.TreeChanged, responses=responses(404, 409, 429, 503))
def change(server: Server, given: s.TreeChanges) -> Any:
    """Rename, move, merge, split, add or delete categories; with `preview`, only say what will happen.

    Where only names change it is done when this answers, else by a job. `POST /model/back` takes it back.
    """
    changes = [one.model_dump(exclude_none=True) for one in given.changes]
    return changed(server, changes, given.preview)


def changed(server: Context, changes: list[dict[str, Any]], preview: bool) -> dict[str, Any]:
    """Changes of the tree, described or done."""
    workspace = server.workspace
    with nullcontext() if preview else server.jobs.paused():
        view, documents = workspace.view, _examples(server, changes)
        plan = view.model.plan_tree(changes, documents or None, placed=view.placed.nodes.astype(np.int64))
        found = {"said": list(plan.said), "needs_refit": plan.needs_refit, "done": False, "job": None}
        if preview:
            pass
        elif not plan.needs_refit and same_shape(view.tree, plan.tree, plan.nodes):
            learning.change_names(workspace, plan)
            server.bus.tell("tree", {"tree_version": workspace.tree_version})
            found["done"] = True
        else:
            found["job"] = queued(server, "tree", learning.change_tree, (changes, documents))
    return {**found, "tree_version": workspace.tree_version}


@router.get("/map/info", response_model=s.MapInfo)
def map_info(server: Server) -> Any:
    """Where categories lie on the map, and the edges of the tree between them."""
    view = server.workspace.view
    tree, places = view.tree, np.round(view.placed.places.astype(np.float64), 5).tolist()
    nodes = [{"node": node, "x": x, "y": y} for node, (x, y) in enumerate(places)]
    return {
        "documents": len(view.placed),
        "model_version": view.version,
        "tree_version": server.workspace.tree_version,
        "nodes": nodes,
        "leaves": [nodes[leaf] for leaf in tree.leaves],
        "edges": [[places[tree.parents[node]], places[node]] for node in range(1, len(tree))],
    }


@router.get(
    "/map",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}, **responses()},
)
def map_points(server: Server) -> Response:
    """The documents on the map, little-endian: x and y of each as float32, the leaves as uint16, confidence as uint8.

    A leaf is its position in the `leaves` of `/map/info`; 255 is certain.
    """
    view = server.workspace.view
    leaf = np.maximum(view.tree.leaf_position[view.placed.best[:, 0]], 0)
    sure = np.round(np.clip(view.confidence, 0, 1) * 255)
    body = b"".join(
        (
            view.placed.points.astype("<f4").tobytes(),
            np.minimum(leaf, 65_535).astype("<u2").tobytes(),
            sure.astype("u1").tobytes(),
        )
    )
    return Response(body, media_type="application/octet-stream")


def _examples(server: Context, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The documents that changes name as examples, where their texts are known."""
    workspace = server.workspace
    if workspace.source == KEPT_WORDS:
        return []
    names = {name for one in changes for name in one.get("documents", ())}
    names |= {name for one in changes for ids in one.get("children", {}).values() for name in ids}
    rows = sorted(workspace.row_of[name] for name in names if name in workspace.row_of)
    found = []
    for start in range(0, len(rows), 500):
        stored = workspace.store.documents(rows[start : start + 500])
        found += [workspace.record(one) for one in stored]
    return found


@router.get("/proposals", response_model=list[s.Proposal], responses=responses(429, 503))
async def proposals(server: Server) -> Any:
    """Groups of documents that fit nowhere, as proposals for new categories; made when they are first asked for."""
    return await server.in_time(server.proposals.listed)


@router.post(
    "/proposals/{number}/accept", response_model=s.TreeChanged, responses=responses(404, 409, 429, 503)
)
def accept_proposal(
    server: Server, number: Annotated[int, Path(ge=0, lt=2**31)], given: s.AcceptProposal
) -> Any:
    """Make a proposal a category: the same as adding one with these documents as examples."""
    change = {**server.proposals.get(number)["change"], "name": given.name}
    if given.parent is not None:
        change["parent"] = given.parent
    return changed(server, [change], given.preview)
