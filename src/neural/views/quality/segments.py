"""Coherence from passage to passage: whether neighbouring segments share words that strangers do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

from neural.views.inverse_frequency import InverseFrequency, split_words
from neural.views.quality_measure import QualityMeasure, References, average


class Segments(QualityMeasure):
    """Cosine of the words of neighbouring segments beyond that of strangers: 0 no more alike than those, 1 the same.

    Words are weighed by how rare they are in the held-out text (tf·idf), not in the samples: a loop in all samples
    would make its own words common and weigh them 0. Neighbours follow each other in a sample; strangers are any two
    of different samples (of one sample alone, any two that are no neighbours). A sample that repeats itself is high:
    read it beside `repeated_8`.
    """

    unit: ClassVar[str] = "cosine"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`segment_similarity` of neighbours, `segment_strangers`, and `segment_coherence`: the one minus the other."""
        segments = [
            (number, at, part) for number, sample in enumerate(samples) for at, part in enumerate(split_words(sample))
        ]
        vectors = weighed([part for _, _, part in segments], references.inverse_frequency)
        neighbours, strangers, elsewhere = [], [], []
        for (one, vector), (other, its) in combinations(zip(segments, vectors, strict=True), 2):
            into = strangers if one[0] != other[0] else neighbours if other[1] - one[1] == 1 else elsewhere
            into.append(cosine(vector, its))
        near, far = average(neighbours), average(strangers if len(samples) > 1 else elsewhere)
        return {"segment_similarity": near, "segment_strangers": far, "segment_coherence": near - far}


def weighed(segments: Sequence[Sequence[str]], rarity: InverseFrequency) -> list[dict[str, float]]:
    """How often a word is there times how rare it is."""
    return [{word: count * rarity[word] for word, count in Counter(segment).items()} for segment in segments]


def cosine(one: dict[str, float], other: dict[str, float]) -> float:
    """0 where they share nothing, also where one is empty."""
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    shared = math.fsum(value * other[word] for word, value in one.items() if word in other)
    return shared / lengths if lengths else 0.0
