"""Which field of a record plays which part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from himecat.errors import UsageError
from himecat.input.kinds import Kind
from himecat.input.label_studio import DEFAULT_LABELS
from himecat.input.problems import half_character, quoted
from himecat.input.reading import AS_FOUND, Reading


@dataclass(frozen=True)
class Fields:
    """Which field of a record plays which part.

    Parameters
    ----------
    text : tuple of str
        Fields whose strings make up the text, in order; joined by a line break.
    metadata : tuple of str
        Fields that hold a string or a list of strings. In CSV and TSV files `|` separates values.
    labels : str or tuple of str
        Field with the category; documents without it are unlabelled. Several fields are its levels from the top.
    id : str
        Field with the document's id; without it the id is the position, counted from 0.
    extra : tuple of str
        Fields that are passed on as they are, for the readers of further columns.
    reading : Reading
        How files are read.
    kinds : mapping of str to Kind
        What the values of metadata fields are to be taken as, where a user says so.

    Examples
    --------
    >>> Fields(text=("title", "abstract"), metadata=("authors",)).metadata
    ('authors',)
    """

    text: tuple[str, ...] = ("text",)
    metadata: tuple[str, ...] = ()
    labels: str | tuple[str, ...] = DEFAULT_LABELS
    id: str = "id"
    extra: tuple[str, ...] = ()
    reading: Reading = AS_FOUND
    kinds: Mapping[str, Kind] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Check the names; a single name may stand for a tuple of one."""
        for part in ("text", "metadata"):
            names = getattr(self, part)
            object.__setattr__(self, part, (names,) if isinstance(names, str) else tuple(names))
        if not isinstance(self.labels, str):
            several = tuple(self.labels)
            object.__setattr__(self, "labels", several if len(several) > 1 else "".join(several))
        if not self.text:
            raise UsageError("Name at least one text field.")
        seen: set[str] = set()
        for name in (*self.text, *self.metadata, *self.label_fields, self.id):
            if not isinstance(name, str) or not name.strip():
                raise UsageError(f"A field name must be a non-empty string, not {quoted(name)}.")
            if half := half_character(name):
                raise UsageError(f"The field name {quoted(name)} holds {half}, half of a character.")
            if name in seen:
                raise UsageError(f"The field {quoted(name)} is named twice; a field can play one part only.")
            seen.add(name)

    @property
    def levels(self) -> tuple[str, ...]:
        """The fields that hold the levels of the category, where they are several."""
        return () if isinstance(self.labels, str) else self.labels

    @property
    def label_fields(self) -> tuple[str, ...]:
        """The field or fields with the category."""
        return (self.labels,) if isinstance(self.labels, str) else self.labels

    @property
    def all(self) -> frozenset[str]:
        """Every field that plays a part."""
        return frozenset((*self.text, *self.metadata, *self.label_fields, self.id, *self.extra))
