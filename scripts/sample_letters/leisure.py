"""Letters about leisure: parks, the library and the pool."""

from __future__ import annotations

from sample_letters.category import Category

_TREES = Category(
    "trees",
    share=75,
    theme="danger",
    facts="""
- {A branch|A heavy limb|A dead bough} hangs over {the footpath|our roof|the bus shelter|the telephone
  line}.
- The {lime tree|old oak|chestnut|plane tree|birch} {outside our window|by the pond|in the avenue} {is
  hollow|has fungus at the trunk|leans more every year|blocks all the light}.
- Roots of the {maple|poplar|willow} have {lifted our paving|grown into the drain|cracked the wall}.
- {Honeydew|Pollen|Sticky sap} from the {limes|plane trees|poplars} covers {the cars|our windows|the bench}.
- {The crew|A contractor|A man with a chainsaw} {felled|pollarded|lopped} {three healthy trees|the
  cherry|half the avenue} {in the nesting season|without notice}.
- The {sapling|young tree|newly planted maple} {dried out|lost its stake|was snapped off} {over the
  summer|during the holidays}.
- The {trunk|bark} is {full of caterpillars|covered in ivy|split to the ground|peeling off}.
- The storm {uprooted|split} {a pine|the old willow|two birches}, and the {stump|trunk} {is still lying
  there|blocks the path}.
""",
    wishes="""
- Please {prune the crown|cut back the branches|fell the tree|have the tree examined} {before the next
  storm|outside the nesting season}.
- Will {a new tree|a replacement|a young lime} be planted {in autumn|on the same spot}?
- I would {water the saplings|adopt a tree|look after the tree pit} myself if {you agree|I may}.
""",
)

_PLAYGROUNDS = Category(
    "playgrounds",
    share=55,
    theme="damage",
    facts="""
- The {swing|slide|seesaw|climbing frame|roundabout} {has a broken chain|has a sharp edge|was taken
  down|wobbles badly}.
- My son {fell off|caught his foot in|tore his trousers on} the {climbing net|rope bridge|swing|wooden
  tower} <when>.
- There is {broken glass|dog dirt|cat mess|rubbish} in the {sandpit|sand|play area}.
- The {rubber matting|soft surface|sand|bark mulch} under the {swings|climbing frame} {is worn out|has been
  washed away|is as hard as stone}.
- {Teenagers|Older boys} meet {on the slide|in the tower|on the bench} {in the evening|after school} and
  {scare the toddlers|leave bottles}.
- There is no {shade|fence|bench|baby swing} {for the little ones|anywhere in the play area}.
- The gate {to the road|of the play area} {does not shut|has lost its latch}, and toddlers {run out|can slip
  through}.
- The {water pump|zip wire|nest swing|toddler corner} was {promised|closed off} {two years ago|in spring},
  and {nothing has happened|the toddlers are still waiting}.
""",
    wishes="""
- Please {change the sand|mend the swing|replace the chain|put up a sunshade|sweep the sandpit}.
- Could we have {a baby swing|a table-tennis table|a trampoline|a bench in the shade}?
- When will the {slide|play tower|zip wire} be {put back|checked|safe again}?
""",
)

_ALLOTMENTS = Category(
    "allotments",
    share=35,
    theme="application",
    facts="""
- I applied for {a plot|an allotment|a garden plot} {four years ago|when my son was born} and {am still on
  the waiting list|have heard nothing since}.
- The {plot|allotment} next to mine is {overgrown|full of thistles|abandoned}, and {the seeds blow
  over|bindweed comes through}.
- The {water tap|standpipe|pump} {at the gate|by plot <number>} {is dry|only drips|has been turned off},
  just when the {beans|tomatoes|lettuces} {need water|are wilting}.
- Somebody {broke into|forced} {my shed|the greenhouse|the tool store} and took {the spade|the fruit|a
  wheelbarrow}.
- I can no longer {dig my plot|look after my plot|manage the allotment} and want to {give it up|share
  it|pass it to my niece}.
- The {committee|site secretary|chairman} does not allow {hens|bees|a polytunnel|bonfires}.
- The {annual fee|ground rent|lease} for the {plot|garden} has {risen|doubled}, although {the shed
  leaks|there is no water}.
- {Slugs|Rabbits|Badgers|Pigeons} have eaten the {cabbages|potatoes|strawberries} since the {fence|hedge}
  was {taken down|cut}.
""",
    wishes="""
- How long is the {waiting list|list for a plot}?
- May I {keep hens|put up a shed|plant a pear tree|light a bonfire} on {my plot|the allotment}?
- Please {turn the water on|mend the gate|mow the paths between the plots|let the vacant plot}.
""",
)

