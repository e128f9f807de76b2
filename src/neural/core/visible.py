"""Names and texts out of files that anybody may have written, as they may stand on a terminal.

A terminal obeys what it is told to show: a few characters in the name of a run could clear the screen, move the cursor
over what was printed before, turn the order of letters round, or make the printing itself fail.
"""

from __future__ import annotations

import re

_OBEYED = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_ANY = re.compile(_OBEYED)
_BUT_COLOURS = re.compile(rf"(\x1b\[(?:[0-7]|[39][0-7])(?:;(?:[0-7]|[39][0-7]))*m)|{_OBEYED}")


def visible(text: str) -> str:
    """The text, line by line as it is, with � for what a terminal would obey; a tab is a space."""
    return _ANY.sub("�", text.replace("\t", " "))


def visible_colours(text: str) -> str:
    """The same of a text that has colours of ours in it."""
    return _BUT_COLOURS.sub(lambda found: found[1] or "�", text.replace("\t", " "))
