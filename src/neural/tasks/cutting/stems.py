"""Words without their endings: plural, past, -ing, -ly and a few more, so that `segments` and `segmented` meet.

A microsecond a word, where Porter's rules take twenty: features must keep up with reading. It need not be
right about language, only alike for words that belong together.
"""

from __future__ import annotations

from neural.tasks.cutting.terms import SMALL

_ENDINGS = (
    ("ization", "ize"), ("isation", "ise"), ("fulness", "ful"), ("iveness", "ive"), ("ational", ""), ("ations", ""),
    ("ation", ""), ("ements", "e"), ("ingly", ""), ("ement", "e"), ("edly", ""), ("ness", ""), ("ings", ""),
    ("ally", "al"), ("ities", "ity"), ("ing", ""), ("ies", "y"), ("ied", "y"), ("ers", ""), ("est", ""), ("ed", ""),
    ("ly", ""), ("er", ""), ("es", ""), ("'s", ""), ("’s", ""), ("s", ""),
)  # fmt: skip
_SHORTEST = 3
"""Letters that must be left of a word."""
_BY_LAST = {
    last: tuple(pair for pair in _ENDINGS if pair[0][-1] == last) for last in {ending[-1] for ending, _ in _ENDINGS}
}


def stem(word: str) -> str:
    """The word without its ending."""
    if len(word) <= _SHORTEST or word.endswith("ss"):
        return word
    for ending, instead in _BY_LAST.get(word[-1], ()):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word[: -len(ending)] + instead
            break
    if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]   # stopp(ed) → stop
    return word[:-1] if len(word) > _SHORTEST and word[-1] == "e" else word   # love(d), lov(ing)


def topic(word: str) -> str | None:
    """The stem of a word that may carry a topic, None for one that all texts share."""
    before = word.partition("'")[0].partition("’")[0]
    return None if before in SMALL else stem(word)
