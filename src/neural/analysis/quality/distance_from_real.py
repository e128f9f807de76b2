"""Quality as one number: distance of generated from real text, in bits and in repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.analysis.quality_measure import (
    QualityMeasure,
    ReferenceTexts,
    compute_repeated_share,
    mean_or_nan,
)


class DistanceFromReal(QualityMeasure):
    """Distance from real text in bits and in repetition: 0 like real text, several bits unlike it.

    The sum of two distances between samples and chunks of real text: of `bits` (per character, by
    an n-gram model), and of `repeated_8` (share of repeated 8-grams) times the bits of real text.
    Each is the Wasserstein distance between the values of all samples and of all chunks, so that
    samples that are too simple do not compensate for noisy ones. Few bits alone are not quality: a
    loop of common words has fewer than real text. Nor are the bits of real text: a loop of rare
    words may have them, so repetition counts separately. Real text itself is not at 0 because of
    sampling noise (`measure_real_text`): 0.3 to 0.7 for ten samples of 500 characters of Python's
    documentation, where shuffled words have 0.8 and loops 3 to 5. A copy of the training text is
    like real text: read it beside `novelty`.
    """

    unit: ClassVar[str] = "bits per character"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """`distance_from_real`."""
        real = references.compute_real_text_statistics(len(samples[0]))
        if real is None:
            return {"distance_from_real": math.nan}
        bits = wasserstein_distance(
            [references.ngrams.bits_per_character(sample) for sample in samples], real.bits
        )
        repeated = wasserstein_distance(
            [compute_repeated_share(sample) for sample in samples], real.repeated
        )
        return {"distance_from_real": bits + mean_or_nan(real.bits) * repeated}


def wasserstein_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """The area between two empirical distribution functions; NaN if a value is NaN."""
    first_sorted, second_sorted = np.sort(first), np.sort(second)
    merged = np.sort(np.concatenate([first_sorted, second_sorted]))
    if np.isnan(merged).any():
        return math.nan
    first_cdf, second_cdf = (
        np.searchsorted(values, merged[:-1], side="right") / len(values)
        for values in (first_sorted, second_sorted)
    )
    return float((np.abs(first_cdf - second_cdf) * np.diff(merged)).sum())
