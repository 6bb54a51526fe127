"""The columns of metadata values: rules are learned from a whole column, and applied to single documents later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from himecat.input.corpus import MetadataColumn
from himecat.input.documents import Document
from himecat.input.kinds import Kind
from himecat.input.learned_rules import learn_rule
from himecat.input.problems import Problems, quoted
from himecat.input.ragged import Ragged
from himecat.input.rules import Rule
from himecat.input.token_ids import IdRows
from himecat.input.vocabulary import ranked

# Of so many documents with several values, what separates them is known.
_SEVERAL = 0.05
# Of a sample, values are those of so many documents of the whole.
_SHARED = 2


def learned_column(
    field: str,
    kind: Kind | None,
    read: IdRows,
    places: Sequence[str],
    problems: Problems,
    *,
    listed: bool = False,
    more: Mapping[str, int] | None = None,
) -> MetadataColumn:
    """The column of a field, once all documents are read.

    Parameters
    ----------
    field : str
        Its name.
    kind : Kind or None
        What its values are to be taken as; None where that is to be found.
    read : IdRows
        The values as they were read.
    places : sequence of str
        Where the documents were read.
    problems : Problems
        Receives what was taken, and what cannot be read.
    listed : bool
        Whether documents hold lists: their values are taken as they are, unless a kind is asked for.
    more : mapping of str to int, optional
        How often values occur in documents that are not among the rows. With it, the vocabulary has what at least two
        documents of all have.

    Examples
    --------
    >>> rows = IdRows()
    >>> rows.extend([[f"{cents / 100}"] for cents in range(155, 955, 20)])
    >>> found = Problems()
    >>> learned_column("price", None, rows, [], found).vocabulary.names
    ('7 or more', '3 to 5', '5 to 7', 'below 3')
    >>> print(*found)
    price: numbers, in 4 groups: below 3, 3 to 5, 5 to 7, 7 or more; metadata=['price:name'] says otherwise.
    """
    names, rows = read.names(), read.finish()
    several = listed or bool((rows.lengths > 1).mean() > _SEVERAL) if len(rows) else True
    totals = rows.totals(len(names))
    if more is not None:
        index = {name: number for number, name in enumerate(names)}
        names += [name for name in more if name not in index]
        totals = np.concatenate([totals, np.zeros(len(names) - len(totals), np.int64)])
        for number, name in enumerate(names):
            totals[number] += more.get(name, 0)
        del index
    learned = None
    if kind is not None or not several:
        with problems.recorded():
            learned = learn_rule(field, kind, names, totals)
    counted = None if more is None else totals
    least = 1 if more is None else _SHARED
    if learned is None:
        return MetadataColumn(*ranked(names, rows, least, totals=counted))
    problems.note("", learned.said)
    rule = learned.rule
    parts, unreadable = IdRows(), []
    for number, name in enumerate(names):
        values = rule.values(name)
        parts.extend([values or ()])
        if values is None:
            unreadable.append(number)
    if unreadable:
        _tell_unreadable(field, rule, rows, unreadable, places, problems)
    made = parts.finish()
    column = rows.expanded(made).distinct()
    if counted is not None:
        weights = np.repeat(counted, made.lengths)
        counted = np.bincount(made.values, weights=weights, minlength=len(parts.names())).astype(np.int64)
    return MetadataColumn(*ranked(parts.names(), column, least, rule=rule, totals=counted))


def _tell_unreadable(
    field: str, rule: Rule, rows: Ragged, unreadable: list[int], places: Sequence[str], problems: Problems
) -> None:
    wanted = set(unreadable)
    for row, value in zip(rows.row_of_value.tolist(), rows.values.tolist(), strict=True):
        if value in wanted:
            problems.warning(places[row], _missing(field, rule))


def ruled_rows(
    field: str, rule: Rule, documents: Sequence[Document], problems: Problems
) -> list[tuple[str, ...]]:
    """The values of a field of new documents, by the rule that was learned from others.

    Examples
    --------
    >>> from himecat.input.rules import Groups
    >>> documents = [Document(f"document {row}", "", "", {"price": [price]}, None, True)
    ...              for row, price in enumerate(["7", "on request"])]
    >>> found = Problems()
    >>> ruled_rows("price", Groups((5.0,)), documents, found)
    [('5 or more',), ()]
    >>> print(*found)
    document 1: the metadata field 'price' holds no number that can be read: it is taken as missing.
    """
    found: list[tuple[str, ...]] = []
    for document in documents:
        values: dict[str, None] = {}
        for value in document.metadata.get(field, ()):
            parts = rule.values(value)
            if parts is None:
                problems.warning(document.place, _missing(field, rule))
            else:
                values.update(dict.fromkeys(parts))
        found.append(tuple(values))
    return found


def _missing(field: str, rule: Rule) -> str:
    return (
        f"the metadata field {quoted(field)} holds no {rule.noun} that can be read: it is taken as missing."
    )
