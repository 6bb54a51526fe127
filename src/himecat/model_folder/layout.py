"""What a model folder holds: the names of its files, its format version and the keys at the top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from himecat import __version__
from himecat.errors import ModelFolderError
from himecat.runtime.files import MODEL_FILE, WEIGHTS_FILE

FORMAT = "himecat-model"
VERSION = 4
HEADER_KEYS = ("format", "version", "himecat", "weights")

__all__ = [
    "FORMAT",
    "HEADER_KEYS",
    "MODEL_FILE",
    "VERSION",
    "WEIGHTS_FILE",
    "check_header",
    "damaged",
    "header",
    "require_keys",
]

_REMEDY = "copy the whole folder again, or fit the model anew"


def header(weights: bytes) -> dict[str, Any]:
    """The keys at the top of `model.json`, for a weights file of these bytes.

    Examples
    --------
    >>> top = header(b"")
    >>> list(top), top["format"], top["weights"]["bytes"]
    (['format', 'version', 'himecat', 'weights'], 'himecat-model', 0)
    """
    values = (
        FORMAT,
        VERSION,
        __version__,
        {
            "file": WEIGHTS_FILE,
            "bytes": len(weights),
            "sha256": hashlib.sha256(weights).hexdigest(),
        },
    )
    return dict(zip(HEADER_KEYS, values, strict=True))


def check_header(document: object, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Give what `model.json` holds once its top says that this version can read it.

    Raises
    ------
    ModelFolderError
        It belongs to something else, to a newer himecat, or keys are missing.

    Examples
    --------
    >>> check_header({"format": "himecat-model", "version": 5}, "model")
    Traceback (most recent call last):
    ...
    himecat.errors.ModelFolderError: model/ was written by a newer himecat (format 5); this one reads up to 4:
    pip install -U himecat.
    """
    shown = os.path.join(os.fspath(folder), "")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFolderError(f"{shown} is not a himecat model: its {MODEL_FILE} is of another kind.")
    require_keys(document, ["version"], folder)
    version = document["version"]
    if type(version) is not int or version < 1:
        raise damaged(folder, MODEL_FILE, f"the format version is {version!r}")
    if version > VERSION:
        raise ModelFolderError(
            f"{shown} was written by a newer himecat (format {version}); this one reads up to {VERSION}: "
            "pip install -U himecat."
        )
    require_keys(document, HEADER_KEYS, folder)
    weights = document["weights"]
    sound = (
        isinstance(weights, dict)
        and weights.get("file") == WEIGHTS_FILE
        and type(weights.get("bytes")) is int
        and isinstance(weights.get("sha256"), str)
    )
    if not sound:
        raise damaged(folder, MODEL_FILE, "'weights' does not describe a file")
    return document


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
    """The error for a file of a model folder that is not as it was written.

    Examples
    --------
    >>> str(damaged("model", "weights.safetensors", "its checksum is another"))
    'model/weights.safetensors is damaged (its checksum is another): copy the whole folder again, or fit
     the model anew.'
    """
    return ModelFolderError(f"{os.path.join(os.fspath(folder), file)} is damaged ({found}): {_REMEDY}.")
