"""Normalize names and find the known name that is closest to a misspelt one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

MAX_NAME_LENGTH = 60
"""Longer names get no suggestion: they are hardly misspellings, and comparing is quadratic."""
MIN_SIMILARITY = 0.68
"""Names with a smaller `SequenceMatcher.ratio` (0 to 1) are not suggested."""
PREFIX_BONUS = 0.2
"""Added to the ratio if one name begins with the other: an abbreviation or a plural."""


def normalize_name(name: str) -> str:
    """Lower case without underscores: `TransformerEncoder` and `transformer_encoder` are equal."""
    return name.replace("_", "").lower()


def to_snake_case(name: str) -> str:
    """Class name → file name: `TransformerEncoder` → `transformer_encoder`, `Conv2D` → `conv2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().rstrip("_")


def find_closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`, or None where nothing is close."""
    typed = normalize_name(name)
    if not typed or len(typed) > MAX_NAME_LENGTH:
        return None

    def similarity(candidate: str) -> float:
        other = normalize_name(candidate)
        if other == typed:
            return 2.0  # above the largest other value, 1 + PREFIX_BONUS
        # One or two letters are the beginning of too many names.
        is_prefix = min(len(typed), len(other)) >= 3 and (
            other.startswith(typed) or typed.startswith(other)
        )
        return SequenceMatcher(None, typed, other).ratio() + (PREFIX_BONUS if is_prefix else 0)

    best = max(sorted(known), key=similarity, default=None)
    return best if best is not None and similarity(best) >= MIN_SIMILARITY else None


def suggest_name(name: str, known: Iterable[str]) -> str | None:
    """A "did you mean" line for a misspelt name, or None."""
    guess = find_closest(name, known)
    return f"did you mean `{guess}`?" if guess else None
