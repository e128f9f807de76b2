"""Match the attention heads of two models by their maps on the same input.

    matching = match_heads(first, second, patterns=build_patterns(positions, texts, texts))
    matching.pairs           matched heads with their divergence, p-value and verdict
    matching.changes         heads with equal indices, those that changed most first

A map has a row per query: its weights over the keys. The divergence of two heads is the mean over
rows of the Jensen–Shannon divergence in bits: 0 is equal, 1 shares no key. The assignment with the
smallest sum of divergences pairs every head of the smaller model with one of the other.

An assignment pairs all heads, related or not, so a pair needs a null: how alike would two unrelated
heads be? Models of other seeds are not at hand, and shuffled rows are no null: every head follows
the positions and the tokens of the input, and repeated tokens make rows dependent. So the null is
built from the heads themselves, in two steps:

1. The pattern of a head is removed. It is the map with the largest entropy that has the same mass
   on what roles consist of: each distance to the key, the first key, equal tokens, the token after
   an equal one, delimiters. Two previous-token heads or two uniform heads are alike without being
   the same head. What remains is the content, √weight − √pattern, and the distance of two heads is
   1 − the cosine of their contents.
2. The other heads are the competitors. An unrelated head of A is a random point beside the cloud of
   the N heads of B. Then the ratio ρ of its smallest and second smallest distance has P(ρ ≤ x) =
   x^α, where α grows with the dimension of the cloud (Facco et al., 2017, estimate dimensions from
   this law). α is estimated from the second and third nearest heads, which are no copies even if
   the first is one, and its lower 95 % bound is used, so few heads make the test cautious.

ρ is the distance of a pair over the smallest distance of its two heads from any other head of the
other model, and p = ρ^α. If both models have equal layers and heads, equal indices are evidence, too:
the head of A that is matched with one of B has its index with probability 1 / H at most, if heads
of a layer with H heads are exchangeable (below). So p is weighted: p · 2 / (H + 1) for equal indices
and 2 p for others; the chance of a small weighted p is then no larger than before. The verdict
"same head" needs p ≤ 5 % after the correction of Benjamini and
Hochberg for all pairs. "same role": the heads have a role in common, or their maps are nearest by
the same test on divergences, but their contents do not show the same head. The others are
"undecided": a test that does not show a relation does not show that there is none. Maps that are
equal bit for bit are those of the same head without a test. Models of different seeds share a
"same head" in at most 5 % of comparisons; in simulations in 0 of 55 untrained and 0 of 55 trained
pairs (python -m tests.validity --only head_matching).

If both models have equal layers and heads, an exact test exists: heads of one layer are
exchangeable under random initial weights, before and after training. If B does not derive from A,
equal indices mean nothing, and permuting the heads within layers gives the null distribution of
the mean cosine of index pairs (`index_p`).
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from neural.core.errors import NeuralError
from neural.findings.head_roles import NO_ROLES, is_delimiter
from neural.stats.means import bound_rate

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Verdict = Literal["same head", "same role", "undecided", "not tested"]
SIGNIFICANCE_LEVEL = 0.05
"""Largest corrected p-value of the verdict "same head"."""
MIN_TESTED_HEADS = 4
"""Heads that each model needs for a verdict: α is estimated from the neighbours of heads."""
DEFAULT_RESOLUTION = 1e-12
"""Squared length of the content of a row below which it is rounding error, for 32-bit weights."""
RESOLUTION_PER_KEY_8_BITS = 2e-6
"""The same for stored maps, for each key: the squared rounding error of a root of a weight is
1 / (12 · 255²) on average, and two maps have it."""
MIN_CONTENT_SHARE = 0.005
"""Squared length of a content, as a share of that of √weight − √uniform, that may be an error of
the fitted pattern: 0.001 at most in heads that are a pattern and nothing else. Two such heads have
the same error, which must not count as the same content."""
TIE_COST = 1e-9
"""Bits by which a pair of unequal indices is dearer than an equally distant one of equal indices."""
ANGLE_RESOLUTION = 1e-6
"""Smallest distance of two contents that is told from 0."""
MIN_QUERIES_PER_DISTANCE = 4
"""Distances of fewer queries share one class, so that a pattern does not copy single weights."""
PATTERN_ITERATIONS = 60
"""Rounds of proportional fitting. Further ones change contents by at most 2 %, and by 6 % in the
worst case, a periodic text, in which distances and equal tokens are almost the same."""
INDEX_PERMUTATIONS = 2000
MAX_DIVERGENCE_WEIGHTS = 150_000_000
"""Weights of pairs of maps that are compared in one matrix of divergences, about two seconds; with
more heads or keys, fewer rows are compared."""
MIN_COMPARED_ROWS = 8
CHUNK_WEIGHTS = 4_000_000
"""Weights of pairs of maps that are in memory together."""


class MatchingError(NeuralError, ValueError):
    """The heads of two models cannot be compared; the message says why."""


@dataclass(frozen=True, eq=False)
class ModelHeads:
    """The maps of all heads of one model."""

    maps: Float[np.ndarray, "N R K"]
    """Weights of N heads; R rows are the queries of all examples."""
    layers: Int[np.ndarray, " N"]
    heads: Int[np.ndarray, " N"]
    """Layer of each head, and its number in the layer."""
    _contents: dict[bytes, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    """The newest result of `_extract_contents`, by a hash of its arguments. A model that is compared
    with several others has the same contents each time, and fitting patterns takes long."""

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
    cosine: float
    """Of the contents: 1 for copies, about 0 for unrelated heads."""
    ratio: float
    """Distance of the contents over that of the nearest other head."""
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
    `roles` are the names of what each head of A and of B does (findings/head_roles.py).
    `same_layer` matches heads of equal layers only. `resolution`: squared length of a content that
    is rounding error. MatchingError if the maps have different rows or keys.
    """
    if first.maps.shape[1:] != second.maps.shape[1:]:
        compute_divergence(first.maps, second.maps)  # raises the error that says so
    rows = _select_rows(first, second)
    if not len(rows):
        raise MatchingError("no query sees two keys: give a longer input")
    first_maps, second_maps = (_normalize(model.maps[:, rows]) for model in (first, second))
    visible = (first_maps.max(axis=0) > 0) | (second_maps.max(axis=0) > 0)
    classes = build_patterns(visible) if patterns is None else [c[rows] for c in patterns]
    divergence = compute_divergence(first_maps, second_maps)
    contents = (
        _extract_contents_once(model, maps, visible, classes, resolution)
        for model, maps in ((first, first_maps), (second, second_maps))
    )
    cosines = next(contents) @ next(contents).T
    is_allowed = np.ones(divergence.shape, bool)
    if same_layer:
        is_allowed = first.layers[:, None] == second.layers
        if not is_allowed.any():
            raise MatchingError("the models have no layer of the same number")
    is_identical = np.array(
        [[np.array_equal(a, b) for b in second_maps] for a in first_maps], dtype=bool
    )
    has_same_index = (first.layers[:, None] == second.layers) & (
        first.heads[:, None] == second.heads
    )
    # of equal heads, such as uniform ones, each is matched with itself
    matched = _assign(divergence + TIE_COST * ~has_same_index, is_allowed)
    is_copy = is_identical & (has_same_index | _list_varied(first_maps)[:, None])
    if resolution != DEFAULT_RESOLUTION or not (is_copy & _list_varied(first_maps)[:, None]).any():
        is_copy[:] = False
    pairs = _test_pairs(
        matched, first, second, divergence, cosines, resolution, roles, is_copy, has_same_index
    )
    changes, index_p = _compare_indices(first, second, divergence, cosines, seed)
    return HeadMatching(
        pairs,
        np.where(is_allowed, divergence, np.nan),
        estimate_exponent(1 - cosines + ANGLE_RESOLUTION),
        len(rows),
        changes,
        index_p,
    )


