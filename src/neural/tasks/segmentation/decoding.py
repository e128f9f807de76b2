"""Decode boundary probabilities into a segmentation by dynamic programming.

p[i] is the probability that a segment begins at element i (a sentence or line of the document). A
gap is the place between two elements.

`decode_boundaries` finds the most likely segmentation with bounds on the segment length. The gain
of a boundary at element i is log(p / (1 − p)) − log(t / (1 − t)), where t is the threshold; it is
positive if p > t. The result is the segmentation with the largest sum of gains. Without bounds, the
boundaries are all elements with p > t.

`decode_expected_pk` minimizes the expected Pk instead (Beeferman et al., 1999). A probe is a pair
of elements at distance k. Pk is the fraction of probes for which prediction and truth disagree
whether both elements are in the same segment.

`can_begin` is False at elements where no segment may begin, such as the first line after a heading.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.segment_search import SegmentSearch

PROBABILITY_EPSILON = 1e-15
"""Probabilities are clipped to [ε, 1 − ε], so that all gains are finite.

With an infinite gain, the bounds on the segment length could not overrule a probability of 0 or 1.
"""
PK_PROBABILITY_EPSILON = 1e-9
"""The same ε for `decode_expected_pk`."""
MIN_PEAK_SHARE = 0.7
"""Default of an argument of `decode_expected_pk`; chosen on held-out sources of the training texts."""
_BOUNDARY_COST = 1e-9
"""What a boundary costs, in probes: of two segmentations with equal expected Pk, the shorter wins.

