"""What the first records tell of a source: columns of levels, and the names of its fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from himecat.errors import UsageError
from himecat.input.fields import Fields
from himecat.input.label_studio import DEFAULT_LABELS
from himecat.input.peek import names_in, peek
from himecat.input.problems import Problems, quoted
from himecat.input.values import level_fields


class Prepared(NamedTuple):
    """A source that was looked at, the fields to read, and the names that its first records have.

    Examples
    --------
    >>> prepare([{"text": "a"}], Fields(), True, Problems()).names
    ['text']
    """

    source: Any
    fields: Fields
    names: list[str]


def prepare(
    source: Any, fields: Fields, with_labels: bool, problems: Problems, *, reading: bool = False
) -> Prepared:
    """Look at the first records, and find columns of levels where the field with the labels is not there.

    With `reading`, notes on how the file is read go to `problems` too; whoever reads it all gets them again.

    Examples
    --------
    >>> found = Problems()
    >>> prepare([{"text": "a", "Level 1": "arts", "Level 2": "opera"}], Fields(), True, found).fields.labels
    ('Level 1', 'Level 2')
    >>> print(*found)
    labels: the columns 'Level 1', 'Level 2' are taken as the levels of the category (--labels says otherwise).
    """
    source, records = peek(source, fields.reading, problems=problems if reading else None)
    names = names_in(records)
    for record in records:
        names += [name for name in record.header if name not in names]
    if with_labels and (controls := dict.fromkeys(name for one in records for name in one.controls or ())):
        fields = _annotated(list(controls), fields, names, problems)
    elif with_labels and not fields.levels and fields.label_fields[0] not in names:
        taken = {*fields.text, *fields.metadata, fields.id}
        levels = level_fields(name for name in names if name not in taken)
        if levels:
            fields = replace(fields, labels=levels)
            problems.note(
                "",
                f"labels: the columns {', '.join(map(quoted, levels))} are taken as the levels of the category "
                "(--labels says otherwise).",
            )
    return Prepared(source, fields, names)


def _annotated(controls: list[str], fields: Fields, names: list[str], problems: Problems) -> Fields:
    """The fields of tasks of Label Studio: their labels are what was chosen in one of the controls."""
    named = fields.label_fields[0]
    if not fields.levels and (named in controls or (named != DEFAULT_LABELS and named in names)):
        return fields
    if len(controls) > 1:
        problems.error(
            "",
            f"the tasks of Label Studio are annotated with {', '.join(map(quoted, controls))}: name the one that has "
            "the category with --labels.",
        )
        return fields
    try:
        fields = replace(fields, labels=controls[0])
    except UsageError as error:
        problems.error("", f"the annotation {quoted(controls[0])} cannot be the category: {error}")
        return fields
    problems.note("", f"labels: the annotation {quoted(controls[0])} is taken as the category.")
    return fields
