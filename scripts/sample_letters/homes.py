"""Letters about homes: council flats, building and the neighbours."""

from __future__ import annotations

from sample_letters.category import Category

_REPAIRS = Category(
    "repairs",
    share=115,
    theme="damage",
    facts="""
- The {kitchen tap|boiler|toilet cistern|radiator|bath drain} has been {leaking|broken|out of action}
  <since>.
- {Black mould|Damp|A brown stain} is spreading {behind the wardrobe|on the bedroom ceiling|around the
  window frame}.
- There is no {hot water|heating}, and the {boiler|thermostat} {shows an error|keeps switching off|only
  clicks}.
- Water {drips|runs} {through the ceiling|down the wall|into the light fitting} {whenever it rains|when
  somebody upstairs showers}.
- The {lock of the front door|window handle|balcony door|lift} {is jammed|sticks|no longer works}, and {I
  live alone|there is a draught|my father cannot manage}.
- A {plumber|fitter|workman} came <when>, {shook his head|measured the pipe|ordered a part} and {left
  again|was not seen again}.
- The {fuse|socket|cooker switch} {sparks|trips|smells burnt} when I {use the oven|turn on the kettle}.
- The {gutter|downpipe|drain} {is blocked|has come down|overflows}, and {the cellar is wet|the wall is
  soaked}.
- I have put {a bucket|towels|a washing-up bowl} under {the pipe|the leak|the tap}.
""",
    wishes="""
- Please send {a plumber|a heating engineer|a locksmith|an electrician} {today if possible|before the
  weekend|soon}.
- Could you {replace the seal|mend the boiler|treat the mould|repair the lift}?
- I am {home all day|in after four} if the {fitter|plumber|repair man} {comes|needs the key}.
""",
)

_RENT = Category(
    "rent",
    share=55,
    theme="money",
    facts="""
- My rent {went up|was raised|has risen} by {forty pounds|nine per cent|a tenth} {in April|without a
  letter|this year}.
- I {paid|transferred} the rent {on the first|twice|into the old account}, and {a reminder came all the
  same|the statement shows arrears}.
- The {service charge|heating bill|water charge} {for last year|in the annual statement} {seems far too
  high|has doubled|includes a lift we do not have}.
- I have {lost my job|been off sick|gone part-time} and {cannot pay the full rent|am two months behind|fear
  an eviction}.
- The {deposit|bond} for {my old flat|the previous flat} {has not been returned|was paid back only in part}.
- My {housing benefit|rent support|pension} {is paid late|was stopped|does not cover the rent}.
- The {direct debit|standing order} {failed|bounced|was taken twice} {when I changed banks|last month}.
- I received {a notice of arrears|a rent reminder|a letter from the court} {by mistake|although the account
  is balanced}.
""",
    wishes="""
- Can I {pay in instalments|pay the arrears by June|defer one month}?
- Please {send me a statement of the account|explain the service charge|check the meter readings|correct the
  balance}.
- I need a {rent certificate|list of payments|breakdown of the charges} {for the benefit office|for the tax
  office}.
""",
)

_BUILDING_PERMITS = Category(
    "permits",
    share=50,
    theme="application",
    facts="""
- We {want|plan|would like} to {build|add|put up} {a conservatory|a dormer window|a garage|a carport|a
  garden shed|an extension}.
- {The application|The planning application|Our request for a permit} was {filed|submitted} {in
  January|eleven weeks ago}, and {there is no decision|nobody has looked at the drawings}.
- The neighbour {objects to|complains about} the {height|shadow|windows|boundary wall} {of the extension|in
  our plans}.
- Do I need {permission|a permit|to apply} for {a two-metre fence|a roof window|solar panels|a heat pump|a
  chimney}?
- The {site plan|elevation|cross-section} was {returned|rejected} because {the scale was wrong|a signature
  was missing|the ridge is too high}.
- We want to turn the {barn|shop|loft|stable} into {two flats|a dwelling|an office}.
- The {permit|permission} {expires|runs out} {in autumn|before we can start}, and the {foundations are|roof
  is} not even begun.
- A {notice|poster} on the fence {announces|speaks of} {twelve flats|a four-storey block}, and I {want to
  object|missed the deadline for objections}.
""",
    wishes="""
- May I {see the plans|inspect the file|hand in the drawings by email}?
- Please {extend the permit|grant the permission|tell me the fee for a preliminary enquiry}.
- How {far from the boundary|high} may {the fence|the garage|the shed} be?
""",
)

