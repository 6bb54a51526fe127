"""What an answer names: categories by paths, names or numbers of suggestions; or `none`, or `skip`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from himecat.errors import DataError
from himecat.input.documents import Fields, is_missing
from himecat.input.formats import Record
from himecat.input.labels import NOWHERE, is_nowhere
from himecat.input.separators import path_of
from himecat.input.several import PATHS, several_paths
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.terminal import original_cell

N_SUGGESTIONS = 3
"""Suggestions that a document to review comes with."""

_SKIP = "skip"
_NUMBERS = tuple(str(number) for number in range(1, N_SUGGESTIONS + 1))


class ReviewColumns(NamedTuple):
    """The names of the columns that a review has beside the fields of the documents.

    Examples
    --------
    >>> ReviewColumns.beside(Fields(metadata=("answer",))).answer
    'answer_'
    """

    suggestions: tuple[str, ...]
    confidences: tuple[str, ...]
    why: str
    answer: str

    @classmethod
    def beside(cls, fields: Fields) -> ReviewColumns:
        """The names, none of which is that of a field."""
        taken = {*fields.text, *fields.metadata, fields.id}

        def free(name: str) -> str:
            while name in taken:
                name += "_"
            return name

        suggestions, confidences = (
            tuple(free(f"{name}{number}") for number in _NUMBERS) for name in ("suggestion", "confidence")
        )
        return cls(suggestions, confidences, free("why"), free("answer"))


@dataclass(frozen=True)
class AnswerReader:
    """Reads what an answer names.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    columns : ReviewColumns
        Where suggestions stand.
    separator : str
        What separates levels in a label.
    several : bool
        Whether an answer may name several categories.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("waste", "bins"), ("streets",)])
    >>> reader = AnswerReader(tree, ReviewColumns.beside(Fields()), "/", several=True)
    >>> row = Record("answers.csv line 2", {"suggestion1": "streets"})
    >>> [tree.title(node) for node in reader.nodes("1; bins", row)]
    ['streets', 'waste/bins']
    """

    taxonomy: Taxonomy
    columns: ReviewColumns
    separator: str
    several: bool

    def nodes(self, value: object, record: Record) -> tuple[int, ...] | None:
        """The nodes that an answer names, none for nowhere; None for a document to skip."""
        parts = self._parts(value)
        found = [self._node(path_of(part, self.separator), record) for part in parts]
        if len(parts) == 1:
            return found[0]
        for word, meant in ((_SKIP, None), (NOWHERE, ())):
            if meant in found:
                raise DataError(f"{word!r} stands beside a category: a document has categories, or none.")
        return self._single(node for nodes in found for node in nodes or ())

    def _parts(self, value: object) -> list[object]:
        """The paths of an answer, each by itself."""
        if not self.several:
            return [value]
        if isinstance(value, str):
            return self._apart(value)
        parts = several_paths(value, self.separator, self.taxonomy, joined=True)
        if parts is None and isinstance(value, list | tuple) and self._are_categories(value):
            parts = [*value]
        return parts or [value]

    def _are_categories(self, names: Sequence[object]) -> bool:
        """Whether all names are categories, and together no path from the top down."""
        written = [one.strip() for one in names if isinstance(one, str)]
        if len(written) < len(names) or self.taxonomy.walk(written) is not None:
            return False
        return all(map(self._is_known, written))

    def _apart(self, written: str) -> list[object]:
        """What stands between semicolons, but for those within a name."""
        pieces, found = written.split(PATHS.strip()), list[object]()
        while pieces:
            lengths = range(len(pieces), 1, -1) if self._names_have_semicolons else ()
            length = next((n for n in lengths if self._is_known(";".join(pieces[:n]).strip())), 1)
            found += filter(None, [";".join(pieces[:length]).strip()])
            del pieces[:length]
        return found or [written]

    @cached_property
    def _names_have_semicolons(self) -> bool:
        return any(";" in name for name in self.taxonomy.names)

    def _is_known(self, label: object) -> bool:
        try:
            return self.taxonomy.find(path_of(label, self.separator)) > 0  # type: ignore[arg-type]
        except DataError:
            return False

    def _single(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """Each node once, without those that lead to another."""
        distinct = set(nodes)
        above = {up for node in distinct for up in self.taxonomy.lineages[node][:-1]}
        return tuple(sorted(distinct - above))

    def _node(self, value: object, record: Record) -> tuple[int, ...] | None:
        """What one path, or a word in its place, stands for."""
        taxonomy, columns = self.taxonomy, self.columns
        if is_nowhere(value) and NOWHERE not in taxonomy.nodes_by_name:
            return ()
        if isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer():
            value = str(int(value))
        if not isinstance(value, str):
            return (taxonomy.find(value),)  # type: ignore[arg-type]
        written = value.strip()
        short = written.lower() if written.lower() == _SKIP else written
        if short != _SKIP and short not in _NUMBERS:
            return (_found(taxonomy, written, record),)
        if taxonomy.nodes_by_name.get(written):
            if columns.answer not in (record.fields or {}):
                return (taxonomy.find(written),)
            raise DataError(
                f"the answer {written!r} is also the name of a category: write the whole path, beginning with "
                f"{taxonomy.names[0]}/."
            )
        if short == _SKIP:
            return None
        suggestion = (record.fields or {}).get(columns.suggestions[int(short) - 1])
        if is_missing(suggestion):
            raise DataError(f"the answer is {short}, and there is no suggestion {short} in the row.")
        return self._single(self._suggested(path, record) for path in self._parts(suggestion))

    def _suggested(self, suggestion: object, record: Record) -> int:
        path = path_of(suggestion, self.separator)
        if isinstance(path, str):
            return _found(self.taxonomy, path.strip(), record)
        return self.taxonomy.find(path)  # type: ignore[arg-type]


def _found(taxonomy: Taxonomy, written: str, record: Record) -> int:
    try:
        return taxonomy.find(written)
    except DataError:
        original = original_cell(written)
        if not record.delimited or original == written:
            raise
        return taxonomy.find(original)
