"""Small files of names written by hand, YAML or JSON: what is wrong with one is said with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from himecat.errors import DataError


def parse_names(text: str, path: Path) -> object:
    """What the text of a JSON file, or else of a YAML file, holds.

    Names stay as they are written: `010` and `2019-01-01` are strings. A name that stands twice below one parent
    is a `DataError`.

    Examples
    --------
    >>> parse_names("arts: [opera, 010]", Path("tree.yaml"))
    {'arts': ['opera', '010']}
    """
    try:
        return (_parse_json if path.suffix.lower() == ".json" else _parse_yaml)(text, str(path))
    except RecursionError:
        raise DataError(f"{path}: the names are nested too deeply.") from None


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


def _parse_json(text: str, place: str) -> object:
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


def _parse_yaml(text: str, place: str) -> object:
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
