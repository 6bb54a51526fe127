"""Keywords as supervision: the words a user would look for in the documents of a category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from himecat.errors import DataError
from himecat.input.corpus import IntArray, Vocabulary
from himecat.input.problems import Problems, described, half_character, quoted, shortened
from himecat.input.separators import SLASH, path_of
from himecat.input.small_files import parse_names, read_text
from himecat.input.streams import shown
from himecat.input.taxonomy.label_search import ONE_PATH
from himecat.input.taxonomy.readers import refuse_too_large
from himecat.input.taxonomy.tree import ROOT_NAME, Taxonomy, label_names
from himecat.input.tokenizer import UNICODE, Tokenizer

KeywordSource = str | PathLike[str] | Mapping[Any, Any]

# No tree is that deep, but a mapping that holds itself has no end.
_DEEPEST = 500
_IN_MEMORY = "keywords"
_EXAMPLE = "'physics: [quantum, laser]'"


def read_keywords(
    source: KeywordSource,
    taxonomy: Taxonomy,
    problems: Problems | None = None,
    tokenizer: Tokenizer = UNICODE,
    separator: str = SLASH,
) -> dict[int, tuple[str, ...]]:
    """Read the keywords of categories.

    Parameters
    ----------
    source : mapping or path
        From a label to a list of words, or to one string of words separated by commas; or a YAML or JSON file
        that holds such a mapping. A label is written as in documents (`physics`, `science/physics`) and may be
        an inner category, whose words count for everything below it. Mappings may be nested like the tree.
    taxonomy : Taxonomy
        The tree.
    problems : Problems, optional
        Takes what is found; without it, errors are raised, all that were found at once.
    tokenizer : Tokenizer
        The one that the documents are read with.
    separator : str
        What separates levels in a label.

    Returns
    -------
    dict of int to tuple of str
        For every node that has keywords, its words as the tokenizer makes them, sorted: a phrase gives each
        of its words. Labels that mean the same node share their words.

    Raises
    ------
    DataError
        Without `problems`: the file cannot be read, or a label or its words cannot be used.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("science", "physics"), ("science", "biology"), ("arts",)])
    >>> words = read_keywords({"science": {"physics": ["Quantum", "dark matter"]}, "arts": "opera, ballet"}, tree)
    >>> {tree.title(node): found for node, found in words.items()}
    {'arts': ('ballet', 'opera'), 'science/physics': ('dark', 'matter', 'quantum')}
    """
    found = Problems() if problems is None else problems
    words_of: dict[int, set[str]] = {}
    try:
        entries, file = _load(source)
    except DataError as error:
        found.error("", str(error))
        entries, file = {}, ""
    for place, node, value in _words_by_node(entries, taxonomy, file, found, separator):
        try:
            words = _words(value, place, found, tokenizer)
        except DataError as error:
            found.error(place, str(error))
            continue
        words_of.setdefault(node, set()).update(words)
    if problems is None:
        found.raise_errors()
    return {node: tuple(sorted(words_of[node])) for node in sorted(words_of)}


def keyword_labels(source: KeywordSource, separator: str = SLASH) -> list[str | list[str]]:
    """The labels that keywords are given for, as `infer_taxonomy` takes them: a tree can be made of them.

    Raises
    ------
    DataError
        The file cannot be read, or a label is no name.

    Examples
    --------
    >>> keyword_labels({"science": {"physics": ["quantum"]}, "arts": "opera"})
    ['arts', ['science', 'physics']]
    """
    entries, file = _load(source)
    labels: list[str | list[str]] = []
    stack: list[tuple[list[str], Mapping[Any, Any]]] = [([], entries)]
    while stack:
        above, level = stack.pop()
        for key, value in level.items():
            label = path_of(_as_label(key), separator)
            try:
                names = label_names(label)
            except DataError as error:
                raise DataError(f"{file}: {error}") from None
            path = [*above, *(_parts(names) if separator == SLASH else names)]
            if isinstance(value, Mapping) and value:
                stack.append(([] if path == [ROOT_NAME] else path, value))
            else:
                labels.append(path if above or not isinstance(label, str) else names[0])
            if len(path) > _DEEPEST:
                raise DataError(f"{file}: the labels are nested too deeply.")
            refuse_too_large(len(labels), file)
    return labels


def known_keywords(
    keywords: Mapping[int, tuple[str, ...]], vocabulary: Vocabulary, taxonomy: Taxonomy, problems: Problems
) -> dict[int, IntArray]:
    """The word ids of the keywords that the documents have; a node without any is left out, with a warning.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("physics",), ("arts",)])
    >>> words, found = Vocabulary(("the", "opera"), np.array([9, 5])), Problems()
    >>> known = known_keywords({1: ("quantum",), 2: ("ballet", "opera")}, words, tree, found)
    >>> {tree.title(node): ids.tolist() for node, ids in known.items()}
    {'arts': [1]}
    >>> for problem in found:
    ...     print(problem)
    keywords: too rare in the documents to be of use: ballet, quantum.
    keywords: none that can be used is left for: physics.
    """
    known: dict[int, IntArray] = {}
    rare: set[str] = set()
    unusable: list[int] = []
    for node in sorted(keywords):
        ids = sorted({vocabulary.index[word] for word in keywords[node] if word in vocabulary.index})
        rare.update(word for word in keywords[node] if word not in vocabulary.index)
        if ids:
            known[node] = np.array(ids, dtype=np.int32)
        else:
            unusable.append(node)
    if rare:
        problems.warning(_IN_MEMORY, f"too rare in the documents to be of use: {shortened(sorted(rare))}.")
    if unusable:
        titles = [taxonomy.title(node) for node in unusable]
        problems.warning(_IN_MEMORY, f"none that can be used is left for: {shortened(titles)}.")
    return known


def _load(source: object) -> tuple[Mapping[Any, Any], str]:
    """The mapping a source holds, and the name of the source in messages."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        place = shown(path)
        text = read_text(path)
        content = parse_names(text, path) if text.strip() else None
        if content is None:
            raise DataError(f"{place}: the file is empty; write labels and their words into it: {_EXAMPLE}.")
    else:
        place, content = _IN_MEMORY, source
    if not isinstance(content, Mapping):
        raise DataError(
            f"{place}: a mapping from labels to words is needed, such as {_EXAMPLE}, but "
            f"{described(content)} was found."
        )
    if half := half_character(content):
        raise DataError(f"{place}: a name or a word holds {half}, half of a character: repair or remove it.")
    return content, place


