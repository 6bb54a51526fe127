"""What changes of a tree will do, before it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from himecat.errors import UsageError
from himecat.input.problems import quoted
from himecat.input.separators import path_of
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tree_editing import Draft
from himecat.teaching.tree_wording import Concerned, Counts, told


@dataclass(frozen=True)
class TreePlan:
    """What changes of a tree will do.

    Attributes
    ----------
    said : tuple of str
        What happens to categories, labels and documents, a sentence each.
    needs_refit : bool
        Whether the classifier has to be fitted again.
    tree : Taxonomy
        The tree as it will be; it knows the one of before.
    nodes : tuple of int
        For each node of the tree of before the node it becomes, -1 where it is deleted with its labels.
    examples : mapping of int to tuple of str
        Ids of documents that become labelled, by node of the new tree.
    keywords : mapping of int to tuple of str
        New keywords, by node of the new tree.
    documents : object
        Where examples are found that are not kept with the model.
    """

    said: tuple[str, ...]
    needs_refit: bool
    tree: Taxonomy
    nodes: tuple[int, ...]
    examples: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    keywords: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    documents: Any = None


def drafted(
    draft: Draft,
    change: Mapping[str, Any],
    counts: Counts,
    examples: dict[int, tuple[str, ...]],
    keywords: dict[int, tuple[str, ...]],
    separator: str,
) -> str:
    """Carry out a change in a draft of the tree, and say what it does.

    Parameters
    ----------
    counts : Counts
        Labels and documents, to say how many a change concerns.
    examples, keywords : dict
        Take up those of new categories, by node of the draft.
    separator : str
        What separates the levels of a label in one string.

    Examples
    --------
    >>> import numpy as np
    >>> draft = Draft(Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)]))
    >>> counts = Counts(5, np.array([3, 3, 4]), None)
    >>> drafted(draft, {"op": "move", "path": "a/b", "to": ["d"]}, counts, {}, {}, "/")
    'a/b is moved to d/b; its 2 labels go with it.'
    """
    op = change["op"]

    def meant(label: Any) -> Any:
        return path_of(label, separator) if isinstance(label, str) else label

    if op == "add":
        parent = draft.parent(meant(change.get("parent")))
        had = counts.at(draft, parent) if parent and not draft.children(parent) else None
        node = draft.add(parent, change["name"])
        if ids := names_of(change.get("documents"), "documents"):
            examples[node] = ids
        if words := names_of(change.get("keywords"), "keywords"):
            keywords[node] = words
        return told.added(draft.title(node), len(ids), len(words), draft.title(parent), had)
    node = draft.find(meant(change["path"]))
    before, had = draft.title(node), counts.at(draft, node)
    if op == "rename":
        draft.rename(node, change["name"])
        return told.renamed(before, draft.title(node), had)
    if op == "move":
        draft.move(node, draft.parent(meant(change["to"])))
        return told.moved(before, draft.title(node), had)
    if op == "merge":
        into = draft.find(meant(change["into"]))
        other, added_up = draft.title(into), not draft.children(node) and not draft.children(into)
        draft.merge(node, into)
        if change.get("name") and change["name"] != draft.names[into]:
            draft.rename(into, change["name"])
        return told.merged(before, other, draft.title(into), had, added_up)
    if op == "split":
        return _split(draft, node, change["children"], had, examples)
    below, parent = len(draft.under(node)) - 1, draft.parents[node]
    wanted = change.get("labels", "parent")
    if wanted not in ("parent", "drop"):
        raise UsageError("What happens to the labels of a deleted category is 'parent' or 'drop'.")
    drop = wanted == "drop" or parent == 0
    draft.delete(node, drop=drop)
    return told.deleted(before, below, None if drop else draft.title(parent), had)


def _split(
    draft: Draft, node: int, children: Any, had: Concerned, examples: dict[int, tuple[str, ...]]
) -> str:
    if draft.children(node):
        raise UsageError(f"{draft.title(node)} has categories below it already: add others to them.")
    if not isinstance(children, Mapping) or len(children) < 2:
        raise UsageError("A category is split into two children or more, each with ids of documents.")
    for name, given in children.items():
        ids = names_of(given, "examples")
        if not ids:
            raise UsageError(f"The child {quoted(name)} needs ids of documents as examples.")
        examples[draft.add(node, name)] = ids
    return told.split(draft.title(node), list(children), had)


def names_of(given: Any, what: str) -> tuple[str, ...]:
    """Ids or words, each once.

    Examples
    --------
    >>> names_of(["a", "b", "a"], "documents"), names_of(None, "documents")
    (('a', 'b'), ())
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise UsageError(f"The {what} of a category are a list.")
    return tuple(dict.fromkeys(str(one).strip() for one in given if str(one).strip()))
