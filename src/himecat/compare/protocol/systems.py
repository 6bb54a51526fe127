"""Which systems are compared: those that come with the package, our own, and files of the user's."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar

from himecat.compare.systems.registry import built_in_systems, check_installed, systems_in
from himecat.compare.systems.system import NodeArray, System, Task
from himecat.errors import UsageError
from himecat.methods import METHODS, check_value, hyperparameters, resolve_method, with_values


@dataclass(frozen=True)
class Himecat(System):
    """This package's own method with its default settings.

    Attributes
    ----------
    settings : mapping
        Hyperparameters that are not the preset's; see `himecat.methods`.
    ignore_metadata : tuple of str
        Metadata fields to leave out of the space.

    Examples
    --------
    >>> Himecat().min_count, Himecat({"min_count": 5}).min_count
    (2, 5)
    """

    name = "himecat"
    title = "himecat"
    about = "This package with its default settings."
    preset: ClassVar[str | None] = None

    settings: Mapping[str, Any] = field(default_factory=dict)
    ignore_metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        chosen = with_values(resolve_method(self.preset), self.settings)
        # How documents are read is a setting here.
        object.__setattr__(self, "min_count", chosen.min_count)
        object.__setattr__(self, "max_tokens", chosen.max_tokens)

    def place(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        from himecat.estimator import HiMeCat

        model = HiMeCat(
            task.taxonomy,
            tuple(task.corpus.metadata),
            method=with_values(resolve_method(self.preset), self.settings),
            ignore_metadata=self.ignore_metadata,
            encoder=task.encoder if self.vectors else None,
            allow_empty_leaves=True,
            random_state=task.seed,
            threads=task.threads,
        )
        model.fit(task.corpus, task.supervision, progress=task.progress)
        return model.assign(task.corpus).nodes


@dataclass(frozen=True)
class HimecatPaper(Himecat):
    """The published method: `preset="paper"`.

    Examples
    --------
    >>> HimecatPaper().min_count
    10
    """

    name = "himecat-paper"
    title = "HiMeCat (paper)"
    about = "The published method, as this package implements it."
    preset = "paper"


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
    requires = ("sentence_transformers",)


OURS: Mapping[str, type[System]] = {kind.name: kind for kind in (HimecatPaper, Himecat, HimecatEncoder)}
"""Our own systems, by name."""


def ours_with_preset(preset: str | None) -> str:
    """The name of our system with a preset.

    Examples
    --------
    >>> ours_with_preset("paper"), ours_with_preset(None)
    ('himecat-paper', 'himecat')
    """
    resolve_method(None, preset)
    return "himecat-paper" if preset == "paper" else "himecat"


# The paper's order, then what people use today; a system that is not named here comes after these.
_IN_TABLES = (
    "hiersvm", "weshclass", "pcem", "higitclass", "metacat", "metapath2vec", "poincare", "bert", "tfidf-svm",
    "encoder-lr", "setfit",
)  # fmt: skip
_OPTIONAL: dict[str, type] = {"int | None": int, "float | None": float, "str | None": str}
# They take minutes where the others take seconds, so they come last; the slowest at the very end.
_HEAVY = ("himecat-paper", "metacat", "higitclass", "poincare", "metapath2vec", "weshclass", "setfit", "bert")


@dataclass(frozen=True)
class Choice:
    """A system with its parameters, by name, so that a new process can make it again.

    Attributes
    ----------
    name : str
        Name of the system.
    parameters : mapping
        Its parameters that are not the defaults, as plain values.
    file : str or None
        The user's file that defines it.
    title : str
        What tables call it, where that is not the system's own title.

    Examples
    --------
    >>> Choice("tfidf-svm", {"c": 0.1}).make()
    TfidfSvm(c=0.1)
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    title: str = ""

    @property
    def kind(self) -> type[System]:
        """The class of the system."""
        found = _own_systems(self.file) if self.file else {**built_in_systems(), **OURS}
        return found[self.name]

    def make(self) -> System:
        """The system itself; a parameter that cannot work is told in a sentence."""
        kind = self.kind
        if issubclass(kind, Himecat):
            known = hyperparameters(METHODS[kind.preset or "default"])
            given = {
                name: _hyperparameter(kind.name, name, value, known)
                for name, value in self.parameters.items()
            }
            return kind(ignore_metadata=tuple(given.pop("ignore_metadata", ())), settings=given)
        return kind(**{name: _parameter(kind, name, value) for name, value in self.parameters.items()})

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters without those that are given as their defaults: what tells results apart."""
        made = self.make()
        if isinstance(made, Himecat):
            usual: dict[str, Any] = {**resolve_method(made.preset).as_dict(), "ignore_metadata": []}
            given = {**made.settings, "ignore_metadata": made.ignore_metadata}
        else:
            usual = {one.name: _plain(one.default) for one in fields(made)}  # type: ignore[arg-type]
            given = {name: getattr(made, name) for name in self.parameters}
        return {name: _plain(value) for name, value in given.items() if usual.get(name) != _plain(value)}

    @property
    def weight(self) -> int:
        """How late it should run among others: heavy systems last."""
        return _HEAVY.index(self.name) + 1 if self.name in _HEAVY else 0


def choose_systems(
    wanted: Sequence[str] = (),
    *,
    encoder: str | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[list[Choice], list[str]]:
    """The systems to compare, and sentences about those that were left out.

    Parameters
    ----------
    wanted : sequence of str
        Names and paths of Python files with systems of the user's own; by default every system that comes
        with the package and can run here, and our own.
    encoder : str, optional
        Whether there is a text encoder; systems that read its vectors need one.
    parameters : mapping, optional
        Parameters that are not the defaults, by system.

    Raises
    ------
    UsageError
        A system is unknown, named twice, cannot run here, or has no such parameter.

    Examples
    --------
    >>> chosen, notes = choose_systems(["tfidf-svm", "himecat"], parameters={"tfidf-svm": {"c": 0.1}})
    >>> [(choice.name, choice.parameters) for choice in chosen]
    [('tfidf-svm', {'c': 0.1}), ('himecat', {})]
    """
    chosen, notes = (_named(wanted, encoder), list[str]()) if wanted else _all_that_can_run(encoder)
    for system, given in (parameters or {}).items():
        if system not in {choice.name for choice in chosen}:
            compared = ", ".join(choice.name for choice in chosen)
            raise UsageError(
                f"--set {system}.{next(iter(given))}: compared are {compared}, and not {system!r}."
            )
        chosen = [
            replace(choice, parameters=dict(given)) if choice.name == system else choice for choice in chosen
        ]
    # What cannot work comes to light before anything runs.
    return [replace(choice, parameters=choice.changed) for choice in chosen], notes


@cache
def _own_systems(file: str) -> dict[str, type[System]]:
    # A file is run once: what it does at the top may take a while.
    return systems_in(file)


def _named(wanted: Sequence[str], encoder: str | None) -> list[Choice]:
    known = {**built_in_systems(), **OURS}
    chosen: list[Choice] = []
    for name in dict.fromkeys(wanted):
        if name.endswith(".py") or os.sep in name:
            file = os.path.abspath(os.path.expanduser(name))
            chosen += [Choice(own, file=file) for own in _own_systems(file)]
        elif name in known:
            chosen.append(Choice(name))
        else:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {close[0]!r}? Known" if close else "known"
            raise UsageError(
                f"There is no system {name!r}; {meant} are {', '.join(sorted(known))}, and files of your own "
                "(path/to/system.py)."
            )
    for position, choice in enumerate(chosen):
        if choice.name in {other.name for other in chosen[:position]}:
            raise UsageError(f"Two of the systems have the name {choice.name!r}: give one of them another.")
        check_installed(choice.kind)
        if (choice.kind.vectors or choice.kind.loads_encoder) and encoder is None:
            raise UsageError(f"The system {choice.name!r} needs an encoder: name one with --encoder.")
    return chosen


def _all_that_can_run(encoder: str | None) -> tuple[list[Choice], list[str]]:
    place = {name: number for number, name in enumerate(_IN_TABLES)}
    known = dict(
        sorted(built_in_systems().items(), key=lambda item: (place.get(item[0], len(place)), item[0]))
    )
    chosen, notes = [], []
    for name, kind in {**known, **OURS}.items():
        if (kind.vectors or kind.loads_encoder) and encoder is None:
            notes.append(f"{name} is left out: it needs a text encoder (--encoder).")
            continue
        try:
            check_installed(kind)
        except UsageError as error:
            notes.append(f"{name} is left out. {error}")
            continue
        chosen.append(Choice(name))
    return chosen, notes


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _hyperparameter(system: str, name: str, value: Any, known: tuple[str, ...]) -> Any:
    if name == "ignore_metadata":
        return [value] if isinstance(value, str) else value
    if name not in known:
        raise UsageError(_no_parameter(system, name, (*known, "ignore_metadata")))
    return check_value(name, value)


def _parameter(kind: type[System], name: str, value: Any) -> Any:
    """A value for a parameter of a system, in the type of its default."""
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if name not in known:
        raise UsageError(_no_parameter(kind.name, name, tuple(known)))
    usual = known[name].default
    if isinstance(usual, tuple):
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    # Where the default is None, the annotation says what else there is; without one, only the system knows.
    expected = _OPTIONAL.get(str(known[name].type)) if usual is None else type(usual)
    if usual is MISSING or expected is None or (usual is None and value is None):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if expected is float:
            if not math.isfinite(value):
                raise UsageError(f"{kind.name}.{name} must be a finite number, not {value!r}.")
            return float(value)
        if expected is int and isinstance(value, float) and value.is_integer():
            # People write 1e7.
            return int(value)
    if type(value) is not expected:
        wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
        shown = wanted.get(expected, f"like {usual!r}")
        raise UsageError(f"{kind.name}.{name} must be {shown}, not {value!r}.")
    return value


def _no_parameter(system: str, name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"The system {system!r} has no parameter {name!r}; did you mean {close[0]!r}?"
    listed = f"known are {', '.join(known)}" if known else "it has none"
    return f"The system {system!r} has no parameter {name!r}; {listed}."
