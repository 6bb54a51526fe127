"""The sample corpus as files, so that every command can be tried on it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from himecat.errors import OutputError
from himecat.input.taxonomy.tree import Taxonomy
from himecat.samples.generator import METADATA, sample_documents, sample_split, sample_taxonomy

_README = """\
# Letters to a service desk

{count} made-up letters to the service desk of a small town, to try himecat on. Every letter has an `id`, a
`text`, the metadata fields `senders` and `tags` (lists, often empty) and `labels`, its path in the tree.

| file | what it holds |
|---|---|
| `documents.jsonl` | the letters; only {labelled} ({per_leaf} per leaf) have labels: what `fit` needs |
| `taxonomy.yaml` | the tree, nested |
| `corpus.jsonl` | the letters with all true labels: what `evaluate` and `score` need |
| `label_hier.txt` | the tree in `parent child child ...` lines |
| `doc_id.txt` | the labelled letters: `leaf<TAB>line numbers` in `corpus.jsonl`, from 0 |
| `meta_dict.json` | the names of the metadata fields |

The names `repairs` and `permits` stand at two places. In `label_hier.txt` such a name is one category with
two parents, which unfolds into one category per place; `doc_id.txt` names leaves by their whole path.

    himecat check documents.jsonl --taxonomy taxonomy.yaml --metadata {metadata}
    himecat fit documents.jsonl --taxonomy taxonomy.yaml --metadata {metadata} -o model
    himecat predict model documents.jsonl -o predictions.jsonl
    himecat score predictions.jsonl . --without-draw 0
    himecat evaluate . --draws 5
"""


def write_sample(
    folder: str | PathLike[str], n_documents: int = 1200, seed: int = 0, per_leaf: int = 5
) -> Path:
    """Write the sample corpus as a dataset folder, with what `fit` needs beside it and a README.

    The folder appears whole or not at all.

    Parameters
    ----------
    folder : path
        A folder that does not exist yet, or is empty.
    n_documents, seed : int
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
    contents = _contents(n_documents, seed, per_leaf)
    # Beside the target, so that the finished folder can be moved into place in one step.
    unfinished = target.absolute().with_name(f".{target.absolute().name}-{os.getpid()}.part")
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise OutputError(f"{target} exists already; name a new or an empty folder.")
        unfinished.mkdir(parents=True)
        for name, content in contents.items():
            (unfinished / name).write_text(content, encoding="utf-8", newline="\n")
        if target.exists():
            target.rmdir()
        unfinished.rename(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{target} could not be written ({error.strerror}).") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _contents(n_documents: int, seed: int, per_leaf: int) -> dict[str, str]:
    """The text of every file, by name."""
    documents, tree = sample_documents(n_documents, seed), sample_taxonomy()
    shown = sample_split(documents, per_leaf)
    rows_of: dict[str, list[int]] = {tree.title(leaf): [] for leaf in tree.leaves}
    for row, path in enumerate(shown):
        if path is not None:
            rows_of["/".join(path)].append(row)
    return {
        "README.md": _README.format(
            count=f"{len(documents):,}",
            labelled=sum(path is not None for path in shown),
            per_leaf=per_leaf,
            metadata=",".join(METADATA),
        ),
        "corpus.jsonl": _json_lines(documents),
        "documents.jsonl": _json_lines(
            document | {"labels": path or []} for document, path in zip(documents, shown, strict=True)
        ),
        "label_hier.txt": _family_lines(tree),
        "taxonomy.yaml": _nested_yaml(tree),
        "doc_id.txt": "".join(f"{leaf}\t{' '.join(map(str, rows))}\n" for leaf, rows in rows_of.items()),
        "meta_dict.json": json.dumps({"metadata": list(METADATA)}) + "\n",
    }


def _json_lines(documents: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)


def _family_lines(tree: Taxonomy) -> str:
    """Every inner node with its children; a name under two parents becomes a shared child."""
    families = [[tree.names[node] for node in (parent, *tree.children[parent])] for parent in tree.inner]
    return "".join(" ".join(family) + "\n" for family in families)


def _nested_yaml(tree: Taxonomy, node: int = 0, indent: str = "") -> str:
    lines = [
        f"{indent}{tree.names[child]}:\n{_nested_yaml(tree, child, indent + '  ')}"
        for child in tree.children[node]
    ]
    return "".join(lines)
