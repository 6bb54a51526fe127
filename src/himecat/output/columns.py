"""The columns that say where documents were placed, as they stand beside the user's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments
from himecat.classifier.set_assignments import SetAssignments
from himecat.errors import DataError
from himecat.input.several import PATHS
from himecat.input.taxonomy.tree import Taxonomy

PREFIX = "himecat_"
"""Stands before the name of a column that the user has already."""

Cell = str | float | bool | None


class Column(NamedTuple):
    """A column that is added: its name, free among the user's, and the type of its values.

    Examples
    --------
    >>> Column("path", str).name
    'path'
    """

    name: str
    type: type


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no column has: with `himecat_` before it, as often as it takes.

    Examples
    --------
    >>> free_name("path", ["id", "path", "himecat_path"])
    'himecat_himecat_path'
    """
    while name in taken:
        name = PREFIX + name
    return name


class PlacedColumns:
    """What is told of each document in a table, column by column.

    Parameters
    ----------
    taxonomy : Taxonomy
        The tree.
    taken : collection of str
        The names of the user's own columns.
    separator : str
        What stands between the names of a path.
    top : int
        How many other leaves are told.
    guess : bool
        Whether the leaf is told that a path cut short would have had.
    sets : bool
        Whether documents have several paths: `paths` has all of them, and the other columns tell of the surest.
    labelled : bool
        Whether it is told which documents kept a label of their own.
    none : bool
        Whether the probability is told that a document belongs to none of the categories.

    Examples
    --------
    >>> import numpy as np
    >>> from himecat.classifier.assignments import assign
    >>> tree = Taxonomy.from_paths([("a", "b"), ("a", "c")])
    >>> columns = PlacedColumns(tree, ["id", "path"], top=1)
    >>> [column.name for column in columns.added]
    ['himecat_path', 'level1', 'level2', 'confidence', 'alternative1', 'alternative1_confidence']
    >>> placed = assign(tree, np.array([[0.75, 0.25]], dtype=np.float32), best=2)
    >>> list(columns.rows(placed, ["7"]))
    [('a/b', 'a', 'b', 0.75, 'a/c', 0.25)]
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        taken: Collection[str] = (),
        *,
        separator: str = "/",
        top: int = 2,
        guess: bool = False,
        labelled: bool = False,
        sets: bool = False,
        none: bool = False,
    ) -> None:
        self._taxonomy, self._separator = taxonomy, separator
        self._top, self._guess, self._labelled, self._none = top, guess, labelled, none
        self._spelled: dict[int, str] = {}
        names: list[tuple[str, type]] = [("path", str)]
        names += [(f"level{level}", str) for level in range(1, taxonomy.depth + 1)]
        names.append(("confidence", float))
        if none:
            names.append(("none", float))
        self._sets = sets
        if sets:
            names.append(("paths", str))
        for number in range(1, top + 1):
            names += [(f"alternative{number}", str), (f"alternative{number}_confidence", float)]
        if guess:
            names += [("guess", str), ("guess_confidence", float)]
        if labelled:
            names.append(("labelled", bool))
        used = set(taken)
        self.added: list[Column] = []
        for name, kind in names:
            self.added.append(Column(free_name(name, used), kind))
            used.add(self.added[-1].name)

    def rows(self, placed: Assignments, ids: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
        """The values of the columns for each document; None where there is nothing to tell.

        The assignments need as many of the best leaves as are told, and one more.
        """
        depths, confidence = self._taxonomy.depths, placed.rounded.tolist()
        best: list[list[int]] = [[]] * len(placed) if placed.best is None else placed.best.tolist()
        sure: list[list[float]] = placed.rounded_best.tolist()
        labelled = [False] * len(placed) if placed.labelled is None else placed.labelled.tolist()
        nowhere = [None] * len(placed) if placed.rounded_none is None else placed.rounded_none.tolist()
        for row, node in enumerate(placed.nodes.tolist()):
            names, depth = self._taxonomy.path(node), depths[node]
            found: list[Cell] = [self._text(node), *names, *([None] * (self._taxonomy.depth - depth))]
            surely = confidence[row][depth - 1] if depth else None
            if surely is not None and surely != surely:
                raise not_a_number(ids[row])
            found.append(surely)
            if self._none:
                found.append(nowhere[row])
            if self._sets and isinstance(placed, SetAssignments):
                found.append(PATHS.join(filter(None, map(self._text, placed.nodes_of(row)))) or None)
            for number in range(1, self._top + 1):
                leaf = best[row][number] if number < len(best[row]) else 0
                found += [self._text(leaf), sure[row][number] if leaf else None]
            if self._guess:
                told = cut_short(placed, row)
                found += [self._text(best[row][0]), sure[row][0]] if told else [None, None]
            if self._labelled:
                found.append(labelled[row])
            yield tuple(found)

    def arrow_fields(self) -> list[Any]:
        """The columns as fields of an Arrow schema."""
        import pyarrow

        types = {str: pyarrow.string(), float: pyarrow.float64(), bool: pyarrow.bool_()}
        return [pyarrow.field(column.name, types[column.type]) for column in self.added]

    def arrays(self, placed: Assignments, ids: Sequence[str]) -> list[Any]:
        """The same values as Arrow arrays, one for each column."""
        import pyarrow

        if isinstance(placed, SetAssignments):
            rows = list(self.rows(placed, ids))
            kinds = [one.type for one in self.arrow_fields()]
            return [pyarrow.array([row[number] for row in rows], kind) for number, kind in enumerate(kinds)]
        tree, nodes, every = self._taxonomy, placed.nodes, range(len(self._taxonomy))
        texts = pyarrow.array([self._text(node) for node in every], pyarrow.string())
        names = pyarrow.array([tree.path(node)[-1] if node else None for node in every], pyarrow.string())
        depths = tree.depth_array[nodes]

        def sure(values: npt.NDArray[np.float64], told: npt.NDArray[np.bool_]) -> Any:
            return pyarrow.array(values, pyarrow.float64(), mask=~told)

        found = [texts.take(nodes), *(names.take(level) for level in tree.lineage_rows(nodes).T)]
        surely = placed.rounded[np.arange(len(placed)), np.maximum(depths, 1) - 1]
        broken = np.flatnonzero((depths > 0) & np.isnan(surely))
        if len(broken):
            raise not_a_number(ids[int(broken[0])])
        found.append(sure(surely, depths > 0))
        if self._none:
            rounded = placed.rounded_none
            found.append(
                pyarrow.nulls(len(placed), pyarrow.float64()) if rounded is None else pyarrow.array(rounded)
            )
        best = np.zeros((len(placed), 0), dtype=np.int64) if placed.best is None else placed.best
        for number in range(1, self._top + 1):
            if number < best.shape[1]:
                leaves = best[:, number]
                found += [texts.take(leaves), sure(placed.rounded_best[:, number], leaves > 0)]
            else:
                found += [pyarrow.nulls(len(placed), one) for one in (pyarrow.string(), pyarrow.float64())]
        if self._guess:
            first = best[:, 0] if best.shape[1] else np.zeros(len(placed), dtype=np.int64)
            told = (first > 0) & ~placed.reached_leaf
            chances = placed.rounded_best[:, 0] if best.shape[1] else np.zeros(len(placed))
            found += [texts.take(np.where(told, first, 0)), sure(chances, told)]
        if self._labelled:
            labelled = np.zeros(len(placed), dtype=bool) if placed.labelled is None else placed.labelled
            found.append(pyarrow.array(labelled))
        return found

    def _text(self, node: int) -> str | None:
        if node not in self._spelled:
            self._spelled[node] = self._taxonomy.spelled(node, self._separator)
        return self._spelled[node] or None


def cut_short(placed: Assignments, row: int) -> bool:
    """Whether a document could have gone on to a leaf that is told.

    Examples
    --------
    >>> import numpy as np
    >>> from himecat.classifier.assignments import assign
    >>> sure = np.array([[0.75, 0.25]], dtype=np.float32)
    >>> cut_short(assign(Taxonomy.from_paths([("a",), ("b",)]), sure, 0.9, best=1), 0)
    True
    """
    best = placed.best
    if isinstance(placed, SetAssignments):
        return False
    return best is not None and bool(best[row][0]) and not placed.taxonomy.is_leaf(int(placed.nodes[row]))


def not_a_number(name: str) -> DataError:
    """What to say of a model whose probabilities are damaged.

    Examples
    --------
    >>> str(not_a_number("7"))
    'The model gives 7 a probability that is not a number: fit it anew.'
    """
    return DataError(f"The model gives {name} a probability that is not a number: fit it anew.")
