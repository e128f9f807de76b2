"""C99: divisive clustering along the diagonal of a rank matrix (Choi, 2000).

The matrix has a row and a column for each element (sentence or line) of the document. The rank of a
pair of elements is the fraction of neighbouring pairs that are less similar. The density of a
segmentation is the sum of the ranks inside segments, divided by the number of pairs inside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from neural.language.declaration import float_field, int_field
from neural.tasks.segmentation.baseline import SegmentationBaseline
from neural.tasks.segmentation.baselines._term_counts import TermCounts, count_terms
from neural.tasks.segmentation.boundary_encoding import Boundaries

Matrix = npt.NDArray[np.float64]
SMOOTHING_WEIGHTS = np.array([1.0, 2, 4, 8, 4, 2, 1])
"""Choi's weights of the moving average that smooths the gains in density of successive splits."""

FREQUENT_SHARE = 1 / 32
"""A term is frequent if a larger share of the elements uses it."""


class C99(SegmentationBaseline):
    """Splits the document repeatedly where the density grows most.

    Ranks replace similarities, so that a topic that repeats its words often does not dominate.
    Splitting continues while the gain in density is above the mean gain plus `stop` standard
    deviations. The matrix grows with the square of the document length, so documents of more than
    `max_elements` elements are processed in equal chunks.
    """

    mask: int = int_field("Side length of the square in which a similarity is ranked.", default=11)
    stop: float = float_field(
        "Standard deviations above the mean gain that a split must gain.", default=1.2
    )
    max_elements: int = int_field("Elements in one matrix.", default=2000)

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """Boundaries at the splits with the largest gains. Edges of chunks are not boundaries."""
        counts = count_terms(elements)
        boundaries = np.zeros(len(elements), bool)
        chunk_count = -(-len(elements) // self.max_elements)
        edges = np.linspace(0, len(elements), chunk_count + 1).astype(int)
        for start, end in pairwise(edges):
            similarity = cosine_similarities(counts.select_elements(start, end))
            splits, density = split_by_density(rank_similarities(similarity, self.mask))
            boundaries[start + splits[: count_worthwhile_splits(density, self.stop)]] = True
        return boundaries


def cosine_similarities(counts: TermCounts) -> Matrix:
    """Cosine of every pair of elements, (n, n); 0 for elements without terms."""
    n = counts.element_count
    # Few terms are frequent, and their columns are multiplied as a dense matrix. The others have
    # few pairs of entries, which are added one by one.
    is_frequent = np.bincount(counts.terms) > FREQUENT_SHARE * n
    rare = counts.select_terms(~is_frequent)
    first, second, products = rare.find_shared_terms(n)
    columns = counts.select_terms(is_frequent).to_dense()
    one_side = np.bincount(first * n + second, products, minlength=n * n).reshape(n, n)
    dots = columns @ columns.T + one_side + one_side.T
    squares = counts.sum_squares()
    np.fill_diagonal(dots, squares)
    scale = 1 / np.sqrt(np.where(squares > 0, squares, 1))
    return dots * scale[:, None] * scale


def rank_similarities(similarity: Matrix, mask: int) -> Matrix:
    """Rank of every pair, (n, n), from 0 to 1.

    It is the fraction of the other pairs in a `mask` × `mask` square around the pair that are less
    similar than the pair itself.
    """
    n, radius = len(similarity), min(mask // 2, len(similarity) - 1)
    if radius == 0:
        return np.zeros((n, n))
    # As integers, so that equal similarities compare as equal in spite of rounding. The padding is
    # the largest integer, so it never counts as less similar.
    padded = np.pad(
        (similarity * 1e9).round().astype(np.int32), radius, constant_values=np.iinfo(np.int32).max
    )
    less_similar = np.zeros((n, n), np.uint16)
    block_rows = max(1, 65_536 // n)  # a block stays in the CPU cache for all comparisons
    for top in range(0, n, block_rows):
        block = less_similar[top : top + block_rows]
        pair_values = padded[top + radius : top + radius + len(block), radius : radius + n]
        for down in range(2 * radius + 1):
            for right in range(2 * radius + 1):
                block += (
                    padded[top + down : top + down + len(block), right : right + n] < pair_values
                )
    positions = np.arange(n)
    # Side lengths of the squares, which are cut off at the edges of the matrix.
    sides = np.minimum(positions + radius, n - 1) - np.maximum(positions - radius, 0) + 1
    return less_similar / (np.outer(sides, sides) - 1)


def split_by_density(rank: Matrix) -> tuple[npt.NDArray[np.int64], Matrix]:
    """Split greedily by density until every element is a segment.

    Returns the n − 1 splits in order, as indices of the elements after the split, and the n
    densities: before the first split and after each.

    `lost_rank` and `lost_pairs` hold, for every gap, by how much a split there would decrease the
    rank sum and the number of pairs. They change only inside the segment that is split.
    """
    n = len(rank)
    sums = np.zeros((n + 1, n + 1))  # [i, j]: sum of all ranks above and to the left
    np.cumsum(np.cumsum(rank, axis=0), axis=1, out=sums[1:, 1:])
    diagonal = sums.diagonal().copy()
    lost_rank, lost_pairs = np.full(n, np.inf), np.zeros(n)
    starts, ends = np.zeros(n, np.int64), np.full(n, n)  # of the segment of each element

    def update_losses(first: int, last: int) -> None:
        """Update the gaps inside the segment of elements `first` to `last` − 1."""
        # Splitting at a gap removes two blocks, which are mirror images of each other.
        gap = slice(first + 1, last)
        block = sums[gap, last] - sums[first, last] - diagonal[gap] + sums[first, gap]
        lost_rank[gap] = 2 * block
        position = np.arange(first + 1, last)
        lost_pairs[gap] = 2.0 * (position - first) * (last - position)

    update_losses(0, n)
    rank_sum, pair_count = sums[n, n], float(n * n)
    splits, density = np.zeros(n - 1, np.int64), np.full(n, rank_sum / pair_count)
    for step in range(n - 1):
        split = int(((rank_sum - lost_rank) / (pair_count - lost_pairs)).argmax())
        rank_sum, pair_count = rank_sum - lost_rank[split], pair_count - lost_pairs[split]
        splits[step], density[step + 1] = split, rank_sum / pair_count
        lost_rank[split], lost_pairs[split] = np.inf, 0.0  # not a candidate any more
        first, last = int(starts[split]), int(ends[split])
        starts[split:last], ends[first:split] = split, split
        update_losses(first, split)
        update_losses(split, last)
    return splits, density


def count_worthwhile_splits(density: Matrix, stop: float) -> int:
    """Number of splits before the smoothed gain falls to the mean plus `stop` standard deviations.

    `density` is the second result of `split_by_density`.
    """
    gains = np.diff(density)
    if len(gains) == 0:
        return 0
    centre = slice(len(SMOOTHING_WEIGHTS) // 2, len(SMOOTHING_WEIGHTS) // 2 + len(gains))
    gains = (
        np.convolve(gains, SMOOTHING_WEIGHTS)[centre]
        / np.convolve(np.ones(len(gains)), SMOOTHING_WEIGHTS)[centre]
    )
    is_small = gains <= gains.mean() + stop * gains.std()
    return int(is_small.argmax())  # one exists: not all gains are above their mean
