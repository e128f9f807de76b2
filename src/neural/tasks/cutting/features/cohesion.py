"""Do the words before a gap go on after it? At several scales, and compared with the gaps around (Hearst, 1997)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.modules.late import late
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature, windowed_mean
from neural.tasks.cutting.words import Words

kernels = late("neural.tasks.cutting.kernels")
SCALES = (1, 2, 4, 8, 16)
"""Elements on either side of a gap."""
AROUND = 32
"""Gaps on either side that a gap is compared with."""


class Cohesion(Feature):
    """For every scale: the cosine of both sides, its depth below the peaks beside it, and how far it is from usual.

    Words count by their stems, weighed by how few elements of the document have them. The gap of the first element is
    no gap: its cosine is 1, its depth 0.
    """

    columns: ClassVar[tuple[str, ...]] = tuple(
        f"{kind}_{scale}" for kind in ("cosine", "depth", "unusual") for scale in SCALES
    )

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """One pass over the words per scale."""
        stems = words.stems
        weights = stems.rarity**2
        cosines = np.ones((len(words), len(SCALES)))
        depths = np.zeros_like(cosines)
        for column, scale in enumerate(SCALES):
            kernels.slide(stems.ids, stems.starts, weights, scale, cosines[:, column])
            kernels.deepen(cosines[:, column], depths[:, column])
        usual = windowed_mean(cosines, AROUND)
        spread = np.sqrt(np.maximum(windowed_mean(cosines**2, AROUND) - usual**2, 0))
        unusual = np.clip((cosines - usual) / (spread + 0.05), -4, 4)
        unusual[0] = 0
        return np.concatenate([cosines, depths, unusual], axis=1)
