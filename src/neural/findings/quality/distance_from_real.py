"""Quality as one number: distance of generated from real text, in bits and in repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.findings.quality_measure import (
    QualityMeasure,
    ReferenceTexts,
    compute_repeated_share,
    mean_or_nan,
)


class DistanceFromReal(QualityMeasure):
    """Distance from real text in bits and in repetition: 0 like real text, several bits unlike it.

    It is the sum of two Wasserstein distances between the samples and chunks of real text: that of
    bits per character under an n-gram model (`bits`), and that of the share of repeated 8-grams
    (`repeated_8`) times the mean bits of real text, so that both have the same unit. Distances of
    distributions are used because with means, too simple samples would compensate for noisy ones.

    Few bits alone are not quality: a loop of common words has fewer than real text. Nor is the same
    number of bits as in real text: a loop of rare words may have it. So repetition is added. Other
    chunks of real text are not at 0 because of sampling noise (`measure_real_text`): with ten
    samples of 500 characters of Python's documentation they have 0.3 to 0.7, shuffled words 0.8 and
    loops 3 to 5. A copy of the training text counts as real text; the measure `novelty` detects it.
    """

    unit: ClassVar[str] = "bits per character"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metric `distance_from_real`; NaN if the training text is shorter than a sample."""
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
    """1-Wasserstein distance of two samples: the area between their distribution functions.

    NaN if a value is NaN.
    """
    first_sorted, second_sorted = np.sort(first), np.sort(second)
    merged = np.sort(np.concatenate([first_sorted, second_sorted]))
    if np.isnan(merged).any():
        return math.nan
    first_cdf, second_cdf = (
        np.searchsorted(values, merged[:-1], side="right") / len(values)
        for values in (first_sorted, second_sorted)
    )
    return float((np.abs(first_cdf - second_cdf) * np.diff(merged)).sum())
