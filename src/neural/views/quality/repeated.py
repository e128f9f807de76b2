"""Repetition: how much of a sample it says more than once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.views.quality_measure import REPEATED_LENGTH, QualityMeasure, References, average, repeated_share


class Repeated(QualityMeasure):
    """Share of a sample's 8-grams of characters that occur in it more than once: 0 nothing twice, 1 a loop."""

    unit: ClassVar[str] = "share"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`repeated_8`."""
        return {f"repeated_{REPEATED_LENGTH}": average([repeated_share(sample) for sample in samples])}
