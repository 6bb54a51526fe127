"""The files of a model folder, JSON and safetensors; whatever is wrong with them is said in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import re
import reprlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from himecat import __version__
from himecat.errors import ModelFolderError
from himecat.runtime.files import CORPUS_FILE, MODEL_FILE, MODEL_FORMAT, WEIGHTS_FILE, atomic_folder
from himecat.runtime.leftovers import recover

VERSION = 8
HEADER_KEYS = ("format", "version", "himecat", "weights", "digest")
CORPUS_KEY = "corpus"
"""Describes the file with the corpus, in the header of folders that keep it; older readers of format 5 pass over it."""
DIGEST_SINCE = 5
"""The first format whose `model.json` carries a digest of itself, and so of the weights, whose digest it holds."""

Arrays = Mapping[str, np.ndarray[Any, Any]]

# JSON writes no line break within a string: only a key of the outermost object can begin a line.
_DIGEST = re.compile(rb'\n"digest": "([0-9a-f]{64})"')
_NO_DIGEST = b"0" * 64
# How often a folder is read again that another process has replaced in the meantime.
_ATTEMPTS = 5

_CHANGED = "changed since it was written"
# Types by their names in NumPy and in safetensors, which orders arrays by them.
_WRITTEN = {
    "b1": "BOOL",
    "u1": "U8",
    "i1": "I8",
    "i2": "I16",
    "u2": "U16",
    "f2": "F16",
    "i4": "I32",
    "u4": "U32",
    "f4": "F32",
    "f8": "F64",
    "i8": "I64",
    "u8": "U64",
}
_RESERVED_NAME = "__metadata__"


def write_model(
    folder: str | os.PathLike[str],
    document: Mapping[str, Any],
    arrays: Arrays,
    *,
    corpus: Arrays | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model folder; it appears when it is complete.

    Parameters
    ----------
    folder : path
        The folder that will appear.
    document : mapping
        What JSON can hold, by key; tuples come back as lists. The keys of the header (`format`, `version`,
        `himecat`, `weights`, `corpus`, `digest`) are taken.
    arrays : mapping of str to array
        Numbers or truth values, in any memory layout and byte order.
    corpus : mapping of str to array, optional
        Arrays of a file of their own, which `read_model` does not read.
    overwrite : bool
        Replace an older model, once the new one is complete.

    Raises
    ------
    OutputError
        The folder exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_model(f"{place}/model", {"words": ["fox"]}, {"vectors": np.ones((1, 2), np.float32)})
    ...     sorted(os.listdir(f"{place}/model"))
    ['model.json', 'weights.safetensors']
    """
    taken = [key for key in (*HEADER_KEYS, CORPUS_KEY) if key in document]
    if taken:
        raise ValueError(f"the key {taken[0]!r} belongs to the header of {MODEL_FILE}")
    with atomic_folder(folder, overwrite=overwrite) as unfinished:
        weights = _written(unfinished / WEIGHTS_FILE, arrays)
        values = (MODEL_FORMAT, VERSION, __version__, weights, _NO_DIGEST.decode())
        header: dict[str, Any] = dict(zip(HEADER_KEYS, values, strict=True))
        if corpus is not None:
            header[CORPUS_KEY] = _written(unfinished / CORPUS_FILE, corpus)
        (unfinished / MODEL_FILE).write_bytes(_signed(_rendered(header | dict(document))))


def _written(file: Path, arrays: Arrays) -> dict[str, Any]:
    """Write arrays to a file; how the header describes it."""
    digest, length = hashlib.sha256(), 0
    with file.open("wb") as stream:
        for part in _packed(arrays):
            digest.update(part)
            length += stream.write(part)
    return {"file": file.name, "bytes": length, "sha256": digest.hexdigest()}


def _packed(arrays: Arrays) -> Iterator[bytes | memoryview]:
    """The parts of a safetensors file: a model that is served has no room for a second copy of itself as a whole.

    The same bytes as those of `safetensors.numpy.save`.
    """
    if _RESERVED_NAME in arrays:
        raise ValueError(f"no array can be named {_RESERVED_NAME!r} in a weights file")
    for name, array in arrays.items():
        if array.dtype.str[1:] not in _WRITTEN:
            raise TypeError(f"the array {name!r} holds {array.dtype}, and only numbers can be written")
    order = list(_WRITTEN)
    names = sorted(arrays, key=lambda name: (-order.index(arrays[name].dtype.str[1:]), name.encode()))
    header, end = {}, 0
    for name in names:
        array = arrays[name]
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": _WRITTEN[array.dtype.str[1:]],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        # Whatever the strides and the machine say: rows, the lowest byte first.
        plain = np.asarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"), order="C")
        yield plain.reshape(-1).view(np.uint8).data


