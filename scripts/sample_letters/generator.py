"""The sample corpus: a year of letters to the service desk of a small town, made up sentence by sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sample_letters.category import Category
from sample_letters.desk import CHANGES_OF_SUBJECT, CLOSINGS, GENERIC_WISHES, MIDDLES, OPENINGS, TOWN
from sample_letters.grammar import Dice, expand
from sample_letters.people import DISTRICTS, HOME_DISTRICTS, ROUTINE_TAGS, SETTING, Residents
from sample_letters.themes import THEMES

_FEWEST_PER_LEAF = 8
_LETTERS_PER_REGULAR = 9
_FEWEST_WORDS = 30

# How many facts a letter tells of its leaf, and of the leaf's kind of trouble, beside one of a category above.
_FACTS = ((1, 1), (2, 0), (2, 1))

# The order of a letter's parts.
_OPENED, _TOLD, _REMARKED, _ASKED, _ASIDE, _CLOSED = range(6)

Line = tuple[Category, ...]


def make_letters(n_documents: int = 1200, seed: int = 0) -> list[dict[str, Any]]:
    """Make up letters to a town's service desk; the same arguments give the same letters everywhere.

    Much of a letter is what people say whatever their trouble is, or whatever it is that is broken, late or
    too dear; one to three sentences are about its leaf or a category above it. Some letters touch a second
    subject, and some say so little that only who wrote them helps. Senders mostly, not always, write about
    one thing; tags are part telling, part routine.

    Parameters
    ----------
    n_documents : int
        How many letters; at least one per leaf.
    seed : int
        Another seed gives another corpus of the same kind.

    Returns
    -------
    list of dict
        `id`, `text`, the metadata `senders` and `tags` (lists of strings, empty where nothing is known), and
        `labels`, the true path from the top down.

    Examples
    --------
    >>> letters = make_letters()
    >>> len(letters)
    1200
    >>> sorted(letters[0])
    ['id', 'labels', 'senders', 'tags', 'text']
    """
    lines = [line[1:] for line in TOWN.lines()]
    if isinstance(n_documents, bool) or not isinstance(n_documents, int) or n_documents < len(lines):
        raise ValueError(
            f"n_documents must be a whole number of at least {len(lines)}, one letter per leaf; "
            f"found {n_documents!r}."
        )
    dice = Dice(seed)
    counts = _letters_per_leaf(n_documents, [line[-1].share for line in lines])
    leaves = [position for position, count in enumerate(counts) for _ in range(count)]
    senders = _Senders(lines, counts, dice)
    width = max(4, len(str(n_documents)))
    documents: list[dict[str, Any]] = []
    for number, leaf in enumerate(dice.some(leaves, len(leaves)), start=1):
        line = lines[leaf]
        district = _district(line, dice)
        setting = SETTING | {
            "street": (dice.pick(DISTRICTS[district]),),
            "zone": (dice.pick(SETTING["zone"]),),
        }
        documents.append(
            {
                "id": f"letter-{number:0{width}}",
                "text": _letter(line, lines, setting, dice),
                "senders": senders.draw(leaf),
                "tags": _tags(line, district, dice),
                "labels": [node.name for node in line],
            }
        )
    return documents


def _letters_per_leaf(n_documents: int, shares: Sequence[int]) -> list[int]:
    """Split the letters by share, giving every leaf a few."""
    fewest = min(_FEWEST_PER_LEAF, n_documents // len(shares))
    rest, total = n_documents - fewest * len(shares), sum(shares)
    counts = [fewest + rest * share // total for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda leaf: (-(rest * shares[leaf] % total), leaf))
    for leaf in by_remainder[: n_documents - sum(counts)]:
        counts[leaf] += 1
    return counts


def _letter(line: Line, lines: Sequence[Line], setting: Mapping[str, Sequence[str]], dice: Dice) -> str:
    """The text of one letter about the leaf at the end of `line`."""

    def say(templates: Sequence[str]) -> str:
        return expand(dice.pick(templates), setting, dice)

    facts, wishes = _matter(line, dice)
    asides: list[str] = []
    if facts and dice.chance(8):
        other = dice.pick([each for each in lines if each is not line])
        asides = [dice.pick(CHANGES_OF_SUBJECT), dice.pick(other[-1].fact_templates)]
        # A second subject leaves less room for the first.
        facts = facts[:3]
    subject = [(_TOLD, facts), (_ASKED, wishes or [dice.pick(GENERIC_WISHES)]), (_ASIDE, asides)]
    letter = [(part, expand(each, setting, dice)) for part, templates in subject for each in templates]
    # What says nothing of the subject fills the letter up to its length.
    length = 4 + dice.weighted((1, 3, 12))
    remarks = [(_REMARKED, expand(template, setting, dice)) for template in dice.some(MIDDLES, 3)]
    frame = [(_OPENED, say(OPENINGS)), remarks.pop(), (_CLOSED, say(CLOSINGS))]
    for filler in [*dice.some(frame, 3), *remarks]:
        words = sum(len(sentence.split()) for _, sentence in letter)
        if len(letter) >= length and words >= _FEWEST_WORDS:
            break
        letter.append(filler)
    return " ".join(sentence for _, sentence in sorted(letter, key=lambda part: part[0]))


def _matter(line: Line, dice: Dice) -> tuple[list[str], list[str]]:
    """The templates of a letter that speak of its subject: facts, and at most one wish."""
    kind = dice.weighted((4, 6, 90))
    if kind == 0:
        return [], []
    leaf, above = line[-1], line[:-1]
    if kind == 1 and above:
        # Only the category above shows: the leaf is a guess unless the sender gives it away.
        return [dice.pick(above[-1].fact_templates)], []
    if not above:
        facts = dice.some(leaf.fact_templates, 2)
    else:
        from_leaf, from_theme = _FACTS[dice.weighted((3, 1, 2))]
        facts = [dice.pick(dice.pick(above).fact_templates), *dice.some(leaf.fact_templates, from_leaf)]
        facts += dice.some(THEMES[leaf.theme], from_theme)
    wishes: list[str] = []
    if dice.chance(60):
        asks = leaf if not above or dice.chance(60) else dice.pick(above)
        wishes = [dice.pick(asks.wish_templates)]
    return facts, wishes


def _district(line: Line, dice: Dice) -> str:
    area = line[min(1, len(line) - 1)].name
    return dice.pick(HOME_DISTRICTS[area] if dice.chance(45) else tuple(DISTRICTS))


def _tags(line: Line, district: str, dice: Dice) -> list[str]:
    """What the clerk noted: often nothing, else the district, perhaps a telling tag, perhaps routine ones."""
    if dice.chance(45):
        return []
    tags = [district] if dice.chance(70) else []
    telling = [tag for node in line for tag in node.tags]
    if dice.chance(60):
        tags.append(dice.pick(telling))
    return tags + dice.some(ROUTINE_TAGS, dice.below(3) if tags else 1 + dice.below(2))


class _Senders:
    """Regulars who mostly write about one leaf, and people who write once."""

    def __init__(self, lines: Sequence[Line], counts: Sequence[int], dice: Dice) -> None:
        self._dice = dice
        self._residents = Residents(dice)
        self._regulars = [
            [self._residents.newcomer() for _ in range(max(1, count // _LETTERS_PER_REGULAR))]
            for count in counts
        ]
        self._nearby = [[other for other, each in enumerate(lines) if each[0] is line[0]] for line in lines]

    def draw(self, leaf: int) -> list[str]:
        """Who signed a letter about `leaf`: nobody, one person or two."""
        dice = self._dice
        if dice.chance(15):
            return []
        signed = [self._one(leaf)]
        if dice.chance(8):
            second = self._one(leaf)
            signed += [second] if second not in signed else []
        return signed

    def _one(self, leaf: int) -> str:
        dice = self._dice
        kind = dice.weighted((10, 73, 10, 7))
        if kind == 0:
            return self._residents.newcomer()
        if kind == 2:
            leaf = dice.pick(self._nearby[leaf])
        elif kind == 3:
            leaf = dice.below(len(self._regulars))
        return dice.pick(self._regulars[leaf])
