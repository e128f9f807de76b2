"""Speaker turns in transcripts and chat logs: `ALICE: …`, `[10:32] Bob: …`, `<bob> …`, `Q: …`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

MAX_TURN_MARK_CHARACTERS = 64
"""A speaker's name, with the time before it, is at most this long."""
MIN_SPEAKER_TURNS = 2
"""At least two speakers have this many turns."""
MIN_SPEAKER_CHANGES = 3
MIN_TURNS = MIN_SPEAKER_CHANGES + 1
MIN_TURN_SHARE = 0.15
"""Smallest number of turns for each paragraph of the text."""
_TURN = re.compile(
    r"""
    (?P<time>
        [\[(]? (?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?[ T])? \d{1,2}:\d\d (?::\d\d)? (?:[.,]\d{1,3})?
        (?:\ ?[AaPp]\.?[Mm]\.?)? [\])]? \ ? [-–|]? \ {0,2}
    )?
    (?:
        <(?P<nick>[^<>\s][^<>\n]{0,30})>\s
      | [*_]{0,3} (?P<name>\w[\w.'’&-]{0,24}(?:\ [\w(][\w.'’&)-]{0,24}){0,4})
        (?:\ [\[(][^()\[\]\n]{1,30}[\])])? [*_]{0,3} [:：] [*_]{0,3} (?=\s|$|[^\x00-\xff])
    )
    """,
    re.X | re.M,
)
# Labels that begin lines of other texts.
_LABEL_LIST = """
    note notes warning example examples tip hint caution important see step figure fig table
    todo input output usage returns args arguments parameters raises date time subject from
    to cc re address phone email fax source title author http https ps file version default
    type name description option options summary definition theorem proof lemma remark
    result
"""
_LABELS = frozenset(_LABEL_LIST.split())


def find_turns(
    text: str, candidates: Iterable[tuple[int, int, int]], paragraph_count: int
) -> dict[int, int]:
    """Lines (or paragraphs) at which a turn begins: index of the line → number of the speaker.

    `candidates` are indices, starts and ends of lines. The result is empty unless at least two
    speakers alternate several times, in many of the paragraphs of the text.
    """
    names: dict[int, str] = {}
    for index, start, end in candidates:
        if name := _match_speaker(text, start, end):
            names[index] = name
    turns = Counter(names.values())
    frequent = {name for name, count in turns.items() if count >= MIN_SPEAKER_TURNS}
    changes = sum(left != right for left, right in pairwise(names.values()))
    if (
        len(frequent) < 2
        or changes < MIN_SPEAKER_CHANGES
        # A list of labels (`Name: …`, `Place: …`) has many that are used once.
        or 2 * sum(turns[name] for name in frequent) < len(names)
        or len(names) < MIN_TURN_SHARE * paragraph_count
    ):
        return {}
    numbers = {name: number for number, name in enumerate(turns)}
    return {index: numbers[name] for index, name in names.items()}


def _match_speaker(text: str, start: int, end: int) -> str | None:
    """Name of the speaker whose turn begins at `start`, or None."""
    match = _TURN.match(text, start, min(end, start + MAX_TURN_MARK_CHARACTERS))
    if match is None:
        return None
    if match["nick"]:
        return match["nick"]
    name = match["name"]
    if name.lower() in _LABELS or name.isdecimal():
        return None
    # Without a time, a name has capitals (or a script without them).
    is_name = not any(word[0].islower() for word in name.split())
    return name if match["time"] or is_name else None
