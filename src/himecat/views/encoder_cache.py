"""A cache of text vectors beside the corpus, and the column reader that fills it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from himecat.errors import OutputError, UsageError
from himecat.input.documents import Document
from himecat.input.problems import Problems
from himecat.input.records import Source
from himecat.runtime.files import write_atomic
from himecat.runtime.progress import Progress, silent
from himecat.views.matrices import unit_in_place
from himecat.views.text_encoder import TextEncoder

COLUMN = "encoder"
"""The name of the encoder's column in a corpus."""
CACHE_FOLDER = ".himecat-cache"
"""The folder beside a file of documents."""
CACHE_VARIABLE = "HIMECAT_CACHE"
"""The environment variable that names one folder for all vectors."""
PART_TEXTS = 65_536
"""A file that holds this many vectors is full and never written again; saving stays cheap however many."""
SAVE_EVERY = 2_000
"""An interrupted run loses the work of this many texts at most."""

# Half precision: the direction changes by less than a thousandth of a degree, and the file is half as large.
_Half = np.float16
_KEY_BYTES = 16
_CHUNK_TEXTS = 64
_TEXTS_SORTED_AT_ONCE = 2048
# Unknown texts are encoded at the end, after all documents were checked, or when so many wait.
_MAX_WAITING = 32 * _TEXTS_SORTED_AT_ONCE

HalfArray = npt.NDArray[np.float16]


