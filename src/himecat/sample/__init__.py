"""The sample corpus: 1,200 made-up letters to a town's service desk.

The data files beside this module are made by `scripts/make_sample.py` of the project's repository.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from himecat.errors import OutputError, UsageError
from himecat.input.dataset import random_rows
from himecat.input.taxonomy.readers import read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.files import atomic_folder

__all__ = ["METADATA", "sample_documents", "sample_split", "sample_taxonomy", "write_sample"]

METADATA = ("senders", "tags")

_FILES = Path(__file__).parent
_FEWEST_PER_LEAF = 8


def sample_taxonomy() -> Taxonomy:
    """Give the tree of the sample corpus: what people write to a town's service desk about.

    Returns
    -------
    Taxonomy
        Three levels, with leaves at each of them, an only child (`noise`), and two names that stand at two
        places (`repairs` and `permits`).

    Examples
    --------
    >>> tree = sample_taxonomy()
    >>> tree
    Taxonomy(22 leaves, 34 categories, depth 3)
    >>> [tree.title(node) for node in tree.nodes_by_name["repairs"]]
    ['streets/roads/repairs', 'homes/council-homes/repairs']
    """
    return read_taxonomy(_FILES / "taxonomy.yaml")


def sample_documents(n_documents: int | None = None) -> list[dict[str, Any]]:
    """Read the letters.

    Parameters
    ----------
    n_documents : int, optional
        Only so many: the first eight of every leaf, as far as they fit, then the first of the others. All by
        default.

    Returns
    -------
    list of dict
        `id`, `text`, the metadata `senders` and `tags` (lists of strings, empty where nothing is known), and
        `labels`, the true path from the top down.

    Examples
    --------
    >>> letters = sample_documents()
    >>> len(letters)
    1200
    >>> letters[0]["id"], letters[0]["labels"]
    ('letter-0001', ['waste', 'collection', 'missed-bins'])
    """
    with gzip.open(_FILES / "letters.jsonl.gz") as file:
        letters = [json.loads(line) for line in file]
    if n_documents is None:
        return letters
    n_leaves = len({tuple(letter["labels"]) for letter in letters})
    whole = isinstance(n_documents, int) and not isinstance(n_documents, bool)
    if not whole or not n_leaves <= n_documents <= len(letters):
        raise UsageError(
            f"n_documents must be a whole number from {n_leaves}, one letter per leaf, to {len(letters)}; "
            f"found {n_documents!r}."
        )
    fewest = min(_FEWEST_PER_LEAF, n_documents // n_leaves)
    first, others, seen = list[int](), list[int](), Counter[tuple[str, ...]]()
    for row, letter in enumerate(letters):
        leaf = tuple(letter["labels"])
        (first if seen[leaf] < fewest else others).append(row)
        seen[leaf] += 1
    return [letters[row] for row in sorted([*first, *others][:n_documents])]


def sample_split(
    documents: Sequence[Mapping[str, Any]], per_leaf: int = 5, seed: int = 0
) -> list[list[str] | None]:
    """Hide all labels but those of a few documents per leaf: what `fit` gets to see.

    The rule is the one by which draws of labelled documents are made for evaluation, so that both see the
    same documents: one `random.Random(seed)` goes through the leaves in the order of their names.

    Parameters
    ----------
    documents : sequence of mappings
        Documents with their true `labels`.
    per_leaf : int
        Labelled documents per leaf; a leaf with few documents shows fewer, so that one is left to test with.
    seed : int
        Which draw.

    Returns
    -------
    list
        For each document its path, or None.

    Examples
    --------
    >>> labels = sample_split(sample_documents(), per_leaf=5)
    >>> sum(path is not None for path in labels)
    110
    """
    if isinstance(per_leaf, bool) or not isinstance(per_leaf, int) or per_leaf < 0:
        raise UsageError(f"per_leaf must be a whole number from 0 on; found {per_leaf!r}.")
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, document in enumerate(documents):
        rows.setdefault(tuple(document["labels"]), []).append(row)
    labels: list[list[str] | None] = [None] * len(documents)
    for path, chosen in random_rows(rows, per_leaf, seed).items():
        for row in chosen:
            labels[row] = list(path)
    return labels


def write_sample(folder: str | PathLike[str], n_documents: int | None = None, per_leaf: int = 5) -> Path:
    """Write the sample corpus as a dataset folder, with what `fit` needs beside it and a README.

    The folder appears whole or not at all.

    Parameters
    ----------
    folder : path
        A folder that does not exist yet, or is empty; the one it stands in must exist.
    n_documents : int, optional
        As for `sample_documents`.
    per_leaf : int
        How many documents of each leaf show their labels in `documents.jsonl` and `doc_id.txt`; the draw is
        that of `sample_split` with seed 0.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    OutputError
        The folder holds something already, or cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     sorted(file.name for file in write_sample(f"{place}/letters").iterdir())
    ['README.md', 'corpus.jsonl', 'doc_id.txt', 'documents.jsonl', 'label_hier.txt', 'meta_dict.json',
     'taxonomy.yaml']
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(f"{target} exists already; name a new or an empty folder.")
    contents = sample_files(n_documents, per_leaf)
    with atomic_folder(target, overwrite=True, what="The sample corpus") as unfinished:
        for name, content in contents.items():
            (unfinished / name).write_text(content, encoding="utf-8", newline="\n")
    return target


def sample_files(n_documents: int | None = None, per_leaf: int = 5) -> dict[str, str]:
    """The text of every file that `write_sample` writes, by name.

    Examples
    --------
    >>> sample_files()["meta_dict.json"]
    '{"metadata": ["senders", "tags"]}\\n'
    """
    documents, tree = sample_documents(n_documents), sample_taxonomy()
    shown = sample_split(documents, per_leaf)
    rows_of: dict[str, list[int]] = {tree.title(leaf): [] for leaf in tree.leaves}
    for row, path in enumerate(shown):
        if path is not None:
            rows_of["/".join(path)].append(row)
    files = {
        name: (_FILES / name).read_text(encoding="utf-8")
        for name in ("README.md", "taxonomy.yaml", "label_hier.txt")
    }
    files["README.md"] = files["README.md"].format(
        count=f"{len(documents):,}",
        labelled=sum(path is not None for path in shown),
        per_leaf=per_leaf,
        metadata=",".join(METADATA),
    )
    return files | {
        "corpus.jsonl": _json_lines(documents),
        "documents.jsonl": _json_lines(
            document | {"labels": path or []} for document, path in zip(documents, shown, strict=True)
        ),
        "doc_id.txt": "".join(f"{leaf}\t{' '.join(map(str, rows))}\n" for leaf, rows in rows_of.items()),
        "meta_dict.json": json.dumps({"metadata": list(METADATA)}) + "\n",
    }


def _json_lines(documents: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
