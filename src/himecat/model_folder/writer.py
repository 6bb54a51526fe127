"""Writing a model folder, whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from himecat.model_folder.layout import HEADER_KEYS, MODEL_FILE, WEIGHTS_FILE, header
from himecat.runtime.files import atomic_folder

_KINDS = "biuf"
_RESERVED_NAME = "__metadata__"


def write_model(
    folder: str | os.PathLike[str],
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    *,
    overwrite: bool = False,
) -> None:
    """Write a model folder; it appears when it is complete.

    Parameters
    ----------
    folder : path
        The folder that will appear.
    document : mapping
        What JSON can hold, by key; tuples come back as lists. The keys of the header (`format`, `version`,
        `himecat`, `weights`) are taken.
    arrays : mapping of str to array
        Numbers or truth values, in any memory layout and byte order.
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
    taken = [key for key in HEADER_KEYS if key in document]
    if taken:
        raise ValueError(f"the key {taken[0]!r} belongs to the header of {MODEL_FILE}")
    with atomic_folder(folder, overwrite=overwrite) as unfinished:
        weights = _packed(arrays)
        (unfinished / WEIGHTS_FILE).write_bytes(weights)
        (unfinished / MODEL_FILE).write_bytes(_rendered(header(weights) | dict(document)))


def _packed(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    from safetensors.numpy import save

    if _RESERVED_NAME in arrays:
        raise ValueError(f"no array can be named {_RESERVED_NAME!r} in a weights file")
    plain: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"the array {name!r} holds {array.dtype}, and only numbers can be written")
        # safetensors writes memory as it lies and calls it rows, whatever the strides say.
        plain[name] = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    return bytes(save(plain))


def _rendered(document: Mapping[str, Any]) -> bytes:
    """One line per key: people read the top, and long vocabularies stay compact."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
        for key, value in document.items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    # Half a surrogate pair has no UTF-8; the backslash form of it is also how JSON writes it.
    return text.encode("utf-8", "backslashreplace")
