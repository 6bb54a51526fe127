"""Who writes to the desk, where they live, and what the clerks note on a letter."""

from __future__ import annotations

from sample_letters.grammar import Dice

DISTRICTS: dict[str, tuple[str, ...]] = {
    "old-town": ("Chandler Row", "Bell Street", "Cooper Street", "Market Row"),
    "harbourside": ("Rope Walk", "Anchor Street", "Quay Road", "Ferry Lane"),
    "hillcrest": ("Upper Ridge", "Beacon Road", "Larkspur Rise", "Steep Street"),
    "mill-quarter": ("Weaver Street", "Mill Lane", "Dyer Street", "Spindle Road"),
    "northgate": ("Northgate Avenue", "Abbey Road", "Priory Close", "Garrison Street"),
    "riverside": ("Willow Road", "Heron Way", "Otter Lane", "Bridge Street"),
    "station-road": ("Station Road", "Signal Street", "Junction Row", "Porter Street"),
    "westfield": ("Barley Close", "Orchard Road", "Clover Way", "Westfield Drive"),
}

# Where an area's letters mostly come from; the districts left out write about everything.
HOME_DISTRICTS: dict[str, tuple[str, ...]] = {
    "roads": ("hillcrest", "northgate"),
    "parking": ("harbourside", "old-town"),
    "lighting": ("station-road",),
    "collection": ("mill-quarter", "westfield"),
    "fly-tipping": ("riverside",),
    "council-homes": ("northgate", "mill-quarter"),
    "building": ("westfield", "hillcrest"),
    "neighbours": ("old-town", "station-road"),
    "parks": ("riverside", "westfield"),
    "library": ("old-town",),
    "pool": ("harbourside",),
    "lost-property": ("station-road",),
}

ROUTINE_TAGS = (
    "urgent",
    "photo-attached",
    "by-phone",
    "walk-in",
    "second-letter",
    "reply-sent",
    "typed",
    "call-back",
    "monday-post",
    "scanned",
)

SETTING: dict[str, tuple[str, ...]] = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "when": (
        "yesterday",
        "last night",
        "on Monday",
        "on Tuesday evening",
        "on Wednesday",
        "last Thursday",
        "on Friday afternoon",
        "at the weekend",
        "the day before yesterday",
        "this morning",
    ),
    "since": (
        "since last week",
        "for three weeks",
        "since the beginning of the month",
        "for ten days",
        "since Easter",
        "for nearly a month",
        "since the holidays",
        "for weeks",
        "since Monday",
    ),
    "zone": ("B", "C", "D", "E", "F"),
    "number": tuple(str(number) for number in range(2, 99)),
}


def _names(block: str) -> tuple[str, ...]:
    return tuple(block.split())


_FIRST_NAMES = _names("""
Ada Agnes Albert Alice Amara Anton Arthur Beatrix Bela Boris Bruno Carla Cecil Chandra Clara Dara Denise
Dorian Edith Elias Elsa Emil Esther Farid Felix Flora Gareth Gemma Greta Hamid Hanna Harold Hazel Hugo Ines
Ingrid Isaac Ivy Jamal Jonas Judith Karim Keiko Lena Leopold Lydia Magnus Maren Marta Milo Nadia Nora Oskar
Otto Pavel Petra Quentin Rafael Rhoda Rosa Rupert Sadie Samir Selma Silas Stella Tamsin Theo Tilda Umar
Ursula Vera Victor Wanda Wilfred Yara Zelda
""")

_LAST_NAMES = _names("""
Abbot Ackroyd Alder Arkwright Bellamy Birch Blackwood Bramley Brook Calloway Carver Castell Cobb Crane Dale
Darnley Dent Drummond Eastman Ellery Fairbank Farrow Fenwick Finch Garland Gale Goodwin Greaves Hallam
Harker Hollis Holm Ibbotson Jessop Kandel Kemble Kettle Lacey Langley Larkin Lockett Marlow Mercer Merrick
Nash Nettle Norwood Oakes Okafor Osgood Paget Patel Pembroke Pike Quill Radley Ramsden Rook Rowan Sandys
Sefton Shaw Sorrel Stroud Swift Tallis Thorne Tilney Underhill Vance Varga Wainwright Walcott Weston
Whitlock Winter Wren Yardley York Zeller
""")


class Residents:
    """Makes up people, no two of the same name.

    Examples
    --------
    >>> residents = Residents(Dice(0))
    >>> names = [residents.newcomer() for _ in range(9000)]
    >>> len(set(names))
    9000
    """

    def __init__(self, dice: Dice) -> None:
        """Start with nobody; `dice` picks the names."""
        self._dice = dice
        self._taken: set[str] = set()

    def newcomer(self) -> str:
        """A name not given out before; initials are added until it differs."""
        first, last = self._dice.pick(_FIRST_NAMES), self._dice.pick(_LAST_NAMES)
        while f"{first} {last}" in self._taken:
            first += f" {self._dice.pick('ABCDEFGHJKLMNOPRSTW')}."
        self._taken.add(f"{first} {last}")
        return f"{first} {last}"
