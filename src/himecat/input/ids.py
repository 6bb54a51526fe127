"""The ids of documents: no two are the same."""

from __future__ import annotations

from collections import deque

from himecat.input.problems import quoted

_EVERY_ID = "give every document an id."


class Ids:
    """The ids of documents: given by the source, or the position where the source gives none.

    Examples
    --------
    >>> ids = Ids(None)
    >>> ids.add("a", "line 1"), ids.add("a", "line 2")
    (('a', ''), ('a', "the id 'a' is also the id of line 1: ids must differ."))
    """

    def __init__(self, remember: int | None) -> None:
        self._remember = remember
        self._count = 0
        # From an id to the place of its document. Plain strings, because millions of tuples keep the garbage
        # collector busy.
        self._given: dict[str, str] = {}
        self._positions: dict[str, str] = {}
        self._any_given = False
        # A dictionary finds its first key slowly once many before it are gone.
        self._in_order: deque[str] = deque()

    def skip(self, place: str) -> str:
        """The id of a document that could not be read; another document may have the same.

        That is its position or, where others have ids that could be the same, its place.
        """
        self._count += 1
        return place if self._any_given else str(self._count - 1)

    def add(self, identity: str | None, place: str) -> tuple[str, str]:
        """The id of the next document and, where another has it, the message that says so."""
        name = str(self._count) if identity is None else identity
        self._count += 1
        if name in self._given:
            first = self._given[name]
            if identity is None:
                return name, f"there is no id, and its position {name} is the id of {first}: {_EVERY_ID}"
            return name, f"the id {quoted(name)} is also the id of {first}: ids must differ."
        if name in self._positions:
            first = self._positions[name]
            return name, f"the id {quoted(name)} is the position of {first}, which has no id: {_EVERY_ID}"
        if identity is None:
            self._positions[name] = place
        else:
            self._given[name] = place
            self._any_given = True
        if self._remember is not None:
            self._in_order.append(name)
            if len(self._in_order) > self._remember:
                oldest = self._in_order.popleft()
                if self._given.pop(oldest, None) is None:
                    del self._positions[oldest]
        return name, ""
