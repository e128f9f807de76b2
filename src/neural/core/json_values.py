"""Parse untrusted JSON: invalid text raises ValueError, and all strings can be encoded as UTF-8."""

from __future__ import annotations

import json
import re
from typing import Any

# A pair of surrogate escapes (one character beyond U+FFFF), a lone surrogate escape (group 1), or
# any other escape such as `\n`. Pairs and other escapes are matched so that they stay unchanged.
_ESCAPE_SEQUENCE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def parse_json(text: str) -> Any:
    """Parse a text. Raises ValueError if it is not JSON or is nested too deeply.

    A lone surrogate (`"\\ud800"`, half of a character) cannot be encoded as UTF-8: it becomes the
    replacement character.
    """
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE_SEQUENCE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
