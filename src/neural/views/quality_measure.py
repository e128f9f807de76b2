"""What every measure of generated text promises: numbers from samples of one length, nothing drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from neural.language.declaration import Named
from neural.views.ngrams import NGrams


@dataclass(frozen=True)
class References:
    """The text that generated text is compared with."""

    training: str
    """What the model has learned from."""
    held_out: str
    """What it has not seen."""

    @cached_property
    def ngrams(self) -> NGrams:
        """A model of the held-out text, made once."""
        return NGrams(self.held_out)


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


def average(values: Sequence[float]) -> float:
    """Their mean; NaN of none."""
    return sum(values) / len(values) if values else float("nan")
