"""The town's whole tree, and what every letter to the desk may say whatever it is about."""

from __future__ import annotations

from sample_letters.category import Category
from sample_letters.grammar import read_templates
from sample_letters.homes import HOMES
from sample_letters.leisure import LEISURE
from sample_letters.streets import STREETS
from sample_letters.waste import WASTE

_LOST_PROPERTY = Category(
    "lost-property",
    share=45,
    facts="""
- I {lost|left|forgot} {my umbrella|a black wallet|my glasses|a bunch of keys|my phone|a violin case|a
  child's rucksack} {on the number <number> bus|in the town hall|at the market|on a bench by the river}
  <when>.
- I found {a ring|a mobile phone|a purse with cash|a teddy bear|a hearing aid} {on <street>|in the bus
  shelter|under a park bench} and {handed it in|would like to hand it in}.
- The {case|purse|bag|coat} is {brown|dark blue|quite worn} and has {a broken zip|my initials inside|a red
  ribbon on it}.
- {The bus driver|The conductor|A passer-by|The stallholder} {thinks my bag was handed in|saw somebody pick
  up the case|promised to drop off the coat}.
- I kept {my bank card|a library card|photos of my grandchildren|a season ticket|my driving licence} in {the
  bag|the wallet|the purse}.
- A {bicycle|scooter|pushchair} has been {standing in our yard|leaning against our fence} <since>, and
  nobody claims it.
- A {tortoise|budgerigar|grey cat} {has moved into our garden|sits at our door}, and its owner {must be
  looking for it|cannot be found}.
- I have no idea whether {my purse fell out of my pocket|I left my scarf in the taxi|my phone was taken from
  my bag}, and {I miss it|it was a present}.
""",
    wishes="""
- Has anybody {handed in|found|brought in} {an umbrella|a wallet|a set of keys|a pair of glasses}?
- Where can I {collect|identify} {my things|the bag|what was found}?
- How long do you keep {found items|lost things} before the {auction|sale}?
- I will gladly pay {a finder's reward|the storage fee|the postage}.
""",
    tags=("bus-depot", "found", "finder"),
)

TOWN = Category("ROOT", children=(STREETS, WASTE, HOMES, LEISURE, _LOST_PROPERTY))

OPENINGS = read_templates("""
- {I am writing|I write|We are writing} {about something that has bothered us for a while|because there is
  nobody else to ask|on behalf of several people here on <street>}.
- {Perhaps|I hope} this is the right {desk|address|place} for my {letter|question|request}.
- {My name may be known to you|We have lived on <street> for many years|I have never written to the town
  before}, and I {do not like to complain|do not want to make a fuss|will try to be brief}.
- {Good morning|Good afternoon|Hello} to {everybody at the desk|the whole team|whoever reads this}.
- {My husband|My wife|My neighbour|A friend} said I should {write|turn} to you {before it is forgotten|at
  once|instead of grumbling at home}.
- I tried to {call|phone|ring} {three times|all morning|<when>}, but {the line was busy|nobody answered|I
  was cut off}.
- {Thank you for your last answer|Thank you for the quick reply in spring|I have read your answer}, which
  {unfortunately did not settle the matter|was kind but not quite to the point|left one question open}.
- {Your colleague took down my name|We spoke at the counter|I told your colleague everything on the phone},
  and {I now put it in writing|here are the details again}.
- This is {my second message|the third time I am writing|my last attempt} {about the same matter|about
  this|this year}.
- {It may well be|I am afraid this is|I suppose this is} {a small complaint|an everyday problem|a simple
  question}.
""")

MIDDLES = read_templates("""
- {At first I thought|We all hoped|Everybody told me} {it would sort itself out|somebody else had reported
  it|it was only a matter of days}.
- {When I asked|When my neighbour asked|When we asked} at the {town hall|front desk|office}, {nobody felt
  responsible|we were sent from door to door|a young man wrote everything down}.
- {I am seventy-four|I work nights|I have two small children|I look after my mother}, so {this is not easy
  for me|I notice such things|I cannot come in person}.
- I {phoned|called|rang} <when> and was {told to be patient|promised an answer|asked to write instead}.
- {The whole house|Half the street|Everybody around here} {is talking about it|feels the same|has noticed by
  now}.
- It has been {like this|going on|a nuisance} <since>, and {nothing has changed|my patience is running
  out|it is not getting better}.
- {I know|I understand|We are aware} that you {have a lot to do|are short of staff|cannot be everywhere}.
- {In other towns|At my sister's place|Where I used to live} {such things take two days|this works quite
  well|somebody answers within a week}.
- {I enclose|I can send|We have taken} {two photographs|some pictures|a few snapshots}, in case {that
  helps|you need them|anybody doubts it}.
- {To be honest|Frankly|I must say}, {I was surprised|I expected better|we were rather upset}.
- {We pay our taxes|I have always paid my share|We do our part}, and {we expect a little in return|that
  should count for something}.
- {The matter is not urgent|There is no great hurry|It need not be today}, but {I do not want to let it
  rest|it should not be forgotten|we would be glad of a word}.
- {My daughter|My brother-in-law|A colleague} {had the same trouble|wrote to you about the same thing|got no
  answer either} {last year|some time ago}.
- {The lady on the phone|The gentleman at the counter|Your colleague} was {very friendly|most polite|quite
  patient} but {knew no answer|could not find my name|had to ask somebody else}.
- {I read in the paper|Somebody on the bus told me|The mayor said at the fair} that {things would get better
  soon|you listen to people|a letter is all it takes}.
- {On some days|At weekends|In the mornings} it is {worse|hard to ignore|hardly to be borne}, {especially
  for older people|as you can imagine|as my neighbours can confirm}.
- {Nobody|Not one of us} {expects miracles|wants to blame anyone|asks for much}.
- {Last year|In the spring|A while ago} {this was handled very well|there was a different person in charge|I
  heard the opposite}.
""")

GENERIC_WISHES = read_templates("""
- Please {let me know|tell me|write and say} {what I have to do|who is in charge|how long this will take}.
- Could somebody {call me back|get in touch|give me an answer} {this week|soon|in the next few days}?
- {I would be grateful for|I am hoping for|We would be glad of} {a short answer|some advice|a date}.
- What {can be done|am I supposed to do|happens next}?
- Please {take care of this|look into this|see to it} {soon|when you can|without delay}.
- {Whom should I ask|Where do I have to go|Is there a form}, or {is this letter enough|can you see to it
  from here}?
""")

CLOSINGS = read_templates("""
- {Thank you|Many thanks} {for your help|for your time|in advance|for reading this}.
- {With kind regards|Kind regards|Best wishes} from {<street>|all of us|number <number>}.
- {I can be reached|You can reach me} {in the evening|most mornings|by phone after six|under the number on
  file}.
- {I look forward to|We look forward to|I count on} your {answer|reply|call}.
- {Keep up the good work|Do not take this badly|No offence meant}, and {have a good week|greetings to the
  team|thank you all the same}.
- I {hope|trust} {we can settle this without fuss|that you will find a way|I have not troubled you too
  much}.
- {If you have any questions|Should anything be unclear}, {just call|I am happy to explain|please write to
  me}.
""")

CHANGES_OF_SUBJECT = read_templates("""
- {There is a second matter|I have one more thing|I should mention something else|And something quite
  different}.
- {While I am at it, another thing|Since I am writing anyway, one more point}.
""")
