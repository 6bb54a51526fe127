"""A pile: more documents than are learned from at once; they are read again, part by part, in known ids."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from himecat.errors import DataError, spelled
from himecat.input.builder import iter_encoded
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus, Vocabulary
from himecat.input.documents import Fields
from himecat.input.formats import parts_of
from himecat.input.problems import Problems
from himecat.input.sampling import Room, Sample
from himecat.input.streams import shown as shown_path
from himecat.input.taxonomy.tree import Taxonomy

BATCH = 4096
"""Documents that are looked at together."""


@dataclass(frozen=True)
class Pile:
    """All documents of a fit, of which the corpus is a sample.

    Attributes
    ----------
    parts : sequence
        Sources that can be read more than once, in order.
    fields : Fields
        Which field plays which part.
    max_tokens : int or None
        Only this many words from the start of a document are used.
    readers : sequence of ColumnReader
        Compute columns while documents are read.
    n_documents : int
        Usable documents.
    states : sequence
        How files looked when they were read first: a file that changes in between is refused.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> texts = ["a red hen", "a fox", "red"]
    >>> pile = Pile([texts], Fields(), None, (), 3)
    >>> [batch.tokens.lengths.tolist() for batch in pile.batches(texts, read_corpus(texts).words, {}, size=2)]
    [[3, 2], [1]]
    """

    parts: Sequence[Any]
    fields: Fields
    max_tokens: int | None
    readers: Sequence[ColumnReader]
    n_documents: int
    states: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def batches(
        self,
        part: Any,
        words: Vocabulary,
        metadata: Mapping[str, Vocabulary],
        *,
        threads: int | None = None,
        size: int = BATCH,
    ) -> Iterator[Corpus]:
        """The documents of a part in the ids of known words and values; one that cannot be used has neither."""
        self._refuse_changed(part)
        # What is wrong with documents was said when they were read first.
        unheard = Problems()
        with unheard.softened(True):
            for _, corpus in iter_encoded(
                part,
                self.fields,
                words,
                metadata,
                self.max_tokens,
                unheard,
                size,
                self.readers,
                threads=threads,
            ):
                yield corpus
        self._refuse_changed(part)

    def said(self, n_sampled: int, n_texts: int) -> str:
        """What a user is told of the samples: how many documents teach the classifier, and how many the words."""
        return (
            f"of {self.n_documents:,} documents, {n_texts:,} teach what words mean, {n_sampled:,} the classifier, with "
            f"all labelled ones, and all the metadata values; with more memory more would "
            f"({spelled('--memory', 'memory=')})."
        )

    def _refuse_changed(self, part: Any) -> None:
        name = os.fspath(part) if isinstance(part, str | os.PathLike) else ""
        if name in self.states and file_state(name) != self.states[name]:
            raise DataError(
                f"{shown_path(name)} has changed while it was read: fit again once it is complete."
            )


def file_state(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Size and time of a file; zeros where it is gone.

    Examples
    --------
    >>> file_state("no such file")
    (0, 0)
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0, 0
    return found.st_size, found.st_mtime_ns


def states_of(source: Any) -> dict[str, tuple[int, int]]:
    """How files look now, by their paths; nothing for other sources.

    Examples
    --------
    >>> states_of(["a fox"])
    {}
    """
    files = [one for one in parts_of(source) if isinstance(one, str | os.PathLike)]
    return {os.fspath(one): file_state(one) for one in files}


def sample_of(
    source: Any,
    room: Room | None,
    tree: Taxonomy | None,
    draw: object,
    shown: Collection[int] | None,
    seed: int,
) -> Sample | None:
    """What draws a sample from a source while it is read; None where all of it is to be kept.

    Parameters
    ----------
    room : Room, optional
        How many documents may be learned from.
    draw, shown
        What chooses the labelled documents, and their positions where they are known in advance.

    Examples
    --------
    >>> sample_of(["a fox"], None, None, None, None, 0) is None
    True
    """
    if room is None or (draw is not None and shown is None) or not _can_be_read_again(source):
        return None
    n_leaves = None if tree is None else tree.n_leaves
    return Sample(room, n_leaves, seed, None if draw is None else shown, _expected(source))


def _can_be_read_again(source: Any) -> bool:
    files = parts_of(source)
    if isinstance(files[0], str | os.PathLike):
        return all(map(os.path.isfile, files))
    return not isinstance(source, Iterator) and hasattr(source, "__len__")


def _expected(source: Any) -> int:
    """About how many documents there are; 0 where it cannot be told at a glance."""
    files = parts_of(source)
    if len(files) > 1:
        return sum(map(_expected, files))
    source = files[0]
    if not isinstance(source, str | os.PathLike):
        return len(source)
    with suppress(Exception):
        if os.fspath(source).endswith(".parquet"):
            from pyarrow.parquet import read_metadata

            return int(read_metadata(source).num_rows)
        with open(source, "rb") as stream:
            start = stream.read(1 << 20)
        if not start.startswith((b"\x1f\x8b", b"(\xb5/\xfd", b"PK")) and (lines := start.count(b"\n")):
            return os.path.getsize(source) * lines // len(start)
    return 0
