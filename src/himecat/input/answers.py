"""Answers of people: which category a document belongs to, read from whatever they were written in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from himecat.errors import DataError, spelled
from himecat.input.documents import VALUE_SEPARATOR, Fields, is_missing
from himecat.input.formats import Record, iter_records
from himecat.input.kinds import NAME
from himecat.input.label_studio import label_in
from himecat.input.labels import NOWHERE, is_nowhere
from himecat.input.problems import Problems
from himecat.input.separators import SLASH, joint_of, path_of
from himecat.input.several import PATHS, several_paths
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.terminal import original_cell, printable

N_SUGGESTIONS = 3
"""Suggestions that a document to review comes with."""

CUT = " [...]"
"""Ends a text that was cut to `LONGEST_TEXT` characters."""

LONGEST_TEXT = 2_000

NOWHERE_NODE = -1
"""The node of an answer that says that a document belongs to none of the categories."""

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


class Answer(NamedTuple):
    """An answer: where it was read, the document it is about, and the nodes that it names; none for nowhere.

    Examples
    --------
    >>> Answer("line 2", "a", (), Record("line 2", {})).node == NOWHERE_NODE
    True
    """

    place: str
    id: str
    nodes: tuple[int, ...]
    record: Record

    @property
    def node(self) -> int:
        """The node, where documents have one path each, or `NOWHERE_NODE`."""
        return self.nodes[0] if self.nodes else NOWHERE_NODE


@dataclass
class Answers:
    """The answers of a file.

    Attributes
    ----------
    given : dict of str to Answer
        By the id of the document.
    skipped : int
        Documents for which the answer is to skip them.
    """

    given: dict[str, Answer] = field(default_factory=dict)
    skipped: int = 0


def read_answers(
    source: Any,
    taxonomy: Taxonomy,
    fields: Fields,
    known: Mapping[str, int],
    problems: Problems,
    separator: str = SLASH,
    several: bool = False,
) -> Answers:
    """Read answers; all that cannot be used goes to `problems`.

    Parameters
    ----------
    source : path, table, list of mappings, or mapping
        A review that somebody has filled in, or any documents with ids and labels; an export of Label Studio
        (JSON) with one category per task; or a mapping from ids to labels.
    fields : Fields
        Which field plays which part.
    known : mapping of str to int
        The ids of the documents that the model knows.
    several : bool
        Whether an answer may name several categories: a list of paths, or one string with `;` between them.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("waste", "bins"), ("streets",)])
    >>> rows = [{"id": "a", "suggestion1": "streets", "answer": "1"}, {"id": "b", "answer": "skip"}, {"id": "c"}]
    >>> found = read_answers(rows, tree, Fields(), {"a": 0, "b": 1}, Problems())
    >>> {one.id: tree.title(one.node) for one in found.given.values()}, found.skipped
    ({'a': 'streets'}, 1)
    >>> problems = Problems()
    >>> _ = read_answers({"a": "bin"}, tree, Fields(), {"a": 0}, problems)
    >>> print(*problems)
    the answer for 'a': unknown label 'bin'; did you mean 'bins'?
    >>> both = read_answers({"a": "waste/bins; streets"}, tree, Fields(), {"a": 0}, Problems(), several=True)
    >>> [tree.title(node) for node in both.given["a"].nodes]
    ['streets', 'waste/bins']
    """
    columns = ReviewColumns.beside(fields)
    found = Answers()
    reader = _Reader(taxonomy, columns, separator, several)
    # A workbook shows characters that steer a terminal spelled out.
    spelled: dict[str, str] | None = None
    n_records = 0
    for record in _records(source, fields, columns, problems):
        n_records += 1
        if record.fields is None:
            continue
        # In a review that is half filled in, what is not answered is not labelled either.
        try:
            value = _answer(record, record.fields, fields, columns)
        except DataError as error:
            problems.error(record.place, str(error))
            continue
        if is_missing(value):
            continue
        name = _id(record.fields.get(fields.id))
        if name is None:
            problems.error(
                record.place, f"the answer belongs to no document: there is no id in the field {fields.id!r}."
            )
            continue
        if name not in known:
            if spelled is None:
                spelled = {printable(one): one for one in known if printable(one) != one}
            original = original_cell(name) if record.delimited else name
            name = original if original in known else spelled.get(name, original)
        try:
            nodes = reader.nodes(value, record)
        except DataError as error:
            problems.error(record.place, str(error))
            continue
        if nodes is None:
            found.skipped += 1
            continue
        before = found.given.get(name)
        if before is not None and before.nodes != nodes:
            here, there = (PATHS.join(map(taxonomy.title, one)) or NOWHERE for one in (nodes, before.nodes))
            problems.error(
                record.place,
                f"the document {name!r} is {here} here and {there} at {before.place}: leave one of the answers.",
            )
        elif before is None:
            found.given[name] = Answer(record.place, name, nodes, record)
    if not n_records and not problems.has_fatal and not isinstance(source, Mapping):
        problems.error("", "There is no answer to work with.")
    return found


def _answer(
    record: Record, found: Mapping[str, object], fields: Fields, columns: ReviewColumns
) -> object | None:
    """The answer of a record; in a task of Label Studio only annotations are one."""
    if record.controls is not None:
        return label_in(record, fields.label_fields) if record.controls else None
    if columns.answer in (record.header or found):
        return found.get(columns.answer)
    return label_in(record, fields.label_fields)


def _records(source: Any, fields: Fields, columns: ReviewColumns, problems: Problems) -> Iterator[Record]:
    if isinstance(source, Mapping):
        for name, label in source.items():
            yield Record(f"the answer for {str(name)!r}", {fields.id: name, columns.answer: label})
        return
    yield from iter_records(source, problems, reading=fields.reading)


def _id(value: object) -> str | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


@dataclass(frozen=True)
class _Reader:
    """Reads what an answer names."""

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


def label_for(taxonomy: Taxonomy, node: int, separator: str = SLASH) -> str:
    """A way to write a node as one string that is read as that node again, where there is one.

    Levels are separated as in the labels, or by slashes where names hold what separates those.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("repairs",), ("homes", "repairs")])
    >>> [label_for(tree, node) for node in range(1, 4)]
    ['ROOT/repairs', 'homes', 'homes/repairs']
    >>> [label_for(tree, node, ">") for node in range(1, 4)]
    ['ROOT > repairs', 'homes', 'homes > repairs']
    """
    path, root = taxonomy.path(node), taxonomy.names[0]
    for joint in (joint_of(separator), SLASH):
        for names in (path, (root, *path)):
            written = joint.join(names)
            try:
                if taxonomy.find(path_of(written, separator)) == node:  # type: ignore[arg-type]
                    return written
            except DataError:
                continue
    return taxonomy.title(node)


def new_documents(answers: Sequence[Answer], fields: Fields, problems: Problems) -> list[Record]:
    """The documents of answers whose rows carry them; those that do not are errors.

    Examples
    --------
    >>> row = Record("answers.csv line 2", {"id": "a", "text": "a hen", "tags": "farm|red"}, delimited=True)
    >>> new_documents([Answer(row.place, "a", (1,), row)], Fields(metadata=("tags",)), Problems())[0].fields
    {'id': 'a', 'text': 'a hen', 'tags': ['farm', 'red']}
    """
    found = []
    for answer in answers:
        given = answer.record.fields or {}
        document: dict[str, object] = {fields.id: answer.id}
        for name in (*fields.text, *fields.metadata):
            value = given.get(name)
            if isinstance(value, str) and answer.record.delimited:
                value = original_cell(value)
                kind = fields.kinds.get(name)
                if name in fields.metadata and (kind is None or kind.name != NAME):
                    value = value.split(VALUE_SEPARATOR)
            if value is not None:
                document[name] = value
        texts = [document.get(name) for name in fields.text]
        unknown = f"the model does not know the document {answer.id!r}"
        add = spelled("--add DOCS", "documents=")
        if not any(isinstance(text, str) and text.strip() for text in texts):
            problems.error(
                answer.place, f"{unknown}, and the row has no text: name a file that has it ({add})."
            )
        elif any(isinstance(text, str) and is_cut(text) for text in texts):
            problems.error(answer.place, f"{unknown}, and its text is cut short here: name its file ({add}).")
        else:
            found.append(Record(answer.place, document))
    return found


def cut(text: str) -> str:
    """A text as a review shows it.

    Examples
    --------
    >>> len(cut("x" * 5_000)), is_cut(cut("x" * 5_000)), is_cut(cut("x"))
    (2000, True, False)
    """
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - len(CUT)] + CUT


def is_cut(text: str) -> bool:
    """Whether a text is what `cut` left of a longer one; spelled out, it may have become longer again."""
    return len(text) >= LONGEST_TEXT and text.endswith(CUT)