class VectorCache:
    """Vectors of texts by the hash of the text, kept in the files of one folder; made by `open_cache`.

    As a context manager it saves what is new at the end, also after a failure or Ctrl-C. A file is written
    whole or not at all. Where nothing can be written, that is said once and the work goes on.

    Parameters
    ----------
    folder : Path or None
        Where the files are; None keeps nothing.
    fingerprint : str
        That of the encoder; each encoder has its own files.
    warn : callable, optional
        Receives sentences about files that are damaged or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with VectorCache(Path(folder), "0123abcd", print) as cache:
    ...         cache.add([bytes(16)], np.ones((1, 3), dtype=np.float16))
    ...     bytes(16) in VectorCache(Path(folder), "0123abcd", print)
    True
    """

    def __init__(
        self, folder: Path | None, fingerprint: str, warn: Callable[[str], None] = lambda sentence: None
    ) -> None:
        """Read which texts are known; the vectors are read when they are asked for."""
        self.dimension: int | None = None
        self.folder = folder
        self._fingerprint = fingerprint
        self._warn = warn
        self._keeps = folder is not None
        self._parts: list[Callable[[], HalfArray]] = []
        self._place: dict[bytes, tuple[int, int]] = {}
        # The part that is not full yet, and the numbers in its name and in that of the next.
        self._fresh: dict[bytes, HalfArray] = {}
        self._number = 0
        self._next_number = 0
        self._unsaved = 0
        if folder is not None:
            for path in sorted(folder.glob(f"{fingerprint}-*.safetensors")):
                self._read(path)
            if not self._fresh:
                self._begin_part()

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.save()

    def __contains__(self, key: bytes) -> bool:
        return key in self._fresh or key in self._place

    def fill(self, vectors: npt.NDArray[np.float32], rows: Sequence[int], keys: Sequence[bytes]) -> None:
        """Write the vectors of known keys into the given rows."""
        by_part: dict[int, tuple[list[int], list[int]]] = {}
        for row, key in zip(rows, keys, strict=True):
            if key in self._fresh:
                vectors[row] = self._fresh[key]
            else:
                part, position = self._place[key]
                into, chosen = by_part.setdefault(part, ([], []))
                into.append(row)
                chosen.append(position)
        for part, (into, chosen) in by_part.items():
            vectors[into] = self._parts[part]()[chosen]

    def add(self, keys: Sequence[bytes], vectors: HalfArray) -> None:
        """Remember new vectors; they are saved now and then, and at the end."""
        self.dimension = vectors.shape[1]
        if not self._keeps:
            return
        self._fresh.update(zip(keys, vectors, strict=True))
        self._unsaved += len(keys)
        if len(self._fresh) >= PART_TEXTS:
            self.save()
            self._close_part(list(self._fresh), np.stack(list(self._fresh.values())))
            self._begin_part()
        elif self._unsaved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write what is new."""
        if not self._unsaved or not self._keeps or self.folder is None:
            return
        from safetensors.numpy import save

        keys = np.frombuffer(b"".join(self._fresh), dtype=np.uint8).reshape(-1, _KEY_BYTES)
        vectors = np.stack(list(self._fresh.values()))
        content = save({"keys": keys, "vectors": vectors}, {"crc32": _checksum(keys, vectors)})
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.folder.name == CACHE_FOLDER and not (self.folder / ".gitignore").exists():
                write_atomic(self.folder / ".gitignore", "*\n")
            write_atomic(self._path(self._number), content, "The encoder's vectors")
        except OSError as error:
            self._keeps = False
            said = str(error) if isinstance(error, OutputError) else f"{self.folder}: {error.strerror}."
            self._warn(f"the encoder's vectors are not kept for the next time. {said}")
        self._unsaved = 0

    def _path(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{self._fingerprint}-{number:04}.safetensors"

    def _read(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        number = path.stem.rpartition("-")[2]
        if not number.isdecimal():
            return
        try:
            file: Any = safe_open(path, framework="numpy")
            hashes, vectors = file.get_tensor("keys"), file.get_tensor("vectors")
            agrees = (
                (file.metadata() or {}).get("crc32") == _checksum(hashes, vectors)
                and hashes.shape == (len(vectors), _KEY_BYTES)
                and vectors.dtype == _Half
                and self.dimension in (None, vectors.shape[1])
            )
        except (OSError, SafetensorError, ValueError, TypeError):
            agrees = False
        if not agrees:
            self._warn(f"{path} is damaged: it is left out, and the texts in it are encoded again.")
            with suppress(OSError):
                path.unlink()
            return
        self.dimension = vectors.shape[1]
        keys = [row.tobytes() for row in hashes]
        if len(keys) >= PART_TEXTS or self._fresh:
            # The file stays open, so that it is the same one even if another run replaces it meanwhile.
            self._close_part(keys, lambda: file.get_tensor("vectors"))
        else:
            self._fresh = dict(zip(keys, vectors, strict=True))
            self._number = int(number)
        self._next_number = int(number) + 1

    def _begin_part(self) -> None:
        self._fresh = {}
        self._number = self._next_number
        self._next_number += 1

    def _close_part(self, keys: list[bytes], vectors: HalfArray | Callable[[], HalfArray]) -> None:
        part = len(self._parts)
        self._parts.append(vectors if callable(vectors) else lambda: vectors)
        self._place.update((key, (part, position)) for position, key in enumerate(keys))


def open_cache(encoder: TextEncoder, source: Source, problems: Problems) -> VectorCache:
    """The vectors known for documents from `source`, in the folder `.himecat-cache` beside the file.

    The environment variable HIMECAT_CACHE names another folder. Without it, documents that do not come from
    a file have no place beside them, and nothing is kept.

    Examples
    --------
    >>> encoder = TextEncoder("some/model", None, "0123abcd")
    >>> bytes(16) in open_cache(encoder, ["A red hen."], Problems())
    False
    """
    folder: Path | None = None
    named = os.environ.get(CACHE_VARIABLE, "").strip()
    if named:
        folder = Path(named).expanduser()
    # A pipe or a device has no folder that is there again the next time.
    elif isinstance(source, str | os.PathLike) and os.path.isfile(source):
        folder = Path(os.fsdecode(source)).parent / CACHE_FOLDER
    return VectorCache(folder, encoder.fingerprint, lambda sentence: problems.warning("", sentence))


@dataclass(frozen=True)
class EncoderReader:
    """Fills the column `encoder` of a corpus with the encoder's unit vectors.

    Parameters
    ----------
    encoder : TextEncoder
        What `open_encoder` gives.
    beside : path, optional
        The file beside which the vectors are kept, where it is not the source itself.

    Examples
    --------
    >>> EncoderReader(TextEncoder("some/model", None, "0123abcd")).name
    'encoder'
    """

    encoder: TextEncoder
    beside: str | os.PathLike[str] | None = None
    name: ClassVar[str] = COLUMN
    fields: ClassVar[tuple[str, ...]] = ()

    @contextmanager
    def open(self, source: Source, problems: Problems, progress: Progress) -> Iterator[EncodedRows]:
        """Open the vectors known for a source; new ones are saved at the end."""
        place = source if self.beside is None else self.beside
        with open_cache(self.encoder, place, problems) as cache:
            yield EncodedRows(self.encoder, cache, progress)


class EncodedRows:
    """Texts, one after the other, become the rows of an array; only unknown texts are held until then.

    Examples
    --------
    >>> class Lengths(TextEncoder):
    ...     def check_installed(self): pass
    ...     def encode(self, texts): return np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> encoder = Lengths("lengths", None, "0123abcd")
    >>> rows = EncodedRows(encoder)
    >>> rows.append("")
    >>> rows.append("A red hen.")
    >>> rows.finish().round(2).tolist()
    [[0.0, 0.0], [1.0, 0.1...]]
    """

    def __init__(
        self, encoder: TextEncoder, cache: VectorCache | None = None, progress: Progress | None = None
    ) -> None:
        """Start without any row."""
        self._encoder = encoder
        self._cache = VectorCache(None, encoder.fingerprint) if cache is None else cache
        self._progress = progress or silent()
        self._start()

    def _start(self) -> None:
        self._keys: list[bytes] = []
        self._unknown: dict[bytes, int] = {}
        self._waiting: list[tuple[bytes, str]] = []
        self._encoded: list[HalfArray] = []

    def extend(self, documents: Iterable[Document]) -> None:
        """Take the texts of many documents."""
        for document in documents:
            self.append(document.text)

    def append(self, text: str) -> None:
        """Take the next text."""
        if not text or text.isspace():
            self._keys.append(b"")
            return
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
        self._keys.append(key)
        if key in self._unknown or key in self._cache:
            return
        if not self._unknown:
            # Better now than after all documents are read.
            self._encoder.check_installed()
        self._unknown[key] = len(self._unknown)
        self._waiting.append((key, text))
        if len(self._waiting) >= _MAX_WAITING:
            self._encode_waiting()

    def finish(self) -> npt.NDArray[np.float32]:
        """Encode what is unknown and give a unit vector per text, zeros for an empty one; then start anew."""
        self._encode_waiting()
        if self._cache.dimension is None:  # all texts are empty
            self._cache.dimension = self._encoder.encode([]).shape[1]
        vectors = np.zeros((len(self._keys), self._cache.dimension), dtype=np.float32)
        if self._unknown:
            new = [row for row, key in enumerate(self._keys) if key in self._unknown]
            vectors[new] = np.concatenate(self._encoded)[[self._unknown[self._keys[row]] for row in new]]
        known = [row for row, key in enumerate(self._keys) if key and key not in self._unknown]
        self._cache.fill(vectors, known, [self._keys[row] for row in known])
        self._start()
        return unit_in_place(vectors)

    def _encode_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        with self._progress.stage("Encoding texts", total=len(waiting)) as stage:
            for start in range(0, len(waiting), _TEXTS_SORTED_AT_ONCE):
                some = waiting[start : start + _TEXTS_SORTED_AT_ONCE]
                # Texts of similar length together, so that short ones are not padded to the longest.
                order = sorted(range(len(some)), key=lambda position: len(some[position][1]))
                encoded: HalfArray | None = None
                for first in range(0, len(order), _CHUNK_TEXTS):
                    chunk = order[first : first + _CHUNK_TEXTS]
                    vectors = self._encoder.encode([some[position][1] for position in chunk]).astype(_Half)
                    if self._cache.dimension not in (None, vectors.shape[1]):
                        raise UsageError(
                            f"The encoder {self._encoder.name} gives {vectors.shape[1]} numbers per text and its "
                            f"kept vectors have {self._cache.dimension}, it is another model now: delete the "
                            f"folder {self._cache.folder}."
                        )
                    if encoded is None:
                        encoded = np.empty((len(some), vectors.shape[1]), dtype=_Half)
                        self._encoded.append(encoded)
                    encoded[chunk] = vectors
                    self._cache.add([some[position][0] for position in chunk], vectors)
                    stage.advance(len(chunk))


def _checksum(keys: npt.NDArray[np.uint8], vectors: HalfArray) -> str:
    return f"{zlib.crc32(vectors.tobytes(), zlib.crc32(keys.tobytes())):08x}"
