"""How an element looks by itself: lengths, place, letters, how it begins and ends."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature, windowed_mean
from neural.tasks.cutting.headings import likeness
from neural.tasks.cutting.words import Words

CUES = (
    ("goes_on", "and also but furthermore moreover however therefore thus hence yet still so then consequently"
     " nevertheless similarly likewise besides instead meanwhile otherwise for because or nor although though"),
    ("points_back", "he she it they his her its their this that these those such him them both another"),
    ("sets_out", "in on at the a an during since from after before by between during as when while there according"),
    ("asks", "what why how who when where which whose"),
)  # fmt: skip
"""First words that tell something about what came before."""
_ENDS = (".", "?", "!", ":", ",", ")")


class Shape(Feature):
    """Lengths as logarithms, also against the neighbourhood; shares of letters; first word and last character."""

    columns: ClassVar[tuple[str, ...]] = (
        "words", "characters", "place", "from_start", "to_end", "length_change", "length_unusual",
        "capitals", "digits", "marks", "heading", "heading_before", "small_letter", "opening_quote",
        *(name for name, _ in CUES),
        "ends_stop", "ends_question", "ends_exclamation", "ends_colon", "ends_comma", "ends_bracket",
    )  # fmt: skip

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """Character classes by a table over the whole document, the rest element by element."""
        elements, count = document.elements, len(document)
        places = np.arange(count)
        characters = np.fromiter(map(len, elements), dtype=np.int64, count=count)
        lengths = np.log1p(words.counts)
        headings = np.array([likeness(one) if one else 0.0 for one in elements])
        last = np.array([one[-1:] for one in elements])
        first = words.nth(0)
        cue = words.each(lambda word: _CUE.get(word, -1))
        cue_of = np.where(first >= 0, cue[first], -1) if len(cue) else np.full(count, -1)
        columns = [
            lengths, np.log1p(characters), places / max(1, count - 1), np.log1p(places), np.log1p(count - 1 - places),
            np.diff(lengths, prepend=lengths[:1]), lengths - windowed_mean(lengths, 8),
            *_shares(elements, characters),
            headings, np.concatenate([[0.0], headings[:-1]]),
            np.array([one[:1].islower() for one in elements]),
            np.array([one[:1] in _QUOTES for one in elements]),
            *(cue_of == number for number in range(len(CUES))),
            *(last == end for end in _ENDS),
        ]  # fmt: skip
        return np.stack(columns, axis=1).astype(np.float64)


def _shares(elements: tuple[str, ...], lengths: np.ndarray) -> list[np.ndarray]:
    """Which part of each element's characters are capitals, digits and marks; ASCII only."""
    codes = np.frombuffer("".join(elements).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = _KINDS[np.minimum(codes, 128)]
    owners = np.repeat(np.arange(len(elements)) * 4, lengths)
    counts = np.bincount(owners + kinds, minlength=4 * len(elements)).reshape(-1, 4)
    return list((counts[:, 1:] / np.maximum(lengths, 1)[:, None]).T)


def _kind(character: str) -> int:
    """0 for what is not counted, else which of `_shares` it counts for, from 1."""
    if character.isupper():
        return 1
    if character.isdigit():
        return 2
    return 0 if character.isalnum() or character.isspace() else 3


_QUOTES = frozenset("\"'“‘«„`「『")
_CUE = {word: number for number, (_, words) in enumerate(CUES) for word in words.split()}
_KINDS = np.array([_kind(chr(code)) for code in range(128)] + [0], dtype=np.uint8)
