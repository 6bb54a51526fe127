"""What the correction of a model has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.input.corrections import Change
from himecat.input.taxonomy.tree import Taxonomy

_SHOWN_MOVES = 10


@dataclass(frozen=True)
class Move:
    """How many documents went from one category to another.

    Examples
    --------
    >>> Move("waste/bins", "streets", 3).count
    3
    """

    before: str
    after: str
    count: int


@dataclass(frozen=True)
class Correction:
    """What answers said of a model's placements, and what the model fitted with them places elsewhere.

    Attributes
    ----------
    n_confirmed, n_moved : int
        Answers that agree with where the model had placed the document, and that do not. The answer of an inner
        category agrees with all categories below it.
    n_skipped, n_replaced, n_added : int
        Documents that somebody wants skipped; answers that replace an older label; documents new to the model.
    n_labelled, n_documents : int
        Labelled documents now, and all documents.
    n_changed : int or None
        Documents of all that the model places elsewhere now; None before it is fitted again.
    moves : tuple of Move
        From where to where, the most frequent first.
    accuracy : tuple of (float, float)
        Estimated accuracy before and after by level, where the model estimates it.
    n_nowhere : int
        Answers that say that a document belongs to none of the categories.

    Examples
    --------
    >>> print(Correction(9, 3, 0, 0, 0, 112, 1968, 2, (Move("a", "b", 2),)))
    12 answers: 9 confirm, 3 move. 112 of 1,968 documents are labelled.
    2 documents moved:
      2  a -> b
    """

    n_confirmed: int
    n_moved: int
    n_skipped: int
    n_replaced: int
    n_added: int
    n_labelled: int
    n_documents: int
    n_changed: int | None = None
    moves: tuple[Move, ...] = ()
    accuracy: tuple[tuple[float, float], ...] = ()
    n_nowhere: int = 0

    @property
    def said(self) -> str:
        """What the answers say, in one line."""
        count = self.n_confirmed + self.n_moved + self.n_nowhere
        told = [f"{count:,} answer{'s' * (count != 1)}: {self.n_confirmed:,} confirm, {self.n_moved:,} move"]
        if self.n_nowhere:
            told.append(f"{self.n_nowhere:,} {'fit' if self.n_nowhere > 1 else 'fits'} nowhere")
        if self.n_skipped:
            told.append(f"{self.n_skipped:,} to skip")
        if self.n_replaced:
            told.append(f"{self.n_replaced:,} older label{'s' * (self.n_replaced != 1)} replaced")
        if self.n_added:
            told.append(f"{self.n_added:,} new document{'s' * (self.n_added != 1)}")
        return f"{', '.join(told)}. {self.n_labelled:,} of {self.n_documents:,} documents are labelled."

    @property
    def done(self) -> str:
        """What the model does differently now, in several lines; nothing before it is fitted again."""
        if self.n_changed is None:
            return ""
        end = ":" if self.moves else "."
        lines = [f"{self.n_changed:,} document{'s' * (self.n_changed != 1)} moved{end}"]
        shown = self.moves[:_SHOWN_MOVES]
        width = max((len(f"{move.count:,}") for move in shown), default=0)
        lines += [f"  {move.count:>{width},}  {move.before} -> {move.after}" for move in shown]
        if len(self.moves) > len(shown):
            lines.append(f"  and {sum(move.count for move in self.moves[len(shown) :]):,} elsewhere")
        for level, (before, after) in enumerate(self.accuracy, start=1):
            lines.append(f"estimated accuracy at level {level}: {before:.3f} before, {after:.3f} now")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.said}\n{self.done}".rstrip("\n")

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "confirmed": self.n_confirmed,
            "moved": self.n_moved,
            "nowhere": self.n_nowhere,
            "skipped": self.n_skipped,
            "replaced": self.n_replaced,
            "added": self.n_added,
            "labelled": self.n_labelled,
            "documents": self.n_documents,
            "changed": self.n_changed,
            "moves": [asdict(move) for move in self.moves],
            "accuracy": [{"before": before, "after": after} for before, after in self.accuracy],
        }


def judged(taxonomy: Taxonomy, change: Change, placed: npt.NDArray[np.int64]) -> Correction:
    """What answers say of the nodes at which their documents were `placed`."""
    lineages = taxonomy.lineages
    confirmed = sum(
        node in lineages[at] for node, at in zip(change.nodes.tolist(), placed.tolist(), strict=True)
    )
    return Correction(
        n_confirmed=confirmed,
        n_moved=len(change.nodes) - confirmed,
        n_skipped=change.n_skipped,
        n_replaced=change.n_replaced,
        n_added=change.n_added,
        n_labelled=len(np.unique(np.concatenate([change.supervision.rows, change.supervision.nowhere]))),
        n_documents=len(change.corpus),
        n_nowhere=change.n_nowhere,
    )


def moves_between(
    taxonomy: Taxonomy, before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]
) -> tuple[Move, ...]:
    """From where to where documents have moved, the most frequent pair first.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> moves_between(tree, np.array([1, 1, 2]), np.array([2, 2, 2]))
    (Move(before='a', after='b', count=2),)
    """
    elsewhere = before != after
    pairs = Counter(zip(before[elsewhere].tolist(), after[elsewhere].tolist(), strict=True))
    ordered = sorted(pairs.items(), key=lambda one: (-one[1], one[0]))
    return tuple(Move(taxonomy.title(one), taxonomy.title(other), n) for (one, other), n in ordered)


def accuracies(before: Any, after: Any) -> tuple[tuple[float, float], ...]:
    """Estimated accuracy by level of two fits, where both estimate it.

    Examples
    --------
    >>> accuracies(None, None)
    ()
    """
    found = [_by_level(getattr(quality, "levels", ())) for quality in (before, after)]
    return tuple(zip(*found, strict=False))


def _by_level(levels: Sequence[Any]) -> list[float]:
    found = [getattr(level, "accuracy", None) for level in levels]
    return [float(one) for one in found if isinstance(one, Real)]
