"""A cache of text vectors beside the corpus, and the column reader that fills it."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.input.documents import Document
from himecat.input.formats import Source
from himecat.input.problems import Problems
from himecat.runtime.progress import Progress
from himecat.views.matrices import unit_in_place
from himecat.views.text_encoder import TextEncoder

COLUMN = "encoder"
"""The name of the encoder's column in a corpus."""
CACHE_FOLDER = ".himecat-cache"
"""The folder beside a file of documents."""
CACHE_VARIABLE = "HIMECAT_CACHE"
"""The environment variable that names one folder for all vectors."""

# Half precision: the direction changes by less than a thousandth of a degree, and the file is half as large.
_Half = np.float16
_CHUNK_TEXTS = 64
# So many texts are sorted by length, and their vectors saved together.
_TEXTS_SORTED_AT_ONCE = 2048
# Unknown texts are encoded at the end, after all documents were checked, or when so many wait.
_MAX_WAITING = 32 * _TEXTS_SORTED_AT_ONCE


class VectorCache:
    """Vectors of texts by the hash of the text, in an SQLite file of one folder.

    Where nothing can be written, that is said once and the work goes on; a damaged file is made anew.

    Parameters
    ----------
    folder : Path or None
        Where the file is; None keeps nothing.
    fingerprint : str
        That of the encoder; each encoder has its own file.
    warn : callable, optional
        Receives sentences about a file that is damaged or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with VectorCache(Path(folder), "0123abcd", print) as cache:
    ...         cache.add({b"key": b"some vector"})
    ...     with VectorCache(Path(folder), "0123abcd", print) as cache:
    ...         cache.find(b"key")
    b'some vector'
    """

    def __init__(
        self, folder: Path | None, fingerprint: str, warn: Callable[[str], None] = lambda sentence: None
    ) -> None:
        """Open the file where there is one; it is made with the first vector."""
        self.folder = folder
        self.dimension: int | None = None
        self._warn = warn
        self._warned = False
        self._keeps = folder is not None
        self._path = (folder or Path()) / f"{fingerprint}.sqlite"
        self._file: sqlite3.Connection | None = None
        if self._keeps and self._path.is_file():
            self._open()

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def find(self, key: bytes) -> bytes | None:
        """The vector of a key; None where it is not known."""
        if self._file is None:
            return None
        try:
            found = self._file.execute("SELECT vector, crc32 FROM vectors WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error:
            return None
        if found is None or zlib.crc32(found[0]) == found[1]:
            return found and bytes(found[0])
        self._warn_of_damage()
        return None

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Save new vectors, all of them or none."""
        if not self._keeps or self.folder is None or not vectors:
            return
        try:
            if self._file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                if self.folder.name == CACHE_FOLDER:
                    (self.folder / ".gitignore").write_text("*\n")
                self._open()
            if self._file is not None:
                with self._file as file:
                    file.executemany(
                        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                        ((key, vector, zlib.crc32(vector)) for key, vector in vectors.items()),
                    )
        except (OSError, sqlite3.Error) as error:
            self._give_up(getattr(error, "strerror", None) or error)

    def _give_up(self, reason: object) -> None:
        self._keeps = False
        self._warn(f"the encoder's vectors are not kept for the next time. {self.folder}: {reason}.")

    def _open(self) -> None:
        # Documents may be read ahead in another thread; only one uses the file at a time.
        try:
            self._file = sqlite3.connect(self._path, timeout=60, check_same_thread=False)
            ((said,),) = self._file.execute("PRAGMA quick_check(1)").fetchall()
            if said != "ok":
                raise sqlite3.DatabaseError(said)
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB, crc32 INTEGER)"
            )
            for (size,) in self._file.execute("SELECT length(vector) FROM vectors LIMIT 1"):
                self.dimension = size // _Half().itemsize
        except sqlite3.OperationalError as error:  # locked, or no permission
            self._give_up(error)
        except sqlite3.DatabaseError:
            self._warn_of_damage()
            if self._file is not None:
                self._file.close()
            self._file = None
            for path in (self._path, self._path.with_name(f"{self._path.name}-journal")):
                path.unlink(missing_ok=True)

    def _warn_of_damage(self) -> None:
        if not self._warned:
            self._warn(f"{self._path} is damaged: the texts in it are encoded again.")
        self._warned = True


@dataclass(frozen=True)
class EncoderReader:
    """Fills the column `encoder` of a corpus with the encoder's unit vectors.

    Vectors are kept in the folder `.himecat-cache` beside the file of documents, or in the one that the environment
    variable HIMECAT_CACHE names. Without it, those of documents that do not come from a file are not kept.

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
        """Open the vectors known for a source; new ones are added to them."""
        place = source if self.beside is None else self.beside
        folder: Path | None = None
        if named := os.environ.get(CACHE_VARIABLE, "").strip():
            folder = Path(named).expanduser()
        # A pipe or a device has no folder that is there again the next time.
        elif isinstance(place, str | os.PathLike) and os.path.isfile(place):
            folder = Path(os.fsdecode(place)).parent / CACHE_FOLDER
        warn = partial(problems.warning, "")
        with VectorCache(folder, self.encoder.fingerprint, warn) as cache:
            yield EncodedRows(self.encoder, cache, progress)


class EncodedRows:
    """Texts, one after the other, become the rows of an array; only unknown texts are held until then.

    Examples
    --------
    >>> from himecat.runtime.progress import silent
    >>> class Lengths(TextEncoder):
    ...     def check_installed(self): pass
    ...     def encode(self, texts): return np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> encoder = Lengths("lengths", None, "0123abcd")
    >>> rows = EncodedRows(encoder, VectorCache(None, "0123abcd"), silent())
    >>> rows.append("")
    >>> rows.append("A red hen.")
    >>> rows.finish().round(2).tolist()
    [[0.0, 0.0], [1.0, 0.1...]]
    """

    def __init__(self, encoder: TextEncoder, cache: VectorCache, progress: Progress) -> None:
        """Start without any row."""
        self._encoder = encoder
        self._cache = cache
        self._progress = progress
        self._keys: list[bytes] = []
        self._vectors: dict[bytes, bytes] = {}
        self._waiting: list[tuple[bytes, str]] = []

    def extend(self, documents: Iterable[Document]) -> None:
        """Take the texts of many documents."""
        for document in documents:
            self.append(document.text)

    def append(self, text: str) -> None:
        """Take the next text."""
        if not text or text.isspace():
            self._keys.append(b"")
            return
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self._keys.append(key)
        if key in self._vectors:
            return
        found = self._cache.find(key)
        # The empty place of an unknown text is filled when it is encoded.
        self._vectors[key] = found or b""
        if found:
            return
        if not self._waiting:
            # Better now than after all documents are read.
            self._encoder.check_installed()
        self._waiting.append((key, text))
        if len(self._waiting) >= _MAX_WAITING:
            self._encode_waiting()

    def finish(self) -> npt.NDArray[np.float32]:
        """Encode what is unknown and give a unit vector per text, zeros for an empty one; then start anew."""
        self._encode_waiting()
        if self._cache.dimension is None:  # all texts are empty
            self._cache.dimension = self._encoder.encode([]).shape[1]
        rows = np.zeros((len(self._keys), self._cache.dimension), dtype=np.float32)
        for row, key in enumerate(self._keys):
            if key:
                rows[row] = np.frombuffer(self._vectors[key], _Half)
        self._keys, self._vectors = [], {}
        return unit_in_place(rows)

    def _encode_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        with self._progress.stage("Encoding texts", total=len(waiting)) as stage:
            for start in range(0, len(waiting), _TEXTS_SORTED_AT_ONCE):
                some = waiting[start : start + _TEXTS_SORTED_AT_ONCE]
                # Texts of similar length together, so that short ones are not padded to the longest.
                some.sort(key=lambda one: len(one[1]))
                done: dict[bytes, bytes] = {}
                try:
                    for first in range(0, len(some), _CHUNK_TEXTS):
                        chunk = some[first : first + _CHUNK_TEXTS]
                        vectors = self._encode([text for _, text in chunk])
                        done.update(
                            (key, row.tobytes()) for (key, _), row in zip(chunk, vectors, strict=True)
                        )
                        stage.advance(len(chunk))
                finally:  # Ctrl-C keeps what is done
                    self._cache.add(done)
                self._vectors.update(done)

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float16]:
        vectors = self._encoder.encode(texts).astype(_Half)
        if self._cache.dimension not in (None, vectors.shape[1]):
            raise UsageError(
                f"The encoder {self._encoder.name} gives {vectors.shape[1]} numbers per text and its kept "
                f"vectors have {self._cache.dimension}, it is another model now: delete the folder "
                f"{self._cache.folder}."
            )
        self._cache.dimension = vectors.shape[1]
        return vectors
