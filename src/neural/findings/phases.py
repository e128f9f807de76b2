"""Phases of a training, from its validation curve: rapid, steady, plateau or dip, recovery, best.

    1 ── rapid ── 5 ── steady ── 15 ── dip ── 20 ── recovery ── 23 best ── after

The numbers above count validations. A score is the monitored metric, the one that selects the best
checkpoint. A rising curve has larger scores for better models: losses are negated. A phase is an
interval of validations with the change of the score in it; its causes are not considered. Changes
that noise explains are not phases: a curve that does not rise beyond its noise has none, and a
plateau or a dip must differ from the curve around it by more than the noise
(`estimate_noise_threshold`). tests/validity/ measures how often noise alone makes phases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from neural.stats.change_points import estimate_curve_noise

PhaseName = Literal["rapid", "steady", "plateau", "dip", "recovery", "best", "after"]
RAPID_SLOPE_RATIO = 1.5
"""A rise is rapid if its slope is at least this many times the slope after it."""
PLATEAU_SLOPE_RATIO = 5.0
"""A slow rise is a plateau if the rise after it is at least this many times as steep."""
MIN_PLATEAU_VALIDATIONS = 3
"""Smallest number of validations without a new best that counts as a plateau."""
MAX_PLATEAU_SHARE = 0.1
"""A rise by a larger share of the whole rise does not belong to the plateau beside it."""
MIN_DIP_SHARE = 0.03
"""A fall by a smaller share of the whole rise is a plateau, a larger one is a dip."""
MIN_SCORES_FOR_NOISE = 8
"""Curves with fewer scores do not show their noise; the standard error is used if it is known."""
MIN_RELATIVE_RISE = 1e-3
"""A rise below this share of the first score does not count, however smooth the curve is."""


PHASE_NAMES_OF_SCORES: dict[PhaseName, str] = {
    "rapid": "rapid rise",
    "steady": "steady rise",
    "best": "highest",
    "after": "after the highest",
}
"""Names of phases of a score, which rises; others are called by their own name."""
PHASE_NAMES_OF_LOSSES: dict[PhaseName, str] = {
    "rapid": "rapid fall",
    "steady": "steady fall",
    "dip": "setback",
    "best": "lowest",
    "after": "after the lowest",
}
"""Names of phases of a loss, which falls: a dip of the negated loss is a rise of the loss."""


def name_phase(name: PhaseName, *, larger_is_better: bool) -> str:
    """Name of a phase in texts, by the direction in which the metric improves."""
    names = PHASE_NAMES_OF_SCORES if larger_is_better else PHASE_NAMES_OF_LOSSES
    return names.get(name, name)


class Phase(NamedTuple):
    """An interval of a curve; the next phase starts with the last validation of this one."""

    name: PhaseName
    first: int
    """First validation, counted from 1."""
    last: int
    """Last validation, included."""
    change: float
    """Score of the last validation minus that of the first."""


def estimate_noise_threshold(scores: np.ndarray, standard_error: float = 0.0) -> float:
    """The smallest difference between two scores of a curve that noise does not explain.

    One of the two scores is selected as the largest of n: in units of the noise it is about
    √(2 log n) too high. The other one may be 2.5 too low. The factor 1 + 5/n is for the error of
    the noise estimate from n scores. Curves with fewer than MIN_SCORES_FOR_NOISE scores bend too
    much to show their noise: if `standard_error`, that of a difference of two scores, is positive,
    it is used instead.
    """
    count = len(scores)
    if count < 3:
        return 0.0
    noise = estimate_curve_noise(scores)
    if count < MIN_SCORES_FOR_NOISE and standard_error > 0:
        noise = standard_error / math.sqrt(2)  # of one score
    return noise * (math.sqrt(2 * math.log(count)) + 2.5) * (1 + 5 / count)


def find_phases(
    curve: Sequence[float], *, larger_is_better: bool = True, standard_error: float = 0.0
) -> list[Phase]:
    """Phases of a curve with one score per validation, in order; empty if only noise changes it.

    `standard_error` is that of the difference of two scores, 0 if unknown. A curve has phases only
    if its best score exceeds its first or its last one by more than twice that error.
    """
    scores = np.asarray(curve, dtype=np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError("a curve must have one finite score per validation")
    if len(scores) < 2:
        return []
    rising = scores if larger_is_better else -scores
    tolerance = estimate_noise_threshold(scores, standard_error)
    peak, end = int(rising.argmax()), len(scores) - 1
    min_change = max(tolerance, 2 * standard_error, MIN_RELATIVE_RISE * abs(float(scores[0])))
    if max(rising[peak] - rising[0], rising[peak] - rising[-1]) <= min_change:
        return []
    intervals = _split_rise(rising[: peak + 1], tolerance) if peak else []
    intervals.append(("best", peak, peak))
    if peak < end:
        intervals.append(("after", peak, end))
    return [
        Phase(name, first + 1, last + 1, float(scores[last] - scores[first]))
        for name, first, last in intervals
    ]


class Plateau(NamedTuple):
    """An interval without a new best, before the best score."""

    start: int
    """Index of the best score before it."""
    end: int
    """Index of the next best score."""

    @property
    def validations(self) -> int:
        """Number of validations between the two."""
        return self.end - self.start - 1


def find_longest_plateau(rising: np.ndarray, tolerance: float) -> Plateau | None:
    """The longest plateau before the best score of a rising curve, or None.

    `tolerance` is the largest difference that noise explains (`estimate_noise_threshold`). A
    plateau is followed by a rise: the next validations, as many as it has, lie above its second
    half by more than the noise and by more than three times the rise inside it. So a curve that
    merely flattens has no plateau. An interval that falls by more than the noise, a dip, counts
    too.
    """
    peak = int(rising.argmax())
    bests = [0, *(index for index in range(1, peak + 1) if rising[index] > rising[:index].max())]
    candidates = sorted(
        (Plateau(*pair) for pair in pairwise(bests)), key=lambda plateau: -plateau.validations
    )
    for plateau in candidates:
        if plateau.validations < MIN_PLATEAU_VALIDATIONS:
            return None
        inside = rising[plateau.start + 1 : plateau.end]
        first_half, second_half = np.split(inside, [len(inside) // 2])
        after = rising[plateau.end : min(plateau.end + plateau.validations, peak + 1)]
        rise_after = float(after.mean() - second_half.mean())
        rise_inside = float(second_half.mean() - first_half.mean())
        # 1.5, because both scores are selected: the best before, the worst inside
        is_dip = float(rising[plateau.start] - inside.min()) > 1.5 * tolerance
        if is_dip or (rise_after > tolerance and rise_after > 3 * rise_inside):
            return plateau
    return None


def _split_rise(rising: np.ndarray, tolerance: float) -> list[tuple[PhaseName, int, int]]:
    """Split a curve that ends at its best score into phases (name, first index, last index)."""
    peak, total_rise = len(rising) - 1, float(rising[-1] - rising[0])
    # in long curves a plateau must take a tenth of the validations up to the best one
    plateau = find_longest_plateau(rising, tolerance)
    if plateau is None or plateau.end - plateau.start <= max(
        MIN_PLATEAU_VALIDATIONS, (peak + 1) / 10
    ):
        return _split_climb(rising, 0, peak, tolerance)
    start, end = plateau
    lowest = start + int(rising[start : end + 1].argmin())
    if rising[start] - rising[lowest] < max(MIN_DIP_SHARE * total_rise, tolerance):
        if rising[end] - rising[start] > MAX_PLATEAU_SHARE * total_rise:
            end -= 1  # it ends before the cliff
        if rising[start] - rising[0] <= max(MAX_PLATEAU_SHARE * total_rise, tolerance):
            start = 0
        after = _split_climb(rising, end, peak, tolerance)
        if after and after[0][0] == "plateau":
            end, after = after[0][2], after[1:]
        return [*_split_climb(rising, 0, start, tolerance), ("plateau", start, end), *after]
    # the recovery ends at the next new best, or at the peak if that follows soon after
    recovery_end = peak if peak - end <= max(2, end - lowest) else end
    return [
        *_split_climb(rising, 0, start, tolerance),
        ("dip", start, lowest),
        ("recovery", lowest, recovery_end),
        *_steady_phase(recovery_end, peak),
    ]


def _split_climb(
    rising: np.ndarray, first: int, last: int, tolerance: float
) -> list[tuple[PhaseName, int, int]]:
    """Split the rise from index `first` to `last` into rapid, plateau and steady, at its bends.

    The upper bend, which ends a rapid rise, is where the running maximum is farthest above the
    straight line between its ends. The foot, which ends a plateau, is where it is farthest below
    the line from its start to the upper bend. Both are farther from the line than noise explains,
    and the slopes before and after differ by RAPID_SLOPE_RATIO and PLATEAU_SLOPE_RATIO.
    """
    best = np.maximum.accumulate(rising[: last + 1])

    def slope(start: int, end: int) -> float:
        return float(best[end] - best[start]) / (end - start)

    def find_gaps(end: int) -> np.ndarray:
        return best[first : end + 1] - np.linspace(best[first], best[end], end + 1 - first)

    gaps = find_gaps(last)
    bend = first + int(gaps.argmax())
    has_bend = (
        first < bend < last
        and gaps[bend - first] > tolerance
        and slope(first, bend) >= RAPID_SLOPE_RATIO * slope(bend, last)
    )
    top = bend if has_bend else last
    after = _split_climb(rising, top, last, tolerance) if has_bend else []
    if len(after) < 3:  # without a plateau, which a rapid rise follows
        after = _steady_phase(top, last)
    gaps = find_gaps(top)
    foot = first + int(gaps.argmin())
    if gaps[foot - first] < -tolerance:
        *before, (_, start, _) = _split_climb(rising, first, foot, tolerance)
        is_long = foot - start >= max(MIN_PLATEAU_VALIDATIONS, last / 10)
        if is_long and slope(foot, top) >= PLATEAU_SLOPE_RATIO * slope(start, foot):
            return [*before, ("plateau", start, foot), ("rapid", foot, top), *after]
    return [("rapid", first, top), *after] if has_bend else _steady_phase(first, last)


def _steady_phase(first: int, last: int) -> list[tuple[PhaseName, int, int]]:
    """One steady phase; none if it is empty."""
    return [("steady", first, last)] if last > first else []
