"""Statistics of patching experiments: how much a patch restores, and whether it is more than chance.

A pair is a clean and a corrupted input with a score, such as a difference of logits. A unit is what
is patched: a head, or a head at a position. Patching a unit puts what it wrote on the clean input
into the run of the corrupted one, and the restored share is

    (patched − corrupted) / (clean − corrupted)

The null is mismatched pairs: the difference between what the unit wrote on the clean and on the
corrupted input of another pair. Both are patched into the same corrupted run, and the change of the
score is the score with the clean source minus that with the corrupted source. For the pair itself,
the corrupted source changes nothing, so the change is patched − corrupted, as above. A unit has an
effect only if the pair's own difference changes its score more than differences of other pairs do.
A unit that writes the same on clean and corrupted inputs has changes of 0 with all sources, although
the outputs of another text may damage the run. The test permutes the sources among the pairs:

- The score changes are compared, not the restored shares: those have the sign of (clean −
  corrupted) in both parts of the fraction, so a component of a random network restores a positive
  share on average.
- The statistic of a unit is its mean change, minus its mean over all permutations, divided by its
  standard deviation over all permutations. Both are exact (Hoeffding, 1951).
- A p-value is the share of permutations in which the largest statistic of all units reaches the
  unit's own. So the probability that any unit of a sweep is called an effect, if none has one, is at
  most the level (Westfall and Young, 1993). The identity is one of the permutations.

An effect also has the sign of its statistic: the unit restores, and more than with other pairs, or
it opposes, and more than with other pairs. Pairs exchange sources within blocks, so that a sweep of n
pairs takes about 2 n × block size × units forward passes of one example, not 2 n² × units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from neural.stats.means import estimate_mean

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

EFFECT_LEVEL = 0.05
"""Probability of any false effect in a sweep, at most."""
MAX_BLOCK_SIZE = 6
"""Pairs that exchange their sources."""
PERMUTATIONS = 4999
"""Random permutations; if the blocks have fewer, all are used."""
MIN_DIFFERENCE_SHARE = 0.1
"""A pair is left out if |clean − corrupted| is smaller than this share of the median of all pairs."""
ROUNDING_SHARE = 1e-5
"""A unit whose changes vary less than this share of |clean − corrupted| has no effect."""
MIN_EFFECT_SHARE = 0.005
"""A smaller restored share is printed as .00: it is no effect, however certain it is."""
CHUNK_VALUES = 2**22
"""Statistics that are computed at once, permutations × units."""


@dataclass(frozen=True, eq=False)
class UnitEffects:
    """Effects of all units of a sweep, each array (U,)."""

    restored: Float[np.ndarray, " U"]
    """Mean restored share over the pairs."""
    standard_error: Float[np.ndarray, " U"]
    low: Float[np.ndarray, " U"]
    """Lower bound of the 95 % interval of `restored`; NaN if all pairs have the same value."""
    high: Float[np.ndarray, " U"]
    change: Float[np.ndarray, " U"]
    """Mean change of the score, patched − corrupted."""
    mismatched: Float[np.ndarray, " U"]
    """Mean share that differences of other pairs change; NaN without a null."""
    excess: Float[np.ndarray, " U"]
    """The test statistic; positive if the pair's own source restores more than others do."""
    p: Float[np.ndarray, " U"]
    """p-values, corrected for the number of units; NaN without a null."""

    @property
    def has_effect(self) -> Bool[np.ndarray, " U"]:
        """Whether a unit restores or opposes more than with mismatched pairs."""
        is_beyond = np.nan_to_num(self.p, nan=1.0) <= EFFECT_LEVEL
        is_visible = np.abs(self.restored) >= MIN_EFFECT_SHARE
        return is_beyond & is_visible & (self.change * np.nan_to_num(self.excess) > 0)


