"""The way of documents into a corpus: all of a source, or those that may be in a sample of it.

The parts of a source can be read elsewhere, each by itself; only what the sample needs of them comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from himecat.errors import spelled
from himecat.input.documents import Document, Fields, read_documents
from himecat.input.formats import Source
from himecat.input.problems import Problems
from himecat.input.sampling import Held, Sample
from himecat.input.unspaced import looks_unspaced

Each = Callable[[Callable[[Any, Any], Any], Any, Sequence[Any]], Iterator[Any]]
"""Runs a function with what all parts share and each part, and gives the results in the order of the parts."""


class Intake:
    """The usable documents of a source, batch by batch; of a sample those that may be in it.

    Attributes
    ----------
    skipped : list of int
        Positions of the documents that cannot be used.
    listed : set of str
        The metadata fields that hold lists.

    Examples
    --------
    >>> intake = Intake(["a fox", " ", "a hen"], Fields(), Problems())
    >>> [[document.id for document in batch] for batch in intake], intake.skipped
    ([['0', '2']], [1])
    """

    def __init__(
        self,
        source: Source,
        fields: Fields,
        problems: Problems,
        *,
        sample: Sample | None = None,
        parts: Sequence[Any] = (),
        each: Each | None = None,
        warn_unspaced: bool = False,
    ) -> None:
        self._source, self._fields, self._problems = source, fields, problems
        self._sample, self._parts, self._each = sample, parts, each
        self._warn_unspaced = warn_unspaced
        self.skipped: list[int] = []
        self.listed: set[str] = set()

    def __iter__(self) -> Iterator[list[Document]]:
        for number, batch in enumerate(self._elsewhere() if self._each is not None else self._here()):
            if number == 0 and self._warn_unspaced:
                _warn_if_unspaced(batch, self._problems)
            yield batch

    def _here(self) -> Iterator[list[Document]]:
        first = 0
        for batch in read_documents(
            self._source, self._fields, self._problems, required=True, listed=self.listed
        ):
            self.skipped += [first + row for row, document in enumerate(batch) if not document.usable]
            first += len(batch)
            if self._sample is None:
                yield [document for document in batch if document.usable]
            else:
                yield self._sample.held(batch)

    def _elsewhere(self) -> Iterator[list[Document]]:
        assert self._each is not None
        assert self._sample is not None
        first = 0
        common = Reading(self._fields, self._sample.empty(), self._problems.lenient)
        for found in self._each(read_part, common, self._parts):
            self.skipped += [first + row for row in found.skipped]
            first += found.n_records
            self.listed |= found.listed
            self._problems.extend(found.problems)
            yield self._sample.add(found.held)


class Reading(NamedTuple):
    """How parts are read: their fields, an empty sample, and whether documents that cannot be used are skipped."""

    fields: Fields
    sample: Sample
    lenient: bool


class PartRead(NamedTuple):
    """What was found in a part, without the documents that are in no sample."""

    held: Held
    n_records: int
    skipped: list[int]
    listed: set[str]
    problems: Problems


def read_part(common: Reading, part: Any) -> PartRead:
    """Read one part of a source."""
    problems = Problems()
    sample = common.sample.empty()
    intake = Intake(part, common.fields, problems, sample=sample)
    with problems.softened(common.lenient):
        documents = [document for batch in intake for document in batch]
    n_records = sample.n_documents + len(intake.skipped)
    return PartRead(sample.taken(documents), n_records, intake.skipped, intake.listed, problems)


def _warn_if_unspaced(documents: Sequence[Document], problems: Problems) -> None:
    if looks_unspaced(document.text for document in documents):
        option = spelled("--tokenizer ngrams", "tokenizer='ngrams'")
        problems.warning(
            "",
            "the documents look like a script without spaces: take a tokenizer that splits it, 'ngrams' or "
            f"'dictionary' ({option}).",
        )
