"""TextTiling: parts end where the words before and after have least in common (Hearst, 1997)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neural.language.declaration import count
from neural.tasks.cutting.baseline import Baseline
from neural.tasks.cutting.baselines._terms import term_counts
from neural.tasks.cutting.masses import Boundaries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Scores = npt.NDArray[np.float64]


class TextTiling(Baseline):
    """Boundaries at the bottoms of valleys of cohesion that are deeper than the mean depth minus half a deviation.

    The gaps between elements take the place of Hearst's gaps between every twenty words. As there, cohesion is smoothed
    before valleys are looked for, and the boundary then moves to the real break: the lowest of the gaps averaged.
    """

    block: int = count("Elements on either side of a gap that are compared.", default=10)

    def find(self, elements: Sequence[str]) -> Boundaries:
        """Of a flat bottom, the first gap."""
        made = np.zeros(len(elements), bool)
        if len(elements) > 2:   # one gap alone has nothing to be lower than
            plain = cohesion(term_counts(elements), self.block)
            scores = smoothed(plain)
            depth = depths(scores)
            deep = bottoms(scores) & (depth > max(0.0, depth.mean() - depth.std() / 2))
            made[1 + lowest_near(plain, np.flatnonzero(deep))] = True
        return made


def cohesion(counts: csr_array, block: int) -> Scores:
    """Cosine of the term counts of the `block` elements before and after every inner gap: 0 no term in common."""
    from scipy.sparse import csr_array

    n = len(counts.indptr) - 1
    gap = np.arange(1, n)
    sides = []
    for first, last in ((np.maximum(gap - block, 0), gap), (gap, np.minimum(gap + block, n))):
        ends = np.concatenate([[0], np.cumsum(last - first)])
        inside = np.arange(ends[-1]) - np.repeat(ends[:-1] - first, last - first)
        sides.append(csr_array((np.ones(len(inside)), inside, ends), shape=(n - 1, n)) @ counts)
    left, right = sides
    length = np.sqrt(left.multiply(left).sum(axis=1) * right.multiply(right).sum(axis=1))
    return left.multiply(right).sum(axis=1) / np.where(length > 0, length, 1)


def smoothed(scores: Scores) -> Scores:
    """Each with its two neighbours, averaged; at the ends, with one."""
    edges = np.pad(scores, 1)
    return (edges[:-2] + edges[1:-1] + edges[2:]) / np.convolve(np.ones(len(scores)), np.ones(3))[1:-1]


def depths(scores: Scores) -> Scores:
    """How far each lies below the peak that is reached by climbing to the left, and to the right, added up."""
    return _climbs(scores) + _climbs(scores[::-1])[::-1]


def _climbs(scores: Scores) -> Scores:
    """How far up it goes to the left until it goes down."""
    peak = np.concatenate([[True], scores[1:] > scores[:-1]])   # further left it is lower
    at = np.maximum.accumulate(np.where(peak, np.arange(len(scores)), 0))
    return scores[at] - scores


def bottoms(scores: Scores) -> Boundaries:
    """Where it goes down to, and not further down after: of a flat bottom, the first."""
    step = np.sign(np.diff(scores, prepend=np.inf, append=np.inf))
    after = np.flip(np.maximum.accumulate(np.flip(np.where(step != 0, -np.arange(len(step)), -len(step)))))
    return (step[:-1] < 0) & (step[-after[1:]] > 0)


def lowest_near(scores: Scores, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The lowest of each place and its two neighbours; the place itself if none is lower."""
    edges = np.pad(scores, 1, constant_values=np.inf)
    three = np.stack([edges[places + 1], edges[places], edges[places + 2]])
    return places + np.array([0, -1, 1])[three.argmin(axis=0)]
