"""Tasks of Label Studio as records: the fields of `data`, and what people chose under the name of each control.

Read are its exports JSON (tasks with `data`, `annotations` and `predictions`) and JSON-MIN (one record per annotation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from himecat.errors import DataError
from himecat.input.problems import Problems, half_character, quoted
from himecat.input.record import Record
from himecat.input.values import as_label, level_path

DEFAULT_LABELS = "labels"
"""The field with the labels, where no other is named."""

# What JSON-MIN adds to the fields of a task; by the first two it is known.
_ABOUT = ("annotator", "annotation_id", "lead_time", "created_at", "updated_at", "agreement")
_TASK_PARTS = ("annotations", "completions", "predictions")

Path = tuple[str, ...]


class Differing(list[list[str]]):
    """Stands for the label of a task whose annotations name several categories.

    Examples
    --------
    >>> Differing([["arts"], ["sport", "chess"]])
    [['arts'], ['sport', 'chess']]
    """


def task_records(records: Iterator[Record], place: str, problems: Problems) -> Iterator[Record]:
    """Records as they are or, where the first is a task of Label Studio, the documents of the tasks.

    Parameters
    ----------
    records : iterator of Record
        The objects of a file or list.
    place : str
        What messages call it.
    problems : Problems
        Receives a note that tasks were found, and what is wrong with some.

    Examples
    --------
    >>> chosen = {"from_name": "topic", "value": {"taxonomy": [["arts"], ["arts", "opera"]]}}
    >>> task = {"id": 7, "data": {"text": "A tenor."}, "annotations": [{"result": [chosen]}]}
    >>> found = Problems()
    >>> next(task_records(iter([Record("document 0", task)]), "", found)).fields
    {'id': 7, 'text': 'A tenor.', 'topic': ['arts', 'opera']}
    >>> print(*found)
    the documents are read as tasks of Label Studio: `data` has their fields, the annotations are their labels.
    """
    first: list[Record] = []
    for record in records:
        first.append(record)
        if record.fields is not None:
            break
    known = first[-1].fields if first else None
    every = chain(first, records)
    read: Iterator[Record]
    if known is not None and _is_task(known):
        read = (_of_task(record, problems) for record in every)
    elif known is not None and all(name in known for name in _ABOUT[:2]):
        read = _of_annotations(every, problems)
    else:
        yield from every
        return
    problems.note(
        place,
        "the documents are read as tasks of Label Studio: `data` has their fields, the annotations are their labels.",
    )
    yield from read


def label_control(record: Record, field: str) -> str:
    """The field of a record with its label: where a task has one annotation only, that one by whatever name.

    Examples
    --------
    >>> task = Record("document 0", {"topic": ["arts"]}, controls=("topic",))
    >>> label_control(task, "labels"), label_control(task._replace(controls=None), "labels")
    ('topic', 'labels')
    """
    controls = record.controls
    if not controls or field in controls or len(controls) > 1:
        return field
    # A field that was named and is there is meant.
    return field if field != DEFAULT_LABELS and field in (record.fields or ()) else controls[0]


def label_in(record: Record, label_fields: Sequence[str]) -> object | None:
    """The category that a record names: in one field, in one for each level, or in the annotations of a task.

    Raises
    ------
    DataError
        The annotations of a task name several categories.

    Examples
    --------
    >>> label_in(Record("row 0", {"labels": 5}), ["labels"])
    '5'
    >>> label_in(Record("row 0", {"l1": "arts", "l2": "opera"}), ["l1", "l2"])
    ['arts', 'opera']
    """
    found = record.fields or {}
    if len(label_fields) > 1 and not record.controls:
        return level_path(found, label_fields)[0]
    label = found.get(label_control(record, label_fields[0]))
    if isinstance(label, Differing):
        raise DataError("the annotations name several categories: keep one of them in Label Studio.")
    known: object | None = as_label(label)
    return known


def _is_task(found: Mapping[str, object]) -> bool:
    return isinstance(found.get("data"), Mapping) and any(name in found for name in _TASK_PARTS)


def _of_task(record: Record, problems: Problems) -> Record:
    task: Mapping[str, Any] = record.fields or {}
    if not _is_task(task):
        return record
    fields = {"id": task.get("id"), **task["data"]}
    fields = {name: value for name, value in fields.items() if value is not None and value == value}
    try:
        chosen = _annotated(task.get("annotations") or task.get("completions") or ())
    except (AttributeError, KeyError, TypeError):
        problems.error(record.place, "its annotations are not those of a Label Studio export (JSON).")
        return Record(record.place, None)
    return _record(record.place, fields, chosen, problems)


def _annotated(annotations: Sequence[Mapping[str, Any]]) -> dict[str, list[Path]]:
    """What people have chosen in a task, by control; what was skipped counts for nothing."""
    given = [one for one in annotations if not one.get("was_cancelled") and not one.get("skipped")]
    # Where somebody has decided which annotation is right, the others are not asked.
    given = [one for one in given if one.get("ground_truth")] or given
    found: dict[str, list[Path]] = {}
    for annotation in given:
        for result in annotation["result"]:
            paths = _paths(result.get("value"))
            if paths:
                found.setdefault(str(result.get("from_name") or result.get("type") or "labels"), []).extend(
                    paths
                )
    return found


def _paths(value: Any) -> list[Path]:
    """The categories in the value of a control; none in a value of another kind."""
    if not isinstance(value, Mapping):
        return []
    paths = [tuple(map(str, path)) for path in value.get("taxonomy") or ()]
    return paths + [(str(choice),) for choice in value.get("choices") or ()]


def _of_annotations(records: Iterator[Record], problems: Problems) -> Iterator[Record]:
    """Records of JSON-MIN: those that follow each other with one id are annotations of one task."""
    last: Record | None = None
    chosen: dict[str, list[Path]] = {}
    for record in records:
        found = record.fields or {}
        here = {name: paths for name, value in found.items() if (paths := _chosen(value))}
        before = None if last is None else last.fields
        if before is not None and record.fields is not None and before.get("id", before) == found.get("id"):
            for name, value in found.items():
                old = before.get(name)
                # One choice is written as a text; no other field differs within a task.
                if value != old and isinstance(value, str) and isinstance(old, str) and name not in _ABOUT:
                    here[name] = [(old,), (value,)]
            for name, paths in here.items():
                chosen.setdefault(name, []).extend(paths)
            continue
        if last is not None:
            yield _merged(last, chosen, problems)
        last, chosen = record, here
    if last is not None:
        yield _merged(last, chosen, problems)


def _merged(record: Record, chosen: Mapping[str, Sequence[Path]], problems: Problems) -> Record:
    if record.fields is None or not chosen:
        # One choice is a text, like any other field.
        return record
    return _record(record.place, dict(record.fields), chosen, problems)


def _chosen(value: object) -> list[Path]:
    """The categories in a field of JSON-MIN; a field of the task may look like one."""
    parts = value if isinstance(value, list) else [value]
    try:
        return [path for part in parts for path in _paths(part)]
    except TypeError:
        return []


def _record(
    place: str, fields: dict[str, Any], chosen: Mapping[str, Sequence[Path]], problems: Problems
) -> Record:
    for name, paths in chosen.items():
        # A path to which another one adds levels says nothing of its own.
        ends = [
            list(one)
            for one in dict.fromkeys(paths)
            if not any(one != other and one == other[: len(one)] for other in paths)
        ]
        fields[name] = ends[0] if len(ends) == 1 else Differing(ends)
    for name in fields:
        if half := half_character(name):
            problems.error(
                place, f"the name of the field {quoted(name)} holds {half}, half of a character: repair it."
            )
            return Record(place, None)
    return Record(place, fields, unchecked=True, controls=tuple(chosen))
