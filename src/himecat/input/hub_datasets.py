"""Datasets of the Hugging Face library `datasets`, which is not imported: they are known by their names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from himecat.errors import UsageError
from himecat.input.problems import quoted, shortened
from himecat.input.tables import BATCH_ROWS, Rows, TableRows, arrow_rows, chosen_columns

Named = Callable[[Any], Any]


def library_names(source: object) -> set[str]:
    """The names of the classes of an object, each with the library that it is from.

    Examples
    --------
    >>> sorted(library_names("text"))
    ['builtins.object', 'builtins.str']
    """
    return {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(source).__mro__}


def dataset_rows(source: Any, wanted: Collection[str] | None = None) -> TableRows | None:
    """The rows of a dataset, with the names of its classes instead of their numbers; None for what is none.

    Raises
    ------
    UsageError
        These are several datasets, by split.

    Examples
    --------
    >>> import datasets
    >>> classes = datasets.ClassLabel(names=["arts", "sport"])
    >>> features = datasets.Features({"text": datasets.Value("string"), "label": classes})
    >>> rows = dataset_rows(datasets.Dataset.from_dict({"text": ["A goal."], "label": [1]}, features))
    >>> list(rows.batches)
    [[{'text': 'A goal.', 'label': 'sport'}]]
    """
    kinds = library_names(source)
    if kinds & {"datasets.DatasetDict", "datasets.IterableDatasetDict"}:
        splits = shortened([quoted(name) for name in source])
        raise UsageError(
            f"This is a {type(source).__name__} with the splits {splits}: pass one of them, such as "
            f"documents[{next(iter(source), 'train')!r}]."
        )
    if not kinds & {"datasets.Dataset", "datasets.IterableDataset"} or not source.column_names:
        return None
    names = list(source.column_names)
    chosen = list(chosen_columns(names, wanted))
    named = {name: found for name in chosen if (found := class_names((source.features or {}).get(name)))}

    def batches() -> Iterator[Rows]:
        # Without a column there would be no rows either.
        part = source.select_columns(chosen or names[:1]).with_format("arrow")
        for table in part.iter(batch_size=BATCH_ROWS):
            for batch in table.combine_chunks().to_batches():
                rows = arrow_rows(batch, chosen)
                for row in rows if named else ():
                    if not isinstance(row, str):
                        for name, name_of in named.items():
                            if (value := name_of(row.pop(name, None))) is not None:
                                row[name] = value
                yield rows

    return TableRows.of(names, wanted, batches())


def class_names(feature: Any) -> Named | None:
    """What gives the name of a class, or a list of names, for values of a feature; None for values of other kinds.

    Examples
    --------
    >>> import datasets
    >>> name_of = class_names(datasets.ClassLabel(names=["arts", "sport"]))
    >>> name_of(1), name_of(-1), class_names(datasets.Value("string"))
    ('sport', None, None)
    """
    if hasattr(feature, "int2str") and hasattr(feature, "names"):
        names = list(feature.names)

        def name_of(value: Any) -> Any:
            # Datasets without labels have -1.
            return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

        return name_of
    inner = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    of_one = None if inner is None else class_names(inner)
    if of_one is None:
        return None
    return lambda values: None if values is None else [of_one(value) for value in values]
