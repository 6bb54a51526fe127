"""How changes of a tree are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.input.taxonomy.wording import listed
from himecat.input.tree_editing import Draft


class Concerned(NamedTuple):
    """How many labels and documents a change concerns; None where it is not known."""

    labels: int | None
    documents: int | None

    def its(self) -> str:
        """Both as the subject of a sentence."""
        found = [
            "its labels" if self.labels is None else "" if not self.labels else _counted(self.labels, "label")
        ]
        if self.documents:
            found.append(_counted(self.documents, "document"))
        parts = [one for one in found if one]
        return " and ".join(parts) if parts else ""

    def stay(self, verb: str, rest: str) -> str:
        """A clause about both; nothing where there are none."""
        subject = self.its()
        many = "and" in subject or self.labels is None or (self.labels or self.documents or 0) > 1
        return (
            f"; {subject} {verb if many else verb + ('es' if verb == 'go' else 's')} {rest}"
            if subject
            else ""
        )


def _counted(count: int, what: str) -> str:
    return f"its {what}" if count == 1 else f"its {count:,} {what}s"


class Counts:
    """Labels and documents by node of the tree of before."""

    def __init__(
        self, n_nodes: int, labels: npt.NDArray[np.int64] | None, placed: npt.NDArray[np.int64] | None
    ) -> None:
        self._labels, self._documents = (
            None if nodes is None else np.bincount(nodes[nodes > 0], minlength=n_nodes)
            for nodes in (labels, placed)
        )

    def at(self, draft: Draft, node: int) -> Concerned:
        """Those at a node or below it."""
        rows = draft.origins(node)
        labels, documents = (
            None if counts is None else int(counts[rows].sum()) for counts in (self._labels, self._documents)
        )
        return Concerned(labels, documents)


class told:
    """A sentence for each kind of change."""

    @staticmethod
    def renamed(before: str, after: str, had: Concerned) -> str:
        """Said of a renamed category."""
        return f"{before} is called {after} now{had.stay('stay', 'with it')}."

    @staticmethod
    def moved(before: str, after: str, had: Concerned) -> str:
        """Said of a moved category."""
        return f"{before} is moved to {after}{had.stay('go', 'with it')}."

    @staticmethod
    def merged(before: str, other: str, after: str, had: Concerned, added_up: bool) -> str:
        """Said of merged categories."""
        name = "" if other == after else f", which is called {after} now"
        until = " Their probabilities are added up until the next fit." if added_up else ""
        return f"{before} becomes part of {other}{name}{had.stay('go', 'there')}.{until}"

    @staticmethod
    def split(title: str, children: Sequence[str], had: Concerned) -> str:
        """Said of a leaf that is split."""
        return f"{title} is split into {listed(list(children))}{had.stay('count', 'for all of them')}."

    @staticmethod
    def added(title: str, examples: int, keywords: int, parent: str, had: Concerned | None) -> str:
        """Said of a new category; `had` is what its parent had as a leaf."""
        known = [
            f"{count} {what}{'s' * (count != 1)}"
            for count, what in ((examples, "example"), (keywords, "keyword"))
            if count
        ]
        by = f"with {' and '.join(known)}" if known else "known by its name alone"
        was = "" if had is None else f" {parent} was a leaf{had.stay('count', 'for all below it')}."
        return f"{title} is new, {by}.{was}"

    @staticmethod
    def deleted(title: str, below: int, parent: str | None, had: Concerned) -> str:
        """Said of a deleted category."""
        also = "" if not below else f", and {below:,} below it" if below > 1 else ", and the one below it"
        labels = Concerned(had.labels, None)
        if parent is None:
            fate = f"; {labels.its()} {'is' if had.labels == 1 else 'are'} dropped" if labels.its() else ""
        else:
            fate = labels.stay("go", f"to {parent}")
        where = "" if not had.documents else f" Its {had.documents:,} documents are placed elsewhere."
        return f"{title} is deleted{also}{fate}.{where}"

    @staticmethod
    def examples(new: int, again: int) -> list[str]:
        """Said of examples."""
        found = []
        if again:
            found.append(f"{again:,} example{'s' * (again != 1)} had another label, which is replaced.")
        if new:
            found.append(f"{new:,} example{'s' * (new != 1)} {'is' if new == 1 else 'are'} new to the model.")
        return found
