"""Make the data files of the sample corpus: `python scripts/make_sample.py [FOLDER]`.

The folder is `src/himecat/sample` unless another is named. The same bytes come out every time.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

from himecat.input.taxonomy.tree import Taxonomy
from sample_letters.desk import TOWN
from sample_letters.generator import make_letters

SAMPLE = Path(__file__).resolve().parent.parent / "src" / "himecat" / "sample"


def contents() -> dict[str, bytes]:
    """The bytes of every file, by name."""
    tree = Taxonomy.from_children(TOWN.nested(), TOWN.name)
    letters = "".join(json.dumps(letter, ensure_ascii=False) + "\n" for letter in make_letters())
    return {
        "letters.jsonl.gz": _gzip(letters.encode()),
        "taxonomy.yaml": _nested_yaml(tree).encode(),
        "label_hier.txt": _family_lines(tree).encode(),
    }


def _gzip(content: bytes) -> bytes:
    """Without name, time and system in the header, so that it comes out the same anywhere."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as file:
        file.write(content)
    return packed.getvalue()


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


def main(folder: Path) -> None:
    """Write the files."""
    for name, content in contents().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE)
