"""Flat classifiers by name."""

from __future__ import annotations

from himecat.errors import UsageError
from himecat.paper.flat_classifier import FlatClassifier

BUILT_IN = ("kim-cnn", "mean-logistic")
"""Names of the classifiers that come with the package."""

_registered: dict[str, type[FlatClassifier]] = {}


def register_classifier(kind: type[FlatClassifier]) -> type[FlatClassifier]:
    """Make a flat classifier available under its `name`; usable as a class decorator.

    Examples
    --------
    >>> from himecat.paper.logistic import MeanLogistic
    >>> register_classifier(MeanLogistic) is MeanLogistic
    True
    """
    _registered[kind.name] = kind
    return kind


def classifier_class(name: str) -> type[FlatClassifier]:
    """The flat classifier registered under a name.

    Raises
    ------
    UsageError
        There is none of that name, or it needs PyTorch and that is not installed.

    Examples
    --------
    >>> classifier_class("mean-logistic").__name__
    'MeanLogistic'
    """
    if name not in _registered:
        if name == "kim-cnn":
            from himecat.paper.kimcnn import KimCNN

            register_classifier(KimCNN)
        elif name == "mean-logistic":
            from himecat.paper.logistic import MeanLogistic

            register_classifier(MeanLogistic)
        else:
            known = sorted({*_registered, *BUILT_IN})
            raise UsageError(
                f"There is no classifier {name!r}; known are {', '.join(known)}. "
                "Another one is registered with himecat.paper.registry.register_classifier first."
            )
    return _registered[name]
