"""Quality in one number: how far generated text is from real text, in bits and in repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.views.quality_measure import QualityMeasure, References, average, repeated_share


class DistanceFromReal(QualityMeasure):
    """Distance of bits per character and of repetition from real text: 0 is like real text, several bits is not.

    The sum of two distances between samples and pieces of real text: of `bits`, and of `repeated_8`
    times the bits of real text. Each is Wasserstein's, between the values of all samples and of all
    pieces, so samples that are too simple do not make up for others that are noise. Few bits alone
    are no quality: a loop of common words has fewer than real text. Nor are the bits of real text:
    a loop of rare words may have them, so repetition counts by itself. Real text has what chance
    leaves (`judge.real_text` says it): 0.3 to 0.7 for ten samples of 500 characters of Python's
    documentation, where shuffled words have 0.8 and loops 3 to 5. A copy of the training text is
    like real text: read it beside `novelty`.
    """

    unit: ClassVar[str] = "bits per character"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`distance_from_real`."""
        real = references.real_text(len(samples[0]))
        if real is None:
            return {"distance_from_real": math.nan}
        bits = wasserstein([references.ngrams.bits(sample) for sample in samples], real.bits)
        repeated = wasserstein([repeated_share(sample) for sample in samples], real.repeated)
        return {"distance_from_real": bits + average(real.bits) * repeated}


def wasserstein(first: Sequence[float], second: Sequence[float]) -> float:
    """The area between two empirical distribution functions; NaN where a value is."""
    one, other = np.sort(first), np.sort(second)
    both = np.sort(np.concatenate([one, other]))
    if np.isnan(both).any():
        return math.nan
    shares = [np.searchsorted(values, both[:-1], side="right") / len(values) for values in (one, other)]
    return float((np.abs(shares[0] - shares[1]) * np.diff(both)).sum())
