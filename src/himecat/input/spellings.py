"""Labels that are nearly the same: probably one category, written in two ways."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from himecat.input.problems import clipped

_PUNCTUATION = re.compile(r"[\W_]+")
# Shorter names differ by a letter and are two (`cat`, `car`).
_SHORTEST = 6
# Names that start alike are compared with each other, as long as they are few.
_LARGEST_GROUP = 40
_MOST_NAMES = 20_000
_ALIKE = 0.9


def alike(paths: Iterable[Sequence[str]], most: int = 10) -> list[tuple[str, str]]:
    """Pairs of siblings whose names differ in case, blanks and punctuation, or by a typo.

    Names that differ in digits are two (`level 1`, `level 2`).

    Examples
    --------
    >>> alike([("sports", "hockey"), ("Sports", "Hockey"), ("sports", "baseball"), ("sports", "basebal")])
    [('sports', 'Sports'), ('sports/baseball', 'sports/basebal')]
    """
    siblings: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for path in islice(paths, _MOST_NAMES):
        for depth in range(len(path)):
            siblings[tuple(path[:depth])][path[depth]] = None
    found: list[tuple[str, str]] = []
    for above, names in siblings.items():
        for one, other in _pairs(list(names)):
            found.append((clipped("/".join((*above, one))), clipped("/".join((*above, other)))))
            if len(found) >= most:
                return found
    return found


def _pairs(names: Sequence[str]) -> Iterable[tuple[str, str]]:
    by_form: dict[str, str] = {}
    for name in names:
        form = _PUNCTUATION.sub("", name.casefold()) or name
        if form in by_form:
            yield by_form[form], name
        else:
            by_form[form] = name
    # A typo is rarely in the first letters, or in the last ones as well.
    groups: dict[tuple[str, int], list[str]] = defaultdict(list)
    for form in by_form:
        if len(form) >= _SHORTEST:
            groups[form[:2], len(form) // 3].append(form)
            groups[form[:2], len(form) // 3 + 1].append(form)
    seen: set[tuple[str, str]] = set()
    for group in groups.values():
        if len(group) > _LARGEST_GROUP:
            continue
        for place, one in enumerate(group):
            for other in group[place + 1 :]:
                if (one, other) not in seen and _is_typo(one, other):
                    seen.add((one, other))
                    yield by_form[one], by_form[other]


def _is_typo(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or re.findall(r"\d", one) != re.findall(r"\d", other):
        return False
    # `astro.ph` and `astro.pha` are a name and a longer one as often as a typo: an s more is a plural.
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE
