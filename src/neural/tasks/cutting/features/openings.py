"""How a sentence takes up what was said: words that go on, point back or set out, years, the subject's own name.

Where a part begins, writers name things again ("Brahms was born in 1833"); within it they refer ("He also …").
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature
from neural.tasks.cutting.words import Words

GROUPS = {
    "person": "he she it they him her them his hers its their theirs itself himself herself themselves",
    "pointing": "this that these those such same latter former here",
    "adding": "also too again another other further furthermore moreover additionally likewise similarly besides and",
    "contrast": "however but yet although though nevertheless nonetheless instead despite whereas still otherwise",
    "result": "thus therefore hence consequently so accordingly because",
    "next": "then later subsequently eventually afterwards afterward soon finally meanwhile next thereafter",
    "beginning": "born originally origin origins early began begin begins founded established history first initially"
    " started introduced childhood",
    "article": "the a an",
    "time": "in on at during after before since when until following from by",
    "speaker": "i you we my me your our us",
}
"""Words by what they do to the reader; the groups are alike in all kinds of prose."""
EARLY = 6
"""Words that count as the beginning of an element."""
SUBJECTS = 5
"""Stems that most elements have: what the document is about."""
_GROUP = {word: number for number, words in enumerate(GROUPS.values()) for word in words.split()}
_KINDS = (*GROUPS, "number", "year")


class Openings(Feature):
    """Of every group of words, of numbers and of years: 1 where the first word is one, one of the first six, any.

    `subject`: how many of the five commonest stems of the document the element has, also at its beginning. `year_step`:
    from the last year named before to the next one named, as a logarithm with its sign; `year_back` where that is back.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *(f"{place}_{kind}" for place in ("first", "early", "any") for kind in _KINDS),
        "subject", "early_subject", "year_step", "year_back",
    )  # fmt: skip

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """By tables over the vocabulary."""
        count = len(words)
        kinds = words.each(_kind)[words.ids] if len(words.ids) else words.ids
        place = np.arange(len(words.ids)) - words.starts[:-1][words.owners]
        marked = [_marked(words.owners, kinds, place < reach, count) for reach in (1, EARLY)]
        return np.concatenate(
            [*marked, _marked(words.owners, kinds, place >= 0, count), _subjects(words), _years(words)], axis=1
        )


def _kind(word: str) -> int:
    """The column of a word, −1 for none."""
    if word.isdecimal():
        return len(GROUPS) + (len(word) == 4 and "1000" <= word < "2100")
    return _GROUP.get(word, -1)


def _marked(owners: np.ndarray, kinds: np.ndarray, where: np.ndarray, count: int) -> np.ndarray:
    """1 for every kind that stands among these words of an element."""
    found = np.zeros((count, len(_KINDS)))
    kept = where & (kinds >= 0)
    found[owners[kept], kinds[kept]] = 1
    return found


def _subjects(words: Words) -> np.ndarray:
    """How many different ones of the commonest stems each element has: anywhere, and among its first stems."""
    stems, count = words.stems, len(words)
    found = np.zeros((2, SUBJECTS, count))
    if len(stems.ids):
        pairs = np.unique(stems.ids.astype(np.int64) * count + stems.owners)
        spread = np.bincount(pairs // count, minlength=len(stems.vocabulary))
        place = np.arange(len(stems.ids)) - stems.starts[:-1][stems.owners]
        for row, stem in enumerate(np.argsort(-spread, kind="stable")[:SUBJECTS]):
            there = stems.ids == stem
            found[0, row, stems.owners[there]] = 1
            found[1, row, stems.owners[there & (place < EARLY // 2)]] = 1
    return found.sum(axis=1).T


def _years(words: Words) -> np.ndarray:
    """The step in time over each gap, and whether it goes back; 0 where no year is named on one side."""
    value = words.each(lambda word: int(word) if _kind(word) == len(_KINDS) - 1 else 0)
    named = value[words.ids] if len(words.ids) else np.zeros(0, np.int64)
    at = np.flatnonzero(named)
    years, owners = named[at], words.owners[at]
    after = np.searchsorted(owners, np.arange(len(words)))   # the first year at or after each element
    both = (after > 0) & (after < len(years))
    step = np.zeros(len(words))
    step[both] = years[after[both]] - years[after[both] - 1]
    return np.stack([np.sign(step) * np.log1p(np.abs(step)), (step < -1).astype(float)], axis=1)
