"""Posterior of a vocabulary change: P(boundary) under a Bayesian model of word counts.

Each segment draws its words from a vocabulary of its own (a Pólya urn). Words count by their stems;
elements are sentences or lines. Summing over all segmentations forwards and backwards gives the
probability of a boundary at every element.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.tokenization import ElementTokens

MODEL_SETTINGS = {
    "easily": {"expected_length": 25.0, "word_weight": 0.25, "prior": 0.1},
    "short": {"expected_length": 8.0, "word_weight": 0.5, "prior": 0.5},
    "long": {"expected_length": 25.0, "word_weight": 0.5, "prior": 0.5},
    "surely": {"expected_length": 25.0, "word_weight": 1.0, "prior": 0.5},
}
"""Arguments of `compute_boundary_log_odds` by column name.

A low prior finds segments easily; a word weight of 1 counts every word as independent evidence.
"""
MAX_LOG_ODDS = 8.0
"""Log-odds are clipped to ± this value."""


class Vocabularies(Feature):
    """Log-odds and probability of a boundary before the element, per model; 0 at the first."""

    columns: ClassVar[tuple[str, ...]] = (
        *(f"odds_{name}" for name in MODEL_SETTINGS),
        *(f"begins_{name}" for name in MODEL_SETTINGS),
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """One forward and one backward pass over the document per model."""
        log_odds = np.stack(
            [
                compute_boundary_log_odds(tokens.stems, **settings)
                for settings in MODEL_SETTINGS.values()
            ],
            axis=1,
        ).clip(-MAX_LOG_ODDS, MAX_LOG_ODDS)
        columns = np.concatenate([log_odds, 1 / (1 + np.exp(-log_odds))], axis=1)
        columns[0] = 0
        return columns


def compute_boundary_log_odds(
    stems: ElementTokens,
    *,
    expected_length: float,
    word_weight: float,
    prior: float = 0.2,
    max_elements: int = 48,
) -> np.ndarray:
    """Log-odds of a boundary at each element, (n,); the value at the first element is meaningless.

    `expected_length` is the mean segment length in elements, `max_elements` the longest one.
    `prior` is the pseudo-count of every stem. Words come in bursts, so each counts as `word_weight`
    of an independent one.
    """
    # Imported here, because kernels.py imports numba.
    from neural.tasks.segmentation.kernels import sum_segmentations

    table_size = int(stems.counts.max(initial=0)) * max_elements + 1
    vocabulary_size = max(1, len(stems.vocabulary))
    log_counts = np.log(np.arange(table_size) + prior) * word_weight
    log_totals = np.log(np.arange(table_size) + prior * vocabulary_size) * word_weight
    log_continue, log_end = np.log1p(-1 / expected_length), -np.log(expected_length)
    scratch_counts = np.zeros(vocabulary_size, dtype=np.int64)
    forward = sum_segmentations(
        stems.ids,
        stems.starts,
        log_counts,
        log_totals,
        log_continue,
        log_end,
        max_elements,
        scratch_counts,
    )
    reversed_ids = stems.ids[::-1].copy()
    reversed_starts = (stems.starts[-1] - stems.starts[::-1]).copy()
    backward = sum_segmentations(
        reversed_ids,
        reversed_starts,
        log_counts,
        log_totals,
        log_continue,
        log_end,
        max_elements,
        scratch_counts,
    )[::-1]
    # log P(boundary) = log of the sum over segmentations with a boundary here, over the full sum
    log_p = np.minimum(forward + backward - forward[-1], -1e-9)[:-1]
    return log_p - np.log(-np.expm1(log_p))
