"""What a fit says about itself: accuracy per level, precision per leaf, likely confusions, and labels in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

Path = tuple[str, ...]

FEWEST = 20
"""With fewer labelled documents held out, nothing is estimated."""


@dataclass(frozen=True)
class LevelQuality:
    """The estimated share of right categories at a level of the tree, and its 90 % interval."""

    level: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class LeafQuality:
    """The estimated precision of a leaf: the share of the documents placed there that belong there.

    Attributes
    ----------
    path : tuple of str
        The leaf.
    labelled, placed : int
        Its labelled documents, and the unlabelled ones that it was given (of the sample that was looked at).
    precision, low, high : float or None
        The estimate and its 90 % interval; None where nothing was placed.
    """

    path: Path
    labelled: int
    placed: int
    precision: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Confusion:
    """Two leaves whose documents are probably mistaken for each other: how many, of those looked at."""

    first: Path
    second: Path
    documents: float


@dataclass(frozen=True)
class Suspect:
    """A labelled document whose label contradicts what the other labels say.

    Attributes
    ----------
    id : str
        The document.
    label, suggested : tuple of str
        Its label, and what a classifier says that did not know it.
    probability, of_label : float
        What that classifier gives to each of the two.
    """

    id: str
    label: Path
    suggested: Path
    probability: float
    of_label: float


@dataclass(frozen=True)
class Quality:
    """What a fit says about itself.

    Attributes
    ----------
    n_labelled, n_held_out, n_looked_at : int
        Labelled documents, those that were held out in turn, and documents whose probabilities were looked at.
    levels : tuple of LevelQuality
        From the top; empty where too few documents were held out.
    leaves : tuple of LeafQuality
        In the order of the leaves.
    confusions : tuple of Confusion
        The most frequent ones first.
    suspects : tuple of Suspect
        Labels to look at again, the most doubtful first.

    Examples
    --------
    >>> few = Quality(n_labelled=8, n_held_out=0, n_looked_at=0)
    >>> few.enough, few.lines()
    (False, ['Too few labelled documents (8) to estimate the accuracy: at least 20 have to be held out.'])
    """

    n_labelled: int
    n_held_out: int
    n_looked_at: int
    levels: tuple[LevelQuality, ...] = ()
    leaves: tuple[LeafQuality, ...] = ()
    confusions: tuple[Confusion, ...] = ()
    suspects: tuple[Suspect, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether enough documents were held out to estimate anything."""
        return self.n_held_out >= FEWEST

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        found: dict[str, Any] = _plain(asdict(self))
        return found

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Self:
        """The quality again, from what `as_dict` gave."""
        return cls(
            int(kept["n_labelled"]),
            int(kept["n_held_out"]),
            int(kept["n_looked_at"]),
            tuple(LevelQuality(**one) for one in kept["levels"]),
            tuple(LeafQuality(**one | {"path": tuple(one["path"])}) for one in kept["leaves"]),
            tuple(
                Confusion(tuple(one["first"]), tuple(one["second"]), one["documents"])
                for one in kept["confusions"]
            ),
            tuple(
                Suspect(**one | {"label": tuple(one["label"]), "suggested": tuple(one["suggested"])})
                for one in kept["suspects"]
            ),
        )

    def lines(self, most_suspects: int = 10, most: int = 5) -> list[str]:
        """What a person should know, a line each."""
        if not self.enough:
            return [
                f"Too few labelled documents ({self.n_labelled:,}) to estimate the accuracy: at least {FEWEST} have to "
                "be held out."
            ]
        said = f"Estimated from {self.n_held_out:,} labelled documents held out in turn, with 90 % intervals:"
        if not self.levels:
            said = (
                "The tree was changed: its accuracy by level is not known until the next fit or correction."
            )
        found = [
            said,
            *(
                f"  level {one.level}: {_percent(one.accuracy)} right ({_percent(one.low)} to {_percent(one.high)})"
                for one in self.levels
            ),
        ]
        weak = sorted(
            (one for one in self.leaves if one.precision is not None), key=lambda one: one.precision or 0.0
        )
        if weak[:most]:
            found.append("Leaves where what is placed is least often right:")
            found += [
                f"  {'/'.join(one.path)}: {_percent(one.precision)} ({_percent(one.low)} to {_percent(one.high)}) of "
                f"{one.placed:,} placed"
                for one in weak[:most]
            ]
        if self.confusions:
            found.append(f"Likely confused, in at least so many of {self.n_looked_at:,} documents:")
            found += [
                f"  {'/'.join(one.first)} and {'/'.join(one.second)}: {one.documents:.0f}"
                for one in self.confusions[:most]
            ]
        if self.suspects:
            found.append(
                f"Labels to look at again, because the others contradict them ({len(self.suspects):,}):"
            )
            found += [
                f"  {one.id}: labelled {'/'.join(one.label)} ({_percent(one.of_label)}), rather "
                f"{'/'.join(one.suggested)} ({_percent(one.probability)})"
                for one in self.suspects[:most_suspects]
            ]
            if len(self.suspects) > most_suspects:
                found.append(f"  ... and {len(self.suspects) - most_suspects:,} more")
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
