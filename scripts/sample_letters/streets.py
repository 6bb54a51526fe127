"""Letters about streets: the state of the roads, parking, lamps."""

from __future__ import annotations

from sample_letters.category import Category

_REPAIRS = Category(
    "repairs",
    share=150,
    theme="damage",
    facts="""
- {A pothole|A hole|A crater|A sunken patch} {the size of a dinner plate|as deep as my hand|wider than a
  tyre} has opened {outside number <number>|in front of the bakery|by the bus stop|in the middle of the
  carriageway}.
- The {kerbstones|paving slabs|cobbles|manhole covers} {near the chemist|outside the post office|at the
  crossing} have {come loose|sunk|cracked|started to rock}.
- My car {lost a hubcap|burst a tyre|damaged its suspension|bent a wheel} {on the broken edge|in one of the
  ruts} <when>.
- The {patch|filling|cold tarmac|temporary repair} from {the spring|last year|your last visit} has
  {crumbled|washed out|broken up|sunk} again.
- {Gravel collects|Loose chippings collect|Lumps of asphalt lie} in the gutter because the {edge of the
  road|verge|top layer} is breaking away.
- Rainwater hides the {holes|ruts|cracks}, and {cyclists ride straight in|nobody sees how deep they are|cars
  splash our front doors}.
- Every {lorry|bus|van} that {bumps|thunders|rattles} over the {ridge|sunken drain|loose manhole cover}
  makes our {windows|cups|walls} shake.
- Roots have {lifted|cracked} the {pavement|slabs|footpath}, and {my mother tripped|a pushchair got
  stuck|people step into the road}.
- The road is so {uneven|worn|bumpy} that {cyclists use the pavement|my shopping jumps off the bicycle
  rack|the bus slows to a crawl}.
""",
    wishes="""
- Could you {fill the hole|level the slabs|resurface the stretch|patch the road} {properly|before somebody
  is hurt|before the winter}?
- {A proper layer of asphalt|A lorryload of tarmac|A new kerb|One firm patch} would {do|solve it for
  years|be enough}.
- Please {mark the hole with paint|put a cone beside the hole|secure the manhole cover} until the road is
  {mended|repaired|resurfaced}.
- I would like to claim for {the tyre|the wheel|a new rim|the shock absorber}.
""",
)

_ROADWORKS = Category(
    "roadworks",
    share=55,
    theme="disturbance",
    facts="""
- The {diversion|detour|one-way arrangement} around the {works|excavation|closed section} leads down our
  {narrow lane|quiet road|dead end}.
- {Temporary traffic lights|Barriers|Red and white cones|Steel plates} have stood there <since>, and {nobody
  is working|I have not seen a single worker|the trench is empty}.
- The {excavator|jackhammer|roller|compressor|digger} starts {at six in the morning|before breakfast|long
  before seven}.
- The {gas company|water company|telephone company|cable firm} has dug up {the pavement|half the road|the
  same trench} {twice already|for the third time|again}.
- According to the {sign|notice|leaflet}, the {closure|work|diversion} was to end {in May|last month|two
  weeks ago}.
- The {contractor|foreman|site manager} could not tell us {when the road reopens|how long the closure
  lasts|who ordered the trench}.
- {Customers|Deliveries|Ambulances} cannot reach {our shop|the surgery|the bakery} because of the {closed
  road|fence|trench|barrier}.
- The bus stop was {moved|suspended} {because of the works|while pipes are laid|for the cable laying}, and
  no {replacement|sign|shelter} was put up.
- {Dust|Mud|Sand} from the {trench|digging|excavation} is carried into our {hallway|shop|front garden}.
""",
    wishes="""
- Please tell us {when the barriers will be removed|how long the diversion stays|when the road reopens|which
  section is closed next}.
- Could the {contractor|foreman|site manager} {put up proper signs|leave a path for pushchairs|work shorter
  hours|switch off the temporary lights at night}?
- {A timetable of the works|A map of the diversion|A plank across the trench} would help {all the
  residents|our customers|the shops} a great deal.
""",
)

