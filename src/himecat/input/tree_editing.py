"""Changes of a tree: categories renamed, moved, merged, split, added and deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from himecat.errors import DataError, UsageError
from himecat.input.labels import NOWHERE
from himecat.input.problems import quoted
from himecat.input.taxonomy.label_search import long_name
from himecat.input.taxonomy.nodes import GONE
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.bounds import bounds

OPERATIONS = ("rename", "move", "merge", "split", "add", "delete")


class Draft:
    """A tree that is being changed; its nodes keep their numbers, and new ones get further numbers.

    Examples
    --------
    >>> draft = Draft(Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)]))
    >>> draft.move(draft.find(["a", "b"]), draft.find(["d"]))
    >>> tree, nodes = draft.finished()
    >>> [tree.title(leaf) for leaf in tree.leaves], [tree.title(nodes[node]) for node in (3, 4)]
    (['d/b', 'a/c'], ['d/b', 'a/c'])
    """

    def __init__(self, tree: Taxonomy) -> None:
        self.before = tree
        self.names = dict(enumerate(tree.names))
        self.parents = dict(enumerate(tree.parents))
        self.became: dict[int, int] = {}

    def path(self, node: int) -> tuple[str, ...]:
        """The names from level 1 down to a node."""
        found = []
        while node > 0:
            found.append(self.names[node])
            node = self.parents[node]
        return tuple(reversed(found))

    def title(self, node: int) -> str:
        """The path as one string."""
        return "/".join(self.path(node)) or self.names[0]

    def children(self, node: int) -> list[int]:
        """The children of a node, in order."""
        return [one for one, parent in self.parents.items() if parent == node]

    def under(self, node: int) -> list[int]:
        """A node and all below it."""
        below: dict[int, list[int]] = {}
        for one, parent in self.parents.items():
            below.setdefault(parent, []).append(one)
        found = [node]
        for one in found:
            found += below.get(one, ())
        return found

    def origins(self, node: int) -> list[int]:
        """The nodes of the tree of before that have become a node or one below it."""
        here = set(self.under(node))
        return [one for one in range(len(self.before)) if self._now(one) in here]

    def _now(self, node: int) -> int:
        while node in self.became:
            node = self.became[node]
        return node

    def find(self, label: Any, what: str = "category") -> int:
        """The node that a label means now."""
        if isinstance(label, Sequence) and not len(label):
            raise UsageError(f"Name a {what}.")
        tree, nodes = self.finished()
        return {nodes[key]: key for key in self.names}[tree.find(label)]

    def parent(self, label: Any) -> int:
        """The node below which something is put; nothing, or the root's name, is the top level."""
        top = label is None or label in ("", "/", self.names[0]) or list(label) in ([], [self.names[0]])
        return 0 if top else self.find(label)

    def rename(self, node: int, name: str) -> None:
        """Give a category another name."""
        self._refuse_name(self.parents[node], name, node)
        self.names[node] = name.strip()

    def move(self, node: int, parent: int) -> None:
        """Put a category, with all below it, below another one."""
        if parent in self.under(node):
            raise UsageError(f"{self.title(node)} cannot be moved below itself.")
        if self.parents[node] == parent:
            raise UsageError(f"{self.title(node)} is there already.")
        self._refuse_name(parent, self.names[node], node)
        self.parents[node] = parent

    def merge(self, node: int, into: int) -> None:
        """Let a category become another one; children of the same name are merged too."""
        if node == into:
            raise UsageError(f"{self.title(node)} cannot be merged with itself.")
        if into in self.under(node) or node in self.under(into):
            raise UsageError(
                f"{self.title(node)} and {self.title(into)} lie on one path: delete the lower one, and its labels go "
                "to the one above."
            )
        stack = [(node, into)]
        while stack:
            one, other = stack.pop()
            known = {self.names[child]: child for child in self.children(other)}
            for child in self.children(one):
                if self.names[child] in known:
                    stack.append((child, known[self.names[child]]))
                else:
                    self.parents[child] = other
            self._remove(one, other)

    def add(self, parent: int, name: str) -> int:
        """A new category below another one."""
        self._refuse_name(parent, name)
        node = max(max(self.names), len(self.before) - 1) + 1
        self.names[node], self.parents[node] = name.strip(), parent
        return node

    def delete(self, node: int, *, drop: bool = False) -> None:
        """Take a category away, with all below it; it becomes its parent, or nothing."""
        parent = self.parents[node]
        for one in reversed(self.under(node)):
            self._remove(one, GONE if drop or parent == 0 else parent)

    def _remove(self, node: int, became: int) -> None:
        del self.names[node], self.parents[node]
        self.became[node] = became

    def _refuse_name(self, parent: int, name: Any, itself: int | None = None) -> None:
        if not isinstance(name, str) or not name.strip():
            raise UsageError("A category needs a name.")
        if not name.strip().isprintable():
            raise UsageError(f"{name!r} has characters that cannot be seen: take another name.")
        if len(name) > bounds().label:
            raise DataError(long_name(name))
        if name.strip() == NOWHERE:
            raise UsageError(
                f"{NOWHERE!r} is the label of documents that belong to no category: take another name."
            )
        for child in self.children(parent):
            if child != itself and self.names[child] == name.strip():
                where = f"below {self.title(parent)}" if parent else "at the top level"
                raise UsageError(
                    f"There is a category {quoted(name.strip())} {where} already: merge them instead."
                )

    def finished(self) -> tuple[Taxonomy, dict[int, int]]:
        """The tree as it is now, and the node of each number; `GONE` for what was deleted with its labels."""
        depth = {0: 0}
        for node in self.names:
            trail = []
            at = node
            while at not in depth:
                trail.append(at)
                at = self.parents[at]
            for below in reversed(trail):
                depth[below] = depth[self.parents[below]] + 1
        order = sorted(self.names, key=lambda node: (depth[node], node))
        place = {node: position for position, node in enumerate(order)}
        tree = Taxonomy(
            [self.names[node] for node in order], [place.get(self.parents[node], -1) for node in order]
        ).since(self.before.earlier)
        for node in self.became:
            place[node] = place.get(self._now(node), GONE)
        return tree, place


def change_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """A change, checked for what it needs.

    Examples
    --------
    >>> change_of({"op": "rename", "path": ["a"], "name": "b"})["name"]
    'b'
    >>> change_of({"op": "rename", "path": ["a"]})
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: A change 'rename' needs 'name'.
    """
    op = given.get("op")
    if op not in OPERATIONS:
        raise UsageError(f"There is no change {op!r} of a tree; there are {', '.join(OPERATIONS)}.")
    for key in _NEEDS[op]:
        if key not in given:
            raise UsageError(f"A change {op!r} needs {key!r}.")
    unknown = given.keys() - {"op", *_NEEDS[op], *_MAY_HAVE[op]}
    if unknown:
        raise UsageError(f"A change {op!r} has no {min(unknown)!r}.")
    return dict(given)


_NEEDS = {
    "rename": ("path", "name"),
    "move": ("path", "to"),
    "merge": ("path", "into"),
    "split": ("path", "children"),
    "add": ("name",),
    "delete": ("path",),
}
_MAY_HAVE: dict[str, tuple[str, ...]] = {
    "rename": (),
    "move": (),
    "merge": ("name",),
    "split": (),
    "add": ("parent", "keywords", "documents"),
    "delete": ("labels",),
}
