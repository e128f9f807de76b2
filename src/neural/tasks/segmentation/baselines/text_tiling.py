"""TextTiling: boundaries at deep minima of lexical cohesion (Hearst, 1997).

Cohesion is the similarity of the words on both sides of a gap, the place between two elements
(sentences or lines). The depth of a gap is how far its cohesion is below the nearest peaks on the
left and on the right, added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neural.language.declaration import int_field
from neural.tasks.segmentation.baseline import SegmentationBaseline
from neural.tasks.segmentation.baselines._term_counts import TermCounts, count_terms
from neural.tasks.segmentation.boundary_encoding import Boundaries

Scores = npt.NDArray[np.float64]
"""Cohesion or depth of every gap, (n − 1,); n is the number of elements."""
Gaps = npt.NDArray[np.int64]
"""Indices of gaps."""


class TextTiling(SegmentationBaseline):
    """Boundaries at cohesion minima deeper than the mean depth minus half a standard deviation.

    Hearst places gaps after every twenty words; here they are between elements. As in her method,
    minima are searched in the smoothed cohesion; each boundary then moves to the lowest unsmoothed
    value among the minimum and its two neighbours.
    """

    block: int = int_field("Elements on either side of a gap that are compared.", default=10)

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """Boundaries at deep minima; for several equal values in a row, at the first of them."""
        boundaries = np.zeros(len(elements), bool)
        if len(elements) > 2:  # a single gap has no neighbours to be lower than
            cohesion = compute_cohesion(count_terms(elements), self.block)
            smoothed = smooth_scores(cohesion)
            depth = compute_depths(smoothed)
            is_deep = find_valleys(smoothed) & (depth > max(0.0, depth.mean() - depth.std() / 2))
            boundaries[1 + refine_to_minimum(cohesion, np.flatnonzero(is_deep))] = True
        return boundaries


def compute_cohesion(counts: TermCounts, block: int) -> Scores:
    """Cosine of the term counts of the `block` elements before and after every gap, (n − 1,).

    The products of the summed counts are sums over pairs of elements that share a term. A pair
    belongs to successive gaps: those that have both elements on the sides in question.
    """
    first, second, products = counts.find_shared_terms(2 * block - 1)
    # Each entry with itself counts once, each pair of different elements in both orders.
    lower = np.concatenate([counts.elements, first])
    upper = np.concatenate([counts.elements, second])
    squares = np.concatenate([counts.counts**2, 2 * products])

    def sum_over_gaps(first_gap: Gaps, last_gap: Gaps, values: Scores) -> Scores:
        """Sum of the values of the pairs at each gap; gap g lies before element g."""
        last_gap = np.minimum(last_gap, counts.element_count - 1)
        first_gap = np.maximum(first_gap, 1)
        used = first_gap <= last_gap
        size = counts.element_count + 1
        starts = np.bincount(first_gap[used], values[used], minlength=size)
        ends = np.bincount(last_gap[used] + 1, values[used], minlength=size)
        return np.cumsum(starts - ends, dtype=np.float64)[1 : counts.element_count]

    dots = sum_over_gaps(
        np.maximum(first + 1, second - block + 1), np.minimum(second, first + block), products
    )
    left_squares = sum_over_gaps(upper + 1, lower + block, squares)
    right_squares = sum_over_gaps(upper - block + 1, lower, squares)
    norms = np.sqrt(left_squares * right_squares)
    return dots / np.where(norms > 0, norms, 1)


def smooth_scores(scores: Scores) -> Scores:
    """Moving average of three values; of two values at the ends."""
    padded = np.pad(scores, 1)
    return (padded[:-2] + padded[1:-1] + padded[2:]) / np.convolve(
        np.ones(len(scores)), np.ones(3)
    )[1:-1]


def compute_depths(scores: Scores) -> Scores:
    """Depth of each score: how far it is below the nearest peaks on both sides, added."""
    return _climb_left(scores) + _climb_left(scores[::-1])[::-1]


def _climb_left(scores: Scores) -> Scores:
    """How far each score is below the nearest peak on its left.

    The peak is where the scores stop rising, going to the left.
    """
    is_peak = np.concatenate([[True], scores[1:] > scores[:-1]])  # the score to the left is lower
    peaks = np.maximum.accumulate(np.where(is_peak, np.arange(len(scores)), 0))
    return scores[peaks] - scores


def find_valleys(scores: Scores) -> Boundaries:
    """True at local minima; for several equal values in a row, at the first of them."""
    step = np.sign(np.diff(scores, prepend=np.inf, append=np.inf))
    # Negated index of the next step that is not 0, so that `maximum.accumulate` finds the nearest.
    negated_next_step = np.flip(
        np.maximum.accumulate(np.flip(np.where(step != 0, -np.arange(len(step)), -len(step))))
    )
    return (step[:-1] < 0) & (step[-negated_next_step[1:]] > 0)


def refine_to_minimum(scores: Scores, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The lowest of each position and its two neighbours; the position itself if none is lower."""
    padded = np.pad(scores, 1, constant_values=np.inf)
    candidates = np.stack([padded[positions + 1], padded[positions], padded[positions + 2]])
    return positions + np.array([0, -1, 1])[candidates.argmin(axis=0)]
