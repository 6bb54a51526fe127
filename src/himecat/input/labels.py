"""From the labels written in documents to nodes of the tree."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from himecat.errors import DataError
from himecat.input.corpus import Supervision
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy


def label_names(label: object) -> list[str]:
    """The names a raw label consists of, stripped, empty ones left out; an `a/b/c` string stays one name.

    Raises
    ------
    DataError
        The label is not a string or a list of strings, or nothing is left of it.

    Examples
    --------
    >>> label_names(" physics "), label_names(["science", "physics"])
    (['physics'], ['science', 'physics'])
    """
    if isinstance(label, str):
        elements: list[object] = [label]
    elif isinstance(label, (Sequence, np.ndarray)) and not isinstance(label, bytes):
        elements = list(label)
    else:
        raise DataError(f"a label must be a name or a list of names, but {described(label)} was found.")
    names = []
    for element in elements:
        if not isinstance(element, str):
            raise DataError(f"a list of labels must hold names only, but {described(element)} was found.")
        if element.strip():
            names.append(str(element).strip())
    if not names:
        raise DataError("the label is empty.")
    return names


def resolve_label(taxonomy: Taxonomy, label: str | Sequence[str]) -> int:
    """The node a label means.

    A string is the name of a category, or an `a/b/c` path where no single category has that name. A list is a
    path from the top; a path that starts further down, or names on one lineage in any order, mean the deepest
    of them. The root's name may lead a path: it is the way to say that a path starts at the top.

    Raises
    ------
    DataError
        The label is unknown, stands at several places, contradicts the tree, or is no label at all.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("science", "biology"), ("arts", "music")])
    >>> tree.title(resolve_label(tree, "physics")), tree.title(resolve_label(tree, ["arts", "music"]))
    ('science/physics', 'arts/music')
    >>> resolve_label(tree, "phisics")
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: unknown label 'phisics'; did you mean 'physics'?
    """
    names = label_names(label)
    if len(names) == 1:
        name = names[0]
        found = taxonomy.nodes_by_name.get(name, ())
        if len(found) == 1:
            return found[0]
        if not isinstance(label, str) and (top := taxonomy.walk(names)) is not None:
            return top
        if "/" in name:
            return _resolve_slashed(taxonomy, name)
        if found:
            raise _ambiguous(taxonomy, repr(name), found)
        if name == taxonomy.names[0]:
            raise _root_as_label(name)
        raise _unknown(taxonomy, name)
    return _resolve_path(taxonomy, names)


def _resolve_slashed(taxonomy: Taxonomy, text: str) -> int:
    # Names may contain a slash themselves ("TCP/IP"), so a whole title is compared before it is taken apart.
    titled = [n for n in taxonomy if n and text in (taxonomy.title(n), _from_root(taxonomy, n))]
    if len(titled) == 1:
        return titled[0]
    parts = [part.strip() for part in text.split("/") if part.strip()]
    if not parts:
        raise DataError("the label is empty.")
    if len(parts) == 1:
        return resolve_label(taxonomy, parts[0])
    known = taxonomy.nodes_by_name.get(text, ())
    if known and taxonomy.walk(parts) is None:
        raise _ambiguous(taxonomy, repr(text), known)
    return _resolve_path(taxonomy, parts)


def _resolve_path(taxonomy: Taxonomy, names: list[str]) -> int:
    node = taxonomy.walk(names)
    if node is not None:
        return node
    if names[0] == taxonomy.names[0]:
        names = names[1:]
        node = taxonomy.walk(names)
        if node is not None:
            return node
    candidates = [_candidates(taxonomy, name) for name in names]
    for name, found in zip(names, candidates, strict=True):
        if not found:
            raise _root_as_label(name) if name == taxonomy.names[0] else _unknown(taxonomy, name)
    wanted = tuple(names)
    ending_so = tuple(node for node in candidates[-1] if taxonomy.path(node)[-len(names) :] == wanted)
    meant = ending_so or _deepest_on_one_lineage(taxonomy, candidates)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise _ambiguous(taxonomy, repr("/".join(names)), meant)
    leaves = list(dict.fromkeys(f[0] for f in candidates if len(f) == 1 and taxonomy.is_leaf(f[0])))
    if len(leaves) > 1:
        titles = _listed(taxonomy.title(leaf) for leaf in leaves)
        raise DataError(f"the document is labelled with {len(leaves)} different leaves: {titles}.")
    raise _contradiction(taxonomy, names, candidates)


def _candidates(taxonomy: Taxonomy, name: str) -> tuple[int, ...]:
    found = taxonomy.nodes_by_name.get(name, ())
    if found or "/" not in name:
        return found
    node = taxonomy.walk([part.strip() for part in name.split("/")])
    return () if node is None else (node,)


def _deepest_on_one_lineage(taxonomy: Taxonomy, candidates: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The nodes whose lineage holds a candidate of every name, without those below another such node."""
    complete = {
        node
        for found in candidates
        for node in found
        if all(not set(taxonomy.lineages[node]).isdisjoint(others) for others in candidates)
    }
    return tuple(
        node
        for node in sorted(complete)
        if not any(above in complete for above in taxonomy.lineages[node][:-1])
    )


