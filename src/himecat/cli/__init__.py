"""The command line. Heavy imports happen inside the commands, so that help appears at once."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and end the process: 0 done, 2 for usage and bad data, 1 for our own fault.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    from himecat.cli.app import app
    from himecat.errors import HimecatError

    try:
        app(args=arguments, prog_name="himecat")
    except HimecatError as error:
        print(f"himecat: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except SystemExit as end:
        if end.code == 130:
            print("himecat: interrupted; nothing was left half-written.", file=sys.stderr)
        raise
    except Exception as error:
        if os.environ.get("HIMECAT_DEBUG"):
            raise
        print(
            f"himecat: this should not have happened: {type(error).__name__}: {error}\n"
            "Set HIMECAT_DEBUG=1 to see where, and please report it.",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    raise SystemExit(0)
