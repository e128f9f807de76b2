"""P(boundary) at each element under a Bayesian model in which every segment has its own vocabulary.

Elements are sentences or lines; a boundary is an element where a segment begins. The words of a
segment are drawn from a distribution with a Dirichlet prior (a Pólya urn); words are compared by
their stems (without suffixes). The forward–backward algorithm sums over all segmentations, which
gives the posterior probability of a boundary at every element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.kernels import sum_segmentations
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
MAX_SEGMENT_ELEMENTS = 48
"""Longest segment of the models, in elements."""
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
        """One forward and one backward pass over the document for all models together."""
        log_odds = compute_log_odds_of_models(tokens.stems, tuple(MODEL_SETTINGS.values())).clip(
            -MAX_LOG_ODDS, MAX_LOG_ODDS
        )
        columns = np.concatenate([log_odds, 1 / (1 + np.exp(-log_odds))], axis=1)
        columns[0] = 0
        return columns


def compute_boundary_log_odds(
    stems: ElementTokens,
    *,
    expected_length: float,
    word_weight: float,
    prior: float = 0.2,
    max_elements: int = MAX_SEGMENT_ELEMENTS,
) -> np.ndarray:
    """Log-odds of a boundary at each element, (n,); the value at the first element is meaningless.

    `expected_length` is the prior mean of the segment length, `max_elements` its maximum, both in
    elements. `prior` is the pseudo-count of every stem in the Dirichlet prior. Repetitions of a
    word are not independent, so the log-likelihood of each word is multiplied by `word_weight`.
    """
    model = {"expected_length": expected_length, "word_weight": word_weight, "prior": prior}
    return compute_log_odds_of_models(stems, (model,), max_elements)[:, 0]


def compute_log_odds_of_models(
    stems: ElementTokens,
    models: Sequence[Mapping[str, float]],
    max_elements: int = MAX_SEGMENT_ELEMENTS,
) -> np.ndarray:
    """`compute_boundary_log_odds` for several models, (n, models)."""
    expected_lengths, word_weights, priors = (
        np.array([model[name] for model in models])
        for name in ("expected_length", "word_weight", "prior")
    )
    # The tables reach up to the number of words of the longest possible segment.
    ends = np.minimum(np.arange(len(stems)) + max_elements, len(stems))
    words = np.arange((stems.starts[ends] - stems.starts[:-1]).max(initial=0) + 1)[:, None]
    vocabulary_size = max(1, len(stems.vocabulary))
    settings = {
        "vocabulary_size": vocabulary_size,
        "log_counts": np.log(words + priors) * word_weights,
        "log_totals": np.log(words + priors * vocabulary_size) * word_weights,
        # Geometric prior: after each element, a segment ends with probability 1 / expected_length.
        "log_continue": np.log1p(-1 / expected_lengths),
        "log_end": -np.log(expected_lengths),
        "max_elements": max_elements,
    }
    forward, backward = (
        sum_segmentations(distinct.ids, distinct.counts, distinct.starts, **settings)
        for distinct in (stems.distinct, stems.distinct.reverse())
    )
    # P(boundary) is the sum over the segmentations with a boundary at this element (of the text
    # before it times the text after it), divided by the sum over all segmentations.
    log_p = np.minimum(forward + backward[::-1] - forward[-1], -1e-9)[:-1]
    return log_p - np.log(-np.expm1(log_p))
