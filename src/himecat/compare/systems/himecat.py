"""This package's own method as a system among the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from himecat.classifier.assignments import Assignments
from himecat.compare.systems.system import System, Task, unknown_parameter
from himecat.methods import Default, Method, Paper, hyperparameters, resolve_method, with_values

if TYPE_CHECKING:
    from himecat.estimator import HiMeCat


@dataclass(frozen=True)
class Himecat(System):
    """This package's own method with its default settings.

    Attributes
    ----------
    method : Default or Paper
        The hyperparameters.
    ignore_metadata : tuple of str
        Metadata fields to leave out of the space.
    options : mapping
        Other arguments of `HiMeCat`, such as `keywords`; `encoder` says whether to use that of the task.

    Examples
    --------
    >>> Himecat().min_count, Himecat(Default(min_count=5)).min_count
    (2, 5)
    """

    name = "himecat"
    title = "himecat"
    about = "This package with its default settings."

    method: Method = field(default_factory=Default)
    ignore_metadata: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # How documents are read is a hyperparameter here.
        object.__setattr__(self, "min_count", self.method.min_count)
        object.__setattr__(self, "max_tokens", self.method.max_tokens)
        object.__setattr__(self, "vectors", self.options.get("encoder", self.vectors))

    @classmethod
    def with_parameters(cls, given: Mapping[str, Any]) -> Self:
        """The method with hyperparameters and `ignore_metadata` as a user wrote them."""
        method, values = cls().method, dict(given)
        ignored = values.pop("ignore_metadata", ())
        known = hyperparameters(method)
        for name in values:
            if name not in known:
                raise unknown_parameter(cls.name, name, (*known, "ignore_metadata"))
        return cls(with_values(method, values), (ignored,) if isinstance(ignored, str) else tuple(ignored))

    def changed_parameters(self) -> dict[str, Any]:
        """The hyperparameters that differ from their defaults, and the ignored metadata fields."""
        return self.method.changed() | (
            {"ignore_metadata": list(self.ignore_metadata)} if self.ignore_metadata else {}
        )

    def fit(self, task: Task) -> HiMeCat:
        """The model fitted on a task."""
        from himecat.estimator import HiMeCat

        options = {"allow_empty_leaves": True, **self.options}
        options["encoder"] = task.encoder if self.vectors else None
        model = HiMeCat(
            task.taxonomy,
            dict.fromkeys(task.corpus.metadata),
            method=self.method,
            tokenizer=task.corpus.words.tokenizer,
            ignore_metadata=self.ignore_metadata,
            random_state=task.seed,
            threads=task.threads,
            **options,
        )
        return model.fit(task.corpus, task.supervision, progress=task.progress)

    def fit_predict(self, task: Task) -> Assignments:
        """The path of every document with its probabilities."""
        return self.fit(task).assign(task.corpus)


@dataclass(frozen=True)
class HimecatPaper(Himecat):
    """The published method: `method="paper"`.

    Examples
    --------
    >>> HimecatPaper().min_count
    10
    """

    name = "himecat-paper"
    title = "HiMeCat (paper)"
    about = "The published method, as this package implements it."

    method: Method = field(default_factory=Paper)


@dataclass(frozen=True)
class HimecatEncoder(Himecat):
    """This package with a text encoder as one more view of each document.

    Examples
    --------
    >>> HimecatEncoder.vectors
    True
    """

    name = "himecat-encoder"
    title = "himecat + encoder"
    about = "This package with a pretrained sentence encoder as one more view."
    vectors = True


def system_with_method(method: str | None) -> str:
    """The name of our system with a method.

    Examples
    --------
    >>> system_with_method("paper"), system_with_method(None)
    ('himecat-paper', 'himecat')
    """
    return "himecat-paper" if resolve_method(method).name == "paper" else "himecat"
