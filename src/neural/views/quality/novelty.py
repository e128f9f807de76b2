"""Novelty: how much of a sample is not copied from the training text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.views.quality_measure import QualityMeasure, References, average, grams

LENGTH = 8


class Novelty(QualityMeasure):
    """Share of 8-grams of characters that the training text does not have: 0 all copied, 1 none.

    Noise is novel too, and short common words are not: read it beside `bits`.
    """

    unit: ClassVar[str] = "share"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`novelty`."""
        all_grams = [grams(one, LENGTH) for one in samples]
        wanted, text = {gram for one in all_grams for gram in one}, references.training
        # the other way round, a set of all grams of the training text, would not fit into memory for long ones
        known = wanted.intersection(text[at : at + LENGTH] for at in range(len(text) - LENGTH + 1))
        return {"novelty": average([sum(gram not in known for gram in one) / len(one) for one in all_grams if one])}
