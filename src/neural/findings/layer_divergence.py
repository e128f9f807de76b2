"""Divergence of the attention of layers, independent of the order of their heads.

Every head of one layer is matched with one of the other layer, by the assignment with the smallest
sum of distances. The matched divergence of two layers is the mean distance of these pairs. The
excess is the matched divergence minus that of two random groups of the same heads. An excess of 0
means that both layers have the same kinds of heads, in any order. It is positive if the layers
differ by more than such random groups do, and negative if they differ by less.

Distances are squared Hellinger distances of attention weights, 0 to 1. A run records them between
all pairs of its N heads as `heads/divergence`, (N, N), ordered by layer
(capture/head_divergence.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError, finite_mean
from neural.runs.errors import RunError
from neural.runs.run_reader import HEAD_DIVERGENCE_KEY

RANDOM_GROUPINGS = 32
"""Random groupings that are averaged as the baseline of the divergence of two layers."""
MAX_CACHED_SNAPSHOTS = 10_000
"""With 12 layers, their results take about 12 MB."""

_excess_by_hash: dict[bytes, np.ndarray] = {}


def match_heads(divergence: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Mean distance of two groups of heads, matched by the assignment with the smallest sum.

    `divergence` (N, N) has the distances of all heads; `first` and `second` are indices of heads.
    """
    return _match_block(divergence[np.ix_(first, second)])


def _match_block(block: np.ndarray) -> float:
    """Mean distance of the pairs of rows and columns with the smallest sum."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(block)
    return float(block[rows, columns].mean())


def compute_layer_excess(
    divergence: np.ndarray, heads: Sequence[int], *, seed: int = 0
) -> np.ndarray:
    """Excess of all pairs of layers: matched divergence minus that of random groups of their heads.

    `heads` has the number of heads of each layer. The result is [layer, layer], filled above the
    diagonal and NaN elsewhere. It is also NaN for layers of one head, which cannot be regrouped.
    """
    starts = np.concatenate([[0], np.cumsum(heads)])
    layers = [np.arange(start, end) for start, end in pairwise(starts)]
    excess = np.full((len(heads), len(heads)), np.nan)
    for i in range(len(heads)):
        for j in range(i + 1, len(heads)):
            if min(len(layers[i]), len(layers[j])) > 1:
                baseline = _random_group_divergence(divergence, layers[i], layers[j], (seed, i, j))
                excess[i, j] = match_heads(divergence, layers[i], layers[j]) - baseline
    return excess


def _random_group_divergence(
    divergence: np.ndarray, first: np.ndarray, second: np.ndarray, seed: tuple[int, int, int]
) -> float:
    """Mean matched divergence of random groups that mix the heads of both layers."""
    groupings = _draw_groupings(tuple(first.tolist()), tuple(second.tolist()), seed)
    groups, others = groupings[:, : len(first)], groupings[:, len(first) :]
    blocks = divergence[groups[:, :, None], others[:, None, :]]
    return float(np.mean([_match_block(block) for block in blocks]))


@lru_cache(maxsize=4096)  # the same for all snapshots
def _draw_groupings(
    first: tuple[int, ...], second: tuple[int, ...], seed: tuple[int, int, int]
) -> np.ndarray:
    """Random orders of the heads of two layers, [grouping, head].

    The first heads are one group, the others the second. Never the grouping by layers itself.
    """
    generator, groupings = np.random.default_rng(seed), list[np.ndarray]()
    while len(groupings) < RANDOM_GROUPINGS:
        shuffled = generator.permutation(np.array(first + second))
        if set(shuffled[: len(first)].tolist()) not in (set(first), set(second)):
            groupings.append(shuffled)
    return np.stack(groupings)


def load_excess_curves(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Steps and `compute_layer_excess` at each, [step, layer, layer].

    MissingDataError where the divergence of heads was not recorded.
    """
    steps, values, heads = _load_comparable(run)
    return steps, np.stack([_compute_excess_once(matrix, heads) for matrix in values])


def _compute_excess_once(divergence: np.ndarray, heads: Sequence[int]) -> np.ndarray:
    """`compute_layer_excess`, computed once for each snapshot.

    Two checks need it, and the board analyses a running training again and again, of which only the
    newest snapshots are new. Snapshots are recognized by a hash, which takes less memory than they.
    """
    content = np.ascontiguousarray(divergence).tobytes() + repr(list(heads)).encode()
    key = hashlib.blake2b(content, digest_size=16).digest()
    excess = _excess_by_hash.get(key)
    if excess is None:
        excess = compute_layer_excess(divergence, heads)
        if len(_excess_by_hash) >= MAX_CACHED_SNAPSHOTS:
            _excess_by_hash.clear()
        _excess_by_hash[key] = excess
    return excess


def load_last_excess(run: Record) -> np.ndarray:
    """`compute_layer_excess` at the last step."""
    _, values, heads = _load_comparable(run)
    return compute_layer_excess(values[-1], heads)


def _load_comparable(run: Record) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """`_load_divergences`, with MissingDataError unless two layers have two heads each."""
    steps, values, heads = _load_divergences(run)
    if len(heads) < 2 or min(heads) < 2:
        raise MissingDataError(f"{run.name}: comparing layers needs two layers with two heads each")
    return steps, values, heads


def load_matched_curves(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Steps and the matched divergence of all pairs of layers, [step, layer, layer]."""
    steps, values, heads = _load_divergences(run)
    starts = np.concatenate([[0], np.cumsum(heads)])
    layers = [np.arange(start, end) for start, end in pairwise(starts)]
    distances = np.full((len(steps), len(heads), len(heads)), np.nan)
    for row, matrix in zip(distances, values, strict=True):
        for i, j in combinations(range(len(heads)), 2):
            row[i, j] = match_heads(matrix, layers[i], layers[j])
    return steps, distances


def _load_divergences(run: Record) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Steps, divergence of heads [step, N, N], and number of heads of each layer."""
    try:
        steps, values = run.measure(HEAD_DIVERGENCE_KEY)
    except RunError:
        raise MissingDataError(f"{run.name} has no divergence of heads; see `tracking`") from None
    heads = run.metadata("attention/heads") or []
    is_complete = bool(np.isfinite(values).all())  # NaN where a step has fewer heads
    if not len(steps) or sum(heads) != values.shape[1] or not is_complete:
        raise MissingDataError(f"{run.name}: the recorded divergence does not fit its layers")
    return steps, values.astype(float), heads


def compare_at_equal_distance(
    pairs: np.ndarray,
    first_pairs: Sequence[tuple[int, int]],
    second_pairs: Sequence[tuple[int, int]],
) -> float:
    """Mean value of the second group of layer pairs minus that of the first, at equal distance.

    `pairs` [layer, layer] has a value for each pair of layers; the distance of layers i and j is
    j − i. Close layers are always similar, so the groups are compared for each distance separately,
    and the differences averaged. NaN if no distance occurs in both groups.
    """
    differences = []
    for distance in range(1, len(pairs)):
        first, second = (
            [pairs[i, j] for i, j in group if j - i == distance]
            for group in (first_pairs, second_pairs)
        )
        if first and second:
            difference = finite_mean(np.array(second)) - finite_mean(np.array(first))
            differences.append(float(difference))
    return float(finite_mean(np.array(differences))) if differences else float("nan")
