"""What an action changes, and how others learn of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from himecat.server.actions import Action
from himecat.server.context import Context
from himecat.server.summary import counts


def done(server: Context, action: Action | None, left: Sequence[str] = ()) -> dict[str, Any]:
    """Have an action count, tell the other pages, and say what it changed, and which documents it `left` alone."""
    workspace = server.workspace
    alone = {"left": [workspace.row_of[name] for name in left], "last": workspace.log.last}
    if action is None:
        return {"actions": [], "done": 0, "rows": [], "tree": [], **alone}
    before = counts(workspace)
    rows = workspace.refresh(action.documents)
    after = counts(workspace)
    server.bus.tell("action", told(server, action))
    changed = [{"node": int(node), "count": int(after[node])} for node in (before != after).nonzero()[0]]
    return {"actions": [action.id], "done": len(rows), "rows": rows[:1_000], "tree": changed, **alone}


def told(server: Context, action: Action) -> dict[str, Any]:
    """An action as others learn of it; of very many documents the first thousand are named."""
    row_of = server.workspace.row_of
    rows = [row_of[name] for name in action.documents[:1_000] if name in row_of]
    path = None if action.path is None else list(action.path)
    return {
        "id": action.id,
        "kind": action.kind,
        "rows": rows,
        "path": path,
        "by": action.by,
        "at": action.at,
        "undoes": action.undoes,
    }
