"""C99: clusters of elements along the diagonal of a matrix of ranks (Choi, 2000)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neural.language.declaration import count, number
from neural.tasks.cutting.baseline import Baseline
from neural.tasks.cutting.baselines._terms import term_counts
from neural.tasks.cutting.masses import Boundaries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix = npt.NDArray[np.float64]
SMOOTHING = np.array([1.0, 2, 4, 8, 4, 2, 1])
"""Choi's weights over neighbouring gains, before the threshold is applied to them."""


class C99(Baseline):
    """Splits the document where its parts become densest, as long as a split gains unusually much.

    Similarities of all pairs of elements become ranks among their neighbours: only contrast counts, not how much a
    topic repeats its words. Splitting goes on while the gain in density is above the mean gain plus `stop` deviations.
    Documents of more than `longest` elements are taken in equal pieces, as the matrix grows with the square.
    """

    mask: int = count("Neighbours on a side of the square in which a similarity is ranked.", default=11)
    stop: float = number("Deviations above the mean gain that a split must gain.", default=1.2)
    longest: int = count("Elements in one matrix.", default=2000)

    def find(self, elements: Sequence[str]) -> Boundaries:
        """The splits that gained most; where one piece ends and the next begins there is none."""
        from scipy.sparse import csr_array

        counts = term_counts(elements)
        made = np.zeros(len(elements), bool)
        edges = np.linspace(0, len(elements), -(-len(elements) // self.longest) + 1).astype(int)
        for first, last in pairwise(edges):
            piece = csr_array(counts[first:last])
            splits, density = division(ranks(similarities(piece), self.mask))
            made[first + splits[: worthwhile(density, self.stop)]] = True
        return made


def similarities(counts: csr_array) -> Matrix:
    """Cosine of every pair of elements; 0 for an element without terms, also with itself."""
    length = np.sqrt(counts.multiply(counts).sum(axis=1))
    upright = counts.multiply(1 / np.where(length > 0, length, 1)[:, None]).tocsr()
    return (upright @ upright.T).toarray()


def ranks(similarity: Matrix, mask: int) -> Matrix:
    """Share of the neighbours in a square of `mask` on each side that are less similar; the pair itself is none."""
    n, reach = len(similarity), min(mask // 2, len(similarity) - 1)
    if reach == 0:
        return np.zeros((n, n))
    # equal ones must compare as equal, however their sums were rounded; the rim is never less
    whole = np.pad((similarity * 1e9).round().astype(np.int32), reach, constant_values=np.iinfo(np.int32).max)
    lower = np.zeros((n, n), np.uint16)
    rows = max(1, 65_536 // n)   # at a time: what fits into the cache is compared 120 times
    for top in range(0, n, rows):
        part = lower[top : top + rows]
        own = whole[top + reach : top + reach + len(part), reach : reach + n]
        for down in range(2 * reach + 1):
            for right in range(2 * reach + 1):
                part += whole[top + down : top + down + len(part), right : right + n] < own
    at = np.arange(n)
    beside = np.minimum(at + reach, n - 1) - np.maximum(at - reach, 0) + 1
    return lower / (np.outer(beside, beside) - 1)


def division(rank: Matrix) -> tuple[npt.NDArray[np.int64], Matrix]:
    """Every split, in the order in which splitting makes the parts densest; the density at first and after each.

    Density is the sum of the ranks inside the parts over the number of pairs inside them. What a split takes away from
    both is kept for every gap, and changes only inside the part that is split.
    """
    n = len(rank)
    sums = np.zeros((n + 1, n + 1))   # [i, j]: of all ranks above and to the left
    np.cumsum(np.cumsum(rank, axis=0), axis=1, out=sums[1:, 1:])
    corner = sums.diagonal().copy()
    less, fewer = np.full(n, np.inf), np.zeros(n)
    starts, ends = np.zeros(n, np.int64), np.full(n, n)   # of the part that an element is in

    def weigh(first: int, last: int) -> None:
        """Between a gap's two sides lie two blocks, mirror images of each other."""
        gap = slice(first + 1, last)
        across = sums[gap, last] - sums[first, last] - corner[gap] + sums[first, gap]
        less[gap] = 2 * across
        place = np.arange(first + 1, last)
        fewer[gap] = 2.0 * (place - first) * (last - place)

    weigh(0, n)
    inside, pairs = sums[n, n], float(n * n)
    splits, density = np.zeros(n - 1, np.int64), np.full(n, inside / pairs)
    for step in range(n - 1):
        at = int(((inside - less) / (pairs - fewer)).argmax())
        inside, pairs = inside - less[at], pairs - fewer[at]
        splits[step], density[step + 1] = at, inside / pairs
        less[at], fewer[at] = np.inf, 0.0   # never again
        first, last = int(starts[at]), int(ends[at])
        starts[at:last], ends[first:at] = at, at
        weigh(first, at)
        weigh(at, last)
    return splits, density


def worthwhile(density: Matrix, stop: float) -> int:
    """How many splits come before the smoothed gain in density falls to the mean plus `stop` deviations."""
    gains = np.diff(density)
    if len(gains) == 0:
        return 0
    kept = slice(len(SMOOTHING) // 2, len(SMOOTHING) // 2 + len(gains))
    gains = np.convolve(gains, SMOOTHING)[kept] / np.convolve(np.ones(len(gains)), SMOOTHING)[kept]
    small = gains <= gains.mean() + stop * gains.std()
    return int(small.argmax())   # there is one: not all are above their mean
