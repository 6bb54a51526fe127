"""Reading category trees: nested YAML or JSON, `parent child ...` lines, or the labels found in documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from himecat.errors import DataError
from himecat.input.problems import Problems
from himecat.input.taxonomy.lines import refuse_too_large, tree_of_lines
from himecat.input.taxonomy.tree import ROOT_NAME, Taxonomy, label_names

TaxonomySource = Taxonomy | str | PathLike[str] | Mapping[Any, Any] | Sequence[Any]
Nested = dict[str, "Nested"]


def read_taxonomy(source: TaxonomySource, problems: Problems | None = None) -> Taxonomy:
    """Read a category tree.

    Parameters
    ----------
    source : Taxonomy, path, mapping or sequence
        A file: `.yaml`, `.yml` and `.json` hold nested names, every other file holds `parent child child ...`
        lines, separated by blanks, or by tabs where names contain blanks. Nested names are what YAML gives: a
        category maps to its children, to a list of them, or to nothing. One `ROOT` at the top is the root.
    problems : Problems, optional
        Takes notes about the tree; errors are raised, all that were found at once.

    Raises
    ------
    DataError
        The file cannot be read, or what it holds is not a tree with two or more leaves.

    Examples
    --------
    >>> tree = read_taxonomy({"science": {"physics": None, "biology": ["zoology", "botany"]}, "arts": None})
    >>> [tree.title(leaf) for leaf in tree.leaves]
    ['arts', 'science/physics', 'science/biology/zoology', 'science/biology/botany']
    """
    place = "the tree"
    if isinstance(source, Taxonomy):
        taxonomy = source
    elif isinstance(source, (str, PathLike)):
        path = Path(source)
        place = str(path)
        text = read_text(path)
        if not text.strip():
            raise DataError(f"{path}: the file is empty; write the category tree into it.")
        if path.suffix.lower() in (".yaml", ".yml"):
            taxonomy = _from_nested(parse_yaml(text, place), place)
        elif path.suffix.lower() == ".json":
            taxonomy = _from_nested(parse_json(text, place), place)
        else:
            taxonomy = tree_of_lines(text, place, problems or Problems())
    else:
        taxonomy = _from_nested(source, place)
    _require_two_leaves(taxonomy, place)
    return taxonomy


def infer_taxonomy(label_paths: Iterable[object]) -> Taxonomy:
    """The smallest tree that holds every label found in documents; names are sorted at each level.

    Lists and `a/b/c` strings are paths from the top; a path that another one continues ends at an inner node.
    A bare name is a category of level 1 unless it stands in a longer path: there it means that place.

    Parameters
    ----------
    label_paths : iterable of str or list of str
        The labels as the documents give them.

    Examples
    --------
    >>> tree = infer_taxonomy([["science", "physics"], "science/biology", "arts", "physics", ["science"]])
    >>> [tree.title(leaf) for leaf in tree.leaves]
    ['arts', 'science/biology', 'science/physics']
    """
    paths: set[tuple[str, ...]] = set()
    bare: set[str] = set()
    for label in label_paths:
        names = label_names(label)
        if len(names) == 1 and "/" in names[0]:
            names = [part.strip() for part in names[0].split("/") if part.strip()]
        elif isinstance(label, str):
            bare.add(names[0])
            continue
        if names and names[0] == ROOT_NAME:
            names = names[1:]
        if names:
            paths.add(tuple(names))
    placed = {name for path in paths for name in path}
    paths.update((name,) for name in bare - placed - {ROOT_NAME})
    place = "the labels found in the documents"
    if not paths:
        raise DataError(f"{place}: there are none, so no tree can be made of them; give the tree in a file.")
    taxonomy = Taxonomy.from_paths(sorted(paths))
    _require_two_leaves(taxonomy, place)
    return taxonomy


def render_tree(taxonomy: Taxonomy, annotate: Callable[[int], str] | None = None) -> str:
    """Draw the tree with lines, one category per row; `annotate` adds text behind a category's name.

    Examples
    --------
    >>> print(render_tree(Taxonomy.from_paths([("science", "physics"), ("science", "biology"), ("arts",)])))
    science
    ├── physics
    └── biology
    arts
    """
    rows: list[str] = []
    stack = [(node, "", "") for node in reversed(taxonomy.children[0])]
    while stack:
        node, lead, below = stack.pop()
        note = annotate(node) if annotate else ""
        rows.append(f"{lead}{taxonomy.names[node]}{' ' * bool(note)}{note}")
        children = taxonomy.children[node]
        for child in reversed(children):
            last = child == children[-1]
            stack.append((child, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")))
    return "\n".join(rows)


def _require_two_leaves(taxonomy: Taxonomy, place: str) -> None:
    if taxonomy.n_leaves >= 2:
        return
    only = (
        f"is only one leaf, {taxonomy.title(taxonomy.leaves[0])}" if taxonomy.leaves else "are no categories"
    )
    raise DataError(f"{place}: there {only}; a tree needs two or more leaves to choose from.")


def read_text(path: Path) -> str:
    """The text of a small UTF-8 file; what prevents reading it is said in a `DataError`.

    Examples
    --------
    >>> read_text(Path("no-such-tree.yaml"))
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-tree.yaml: there is no such file.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: this is a folder, but a file is needed.") from None
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror}).") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path} line {line}: invalid UTF-8; save the file with that encoding.") from None


