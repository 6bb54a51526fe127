"""Small files of names written by hand, YAML or JSON: what is wrong with one is said with its line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from himecat.errors import DataError
from himecat.input.problems import clipped, half_character, quoted
from himecat.input.streams import shown
from himecat.runtime.bounds import bounds, over

# YAML is read at about 100 kB a second, so that a file as long as a line may be would take minutes.
_YAML_PART = 16
_MERGED_NAMES = 100_000
_MERGE = "tag:yaml.org,2002:merge"


def parse_names(text: str, path: Path) -> object:
    """What the text of a JSON file, or else of a YAML file, holds.

    Names stay as they are written: `010` and `2019-01-01` are strings. A name that stands twice below one parent
    is a `DataError`, and so is half a character.

    Examples
    --------
    >>> parse_names("arts: [opera, 010]", Path("tree.yaml"))
    {'arts': ['opera', '010']}
    """
    place = shown(path)
    if path.suffix.lower() == ".json":
        content = parse_json(text, place)
    else:
        most = max(1, bounds().line // _YAML_PART)
        if len(text) > most:
            larger = over("line", _YAML_PART * len(text))
            raise DataError(
                f"{place}: YAML is slow to read, and this file is larger than a {_YAML_PART}th of a line: write "
                f"it as JSON, or raise the bound; {larger}."
            )
        try:
            content = _parse_yaml(text, place)
        except RecursionError:
            raise DataError(f"{place}: the names are nested too deeply.") from None
    if half := half_character(content):
        raise DataError(f"{place}: a name holds {half}, half of a character: repair or remove it.")
    return content


def read_text(path: Path) -> str:
    """The text of a small UTF-8 file; what prevents reading it is said in a `DataError`.

    Examples
    --------
    >>> read_text(Path("no-such-tree.yaml"))
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-tree.yaml: there is no such file.
    """
    place, most = shown(path), bounds().line
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            # Never all of it: a device has no end.
            raw = file.read(most + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{place}: there is no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{place}: this is a folder, but a file is needed.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{place}: the file cannot be read ({reason}).") from None
    if len(raw) > most:
        raise DataError(f"{place}: the file is too large for names; {over('line', 2 * len(raw))}.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{place} line {line}: invalid UTF-8; save the file with that encoding.") from None


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to is empty, instead of being waited for."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(descriptor, True)
    return descriptor


def parse_json(text: str, place: str) -> object:
    """What a small JSON file holds; a name that stands twice in one object is a `DataError`.

    Examples
    --------
    >>> parse_json('{"arts": ["opera"]}', "tree.json")
    {'arts': ['opera']}
    """

    def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        entries: dict[str, object] = {}
        for name, below in pairs:
            if name in entries:
                raise DataError(f"{place}: {quoted(name)} stands twice below one parent; keep one of them.")
            entries[name] = below
        return entries

    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise DataError(f"{place} line {error.lineno}: broken JSON ({error.msg}).") from None
    except DataError:
        raise
    except RecursionError:
        raise DataError(f"{place}: the names are nested too deeply.") from None
    except ValueError as error:
        raise DataError(f"{place}: {unreadable_json(error)}") from None


def unreadable_json(error: Exception) -> str:
    """What to say of JSON that is well formed, but too deep or with too large a number.

    Examples
    --------
    >>> unreadable_json(RecursionError())
    'this JSON cannot be read: lists or objects are nested too deeply.'
    """
    found = "lists or objects are nested too deeply"
    if not isinstance(error, RecursionError):
        found = "a number has too many digits; write it as a string"
    return f"this JSON cannot be read: {found}."


def _parse_yaml(text: str, place: str) -> object:
    import yaml

    class TreeLoader(yaml.SafeLoader):
        """Keeps numbers and dates as they are written, and knows the line of what cannot be a name."""

        merged = 0

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                here = f"{place} line {key.start_mark.line + 1}"
                if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":null"):
                    raise DataError(f"{here}: a category needs a name before the colon.")
                if key.value in seen:
                    raise DataError(
                        f"{here}: {quoted(key.value)} stands twice below one parent; keep one of them."
                    )
                seen.add(key.value)
            return super().construct_mapping(node, deep)

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            """Take in what merge keys (`<<`) name, as the safe loader does, but not without end."""
            own = [(key, value) for key, value in node.value if key.tag != _MERGE]
            named = [value for key, value in node.value if key.tag == _MERGE]
            # Before anything is merged: a mapping may name itself.
            node.value = own
            taken: list[Any] = []
            for value in named:
                below = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for mapping in reversed(below):
                    here = f"{place} line {mapping.start_mark.line + 1}"
                    if not isinstance(mapping, yaml.MappingNode):
                        raise DataError(f"{here}: only mappings can be merged (<<).")
                    self.flatten_mapping(mapping)
                    self.merged += len(mapping.value) + 1
                    if self.merged > _MERGED_NAMES:
                        raise DataError(f"{here}: merge keys (<<) multiply the names; write them out.")
                    taken += mapping.value
            node.value = taken + own

    def reject_bool(_: yaml.SafeLoader, node: yaml.Node) -> object:
        written = clipped(str(node.value)) if isinstance(node, yaml.ScalarNode) else "this"
        raise DataError(
            f"{place} line {node.start_mark.line + 1}: YAML reads {written} as true or false; "
            f'write it in quotes to use it as a name: "{written}".'
        )

    def reject_tag(_: yaml.SafeLoader, node: yaml.Node) -> object:
        tag = quoted(node.tag.replace("tag:yaml.org,2002:", "!!"))
        here = f"{place} line {node.start_mark.line + 1}"
        raise DataError(f"{here}: broken YAML (the tag {tag} has no meaning here): take it out.")

    # Only these keep their YAML meaning, so that 010 or 2019-01-01 stay the names they look like.
    TreeLoader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in forms if tag.rsplit(":", 1)[1] in ("bool", "null", "merge")]
        for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    # Tags that turn a name into something else could also fail at it (`!!int abc`).
    TreeLoader.yaml_constructors = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag and tag.rsplit(":", 1)[1] in ("null", "str", "seq", "map")
    }
    TreeLoader.add_constructor("tag:yaml.org,2002:bool", reject_bool)
    TreeLoader.add_constructor(None, reject_tag)
    try:
        # A safe loader: it builds plain dicts, lists and strings only.
        return yaml.load(text, Loader=TreeLoader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(
            f"{place}{line}: broken YAML ({clipped(str(error.problem or error.context))})."
        ) from None
    except yaml.YAMLError as error:
        raise DataError(f"{place}: broken YAML ({clipped(str(error).splitlines()[0])}).") from None
