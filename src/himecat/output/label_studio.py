"""Predictions as tasks that Label Studio imports, one JSON array."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from himecat.classifier.set_assignments import SetAssignments
from himecat.input.label_studio import Differing
from himecat.output.columns import not_a_number
from himecat.runtime.files import atomic_file
from himecat.runtime.terminal import plain_json

if TYPE_CHECKING:
    from himecat.classifier.assignments import Assignments
    from himecat.input.builder import Origin

ENDING = ".ls.json"
"""The end of the name of a file that is written as tasks."""


def is_tasks(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name is written as tasks of Label Studio.

    Examples
    --------
    >>> is_tasks("sorted.ls.json"), is_tasks("sorted.json")
    (True, False)
    """
    return os.fsdecode(path).lower().endswith(ENDING)


class TaskWriter:
    """Writes documents with their predictions.

    Parameters
    ----------
    stream : text stream
        Receives the array; `finish` ends it.
    control, text_field, id_field : str
        The name of the control that shows the categories, and the fields with text and id.
    version : str
        What the predictions say of the model.
    top : int
        How many other leaves are told, each as a prediction of its own.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from himecat.classifier.assignments import assign
    >>> from himecat.input.builder import Origin
    >>> from himecat.input.taxonomy.tree import Taxonomy
    >>> tree, stream = Taxonomy.from_paths([("a", "b"), ("c",)]), io.StringIO()
    >>> writer = TaskWriter(stream, "topic", "text", "id", "model 1")
    >>> placed = assign(tree, np.array([[0.25, 0.75]], dtype=np.float32))
    >>> writer.write([Origin("7", "", True, record={"text": "A fox."})], placed)
    >>> writer.finish()
    >>> print(stream.getvalue().strip())
    [
    {"data": {"id": "7", "text": "A fox."}, "predictions": [{"model_version": "model 1", "score": 0.75, "result":
     [{"from_name": "topic", "to_name": "text", "type": "taxonomy", "value": {"taxonomy": [["a", "b"]]}}]}]}
    ]
    """

    def __init__(
        self, stream: TextIO, control: str, text_field: str, id_field: str, version: str, top: int = 0
    ) -> None:
        self._stream, self._control, self._text_field = stream, control, text_field
        self._id_field, self._version, self._top = id_field, version, top
        self._between = "[\n"

    def write(self, origins: Sequence[Origin], placed: Assignments) -> None:
        """Write the next documents; those that could not be read are left out."""
        for row, origin in enumerate(origins):
            if origin.record is None:
                continue
            own = origin.record.items()
            data = {name: _plain(value) for name, value in own if not isinstance(value, Differing)}
            # By its id the answer of a person finds the document again.
            data = {self._id_field: origin.id, **data}
            task = {"data": data, "predictions": list(self._predictions(origin, placed, row))}
            self._stream.write(f"{self._between}{plain_json(task)}")
            self._between = ",\n"

    def finish(self) -> None:
        """End the array."""
        self._stream.write("\n]\n" if self._between == ",\n" else "[]\n")

    def _predictions(self, origin: Origin, placed: Assignments, row: int) -> Iterator[dict[str, Any]]:
        path, sure = placed.path(row), placed.confidences(row)
        found = [([list(path)], float(sure[-1]))] if path else []
        if isinstance(placed, SetAssignments) and path:
            found = [([list(one) for one in placed.paths(row)], float(sure[-1]))]
        if self._top and placed.best is not None:
            told = zip(placed.best[row].tolist(), placed.rounded_best[row].tolist(), strict=True)
            found += [
                ([list(placed.taxonomy.path(leaf))], score)
                for leaf, score in list(told)[1 : self._top + 1]
                if leaf
            ]
        for paths, score in found:
            if score != score:
                raise not_a_number(origin.id)
            result = {
                "from_name": self._control,
                "to_name": self._text_field,
                "type": "taxonomy",
                "value": {"taxonomy": paths},
            }
            yield {"model_version": self._version, "score": score, "result": [result]}


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


@contextmanager
def open_tasks(path: str | os.PathLike[str], **options: Any) -> Iterator[TaskWriter]:
    """A file of tasks, which appears under its name when the block ends well; takes the options of `TaskWriter`."""
    with atomic_file(path, what="The predictions") as stream:
        writer = TaskWriter(stream, **options)
        yield writer
        writer.finish()
