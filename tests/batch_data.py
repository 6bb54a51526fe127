"""Documents and a model for tests of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from himecat import Default, HiMeCat

WORDS = {
    "sport/football": "goal match striker league penalty",
    "sport/tennis": "racket serve court match set",
    "politics/law": "law bill court senate vote",
    "politics/trade": "tariff export bill vote customs",
}


def texts(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Documents that are alike within a category."""
    found = []
    for number in range(start, start + count):
        label = list(WORDS)[number % len(WORDS)]
        words = WORDS[label].split()
        text = " ".join(words[(number * step) % 5] for step in range(1, 5))
        found.append(
            {"id": f"d{number}", "text": f"{text} {number % 7}", "tags": [f"t{number % 3}"], "label": label}
        )
    return found


def table(count: int, start: int = 0) -> Any:
    """The same as a table, without labels."""
    import pyarrow as arrow

    return arrow.Table.from_pylist([{**one, "label": None} for one in texts(count, start)]).drop_columns(
        ["label"]
    )


def write_model(folder: Path) -> None:
    """Fit a model on some of them."""
    documents = texts(80)
    labels = [
        one.pop("label") if row < 24 else one.pop("label") and None for row, one in enumerate(documents)
    ]
    HiMeCat(method=Default(min_count=1), metadata=["tags"], threads=1).fit(documents, labels).save(folder)
