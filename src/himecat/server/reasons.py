"""Why a document is where it is, with the places in its text."""

from __future__ import annotations

import re
from typing import Any

from himecat.estimator import HiMeCat
from himecat.evaluation.explain import explain_row
from himecat.input.corpus import Corpus
from himecat.input.tokenizer import UNICODE

_REASONS = 20
_MOST_SPANS = 200
_METADATA = "metadata:"


def reasons(model: HiMeCat, corpus: Corpus, node: int, text: str) -> dict[str, Any]:
    """Words and metadata values that speak for a category, each with its share of what does.

    Spans count UTF-16 code units, as JavaScript does.
    """
    found = explain_row(model.space_, corpus, 0, node, _REASONS, model.classifier_)
    total = sum(one.weight for one in found) or 1.0
    words, metadata, other = list[Any](), list[Any](), list[Any]()
    whole = corpus.words.tokenizer.name == UNICODE.name
    for one in found:
        share = round(one.weight / total, 4)
        if one.kind == "word":
            words.append({"word": one.name, "share": share, "spans": spans(text, one.name, whole)})
        elif one.kind.startswith(_METADATA):
            kind = one.kind.removeprefix(_METADATA)
            metadata.append({"type": kind, "value": one.name, "share": share})
        else:
            other.append({"kind": one.kind, "name": one.name, "share": share})
    return {"path": list(model.taxonomy_.path(node)), "words": words, "metadata": metadata, "other": other}


def spans(text: str, word: str, whole: bool = True) -> list[list[int]]:
    """Where a word stands in a text.

    Examples
    --------
    >>> spans("A Fox, and foxes: fox", "fox"), spans("\U0001f98a fox", "fox")
    ([[2, 5], [18, 21]], [[3, 6]])
    """
    pattern = re.escape(word)
    if whole:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    found = [list(one.span()) for one in re.finditer(pattern, text, re.IGNORECASE)][:_MOST_SPANS]
    if text.isascii() or max(text) <= "\uffff":
        return found
    return [[_units(text[:start]), _units(text[:end])] for start, end in found]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
