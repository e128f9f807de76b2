"""Diversity: how many different n-grams there are (Li et al., 2016, "distinct-n")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.views.quality_measure import QualityMeasure, References, average, grams

LENGTHS = (1, 2, 3, 4)


class Distinct(QualityMeasure):
    """Share of a sample's n-grams of characters that are different: near 0 the same again and again, 1 no two alike.

    It falls with the length of a sample by itself: only samples of one length can be compared.
    """

    unit: ClassVar[str] = "share"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`distinct_1` … `distinct_4`."""
        found = {}
        for length in LENGTHS:
            all_grams = [grams(one, length) for one in samples]
            found[f"distinct_{length}"] = average([len(set(one)) / len(one) for one in all_grams if one])
        return found
