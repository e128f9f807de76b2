"""JSON encoding and error texts of responses."""

from __future__ import annotations

import json
import math
from typing import Any

from neural.runs.errors import RunError


def format_error(error: Exception) -> str:
    """The message of an error. RunErrors are written for users; others get their type in front."""
    return (
        str(error)
        if isinstance(error, RunError)
        else f"cannot be read: {type(error).__name__}: {error}"
    )


def encode_json(value: Any) -> bytes:
    """Compact JSON; NaN and infinities become null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(
            _replace_non_finite(value), allow_nan=False, separators=(",", ":")
        ).encode()


def _replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinity by None, because JSON lacks them."""
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
