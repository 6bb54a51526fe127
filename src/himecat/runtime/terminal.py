"""What is shown to people: all that goes to a terminal passes `printable`, to a spreadsheet `harmless_cell`.

A name in somebody's file may hold characters that move the cursor, change the title of the window or reverse the
line. They are spelled out, so that a person sees what is there and the terminal obeys nobody's data.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# Both sets of control characters, what changes the direction of a line, line separators, and half characters.
_INVISIBLE = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb"
_STEERING = re.compile(rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_NOT_AS_IT_IS = re.compile(rf"[{_INVISIBLE}]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
LONGEST_LINE = 2_000
"""Characters of a message; what is longer loses its middle."""


def printable(shown: str) -> str:
    r"""A text as it can be shown: characters that steer a terminal are spelled out; tabs and line ends stay.

    Examples
    --------
    >>> print(printable("red\x1b[31m"))
    red\x1b[31m
    """
    return _STEERING.sub(_spelled, shown)


def one_line(message: str) -> str:
    r"""A message as one printable line of bounded length.

    Examples
    --------
    >>> print(one_line("the id 'a\nb' is taken."))
    the id 'a\nb' is taken.
    >>> len(one_line("x" * 5_000))
    2000
    """
    line = printable(message).replace("\n", "\\n").replace("\t", "\\t")
    if len(line) <= LONGEST_LINE:
        return line
    # What was found stands at the start, what to do about it at the end.
    end = LONGEST_LINE // 4
    return f"{line[: LONGEST_LINE - end - 5]} ... {line[-end:]}"


def plain_json(value: Any, indent: int | None = None) -> str:
    r"""JSON with every character that steers a terminal, or has no UTF-8, in its escaped form.

    Examples
    --------
    >>> print(plain_json({"name": "caf\xe9 \x9b31m"}))
    {"name": "café \u009b31m"}
    >>> plain_json([float("nan"), 1.5])
    '[null, 1.5]'
    """
    encode = (
        _LINE
        if indent is None
        else json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent).encode
    )
    try:
        written = encode(value)
    except ValueError:
        written = encode(_without_nan(value))
    if _NOT_AS_IT_IS.search(written) is None:
        return written
    # Such characters stand inside strings only: JSON itself is written in ASCII.
    return _NOT_AS_IT_IS.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _without_nan(value: Any) -> Any:
    """JSON has no word for a figure that does not exist but null."""
    if isinstance(value, Mapping):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def harmless_cell(value: Any) -> Any:
    """A value as a spreadsheet may be given it: a text that would be taken as a formula gets an apostrophe before it.

    Numbers stay numbers, also those that were written as texts.

    Examples
    --------
    >>> harmless_cell("=cmd|' /C calc'!A0"), harmless_cell("-0.5"), harmless_cell("a = b"), harmless_cell(-3)
    ("'=cmd|' /C calc'!A0", '-0.5', 'a = b', -3)
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS):
        return value
    return value if _NUMBER.fullmatch(value) else f"'{value}"


def original_cell(value: str) -> str:
    """What `harmless_cell` was given.

    Examples
    --------
    >>> original_cell("'=a"), original_cell("'tis")
    ('=a', "'tis")
    """
    return value[1:] if value[:1] == "'" and harmless_cell(value[1:]) == value else value


def text(shown: str, style: str = "") -> Text:
    """A text for Rich, with nothing in it that steers a terminal.

    Examples
    --------
    >>> text("red\\x1b[31m").plain
    'red\\\\x1b[31m'
    """
    from rich.text import Text

    return Text(printable(shown), style)


def console(stream: TextIO | None = None, **options: Any) -> Console:
    """A console of Rich that shows texts as they are: no markup, no emoji codes, no colours for numbers.

    Parameters
    ----------
    stream : text stream, optional
        Standard output by default.
    **options
        Further arguments of `rich.console.Console`.

    Examples
    --------
    >>> console(width=40).print("[bold]a\\x1b[31m", soft_wrap=True)
    [bold]a\\x1b[31m
    """
    from rich.console import Console
    from rich.segment import Segment

    class Guarded(Console):
        """The last to see a text before it is written."""

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or _STEERING.search(segment.text) is None:
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return Guarded(file=stream, markup=False, emoji=False, highlight=False, **options)


def tell(message: str, prefix: str = "") -> None:
    """Write a message to standard error, one line after the other; a reader that is gone stops nothing."""
    try:
        for line in message.split("\n"):
            sys.stderr.write(f"{prefix}{one_line(line)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def write(content: str) -> None:
    """Write a result to standard output; the last line is ended.

    Examples
    --------
    >>> write("a\\x1b[2J")
    a\\x1b[2J
    """
    sys.stdout.write(printable(content) + "\n" * (not content.endswith("\n")))


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
