"""P(boundary) at each element under a Bayesian model in which every segment has its own vocabulary.

Elements are sentences or lines; a boundary is an element where a segment begins. The words of a
segment are drawn from a distribution with a Dirichlet prior (a Pólya urn); words are compared by
their stems (without suffixes). The forward–backward algorithm sums over all segmentations, which
gives the posterior probability of a boundary at every element.
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
"""Four models: arguments of `compute_boundary_log_odds` by the suffix of the column names.

With a low prior the model finds many boundaries (`easily`). `short` and `long` differ in the
expected segment length. With a word weight of 1 every word counts as independent evidence, so the
probabilities are close to 0 and 1 (`surely`).
"""
MAX_LOG_ODDS = 8.0
"""Log-odds are clipped to ± this value."""


class Vocabularies(Feature):
    """Log-odds (`odds_…`) and probability (`begins_…`) of a boundary at the element, per model.

    All are 0 at the first element.
    """

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

    `expected_length` is the prior mean of the segment length, `max_elements` its maximum, both in
    elements. `prior` is the pseudo-count of every stem in the Dirichlet prior. Repetitions of a
    word are not independent, so the log-likelihood of each word is multiplied by `word_weight`.
    """
    # Imported here, because kernels.py imports numba.
    from neural.tasks.segmentation.kernels import sum_segmentations

    # stems.ids: a number per stem in reading order; element i begins at index stems.starts[i]
    table_size = int(stems.counts.max(initial=0)) * max_elements + 1
    vocabulary_size = max(1, len(stems.vocabulary))
    log_counts = np.log(np.arange(table_size) + prior) * word_weight
    log_totals = np.log(np.arange(table_size) + prior * vocabulary_size) * word_weight
    # Geometric prior: after each element, a segment ends with probability 1 / expected_length.
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
    # P(boundary) is the sum over the segmentations with a boundary at this element (of the text
    # before it times the text after it), divided by the sum over all segmentations.
    log_p = np.minimum(forward + backward - forward[-1], -1e-9)[:-1]
    return log_p - np.log(-np.expm1(log_p))
