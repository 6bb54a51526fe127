"""Paths as they are written on a command line."""

from __future__ import annotations

from pathlib import Path


class Place(type(Path())):  # type: ignore[misc]
    """A path that knows how it was written: with a slash at its end, or as an address, `s3://...`.

    Examples
    --------
    >>> written(place("s3://bucket/out/")), written(Path("a.csv"))
    ('s3://bucket/out/', 'a.csv')
    """

    given: str


def place(given: str) -> Path:
    """Take a path from the command line as it is written.

    Examples
    --------
    >>> place("out/") == Path("out")
    True
    """
    found = Place(given)
    found.given = given
    return found


def written(path: Path) -> str:
    """A path as it was written on the command line.

    Examples
    --------
    >>> written(place("out/"))
    'out/'
    """
    return str(getattr(path, "given", path))