def _rendered(document: Mapping[str, Any]) -> bytes:
    """One line per key: people read the top, and long vocabularies stay compact."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
        for key, value in document.items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    # Half a surrogate pair has no UTF-8; the backslash form of it is also how JSON writes it.
    return text.encode("utf-8", "backslashreplace")


def _signed(raw: bytes) -> bytes:
    """With the digest of the whole file, in which its own place is filled with zeros."""
    return raw.replace(_NO_DIGEST, hashlib.sha256(raw).hexdigest().encode(), 1)


def _is_unchanged(raw: bytes, digest: re.Match[bytes]) -> bool:
    before, after = raw[: digest.start(1)], raw[digest.end(1) :]
    return hashlib.sha256(b"".join((before, _NO_DIGEST, after))).hexdigest().encode() == digest[1]


def read_model(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Read a model folder.

    Returns
    -------
    dict
        What `model.json` holds, with the keys of its header.
    dict of str to array
        The arrays, bit by bit as they were written; they may be changed without changing the folder.

    Raises
    ------
    ModelFolderError
        There is no such folder, it is no model, it is damaged, or a newer himecat has written it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_model(f"{place}/model", {"words": ["fox"]}, {"vectors": np.ones((1, 2), np.float32)})
    ...     document, arrays = read_model(f"{place}/model")
    >>> document["words"], arrays["vectors"].tolist()
    (['fox'], [[1.0, 1.0]])
    """
    path = Path(folder)
    for _ in range(_ATTEMPTS):
        before = _identity(path)
        try:
            return _read(path, folder)
        except ModelFolderError:
            # Its files may be those of two models where another process has replaced it in between.
            if _identity(path) == before:
                raise
    return _read(path, folder)


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _read(
    path: Path, folder: str | os.PathLike[str]
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    try:
        recover(Path(os.path.realpath(path)))
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        shown = str(path).replace("\0", "\\0")
        raise ModelFolderError(f"{shown}: there is no such model folder.") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if not is_folder:
        raise ModelFolderError(f"{path} is a file: name the model folder, which holds {MODEL_FILE}.")
    raw = _bytes(path / MODEL_FILE, f"{path}/ is not a himecat model: there is no {MODEL_FILE} in it.")
    # Before anything of it is believed, its version among them.
    found = _DIGEST.search(raw)
    is_whole = found is None or _is_unchanged(raw, found)
    try:
        document = json.loads(
            raw.decode("utf-8"),
            parse_float=_finite,
            parse_constant=_finite,
            object_pairs_hook=_without_doubles,
        )
    except (RecursionError, ValueError) as error:
        raise damaged(path, MODEL_FILE, _what_is_broken(raw, error)) from None
    if not is_whole:
        raise damaged(path, MODEL_FILE, _CHANGED)
    _check_header(document, folder)
    if found is None and ("digest" in document or document["version"] >= DIGEST_SINCE):
        raise damaged(path, MODEL_FILE, "its digest is missing")
    return document, read_arrays(path, document["weights"])


def digest_of(folder: str | os.PathLike[str]) -> bytes:
    """What tells a model from any other: the digest in its `model.json`, or that of the file; empty for no model."""
    try:
        raw = (Path(folder) / MODEL_FILE).read_bytes()
    except (OSError, ValueError):
        return b""
    found = _DIGEST.search(raw)
    return hashlib.sha256(raw).digest() if found is None else found[1]


class _NotOurs(ValueError):
    """JSON that himecat never writes."""


def _finite(written: str) -> float:
    number = float(written)
    if not np.isfinite(number):
        raise _NotOurs(f"it holds the number {written[:20]}, which is not finite")
    return number


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NotOurs("a key is there twice")
    return found


def _bytes(file: Path, missing: str, expected: int | None = None) -> bytes:
    """A file's bytes; where its size is not the expected one, none of them are read."""
    try:
        with open(file, "rb", opener=_without_waiting) as stream:
            size = os.fstat(stream.fileno())
            if not stat.S_ISREG(size.st_mode):
                raise ModelFolderError(f"{file} cannot be read (it is not a file).")
            if expected is not None and size.st_size < expected:
                found = f"cut short, {size.st_size:,} of {expected:,} bytes"
                raise damaged(file.parent, file.name, found)
            if expected is not None and size.st_size > expected:
                raise damaged(file.parent, file.name, _CHANGED)
            return stream.read()
    except FileNotFoundError:
        raise ModelFolderError(missing) from None
    except OSError as error:
        raise _unreadable(file, error) from None


def _without_waiting(path: str, flags: int) -> int:
    """Open, and do not wait for somebody to write where a pipe has a file's name."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _unreadable(path: Path, error: OSError) -> ModelFolderError:
    return ModelFolderError(f"{path} cannot be read ({error.strerror or error}).")


def _what_is_broken(raw: bytes, error: RecursionError | ValueError) -> str:
    if not raw.rstrip().endswith(b"}"):
        return f"cut short after {len(raw):,} bytes"
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8 at byte {error.start + 1}"
    if isinstance(error, _NotOurs):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON at line {error.lineno}, column {error.colno}"
    return "this JSON cannot be read"


def _check_header(document: object, folder: str | os.PathLike[str]) -> None:
    """Refuse what belongs to something else, to a newer himecat, or lacks keys."""
    shown = os.path.join(os.fspath(folder), "")
    if not isinstance(document, dict) or document.get("format") != MODEL_FORMAT:
        raise ModelFolderError(f"{shown} is not a himecat model: its {MODEL_FILE} is of another kind.")
    require_keys(document, ["version"], folder)
    version = document["version"]
    if type(version) is not int or version < 1:
        raise damaged(folder, MODEL_FILE, f"the format version is {reprlib.repr(version)}")
    if version > VERSION:
        raise ModelFolderError(
            f"{shown} was written by a newer himecat (format {reprlib.repr(version)}); this one reads up to {VERSION}: "
            "pip install -U himecat."
        )
    require_keys(document, HEADER_KEYS[:-1], folder)
    for key, name in (("weights", WEIGHTS_FILE), (CORPUS_KEY, CORPUS_FILE)):
        described = document.get(key)
        sound = (
            isinstance(described, dict)
            and described.get("file") == name
            and type(described.get("bytes")) is int
            and isinstance(described.get("sha256"), str)
        )
        if key in document and not sound:
            raise damaged(folder, MODEL_FILE, f"{key!r} does not describe a file")


def read_arrays(path: Path, described: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file of a model folder, once it is certain that they are those that its header describes."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    name = described["file"]
    raw = _bytes(
        path / name,
        f"{path}/ is not complete: there is no {name} in it; copy the whole folder again.",
        described["bytes"],
    )
    if hashlib.sha256(raw).hexdigest() != described["sha256"]:
        raise damaged(path, name, _CHANGED)
    try:
        arrays = load(raw)
    except (SafetensorError, KeyError, ValueError):
        raise damaged(path, name, "its contents are no arrays") from None
    # Older releases of safetensors give views into the bytes, which cannot be changed.
    return {name: np.require(array, requirements="W") for name, array in arrays.items()}


def require_keys(document: Mapping[str, Any], keys: Iterable[str], folder: str | os.PathLike[str]) -> None:
    """Make sure that `model.json` has every one of `keys`.

    Examples
    --------
    >>> require_keys({"tree": {}}, ["tree", "words"], "model")
    Traceback (most recent call last):
    ...
    himecat.errors.ModelFolderError: model/model.json is damaged ('words' is missing): copy the whole folder
    again, or fit the model anew.
    """
    missing = [repr(key) for key in keys if key not in document]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise damaged(folder, MODEL_FILE, f"{', '.join(missing)} {verb} missing")


def damaged(folder: str | os.PathLike[str], file: str, found: str) -> ModelFolderError:
    """The error for a file of a model folder that is not as it was written."""
    place = os.path.join(os.fspath(folder), file)
    return ModelFolderError(
        f"{place} is damaged ({found}): copy the whole folder again, or fit the model anew."
    )
