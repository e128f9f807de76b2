"""Where sentences end: at a full stop that is no abbreviation, no initial, no number, no ellipsis in mid-sentence.

One pass over the candidates, each judged by a few characters around it: the time grows with the text, whatever is in
it. Made for English and its neighbours; full stops of Chinese and Japanese end a sentence wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CANDIDATE = re.compile(r"""[.!?…。！？｡]+["'”’»›)\]}」』）】]*(?:\s''(?=\s))?""")
_NEXT = re.compile(r"""\s*["'“‘«‹(\[{`¿¡„「『（【_*]*(.?)""", re.S)
_WIDE = frozenset("。！？｡")
_BEFORE = 24
"""Characters looked at before a stop: longer words are no abbreviations."""

_FOLLOWED = """
    mr mrs ms mx dr prof rev fr st sr jr hon gen col maj capt cmdr lt sgt cpl pvt gov sen rep pres mt ft vs viz cf
    al eg ie ca approx fig figs eq eqs sec secs ch chap vol vols pp p no nos nr op ed eds trans tab ref refs para
    mme mlle m hr bzw z.b d.h u.a e.g i.e jan feb mar apr jun jul aug sep sept oct nov dec
"""
_MAYBE_LAST = "etc inc ltd co corp bros llc plc dept univ assn ave blvd rd sq est usw a.m p.m u.s u.k"
_BEGINNING = """
    the a an this that these those he she it they we you i his her its their our my there here in on at by for from
    with as when while after before if although though but and so however then thus since because what who how why
    where no not all some many most each one two both another such
"""
NEVER_LAST = frozenset(_FOLLOWED.split())
"""Abbreviations that something follows."""
SOMETIMES_LAST = frozenset(_MAYBE_LAST.split())
"""Abbreviations that may end a sentence, and do where the next word often begins one."""
BEGINNERS = frozenset(_BEGINNING.split())
"""Words that often begin a sentence."""
_WORD = re.compile(r"[\w'’]+")


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Where the sentences of text[start:end] end, in order; the last one is `end`."""
    for match in _CANDIDATE.finditer(text, start, end):
        if match.end() >= end:
            break
        if _ends(text, start, end, match):
            yield match.end()
    yield end


def _ends(text: str, start: int, end: int, match: re.Match[str]) -> bool:
    stop = match.group()
    if not _WIDE.isdisjoint(stop):
        return True
    if not text[match.end()].isspace():
        return False   # 3.14, example.org, "…"—
    following = _NEXT.match(text, match.end(), end)
    after = following.group(1) if following else ""
    if after.islower() or (after in ",;:)]}–—-…" and after):
        return False
    if stop[0] != "." or stop[:2] == "..":
        return True
    before = text[max(start, match.start() - _BEFORE) : match.start()]
    word = before[-1:].strip() and before.split()[-1].lstrip("\"'“‘«([{`*_—–-")
    if not word:
        return True   # a stop that stands alone, as in tokenised text
    lower = word.lower()
    if len(word) == 1 and word.isalpha():
        return word == "I" and _small_before(before)   # "so did I." is no initial
    if lower in NEVER_LAST:
        return False
    if lower in SOMETIMES_LAST or ("." in word and word.replace(".", "").isalpha() and len(word) <= 8):
        return _begins_usually(text, following)
    # "1. Introduction" is an enumeration
    return match.start() - len(word) != start or not (word.isdigit() or lower.strip("ivxlc") == "")


def _small_before(before: str) -> bool:
    words = before.split()
    return len(words) > 1 and words[-2][0].islower()


def _begins_usually(text: str, following: re.Match[str] | None) -> bool:
    """Whether the next word is one that often begins a sentence."""
    word = _WORD.match(text, following.start(1)) if following else None
    return word is not None and word.group().lower() in BEGINNERS
