"""Reading a model folder; whatever is wrong with it is said in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from himecat.errors import ModelFolderError
from himecat.model_folder.layout import MODEL_FILE, WEIGHTS_FILE, check_header, damaged


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
    >>> from himecat.model_folder.writer import write_model
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_model(f"{place}/model", {"words": ["fox"]}, {"vectors": np.ones((1, 2), np.float32)})
    ...     document, arrays = read_model(f"{place}/model")
    >>> document["words"], arrays["vectors"].tolist()
    (['fox'], [[1.0, 1.0]])
    """
    path = Path(folder)
    _require_folder(path)
    document = check_header(_document(path), path)
    return document, _arrays(path, document["weights"])


def _require_folder(path: Path) -> None:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFolderError(f"{path}: there is no such model folder.") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if not is_folder:
        raise ModelFolderError(f"{path} is a file: name the model folder, which holds {MODEL_FILE}.")


def _document(path: Path) -> object:
    try:
        raw = (path / MODEL_FILE).read_bytes()
    except FileNotFoundError:
        raise ModelFolderError(f"{path}/ is not a himecat model: there is no {MODEL_FILE} in it.") from None
    except OSError as error:
        raise _unreadable(path / MODEL_FILE, error) from None
    try:
        return json.loads(raw.decode("utf-8"))
    except (RecursionError, ValueError) as error:
        raise damaged(path, MODEL_FILE, _what_is_broken(raw, error)) from None


def _what_is_broken(raw: bytes, error: RecursionError | ValueError) -> str:
    if not raw.rstrip().endswith(b"}"):
        return f"cut short after {len(raw):,} bytes"
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8 at byte {error.start + 1}"
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON at line {error.lineno}, column {error.colno}"
    return "this JSON cannot be read"


def _arrays(path: Path, weights: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        raw = (path / WEIGHTS_FILE).read_bytes()
    except FileNotFoundError:
        raise ModelFolderError(
            f"{path}/ is not complete: there is no {WEIGHTS_FILE} in it; copy the whole folder again."
        ) from None
    except OSError as error:
        raise _unreadable(path / WEIGHTS_FILE, error) from None
    if len(raw) < weights["bytes"]:
        raise damaged(path, WEIGHTS_FILE, f"cut short, {len(raw):,} of {weights['bytes']:,} bytes")
    if len(raw) != weights["bytes"] or hashlib.sha256(raw).hexdigest() != weights["sha256"]:
        raise damaged(path, WEIGHTS_FILE, "changed since it was written")
    try:
        arrays = load(raw)
    except (SafetensorError, KeyError, ValueError):
        raise damaged(path, WEIGHTS_FILE, "its contents are no arrays") from None
    # Older releases of safetensors give views into the bytes, which cannot be changed.
    return {name: np.require(array, requirements="W") for name, array in arrays.items()}


def _unreadable(path: Path, error: OSError) -> ModelFolderError:
    return ModelFolderError(f"{path} cannot be read ({error.strerror or error}).")
