"""Match the attention heads of two models by their maps on the same input.

    matching = match_heads(first, second, patterns=build_patterns(positions, texts, texts))
    matching.pairs           matched heads with their divergence, p-value and verdict
    matching.changes         heads with equal indices, those that changed most first

A map has a row per query: its weights over the keys. The divergence of two heads is the mean over
rows of the Jensen–Shannon divergence in bits: 0 is equal, 1 shares no key. The assignment with the
smallest sum of divergences pairs every head of the smaller model with one of the other.

An assignment pairs all heads, related or not, so a pair needs a null: how near would two unrelated
heads be? Reference models of other seeds are not at hand, and shuffled rows are no null: every head
follows the positions and the tokens of the input, and repeated tokens make rows dependent. So the
null uses the heads themselves, by two kinds of competitors:

1. The other heads. A head of A that is unrelated to B is a random point beside the cloud of B's
   heads. Then the ratio ρ of its smallest and its second smallest divergence has P(ρ ≤ x) = x^α,
   where α grows with the dimension of the cloud (Facco et al., 2017, who estimate dimensions from
   it). α is estimated from heads that are certainly not copies: nearest and second nearest heads
   within A and within B, and second and third nearest ones across. The smallest of the three upper
   p-values counts, at the lower 95 % bound of α, so few heads make the test cautious.
2. The pattern of a head. It is the map that keeps only what roles consist of: the distance to the
   key, the first key, equal tokens, the token after an equal one, delimiters. Two heads with one
   role and independent contents are not nearer to each other than to the other's pattern.

ρ is the divergence of a pair over that of its nearest competitor of both kinds, and p = ρ^α. The
verdict "same head" needs p ≤ 5 % after the correction of Benjamini and Hochberg for all pairs;
"same role" are pairs that only their patterns keep from it, or that have one pattern with little
else; the others are "unrelated". Two models of different seeds therefore share "same head" in at
most 5 % of comparisons, measured in tests/validity/test_head_matching.py.

If both models have equal layers and heads, another test needs no model of divergences: heads of one
layer are exchangeable under random initial weights, before and after training. If B does not derive
from A, equal indices mean nothing, and permuting the heads within layers gives the exact null of
the mean log ratio of index pairs (`index_p`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaincinv

from neural.analysis.head_roles import is_delimiter

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Verdict = Literal["same head", "same role", "unrelated", "not tested"]
SIGNIFICANCE_LEVEL = 0.05
"""Largest corrected p-value of the verdict "same head"."""
MIN_TESTED_HEADS = 4
"""Heads that each model needs for a verdict: α is estimated from the neighbours of heads."""
MAX_EXPONENT = 4.0
"""Largest α that is used. In a cloud of many dimensions all divergences are alike and α is large,
so a pair that is only 1.5 times nearer than others would count as a copy."""
DEFAULT_RESOLUTION = 1e-9
"""Divergence in bits below which maps of 32-bit weights are equal."""
RESOLUTION_PER_KEY_8_BITS = 2e-6
"""The same for stored maps, for each key: the squared rounding error of a root of a weight is
1 / (12 · 255²) on average, and two maps have it."""
MIN_QUERIES_PER_DISTANCE = 4
"""Distances of fewer queries share one class, so that a pattern does not copy single weights."""
PATTERN_ITERATIONS = 20
"""Rounds of proportional fitting; further ones change divergences by less than 1 %."""
INDEX_PERMUTATIONS = 2000
MAX_DIVERGENCE_WEIGHTS = 150_000_000
"""Weights of pairs of maps that are compared in one matrix of divergences, about two seconds; with
more heads or keys, fewer rows are compared."""
MIN_COMPARED_ROWS = 8
CHUNK_WEIGHTS = 4_000_000
"""Weights of pairs of maps that are in memory together."""


class MatchingError(ValueError):
    """The heads of two models cannot be compared; the message says why."""


@dataclass(frozen=True, eq=False)
class ModelHeads:
    """The maps of all heads of one model."""

    maps: Float[np.ndarray, "N R K"]
    """Weights of N heads; R rows are the queries of all examples."""
    layers: Int[np.ndarray, " N"]
    heads: Int[np.ndarray, " N"]
    """Layer of each head, and its number in the layer."""

    def __post_init__(self) -> None:
        if self.maps.ndim != 3 or not len(self.maps) == len(self.layers) == len(self.heads):
            raise MatchingError("maps must be [head, row, key], with a layer and a number per head")
        if not np.isfinite(self.maps).all() or (self.maps < 0).any():
            raise MatchingError(
                "weights must be finite and not negative: signed attention is no distribution"
            )

    def __len__(self) -> int:
        return len(self.maps)

    @classmethod
    def from_layers(
        cls, layers: Sequence[Float[np.ndarray, "H R K"]], numbers: Sequence[int] | None = None
    ) -> ModelHeads:
        """Heads of several layers; `numbers` are those of the layers, 0, 1 … if None."""
        counts = [len(maps) for maps in layers]
        return cls(
            np.concatenate(list(layers)),
            np.repeat(range(len(layers)) if numbers is None else list(numbers), counts),
            np.concatenate([np.arange(count) for count in counts]),
        )


class HeadPair(NamedTuple):
    """A head of A and the head of B that is matched with it."""

    first: tuple[int, int]
    """Layer and head in A."""
    second: tuple[int, int]
    divergence: float
    """Mean Jensen–Shannon divergence, bits."""
    ratio: float
    """Divergence over that of the nearest competitor, a head or a pattern."""
    p: float
    """Chance of a ratio this small for unrelated heads; NaN without a test."""
    verdict: Verdict


class HeadChange(NamedTuple):
    """A head with the same index in both models."""

    head: tuple[int, int]
    divergence: float


@dataclass(frozen=True, eq=False)
class HeadMatching:
    """The result of `match_heads`."""

    pairs: list[HeadPair]
    """By layer and head of A."""
    divergence: Float[np.ndarray, "A B"]
    """Between all heads of A and B; NaN where a pair is excluded."""
    exponent: float
    """α of the null; NaN without a test."""
    compared_rows: int
    changes: list[HeadChange] = field(default_factory=list)
    """The largest first; empty if the models do not have equal layers and heads."""
    index_p: float = math.nan
    """p-value of "heads with equal indices are as unrelated as others"; NaN without `changes`."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of pairs by verdict."""
        verdicts = [pair.verdict for pair in self.pairs]
        return {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(sorted(verdicts))}


