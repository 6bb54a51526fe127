"""`himecat serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from himecat.cli import options as o
from himecat.errors import MissingExtraError, UsageError

_TOKEN = "HIMECAT_TOKEN"
_SHORTEST_TOKEN = 16


def serve(
    model: o.Model,
    *,
    documents: Annotated[
        Path | None,
        o.option(
            o.INPUT,
            "Documents to show; else those of the last time, or the words that the model keeps.",
            "--documents",
            metavar="DOCS",
        ),
    ] = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    online: o.Online = False,
    threads: o.Threads = None,
    host: Annotated[
        str,
        o.option(
            o.OUTPUT,
            "Address to listen on; another than this machine's own needs --token.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, o.option(o.OUTPUT, "Port to listen on; 0: any that is free.", min=0, max=65535, metavar="N")
    ] = 8765,
    token: Annotated[
        str | None,
        o.option(
            o.OUTPUT,
            f"What a client has to know, at least {_SHORTEST_TOKEN} characters; or {_TOKEN}.",
            metavar="TEXT",
        ),
    ] = None,
    no_browser: Annotated[bool, o.option(o.OUTPUT, "Do not open the page.", "--no-browser")] = False,
    quiet: o.Quiet = False,
) -> None:
    """Show a model on a page: its tree, its documents and why they are where they are; correct it, and have it learn.

    Answers are kept in MODEL.review.sqlite. The page and the API for programs listen on this machine only.

    Example: `himecat serve model --documents papers.jsonl`
    """
    token = token or os.environ.get(_TOKEN) or None
    try:
        from himecat.server.run import check_address, serve_forever
    except ModuleNotFoundError as error:
        raise MissingExtraError.for_package(error.name or "fastapi", "server", "The page") from None
    check_address(host, token)
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise UsageError(f"The token needs at least {_SHORTEST_TOKEN} characters.")
    from himecat.runtime.progress import Progress

    fitted = None
    if online:
        fitted = o.open_model(model, online=True, quiet=quiet)
    serve_forever(
        model,
        documents,
        model=fitted,
        host=host,
        port=port,
        token=token,
        skip_bad=skip_bad,
        threads=threads,
        browser=not no_browser,
        progress=Progress(quiet=quiet),
    )
