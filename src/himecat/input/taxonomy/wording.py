"""Names in messages: however long they are, the message stays readable and its advice in sight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from himecat.input.problems import clipped

_LONGEST = 120
_MOST = 10


def listed(items: Sequence[str], joint: str = "and", most: int = _MOST) -> str:
    """Names in a sentence; of very many the first ones.

    Examples
    --------
    >>> listed(["ant", "bee", "cat"]), listed(["ant", "bee", "cat"], "or", most=1)
    ('ant, bee and cat', 'ant or one of 2 more')
    """
    if len(items) > most + 1:
        more = f"{len(items) - most:,} more"
        return f"{', '.join(map(clipped, items[:most]))} {joint} {'one of ' * (joint == 'or')}{more}"
    *head, last = map(clipped, items)
    return f"{', '.join(head)} {joint} {last}" if head else last


def shown_path(names: Iterable[str]) -> str:
    """A path `a/b/c` for a message.

    Examples
    --------
    >>> shown_path(["science", "physics"])
    'science/physics'
    """
    # Enough to be clipped, without joining a path of megabytes.
    first = "/".join(clipped(name) for name in islice(names, 2 * _LONGEST))
    return clipped(first)
