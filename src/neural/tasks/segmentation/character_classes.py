"""Classes of characters for native kernels: a bit set per Unicode code point, filled on demand.

Kernels read text as UTF-8. What a letter, a digit or white space is, `str` decides, so that
kernels and plain Python code agree for every character and every version of Unicode.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from neural.native.library import NativeFunction

CLASSIFIED, ALPHANUMERIC, SPACELESS, SPACE, LOWER, TERMINATOR, CLOSER, OPENER = (
    1 << bit for bit in range(8)
)
"""Bits of a class; tokenization.cpp and sentence_ends.cpp have the same."""
BLOCK_SIZE = 256
"""Code points that are classified together."""
BLOCK_COUNT = 0x110000 // BLOCK_SIZE
# Ranges of characters of scripts without spaces between words, for a regex character class.
SPACELESS_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
TERMINATORS = ".!?…。！？｡։؟۔।॥።፧။។៕།༎᠃‼⁇⁈⁉．"
"""Characters that may end a sentence.

After the marks of Chinese and Japanese: full stops and question marks of Armenian, Arabic, Urdu,
Devanagari, Ethiopic, Burmese, Khmer, Tibetan and Mongolian; double marks; the wide full stop.
"""
CLOSERS = "\"'”’»›)]}」』）】"
"""Closing quotes and brackets, which may follow a terminator."""
OPENERS = "\"'“‘«‹([{`¿¡„「『（【_*"
"""Opening quotes, brackets and marks, which may precede the first word of a sentence."""
SPACELESS_PATTERN = re.compile(f"[{SPACELESS_SCRIPTS}]")
_find_character_blocks = NativeFunction("find_character_blocks", "pip")
_find_code_point_blocks = NativeFunction("find_code_point_blocks", "pip")


def classify_characters(text: np.ndarray) -> np.ndarray:
    """Table of classes by code point, (0x110000,), uint8; complete for the characters of `text`.

    `text` is UTF-8 (uint8) or UTF-32 (uint32), in which surrogates are allowed. Needs the native
    library.
    """
    table, blocks = _class_table(), np.zeros(BLOCK_COUNT, np.uint8)
    find_blocks = _find_character_blocks if text.dtype == np.uint8 else _find_code_point_blocks
    find_blocks(text.ctypes.data, len(text), blocks.ctypes.data)
    for block in np.flatnonzero(blocks):
        first = int(block) * BLOCK_SIZE
        if not table[first]:
            table[first : first + BLOCK_SIZE] = [
                _classify(chr(code)) for code in range(first, first + BLOCK_SIZE)
            ]
    return table


@cache
def _class_table() -> np.ndarray:
    # Zeros are mapped by the system when they are first touched: unused blocks need no memory.
    return np.zeros(BLOCK_COUNT * BLOCK_SIZE, np.uint8)


def _classify(character: str) -> int:
    return (
        CLASSIFIED
        | ALPHANUMERIC * character.isalnum()
        | SPACELESS * bool(SPACELESS_PATTERN.match(character))
        | SPACE * character.isspace()
        | LOWER * character.islower()
        | TERMINATOR * (character in TERMINATORS)
        | CLOSER * (character in CLOSERS)
        | OPENER * (character in OPENERS)
    )