def find_weak_pairs(differences: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """True for pairs whose clean and corrupted scores differ too little to divide by.

    `differences`: clean − corrupted. Pairs with a difference that is not finite are weak, too.
    """
    sizes = np.abs(differences)
    finite = np.isfinite(sizes)
    if not finite.any():
        return ~finite
    threshold = max(MIN_DIFFERENCE_SHARE * float(np.median(sizes[finite])), 1e-6)
    return ~(finite & (sizes >= threshold))


def make_blocks(
    lengths: Sequence[int], *, max_size: int = MAX_BLOCK_SIZE, seed: int = 0
) -> list[Int[np.ndarray, " b"]]:
    """Group pairs of the same length into blocks of nearly equal sizes, at random.

    A pair that has no other of its length is a block of its own: it has no mismatched source.
    """
    random = np.random.default_rng(seed)
    blocks: list[np.ndarray] = []
    for length in sorted(set(lengths)):
        members = random.permutation([i for i, other in enumerate(lengths) if other == length])
        count = math.ceil(len(members) / max(1, max_size))
        blocks += [np.sort(block) for block in np.array_split(members, count)]
    return blocks


def count_permutations(blocks: Sequence[np.ndarray]) -> int:
    """Number of ways to exchange sources within the blocks, the identity included."""
    return math.prod(math.factorial(len(block)) for block in blocks)


def can_decide(blocks: Sequence[np.ndarray]) -> bool:
    """Whether the smallest possible p-value is at most EFFECT_LEVEL."""
    return count_permutations(blocks) * EFFECT_LEVEL >= 1


def estimate_effects(
    changes: Float[np.ndarray, "n s U"],
    differences: Float[np.ndarray, " n"],
    blocks: Sequence[Int[np.ndarray, " b"]] | None,
    *,
    seed: int = 0,
) -> UnitEffects:
    """Restored shares with intervals, and p-values against mismatched pairs.

    `changes[i, k]`: change of the score of pair i for each unit, with the k-th pair of i's block as
    the source: score with its clean input minus score with its corrupted one; only `changes[i, 0]`,
    of the pair's own source, if `blocks` is None. `differences`: clean − corrupted. Blocks have
    indices of pairs, in ascending order.
    """
    pairs, _, units = changes.shape
    if blocks is None:
        own = changes[:, 0]
    else:
        slots = np.zeros(pairs, dtype=int)
        for block in blocks:
            slots[block] = np.arange(len(block))
        own = changes[np.arange(pairs), slots]
    shares = own / differences[:, None]
    estimates = [estimate_mean(shares[:, unit]) for unit in range(units)]
    error = shares.std(axis=0, ddof=1) / math.sqrt(pairs) if pairs > 1 else np.full(units, np.nan)
    mismatched = excess = p = np.full(units, np.nan)
    if blocks is not None:
        mismatched = _average_mismatched(changes, differences, blocks)
        if can_decide(blocks):
            scale = float(np.median(np.abs(differences)))
            excess, p = compute_p_values(changes, blocks, scale=scale, seed=seed)
    return UnitEffects(
        restored=shares.mean(axis=0),
        standard_error=error,
        low=np.array([estimate.low for estimate in estimates]),
        high=np.array([estimate.high for estimate in estimates]),
        change=own.mean(axis=0),
        mismatched=mismatched,
        excess=excess,
        p=p,
    )


def compute_p_values(
    changes: Float[np.ndarray, "n s U"],
    blocks: Sequence[Int[np.ndarray, " b"]],
    *,
    scale: float = 1.0,
    seed: int = 0,
) -> tuple[Float[np.ndarray, " U"], Float[np.ndarray, " U"]]:
    """The statistic and the corrected p-value of every unit; arguments as in `estimate_effects`.

    `scale`: the usual size of a difference; changes that vary much less are rounding errors.
    """
    units = changes.shape[-1]
    variance, centred = np.zeros(units), []
    for block in blocks:
        size = len(block)
        table = changes[block, :size].astype(float)  # (pair, source, unit)
        # Sums over permutations do not depend on the effects of rows and columns.
        table = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True)
        table += changes[block, :size].astype(float).mean(axis=(0, 1))
        centred.append(table)
        if size > 1:
            variance += np.square(table).sum(axis=(0, 1)) / (size - 1)
    count = sum(len(block) for block in blocks)
    std = np.sqrt(variance)
    varies = std > ROUNDING_SHARE * scale * math.sqrt(count)
    factor = np.where(varies, 1 / np.where(varies, std, 1.0), 0.0)
    observed = factor * sum(np.trace(table) for table in centred)
    largest = _permute_maximum(centred, factor, seed)
    # rounding: a permutation that only exchanges equal sources has the same statistic
    tolerance = 1e-9 * np.maximum(1.0, np.abs(observed))
    reached = (largest[None, :] >= (np.abs(observed) - tolerance)[:, None]).mean(axis=1)
    return observed, np.where(varies, reached, 1.0)


def _permute_maximum(
    centred: Sequence[Float[np.ndarray, "b b U"]], factor: Float[np.ndarray, " U"], seed: int
) -> Float[np.ndarray, " P"]:
    """The largest |statistic| of all units in each permutation; the first is the identity."""
    sizes = [len(table) for table in centred]
    orders = _draw_orders(sizes, seed)
    units = len(factor)
    step = max(1, CHUNK_VALUES // max(1, units * max(sizes)))
    count = len(orders[0])
    largest = np.empty(count)
    for start in range(0, count, step):
        sums = np.zeros((min(step, count - start), units))
        for table, order in zip(centred, orders, strict=True):
            rows = np.arange(len(table))
            sums += table[rows, order[start : start + step]].sum(axis=1)
        largest[start : start + step] = np.abs(sums * factor).max(axis=1, initial=0.0)
    return largest


def _draw_orders(sizes: Sequence[int], seed: int) -> list[Int[np.ndarray, "P b"]]:
    """Permutations of each block; the first of all is the identity. All, if there are few."""
    total = math.prod(math.factorial(size) for size in sizes)
    if total <= PERMUTATIONS + 1:
        orders: list[np.ndarray] = []
        repeats, tiles = total, 1
        for size in sizes:
            block_orders = np.array(list(permutations(range(size)))).reshape(-1, size)
            repeats //= len(block_orders)
            orders.append(np.tile(block_orders.repeat(repeats, axis=0), (tiles, 1)))
            tiles *= len(block_orders)
        return orders
    random = np.random.default_rng(seed)
    drawn = [random.random((PERMUTATIONS, size)).argsort(axis=1) for size in sizes]
    return [
        np.concatenate((np.arange(size)[None], order))
        for size, order in zip(sizes, drawn, strict=True)
    ]


def _average_mismatched(
    changes: Float[np.ndarray, "n s U"],
    differences: Float[np.ndarray, " n"],
    blocks: Sequence[Int[np.ndarray, " b"]],
) -> Float[np.ndarray, " U"]:
    """Mean restored share over all sources of other pairs; NaN if there is none."""
    shares = []
    for block in blocks:
        size = len(block)
        if size > 1:
            table = changes[block, :size] / differences[block][:, None, None]
            own = table[np.arange(size), np.arange(size)]
            shares.append((table.sum(axis=1) - own) / (size - 1))
    if not shares:
        return np.full(changes.shape[-1], np.nan)
    return np.concatenate(shares).mean(axis=0)
