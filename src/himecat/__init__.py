"""Sort a pile of documents into your own category tree from a handful of examples per category."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Names are imported when first used, so that `himecat --help` and a plain import stay fast.
_HOMES = {
    "Assignments": "himecat.classify",
    "Corpus": "himecat.corpus",
    "HiMeCat": "himecat.estimator",
    "JointSpace": "himecat.embedding",
    "Supervision": "himecat.corpus",
    "Taxonomy": "himecat.corpus",
    "read_corpus": "himecat.corpus.builder",
    "read_taxonomy": "himecat.corpus.taxonomy_readers",
    "score": "himecat.metrics",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from himecat.classify import Assignments as Assignments
    from himecat.corpus import Corpus as Corpus
    from himecat.corpus import Supervision as Supervision
    from himecat.corpus import Taxonomy as Taxonomy
    from himecat.corpus.builder import read_corpus as read_corpus
    from himecat.corpus.taxonomy_readers import read_taxonomy as read_taxonomy
    from himecat.embedding import JointSpace as JointSpace
    from himecat.estimator import HiMeCat as HiMeCat
    from himecat.metrics import score as score


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'himecat' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
