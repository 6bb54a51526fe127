"""What a command reads and what it writes: no result takes the place of an input or of another result."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from himecat.cli.options import STDOUT
from himecat.errors import UsageError
from himecat.runtime.files import MODEL_FILES

# A folder of documents may hold anything; of an encoder or a dataset all files are found long before.
_MOST_FILES = 10_000
_STANDARD_OUTPUT = 1
# What a folder of results gets.
_FIGURES = (".png", ".svg")
_Identity = tuple[int, int]


def check_places(outputs: Mapping[str, Path], inputs: Iterable[str | Path]) -> None:
    """Refuse outputs that are inputs, under whatever name, and two outputs on one path.

    Parameters
    ----------
    outputs : mapping
        The option that names a file or folder to write, and that place. `-` is standard output.
    inputs : iterable of path
        Files and folders that the command reads; a folder stands for all that is in it, and a name that is no
        place for nothing.

    Raises
    ------
    UsageError
        An output is read by the command, or two outputs are one file. Links are followed; two hard links to one
        file are that file.

    Examples
    --------
    >>> check_places({"--json": Path("found.json"), "--csv": Path("./found.json")}, [])
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: --json and --csv both name found.json: name two places.
    """
    _check_each_other(outputs)
    read = [os.fspath(one) for one in inputs]
    files = {found: path for path in read for found in _identities(path)}
    standard = _identity(_STANDARD_OUTPUT)
    if standard in files:
        raise UsageError(
            f"Standard output is {files[standard]}, which this command reads: send it elsewhere."
        )
    for output in outputs.values():
        written = [output]
        if output.is_dir():
            written = [one for one in output.iterdir() if one.suffix in _FIGURES or one.name in MODEL_FILES]
        if str(output) != STDOUT and any(_identity(one) in files for one in written):
            raise UsageError(f"{output} is read by this command: name another file for the result.")


def _check_each_other(outputs: Mapping[str, Path]) -> None:
    taken: dict[object, str] = {}
    for option, output in outputs.items():
        is_standard = str(output) == STDOUT or _same_place(output, "/dev/stdout")
        found = None if is_standard else _identity(output)
        # What is not there yet has only a name; a pipe or a device may be written to twice.
        if found is None and not is_standard and os.path.exists(output):
            continue
        for key in (STDOUT if is_standard else os.path.realpath(output), found or option):
            if key in taken:
                place = "standard output" if is_standard else str(output)
                raise UsageError(f"{taken[key]} and {option} both name {place}: name two places.")
            taken[key] = option
        for other, folder in outputs.items():
            if option != other and output.suffix in _FIGURES and _same_place(output.parent, folder):
                raise UsageError(f"{option} names a picture in the folder of {other}: name another place.")


def _same_place(one: Path, other: str | Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _identity(place: int | str | Path) -> _Identity | None:
    """What tells a regular file from any other, under whatever name."""
    try:
        found = os.stat(place)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _identities(path: str) -> Iterator[_Identity]:
    """A file, or all files below a folder."""
    names: Iterable[str] = [path]
    if os.path.isdir(path):
        names = (os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)
    for number, name in enumerate(names):
        if number == _MOST_FILES:
            return
        if (found := _identity(name)) is not None:
            yield found


def check_encoder(outputs: Mapping[str, Path | None], encoder: str | os.PathLike[str] | None) -> None:
    """The folder of a model may name another one, which is read."""
    given = {option: output for option, output in outputs.items() if output is not None}
    check_places(given, [] if encoder is None else [os.fspath(encoder)])
