"""Coherence of passages: whether neighbouring segments share more words than unrelated ones.

A segment is a passage of 20 words of a sample (a generated text).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

from neural.findings.quality_measure import QualityMeasure, ReferenceTexts, mean_or_nan
from neural.findings.text_statistics import InverseDocumentFrequency, split_into_segments


class Segments(QualityMeasure):
    """Cosine similarity of neighbouring segments minus that of unrelated ones: 0 none, 1 the same.

    Segments are tf·idf vectors of their words. The idf is that of the held-out text, not of the
    samples: a loop in all samples would make its own words common. Neighbours follow each other in
    a sample. The baseline is the mean similarity of segments of different samples (with a single
    sample, of segments that are not neighbours). Repetitive samples have high values too; the
    metric `repeated_8`, the share of repeated 8-grams, detects them.
    """

    unit: ClassVar[str] = "cosine"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metrics of the class docstring.

        `segment_similarity` is that of neighbours, `segment_baseline` that of unrelated segments,
        and `segment_coherence` the difference.
        """
        positions, segments = [], []
        for sample_index, sample in enumerate(samples):
            for segment_index, segment in enumerate(split_into_segments(sample)):
                positions.append((sample_index, segment_index))
                segments.append(segment)
        vectors = weight_words(segments, references.inverse_frequency)
        neighbours, same_sample, other_samples = [], [], []
        for i, j in combinations(range(len(vectors)), 2):
            similarity = cosine_similarity(vectors[i], vectors[j])
            if positions[i][0] != positions[j][0]:
                other_samples.append(similarity)
            elif positions[j][1] - positions[i][1] == 1:
                neighbours.append(similarity)
            else:
                same_sample.append(similarity)
        similarity = mean_or_nan(neighbours)
        baseline = mean_or_nan(other_samples if len(samples) > 1 else same_sample)
        return {
            "segment_similarity": similarity,
            "segment_baseline": baseline,
            "segment_coherence": similarity - baseline,
        }


def weight_words(
    segments: Sequence[Sequence[str]], inverse_frequency: InverseDocumentFrequency
) -> list[dict[str, float]]:
    """tf·idf vector of each segment: word → count times inverse document frequency."""
    return [
        {word: count * inverse_frequency[word] for word, count in Counter(segment).items()}
        for segment in segments
    ]


def cosine_similarity(first: dict[str, float], second: dict[str, float]) -> float:
    """Cosine of two sparse vectors; 0 if they share no word or one is empty."""
    norms = math.hypot(*first.values()) * math.hypot(*second.values())
    dot_product = math.fsum(value * second[word] for word, value in first.items() if word in second)
    return dot_product / norms if norms else 0.0
