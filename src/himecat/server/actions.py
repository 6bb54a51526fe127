"""What people did, one action after the other; nothing is ever changed or deleted, an undo is one more action."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from himecat.server.store import Store

ACCEPT, NONE, SKIP, UNDO, IMPORT = "accept", "none", "skip", "undo", "import"


class Said(NamedTuple):
    """What was last said of a document: the action it is part of, and the path; None for none of the categories."""

    action: int
    kind: str
    path: tuple[str, ...] | None
    by: str
    at: str

    @property
    def word(self) -> str:
        """The same as one word."""
        if self.kind == SKIP:
            return "skipped"
        if self.path is None:
            return "none"
        return "accepted" if self.kind == ACCEPT else "moved"


@dataclass(frozen=True)
class Action:
    """An action, as it is told to others."""

    id: int
    kind: str
    documents: tuple[str, ...]
    path: tuple[str, ...] | None
    by: str
    at: str
    undoes: int | None = None


class Conflict(Exception):
    """Somebody else has said something of these documents in the meantime."""

    def __init__(self, documents: Sequence[str]) -> None:
        super().__init__(f"Somebody else has answered {documents[0]!r} in the meantime.")
        self.documents = list(documents)


class Nothing(Exception):
    """There is nothing to undo."""


class ActionLog:
    """The actions of a store, and what they come to; every action is on the disk before it counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/model.review.sqlite")
    ...     log = ActionLog(store)
    ...     _ = log.act("tab", "move", {"a": ("waste",)})
    ...     before = log.said["a"].path
    ...     _ = log.undo("tab")
    ...     after = log.said.get("a")
    ...     store.close()
    >>> before, after
    (('waste',), None)
    """

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self.said: dict[str, Said] = {}
        self._all: dict[int, tuple[str, str, str]] = {}
        self._undone: set[int] = set()
        self._replay()

    def _replay(self) -> None:
        reader = self._store.reader
        for number, client, kind, at, undoes in reader.execute(
            "SELECT id, client, kind, at, undoes FROM actions ORDER BY id"
        ):
            self._all[number] = (client, kind, at)
            if undoes is not None:
                self._undone.add(undoes)
        for action, document, path, before in reader.execute(
            "SELECT action, document, path, before FROM action_documents ORDER BY action"
        ):
            if self._all[action][1] == UNDO:
                self._restore(document, before)
            else:
                self._set(document, action, path)

    def _set(self, document: str, action: int, path: str | None) -> None:
        client, kind, at = self._all[action]
        self.said[document] = Said(action, kind, _path(path), client, at)

    def _restore(self, document: str, before: int | None) -> None:
        if before is None:
            self.said.pop(document, None)
            return
        (path,) = self._store.reader.execute(
            "SELECT path FROM action_documents WHERE action = ? AND document = ?", (before, document)
        ).fetchone()
        self._set(document, before, path)

    def act(
        self,
        client: str,
        kind: str,
        paths: Mapping[str, tuple[str, ...] | None],
        expected: Mapping[str, int | None] | None = None,
        path: tuple[str, ...] | None = None,
    ) -> Action:
        """Say something of documents; it is on the disk when this returns.

        Parameters
        ----------
        client : str
            Who says it.
        paths : mapping
            The path of each document, by its id; None for none of the categories, and for those to skip.
        expected : mapping, optional
            The last action on each document, as the client knows it.

        Raises
        ------
        Conflict
            The last action on a document is another one.
        """
        with self._lock:
            if others := self._unexpected(expected or {}):
                raise Conflict(others)
            return self._write(client, kind, paths, path)

    def act_on_free(
        self,
        client: str,
        kind: str,
        paths: Mapping[str, tuple[str, ...] | None],
        seen: int,
        expected: Mapping[str, int | None] | None = None,
        path: tuple[str, ...] | None = None,
    ) -> tuple[Action | None, list[str]]:
        """Say something of many documents, but for those that others have answered since the action `seen`.

        Of documents in `expected`, the last action has to be that one instead. Gives the action, None where no document
        is left for it, and the documents that were left alone.
        """
        with self._lock:
            left = set(self._unexpected(expected or {}))
            for name in paths:
                said = self.said.get(name)
                if said is None or said.by == client or said.kind == SKIP or name in (expected or {}):
                    continue
                if said.action > seen:
                    left.add(name)
            free = {name: one for name, one in paths.items() if name not in left}
            action = self._write(client, kind, free, path) if free else None
        return action, [name for name in paths if name in left]

    def _write(
        self,
        client: str,
        kind: str,
        paths: Mapping[str, tuple[str, ...] | None],
        path: tuple[str, ...] | None,
    ) -> Action:
        at = now()
        with self._store.writing() as connection:
            number = connection.execute(
                "INSERT INTO actions (client, kind, path, at) VALUES (?, ?, ?, ?)",
                (client, kind, _written(path), at),
            ).lastrowid
            connection.executemany(
                "INSERT INTO action_documents VALUES (?, ?, ?, ?)",
                (
                    (number, name, _written(one), self.said[name].action if name in self.said else None)
                    for name, one in paths.items()
                ),
            )
        assert number is not None
        self._all[number] = (client, kind, at)
        for name, one in paths.items():
            self.said[name] = Said(number, kind, one, client, at)
        return Action(number, kind, tuple(paths), path, client, at)

    def _unexpected(self, expected: Mapping[str, int | None]) -> list[str]:
        return [
            name
            for name, action in expected.items()
            if (self.said[name].action if name in self.said else None) != action
        ]

    @property
    def last(self) -> int:
        """The number of the last action; 0 where there is none."""
        with self._lock:
            return next(reversed(self._all), 0)

    def undo(self, client: str) -> Action:
        """Take back the last action of a client that is not undone; documents on which others acted since stay.

        Raises
        ------
        Nothing
            There is none.
        Conflict
            Others have acted on all of its documents since.
        """
        with self._lock:
            last = max(
                (
                    number
                    for number, (by, kind, _) in self._all.items()
                    if by == client and kind != UNDO and number not in self._undone
                ),
                default=None,
            )
            if last is None:
                raise Nothing("There is nothing to undo.")
            listed = self._store.reader.execute(
                "SELECT document, before FROM action_documents WHERE action = ?", (last,)
            ).fetchall()
            own = {
                name: self._standing(name, before)
                for name, before in listed
                if name in self.said and self.said[name].action == last
            }
            if not own:
                raise Conflict([name for name, _ in listed])
            at = now()
            with self._store.writing() as connection:
                number = connection.execute(
                    "INSERT INTO actions (client, kind, at, undoes) VALUES (?, ?, ?, ?)",
                    (client, UNDO, at, last),
                ).lastrowid
                connection.executemany(
                    "INSERT INTO action_documents VALUES (?, ?, NULL, ?)",
                    ((number, name, before) for name, before in own.items()),
                )
            assert number is not None
            self._all[number] = (client, UNDO, at)
            self._undone.add(last)
            for name, before in own.items():
                self._restore(name, before)
        return Action(number, UNDO, tuple(own), None, client, at, last)

    def _standing(self, document: str, action: int | None) -> int | None:
        """An action on a document, or the one before it that its author has not taken back since."""
        while action is not None and action in self._undone:
            (action,) = self._store.reader.execute(
                "SELECT before FROM action_documents WHERE action = ? AND document = ?", (action, document)
            ).fetchone()
        return action

    def since(self, number: int, limit: int = 1_000) -> list[Action]:
        """The actions after one, the oldest first."""
        found = []
        for one, client, kind, path, at, undoes in self._store.reader.execute(
            "SELECT id, client, kind, path, at, undoes FROM actions WHERE id > ? ORDER BY id LIMIT ?",
            (number, limit),
        ).fetchall():
            documents = self._store.reader.execute(
                "SELECT document FROM action_documents WHERE action = ?", (one,)
            )
            names = tuple(name for (name,) in documents)
            found.append(Action(one, kind, names, _path(path), client, at, undoes))
        return found

    def answers(self) -> dict[str, tuple[str, ...] | None]:
        """What people say of documents, by id: a path, or None for none of the categories."""
        return {name: one.path for name, one in list(self.said.items()) if one.kind != SKIP}


def _path(written: str | None) -> tuple[str, ...] | None:
    return None if written is None else tuple(json.loads(written))


def _written(path: Iterable[str] | None) -> str | None:
    return None if path is None else json.dumps(list(path), ensure_ascii=False)


def now() -> str:
    """The time, as it is noted."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def as_plain(said: Said | None) -> dict[str, Any] | None:
    """What was said of a document, as JSON values."""
    if said is None:
        return None
    path = None if said.path is None else list(said.path)
    return {"path": path, "kind": said.word, "by": said.by, "at": said.at, "action": said.action}