def parse_json(text: str, place: str) -> object:
    """What a JSON text holds; a name that stands twice below one parent is a `DataError`.

    Examples
    --------
    >>> parse_json('{"arts": ["opera"]}', "tree.json")
    {'arts': ['opera']}
    """

    def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        entries: dict[str, object] = {}
        for name, below in pairs:
            if name in entries:
                raise DataError(f"{place}: {name!r} stands twice below one parent; keep one of them.")
            entries[name] = below
        return entries

    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise DataError(f"{place} line {error.lineno}: broken JSON ({error.msg}).") from None
    except RecursionError:
        raise DataError(f"{place}: the names are nested too deeply.") from None


def parse_yaml(text: str, place: str) -> object:
    """What a YAML text holds, with names as they are written: `010` and `2019-01-01` stay strings.

    Examples
    --------
    >>> parse_yaml("arts: [opera, 010]", "tree.yaml")
    {'arts': ['opera', '010']}
    """
    import yaml

    class TreeLoader(yaml.SafeLoader):
        """Keeps numbers and dates as they are written, and knows the line of what cannot be a name."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                here = f"{place} line {key.start_mark.line + 1}"
                if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":null"):
                    raise DataError(f"{here}: a category needs a name before the colon.")
                if key.value in seen:
                    raise DataError(f"{here}: {key.value!r} stands twice below one parent; keep one of them.")
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    def reject_bool(_: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
        raise DataError(
            f"{place} line {node.start_mark.line + 1}: YAML reads {node.value} as true or false; "
            f'write it in quotes to use it as a name: "{node.value}".'
        )

    # Only these keep their YAML meaning, so that 010 or 2019-01-01 stay the names they look like.
    TreeLoader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in forms if tag.rsplit(":", 1)[1] in ("bool", "null", "merge")]
        for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    TreeLoader.add_constructor("tag:yaml.org,2002:bool", reject_bool)
    try:
        # A safe loader: it builds plain dicts, lists and strings only.
        return yaml.load(text, Loader=TreeLoader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{place}{line}: broken YAML ({error.problem or error.context}).") from None
    except yaml.YAMLError as error:
        raise DataError(f"{place}: broken YAML ({str(error).splitlines()[0]}).") from None
    except RecursionError:
        raise DataError(f"{place}: the names are nested too deeply.") from None


def _from_nested(source: object, place: str) -> Taxonomy:
    nested: Nested = {}
    stack: list[tuple[object, Nested, str]] = [(source, nested, "at the top")]
    size = 0
    while stack:
        value, level, where = stack.pop()
        if value is None:
            continue
        if isinstance(value, (str, bytes)) or not isinstance(value, (Mapping, Sequence)):
            raise DataError(
                f"{place}: {where} {value!r} was found; write the children of a category as a list of names "
                "or a mapping, and nothing where there are none."
            )
        for key, children in _entries(value):
            name = _checked_name(key, where, place)
            if name in level:
                raise DataError(f"{place}: {name!r} stands twice {where}; keep one of them.")
            level[name] = {}
            stack.append((children, level[name], f"below {name!r}"))
            size += 1
            refuse_too_large(size, place)
    if ROOT_NAME in nested:
        beside = next((name for name in nested if name != ROOT_NAME), None)
        if beside is not None:
            raise DataError(f"{place}: {beside!r} stands beside the root; move it below {ROOT_NAME}.")
        nested = nested[ROOT_NAME]
    return Taxonomy.from_children(nested)


def _entries(value: Mapping[Any, Any] | Sequence[Any]) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
        return
    for item in value:
        if isinstance(item, Mapping):
            yield from item.items()
        else:
            yield item, None


def _checked_name(key: object, where: str, place: str) -> str:
    if isinstance(key, bool) or key is None:
        raise DataError(
            f"{place}: {where} {json.dumps(key)} was found where a name is needed; "
            "write the name in quotes, or take the entry out."
        )
    if isinstance(key, (int, float)):
        return str(key)
    if not isinstance(key, str):
        raise DataError(f"{place}: {where} a {type(key).__name__} was found where a name is needed.")
    if not key.strip():
        raise DataError(f"{place}: {where} an empty name was found.")
    return str(key).strip()