_WINTER_SERVICE = Category(
    "winter-service",
    share=40,
    theme="danger",
    facts="""
- {Black ice|Packed snow|A sheet of ice|Frozen slush} covered {the steps|the footbridge|the hill|the slope}
  {on <weekday> morning|for days|all through the frost}.
- The {snow plough|gritter|gritting lorry} {never reaches|leaves out|turns round before} {our hill|the
  cul-de-sac|the upper end}.
- The plough {pushed a wall of snow|left a frozen ridge} {across our drive|in front of the gate|along the
  pavement}.
- The {grit bin|yellow grit box|salt box} {at the corner|by the steps|at the crossing} is {empty|full of
  rubbish|frozen shut|broken}.
- Three people {slipped|fell|broke a wrist} on the {icy|frozen|untreated} {pavement|steps|crossing} <when>.
- After {a night at minus eight|the first frost|the snowfall}, {nothing had been gritted|no salt had been
  spread|the bridge was a skating rink}.
- {Meltwater|Melting snow|Slush} runs into {our cellar|the underpass|the front gardens} because the
  {drain|gully} is {blocked with ice|under the snow}.
- Who is meant to {shovel|clear|grit} the {pavement|footpath} in front of {an empty house|the chapel|a
  vacant shop}?
""",
    wishes="""
- Please {put our hill on the gritting route|send the gritter before six|refill the salt box|spread grit
  instead of salt}.
- Could the {plough|gritter|winter crew} {come earlier|clear the footbridge as well|treat the steps}?
- We would {shovel|scatter grit} ourselves if there were {a grit bin|a bag of salt|a sack of sand}
  {nearby|on the hill}.
""",
)

_PARKING_PERMITS = Category(
    "permits",
    share=60,
    theme="application",
    facts="""
- My {resident permit|parking permit|visitor permit|permit} {expires|runs out} {next week|on the
  thirtieth|at the end of the month}.
- We have just moved into zone <zone> and need {a resident permit|a parking disc|visitor vouchers|a
  windscreen sticker}.
- The {online form|application form|machine|portal} does not accept my {log book|registration document|new
  number plate|proof of address}.
- I have {changed my car|bought an electric car|leased a company van}, and the {sticker|permit|badge} still
  shows the old {plate|registration}.
- My {carer|nurse|mother-in-law|cleaner} comes {daily|twice a week} and needs {visitor vouchers|a day
  permit|somewhere to park}.
- The {blue badge|disabled badge} {for my father|I applied for} {has not arrived|is still being
  processed|came with the wrong name}.
- The {fee|price|annual charge} for {a second car|the second permit|a trade permit} has {doubled|gone up},
  and I was {charged twice|not told}.
- I sent {the log book|a copy of my driving licence|a utility bill} {with the application|for the renewal}
  {on <weekday>|three weeks ago}.
- Our {household|shop|surgery} is just outside zone <zone>, so {the form says we are not eligible|we are not
  entitled to a permit}.
""",
    wishes="""
- How do I {renew the permit|transfer the permit to another car|apply for visitor vouchers|cancel the
  permit}?
- Please {post me the sticker|send the vouchers|extend the permit|refund the second fee}.
- Can I {park in zone <zone>|use the old sticker|park with the receipt} {until the permit arrives|in the
  meantime}?
""",
)

_PARKING_FINES = Category(
    "fines",
    share=70,
    theme="money",
    facts="""
- I found a {penalty notice|parking ticket|fine} {under my wiper|on my windscreen|on the car} <when>.
- The {ticket machine|pay-and-display machine|meter} {swallowed my coins|was out of order|printed
  nothing|refused my card}.
- The {warden|traffic warden|attendant} wrote {the ticket|the penalty notice} {two minutes after I had
  parked|while I was unloading|although my ticket was on the dashboard}.
- I had {paid by phone|paid until four|a valid ticket|ten minutes left} and can send {the receipt|a
  screenshot|the slip}.
- The {yellow line|sign|bay marking} was {hidden by snow|worn away|covered by a hedge}, so I {could not
  know|saw no restriction}.
- The {reminder|second notice|bailiff's letter} asks for {sixty pounds|double the amount|costs on top},
  although I {appealed|paid in time|never had the first one}.
- My car was {towed away|clamped} {during the street market|outside the surgery|within an hour}, and the
  {pound|tow company} wants {a release fee|cash}.
- On the photograph you can see {the badge|my permit|the ticket} {behind the windscreen|on the dashboard}.
- I was {collecting a prescription|dropping off my father|loading a wardrobe}, and the {engine was
  running|hazard lights were on}.
""",
    wishes="""
- I {appeal against|object to|contest} the {fine|charge|penalty} and ask you to {cancel it|withdraw
  it|reduce it}.
- Please {withdraw the notice|refund the penalty|send me the warden's photograph|stop the bailiff}.
- Can the {fine|penalty} be paid {in instalments|at the counter|at the lower rate}?
""",
)