def _list_varied(maps: Float[np.ndarray, "N R K"]) -> Bool[np.ndarray, " N"]:
    """Whether a head has a row with two positive weights that differ: equal maps are no chance."""
    positive = np.where(maps > 0, maps, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without weights
        spread = np.nanmax(positive, axis=2) - np.nanmin(positive, axis=2)
    return np.nanmax(spread, axis=1) > 0


def _extract_contents_once(
    model: ModelHeads,
    maps: Float[np.ndarray, "N R K"],
    visible: Bool[np.ndarray, "R K"],
    patterns: Sequence[Int[np.ndarray, "R K"]],
    resolution: float,
) -> Float[np.ndarray, "N RK"]:
    """`_extract_contents`, from the cache of the model if its arguments are the same as before."""
    digest = hashlib.blake2b(repr((maps.shape, len(patterns), resolution)).encode())
    for array in (maps, visible, *patterns):
        digest.update(array.tobytes())
    key = digest.digest()
    contents = model._contents.get(key)
    if contents is None:
        contents = _extract_contents(maps, visible, patterns, resolution)
        model._contents.clear()
        model._contents[key] = contents
    return contents


def _extract_contents(
    maps: Float[np.ndarray, "N R K"],
    visible: Bool[np.ndarray, "R K"],
    patterns: Sequence[Int[np.ndarray, "R K"]],
    resolution: float,
) -> Float[np.ndarray, "N RK"]:
    """Vectors √weight − √pattern of length 1; shorter if rounding or the fit explains them."""
    roots = np.sqrt(maps)
    contents = roots - np.sqrt(fit_patterns(maps, visible, patterns))
    deviations = roots - np.sqrt(visible / visible.sum(axis=1, keepdims=True))
    squared, deviation = (np.einsum("nrk,nrk->n", x, x) for x in (contents, deviations))
    squared = squared + MIN_CONTENT_SHARE * deviation + maps.shape[1] * resolution
    return (contents / np.sqrt(squared)[:, None, None]).reshape(len(maps), -1)


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
    from scipy.optimize import linear_sum_assignment

    # a cost above the sum of all others is taken only if there is no allowed pair left
    cost = np.where(is_allowed, divergence, divergence.size + 1.0)
    pairs = zip(*linear_sum_assignment(cost), strict=True)
    return [(int(i), int(j)) for i, j in pairs if is_allowed[i, j]]


def estimate_exponent(distances: Float[np.ndarray, "A B"]) -> float:
    """α of P(ρ ≤ x) = x^α for unrelated heads, its lower 95 % bound.

    −log of the ratio of the second and the third smallest distance is exponential with the rate 2α.
    The smallest distance is not used: it may be that of a copy. NaN if a model has fewer than
    MIN_TESTED_HEADS heads.
    """
    if min(distances.shape) < MIN_TESTED_HEADS:
        return math.nan
    logs = []
    for table in (distances, distances.T):
        neighbours = np.sort(table, axis=1)
        logs.append(2 * np.log(neighbours[:, 2] / neighbours[:, 1]))
    # rows and columns are two views of one table: they count once
    count, mean = min(distances.shape), max(float(np.concatenate(logs).mean()), 1e-12)
    return bound_rate(mean, count, SIGNIFICANCE_LEVEL)


def _test_pairs(
    matched: Sequence[tuple[int, int]],
    first: ModelHeads,
    second: ModelHeads,
    divergence: np.ndarray,
    cosines: np.ndarray,
    resolution: float,
    roles: tuple[Sequence[str], Sequence[str]] | None,
    is_copy: Bool[np.ndarray, "A B"],
    has_same_index: Bool[np.ndarray, "A B"],
) -> list[HeadPair]:
    """Ratio, p-value and verdict of every matched pair."""
    weights = _weigh_indices(matched, first, has_same_index)
    ratios, p_values = _test_distances(matched, 1 - cosines + ANGLE_RESOLUTION, weights)
    is_same = _adjust(p_values) <= SIGNIFICANCE_LEVEL
    _, map_p_values = _test_distances(matched, divergence + resolution, weights)
    is_nearest_map = _adjust(map_p_values) <= SIGNIFICANCE_LEVEL
    pairs = []
    for index, (i, j) in enumerate(matched):
        has_same_role = roles is not None and roles[0][i] == roles[1][j] not in (*NO_ROLES, "")
        verdict: Verdict = "undecided"
        if is_copy[i, j] or is_same[index]:
            verdict = "same head"
        elif is_nearest_map[index] or has_same_role:
            verdict = "same role"
        elif math.isnan(p_values[index]):
            verdict = "not tested"
        pairs.append(
            HeadPair(
                (int(first.layers[i]), int(first.heads[i])),
                (int(second.layers[j]), int(second.heads[j])),
                float(divergence[i, j]),
                float(cosines[i, j]),
                float(ratios[index]),
                float(p_values[index]),
                verdict,
            )
        )
    return pairs


def _weigh_indices(
    matched: Sequence[tuple[int, int]],
    first: ModelHeads,
    has_same_index: Bool[np.ndarray, "A B"],
) -> Float[np.ndarray, " P"]:
    """Factors of the p-values of pairs; 1 if the models do not have equal layers and heads.

    A pair of unrelated heads has equal indices with probability 1 / H at most. The factors 2 / (H + 1)
    and 2 keep P(p ≤ u) ≤ u: (1 / H) · u (H + 1) / 2 + (1 − 1 / H) · u / 2 = u.
    """
    if has_same_index.shape[0] != has_same_index.shape[1] or not np.diag(has_same_index).all():
        return np.ones(len(matched))
    sizes = np.array([np.sum(first.layers == first.layers[i]) for i, _ in matched])
    is_same = np.array([has_same_index[i, j] for i, j in matched])
    return np.where(is_same, 2 / (sizes + 1), 2.0)


def _test_distances(
    matched: Sequence[tuple[int, int]], distances: np.ndarray, weights: Float[np.ndarray, " P"]
) -> tuple[np.ndarray, np.ndarray]:
    """Ratio ρ and weighted p-value of every pair."""
    ratios = np.array([distances[i, j] / _nearest_other(distances, i, j) for i, j in matched])
    return ratios, np.minimum(weights * np.minimum(ratios, 1) ** estimate_exponent(distances), 1)


def _nearest_other(distances: np.ndarray, i: int, j: int) -> float:
    """The smallest distance of head i of A or head j of B from any other head."""
    others = np.concatenate([np.delete(distances[i], j), np.delete(distances[:, j], i)])
    return float(others.min(initial=math.inf))


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
    cosines: np.ndarray,
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
    observed = np.trace(cosines)
    draw = np.random.default_rng(seed)
    sums = np.zeros(INDEX_PERMUTATIONS)
    for layer in np.unique(first.layers):
        group = np.flatnonzero(first.layers == layer)
        orders = draw.permuted(np.tile(group, (INDEX_PERMUTATIONS, 1)), axis=1)
        sums += cosines[group, orders].sum(axis=1)
    # 1e-9: the identity among the permutations has the same sum up to rounding
    count = int((sums >= observed - 1e-9).sum())
    return changes, (count + 1) / (INDEX_PERMUTATIONS + 1)
