"""Names in messages: however long they are, the message stays readable and its advice in sight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

_LONGEST = 120
_MOST = 10


def clipped(text: str, longest: int = _LONGEST) -> str:
    """A text that is too long without its middle.

    Examples
    --------
    >>> clipped("physics"), clipped("abcdefghij", 7)
    ('physics', 'abc...j')
    """
    if len(text) <= longest:
        return text
    end = (longest - 3) // 3
    return f"{text[: longest - 3 - end]}...{text[len(text) - end :]}"


def quoted(name: object) -> str:
    """A value as Python writes it, its middle left out where it is long.

    Examples
    --------
    >>> quoted("physics"), quoted("x" * 999) == quoted("x" * 9999), len(quoted("x" * 999))
    ("'physics'", True, 120)
    """
    # What is written takes at least as many characters as the text has, so this much of it is enough.
    return clipped(repr(clipped(name, 2 * _LONGEST) if isinstance(name, str) else name))


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
