"""Lexical cohesion across each gap at several scales (Hearst, 1997).

A gap is the place between an element (sentence or line) and the one before it; its two sides are
the `scale` elements before it and after it. Cohesion is the similarity of the words on both sides.
A stem is a word without its suffix.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature, windowed_mean
from neural.tasks.segmentation.kernels import compute_depths, compute_sliding_cosine
from neural.tasks.segmentation.tokenization import ElementTokens

SCALES = (1, 2, 4, 8, 16)
"""Numbers of elements on either side of a gap that are compared."""
NEIGHBOURHOOD_GAPS = 32
"""Number of gaps on either side over which the local mean and deviation are taken."""


class Cohesion(Feature):
    """Cohesion of the gap before an element: cosine, depth and local z-score, per scale.

    `cosine` is that of the stem counts of both sides, weighted by inverse element frequency.
    `depth` is how far the cosine is below the nearest peaks on the left and on the right, added.
    `unusual` is the z-score of the cosine among the neighbouring gaps, clipped to ± 4. The first
    element has no gap before it: its cosine is 1, its depth and z-score are 0.
    """

    columns: ClassVar[tuple[str, ...]] = tuple(
        f"{kind}_{scale}" for kind in ("cosine", "depth", "unusual") for scale in SCALES
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns of all scales, in one pass over the words per scale."""
        # stems.ids: a number per stem in reading order; element i begins at index stems.starts[i]
        stems = tokens.stems
        weights = stems.idf**2  # squared, because both sides are weighted
        cosines = np.ones((len(tokens), len(SCALES)))
        depths = np.zeros_like(cosines)
        for column, scale in enumerate(SCALES):
            compute_sliding_cosine(stems.ids, stems.starts, weights, scale, cosines[:, column])
            compute_depths(cosines[:, column], depths[:, column])
        mean = windowed_mean(cosines, NEIGHBOURHOOD_GAPS)
        std = np.sqrt(np.maximum(windowed_mean(cosines**2, NEIGHBOURHOOD_GAPS) - mean**2, 0))
        # Local z-score; 0.05 avoids large values where the cosine hardly varies.
        unusual = np.clip((cosines - mean) / (std + 0.05), -4, 4)
        unusual[0] = 0
        return np.concatenate([cosines, depths, unusual], axis=1)
