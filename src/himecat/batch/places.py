"""Files here and elsewhere: plain paths, and the addresses (`s3://`, `gs://`, ...) that fsspec reads and writes."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from himecat.errors import DataError, MissingExtraError, OutputError, UsageError

# Where what is written appears when it is complete, and renaming would copy it.
_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "r2"}
PARQUET = ".parquet"


class Stamp(NamedTuple):
    """What tells whether a file has changed.

    Examples
    --------
    >>> Stamp(5, "1") == Stamp(5, "2")
    False
    """

    size: int
    version: str


def is_remote(path: str) -> bool:
    """Whether this is an address of fsspec.

    Examples
    --------
    >>> is_remote("s3://bucket/part.parquet"), is_remote("data/part.parquet")
    (True, False)
    """
    return "://" in path


def filesystem(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it.

    Examples
    --------
    >>> filesystem("memory://folder/file")[1]
    '/folder/file'
    """
    protocol = path.partition("://")[0]
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError.for_package("fsspec", "fsspec", f"{protocol}://") from None
    try:
        found = fsspec.core.url_to_fs(path)
    except ImportError as error:
        # Which package it is, fsspec says itself.
        raise MissingExtraError(f"{path} cannot be reached: {_first_line(error)}.") from None
    except ValueError as error:
        raise UsageError(f"{path} cannot be reached: {_first_line(error)}.") from None
    return found[0], str(found[1])


def whole(path: str) -> str:
    """The path from the root, or the address as it is.

    Examples
    --------
    >>> whole("s3://bucket/out"), os.path.isabs(whole("out"))
    ('s3://bucket/out', True)
    """
    return path if is_remote(path) else os.path.abspath(path)


def join(folder: str, name: str) -> str:
    """The path of a file in a folder.

    Examples
    --------
    >>> join("s3://bucket/out/", "a")
    's3://bucket/out/a'
    """
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


def found_files(path: str) -> list[str] | None:
    """The files that an argument stands for: a glob, or a folder of Parquet; None for any other, which is one source.

    Files come in the order of their names. Names that begin with `_` or `.` are left out of folders, as other
    programs do.

    Examples
    --------
    >>> found_files("letters.csv") is None
    True
    """
    if is_remote(path):
        return _remote_files(path)
    if os.path.isdir(path):
        found = []
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name[0] not in "_."]
            found += [os.path.join(folder, name) for name in names if _is_part(name)]
        return sorted(found) or None
    if not glob.has_magic(path) or os.path.exists(path):
        return None
    matched = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if not matched:
        raise DataError(f"No file matches {path}.")
    return matched


def _remote_files(path: str) -> list[str]:
    files, inner = filesystem(path)
    with reading(path):
        if glob.has_magic(inner):
            matched = [name for name in files.glob(inner) if not files.isdir(name)]
        elif files.isdir(inner):
            matched = [name for name in files.find(inner) if _is_part(name.rpartition("/")[2])]
        else:
            return [path]
    if not matched:
        raise DataError(f"No file matches {path}.")
    return sorted(str(files.unstrip_protocol(name)) for name in matched)


def _is_part(name: str) -> bool:
    return name[0] not in "_." and name.lower().endswith(PARQUET)


def stamp(path: str) -> Stamp:
    """The size of a file, and what changes when it is written anew.

    Examples
    --------
    >>> stamp(os.devnull).size
    0
    """
    with reading(path):
        if not is_remote(path):
            found = os.stat(path)
            return Stamp(found.st_size, str(found.st_mtime_ns))
        files, inner = filesystem(path)
        told = files.info(inner)
        version = next(
            (told[name] for name in ("ETag", "etag", "mtime", "LastModified", "created") if told.get(name)),
            "",
        )
        return Stamp(int(told.get("size") or 0), str(version))


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The bytes of a file, wherever it is.

    Examples
    --------
    >>> with opened(os.devnull) as stream:
    ...     stream.read()
    b''
    """
    with reading(path):
        if is_remote(path):
            files, inner = filesystem(path)
            stream = files.open(inner, "rb")
        else:
            stream = open(path, "rb")  # noqa: SIM115
    with stream:
        yield stream


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Say in a sentence what keeps a file from being read.

    Examples
    --------
    >>> with reading("a"):
    ...     raise FileNotFoundError
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: a: the file is not there.
    """
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: the file is not there.") from None
    except PermissionError:
        raise DataError(f"{path}: there is no permission to read it.") from None
    except ValueError as error:
        # What fsspec says of a pattern.
        raise UsageError(f"{path}: {_first_line(error)}.") from None
    except OSError as error:
        raise DataError(f"{path}: reading failed ({error.strerror or _first_line(error)}).") from None


@contextmanager
def fetched(folder: str) -> Iterator[str]:
    """A folder on this machine with the files of another, while the block runs; one that is here is itself.

    Examples
    --------
    >>> with fetched("model") as here:
    ...     here
    'model'
    """
    if not is_remote(folder):
        yield folder
        return
    here = tempfile.mkdtemp(prefix="himecat-")
    try:
        files, inner = filesystem(folder)
        with reading(folder):
            for name in files.find(inner, maxdepth=1):
                files.get_file(name, os.path.join(here, name.rpartition("/")[2]))
        yield here
    finally:
        shutil.rmtree(here, ignore_errors=True)


def put(file: str, path: str) -> None:
    """Copy a file to an address, where it appears when it is complete.

    Examples
    --------
    >>> put(os.devnull, "memory://nothing")
    """
    files, inner = filesystem(path)
    protocols = {files.protocol} if isinstance(files.protocol, str) else {*files.protocol}
    beside = inner if protocols & _STORES else f"{inner.rpartition('/')[0]}/.{inner.rpartition('/')[2]}.part"
    try:
        files.makedirs(inner.rpartition("/")[0] or "/", exist_ok=True)
        files.put_file(file, beside)
        if beside != inner:
            files.mv(beside, inner)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or _first_line(error)}.") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
