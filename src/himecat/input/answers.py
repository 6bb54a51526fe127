"""Answers of people: which category a document belongs to, read from whatever they were written in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from himecat.errors import DataError, spelled
from himecat.input.answer_nodes import AnswerReader, ReviewColumns
from himecat.input.documents import VALUE_SEPARATOR, Fields, is_missing
from himecat.input.formats import Record, iter_records
from himecat.input.kinds import NAME
from himecat.input.label_studio import label_in
from himecat.input.labels import NOWHERE
from himecat.input.problems import Problems
from himecat.input.separators import SLASH, joint_of, path_of
from himecat.input.several import PATHS
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.terminal import original_cell, printable

CUT = " [...]"
"""Ends a text that was cut to `LONGEST_TEXT` characters."""

LONGEST_TEXT = 2_000

NOWHERE_NODE = -1
"""The node of an answer that says that a document belongs to none of the categories."""


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
    reader = AnswerReader(taxonomy, columns, separator, several)
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
