"""Parse untrusted JSON: every defect is a ValueError, and all strings can be encoded."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPE_SEQUENCE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def parse_json(text: str) -> Any:
    """Parse a text; ValueError where it is not JSON or nested too deeply.

    A lone surrogate (`"\\ud800"`), which UTF-8 cannot encode, becomes the replacement character.
    """
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE_SEQUENCE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
