"""JSON that anybody may have written: whatever is wrong with it is one kind of error, and its texts can be written."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def read_json(text: str) -> Any:
    """What a text says; ValueError where it is no JSON, or nested so deep that nobody can have meant it.

    Half a character (`"\\ud800"`), which no file can hold, is read as the replacement character.
    """
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found[0], text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
