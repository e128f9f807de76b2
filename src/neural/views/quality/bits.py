"""Coherence from letter to letter: whether it reads like the language of the held-out text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.views.quality_measure import QualityMeasure, References, average


class Bits(QualityMeasure):
    """Bits per character under a 6-gram model of held-out text: near 0 foreseen entirely, 6 or more noise.

    There is no upper end; letters drawn blindly give more than the log2 of the alphabet. Real text has a value of its
    own (`judge.real_text` says it). Far above is not the language; far below is the same common words again and again.
    So fewer are not better: `distance_from_real` is the distance from that value, with repetition.
    """

    unit: ClassVar[str] = "bits per character"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`bits`."""
        return {"bits": average([references.ngrams.bits(one) for one in samples if one])}
