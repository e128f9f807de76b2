"""What kind of word a word is, by a list of the small words and by the endings of the others.

Two hundred English words and thirty endings; nothing is learned and no context is looked at. Good enough to tell
that two lines are built alike, and the same on every machine.
"""

from __future__ import annotations

from functools import lru_cache

TAGS = ("noun", "verb", "adjective", "adverb", "pronoun", "determiner", "preposition", "conjunction", "auxiliary",
        "number", "other")  # fmt: skip
_CLOSED = {
    "pronoun": """i you he she it we they me him her us them mine yours hers ours theirs myself yourself himself herself
        itself ourselves yourselves themselves who whom whose what which someone somebody something anyone anybody
        anything everyone everybody everything nobody nothing one ones i'm i've i'd i'll you're you've you'll you'd
        he's she's it's we're we've we'll they're they've they'll that's there's who's what's""",
    "determiner": "a an the this that these those my your his its our their some any no every each either neither both"
    " all many much few several another such more most other",
    "preposition": """of in to for with on at from by about as into through after over between out against during
        without before under around among within along across behind beyond near above below toward towards upon off
        until since per despite onto inside outside beneath beside up down like than""",
    "conjunction": "and or but nor so yet because although though while if unless whether when where whenever wherever"
    " however therefore",
    "auxiliary": """be is am are was were been being have has had having do does did will would shall should can could
        may might must ought isn't aren't wasn't weren't haven't hasn't hadn't don't doesn't didn't won't wouldn't
        shouldn't can't couldn't cannot gonna gotta wanna ain't""",
    "adverb": """not never always often sometimes here there now then again too very just only also even still almost
        already soon once twice perhaps maybe away back ever far well today tonight tomorrow yesterday how why""",
    "verb": """go goes went gone come comes came get gets got make makes made take takes took see sees saw seen know
        knows knew say says said think thinks thought give gives gave find finds found feel feels felt keep keeps kept
        let lets leave leaves left want wants need needs run runs ran hold holds held bring tell tells told""",
    "adjective": "good bad new old great small big long little young high low own same right wrong true free full real",
    "number": "zero two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred"
    " thousand million first second third",
    "other": "oh ah yeah yes hey la na ooh uh hello please",
}
_NUMBERS = {tag: number for number, tag in enumerate(TAGS)}
_KNOWN = {word: _NUMBERS[tag] for tag, words in _CLOSED.items() for word in words.split()}
_ENDINGS = (
    ("verb", ("ing", "ed", "ize", "ise", "ify", "in'")),
    ("adverb", ("ly", "wards", "wise")),
    ("adjective", ("ous", "ful", "less", "able", "ible", "ive", "ical", "ic", "al", "ish", "ary", "ant", "ent")),
    ("noun", ("tion", "sion", "ness", "ment", "ity", "ism", "ist", "ship", "hood", "dom", "ance", "ence", "er", "or")),
)
_SHORTEST = 2
"""Letters before an ending."""


@lru_cache(maxsize=1 << 16)
def tag(word: str) -> int:
    """The number of the word's kind in `TAGS`; what nothing is known about is a noun."""
    word = word.replace("’", "'")
    known = _KNOWN.get(word)
    if known is not None:
        return known
    if word[0].isdigit():
        return _NUMBERS["number"]
    for kind, endings in _ENDINGS:
        if word[_SHORTEST:].endswith(endings):
            return _NUMBERS[kind]
    return _NUMBERS["noun"]