_LOANS = Category(
    "loans",
    share=50,
    theme="money",
    facts="""
- I {returned|brought back|dropped off} {a novel|two picture books|three films|an audiobook|a cookery book}
  {on time|through the flap|<when>}, but {the account says otherwise|I was fined all the same}.
- The {late fee|fine|overdue charge} for a {travel guide|comic|crime novel} {has grown to nine pounds|is
  higher than its price}.
- The {e-book|app|catalogue} {does not open|asks for a password|says the loan has expired}.
- I {reserved|ordered} {a biography|the new thriller|a dictionary} {in May}, and {it went to somebody
  else|nobody told me it had come}.
- {A page|The last chapter|The disc|The map} was already missing when I borrowed {the book|the atlas|the
  set}.
- {My son spilled juice on|My granddaughter drew in|My puppy chewed} a {picture book|library book}, and we
  {want to pay|will replace the copy}.
- The {scanner|return machine|self-service desk} {did not read the barcode|printed no slip|was out of
  order}.
- I cannot {renew|extend} the {loan|book} {online|by phone}, as {someone has reserved it|the card is
  blocked}.
- I have been looking for {large-print books|poetry in Polish|sheet music|old newspapers} {in the
  catalogue|on the shelves}.
""",
    wishes="""
- Please {renew my books|extend the loan|cancel the late fee|unblock my card}.
- Could the library {buy|order|put aside} {the second volume|a new edition|the audiobook}?
- How many {books|films|games} may I {borrow|take out} {at once|on a child's card}?
""",
)

_EVENTS = Category(
    "events",
    share=22,
    theme="no-show",
    facts="""
- The {reading|author's evening|story hour|puppet show|quiz night} <when> was {wonderful|cancelled at the
  last minute|too crowded|hard to hear}.
- I {booked|reserved} {two seats|three places} for the {reading|lecture|workshop}, and {our names were not
  on the list|the seats were taken}.
- Our {book club|knitting circle|chess group|writing group} would like to meet {in the hall upstairs|in the
  reading corner|once a month}.
- The {author|speaker|storyteller|illustrator} {could not be heard|spoke far too long|arrived late}, and
  {the microphone failed|the children were restless}.
- My daughter would love to join the {holiday workshop|summer reading challenge|comic course|coding club}.
- The {poster|programme|newsletter} {gives the wrong date|promises a lecture|says nothing of the price}.
- The exhibition of {old maps|children's drawings|photographs} {deserves more visitors|closed too early}.
- {Chairs|Tickets|Places} {ran out|were gone} {within minutes|before we arrived}, and {we had to stand|half
  the audience went home}.
""",
    wishes="""
- Please {put us on the list for the next reading|send me the programme|repeat the workshop}.
- Is there {a fee|an age limit} for the {story hour|lecture|workshop}?
- Could you {invite a local author|hold the lecture in the afternoon|offer a course for beginners}?
""",
)

_POOL = Category(
    "pool",
    share=65,
    theme="money",
    facts="""
- The water in the {big pool|paddling pool|diving pool} {was cold|was cloudy|smelled of chlorine|stung my
  eyes} <when>.
- The {showers|changing rooms|lockers|hairdryers} {are dirty|do not work|were out of order|leave much to be
  desired}.
- {Two lanes|All the lanes|Half the lanes} were {taken|reserved} by {the swimming club|a school class|the
  aqua aerobics}.
- My {season ticket|ten-swim card|wristband|family ticket} {was not recognised|did not open the
  turnstile|ran out during the closure}.
- The {lifeguard|attendant|swimming teacher} {was on the phone|shouted at my son|was very kind}.
- The {slide|diving board|sauna|wave machine} has been {closed|out of order} <since>, yet {we pay full
  price|the entrance fee is the same}.
- The {beginners' course|baby swimming|crawl course} {is booked up|was moved to noon|has no teacher}.
- I {slipped|hurt my toe|cut my foot} on {the wet tiles|a broken tile|the ladder}.
""",
    wishes="""
- Please {heat the water|mend the showers|open at seven|keep one lane for slow swimmers}.
- Can the {season ticket|unused swim|lesson fee} be {refunded|extended|carried over}?
- Are there {swimming lessons|women's hours|family afternoons|aqua classes} {in the holidays|on Sundays}?
""",
    tags=("bathing", "season-ticket", "lifeguards"),
)

LEISURE = Category(
    "leisure",
    facts="""
- {Families|Pensioners|Children|Visitors} {love the place|come from all over the town|have nowhere else to
  go} {in the holidays|at weekends}.
- The notice board {at the entrance|by the gate} {is out of date|has been empty <since>|shows last year's
  opening hours}.
- In the {holidays|summer|afternoon} the place is {full of children|crowded|our favourite spot}.
""",
    wishes="""
- Please ask the {leisure department|recreation office} {for a little more care|not to forget us|to come and
  see}.
""",
    children=(
        Category(
            "parks",
            facts="""
- The {park|green|lawn} {by the river|behind the church|off <street>} is {our only green spot|used by
  everybody|full of daisies}.
- The {gardeners|park keepers|groundsmen} {mow|rake|come} {only on Tuesdays|too rarely|very early}.
- The {hedge|gravel path|flower bed|bench} {by the pond|at the park gate} {looks untidy|needs care|was
  neglected}.
""",
            wishes="""
- Please ask the {gardeners|park keepers|parks team} to {look after the green|come round}.
""",
            tags=("gardeners", "green-space", "mowing"),
            children=(_TREES, _PLAYGROUNDS, _ALLOTMENTS),
        ),
        Category(
            "library",
            facts="""
- The {library|branch library|reading room} {on <street>|in the old school} is {a second home to me|always
  full after school|the best place in town}.
- My {library card|reader's card} {is in my mother's name|was issued last year|has a coffee stain}.
- The {librarian|lady at the counter|volunteer} {was friendly but could not help|noted my name|was new}.
""",
            wishes="""
- Please ask the {librarian|branch library|team at the counter} to {write to me|note my name}.
""",
            tags=("readers", "branch", "counter"),
            children=(_LOANS, _EVENTS),
        ),
        _POOL,
    ),
)
