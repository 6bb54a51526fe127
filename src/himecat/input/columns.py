"""Columns computed from the documents while they are read, because a corpus keeps ids and not texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.input.documents import Document, Fields
from himecat.input.problems import Problems
from himecat.runtime.progress import Progress, silent

FloatArray = npt.NDArray[np.float32]


class ColumnRows(Protocol):
    """The rows of a column, in the order of the documents."""

    def extend(self, documents: Sequence[Document]) -> None:
        """Take the next documents; costly work may wait until the rows are asked for."""

    def finish(self) -> FloatArray:
        """One row for each document taken since the last call."""


class ColumnReader(Protocol):
    """Computes a column of a corpus from texts or raw fields: an encoder, an image model.

    Attributes
    ----------
    name : str
        The key in `Corpus.columns`.
    fields : tuple of str
        Raw fields that the documents bring along in `Document.extra`.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def fields(self) -> tuple[str, ...]: ...  # noqa: D102

    def open(self, source: Any, problems: Problems, progress: Progress) -> AbstractContextManager[ColumnRows]:
        """Start on a source; leaving the context closes what was opened beside it."""


@dataclass(frozen=True)
class ComputedColumn:
    """A column reader made of a function from documents to rows.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> lengths = ComputedColumn("length", lambda documents: [[len(one.text)] for one in documents])
    >>> read_corpus(["a hen", "a red fox"], readers=[lengths]).columns["length"].tolist()
    [[5.0], [9.0]]
    """

    name: str
    compute: Callable[[Sequence[Document]], npt.ArrayLike]
    fields: tuple[str, ...] = ()

    @contextmanager
    def open(self, source: Any, problems: Problems, progress: Progress) -> Iterator[_ComputedRows]:
        """Start on a source."""
        yield _ComputedRows(self.compute)


class _ComputedRows:
    def __init__(self, compute: Callable[[Sequence[Document]], npt.ArrayLike]) -> None:
        self._compute = compute
        self._parts: list[FloatArray] = []

    def extend(self, documents: Sequence[Document]) -> None:
        self._parts.append(np.asarray(self._compute(documents), dtype=np.float32))

    def finish(self) -> FloatArray:
        parts, self._parts = self._parts, []
        return np.concatenate(parts) if parts else np.asarray(self._compute(()), dtype=np.float32)


class OpenColumns:
    """The rows of all columns while documents are read.

    Examples
    --------
    >>> lengths = ComputedColumn("length", lambda documents: [[len(one.text)] for one in documents])
    >>> with OpenColumns([lengths], ["a hen"], Problems()) as columns:
    ...     columns.extend([Document("document 0", "0", "a hen", {}, None, True)])
    ...     columns.finish()["length"].tolist()
    [[5.0]]
    """

    def __init__(
        self,
        readers: Sequence[ColumnReader],
        source: Any,
        problems: Problems,
        progress: Progress | None = None,
    ) -> None:
        self._rows: dict[str, ColumnRows] = {}
        self._count = 0
        self._opened = ExitStack()
        with ExitStack() as opening:
            for reader in readers:
                if reader.name in self._rows:
                    raise UsageError(f"Two columns are named {reader.name!r}: give one another name.")
                rows = opening.enter_context(reader.open(source, problems, progress or silent()))
                self._rows[reader.name] = rows
            self._opened = opening.pop_all()

    def __enter__(self) -> OpenColumns:
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def extend(self, documents: Sequence[Document]) -> None:
        """Pass the next documents on to every column."""
        self._count += len(documents)
        for rows in self._rows.values():
            rows.extend(documents)

    def finish(self) -> dict[str, FloatArray]:
        """The columns of the documents passed on since the last call."""
        count, self._count = self._count, 0
        columns = {name: rows.finish() for name, rows in self._rows.items()}
        for name, column in columns.items():
            if len(column) != count:
                raise UsageError(f"The column {name!r} has {len(column)} rows for {count} documents.")
        return columns


def with_extra_fields(fields: Fields, readers: Sequence[ColumnReader]) -> Fields:
    """Ask for the raw fields that the readers want."""
    wanted = dict.fromkeys(name for reader in readers for name in reader.fields)
    return replace(fields, extra=tuple(wanted)) if wanted else fields
