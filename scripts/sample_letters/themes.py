"""Kinds of trouble that turn up all over the town: the same words in leaves that lie far apart.

A kind tells siblings apart, but not one area from another; it points to a leaf only together with what the
letter says of its area.
"""

from __future__ import annotations

from sample_letters.grammar import read_templates

THEMES: dict[str, tuple[str, ...]] = {
    "damage": read_templates("""
- The whole thing is {broken|cracked|loose|worn out} and {cannot be used|falls apart a little more every
  day|has been patched up twice}.
- Somebody tried to {mend|repair|fix} this {for the time being|with what was at hand|rather badly} <when>,
  and {the repair did not hold|now it is broken again}.
- It {gave way|came apart|broke off} <when>, and {a piece is missing|I kept the broken piece|it looks worse
  than before}.
- A {proper repair|spare part|replacement} was promised, and {the damage is getting worse|it is still
  broken}.
- How long does a {repair|replacement} {usually take|take in such a case}?
- {Wear and tear|Bad weather|Poor material|Vandalism} must {have caused the damage|be to blame}, {if you ask
  me|I suppose}.
"""),
    "money": read_templates("""
- The {bill|amount|sum} {is wrong|is higher than it should be|was taken from my account twice}.
- I have the {receipt|bank statement|proof of payment} {here|in front of me|in my drawer}.
- I {refuse to pay|cannot pay|will not pay} {the whole amount|for something I did not do|before this is
  settled}.
- {The second reminder|The final reminder|Another demand} came <when>, {with extra costs|in red letters}.
- I expect {a refund of the amount|the account to be checked|the charge to be cancelled|an end to the
  reminders}.
- {Eleven pounds|Thirty pounds|Such a sum} {may not sound like much|is a lot of money for me}, but {it is my
  money|my budget is tight}.
"""),
    "application": read_templates("""
- I {filled in|handed in|sent} the {form|application|papers} {some weeks ago|online|at the counter} and
  {have no confirmation|was given no number}.
- Which {documents|papers|forms} {do I need|must I enclose|have to be signed}?
- The form asks for {a reference number|two signatures|a certificate}, which {I do not have|nobody can
  explain}.
- I would like to {apply|register|put my name down} {in good time|for next year|as early as possible}.
- How long does {the approval|such an application|the decision} {usually take|take this year}?
- {My request|My application} was {turned down|sent back}, and {no reason was given|I would like to know
  why}.
"""),
    "no-show": read_templates("""
- {I took the day off|I waited from eight to four|We stayed in all day}, and {nobody came|nobody turned
  up|we waited in vain}.
- The {appointment|date} was {confirmed in writing|fixed weeks ago|moved twice} and then {cancelled without
  a word|simply forgotten}.
- This is the {second|third} {date|appointment} {that fell through|that was forgotten}.
- We need {a new date|another appointment|a date that is kept}, {in the afternoon if possible|and soon|this
  time in writing}.
- {Waiting in vain|Such a wasted day|A missed appointment} {costs me a day's pay|is annoying}, and {an
  apology|a word of regret} would be {nice|the least}.
- Nobody {cancelled|warned us|called beforehand}, so we {waited until the evening|stood there like fools}.
"""),
    "disturbance": read_templates("""
- It {begins|starts} {before six|late in the evening|when we go to bed} and {goes on for hours|does not stop
  before midnight}.
- {My baby|My husband|My sick mother} cannot {sleep|rest|find any peace} {at night|in the daytime}.
- The {noise|din|racket} is {unbearable|worst at night|driving us mad}.
- Even with {earplugs|the windows closed|the radio on} we {hear every sound|are woken up|get headaches}.
- How many {decibels|hours of noise} must we {put up with|endure}?
- {Nobody sleeps|There is no peace} {in the front rooms|on our side} any more, and {nerves are raw|we are
  exhausted}.
"""),
    "danger": read_templates("""
- {Sooner or later|One of these days} {somebody will be hurt|there will be an accident|an ambulance will be
  needed}.
- An elderly {lady|gentleman} {was nearly hit|had to be helped up|was badly frightened} there <when>.
- Who is {liable|responsible} if {something happens|a child is hurt|somebody falls}?
- I no longer {dare to walk there|let the children go there} {in the dark|alone|when it is windy}.
- {A warning sign|A strip of tape|A barrier} would be {the least|better than nothing} {against such a
  danger|until the danger is gone}.
- The {danger|risk} is {obvious|real|growing}, and {an accident|an injury} would be {on your conscience|no
  surprise}.
"""),
}
