"""One SQLite file beside a model: documents with their texts, where they were placed, what people did, and jobs."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.errors import DataError, HimecatError, OutputError

ENDING = ".review.sqlite"
"""What the name of the file ends in; it begins as that of the model folder."""

_SCHEMA_VERSION = "1"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT, text TEXT NOT NULL, metadata TEXT NOT NULL, label TEXT
);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='documents', content_rowid='row');
CREATE TABLE IF NOT EXISTS metadata_values (number INTEGER PRIMARY KEY, type TEXT, value TEXT, count INTEGER);
CREATE INDEX IF NOT EXISTS value_names ON metadata_values (type, value);
CREATE TABLE IF NOT EXISTS value_rows (number INTEGER, row INTEGER, PRIMARY KEY (number, row)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS placements (
    model TEXT, name TEXT, array BLOB, PRIMARY KEY (model, name)
);
CREATE TABLE IF NOT EXISTS actions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT, kind TEXT, path TEXT, at TEXT, undoes INTEGER
);
CREATE TABLE IF NOT EXISTS action_documents (
    action INTEGER, document TEXT, path TEXT, before INTEGER, PRIMARY KEY (action, document)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, state TEXT, stage TEXT, progress REAL, result TEXT, error TEXT,
    at TEXT
);
"""
_WORD = re.compile(r"\w+")
# A shorter beginning of a word would match half of the corpus.
_LEAST_PREFIX = 4
# Answers to so many searches are kept: a list is asked for part by part.
_SEARCHES = 32
# Commits between two copies of the log into the file, which would hold up the commit that did it.
_COMMITS = 500


class StoredDocument(NamedTuple):
    """A document as it is kept; `label` is what its source says, as it was written there."""

    row: int
    id: str
    title: str | None
    text: str
    metadata: dict[str, list[str]]
    label: Any = None


def store_path(model: str | os.PathLike[str]) -> Path:
    """The file that belongs to a model folder.

    Examples
    --------
    >>> store_path("models/letters/").name
    'letters.review.sqlite'
    """
    folder = Path(os.path.realpath(model))
    return folder.with_name(folder.name + ENDING)


