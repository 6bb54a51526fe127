"""What the first records tell of a source: columns of levels, and the names of its fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from himecat.errors import spelled
from himecat.input.fields import Fields
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


def prepare(source: Any, fields: Fields, with_labels: bool, problems: Problems) -> Prepared:
    """Look at the first records, and find columns of levels where the field with the labels is not there.

    Examples
    --------
    >>> found = Problems()
    >>> prepare([{"text": "a", "Level 1": "arts", "Level 2": "opera"}], Fields(), True, found).fields.labels
    ('Level 1', 'Level 2')
    >>> print(*found)
    labels: the columns 'Level 1', 'Level 2' are taken as the levels of the category (label_field= says otherwise).
    """
    source, records = peek(source, fields.reading)
    names = names_in(records)
    for record in records:
        names += [name for name in record.header if name not in names]
    if with_labels and not fields.levels and fields.label_fields[0] not in names:
        taken = {*fields.text, *fields.metadata, fields.id}
        levels = level_fields(name for name in names if name not in taken)
        if levels:
            fields = replace(fields, labels=levels)
            problems.note(
                "",
                f"labels: the columns {', '.join(map(quoted, levels))} are taken as the levels of the category "
                f"({spelled('--labels', 'label_field=')} says otherwise).",
            )
    return Prepared(source, fields, names)
