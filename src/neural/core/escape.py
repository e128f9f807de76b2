"""Make untrusted names and texts safe to print on a terminal.

Control characters in the name of a run could clear the screen, overwrite earlier output, reverse
the order of letters, or make printing fail.
"""

from __future__ import annotations

import json
import re

# All control characters except the newline (\x0a), line separators, characters that change the
# direction of text or are invisible, and lone surrogates, which cannot be encoded. The joiners
# U+200C and U+200D stay: Persian words and emoji need them.
_CONTROL_CHARACTERS = (
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL_PATTERN = re.compile(_CONTROL_CHARACTERS)
_COLOUR_OR_CONTROL_PATTERN = re.compile(
    rf"(\x1b\[(?:[0-7]|[39][0-7])(?:;(?:[0-7]|[39][0-7]))*m)|{_CONTROL_CHARACTERS}"
)


def escape_controls(text: str) -> str:
    """Replace control characters by `�` and tabs by spaces; line breaks stay."""
    return _CONTROL_PATTERN.sub("�", text.replace("\t", " "))


def escape_controls_keep_colours(text: str) -> str:
    """Like `escape_controls`, but ANSI colour sequences, which our own output contains, stay."""
    return _COLOUR_OR_CONTROL_PATTERN.sub(lambda match: match[1] or "�", text.replace("\t", " "))


def escape_json(text: str) -> str:
    """JSON text with `\\u009b` in place of control characters: the same data, safe to print."""
    return _CONTROL_PATTERN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def shorten(text: str, max_length: int) -> str:
    """The text on one line, with `…` in place of its middle if it is too long."""
    line = escape_controls(" ".join(text.split()))
    if len(line) <= max_length:
        return line
    front_length = (max_length - 1) * 2 // 3  # two thirds of the length before the `…`
    return f"{line[:front_length]}…{line[len(line) - (max_length - 1 - front_length) :]}"
