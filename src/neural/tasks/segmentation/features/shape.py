"""Surface features of an element (sentence or line): length, position, characters, first word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature, windowed_mean
from neural.tasks.segmentation.text_splitting import score_heading
from neural.tasks.segmentation.tokenization import ElementTokens

FIRST_WORD_CUES = (
    (
        "goes_on",
        "and also but furthermore moreover however therefore thus hence yet still so then "
        "consequently nevertheless similarly likewise besides instead meanwhile otherwise for "
        "because or nor although though",
    ),
    (
        "points_back",
        "he she it they his her its their this that these those such him them both another",
    ),
    (
        "sets_out",
        "in on at the a an during since from after before by between during as when while "
        "there according",
    ),
    (
        "asks",
        "what why how who when where which whose",
    ),
)
"""Column name, and the first words for which the column is 1.

The first word of an element is a cue about its relation to the text before it.
"""
_END_CHARACTERS = (".", "?", "!", ":", ",", ")")  # in the order of the columns `ends_…`
_LENGTH_RADIUS = 8
"""Elements on either side whose mean length an element is compared with."""


class Shape(Feature):
    """Length, position, fractions of characters, first word and last character of an element.

    `words` and `characters` are log(1 + length). `place` is the position in the document from 0 to
    1; `from_start` and `to_end` are log(1 + distance in elements). `length_change` and
    `length_unusual` are `words` minus that of the element before, and minus its local mean.
    `capitals`, `digits` and `marks` (punctuation) are fractions of the characters. `heading` and
    `heading_before` say how much the element, and the one before, look like a heading, from 0 to 1.
    All others are 0 or 1.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "words",
        "characters",
        "place",
        "from_start",
        "to_end",
        "length_change",
        "length_unusual",
        "capitals",
        "digits",
        "marks",
        "heading",
        "heading_before",
        "small_letter",
        "opening_quote",
        *(name for name, _ in FIRST_WORD_CUES),
        "ends_stop",
        "ends_question",
        "ends_exclamation",
        "ends_colon",
        "ends_comma",
        "ends_bracket",
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """All columns; the character classes come from a lookup table, for speed."""
        elements, count = document.elements, len(document)
        positions = np.arange(count)
        character_counts = np.fromiter(map(len, elements), dtype=np.int64, count=count)
        log_lengths = np.log1p(tokens.counts)
        headings = np.array([score_heading(element) if element else 0.0 for element in elements])
        last_characters = np.array([element[-1:] for element in elements])
        first_word_ids = tokens.nth_token(0)
        cue_ids = tokens.map_vocabulary(lambda word: _CUE_IDS.get(word, -1))
        first_cues = (
            np.where(first_word_ids >= 0, cue_ids[first_word_ids], -1)
            if len(cue_ids)
            else np.full(count, -1)
        )
        columns = [
            log_lengths,
            np.log1p(character_counts),
            positions / max(1, count - 1),
            np.log1p(positions),
            np.log1p(count - 1 - positions),
            np.diff(log_lengths, prepend=log_lengths[:1]),
            log_lengths - windowed_mean(log_lengths, _LENGTH_RADIUS),
            *_character_shares(elements, character_counts),
            headings,
            np.concatenate([[0.0], headings[:-1]]),
            np.array([element[:1].islower() for element in elements]),
            np.array([element[:1] in _QUOTES for element in elements]),
            *(first_cues == cue for cue in range(len(FIRST_WORD_CUES))),
            *(last_characters == character for character in _END_CHARACTERS),
        ]
        return np.stack(columns, axis=1).astype(np.float64)


def _character_shares(elements: tuple[str, ...], lengths: np.ndarray) -> list[np.ndarray]:
    """Fractions of capitals, digits and punctuation in each element's characters; ASCII only."""
    codes = np.frombuffer("".join(elements).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = _CHARACTER_KINDS[np.minimum(codes, 128)]
    # Count the four kinds of `_character_kind` per element; kind 0 is dropped at the end.
    row_offsets = np.repeat(np.arange(len(elements)) * 4, lengths)
    counts = np.bincount(row_offsets + kinds, minlength=4 * len(elements)).reshape(-1, 4)
    return list((counts[:, 1:] / np.maximum(lengths, 1)[:, None]).T)


def _character_kind(character: str) -> int:
    """1 for a capital, 2 for a digit, 3 for punctuation, else 0."""
    if character.isupper():
        return 1
    if character.isdigit():
        return 2
    return 0 if character.isalnum() or character.isspace() else 3


_QUOTES = frozenset("\"'“‘«„`「『")
_CUE_IDS = {
    word: number for number, (_, words) in enumerate(FIRST_WORD_CUES) for word in words.split()
}
# By code point; 128 stands for all characters beyond ASCII.
_CHARACTER_KINDS = np.array(
    [_character_kind(chr(code)) for code in range(128)] + [0], dtype=np.uint8
)
