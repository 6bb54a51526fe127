"""Sound material that attacks start from: nothing to complain about, and small."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WORDS = {
    "physics": "quantum field energy particle laser photon",
    "biology": "cell gene protein species forest enzyme",
    "arts": "painting museum sculpture canvas gallery colour",
}
PATHS = {"physics": ["science", "physics"], "biology": ["science", "biology"], "arts": ["arts"]}
TREE_YAML = "science:\n  physics:\n  biology:\narts:\n"
TREE_LINES = "ROOT science arts\nscience physics biology\n"
TREE_JSON = json.dumps({"science": {"physics": None, "biology": None}, "arts": None})
KEYWORDS = {"physics": "quantum, laser", "biology": ["cell", "gene"], "arts": "museum"}
# Enough to learn something, and no more; one thread, since two attacks run at once.
TINY = (
    "--method=paper",
    "--set=space=spectral",
    "--set=beta=10",
    "--set=dimension=16",
    "--set=min_count=2",
    "--set=classifier=mean-logistic",
    "--threads=1",
)
DEFAULT = ("--threads=1", "--set=min_count=2")

Document = dict[str, Any]


def sound(labelled: int = 5) -> list[Document]:
    """Eight documents per leaf, of which the first few are labelled."""
    return [
        {
            "id": f"{leaf}-{number}",
            "text": f"{words} number {number}",
            "tags": [f"about-{leaf}"],
            "labels": PATHS[leaf] if number < labelled else [],
        }
        for number in range(8)
        for leaf, words in WORDS.items()
    ]


def json_lines(documents: Iterable[Any]) -> bytes:
    """Documents as JSON lines; NaN and halves of characters are written as Python writes them."""
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


def table(documents: list[Any], delimiter: str = ",") -> bytes:
    """Documents as CSV or TSV."""
    columns = list(dict.fromkeys(name for one in documents if isinstance(one, dict) for name in one))
    written = io.StringIO()
    writer = csv.writer(written, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for one in documents:
        if isinstance(one, dict):
            writer.writerow([_cell(one.get(name), "/" if name == "labels" else "|") for name in columns])
        else:
            writer.writerow([one])
    return written.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Any, separator: str) -> Any:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return separator.join(value)
    return json.dumps(value) if isinstance(value, list | dict) else value


def dataset_files(documents: list[Document] | None = None) -> dict[str, bytes]:
    """The files of a dataset folder, where every document carries its path."""
    full = documents if documents is not None else sound(8)
    return {
        "corpus.jsonl": json_lines(full),
        "label_hier.txt": TREE_LINES.encode(),
        "doc_id.txt": b"physics\t0 3 6\nbiology\t1 4 7\narts\t2 5 8\n",
        "meta_dict.json": b'{"metadata": ["tags"]}',
    }


def predictions(documents: list[Document] | None = None) -> list[Document]:
    """What `predict` could have written for the documents of the dataset folder."""
    return [
        {"id": one["id"], "path": one["labels"], "confidence": [0.9] * len(one["labels"]), "leaf": True}
        for one in (documents if documents is not None else sound(8))
    ]


def write_all(folder: Path, files: dict[str, bytes]) -> None:
    """Write files by their names below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_sound(folder: Path) -> None:
    """Everything that any command reads, in one folder: documents, tree, keywords, dataset, predictions."""
    write_all(
        folder,
        {
            "docs.jsonl": json_lines(sound()),
            "tree.yaml": TREE_YAML.encode(),
            "keywords.yaml": json.dumps(KEYWORDS).encode(),
            "found.jsonl": json_lines(predictions()),
            **{f"data/{name}": content for name, content in dataset_files().items()},
        },
    )


def fit_arguments(method: Iterable[str] = TINY, output: str = "model") -> list[str]:
    """`fit` on the sound documents."""
    return [
        "fit", "docs.jsonl", "--taxonomy=tree.yaml", "--metadata=tags", "-q", "-o", output, *method,
    ]  # fmt: skip


def warm_commands(folder: Path) -> list[list[str]]:
    """Commands that load whatever the attacks will need; they write below `folder`."""
    write_sound(folder)
    (folder / "docs.csv").write_bytes(table(sound()))
    return [
        ["check", "docs.csv", "--taxonomy=tree.yaml", "--keywords=keywords.yaml"],
        fit_arguments(),
        fit_arguments(DEFAULT, "default"),
        ["predict", "model", "docs.jsonl", "-o", "out.jsonl", "-q", "--threads=1"],
        ["predict", "default", "docs.jsonl", "-o", "out.jsonl", "-q", "--threads=1"],
        ["explain", "default", "physics"],
        ["explain", "model", "--documents", "docs.jsonl"],
        ["synthesize", "model", "physics"],
        ["score", "found.jsonl", "data"],
        ["predict", "default", "docs.csv", "-o", "out.xlsx", "-q", "--threads=1", "--report=page.html"],
        ["predict", "default", "docs.csv", "-o", "out.parquet", "-q", "--threads=1"],
        ["check", "out.xlsx", "--labels=level1,level2"],
        ["review", "model", "docs.jsonl", "-o", "review.xlsx", "-q", "--threads=1"],
        ["correct", "model", "docs.csv", "-q", "--threads=1"],
    ]
