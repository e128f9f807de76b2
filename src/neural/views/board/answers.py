"""What the board says, as bytes and in words."""

from __future__ import annotations

import json
import math
from typing import Any

from neural.tracking.trouble import RunError


def in_a_line(wrong: Exception) -> str:
    """What is wrong with a folder; anything may be in one that somebody else made."""
    return str(wrong) if isinstance(wrong, RunError) else f"it cannot be read: {type(wrong).__name__}: {wrong}"


def as_json(value: Any) -> bytes:
    """Compact; null where there is no number."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_plain(value), allow_nan=False, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
