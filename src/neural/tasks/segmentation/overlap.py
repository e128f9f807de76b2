"""Overlap of segments: the end of the text before a segment, repeated at its start."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from neural.tasks.segmentation.character_classes import SPACELESS_SCRIPTS
from neural.tasks.segmentation.text_buffer import TextBuffer
from neural.tasks.segmentation.token_counting import TokenCounter

# A character of a script without spaces is a word.
_WORD = re.compile(rf"[{SPACELESS_SCRIPTS}]|[^\s{SPACELESS_SCRIPTS}]+")


def find_overlap(
    text: TextBuffer,
    element_starts: Sequence[int],
    start: int,
    end: int,
    counter: TokenCounter,
    *,
    overlap: int,
    max_tokens: int | None,
) -> tuple[int, int] | None:
    """Where the segment text[start:end] begins if it is extended backwards, and its tokens then.

    It is extended by as many elements as have at most `overlap` tokens together; by words if the
    element before the segment has more. With its overlap the segment has at most `max_tokens`
    tokens. `element_starts` are the positions of the elements so far, in rising order; elements
    before the first one are not used. None if there is no overlap.
    """

    def is_short(position: int) -> bool:
        return counter.count(text.slice(position, start)) <= overlap

    count = bisect_left(element_starts, start)
    if not count:
        return None
    positions = []
    for index in range(count - 1, -1, -1):
        if not is_short(element_starts[index]):
            break
        positions.append(element_starts[index])
    if not positions:
        # The element before the segment is too long: as many of its last words as fit.
        element_start = element_starts[count - 1]
        element = text.slice(element_start, start)
        words = [element_start + match.start() for match in _WORD.finditer(element)]
        positions = words[bisect_left(words, True, key=is_short) :][::-1]
    # The longest overlap comes first. It nearly always fits, because room was left for it. The
    # search assumes that fewer words never have more tokens; other tokenizers need the check.
    for position in reversed(positions):
        if not is_short(position):
            continue
        tokens = counter.count(text.slice(position, end))
        if max_tokens is None or tokens <= max_tokens:
            return position, tokens
    return None
