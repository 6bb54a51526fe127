"""Answers as files, out and in: JSON lines, CSV, workbooks and tasks of Label Studio."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from himecat.evaluation.review_workbook import workbook
from himecat.input.answer_nodes import ReviewColumns
from himecat.input.answers import NOWHERE_NODE, label_for, read_answers
from himecat.input.documents import VALUE_SEPARATOR
from himecat.input.label_studio import DEFAULT_LABELS
from himecat.input.labels import NOWHERE
from himecat.input.problems import Problems
from himecat.runtime.terminal import harmless_cell, plain_json
from himecat.server.actions import IMPORT, SKIP
from himecat.server.context import Context
from himecat.server.effects import done
from himecat.server.refused import Refused
from himecat.server.store import StoredDocument
from himecat.server.workspace import Workspace

TYPES = {
    "jsonl": ("jsonl", "application/x-ndjson"),
    "csv": ("csv", "text/csv; charset=utf-8"),
    "xlsx": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "label-studio": ("ls.json", "application/json"),
}
"""The ending and the media type of each format."""

MOST_CELLS = 20_000
"""A workbook is built in memory: it may have so many documents."""

_SKIPPED = "skip"
_PATH, _CONFIDENCE = "path", "confidence"


def exported(workspace: Workspace, form: str, what: str) -> Iterator[bytes]:
    """Documents with what people say of them; with `what` "all" also those nobody has answered."""
    return _in_parts(_exported(workspace, form, what))


def _in_parts(pieces: Iterator[bytes], size: int = 1 << 18) -> Iterator[bytes]:
    """The same in parts of some length: each goes through a thread of its own."""
    waiting, length = list[bytes](), 0
    for one in pieces:
        waiting.append(one)
        length += len(one)
        if length >= size:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)


def _exported(workspace: Workspace, form: str, what: str) -> Iterator[bytes]:
    if form == "label-studio":
        return _tasks(workspace, what)
    if form == "jsonl":
        return (f"{plain_json(_line(workspace, one))}\n".encode() for one in _chosen(workspace, what))
    if form == "csv":
        return _csv(workspace, what)
    count = len(workspace.ids) if what == "all" else len(workspace.log.said)
    if count > MOST_CELLS:
        raise Refused(413, f"A workbook has {MOST_CELLS:,} documents at most, not {count:,}: take csv.")
    names = _columns(workspace)
    rows = [_cells(workspace, one, names) for one in _chosen(workspace, what)]
    widths = {name: 60 if name in workspace.view.model.fields().text else 24 for name in names}
    tree = workspace.view.tree
    choices = [label_for(tree, node, workspace.view.model.separator_) for node in range(1, len(tree))]
    return iter([workbook(rows, widths, choices=choices, choose_in=_answer_column(workspace))])


def _chosen(workspace: Workspace, what: str) -> Iterator[StoredDocument]:
    if what == "all":
        yield from workspace.store.iter_documents()
        return
    rows = sorted(workspace.row_of[name] for name in list(workspace.log.said) if name in workspace.row_of)
    for start in range(0, len(rows), 500):
        yield from workspace.store.documents(rows[start : start + 500])


def _answer_column(workspace: Workspace) -> str:
    return ReviewColumns.beside(workspace.view.model.fields()).answer


def _line(workspace: Workspace, one: StoredDocument) -> dict[str, Any]:
    view, said = workspace.view, workspace.log.said.get(one.id)
    answer: Any = None
    if said is not None:
        answer = _SKIPPED if said.kind == SKIP else NOWHERE if said.path is None else list(said.path)
    line = workspace.record(one)
    for name, value in (
        (_PATH, list(view.tree.path(int(view.placed.nodes[one.row])))),
        (_CONFIDENCE, round(float(view.confidence[one.row]), 6)),
    ):
        line.setdefault(name, value)
    return {**line, _answer_column(workspace): answer}


def _columns(workspace: Workspace) -> list[str]:
    fields = workspace.view.model.fields()
    names = [fields.id, fields.text[0], *fields.metadata, _PATH, _CONFIDENCE, _answer_column(workspace)]
    return list(dict.fromkeys(names))


def _cells(workspace: Workspace, one: StoredDocument, names: list[str]) -> dict[str, Any]:
    """A line as cells of a table: levels and values joined as the reader takes them apart."""
    line, fields = _line(workspace, one), workspace.view.model.fields()
    tree, separator = workspace.view.tree, workspace.view.model.separator_
    for name in (_PATH, _answer_column(workspace)):
        value = line[name]
        if isinstance(value, list) and name not in fields.metadata:
            node = workspace.node(value)
            line[name] = "/".join(value) if node is None else label_for(tree, node, separator)
    return {
        name: VALUE_SEPARATOR.join(value) if isinstance(value := line.get(name), list) else value
        for name in names
    }


def _csv(workspace: Workspace, what: str) -> Iterator[bytes]:
    names = _columns(workspace)
    # With the mark by which spreadsheet programs know UTF-8.
    yield "\ufeff".encode()
    for head in (True, False):
        rows = [dict(zip(names, names, strict=True))] if head else _chosen(workspace, what)
        for one in rows:
            stream = io.StringIO()
            cells = one if isinstance(one, dict) else _cells(workspace, one, names)
            csv.writer(stream, lineterminator="\n").writerow(
                [harmless_cell(cells.get(name)) for name in names]
            )
            yield stream.getvalue().encode("utf-8", "backslashreplace")


def _tasks(workspace: Workspace, what: str) -> Iterator[bytes]:
    """Tasks as Label Studio exports and imports them: answers are annotations, placements predictions."""
    fields = workspace.view.model.fields()
    control = DEFAULT_LABELS if fields.levels else fields.label_fields[0]
    version = f"{workspace.folder.name} {workspace.view.digest[:8]}"

    def result(path: list[str]) -> list[dict[str, Any]]:
        value = {"taxonomy": [path]}
        return [{"from_name": control, "to_name": fields.text[0], "type": "taxonomy", "value": value}]

    between = "[\n"
    for one in _chosen(workspace, what):
        line, said = _line(workspace, one), workspace.log.said.get(one.id)
        task: dict[str, Any] = {"data": workspace.record(one)}
        if said is not None and said.kind != SKIP:
            path = [NOWHERE] if said.path is None else list(said.path)
            task["annotations"] = [{"result": result(path), "completed_by": {"email": said.by}}]
        found = {"model_version": version, "score": line[_CONFIDENCE], "result": result(line[_PATH])}
        task["predictions"] = [found]
        yield f"{between}{plain_json(task)}".encode()
        between = ",\n"
    yield b"[]\n" if between == "[\n" else b"\n]\n"


def imported(server: Context, body: bytes, form: str, client: str, replace: bool) -> dict[str, Any]:
    """Take answers from a file; documents that nobody knows, and other answers than those given, are left out."""
    workspace = server.workspace
    view, problems = workspace.view, Problems()
    with tempfile.TemporaryDirectory() as folder:
        ending = "json" if form == "label-studio" else form
        file = Path(folder, f"answers.{ending}")
        file.write_bytes(body)
        model = view.model
        answers = read_answers(
            str(file), view.tree, model.fields(), workspace.row_of, problems, model.separator_
        )
    try:
        problems.raise_errors()
    except Exception as error:
        raise Refused(422, str(error).replace(str(file), "the file")) from None
    paths: dict[str, Any] = {}
    expected: dict[str, int | None] = {}
    unknown = conflicts = 0
    for name, answer in answers.given.items():
        path = None if answer.node == NOWHERE_NODE else tuple(view.tree.path(answer.node))
        said = workspace.log.said.get(name)
        if name not in workspace.row_of:
            unknown += 1
        elif said is None or said.kind == SKIP or (said.path != path and replace):
            paths[name], expected[name] = path, None if said is None else said.action
        elif said.path != path:
            conflicts += 1
    actions: list[int] = []
    if paths:
        action, left = workspace.log.act_on_free(client, IMPORT, paths, 0, expected)
        actions = done(server, action, left)["actions"]
        conflicts += len(left)
    read = len(answers.given) - unknown - conflicts
    return {"read": read, "unknown": unknown, "conflicts": conflicts, "actions": actions}
