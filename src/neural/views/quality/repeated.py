"""Repetition: how much of a sample it says more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from neural.views.quality_measure import QualityMeasure, References, average, grams

LENGTH = 8
"""Characters: longer than most words, so that language alone repeats little."""


class Repeated(QualityMeasure):
    """Share of a sample's 8-grams of characters that occur in it more than once: 0 nothing twice, 1 a loop."""

    unit: ClassVar[str] = "share"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`repeated_8`."""
        shares = []
        for sample in samples:
            counts = Counter(grams(sample, LENGTH))
            if counts:
                shares.append(sum(count for count in counts.values() if count > 1) / counts.total())
        return {f"repeated_{LENGTH}": average(shares)}
