"""Sentences from templates: `{a|b}` picks one wording, `<slot>` is filled from the letter's setting."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")

_CHOICE = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"<([a-z]+)>")


class Dice:
    """Seeded choices that come out the same in every version of Python.

    Only `random.Random.random` is promised to keep its sequence between versions, so all is built on it.

    Examples
    --------
    >>> Dice(3).pick("abc") == Dice(3).pick("abc")
    True
    """

    def __init__(self, seed: int) -> None:
        """Start the sequence that belongs to `seed`."""
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"seed must be a whole number, not {seed!r}.")
        self._roll = random.Random(seed).random

    def below(self, limit: int) -> int:
        """A whole number from 0 up to, not including, `limit`."""
        return int(self._roll() * limit)

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 cases."""
        return self.below(100) < percent

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.below(len(items))]

    def weighted(self, weights: Sequence[int]) -> int:
        """A position, drawn in proportion to its weight."""
        rest = self.below(sum(weights))
        position = 0
        while rest >= weights[position]:
            rest -= weights[position]
            position += 1
        return position

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """Up to `count` different items, in random order."""
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(min(count, len(pool)))]


def read_templates(block: str) -> tuple[str, ...]:
    """Split a block of templates, one per `- ` bullet; indented lines continue the bullet above.

    Examples
    --------
    >>> read_templates('''
    ... - {A cat|A dog} is
    ...   barking.
    ... - Help!
    ... ''')
    ('{A cat|A dog} is barking.', 'Help!')
    """
    templates: list[str] = []
    for line in block.strip().splitlines():
        text = line.strip()
        if text.startswith("- "):
            templates.append(text[2:])
        else:
            templates[-1] += " " + text
    return tuple(templates)


def expand(template: str, setting: Mapping[str, Sequence[str]], dice: Dice) -> str:
    """One sentence: every choice made, every slot filled, the first letter a capital.

    Examples
    --------
    >>> expand("{our|our} bin on <street> is full.", {"street": ["Mill Lane"]}, Dice(0))
    'Our bin on Mill Lane is full.'
    """
    text = template
    while _CHOICE.search(text):
        text = _CHOICE.sub(lambda found: dice.pick(found[1].split("|")), text)
    text = _SLOT.sub(lambda found: dice.pick(setting[found[1]]), text)
    return text[0].upper() + text[1:]