class Store:
    """The file, opened by one server at a time; any thread may read and write.

    Whatever `writing` has left is on the disk: the log is written ahead and synchronised at every commit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "model.review.sqlite")
    ...     store.fill([StoredDocument(0, "a", None, "A red fox.", {"tags": ["wild"]})])
    ...     found = store.search("fox").tolist(), store.rows_with("tags", "wild").tolist(), store.ids()
    ...     store.close()
    >>> found
    ([0], [0], ['a'])
    """

    def __init__(self, path: str | os.PathLike[str], *, alone: bool = True) -> None:
        self.path = Path(path)
        self._lock, self._local = threading.RLock(), threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._commits = 0
        self._searched: dict[str, npt.NDArray[np.int64]] = {}
        self._guard = _only_one(self.path) if alone else None
        try:
            self._writer = self._connection()
            self._writer.executescript(_SCHEMA)
            found = self.fact("schema")
        except sqlite3.Error as error:
            self.close()
            raise unusable(self.path, error) from None
        if found not in (None, _SCHEMA_VERSION):
            self.close()
            raise DataError(f"{self.path} was written by another version of himecat (schema {found}).")
        try:
            self.set_facts({"schema": _SCHEMA_VERSION})
        except HimecatError:
            self.close()
            raise

    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        with self._lock:
            self._opened.append(connection)
        return connection

    @property
    def reader(self) -> sqlite3.Connection:
        """The connection of this thread."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connection()
        return found

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: on the disk when the block ends well, else undone. Other writers wait."""
        with self._lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
                self._commits += 1
                if self._commits % _COMMITS == 0:
                    threading.Thread(target=self._copy_log, daemon=True).start()
            except BaseException as error:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.IntegrityError):
                    raise unusable(self.path, error) from error
                raise

    def _copy_log(self) -> None:
        """Copy the log into the file, so that it does not grow for ever; commits go on in the meantime."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.path, timeout=1)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file; nobody may ask it anything afterwards."""
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
            if self._guard is not None:
                os.close(self._guard)
                self._guard = None

    # -- facts -----------------------------------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """What was last noted under a name."""
        found = self.reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Note facts by name."""
        with self.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    # -- documents -------------------------------------------------------------------------------------

    def fill(self, documents: Iterable[StoredDocument], batch: int = 5_000) -> None:
        """Take the place of the documents of before; what people said of them stays, by their ids.

        Until all are there, the file says that it has none.
        """
        self.set_facts({"documents": None})
        numbers: dict[tuple[str, str], int] = {}
        counts: list[int] = []
        with self._lock:
            self._searched = {}
            self._writer.execute("PRAGMA wal_autocheckpoint=1000")
            for table in ("documents", "metadata_values", "value_rows", "placements"):
                self._writer.execute(f"DELETE FROM {table}")
            count, waiting = 0, list[StoredDocument]()
            for document in documents:
                waiting.append(document)
                if len(waiting) == batch:
                    count += self._add(waiting, numbers, counts)
                    waiting = []
            count += self._add(waiting, numbers, counts)
            with self.writing() as connection:
                connection.executemany(
                    "INSERT INTO metadata_values VALUES (?, ?, ?, ?)",
                    ((number, *name, counts[number]) for name, number in numbers.items()),
                )
                connection.execute("INSERT INTO words(words) VALUES('rebuild')")
                connection.execute("INSERT OR REPLACE INTO facts VALUES ('documents', ?)", (str(count),))
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._writer.execute("PRAGMA wal_autocheckpoint=0")

    def _add(
        self, documents: Sequence[StoredDocument], numbers: dict[tuple[str, str], int], counts: list[int]
    ) -> int:
        pairs: list[tuple[int, int]] = []
        rows = []
        for one in documents:
            for kind, values in one.metadata.items():
                for value in dict.fromkeys(values):
                    number = numbers.setdefault((kind, value), len(numbers))
                    counts.extend([0] * (number + 1 - len(counts)))
                    counts[number] += 1
                    pairs.append((number, one.row))
            label = None if one.label is None else json.dumps(one.label, default=str)
            rows.append((one.row, one.id, one.title, one.text, json.dumps(one.metadata), label))
        with self.writing() as connection:
            try:
                connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                raise DataError(
                    "Two documents have the same id: give every document an id of its own."
                ) from None
            connection.executemany("INSERT INTO value_rows VALUES (?, ?)", pairs)
        return len(rows)

    def ids(self) -> list[str]:
        """The ids of all documents, by row."""
        return [name for (name,) in self.reader.execute("SELECT id FROM documents ORDER BY row")]

    def documents(self, rows: Sequence[int]) -> list[StoredDocument]:
        """Documents in the given order."""
        marks = ",".join("?" * len(rows))
        found = {
            row: StoredDocument(row, name, title, text, json.loads(metadata), _plain(label))
            for row, name, title, text, metadata, label in self.reader.execute(
                f"SELECT row, id, title, text, metadata, label FROM documents WHERE row IN ({marks})",
                list(rows),
            )
        }
        return [found[row] for row in rows if row in found]

    def iter_documents(self, size: int = 2_000) -> Iterator[StoredDocument]:
        """All documents in order; writers need not wait."""
        start = 0
        while True:
            found = self.reader.execute(
                "SELECT row, id, title, text, metadata, label FROM documents WHERE row >= ? ORDER BY row LIMIT ?",
                (start, size),
            ).fetchall()
            for row, name, title, text, metadata, label in found:
                yield StoredDocument(row, name, title, text, json.loads(metadata), _plain(label))
            if len(found) < size:
                return
            start = found[-1][0] + 1

    def search(self, query: str) -> npt.NDArray[np.int64]:
        """Rows of the documents with all words of a query, of the last one at least its beginning."""
        words = _WORD.findall(query)[:32]
        if not words:
            return np.zeros(0, dtype=np.int64)
        wanted = " ".join(f'"{word}"' for word in words) + "*" * (len(words[-1]) >= _LEAST_PREFIX)
        if (ready := self._searched.get(wanted)) is not None:
            return ready
        found = self.reader.execute("SELECT rowid FROM words WHERE words MATCH ?", (wanted,)).fetchall()
        rows = np.sort(np.fromiter((row for (row,) in found), dtype=np.int64, count=len(found)))
        with self._lock:
            while len(self._searched) >= _SEARCHES:
                del self._searched[next(iter(self._searched))]
            self._searched[wanted] = rows
        return rows

    def rows_with(self, kind: str, value: str) -> npt.NDArray[np.int64]:
        """Rows of the documents with a metadata value."""
        found = self.reader.execute(
            "SELECT row FROM value_rows JOIN metadata_values USING (number) WHERE type = ? AND value = ? ORDER BY row",
            (kind, value),
        ).fetchall()
        return np.fromiter((row for (row,) in found), dtype=np.int64, count=len(found))

    def values(self, kind: str, query: str = "", limit: int = 50) -> list[tuple[str, int]]:
        """The most frequent values of a metadata type that have a text in them."""
        like = "%" + re.sub(r"([\\%_])", r"\\\1", query) + "%"
        return self.reader.execute(
            "SELECT value, count FROM metadata_values WHERE type = ? AND value LIKE ? ESCAPE '\\' "
            "ORDER BY count DESC, value LIMIT ?",
            (kind, like, limit),
        ).fetchall()

    # -- placements ------------------------------------------------------------------------------------

    def save_arrays(
        self, model: str, arrays: Mapping[str, npt.NDArray[Any]], keep: Sequence[str] = ()
    ) -> None:
        """Keep arrays of a model, and those of the models to `keep`."""
        packed = []
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.save(stream, array, allow_pickle=False)
            packed.append((model, name, stream.getvalue()))
        kept = [model, *keep]
        with self.writing() as connection:
            connection.execute(
                f"DELETE FROM placements WHERE model NOT IN ({','.join('?' * len(kept))})", kept
            )
            connection.executemany("INSERT OR REPLACE INTO placements VALUES (?, ?, ?)", packed)

    def load_arrays(self, model: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a model; none where there are none."""
        found = self.reader.execute("SELECT name, array FROM placements WHERE model = ?", (model,))
        return {name: np.load(io.BytesIO(array), allow_pickle=False) for name, array in found}


def unusable(path: Path, error: sqlite3.Error) -> HimecatError:
    """What a user can do about an error of SQLite: the disk is in the way, or the file is damaged.

    Examples
    --------
    >>> print(unusable(Path("model.review.sqlite"), sqlite3.OperationalError("database or disk is full")))
    model.review.sqlite cannot be written (database or disk is full): is the disk full, or the folder read-only?
    """
    if isinstance(error, sqlite3.OperationalError):
        return OutputError(f"{path} cannot be written ({error}): is the disk full, or the folder read-only?")
    return DataError(
        f"{path} is damaged ({error}): move it away, or put a copy in its place; all answers are in it."
    )


def _plain(label: str | None) -> Any:
    return None if label is None else json.loads(label)


def _only_one(path: Path) -> int | None:
    """Hold a file locked as long as this process lives, so that no second server has another idea of the answers."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        held = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}).") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise DataError(f"{path} is in use by another server: open its page, or end it first.") from None
    return held