_LIGHTING = Category(
    "lighting",
    share=65,
    theme="damage",
    facts="""
- The {street lamp|lamp post|lantern|street light} {outside number <number>|at the corner|by the underpass}
  has been {flickering|dark|off|buzzing} <since>.
- {Half the lamps|Six lamps in a row|All the lights} {along the footpath|down to the bridge|round the
  square} {are out|go off at ten|fail when it rains}.
- The new {LED lamps|white lamps|bulbs} {shine straight into our bedroom|dazzle drivers|are far too bright}.
- The {glass cover|door at the foot|bracket} of {the lamp post|column <number>} is {hanging by a
  wire|missing|broken}, and {the cables are bare|water gets in}.
- One {column|pole|lamp post} has {leaned towards the road|been bent} since {a lorry reversed into it|the
  storm}.
- It is {pitch dark|too dark to see the kerb|as black as a cellar} {in the underpass|on the way to the
  station|along the canal} {after five|in the evening|when I walk home}.
- The {lights|lamps} {burn all day|are on at noon|switch on too late}, so the {timer|light sensor|switch}
  must be {faulty|wrongly set}.
- The {lanterns|floodlights|spotlights} {on the church|on the square|under the bridge} {waste
  electricity|attract moths} all night.
- My daughter {has walked home with a torch|has been afraid of the dark stretch|has used her phone as a
  torch} since the {lamp|light} {went out|failed}.
""",
    wishes="""
- Could an electrician {replace the bulb|change the lamp|check the wiring|reset the timer}?
- Please {dim the lamp|fit a shade to the lantern|turn the light away from our window|mend the lighting}.
- A {motion sensor|second lamp post|brighter bulb} {at the steps|in the underpass} would make {the path|the
  walk home} safer.
""",
    tags=("electricians", "lamp-column", "after-dark"),
)

STREETS = Category(
    "streets",
    facts="""
- {Drivers|Cyclists|Pedestrians|Bus drivers} on <street> {complain about it daily|are losing patience|take a
  different route by now}.
- The {pavement|junction|crossing} {near the bus stop|opposite the bakery|just past the roundabout|by the
  traffic lights} is affected as well.
- With the {school run|morning traffic|delivery vans|market traffic} there is {hardly any room to pass|a
  queue back to the bridge|a lot of hooting|no safe way across}.
- A {cyclist|motorcyclist|man with a pushchair|delivery driver} nearly {had an accident|came to grief} there
  <when>.
""",
    wishes="""
- Please ask the {highways team|streets department|traffic officer} to {look at the junction|visit the
  street|walk down <street>} one morning.
""",
    children=(
        Category(
            "roads",
            facts="""
- The {carriageway|road surface|tarmac} between {the bridge and the church|the two roundabouts|the station
  and the mill} {has been in a poor state|has been hard to use} <since>.
- The {lane|road|carriageway} towards the {station|bypass|ring road|hospital} is {down to walking
  pace|barely usable|dangerous}.
- {Lorries|Buses|Cars} {brake hard|skid|swerve to the other side} {where the road bends|on the slope|before
  the bridge}.
""",
            wishes="""
- Please send {the road crew|a highways inspector|somebody from the depot} to {check the carriageway|look at
  the road}.
""",
            tags=("highways", "depot", "bus-route"),
            children=(_REPAIRS, _ROADWORKS, _WINTER_SERVICE),
        ),
        Category(
            "parking",
            facts="""
- {There are never enough parking spaces|Finding a parking space is a lottery|Every parking bay is taken}
  {in zone <zone>|around the market|near the station}.
- The {car park|parking bay|parking zone} {behind the theatre|by the harbour|round the corner} {is full by
  eight|was redrawn in the summer|has new signs}.
- I {park|leave the car} {in zone <zone>|behind the theatre|in the residents' bay} {every evening|whenever I
  am on nights}.
""",
            wishes="""
- Please let the {parking office|wardens} know {about my car|about my number plate|that I have written}.
""",
            tags=("wardens", "zone-check", "vehicle"),
            children=(_PARKING_PERMITS, _PARKING_FINES),
        ),
        _LIGHTING,
    ),
)
