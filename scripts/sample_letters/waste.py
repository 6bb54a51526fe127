"""Letters about waste: the collection rounds, and rubbish dumped where it does not belong."""

from __future__ import annotations

from sample_letters.category import Category

_MISSED_BINS = Category(
    "missed-bins",
    share=95,
    theme="no-show",
    facts="""
- Our {bin|grey bin|food caddy|recycling box} was {not emptied|left full|passed over|forgotten} <when>,
  {although it stood at the kerb by six|for the second time|like the whole row}.
- The {crew|lorry|dustmen} {drove past|skipped|left out} {our side of the street|the last four houses|number
  <number>}.
- They left a {tag|red sticker|note} saying {the bin was too heavy|the lid was open|it held the wrong
  waste}, which {is not true|I cannot understand}.
- According to the {calendar|app|leaflet}, {collection day|our round} {was <weekday>|has moved to
  <weekday>}, but {nobody came|the bins are still full}.
- After {the bank holiday|Christmas|the strike} {no collection took place|the round was never made up|nobody
  told us the new day}.
- The {nappies have|peelings have|food waste has|kitchen waste has} been {rotting|sitting in the
  sun|fermenting} for {a fortnight|two weeks|twenty days}.
- A {van|skip|scaffold} blocked the lane, so the {lorry|dustcart} turned round and {never came back|left
  twelve bins full}.
- {The paper|The glass|The plastic} was taken, but {the food waste|the other bin|the rest} was
  {left|forgotten}.
- Next door was {emptied|collected} as usual, and ours {is overflowing|will not close any more|was left
  untouched}.
""",
    wishes="""
- When will {the lorry come back|the round be made up|our bin be emptied}?
- Please {send the crew again|empty the bins before the weekend|collect the sacks as well}.
- May we {put extra sacks beside the bin|leave the lid open} {next time|on <weekday>}?
""",
)

_NEW_BINS = Category(
    "new-bins",
    share=50,
    theme="damage",
    facts="""
- The {lid|wheel|hinge|handle|axle} of our {wheelie bin|brown bin|grey bin} has {snapped|cracked|come off},
  and {it is no use any more|we tie it up with string}.
- Our {bin|wheelie bin|food caddy} {was stolen|disappeared|melted in a fire|was crushed by the lorry}
  <when>.
- We are now {five people|a family of six|two households} and need {a bigger bin|a second bin|a 240-litre
  container}.
- We {moved in|took over the house} {three weeks ago|at Easter} and {have no bin at all|found only a cracked
  bin|were left without a caddy}.
- I {ordered|requested|paid for} a {new|replacement|larger} {bin|caddy|container} {in March|online|by
  phone}, and {it was never delivered|the wrong size came|I am still waiting}.
- The {120-litre bin|smaller bin|half-size container} would be {enough for one person|plenty for me} and
  {cheaper|easier to push}.
- We need {a lock for the bin|a roll of caddy liners|a sticker with our house number|a key for the bin
  store}.
- Somebody has {swapped our bin for a dirty one|walked off with the bin that had our number on it}.
- The {order confirmation|delivery note} says {two caddies|a blue bin|a large container}, but {something
  else came|nothing was left at the door|we asked for a brown bin}.
""",
    wishes="""
- Please {deliver a replacement|exchange the bin|take the old container away|send a larger bin} {to number
  <number>|before the next round}.
- What does {a second bin|the larger container|an extra caddy} cost {a year|per month}?
- Could somebody {fit a new lid|repair the wheel|replace the hinge}?
""",
)