_INSPECTIONS = Category(
    "inspections",
    share=22,
    theme="no-show",
    facts="""
- The {inspector|building inspector|surveyor} was {due on|announced for} <weekday> and {did not come|came
  without a word|could not get in}.
- The {fire escape|handrail|smoke detector|emergency exit} {in the hotel|in the hall|at the nursery} {was
  found faulty|has not been tested}.
- A {crack|bulge} has appeared in the {gable|chimney|retaining wall|facade}, and {I fear it may fall|bricks
  have come down}.
- The {shell|roof truss|drain connection} is {finished|ready} and must be {approved|accepted|signed off}
  before {we plaster|the floor is laid|we go on}.
- {The neighbour|Somebody|The owner} is building {without a permit|higher than the plans allow|right on the
  boundary}.
- The {scaffolding|crane|hoarding} {sways in the wind|has no warning light|stands without props}.
- The report {lists|mentions} {eleven defects|a missing handrail|two blocked exits}, which {have been put
  right|we dispute}.
- The {test certificate|inspection sticker} of the {lift|boiler|oil tank} ran out {in spring|last year}.
""",
    wishes="""
- Please {arrange the final inspection|name a date for the acceptance|send the inspector again|issue the
  certificate}.
- Who {signs|pays for} the {inspection report|second visit|safety certificate}?
- Could somebody {check the wall|look at the scaffolding|test the emergency exit}?
""",
)

_NOISE = Category(
    "noise",
    share=70,
    theme="disturbance",
    facts="""
- The {people upstairs|students next door|tenants below} {play music|hold parties|move furniture|practise
  the drums} until {two in the morning|dawn|three}.
- The neighbour's dog {barks|howls} {from morning to night|whenever she goes out|at every bicycle}.
- The {bar|pub|restaurant|club} on the corner {leaves its doors open|seats people outside|turns up the bass}
  {after midnight|until dawn}.
- {A leaf blower|A circular saw|An angle grinder|A lawnmower} {runs|howls} {on Sundays|at seven in the
  morning|at lunchtime}.
- The {fan|air conditioner|heat pump|extractor} {of the bakery|on the flat roof} {hums|whistles|drones} {all
  night|so loudly that we cannot open the windows}.
- I have kept {a diary|a log|recordings} of the {shouting|bass|barking} {for a month|since May}.
- The police {were called|came} {twice|on Saturday}, and {the music began again|the shouting started again}
  an hour later.
- We cannot {sleep|sit on the balcony|open a window} because of the {shouting|bass|racket|hammering}.
""",
    wishes="""
- Could you {measure the noise|speak to the landlord|send a warning|enforce the quiet hours}?
- What are the {quiet hours|limits in decibels|rules for parties} {on public holidays|on Sundays}?
- Please arrange a {talk|meeting} between us and {the tenants|the landlord of the pub}.
""",
)

HOMES = Category(
    "homes",
    facts="""
- {The house|The building|The block} on <street> {was built in the sixties|has eight flats|was sold last
  year|has thin walls}.
- The {landlord|owner|caretaker|ground-floor tenant} {has been told|only shrugs|says it is not his
  business}.
- We live {on the second floor|under the roof|on the ground floor} of {a house|a block|a building} {with a
  shared yard|with eight flats|from the sixties}.
""",
    wishes="""
- Please let the {housing office|caretaker|landlord} {know|decide what to do}.
""",
    children=(
        Category(
            "council-homes",
            facts="""
- I have rented {a two-room flat|a council flat|a ground-floor flat} {from the town|in the block on
  <street>} {for nine years|since my divorce}.
- The {housing officer|caretaker|tenancy office} {told me to write to you|has my tenancy number|wanted this
  in writing}.
- As a tenant I {have always paid on time|look after the flat|signed a contract for ten years}.
""",
            wishes="""
- Please let me know which {housing officer|caretaker} {looks after our block|has the keys to our
  staircase}.
""",
            tags=("tenancy", "caretaker", "block-visit"),
            children=(_REPAIRS, _RENT),
        ),
        Category(
            "building",
            facts="""
- The {plot|site|house} {on <street>|at number <number>} {lies in the conservation area|borders on the
  stream|has been empty for years}.
- Our {architect|builder|surveyor} {drew the plans|sent the drawings|is waiting for an answer|says the file
  is complete}.
- The {builder|roofer|bricklayer} is {booked for|free from} {the first of the month|next week}.
""",
            wishes="""
- Please tell {our architect|the builder} {what is missing from the file|when he can begin}.
""",
            tags=("drawings", "site-visit", "surveyor"),
            children=(_BUILDING_PERMITS, _INSPECTIONS),
        ),
        Category(
            "neighbours",
            facts="""
- {The people next door|Our neighbours|The family downstairs} {laugh at us|do not open the door|have stopped
  greeting us}.
- We {have talked to the neighbours|left a friendly note|rang the bell} {twice|more than once|on <weekday>}.
""",
            wishes="""
- Perhaps {a mediator|a letter from the town} would {calm the neighbours|help both sides}.
""",
            tags=("mediation", "night-patrol", "diary-enclosed"),
            children=(_NOISE,),
        ),
    ),
)