Between two boundaries at a distance of at most k, further ones change no probe.
"""


def decode_boundaries(
    probabilities: npt.ArrayLike,
    *,
    min_elements: int = 1,
    max_elements: int | None = None,
    threshold: float = 0.5,
    can_begin: npt.NDArray[np.bool_] | None = None,
) -> Boundaries:
    """Most likely segmentation whose segments have `min_elements` to `max_elements` elements.

    If no segmentation satisfies both bounds (the document may be shorter than `min_elements`),
    `min_elements` is lowered to the largest possible value. Among equally good segmentations the
    one with the longest last segment wins; among those, the one with the longest segment before it.

    Segments begin only where `can_begin`, (n,), is True. If both bounds cannot be kept then,
    `max_elements` is kept, with the fewest boundaries where `can_begin` is False; among those
    segmentations the one with the fewest segments below the minimum, then the most likely one.
    """
    gains = compute_gains(probabilities, threshold)
    count = len(gains)
    if can_begin is not None:
        can_begin = _check_can_begin(can_begin, count)
    if min_elements < 1 or (max_elements is not None and max_elements < min_elements):
        raise ValueError(
            "segment lengths: 1 ≤ min_elements ≤ max_elements is needed, "
            f"got min_elements {min_elements} and max_elements {max_elements}"
        )
    longest = count if max_elements is None else min(max_elements, count)
    # The minimum is possible only if the fewest segments that `max_elements` allows, which are
    # ceil(count / longest), have at least this length when they are equally long.
    min_elements = min(min_elements, count // -(-count // longest))
    if min_elements == 1 and longest == count:
        boundaries = gains > 0 if can_begin is None else (gains > 0) & can_begin
        boundaries[0] = False
        return boundaries
    if can_begin is None:
        return _backtrack(_find_best_starts(gains, min_elements, longest))
    starts = _find_best_starts(np.where(can_begin, gains, -np.inf), min_elements, longest)
    if starts[-1] >= 0:
        return _backtrack(starts)
    return _decode_softly(gains, can_begin, min_elements, longest)


def compute_gains(probabilities: npt.ArrayLike, threshold: float) -> npt.NDArray[np.float64]:
    """Gain of a boundary at every element, (n,): its log-odds minus those of the threshold."""
    return compute_log_odds(probabilities) - float(
        compute_log_odds([threshold], "threshold", allow_extremes=False)[0]
    )


def _check_can_begin(can_begin: npt.ArrayLike, count: int) -> npt.NDArray[np.bool_]:
    can_begin = np.asarray(can_begin, bool)
    if can_begin.shape != (count,):
        raise ValueError(
            f"can_begin: one per element, {count}; got an array of shape {can_begin.shape}"
        )
    return can_begin


def _decode_softly(
    gains: npt.NDArray[np.float64],
    can_begin: npt.NDArray[np.bool_],
    min_elements: int,
    max_elements: int,
) -> Boundaries:
    """Segmentation that keeps the maximum and breaks the other rules as rarely as possible."""
    search = SegmentSearch()
    ends = np.arange(1, len(gains) + 1)
    search.push(gains, ~can_begin, ends - max_elements, ends - min_elements)
    boundaries = np.zeros(len(gains), bool)
    boundaries[[start for start, _ in search.find_path(is_final=True)]] = True
    boundaries[0] = False
    return boundaries


def compute_log_odds(
    probabilities: npt.ArrayLike, name: str = "probabilities", *, allow_extremes: bool = True
) -> npt.NDArray[np.float64]:
    """log(p / (1 − p)), (n,), always finite. ValueError for p outside [0, 1].

    0 and 1 are errors, too, unless `allow_extremes`. `name` is used in messages.
    """
    p = np.asarray(probabilities, float)
    if p.ndim != 1 or len(p) == 0:
        raise ValueError(f"{name}: one per element, at least one; got an array of shape {p.shape}")
    if not ((p >= 0) & (p <= 1) if allow_extremes else (p > 0) & (p < 1)).all():
        raise ValueError(
            f"{name}: from 0 to 1{'' if allow_extremes else ', both excluded'}; "
            f"got {p.min():g} to {p.max():g}"
        )
    p = np.clip(p, PROBABILITY_EPSILON, 1 - PROBABILITY_EPSILON)
    return np.log(p) - np.log1p(-p)


def _find_best_starts(
    gains: npt.NDArray[np.float64], min_elements: int, max_elements: int
) -> list[int]:
    """Start of the last segment in the best segmentation of the first `end` elements, for each end.

    The result has n + 1 entries; −1 if there is no segmentation with these bounds.

    best(end) is the largest best(start) + gain(start) with `min_elements` ≤ end − start ≤
    `max_elements`. `candidates` is a monotonic queue of starts, ordered by falling value, so the
    first one is always the best: O(n) in all.
    """
    gain = gains.tolist()
    gain[0] = 0.0  # every segmentation has a segment that begins here
    count = len(gain)
    starts = [-1] * (count + 1)
    value = [float("-inf")] * (count + 1)  # best(start) + gain(start)
    value[0] = 0.0
    candidates: deque[int] = deque()
    for end in range(min_elements, count + 1):
        candidate = end - min_elements
        candidate_value = value[candidate]
        if candidate_value > float("-inf"):
            while candidates and value[candidates[-1]] < candidate_value:
                candidates.pop()
            candidates.append(candidate)
        if candidates and candidates[0] < end - max_elements:
            candidates.popleft()
        if candidates:
            starts[end] = candidates[0]
            value[end] = value[candidates[0]] + (gain[end] if end < count else 0.0)
    return starts


def _backtrack(starts: list[int]) -> Boundaries:
    """Boundaries of the best segmentation, (n,), from the result of `_find_best_starts`.

    It follows the segment starts from the last segment to the first.
    """
    boundaries = np.zeros(len(starts) - 1, bool)
    start = starts[-1]
    while start > 0:
        boundaries[start] = True
        start = starts[start]
    return boundaries


def decode_expected_pk(
    probabilities: npt.ArrayLike,
    k: int | None = None,
    can_begin: npt.NDArray[np.bool_] | None = None,
    *,
    threshold: float = 0.5,
    min_peak_share: float = MIN_PEAK_SHARE,
) -> Boundaries:
    """Segmentation with the smallest expected Pk if all boundaries are independent, in O(n).

    `k` is the probe distance, by default half the expected segment length. Segments begin only
    where `can_begin`, (n,), is True. A probe shall be separated if the probability of a boundary
    between its elements is above `threshold`: 0.5 gives the smallest expected Pk, a larger value
    fewer boundaries, for probabilities that may be too high.

    A boundary has at least `min_peak_share` of the largest probability within half the probe
    distance, and of every probability that is passed over further away from a boundary. Otherwise,
    Pk puts boundaries at places of no importance where many gaps have small probabilities. 0 turns
    this rule off.
    """
    p = np.asarray(probabilities, np.float64).clip(
        PK_PROBABILITY_EPSILON, 1 - PK_PROBABILITY_EPSILON
    )
    count = len(p)
    is_allowed = np.ones(count, bool)
    if can_begin is not None:
        is_allowed = _check_can_begin(can_begin, count).copy()
    if count < 2:
        return np.zeros(count, bool)
    k = max(2, round(count / (2 * (1 + float(p[1:].sum()))))) if k is None else k
    k = min(k, count - 1)
    # Entry i is log P(no boundary at the elements 1 … i − 1).
    log_no_boundary = np.concatenate([[0.0, 0.0], np.cumsum(np.log1p(-p[1:]))])
    probes = np.arange(count - k)
    p_boundary = 1 - np.exp(log_no_boundary[probes + k + 1] - log_no_boundary[probes + 1])
    # Entry i: how much a predicted boundary between elements i and i + k lowers the expected number
    # of wrong probes, halved: without one the probe is wrong with P(boundary), with one otherwise.
    gain = np.zeros(count)
    gain[: count - k] = p_boundary - threshold
    radius = max(1, k // 2)
    candidates = np.where(is_allowed, p, 0)
    candidates[0] = 0
    is_allowed &= p >= min_peak_share * _maximum_nearby(candidates, radius)
    sums = np.concatenate([[0.0], np.cumsum(gain)]).tolist()
    while True:
        boundaries = _maximize_gain(sums, is_allowed.tolist(), k)
        # The largest probability that is passed over for no boundary nearby.
        passed = candidates[_maximum_nearby(boundaries, radius) == 0].max(initial=0)
        is_too_low = p < min_peak_share * passed
        if not (boundaries & is_too_low).any():
            return boundaries
        is_allowed &= ~is_too_low


def _maximum_nearby(values: np.ndarray, radius: int) -> npt.NDArray[np.float64]:
    """Largest value at most `radius` positions away, (n,)."""
    padded = np.pad(values.astype(float), radius, constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1).max(axis=1)


def _maximize_gain(sums: list[float], is_allowed: list[bool], k: int) -> Boundaries:
    """Boundaries with the largest total gain; `sums` are the cumulative gains of the probes.

    `is_allowed` is True where a boundary may be.

    A boundary at b gains the probes that begin at b − k … b − 1, except those that the boundary
    before it has gained already. `value[b]` is the best total with b as the last boundary, and
    `previous[b]` the boundary before b in that solution.
    """
    count = len(is_allowed)
    value, previous = [0.0] * count, [0] * count
    # Candidates for the previous boundary at a distance of at most k, whose probes overlap: a
    # monotonic queue with the largest value − sums first.
    near: deque[int] = deque([0])
    far = -1  # the best candidate further back, whose probes do not overlap; −1 if none
    for position in range(1, count):
        low = max(0, position - k)
        if low > 0 and (far < 0 or value[low - 1] > value[far]):
            far = low - 1
        while near and near[0] < low:
            near.popleft()
        if not is_allowed[position]:
            value[position] = float("-inf")
            continue
        if near:
            value[position] = value[near[0]] - sums[near[0]] + sums[position]
            previous[position] = near[0]
        else:  # no boundary is allowed within the last k elements, so there is a `far`
            value[position] = float("-inf")
        if far >= 0 and (after_far := value[far] + sums[position] - sums[low]) > value[position]:
            value[position], previous[position] = after_far, far
        value[position] -= _BOUNDARY_COST
        while near and value[near[-1]] - sums[near[-1]] <= value[position] - sums[position]:
            near.pop()
        near.append(position)
    boundaries = np.zeros(count, bool)
    position = int(np.argmax(value))
    while position > 0:
        boundaries[position] = True
        position = previous[position]
    return boundaries
