"""What every measure of generated text promises: numbers from samples of one length, nothing drawn at random."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from neural.language.declaration import Named
from neural.views.inverse_frequency import InverseFrequency
from neural.views.ngrams import NGrams

PIECES = 100
"""Of real text that samples are compared with."""
REPEATED_LENGTH = 8
"""Characters: longer than most words, so that language alone repeats little."""


@dataclass(frozen=True)
class References:
    """The text that generated text is compared with."""

    training: str
    """What the model has learned from."""
    held_out: str
    """What it has not seen."""
    _real: dict[int, RealText] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def ngrams(self) -> NGrams:
        """A model of the held-out text, made once."""
        return NGrams(self.held_out)

    @cached_property
    def inverse_frequency(self) -> InverseFrequency:
        """How rare words are in the held-out text, counted once."""
        return InverseFrequency(self.held_out)

    def real_text(self, length: int) -> RealText | None:
        """Values of real text of so many characters, computed once; None where the training text is shorter."""
        if length not in self._real:
            last = len(self.training) - length
            if last < 0:
                return None
            starts = sorted({round((number + 0.5) * last / PIECES) for number in range(PIECES)})
            pieces = [self.training[start : start + length] for start in starts]
            self._real[length] = RealText(
                bits=tuple(map(self.ngrams.bits, pieces)), repeated=tuple(map(repeated_share, pieces))
            )
        return self._real[length]


@dataclass(frozen=True)
class RealText:
    """Evenly spaced pieces of the training text, each as long as a sample. The n-gram model has not seen them."""

    bits: tuple[float, ...]
    """Bits per character of each piece."""
    repeated: tuple[float, ...]
    """Share of the 8-grams of each piece that it has more than once."""


class QualityMeasure(Named):
    """One thing about generated text that a number says."""

    unit: ClassVar[str]
    """Of the values; the docstring says it too, with the two ends of the scale."""

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """The average over the samples, by name; NaN where the samples are too short for the question."""
        raise NotImplementedError


def grams(text: str, length: int) -> list[str]:
    """Every run of so many characters, at every place where one begins."""
    return [text[at : at + length] for at in range(len(text) - length + 1)]


def repeated_share(text: str) -> float:
    """Share of the 8-grams that the text has more than once; NaN where it is shorter than one."""
    counts = Counter(grams(text, REPEATED_LENGTH))
    return sum(count for count in counts.values() if count > 1) / counts.total() if counts else math.nan


def average(values: Sequence[float]) -> float:
    """Their mean; NaN of none."""
    return sum(values) / len(values) if values else float("nan")
