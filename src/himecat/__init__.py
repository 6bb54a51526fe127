"""Sort a pile of documents into your own category tree from a handful of examples per category."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.9.0"

# Names are imported when first used, so that `himecat --help` and a plain import stay fast.
_HOMES = {
    "Assignments": "himecat.classifier.assignments",
    "Bounds": "himecat.runtime.bounds",
    "Corpus": "himecat.input.corpus",
    "Default": "himecat.methods",
    "HiMeCat": "himecat.estimator",
    "JointSpace": "himecat.views.space",
    "Paper": "himecat.methods",
    "Supervision": "himecat.input.corpus",
    "Taxonomy": "himecat.input.taxonomy.tree",
    "View": "himecat.views.base",
    "read_corpus": "himecat.input.builder",
    "read_taxonomy": "himecat.input.taxonomy.readers",
    "register_tokenizer": "himecat.input.tokenizer",
    "register_view": "himecat.views.base",
    "score": "himecat.evaluation.metrics",
    "set_bounds": "himecat.runtime.bounds",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from himecat.classifier.assignments import Assignments as Assignments
    from himecat.estimator import HiMeCat as HiMeCat
    from himecat.evaluation.metrics import score as score
    from himecat.input.builder import read_corpus as read_corpus
    from himecat.input.corpus import Corpus as Corpus
    from himecat.input.corpus import Supervision as Supervision
    from himecat.input.taxonomy.readers import read_taxonomy as read_taxonomy
    from himecat.input.taxonomy.tree import Taxonomy as Taxonomy
    from himecat.input.tokenizer import register_tokenizer as register_tokenizer
    from himecat.methods import Default as Default
    from himecat.methods import Paper as Paper
    from himecat.runtime.bounds import Bounds as Bounds
    from himecat.runtime.bounds import set_bounds as set_bounds
    from himecat.views.base import View as View
    from himecat.views.base import register_view as register_view
    from himecat.views.space import JointSpace as JointSpace


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'himecat' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