def _words_by_node(
    entries: Mapping[Any, Any], taxonomy: Taxonomy, file: str, problems: Problems, separator: str
) -> Iterator[tuple[str, int, object]]:
    """For every label that has words: its place in messages, its node, and the words as they are written."""
    stack: list[tuple[int, Mapping[Any, Any], str]] = [(0, entries, file)]
    while stack:
        above, level, place = stack.pop()
        for key, value in level.items():
            # The root takes no keywords, but a nested file may start with it, as that of the tree may.
            if level is entries and isinstance(value, Mapping) and _is_root(taxonomy, key):
                stack.append((0, value, file))
                continue
            try:
                node = _node_below(taxonomy, above, path_of(_as_label(key), separator))
            except DataError as error:
                said = (
                    str(error)
                    .replace("the document is labelled with", "the label names")
                    .replace(f"; {ONE_PATH}", "")
                )
                problems.error(place, said)
                continue
            here = f"{file}, label {quoted(taxonomy.title(node))}"
            if isinstance(value, Mapping) and value:
                # Every step goes down in the tree, so that this ends for a mapping that holds itself too.
                stack.append((node, value, here))
            else:
                yield here, node, value


def _is_root(taxonomy: Taxonomy, key: object) -> bool:
    return key == taxonomy.names[0] and key not in taxonomy.nodes_by_name


def _as_label(key: object) -> Any:
    # JSON and YAML have names that look like numbers; a tree keeps those as they are written.
    number = isinstance(key, (int, float)) and not isinstance(key, bool)
    return quoted(key) if number else key


def _node_below(taxonomy: Taxonomy, above: int, label: Any) -> int:
    if not above:
        return taxonomy.find(label)
    names = label_names(label)
    path = taxonomy.path(above)
    for below in (names, _parts(names)):
        if below and (node := taxonomy.walk([*path, *below])) is not None:
            return node
    node = taxonomy.find([*path, *names])
    if node == above or above not in taxonomy.lineages[node]:
        raise DataError(f"the label {quoted('/'.join(names))} is not below {taxonomy.title(above)}.")
    return node


def _parts(names: Sequence[str]) -> list[str]:
    return [part.strip() for name in names for part in name.split("/") if part.strip()]


def _words(value: object, place: str, problems: Problems, tokenizer: Tokenizer) -> set[str]:
    if isinstance(value, str):
        written: list[object] = list(value.split(","))
    elif isinstance(value, (Sequence, set, frozenset, np.ndarray)) and not isinstance(value, bytes):
        written = list(value)
    elif value is None or isinstance(value, Mapping):
        written = []
    else:
        raise DataError(f"keywords must be a list of words or one string, but {described(value)} was found.")
    words: set[str] = set()
    for phrase in written:
        if isinstance(phrase, (int, np.integer)) and not isinstance(phrase, bool):
            phrase = quoted(phrase)
        if not isinstance(phrase, str):
            raise DataError(f"a list of keywords must hold words only, but {described(phrase)} was found.")
        parts = tokenizer.words(str(phrase))
        if phrase.strip() and not parts:
            problems.warning(place, f"the keyword {quoted(phrase)} has nothing in it that counts as a word.")
        words.update(parts)
    if not words:
        raise DataError("there are no keywords; write some words, or take the label out.")
    return words
