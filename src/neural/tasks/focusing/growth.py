"""Mosaics that grow while the model learns: few segments first, doubled until there are all of them.

From α = 1/m every paradigm needs a time ∝ m to find the segment that matters. A focus scores segments one by one, so
what it learns among few of them holds among many; found early, the segment need not be found again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

UNTIL = 0.5
"""The share of the training after which there are all segments."""


@dataclass(frozen=True)
class Growth:
    """From `first` segments to `last`."""

    first: int
    last: int

    def at(self, share: float) -> int:
        """How many there are, after this share of the training: every doubling lasts alike."""
        doublings = max(1, ceil(log2(self.last / self.first)))
        return min(self.last, self.first * 2 ** int(min(share / UNTIL, 1.0) * doublings))
