"""A model as a function from tables to tables, for whatever runs such functions on many machines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from himecat.batch.places import fetched
from himecat.errors import MissingExtraError, ModelFolderError, UsageError
from himecat.input.columns import with_extra_fields
from himecat.input.problems import Problems
from himecat.input.record import Record
from himecat.input.tables import BATCH_ROWS, arrow_rows
from himecat.model_folder.files import digest_of
from himecat.output.columns import PlacedColumns

if TYPE_CHECKING:
    from himecat.classifier.assignments import Assignments
    from himecat.estimator import HiMeCat
    from himecat.input.builder import Origin
    from himecat.input.corpus import Corpus

# Documents that are placed together.
_ROWS = 4096
_models: dict[Placer, HiMeCat] = {}
_loading = threading.Lock()


@dataclass
class Counts:
    """What became of documents.

    Examples
    --------
    >>> (Counts(2, skipped=1) + Counts(3)).documents
    5
    """

    documents: int = 0
    skipped: int = 0
    unknown: int = 0
    kept: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.documents + other.documents,
            self.skipped + other.skipped,
            self.unknown + other.unknown,
            self.kept + other.kept,
        )


@dataclass
class Outcome:
    """What became of the documents of one table or file, and what was noticed.

    Examples
    --------
    >>> Outcome().counts.documents
    0
    """

    counts: Counts = field(default_factory=Counts)
    problems: Problems = field(default_factory=Problems)

    def add(self, origins: Sequence[Origin], corpus: Corpus, placed: Assignments) -> None:
        """Count the documents of a batch."""
        usable = sum(origin.usable for origin in origins)
        bad = len(origins) - usable
        unknown = int((corpus.tokens.lengths == 0).sum()) - bad
        kept = 0 if placed.labelled is None else int(placed.labelled.sum())
        self.counts += Counts(usable, bad, unknown, kept)


@dataclass(frozen=True)
class Placer:
    """Places the documents of an Arrow table: a small object that can be sent anywhere.

    Only its arguments are pickled. A process loads the model when it places its first table, once for all threads.
    The answer for a document does not depend on the others in its table. Ids are not looked at.

    Parameters
    ----------
    model : str
        The model folder, on this machine or an address of fsspec; every worker has to reach it.
    columns : sequence of str, optional
        The columns of the table that the result begins with; all by default.
    top : int
        How many other leaves are told of each document.
    text, label_field : str or sequence of str, optional
        The columns with the text and the labels, if not named as in the fit.
    separator : str, optional
        What separates levels in labels and paths, if not as in the fit.
    min_confidence : float, optional
        As for `HiMeCat`; by default that of the model.
    ignore_labels : bool
        Place documents that carry a label by the model, too.
    skip_bad : bool
        Give a document that cannot be used an empty path; otherwise it is an error.
    online : bool
        Whether an encoder may be fetched from its hub.
    digest : str, optional
        Refuse any other model than the one with this digest.

    Examples
    --------
    >>> import pyarrow, tempfile
    >>> from himecat import Default, HiMeCat
    >>> documents = [{"text": "a late goal", "labels": "sport"}, {"text": "a new law", "labels": "politics"}]
    >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     place = Placer(f"{folder}/model", top=0)
    ...     found = place(pyarrow.table({"text": ["a goal", "the law"]}))
    >>> found.column_names
    ['text', 'path', 'level1', 'confidence', 'none']
    >>> found["path"].to_pylist()
    ['sport', 'politics']
    """

    model: str
    columns: tuple[str, ...] | None = None
    top: int = 2
    text: str | tuple[str, ...] | None = None
    label_field: str | tuple[str, ...] | None = None
    separator: str | None = None
    min_confidence: float | None = None
    ignore_labels: bool = False
    skip_bad: bool = False
    online: bool = False
    digest: str | None = None

    def __post_init__(self) -> None:
        if self.top < 0:
            raise UsageError(f"top must be at least 0, not {self.top}.")
        object.__setattr__(self, "model", str(self.model))
        for name in ("columns", "text", "label_field"):
            if isinstance(given := getattr(self, name), list):
                object.__setattr__(self, name, tuple(given))

    def __call__(self, table: Any) -> Any:
        """The table with the columns that `himecat predict` adds; of a pandas frame a frame with a new index."""
        arrow = _pyarrow()
        if is_frame := hasattr(table, "iloc"):
            table = arrow.Table.from_pandas(table, preserve_index=False)
        if isinstance(table, arrow.RecordBatch):
            table = arrow.Table.from_batches([table])
        if not isinstance(table, arrow.Table):
            raise UsageError(f"A placer takes a pyarrow table or batch, not a {type(table).__name__}.")
        names, outcome = self.names(table.schema.names), Outcome()
        parts = list(self.placed(table.to_batches(_ROWS), names, outcome))
        if not self.skip_bad or outcome.problems.has_fatal:
            outcome.problems.raise_errors()
        schema = self.schema(table.schema, names)
        found = arrow.Table.from_batches(parts, schema)
        return found.to_pandas() if is_frame else found

    def loaded(self) -> HiMeCat:
        """The model, which is loaded when it is first asked for."""
        with _loading:
            if self not in _models:
                _models[self] = self._load()
            return _models[self]

    def _load(self) -> HiMeCat:
        from himecat.estimator import HiMeCat

        with fetched(self.model) as folder:
            if self.digest is not None and digest_text(folder) != self.digest:
                raise ModelFolderError(
                    f"{self.model} is not the model that the job was begun with: take that one, or begin anew."
                )
            model = HiMeCat.load(folder, online=self.online)
        changes: dict[str, Any] = {"skip_bad": True, "threads": 1}
        given = {
            "text": self.text,
            "label_field": self.label_field,
            "min_confidence": self.min_confidence,
        }
        changes |= {name: value for name, value in given.items() if value is not None}
        model.set_params(**changes)
        if self.separator is not None:
            model.set_separator(self.separator)
        return model

    def names(self, taken: Sequence[str]) -> PlacedColumns:
        """The columns that are added to a table with columns of these names."""
        model = self.loaded()
        return PlacedColumns(
            model.taxonomy_,
            taken,
            sets=model.gives_sets,
            separator=model.joint,
            top=self.top,
            guess=model.min_confidence > 0 and not model.gives_sets,
            labelled=not self.ignore_labels and {*taken}.issuperset(model.fields().label_fields),
            none=model.knows_nowhere,
        )

    def schema(self, own: Any, added: PlacedColumns) -> Any:
        """The schema of the result for a table with this one."""
        kept = [one for one in own if self.columns is None or one.name in self.columns]
        return _pyarrow().schema([*kept, *added.arrow_fields()], metadata=own.metadata)

    def placed(
        self,
        batches: Iterable[Any],
        added: PlacedColumns,
        outcome: Outcome,
        start: str = "row ",
        first: int = 0,
    ) -> Iterator[Any]:
        """Record batches with the columns that are added; what is wrong goes to the outcome, and is placed nowhere.

        Rows are named by what `start` says and their number from `first` on.
        """
        arrow, model = _pyarrow(), self.loaded()
        fields = with_extra_fields(model.fields(), model.readers())
        wanted = {*fields.all} - {fields.id}
        for whole in batches:
            for offset in range(0, whole.num_rows, _ROWS):
                batch = whole.slice(offset, _ROWS)
                names = batch.schema.names
                chosen = [name for name in names if name in wanted]
                records = _records(batch, chosen, start, first, tuple(names), outcome.problems)
                arrays: list[list[Any]] = [[] for _ in added.added]
                for origins, corpus, placed in model.iter_assignments(
                    records, outcome.problems, _ROWS, best=self.top + 1, keep_labels=not self.ignore_labels
                ):
                    ids = [origin.place for origin in origins]
                    for column, found in zip(arrays, added.arrays(placed, ids), strict=True):
                        column.append(found)
                    outcome.add(origins, corpus, placed)
                first += batch.num_rows
                own = [
                    batch.column(place)
                    for place, name in enumerate(names)
                    if self.columns is None or name in self.columns
                ]
                joined = [arrow.concat_arrays(column) for column in arrays]
                yield arrow.RecordBatch.from_arrays([*own, *joined], schema=self.schema(batch.schema, added))


def _records(
    batch: Any, chosen: Sequence[str], start: str, first: int, header: tuple[str, ...], problems: Problems
) -> Iterator[Record]:
    number = first
    for offset in range(0, batch.num_rows, BATCH_ROWS):
        for row in arrow_rows(batch.slice(offset, BATCH_ROWS), chosen):
            place = f"{start}{number}"
            number += 1
            if isinstance(row, str):
                problems.error(place, row)
                yield Record(place, None)
            else:
                yield Record(place, row, unchecked=True, header=header)


def digest_text(folder: str) -> str:
    """What tells a model from any other; empty for no model.

    Examples
    --------
    >>> digest_text("no/such/folder")
    ''
    """
    found = digest_of(folder)
    return found.decode() if found.isalnum() else found.hex()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError.for_package("pyarrow", "files", "Placing tables") from None
    return pyarrow
