"""Base class of quality measures of generated text, and the reference texts they compare with.

A sample is a generated text. Measures are deterministic and take samples of one length, in
characters, because most of them depend on the length. An n-gram is a run of n characters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from neural.findings.text_statistics import InverseDocumentFrequency, NGramModel
from neural.language.declaration import RegistryEntry

REAL_TEXT_CHUNKS = 100
"""Chunks of real text that samples are compared with."""
REPEATED_NGRAM_LENGTH = 8
"""Characters; longer than most words, so that ordinary language repeats few of them."""


@dataclass(frozen=True)
class ReferenceTexts:
    """The text that generated text is compared with."""

    training: str
    """The text that the model was trained on."""
    held_out: str
    """Text that was held out of training."""
    # by sample length; a cache
    _real_text_statistics: dict[int, RealTextStatistics] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def ngrams(self) -> NGramModel:
        """n-gram model of the held-out text."""
        return NGramModel(self.held_out)

    @cached_property
    def inverse_frequency(self) -> InverseDocumentFrequency:
        """Inverse document frequency of words; a "document" is 20 successive held-out words."""
        return InverseDocumentFrequency(self.held_out)

    def compute_real_text_statistics(self, length: int) -> RealTextStatistics | None:
        """Statistics of real text of this length, cached; None if the training text is shorter."""
        if length not in self._real_text_statistics:
            last_start = len(self.training) - length
            if last_start < 0:
                return None
            # the middles of equal intervals; a set, because starts in a short text coincide
            starts = sorted(
                {
                    round((index + 0.5) * last_start / REAL_TEXT_CHUNKS)
                    for index in range(REAL_TEXT_CHUNKS)
                }
            )
            chunks = [self.training[start : start + length] for start in starts]
            self._real_text_statistics[length] = RealTextStatistics(
                bits=tuple(map(self.ngrams.bits_per_character, chunks)),
                repeated=tuple(map(compute_repeated_share, chunks)),
            )
        return self._real_text_statistics[length]


@dataclass(frozen=True)
class RealTextStatistics:
    """Statistics of evenly spaced chunks of the training text, each as long as a sample.

    The n-gram model is fitted to held-out text, so these chunks are new to it.
    """

    bits: tuple[float, ...]
    """Bits per character of each chunk."""
    repeated: tuple[float, ...]
    """Share of the 8-grams of each chunk that occur in it more than once."""


class QualityMeasure(RegistryEntry):
    """Base class of quality measures. An entry of the registry is a file in findings/quality/."""

    unit: ClassVar[str]
    """Unit of the values. The first line of the class docstring names both ends of the scale."""

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """Averages over the samples by metric name; NaN where the samples are too short."""
        raise NotImplementedError


def extract_ngrams(text: str, length: int) -> list[str]:
    """All overlapping n-grams of `length` characters."""
    return [text[start : start + length] for start in range(len(text) - length + 1)]


def compute_repeated_share(text: str) -> float:
    """Share of the 8-grams that occur more than once; NaN where the text is shorter than one."""
    counts = Counter(extract_ngrams(text, REPEATED_NGRAM_LENGTH))
    return (
        sum(count for count in counts.values() if count > 1) / counts.total()
        if counts
        else math.nan
    )


def mean_or_nan(values: Sequence[float]) -> float:
    """The mean; NaN for an empty sequence."""
    return sum(values) / len(values) if values else float("nan")
