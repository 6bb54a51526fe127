"""What the correction of a model has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Supervision
from himecat.input.corrections import Change
from himecat.input.several import PATHS
from himecat.input.taxonomy.tree import Taxonomy

_SHOWN_MOVES = 10


@dataclass(frozen=True)
class Move:
    """How many documents went from one category to another.

    Where documents have several paths: those that they lost and those that they got, with semicolons between them.

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
        category agrees with all categories below it; where documents have several paths, all of them have to agree.
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
    sets : bool
        Whether documents have several paths each.

    Examples
    --------
    >>> print(Correction(9, 3, 0, 0, 0, 112, 1968, 2, (Move("a", "b", 2),)))
    12 answers: 9 confirm, 3 move. 112 of 1,968 documents are labelled.
    2 documents moved:
      2  a -> b
    >>> print(Correction(0, 1, 0, 0, 0, 9, 20, 3, (Move("", "b", 2), Move("a", "c; d", 1)), sets=True))
    1 answer: 0 confirm, 1 change. 9 of 20 documents are labelled.
    3 documents have other paths now:
      2  + b
      1  a -> c; d
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
    sets: bool = False

    @property
    def said(self) -> str:
        """What the answers say, in one line."""
        count = self.n_confirmed + self.n_moved + self.n_nowhere
        verb = "change" if self.sets else "move"
        told = [
            f"{count:,} answer{'s' * (count != 1)}: {self.n_confirmed:,} confirm, {self.n_moved:,} {verb}"
        ]
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
        did = f"{'has' if self.n_changed == 1 else 'have'} other paths now" if self.sets else "moved"
        lines = [f"{self.n_changed:,} document{'s' * (self.n_changed != 1)} {did}{end}"]
        shown = self.moves[:_SHOWN_MOVES]
        width = max((len(f"{move.count:,}") for move in shown), default=0)
        lines += [f"  {move.count:>{width},}  {_said(move)}" for move in shown]
        if len(self.moves) > len(shown):
            rest = sum(move.count for move in self.moves[len(shown) :])
            lines.append(f"  and {rest:,} {'otherwise' if self.sets else 'elsewhere'}")
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


def judged(taxonomy: Taxonomy, change: Change, placed: Supervision, sets: bool = False) -> Correction:
    """What answers say of the nodes at which their documents were `placed`; rows are those of all documents."""
    own = np.isin(placed.rows, change.rows)
    here, said = _by_row(placed.rows[own], placed.nodes[own]), _by_row(change.rows, change.nodes)
    lineages = taxonomy.lineages
    confirmed = sum(
        nodes == here.get(row)
        if sets
        else all(node in lineages[at] for node in nodes for at in here.get(row, ()))
        for row, nodes in said.items()
    )
    return Correction(
        n_confirmed=confirmed,
        n_moved=len(said) - confirmed,
        n_skipped=change.n_skipped,
        n_replaced=change.n_replaced,
        n_added=change.n_added,
        n_labelled=len(np.unique(np.concatenate([change.supervision.rows, change.supervision.nowhere]))),
        n_documents=len(change.corpus),
        n_nowhere=change.n_nowhere,
        sets=sets,
    )


def _by_row(rows: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
        found.setdefault(row, set()).add(node)
    return found


def moves_between(taxonomy: Taxonomy, before: Supervision, after: Supervision) -> tuple[Move, ...]:
    """What documents have lost, and what they have got instead, the most frequent first.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> rows = np.arange(3)
    >>> moves_between(tree, Supervision(rows, np.array([1, 1, 2])), Supervision(rows, np.array([2, 2, 2])))
    (Move(before='a', after='b', count=2),)
    """
    # Of many documents few change: only these are looked at one by one.
    size = len(taxonomy)
    keys, others = (found.rows * size + found.nodes for found in (before, after))
    lost, got = (
        _by_row(*np.divmod(np.setdiff1d(one, other), size)) for one, other in ((keys, others), (others, keys))
    )
    pairs = Counter(
        (tuple(sorted(lost.get(row, ()))), tuple(sorted(got.get(row, ())))) for row in {*lost, *got}
    )
    ordered = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))

    def told(nodes: tuple[int, ...]) -> str:
        return PATHS.join(map(taxonomy.title, nodes))

    return tuple(Move(told(one), told(other), count) for (one, other), count in ordered)


def _said(move: Move) -> str:
    if move.before and move.after:
        return f"{move.before} -> {move.after}"
    return f"+ {move.after}" if move.after else f"- {move.before}"


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