def _contradiction(taxonomy: Taxonomy, names: list[str], candidates: list[tuple[int, ...]]) -> DataError:
    breaking = next(
        (n for n in range(1, len(names)) if not _deepest_on_one_lineage(taxonomy, candidates[: n + 1])),
        len(names) - 1,
    )
    parents = sorted({taxonomy.parents[node] for node in candidates[breaking]})
    above = " or ".join(taxonomy.title(parent) for parent in parents if parent)
    where = f"below {above}" if above else "at the top level"
    return DataError(
        f"the label path {'/'.join(names)} contradicts the tree, where {names[breaking]} is {where}."
    )


def _ambiguous(taxonomy: Taxonomy, shown: str, nodes: Iterable[int]) -> DataError:
    titles = [taxonomy.title(n) if taxonomy.parents[n] else _from_root(taxonomy, n) for n in nodes]
    places = _listed(titles, "or")
    return DataError(f"the label {shown} stands at {len(titles)} places in the tree: write {places} instead.")


def _from_root(taxonomy: Taxonomy, node: int) -> str:
    return f"{taxonomy.names[0]}/{taxonomy.title(node)}"


def _unknown(taxonomy: Taxonomy, name: str) -> DataError:
    close = difflib.get_close_matches(name, taxonomy.nodes_by_name, n=3)
    if not close:
        return DataError(f"unknown label {name!r}: it is not in the tree.")
    return DataError(f"unknown label {name!r}; did you mean {_listed(map(repr, close), 'or')}?")


def _root_as_label(name: str) -> DataError:
    return DataError(
        f"the label {name!r} is the root of the tree, where every document belongs; name a category below it."
    )


def described(value: object) -> str:
    """What stands where a name was expected, in words.

    Examples
    --------
    >>> described(None), described(3)
    ('nothing (null)', 'the number 3')
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, (bool, np.bool_)):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, (int, float, np.number)):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "a list inside the list"
    return f"a value of type {type(value).__name__}"


def _listed(items: Iterable[str], joint: str = "and") -> str:
    *head, last = items
    return f"{', '.join(head)} {joint} {last}" if head else last


def supervise(
    taxonomy: Taxonomy, labels: Mapping[int, object], place_of: Callable[[int], str], problems: Problems
) -> Supervision:
    """Resolve the raw labels of documents, given by row; what cannot be resolved goes to `problems`.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("arts",)])
    >>> found = Problems()
    >>> labelled = supervise(tree, {4: "arts", 1: ["science", "physics"], 2: "art"}, "row {}".format, found)
    >>> labelled.rows.tolist(), [tree.title(node) for node in labelled.nodes]
    ([1, 4], ['science/physics', 'arts'])
    >>> [str(problem) for problem in found]
    ["row 2: unknown label 'art'; did you mean 'arts'?"]
    """
    rows: list[int] = []
    nodes: list[int] = []
    # A corpus repeats few distinct labels many times.
    known: dict[str | tuple[str, ...], int | str] = {}
    for row in sorted(labels):
        label = labels[row]
        try:
            names = label_names(label)
        except DataError as error:
            problems.error(place_of(row), str(error))
            continue
        key = names[0] if isinstance(label, str) else tuple(names)
        if key not in known:
            try:
                known[key] = resolve_label(taxonomy, key)
            except DataError as error:
                known[key] = str(error)
        outcome = known[key]
        if isinstance(outcome, str):
            problems.error(place_of(row), outcome)
        else:
            rows.append(row)
            nodes.append(outcome)
    return Supervision(np.array(rows, dtype=np.int64), np.array(nodes, dtype=np.int64))


def leaves_without_labels(taxonomy: Taxonomy, supervision: Supervision) -> list[int]:
    """The leaves that have neither a labelled document nor keywords; those of inner nodes do not count.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("arts",)])
    >>> labelled = Supervision(np.array([0]), np.array([tree.find("science")]))
    >>> [tree.title(leaf) for leaf in leaves_without_labels(tree, labelled)]
    ['arts', 'science/physics']
    >>> named = Supervision(labelled.rows, labelled.nodes, {tree.find("arts"): ("opera", "ballet")})
    >>> [tree.title(leaf) for leaf in leaves_without_labels(tree, named)]
    ['science/physics']
    """
    known = {*supervision.nodes.tolist(), *(node for node, words in supervision.keywords.items() if words)}
    return [leaf for leaf in taxonomy.leaves if leaf not in known]