def compute_divergence(
    first: Float[np.ndarray, "A R K"], second: Float[np.ndarray, "B R K"]
) -> Float[np.ndarray, "A B"]:
    """Mean over rows of the Jensen–Shannon divergence of all heads of A and B, in bits."""
    if first.shape[1:] != second.shape[1:]:
        raise MatchingError(
            f"the maps have {first.shape[1]} × {first.shape[2]} and {second.shape[1]} × "
            f"{second.shape[2]} rows and keys: heads are compared on the same tokens"
        )
    rows, keys = first.shape[1:]
    total = np.zeros((len(first), len(second)))
    heads_per_chunk = max(1, CHUNK_WEIGHTS // max(1, len(second) * keys))
    for row in range(rows):
        second_row = second[:, row]
        for start in range(0, len(first), heads_per_chunk):
            chunk = slice(start, start + heads_per_chunk)
            mean = (first[chunk, row, None] + second_row) / 2
            total[chunk] += _entropy(mean)
    own = _entropy(first).sum(axis=1)[:, None] + _entropy(second).sum(axis=1)
    return np.clip((total - own / 2) / (max(rows, 1) * math.log(2)), 0, 1)


def _entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy over the last axis, nats; weights of 0 contribute nothing."""
    logs = np.log(np.maximum(weights, 1e-300))
    return -np.einsum("...k,...k->...", weights, logs)


def build_patterns(
    visible: Bool[np.ndarray, "R K"],
    positions: Int[np.ndarray, " R"] | None = None,
    query_texts: Sequence[str] | None = None,
    key_texts: Sequence[Sequence[str]] | None = None,
) -> list[Int[np.ndarray, "R K"]]:
    """Classes of pairs of query and key whose masses make up roles, one array per kind.

    `positions` has the key index of each query, `query_texts` its token and `key_texts` the tokens
    of its keys. What is None is left out. Keys beyond those with a text (a learned sink) are a
    class of their own.
    """
    rows, keys = visible.shape
    key_index = np.broadcast_to(np.arange(keys), (rows, keys))
    patterns = [(key_index == visible.argmax(axis=1)[:, None]).astype(int)]
    is_extra = np.zeros((rows, keys), bool)
    if key_texts is not None:
        lengths = np.array([len(texts) for texts in key_texts])
        is_extra = key_index >= lengths[:, None]
        patterns.append(is_extra.astype(int))
    if positions is not None:
        patterns.append(_classify_distances(key_index - positions[:, None], visible & ~is_extra))
    if key_texts is not None:
        texts = np.array([[*row, *[""] * (keys - len(row))] for row in key_texts], dtype=object)
        flags = [np.array([[is_delimiter(text) for text in row] for row in texts])]
        if query_texts is not None:
            is_equal = texts == np.array(query_texts, dtype=object)[:, None]
            follows_equal = np.zeros_like(is_equal)
            follows_equal[:, 1:] = is_equal[:, :-1]
            if positions is not None:  # a query is always equal to itself
                is_own = key_index == positions[:, None]
                is_equal &= ~is_own
                follows_equal &= key_index != positions[:, None] + 1
            flags += [is_equal, follows_equal]
        patterns += [(flag & ~is_extra).astype(int) for flag in flags]
    return [pattern for pattern in patterns if len(np.unique(pattern[visible])) > 1]


def _classify_distances(
    distance: Int[np.ndarray, "R K"], visible: Bool[np.ndarray, "R K"]
) -> Int[np.ndarray, "R K"]:
    """A class for each distance that enough queries have; the others share class 0."""
    values, counts = np.unique(distance[visible], return_counts=True)
    common = values[counts >= MIN_QUERIES_PER_DISTANCE]
    if not len(common):
        return np.zeros_like(distance)
    place = np.searchsorted(common, distance).clip(max=len(common) - 1)
    return np.where(visible & (common[place] == distance), place + 1, 0)


def fit_patterns(
    maps: Float[np.ndarray, "N R K"],
    visible: Bool[np.ndarray, "R K"],
    patterns: Sequence[Int[np.ndarray, "R K"]],
) -> Float[np.ndarray, "N R K"]:
    """The maps with the largest entropy that give the same mass to every class as `maps` do.

    Iterative proportional fitting, from uniform attention: a map is a product of a factor per
    class, normalised by row.
    """
    heads = len(maps)
    fitted = np.broadcast_to(visible / visible.sum(axis=1, keepdims=True), maps.shape).copy()
    offsets = np.arange(heads)[:, None, None]
    targets = []
    for pattern in patterns:
        classes = int(pattern.max()) + 1
        index = (pattern[None] + offsets * classes).ravel()
        mass = np.bincount(index, maps.ravel(), heads * classes)
        targets.append((index, mass))
    for _ in range(PATTERN_ITERATIONS):
        for index, mass in targets:
            current = np.bincount(index, fitted.ravel(), len(mass))
            factor = np.where(current > 0, mass / np.where(current > 0, current, 1), 1)
            fitted *= factor[index].reshape(fitted.shape)
            total = fitted.sum(axis=2, keepdims=True)
            fitted /= np.where(total > 0, total, 1)
    return fitted


def match_heads(
    first: ModelHeads,
    second: ModelHeads,
    patterns: Sequence[Int[np.ndarray, "R K"]] | None = None,
    *,
    roles: tuple[Sequence[str], Sequence[str]] | None = None,
    same_layer: bool = False,
    resolution: float = DEFAULT_RESOLUTION,
    seed: int = 0,
) -> HeadMatching:
    """Match every head of the smaller model with one of the other, and test the pairs.

    `patterns` are those of `build_patterns`; without them a pattern is the mass on the first key.
    `roles` are the names of what each head of A and of B does (analysis/head_roles.py).
    `same_layer` matches heads of equal layers only. `resolution`: divergence in bits below which
    maps are equal. MatchingError if the maps have different rows or keys.
    """
    if first.maps.shape[1:] != second.maps.shape[1:]:
        compute_divergence(first.maps, second.maps)  # raises the error that says so
    rows = _select_rows(first, second)
    if not len(rows):
        raise MatchingError("no query sees two keys: give a longer input")
    first_maps, second_maps = (_normalize(model.maps[:, rows]) for model in (first, second))
    visible = (first_maps.max(axis=0) > 0) | (second_maps.max(axis=0) > 0)
    classes = build_patterns(visible) if patterns is None else [c[rows] for c in patterns]
    first_patterns, second_patterns = (
        fit_patterns(maps, visible, classes) for maps in (first_maps, second_maps)
    )
    divergence = compute_divergence(first_maps, second_maps)
    # how near a head is to the pattern of the other: what the role alone explains
    by_role = np.minimum(
        compute_divergence(first_maps, second_patterns),
        compute_divergence(first_patterns, second_maps),
    )
    is_allowed = np.ones(divergence.shape, bool)
    if same_layer:
        is_allowed = first.layers[:, None] == second.layers
        if not is_allowed.any():
            raise MatchingError("the models have no layer of the same number")
    matched = _assign(divergence, is_allowed)
    exponent = estimate_exponent(
        compute_divergence(first_maps, first_maps),
        compute_divergence(second_maps, second_maps),
        divergence,
        resolution,
    )
    pairs = _test_pairs(matched, first, second, divergence, by_role, exponent, resolution, roles)
    changes, index_p = _compare_indices(first, second, divergence, by_role, resolution, seed)
    return HeadMatching(
        pairs, np.where(is_allowed, divergence, np.nan), exponent, len(rows), changes, index_p
    )


def _select_rows(first: ModelHeads, second: ModelHeads) -> np.ndarray:
    """Rows in which all heads have weights and some key is a choice; evenly spaced if many."""
    key_counts = np.minimum(
        (first.maps > 0).any(axis=0).sum(axis=1), (second.maps > 0).any(axis=0).sum(axis=1)
    )
    has_weights = (first.maps.sum(axis=2) > 0).all(axis=0) & (second.maps.sum(axis=2) > 0).all(
        axis=0
    )
    rows = np.flatnonzero((key_counts > 1) & has_weights)
    weights_per_row = len(first) * len(second) * first.maps.shape[2]
    limit = max(MIN_COMPARED_ROWS, MAX_DIVERGENCE_WEIGHTS // max(weights_per_row, 1))
    if len(rows) <= limit:
        return rows
    return rows[np.linspace(0, len(rows) - 1, limit).round().astype(int)]


def _normalize(maps: np.ndarray) -> np.ndarray:
    maps = maps.astype(float)
    return maps / maps.sum(axis=2, keepdims=True)


def _assign(divergence: np.ndarray, is_allowed: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of indices with the smallest sum; excluded pairs are dropped."""
    # a cost above the sum of all others is taken only if there is no allowed pair left
    cost = np.where(is_allowed, divergence, divergence.size + 1.0)
    pairs = zip(*linear_sum_assignment(cost), strict=True)
    return [(int(i), int(j)) for i, j in pairs if is_allowed[i, j]]


def estimate_exponent(
    within_first: np.ndarray, within_second: np.ndarray, between: np.ndarray, resolution: float
) -> float:
    """α of P(ρ ≤ x) = x^α for unrelated heads; the smallest of three lower 95 % bounds.

    −log ρ is exponential with the rate α between the first and the second neighbour, and 2α between
    the second and the third. Those across models count from the second: the first may be a copy.
    NaN if a model has fewer than MIN_TESTED_HEADS heads.
    """
    if min(between.shape) < MIN_TESTED_HEADS:
        return math.nan
    bounds = []
    for within in (within_first, within_second):
        neighbours = np.sort(within + np.diag(np.full(len(within), np.inf)), axis=1) + resolution
        bounds.append(_bound_rate(np.log(neighbours[:, 1] / neighbours[:, 0])))
    logs = []
    for table in (between, between.T):
        neighbours = np.sort(table, axis=1) + resolution
        logs.append(2 * np.log(neighbours[:, 2] / neighbours[:, 1]))
    # rows and columns are two views of one table: they count once
    bounds.append(_bound_rate(np.concatenate(logs), size=min(between.shape)))
    return min(*bounds, MAX_EXPONENT)


def _bound_rate(values: np.ndarray, size: int | None = None) -> float:
    """Lower 95 % bound of the rate of exponential values; `size` independent ones."""
    mean = max(float(values.mean()), 1e-12)
    count = size or len(values)
    return float(gammaincinv(count, SIGNIFICANCE_LEVEL)) / (count * mean)


def _test_pairs(
    matched: Sequence[tuple[int, int]],
    first: ModelHeads,
    second: ModelHeads,
    divergence: np.ndarray,
    by_role: np.ndarray,
    exponent: float,
    resolution: float,
    roles: tuple[Sequence[str], Sequence[str]] | None,
) -> list[HeadPair]:
    """Ratio, p-value and verdict of every matched pair."""
    others = np.array([_nearest_other(divergence, i, j) for i, j in matched])
    patterns = np.array([by_role[i, j] for i, j in matched])
    distances = np.array([divergence[i, j] for i, j in matched]) + resolution
    ratios = distances / (np.minimum(others, patterns) + resolution)
    p_values = np.minimum(ratios, 1) ** exponent
    is_copy = _adjust(p_values) <= SIGNIFICANCE_LEVEL
    is_nearest = (
        _adjust(np.minimum(distances / (others + resolution), 1) ** exponent) <= SIGNIFICANCE_LEVEL
    )
    pairs = []
    for index, (i, j) in enumerate(matched):
        has_same_role = roles is not None and roles[0][i] == roles[1][j] not in ("mixed", "")
        verdict: Verdict = "unrelated"
        if is_copy[index]:
            verdict = "same head"
        elif is_nearest[index] or has_same_role:
            verdict = "same role"
        elif math.isnan(exponent):
            verdict = "not tested"
        pairs.append(
            HeadPair(
                (int(first.layers[i]), int(first.heads[i])),
                (int(second.layers[j]), int(second.heads[j])),
                float(divergence[i, j]),
                float(ratios[index]),
                float(p_values[index]),
                verdict,
            )
        )
    return pairs


def _nearest_other(divergence: np.ndarray, i: int, j: int) -> float:
    """The smallest divergence of head i of A or head j of B from another head of the other."""
    row, column = np.delete(divergence[i], j), np.delete(divergence[:, j], i)
    return float(min(row.min(initial=1.0), column.min(initial=1.0)))


def _adjust(p_values: np.ndarray) -> np.ndarray:
    """Correction of Benjamini and Hochberg: the share of false ones among those up to each p."""
    count = len(p_values)
    order = np.argsort(p_values)[::-1]
    scaled = p_values[order] * count / np.arange(count, 0, -1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum.accumulate(scaled)
    return adjusted


def _compare_indices(
    first: ModelHeads,
    second: ModelHeads,
    divergence: np.ndarray,
    by_role: np.ndarray,
    resolution: float,
    seed: int,
) -> tuple[list[HeadChange], float]:
    """Changes of heads with equal indices, and the p-value that equal indices mean nothing."""
    if not (
        np.array_equal(first.layers, second.layers) and np.array_equal(first.heads, second.heads)
    ):
        return [], math.nan
    own = np.diag(divergence)
    changes = [
        HeadChange((int(first.layers[i]), int(first.heads[i])), float(own[i]))
        for i in np.argsort(-own, kind="stable")
    ]
    ratios = np.log((divergence + resolution) / (by_role + resolution))
    observed = np.diag(ratios).sum()
    draw = np.random.default_rng(seed)
    groups = [np.flatnonzero(first.layers == layer) for layer in np.unique(first.layers)]
    sums = np.zeros(INDEX_PERMUTATIONS)
    for group in groups:
        orders = draw.permuted(np.tile(group, (INDEX_PERMUTATIONS, 1)), axis=1)
        sums += ratios[group, orders].sum(axis=1)
    # 1e-9: the identity among the permutations has the same sum up to rounding
    count = int((sums <= observed + 1e-9).sum())
    return changes, (count + 1) / (INDEX_PERMUTATIONS + 1)
