"""The tree and what documents form on their own: changes of categories, the map, proposals."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from himecat.server.context import Context, context, responses

router = APIRouter(prefix="/api/v1", responses=responses(), tags=["tree"])
Server = Annotated[Context, Depends(context)]