_BULKY_ITEMS = Category(
    "bulky-items",
    share=45,
    theme="application",
    facts="""
- I would like to {get rid of|dispose of|put out} {a sofa|an old wardrobe|two mattresses|a washing machine|a
  fridge|a broken piano}.
- My mother's flat has to be {cleared|emptied} {by the thirtieth|this month}, and there is {a bed frame|a
  sideboard|a carpet|an armchair} left.
- I {booked|paid for} a {bulky collection|pick-up} {for <weekday>|online}, but {nobody came|the mattress is
  still in the hall|the men would not take the fridge}.
- The {sofa|freezer|wardrobe|cooker} {is too heavy for me|does not fit into my car|stands in the stairwell}.
- The men took {the chairs|the table} but left {the cooker|the television|the carpet} {in the drive|at the
  kerb}.
- The {charity shop|furniture store|second-hand shop} refused {the armchair|the bed|the bookcase} because of
  {a scratch|a stain|its size}.
- Does {a treadmill|a lawnmower|a bathtub|an oil heater} count as {bulky waste|one item|scrap metal}?
- There is also {an old television|a computer screen|a tumble dryer}, which {may be electrical waste|needs
  two men|has to be taken apart}.
""",
    wishes="""
- Please {give me a date for the pick-up|book me a slot|collect the furniture}.
- How many {items|pieces of furniture|appliances} may I {put out|book} at once?
- Can the men {carry things down from the third floor|come into the flat|take the doors off the wardrobe}?
""",
)

_FLY_TIPPING = Category(
    "fly-tipping",
    share=60,
    theme="danger",
    facts="""
- Somebody has {dumped|tipped|left} {a heap of tyres|builders' rubble|ten black sacks|a mattress|paint
  tins|asbestos sheets} {behind the garages|in the lay-by|at the edge of the wood|beside the bottle bank}.
- A {white van|trailer|pick-up truck} was seen there {after dark|at night}, and two men unloaded
  {rubble|sacks|a fridge}.
- I {wrote down|photographed} the {number plate|registration} of the {van|trailer|truck}.
- The {lay-by|track|field gate|edge of the wood} is turning into a {tip|dump|rubbish heap}.
- Among the {sacks|rubbish} there are {letters with an address|needles|car batteries|oil cans}.
- The {bottle bank|clothes bank|recycling point} is {surrounded by|buried under} {bags|broken
  glass|boxes|household waste}.
- {The farmer|A dog walker|The ranger} has cleared the {tyres|heap} {once|twice} already, and {more was
  dumped|a new pile appeared within a week}.
- {Pizza boxes|Cans|Fast-food cartons} are thrown {from car windows|over the hedge|into the ditch} every
  weekend.
""",
    wishes="""
- Please {remove the heap|clear the lay-by|prosecute the driver|fine whoever did it}.
- Could you {put up a camera|lock the track|block the gateway with boulders|put up a warning sign}?
- Is there a {reward|hotline|form} for {people who report tippers|witnesses}?
""",
    tags=("ranger", "evidence", "out-of-town"),
)

WASTE = Category(
    "waste",
    facts="""
- The {rubbish|smell|mess} {attracts|brings} {rats|wasps|foxes|gulls} {to the yard|every night|right up to
  the door}.
- {Bags|Cardboard boxes|Food scraps|Bottles} {lie|are blown} all over {the pavement|the yard|<street>}.
- The {sacks|bags|boxes} were torn open {by foxes|by a dog|by gulls}, and {it stinks|flies are everywhere}.
""",
    wishes="""
- Please {tell the waste team|pass this to the refuse department|let the depot know}.
- Somebody from the {waste team|refuse department} should {see the mess|clean up the rest|sweep the yard}.
""",
    children=(
        Category(
            "collection",
            facts="""
- The {refuse lorry|bin lorry|dustcart} comes {on Thursdays|every second week|before seven} {in our
  street|on <street>}.
- Our {grey bin|brown bin|blue bin|green bin} {stands at the kerb|is shared by three flats|has the number
  <number> on it}.
- We {sort our waste carefully|share the bin store with three flats|put everything out the evening before}.
""",
            wishes="""
- Please check {the collection calendar|the round for <street>|with the crew}.
""",
            tags=("round", "kerbside", "sacks"),
            children=(_MISSED_BINS, _NEW_BINS, _BULKY_ITEMS),
        ),
        _FLY_TIPPING,
    ),
)
