"""Bounds on input: what exceeds one is refused with a sentence that names the bound and how to raise it.

They keep a small file from taking the memory of the machine. They hold for a whole process and the processes it
starts, which is why an environment variable carries them.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

from himecat.errors import UsageError, spelled

VARIABLE = "HIMECAT_BOUNDS"
"""Environment variable with bounds of one's own: `line=64MB,depth=500`."""

_UNITS = {"": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Bounds:
    """How large the parts of the input may be.

    Attributes
    ----------
    line : int
        Bytes of a line, of a cell or value of a table, and of a small file (tree, keywords).
    ratio : int
        Bytes that each byte of a compressed file may become; asked once 16 MB have come out of it.
    depth : int
        Levels of the tree.
    label : int
        Characters of a category's name.
    nodes : int
        Nodes of the tree, once every category stands below each of its parents.
    memory : int
        Bytes that a fit or a prediction may need by its numbers of nodes and documents; 0: what the machine has.

    Examples
    --------
    >>> Bounds().depth
    200
    """

    line: int = 16 << 20
    ratio: int = 200
    depth: int = 200
    label: int = 1_000
    nodes: int = 250_000
    memory: int = 0


_IN_BYTES = ("line", "memory")
NAMES = tuple(field.name for field in fields(Bounds))


def bounds() -> Bounds:
    """The bounds that hold now.

    Examples
    --------
    >>> bounds().line
    16777216
    """
    return _parsed(os.environ.get(VARIABLE, ""))


def set_bounds(**values: int | str) -> Bounds:
    """Change bounds for this process and those it starts; sizes may have a unit (`"64MB"`).

    Parameters
    ----------
    **values
        The fields of `Bounds`; those not named stay as they are.

    Raises
    ------
    UsageError
        There is no such bound, or its value is not a whole number or size of at least 1.

    Examples
    --------
    >>> before = bounds()
    >>> set_bounds(line="64MB").line
    67108864
    >>> set_bounds(**vars(before)) == before
    True
    """
    given = {name: str(value) for name, value in (asdict(bounds()) | values).items()}
    written = ",".join(f"{name}={value}" for name, value in given.items())
    found = _parsed(written)
    os.environ[VARIABLE] = written
    return found


def over(name: str, needed: int) -> str:
    """The end of a sentence about something too large: the bound, and what raises it.

    Examples
    --------
    >>> over("depth", 345)
    'the bound is 200 (himecat.set_bounds(depth=345) raises it)'
    >>> over("line", 20 << 20)
    "the bound is 16 MB (himecat.set_bounds(line='20MB') raises it)"
    """
    bound: int = getattr(bounds(), name)
    raised: Any = needed
    if name in _IN_BYTES:
        raised = f"{-(-needed // (1 << 20))}MB"
    shown = size(bound) if name in _IN_BYTES else f"{bound:,}"
    return f"the bound is {shown} ({raising(name, raised)} raises it)"


def raising(name: str, value: int | str) -> str:
    """What sets a bound, in the words of whoever is told.

    Examples
    --------
    >>> raising("memory", "900MB")
    "himecat.set_bounds(memory='900MB')"
    """
    return spelled(f"--bound {name}={value}", f"himecat.set_bounds({name}={value!r})")


def size(number: int) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> size(16 << 20), size(900), size(3 << 29)
    ('16 MB', '900 bytes', '1.5 GB')
    """
    if number < 1 << 20:
        return f"{number:,} bytes"
    megabytes = number / (1 << 20)
    return f"{megabytes:,.0f} MB" if megabytes < 1024 else f"{megabytes / 1024:,.1f} GB"


def in_bytes(written: str) -> int | None:
    """The bytes of a size such as 64MB; None where it is no size.

    Examples
    --------
    >>> in_bytes("2GB"), in_bytes("1.5 k"), in_bytes("much")
    (2147483648, 1536, None)
    """
    found = _SIZE.fullmatch(written.strip())
    unit = _UNITS.get(found[2].lower()) if found else None
    return int(float(found[1]) * unit) if found and unit else None


@lru_cache(maxsize=8)
def _parsed(written: str) -> Bounds:
    values: dict[str, int] = {}
    for part in filter(None, map(str.strip, written.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in NAMES or not equals:
            raise UsageError(
                f"A bound is NAME=VALUE with one of the names {', '.join(NAMES)}, not {part[:80]!r}."
            )
        number = in_bytes(value)
        if number is None or number < (name != "memory"):
            raise UsageError(
                f"The bound {name} must be a whole number or a size such as 64MB, at least 1, not {value[:80]!r}."
            )
        values[name] = number
    return Bounds(**values)
