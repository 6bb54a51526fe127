"""Data frames with the columns that say where each document was placed."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from himecat.errors import UsageError
from himecat.input.fields import Fields
from himecat.input.problems import Problems
from himecat.output.columns import Cell, Column, PlacedColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from himecat.classifier.assignments import Assignments
    from himecat.input.builder import Origin
    from himecat.input.corpus import Corpus
    from himecat.input.taxonomy.tree import Taxonomy


class Model(Protocol):
    """What a fitted model has that a frame needs.

    Examples
    --------
    >>> from himecat import HiMeCat
    >>> hasattr(HiMeCat, "iter_assignments")
    True
    """

    taxonomy_: Taxonomy
    min_confidence: float
    skip_bad: bool

    @property
    def gives_sets(self) -> bool:
        """Whether documents get several paths."""

    @property
    def knows_nowhere(self) -> bool:
        """Whether documents get a probability of belonging to none of the categories."""

    @property
    def joint(self) -> str:
        """What stands between the names of a path."""

    def fields(self) -> Fields:
        """Which field of a document plays which part."""

    def iter_assignments(
        self,
        X: Any,
        problems: Problems,
        *,
        best: int,
        keep_labels: bool,
        keep_records: bool,
    ) -> Iterator[tuple[list[Origin], Corpus, Assignments]]:
        """Documents and where they were placed, in batches."""


def placed_frame(model: Model, documents: Any, *, top: int = 2, ignore_labels: bool = False) -> Any:
    """Documents as a table of their own kind with the columns that are added; see `HiMeCat.predict_frame`.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> documents = [{"text": "a late goal", "labels": "sport"}, {"text": "a new law", "labels": "politics"}]
    >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
    >>> placed_frame(model, documents, top=0)["labelled"].tolist()
    [True, True]
    """
    if top < 0:
        raise UsageError(f"top must be at least 0, not {top}.")
    kind = _kind(documents)
    if kind == "polars" and hasattr(documents, "collect"):
        documents = documents.collect()
    if kind == "pyarrow" and not hasattr(documents, "append_column"):
        import pyarrow

        documents = pyarrow.Table.from_batches(
            [documents] if hasattr(documents, "to_struct_array") else documents.to_batches()
        )
    names: list[str] = []
    if kind:
        place = {"pyarrow": "schema.names", "datasets": "column_names"}.get(kind, "columns")
        names = [str(name) for name in attrgetter(place)(documents)]
    problems = Problems()
    placed_rows: list[tuple[list[Origin], Assignments]] = []
    for origins, _, placed in model.iter_assignments(
        documents, problems, best=top + 1, keep_labels=not ignore_labels, keep_records=not kind
    ):
        placed_rows.append((origins, placed))
    if not model.skip_bad or problems.has_fatal:
        problems.raise_errors()
    records = (
        [dict(origin.record or {}) for origins, _ in placed_rows for origin in origins] if not kind else []
    )
    if not kind:
        names = list(dict.fromkeys(name for record in records for name in record))
    columns = PlacedColumns(
        model.taxonomy_,
        names,
        sets=model.gives_sets,
        separator=model.joint,
        top=top,
        guess=model.min_confidence > 0 and not model.gives_sets,
        labelled=not ignore_labels and {*names}.issuperset(model.fields().label_fields),
        none=model.knows_nowhere,
    )
    rows = [
        row
        for origins, placed in placed_rows
        for row in columns.rows(placed, [origin.id for origin in origins])
    ]
    values = [[row[number] for row in rows] for number in range(len(columns.added))]
    if kind:
        return _with_columns(kind, documents, columns.added, values)
    return _from_records(records, columns.added, values)


def _kind(documents: Any) -> str:
    """The library whose table this is, or nothing."""
    for base in type(documents).__mro__:
        library = base.__module__.partition(".")[0]
        # Of the type, because a frame that is not computed yet would have to find out its columns.
        if library in ("pandas", "polars", "pyarrow") and hasattr(type(documents), "columns"):
            return library
        if library == "pyarrow" and hasattr(documents, "schema"):
            return library
        if library == "datasets" and base.__name__ == "Dataset":
            return library
    return ""


def _with_columns(kind: str, frame: Any, added: list[Column], values: list[list[Cell]]) -> Any:
    if kind == "pandas":
        found = frame.copy(deep=False)
        for column, cells in zip(added, values, strict=True):
            found[column.name] = _typed(column, cells)
        return found
    if kind == "polars":
        import polars

        types: dict[type, Any] = {str: polars.String, float: polars.Float64, bool: polars.Boolean}
        return frame.with_columns(
            polars.Series(column.name, cells, dtype=types[column.type])
            for column, cells in zip(added, values, strict=True)
        )
    import pyarrow

    arrow = {str: pyarrow.string(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    for column, cells in zip(added, values, strict=True):
        found = pyarrow.array(cells, arrow[column.type])
        add = frame.add_column if kind == "datasets" else frame.append_column
        frame = add(column.name, found)
    return frame


def _typed(column: Column, cells: list[Cell]) -> Any:
    import numpy as np

    if column.type is str:
        # An array, because a list of nothing but None would be a column of numbers.
        texts = np.empty(len(cells), dtype=object)
        texts[:] = cells
        return texts
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=column.type)


def _from_records(records: list[dict[str, Any]], added: list[Column], values: list[list[Cell]]) -> Any:
    try:
        import pandas
    except ImportError:
        for column, cells in zip(added, values, strict=True):
            for record, cell in zip(records, cells, strict=True):
                record[column.name] = cell
        return records
    return _with_columns("pandas", pandas.DataFrame(records), added, values)
