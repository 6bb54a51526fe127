"""What the API takes and gives of the tree, the map and proposals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from himecat.server.schemas import Given, Job, Name, Path


class TreeChange(Given):
    """A change of the tree; which fields it has depends on `op`, as for `HiMeCat.plan_tree`."""

    op: Literal["rename", "move", "merge", "split", "add", "delete"]
    path: Path | None = None
    name: Name | None = None
    to: Path | None = None
    into: Path | None = None
    parent: Path | None = None
    children: Annotated[dict[Name, list[Name]] | None, Field(max_length=1_000)] = None
    keywords: Annotated[list[Name] | None, Field(max_length=1_000)] = None
    documents: Annotated[list[Name] | None, Field(max_length=10_000, description="Ids of examples.")] = None
    labels: Literal["parent", "drop"] | None = None


class TreeChanges(Given):
    """Changes of the tree, in order; with `preview` they are only described."""

    changes: Annotated[
        list[TreeChange],
        Field(
            min_length=1,
            max_length=100,
            examples=[[{"op": "rename", "path": ["waste"], "name": "refuse"}]],
        ),
    ]
    preview: bool = True


class TreeChanged(BaseModel):
    """What happens to labels and documents; where it takes longer, the job that does it."""

    said: list[str]
    needs_refit: bool
    done: bool
    job: Job | None
    tree_version: int


class MapNode(BaseModel):
    """Where a category lies on the map."""

    node: int
    x: float
    y: float


class MapInfo(BaseModel):
    """The categories of the map; each edge is two points, that of the parent and that of the child."""

    documents: int
    model_version: int
    tree_version: int
    nodes: list[MapNode]
    leaves: list[MapNode]
    edges: list[list[list[float]]]


class Proposal(BaseModel):
    """A group of documents that may be a category of its own; `rows` are its most typical documents."""

    id: int
    name: str
    words: list[str]
    size: int
    rows: list[int]
    parent: list[str]
    precision: float | None


class AcceptProposal(Given):
    """Make a proposal a category, with its most typical documents as examples."""

    name: Annotated[str, Field(min_length=1, max_length=1_000, examples=["chess"])]
    parent: Path | None = None
    preview: bool = False
