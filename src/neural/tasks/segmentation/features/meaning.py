"""Change of meaning across each gap, by word vectors at several scales.

A gap is the place between an element (sentence or line) and the one before it. The vector of an
element is the sum of the vectors of its words (word_vectors.py).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature, windowed_mean
from neural.tasks.segmentation.tokenization import ElementTokens
from neural.tasks.segmentation.vector_kernels import (
    compare_sides,
    compare_with_context,
    square_run_sums,
    sum_change_points,
)
from neural.tasks.segmentation.word_vectors import load_word_vectors

SCALES = (1, 2, 3, 5, 8, 13, 21)
"""Numbers of elements on either side of a gap that are compared."""
CONTEXT_SCALES = (2, 5, 12)
"""Numbers of elements before and after an element that it is compared with."""
NEIGHBOURHOOD_GAPS = 32
"""Number of gaps on either side over which the local mean and deviation are taken."""
CHANGE_POINT_MODELS = {
    "easily": {"penalty": 0.8, "sharpness": 4.0},
    "softly": {"penalty": 1.4, "sharpness": 4.0},
    "short": {"penalty": 1.2, "sharpness": 8.0},
    "medium": {"penalty": 1.7, "sharpness": 8.0},
    "long": {"penalty": 2.4, "sharpness": 8.0},
}
"""Models of change points: arguments of `compute_change_point_odds` by column suffix."""
MAX_SEGMENT_ELEMENTS = 64
"""Longest segment of the models, in elements."""
MAX_LOG_ODDS = 12.0
"""Log-odds are clipped to ± this value."""


class Meaning(Feature):
    """Similarity of the two sides of the gap before an element, and change points of the vectors.

    Per scale: `cosine` compares the sums of the vectors on both sides; `own` does so after the mean
    of the document was subtracted, which removes its general subject; `unusual` is the z-score of
    `own` among the neighbouring gaps, clipped to ± 4; `parted` is the gain of describing both sides
    by their own means. `before` and `after` compare the element with the elements around it,
    `document` with the whole document; `length` is log(1 + norm). `odds` and `begins` are the
    posterior of a boundary, in log-odds and as a probability, in models of change points.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *(f"{kind}_{scale}" for kind in ("cosine", "own", "unusual", "parted") for scale in SCALES),
        *(f"{side}_{scale}" for scale in CONTEXT_SCALES for side in ("before", "after")),
        "document",
        "length",
        *(f"odds_{name}" for name in CHANGE_POINT_MODELS),
        *(f"begins_{name}" for name in CHANGE_POINT_MODELS),
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """All columns, in time linear in the number of elements."""
        vectors = load_word_vectors().embed_elements(tokens)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.where(norms > 1e-6, norms, 1)
        centred = units - units.mean(axis=0)
        cosines, own, parted = np.empty((3, len(vectors), len(SCALES)))
        for column, scale in enumerate(SCALES):
            cosines[:, column], _ = compare_sides(vectors, scale)
            own[:, column], parted[:, column] = compare_sides(centred, scale)
        mean = windowed_mean(own, NEIGHBOURHOOD_GAPS)
        std = np.sqrt(np.maximum(windowed_mean(own**2, NEIGHBOURHOOD_GAPS) - mean**2, 0))
        # Local z-score; 0.05 avoids large values where the cosine hardly varies.
        unusual = np.clip((own - mean) / (std + 0.05), -4, 4)
        unusual[0] = 0
        squares = square_run_sums(units, min(MAX_SEGMENT_ELEMENTS, len(units)))
        odds = np.stack(
            [compute_change_point_odds(squares, **model) for model in CHANGE_POINT_MODELS.values()],
            axis=1,
        )
        context = [
            np.stack(compare_with_context(vectors, scale), axis=1) for scale in CONTEXT_SCALES
        ]
        probabilities = 1 / (1 + np.exp(-odds))
        probabilities[0] = 0
        return np.concatenate(
            [
                cosines,
                own,
                unusual,
                parted,
                *context,
                (units @ _scale_to_unit(vectors.sum(axis=0, dtype=np.float64)))[:, None],
                np.log1p(norms),
                odds,
                probabilities,
            ],
            axis=1,
        )

    @classmethod
    def dependency_version(cls) -> str:
        """Checksum of the word vectors."""
        return f"word vectors {load_word_vectors().version}"


def _scale_to_unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-6)


def compute_change_point_odds(
    squares: np.ndarray, *, penalty: float, sharpness: float
) -> np.ndarray:
    """Posterior log-odds of a boundary at each element, (n,); 0 at the first.

    The score of a segmentation is the sum over its segments of |S|² / L − `penalty`, where S is the
    sum of the L unit vectors of a segment: the larger, the more alike its vectors are. This is
    kernel change-point detection with the cosine as kernel. The probability of a segmentation is
    proportional to exp(`sharpness` · score); all segmentations are summed up by the
    forward–backward algorithm. `squares` are the |S|² of all runs of vectors.
    """
    lengths = np.arange(1, squares.shape[1] + 1)
    constants = np.full(len(lengths), -sharpness * penalty)
    forward, backward = sum_change_points(squares, constants, sharpness / lengths)
    log_probability = np.minimum(forward[1:-1] + backward[1:-1] - forward[-1], -1e-9)
    odds = log_probability - np.log(-np.expm1(log_probability))
    return np.concatenate([[0.0], odds.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS)])
