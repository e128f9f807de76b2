"""Names: one spelling from another, and what a misspelt one was meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

LONGEST = 60
"""Names past this length are junk, not misspellings; comparing them would only cost time."""


def key(name: str) -> str:
    """The name without case and underscores: `TransformerEncoder` and `transformer_encoder` are one."""
    return name.replace("_", "").lower()


def snake(name: str) -> str:
    """A class name as a file name: `TransformerEncoder` → `transformer_encoder`, `Conv2D` → `conv2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().rstrip("_")


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` most likely stands for, or None where nothing is near."""
    typed = key(name)
    if not typed or len(typed) > LONGEST:
        return None

    def likeness(candidate: str) -> float:
        other = key(candidate)
        if other == typed:
            return 2.0
        # an abbreviation or a plural is nearer than its letters alone say: `attention` → `MultiHeadAttention`
        prefix = 0.2 if min(len(typed), len(other)) >= 3 and (other.startswith(typed) or typed.startswith(other)) else 0
        return SequenceMatcher(None, typed, other).ratio() + prefix

    best = max(sorted(known), key=likeness, default=None)
    return best if best is not None and likeness(best) >= 0.68 else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line for a misspelt name, or None."""
    guess = closest(name, known)
    return f"did you mean `{guess}`?" if guess else None
