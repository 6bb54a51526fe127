"""A category of the sample tree with the wording its letters are made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sample_letters.grammar import read_templates


@dataclass(frozen=True)
class Category:
    """A node of the sample tree; what an inner node says may turn up in the letters of all leaves below it.

    Parameters
    ----------
    name : str
        The node's name.
    share : int
        For a leaf: its weight in the mail.
    theme : str
        For a leaf: the kind of trouble it shares with leaves elsewhere (see `THEMES`), if any.
    facts, wishes : str
        Blocks of templates (see `read_templates`): what happened, and what the sender asks for.
    tags : tuple of str
        What the desk's clerks tend to note on such letters.
    children : tuple of Category
        The nodes below.

    Examples
    --------
    >>> leaf = Category("cats", share=3, facts="- A cat sits {here|there}.")
    >>> [[node.name for node in line] for line in Category("pets", children=(leaf,)).lines()]
    [['pets', 'cats']]
    """

    name: str
    share: int = 0
    theme: str = ""
    facts: str = ""
    wishes: str = ""
    tags: tuple[str, ...] = ()
    children: tuple[Category, ...] = ()

    @cached_property
    def fact_templates(self) -> tuple[str, ...]:
        """The templates in `facts`."""
        return read_templates(self.facts)

    @cached_property
    def wish_templates(self) -> tuple[str, ...]:
        """The templates in `wishes`."""
        return read_templates(self.wishes)

    def lines(self) -> Iterator[tuple[Category, ...]]:
        """For every leaf at or below this node, the nodes from here down to the leaf."""
        if not self.children:
            yield (self,)
        for child in self.children:
            for line in child.lines():
                yield (self, *line)

    def nested(self) -> dict[str, object]:
        """The names below this node as nested mappings."""
        return {child.name: child.nested() for child in self.children}
