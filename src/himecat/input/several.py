"""Labels that name several categories of one document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from himecat.errors import DataError, spelled
from himecat.input.corpus import Supervision
from himecat.input.labels import NOWHERE, supervise
from himecat.input.problems import Problems, clipped, quoted
from himecat.input.separators import FLAT, SEPARATORS, SLASH, path_of, split
from himecat.input.taxonomy.tree import Taxonomy

PATHS = "; "
"""What separates paths in one string, where a document is known to have several."""


@dataclass(frozen=True)
class Parted:
    """The single labels of documents.

    Attributes
    ----------
    labels : mapping of int to object
        One path each, by a number of its own.
    rows : sequence of int or None
        The document of each number; None where every document has one label, and its number is its row.

    Examples
    --------
    >>> parted({4: [["a", "b"], ["c"]], 6: "d"}).labels
    {0: ['a', 'b'], 1: ['c'], 2: 'd'}
    """

    labels: Mapping[int, object]
    rows: Sequence[int] | None = None

    def row(self, number: int) -> int:
        """The document of a label."""
        return number if self.rows is None else self.rows[number]


def parted(
    labels: Mapping[int, object],
    separator: str | None = None,
    tree: Taxonomy | None = None,
    several: bool | None = None,
) -> Parted:
    """Take the labels of documents apart that name several categories.

    A list of lists is several paths, as is a list of strings that each contain the separator. A plain list of names is
    one path.

    Parameters
    ----------
    labels : mapping
        Labels by row.
    separator : str, optional
        What separates levels, if it is known.
    tree : Taxonomy, optional
        The tree: names that are a path of it are one path.
    several : bool, optional
        Where it is said that documents have several categories, `;` separates them in a string; where it is said that
        they have one, labels stay as they are.

    Raises
    ------
    DataError
        A list can be one path or several.
    """
    if several is False:
        return Parted(labels)
    apart = {row: several_paths(label, separator, tree, several is True) for row, label in labels.items()}
    if all(parts is None for parts in apart.values()):
        return Parted(labels)
    flat: list[tuple[int, object]] = []
    for row, parts in apart.items():
        flat += [(row, part) for part in ([labels[row]] if parts is None else parts)]
    return Parted(dict(enumerate(label for _, label in flat)), [row for row, _ in flat])


def several_paths(
    label: object, separator: str | None, tree: Taxonomy | None = None, joined: bool = False
) -> list[object] | None:
    """The labels of a document that has several; None where there is one.

    Examples
    --------
    >>> several_paths([["a", "b"], ["c"]], None), several_paths(["a", "b"], None)
    ([['a', 'b'], ['c']], None)
    """
    if isinstance(label, str):
        names: list[object] = (
            [part.strip() for part in label.split(PATHS.strip()) if part.strip()] if joined else []
        )
        whole = tree is not None and label.strip() in tree.nodes_by_name
        return None if whole or len(names) < 2 else names
    if not isinstance(label, list | tuple | np.ndarray):
        return None
    parts = list(label)
    if any(isinstance(part, list | tuple | np.ndarray) for part in parts):
        found = [list(part) if isinstance(part, tuple | np.ndarray) else part for part in parts]
        return [part for part in found if not isinstance(part, list) or part]
    if len(parts) < 2 or not all(isinstance(part, str) for part in parts) or separator == FLAT:
        return None
    if tree is not None and tree.walk([part.strip() for part in parts]) is not None:
        return None
    possible = SEPARATORS if separator is None else (separator,)
    levels = [[len(split(part, one)) > 1 for part in parts] for one in possible]
    if any(all(one) for one in levels):
        return parts
    if tree is None and any(any(one) for one in levels):
        shown = clipped(", ".join(map(quoted, parts)))
        raise DataError(
            f"the list [{shown}] can be one path or several: write a path as a list of names, and several as a list "
            "of such lists."
        )
    return None


def turned(labels: Iterable[object]) -> str:
    """What is said of lists of names of which one stands above another here and below it there; empty for none.

    Examples
    --------
    >>> turned([["a", "b"], ["b", "a"]])
    "labels: 'a' stands above 'b' in one list and below it in another: a list of names is one path, ..."
    """
    lists = (label for label in labels if isinstance(label, list | tuple))
    pairs = {(str(one), str(other)) for label in lists for one, other in pairwise(label)}
    for one, other in sorted(pairs):
        if one < other and (other, one) in pairs:
            return (
                f"labels: {quoted(one)} stands above {quoted(other)} in one list and below it in another: a list of "
                "names is one path, and several paths are a list of lists."
            )
    return ""


def resolved(
    tree: Taxonomy,
    given: Parted,
    place_of: Callable[[int], str],
    problems: Problems | None = None,
    separator: str = SLASH,
) -> Supervision:
    """The nodes of labels; documents with several have a row for each, those that lead to others left out.

    Labels may still have their levels joined by a separator. Without `problems`, errors are raised.

    Examples
    --------
    >>> tree, found = Taxonomy.from_paths([("a", "b"), ("c",)]), Problems()
    >>> labelled = resolved(tree, parted({4: [["a", "b"], ["a"], ["c"]], 6: "c"}), "row {}".format, found)
    >>> labelled.rows.tolist(), [tree.title(node) for node in labelled.nodes]
    ([4, 4, 6], ['a/b', 'c', 'c'])
    """
    labels = {number: path_of(label, separator) for number, label in given.labels.items()}
    own = Problems() if problems is None else problems
    found = supervise(tree, labels, lambda number: place_of(given.row(number)), own)
    if problems is None:
        own.raise_errors()
    if given.rows is None:
        return found
    row_of = np.asarray(given.rows, dtype=np.int64)
    rows, nowhere = row_of[found.rows], np.unique(row_of[found.nowhere])
    for row in np.intersect1d(rows, nowhere).tolist():
        own.error(place_of(row), f"{NOWHERE!r} stands beside a category: a document has categories, or none.")
    if problems is None:
        own.raise_errors()
    return most_specific(tree, replace(found, rows=rows, nowhere=np.setdiff1d(nowhere, rows)))


def most_specific(taxonomy: Taxonomy, labelled: Supervision) -> Supervision:
    """The labels of documents without those that lead to another of the same document, and without repeats.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "b"), ("c",)])
    >>> found = most_specific(tree, Supervision(np.array([0, 0, 0]), np.array([1, 3, 2])))
    >>> found.rows.tolist(), [tree.title(node) for node in found.nodes]
    ([0, 0], ['a/b', 'c'])
    """
    pairs = sorted(set(zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True)))
    above = {(row, up) for row, node in pairs for up in taxonomy.lineages[node][:-1]}
    kept = [pair for pair in pairs if pair not in above]
    order = sorted(kept, key=lambda pair: (pair[0], taxonomy.path(pair[1])))
    rows, nodes = np.array(order, dtype=np.int64).reshape(-1, 2).T
    return replace(labelled, rows=rows, nodes=nodes)


def check_several(
    labelled: Supervision, several: bool | None, place_of: Callable[[int], str], problems: Problems
) -> bool:
    """Whether documents get a set of paths; it is said where it was found, and refused where it was ruled out.

    Examples
    --------
    >>> few, found = Supervision(np.array([0, 0, 1, 2]), np.array([1, 2, 2, 1])), Problems()
    >>> check_several(few, None, "row {}".format, found), str(found.items[0])
    (True, 'labels: 1 of 3 labelled documents has more than one category, so every document gets a set of paths ...')
    """
    rows, counts = np.unique(labelled.rows, return_counts=True)
    more = rows[counts > 1]
    if several is True and not len(rows):
        problems.error(
            "",
            f"Several categories per document ({spelled('--several', 'several=True')}) need labelled documents.",
        )
    elif several is False and len(more):
        count = "1 document has" if len(more) == 1 else f"{len(more):,} documents have"
        problems.error(
            "",
            f"{count} more than one category ({place_of(int(more[0]))} first), and one each was asked for: keep one "
            f"of them, or leave out {spelled('--no-several', 'several=False')}.",
        )
    elif several is None and len(more):
        problems.note(
            "",
            f"labels: {len(more):,} of {len(rows):,} labelled documents {'has' if len(more) == 1 else 'have'} more "
            "than one category, so every document gets a set of paths "
            f"({spelled('--no-several', 'several=False')} refuses such labels).",
        )
    return several is True or (several is None and len(more) > 0)
